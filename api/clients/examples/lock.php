<?php
// A lock of redlockd with curl. PHP has no threads: call check() between the
// steps of the work. It renews the lock in time if each step is shorter than a
// third of the TTL. Its clock stops while the machine sleeps.

class LockLost extends RuntimeException {}
class LockHeld extends RuntimeException {} // the wait is over: somebody else has it

class Lock {
    public $fence; // its fencing token: the resource should refuse lower ones
    private $key, $path, $token;
    private $until, $renewAt; // milliseconds, as now()

    /** Waits for the lock. Throws LockHeld, or a RuntimeException that says why. */
    public function __construct(
        private $urls, $resource, private $ttlMs = 30000, $waitMs = 60000
    ) {
        $this->key = bin2hex(random_bytes(16)); // the same for each repeat
        $deadline = self::now() + $waitMs;
        do {
            $sliceMs = (int) max(0, min(10000, $deadline - self::now()));
            [$status, $answer] = $this->ask('POST', '/locks', $sliceMs + 2000, [
                'resource' => $resource,
                'ttl_ms' => $this->ttlMs,
                'wait_ms' => $sliceMs,
            ]);
            $isFinal = !in_array($status, [409, 503]) || self::now() > $deadline;
            if ($status >= 300 && $isFinal) {
                $why = "$resource: $status " . json_encode($answer);
                throw $status === 409 ? new LockHeld($why) : new RuntimeException($why);
            }
            if ($status === 503) {
                usleep(1000 * (rand(200, 1000) + ($answer['retry_after_ms'] ?? 0)));
            }
        } while ($status >= 300);
        $this->path = "/locks/{$answer['id']}";
        $this->token = $answer['token'];
        $this->fence = $answer['fencing_token'];
    }

    /** Throws LockLost. Call it also right before a step that cannot be undone. */
    public function check() {
        while ($this->left() > 0 && self::now() >= $this->renewAt) {
            $this->renewAt = self::now() + $this->ttlMs / 20; // unless this succeeds
            $limitMs = $this->left() / count($this->urls);
            [, $answer] = $this->ask('PUT', "$this->path/extend", $limitMs, [
                'token' => $this->token,
                'ttl_ms' => $this->ttlMs,
            ]);
            if (in_array($answer['code'] ?? '', ['lock_not_found', 'not_owner'])) {
                $this->until = 0;
            }
        }
        if ($this->left() <= 0) {
            throw new LockLost('lock lost');
        }
    }

    public function release() {
        $this->ask('DELETE', $this->path, 2000, ['token' => $this->token]);
    }

    private static function now() {
        return hrtime(true) / 1e6;
    }

    private function left() { // a tenth of the TTL is for ending a step
        return $this->until - $this->ttlMs / 10 - self::now();
    }

    /** The status and the answer of the first replica that has one; 503: none. */
    private function ask($method, $path, $limitMs, $body) {
        $head = ['Content-Type: application/json', "Idempotency-Key: $this->key"];
        if ($bearer = getenv('REDLOCKD_AUTH_TOKEN')) {
            $head[] = "Authorization: Bearer $bearer";
        }
        foreach ($this->urls as $_) {
            $sent = self::now();
            $curl = curl_init($this->urls[0] . $path);
            curl_setopt_array($curl, [
                CURLOPT_CUSTOMREQUEST => $method,
                CURLOPT_HTTPHEADER => $head,
                CURLOPT_POSTFIELDS => json_encode($body),
                CURLOPT_RETURNTRANSFER => true,
                CURLOPT_TIMEOUT_MS => max(1, (int) $limitMs),
            ]);
            $answer = json_decode((string) curl_exec($curl), true);
            $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
            if (isset($answer['validity_ms'])) {
                $granted = $sent + $answer['elapsed_ms'];
                $this->until = $granted + $answer['validity_ms'];
                $this->renewAt = $granted + $answer['renew_after_ms'];
            }
            if ($answer && $status < 429) {
                return [$status, $answer];
            }
            $this->urls[] = array_shift($this->urls); // the next replica
        }
        return [503, $answer];
    }
}

if (realpath($_SERVER['SCRIPT_FILENAME']) !== __FILE__) {
    return; // it was included
}

// lock.php RESOURCE TTL_MS WAIT_MS WORK_MS
[, $resource, $ttlMs, $waitMs, $workMs] = $argv;
$urls = explode(' ', getenv('URLS'));
$lock = new Lock($urls, $resource, (int) $ttlMs, (int) $waitMs);
try {
    for ($step = 0; $step < $workMs / 50; $step++) {
        usleep(50000);
        $lock->check();
        echo 'working ', (int) (microtime(true) * 1000), " $lock->fence\n";
    }
} finally {
    $lock->release();
}
