<?php
// A lock of redlockd with curl. PHP has no threads: call check() between the steps of the work. It
// renews the lock in time if each step is shorter than a third of the TTL, and throws LockLost.
// Its clock stops while the machine sleeps.
class LockLost extends RuntimeException {}
class Lock {
    private $key, $path, $token, $until, $renewAt;
    public $fence;

    public function __construct(private $urls, $resource, private $ttlMs = 30000, $waitMs = 60000) {
        $this->key = bin2hex(random_bytes(16)); // the same for each repeat
        for ($deadline = self::now() + $waitMs, $status = 0; $status !== 200 && $status !== 201;) {
            $sliceMs = (int) max(0, min(10000, $deadline - self::now()));
            $want = ['resource' => $resource, 'ttl_ms' => $this->ttlMs, 'wait_ms' => $sliceMs];
            [$status, $answer] = $this->ask('POST', '/locks', $sliceMs + 2000, $want);
            if ($status >= 300 && (self::now() > $deadline || !in_array($status, [409, 503]))) {
                throw new RuntimeException("$resource: $status " . json_encode($answer));
            }
            if ($status === 503) usleep(1e3 * (rand(200, 1000) + ($answer['retry_after_ms'] ?? 0)));
        }
        [$this->path, $this->token] = ["/locks/{$answer['id']}", $answer['token']];
        $this->fence = $answer['fencing_token'];
    }

    private static function now() {
        return hrtime(true) / 1e6;
    }

    private function left() { // a tenth of the TTL is for ending a step
        return $this->until - $this->ttlMs / 10 - self::now();
    }

    public function check() { // call it also right before each step that cannot be undone
        while ($this->left() > 0 && self::now() >= $this->renewAt) {
            $this->renewAt = self::now() + $this->ttlMs / 20; // unless this succeeds
            $again = ['token' => $this->token, 'ttl_ms' => $this->ttlMs];
            $limitMs = $this->left() / count($this->urls);
            [, $answer] = $this->ask('PUT', "$this->path/extend", $limitMs, $again);
            if (in_array($answer['code'] ?? '', ['lock_not_found', 'not_owner'])) $this->until = 0;
        }
        $this->left() > 0 || throw new LockLost('lock lost');
    }

    public function release() {
        $this->ask('DELETE', $this->path, 2000, ['token' => $this->token]);
    }

    private function ask($method, $path, $limitMs, $body) {
        foreach ($this->urls as $_) { // until a replica can answer
            $sent = self::now();
            $head = ['Content-Type: application/json', "Idempotency-Key: $this->key"];
            if ($bearer = getenv('REDLOCKD_AUTH_TOKEN')) $head[] = "Authorization: Bearer $bearer";
            curl_setopt_array($curl = curl_init($this->urls[0] . $path), [
                CURLOPT_CUSTOMREQUEST => $method, CURLOPT_POSTFIELDS => json_encode($body),
                CURLOPT_TIMEOUT_MS => max(1, (int) $limitMs),
                CURLOPT_HTTPHEADER => $head, CURLOPT_RETURNTRANSFER => true]);
            $answer = json_decode((string) curl_exec($curl), true);
            $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
            if (isset($answer['validity_ms'])) {
                $this->until = $sent + $answer['elapsed_ms'] + $answer['validity_ms'];
                $this->renewAt = self::now() + $answer['renew_after_ms'];
            }
            if ($answer && $status < 429) return [$status, $answer];
            $this->urls[] = array_shift($this->urls); // the next replica
        }
        return [503, $answer];
    }
}

if (realpath($_SERVER['SCRIPT_FILENAME']) !== __FILE__) return; // it was included
$lock = new Lock(explode(' ', getenv('URLS')), $argv[1], (int) $argv[2], (int) $argv[3]);
try {
    for ($step = 0; $step < $argv[4] / 50; $step++) {
        usleep(50000);
        $lock->check();
        echo 'working ', (int) (microtime(true) * 1000), " $lock->fence\n";
    }
} finally {
    $lock->release();
}
