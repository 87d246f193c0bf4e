<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Internal;

/**
 * Carries out talks with curl, over connections that are kept. A forked child gets
 * connections of its own.
 *
 * An exception of a signal handler (pcntl_async_signals) ends a request or a pause
 * at once, and closes the connection of the request.
 */
final class Caller
{
    // A request that has no response so long after it should have one marks its
    // replica: the next request asks another one.
    private const OVERDUE_MS = 500.0;
    private const LONGEST_POLL_S = 0.1; // a signal handler runs after that at most

    private ?\CurlMultiHandle $multi = null;
    private int $process = 0;
    /** @var array<string, \CurlHandle> by URL of the replica: its options are set once */
    private array $idle = [];
    /** @var array<int, array{handle: \CurlHandle, url: string, talk: \Generator<int, Send|Pause, Answer|null, mixed>}> */
    private array $probes = [];

    /** @var array<int, string> Retry-After, by handle */
    private array $headers = [];
    /** @var array<int, int> bytes for tunnels through a proxy, by handle */
    private array $tunnels = [];
    /** @var array<int, int> how handles ended that nobody has asked for yet */
    private array $ends = [];

    public function __construct(
        private readonly Replicas $replicas,
        private readonly Identity $identity,
    ) {
    }

    /** @return array<string, mixed> */
    public function __debugInfo(): array
    {
        return ['replicas' => $this->replicas];
    }

    public function close(): void
    {
        $this->idle = $this->probes = [];
        $this->multi = null;
    }

    /**
     * Runs a talk to its end, and returns what it returns.
     *
     * @template T
     * @param \Generator<int, Send|Pause, Answer|null, T> $talk
     * @param float $untilMs gives up then, and returns null; INF: never
     * @return T|null
     */
    public function run(\Generator $talk, float $untilMs = INF): mixed
    {
        while ($talk->valid()) {
            if (Clock::nowMs() >= $untilMs) {
                return null;
            }
            $step = $talk->current();
            if ($step instanceof Send) {
                $talk->send($this->send($step, $untilMs));
            } else {
                $this->pause(min($step->ms, $untilMs - Clock::nowMs()));
                $talk->send(null);
            }
        }
        return $talk->getReturn();
    }

    /** Probes go on meanwhile. */
    public function pause(float $ms): void
    {
        $until = Clock::nowMs() + $ms;
        while (($leftMs = $until - Clock::nowMs()) > 0) {
            if ($this->probes === []) {
                usleep((int) (1000 * min($leftMs, 1000.0)));
            } else {
                $this->poll($leftMs);
                $this->turn();
            }
        }
    }

    /** @param float $untilMs the response may not take longer */
    public function send(Send $send, float $untilMs = INF): Answer
    {
        $this->ready();
        $url = $send->url !== '' ? $send->url : $this->replicas->choose($this->beginProbe(...));
        $answer = $this->exchange($send, $url, $untilMs);
        if ($answer->status === 401 && $this->identity->refresh()) {
            $answer = $this->exchange($send, $url, $untilMs)->after($answer);
        }
        return $answer;
    }

    private function exchange(Send $send, string $url, float $untilMs): Answer
    {
        $sentMs = Clock::nowMs();
        $body = self::body($send);
        $handle = $this->handle($send, $url, $body);
        $overdueAt = $sentMs + $send->waitMs + self::OVERDUE_MS;
        $isOverdue = $isDone = false;
        curl_multi_add_handle($this->multi, $handle);
        try {
            while (($code = $this->finished($handle)) === null) {
                $now = Clock::nowMs();
                $lateAt = min($untilMs, $this->lateAt($handle, $send, $sentMs));
                if ($now >= $lateAt) {
                    $code = CURLE_OPERATION_TIMEDOUT;
                    break;
                }
                if ($now >= $overdueAt && !$isOverdue) {
                    $this->replicas->avoid($url);
                    $isOverdue = true;
                }
                $this->poll(min($lateAt, $isOverdue ? INF : $overdueAt) - $now);
            }
            $isDone = true;
        } finally {
            curl_multi_remove_handle($this->multi, $handle); // which closes what is under way
            unset($this->ends[spl_object_id($handle)]); // another handle may get this id
            if ($isDone) {
                $this->idle[$url] = $handle;
            }
        }
        $answer = $this->read($handle, $code, $body, $url, $sentMs);
        if ($answer->isGood() && !$isOverdue) {
            $this->replicas->works($url);
        }
        return $answer;
    }

    private function read(\CurlHandle $handle, int $code, string $body, string $url, float $sentMs): Answer
    {
        if ($code !== CURLE_OK) {
            $kind = match (true) {
                in_array($code, [CURLE_SSL_CACERT, CURLE_SSL_PEER_CERTIFICATE], true) => Answer::UNTRUSTED,
                self::hasConnected($handle) => Answer::LOST,
                default => Answer::UNSENT,
            };
            $text = curl_error($handle) ?: (string) curl_strerror($code);
            if ($kind === Answer::UNTRUSTED) {
                $text = "the server's certificate is not trusted: $text";
            }
            // Without a connection, what was sent went over a kept one that had ended.
            $isRepeated = $kind !== Answer::LOST
                && curl_getinfo($handle, CURLINFO_REQUEST_SIZE) > strlen(self::sentForTunnel($handle));
            return Answer::failure($kind, $text, $url, $sentMs, $isRepeated);
        }
        return Answer::read(
            (int) curl_getinfo($handle, CURLINFO_RESPONSE_CODE),
            (string) curl_multi_getcontent($handle),
            $this->headers[spl_object_id($handle)] ?? '',
            $url,
            $sentMs,
            (string) curl_getinfo($handle, CURLINFO_CONTENT_TYPE),
            $this->wasSentTwice($handle, $body),
        );
    }

    /**
     * What curl has sent is more than one request if a kept connection had ended: it
     * sends the request again then, over a new one. It may count the body, or not, and
     * what it has sent to a proxy for a tunnel.
     */
    private function wasSentTwice(\CurlHandle $handle, string $body): bool
    {
        $more = curl_getinfo($handle, CURLINFO_REQUEST_SIZE)
            - strlen((string) curl_getinfo($handle, CURLINFO_HEADER_OUT));
        $tunnel = $this->tunnels[spl_object_id($handle)] ?? 0;
        return !in_array($more, [0, strlen($body), $tunnel, $tunnel + strlen($body)], true);
    }

    /** The last request, if it was to a proxy. */
    private static function sentForTunnel(\CurlHandle $handle): string
    {
        $sent = (string) curl_getinfo($handle, CURLINFO_HEADER_OUT);
        return str_starts_with($sent, 'CONNECT ') ? $sent : '';
    }

    /** The connection and the response may each take the timeout. */
    private function lateAt(\CurlHandle $handle, Send $send, float $sentMs): float
    {
        if (!self::hasConnected($handle)) {
            return $sentMs + $send->timeoutMs;
        }
        $connectedMs = 1000 * (float) curl_getinfo($handle, CURLINFO_PRETRANSFER_TIME);
        return $sentMs + $connectedMs + $send->timeoutMs + $send->waitMs;
    }

    /** From then on the request may have been carried out. */
    private static function hasConnected(\CurlHandle $handle): bool
    {
        return (float) curl_getinfo($handle, CURLINFO_PRETRANSFER_TIME) > 0;
    }

    /** In JSON; '': there is none. */
    private static function body(Send $send): string
    {
        return $send->body === null ? '' : json_encode($send->body, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES);
    }

    private function handle(Send $send, string $url, string $body): \CurlHandle
    {
        $handle = $this->idle[$url] ?? $this->newHandle($url);
        unset($this->idle[$url]);
        $headers = ['Accept: application/json', 'Expect:'];
        foreach ($send->headers as $name => $value) {
            $headers[] = "$name: $value";
        }
        if ($this->identity->authorization() !== '') {
            $headers[] = 'Authorization: ' . $this->identity->authorization();
        }
        if ($body !== '') {
            $headers[] = 'Content-Type: application/json';
        }
        $this->headers[spl_object_id($handle)] = '';
        $this->tunnels[spl_object_id($handle)] = 0;
        curl_setopt_array($handle, [
            CURLOPT_HTTPGET => true, // without the body of an earlier request
            CURLOPT_URL => $url . $send->path,
            CURLOPT_CUSTOMREQUEST => $send->method,
            CURLOPT_HTTPHEADER => $headers,
        ]);
        if ($body !== '') {
            curl_setopt($handle, CURLOPT_POSTFIELDS, $body);
        }
        return $handle;
    }

    private function newHandle(string $url): \CurlHandle
    {
        $handle = curl_init();
        $id = spl_object_id($handle);
        curl_setopt_array($handle, [
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS,
            CURLOPT_FOLLOWLOCATION => false, // another host must not get the access token
            CURLOPT_NOSIGNAL => true,
            CURLINFO_HEADER_OUT => true,
            CURLOPT_SSLVERSION => CURL_SSLVERSION_TLSv1_2,
            CURLOPT_TCP_NODELAY => true,
            CURLOPT_HEADERFUNCTION => function (\CurlHandle $of, string $line) use ($id): int {
                if (stripos($line, 'Retry-After:') === 0) {
                    $this->headers[$id] = trim(substr($line, 12));
                } elseif (str_starts_with($line, 'HTTP/')) {
                    $this->tunnels[$id] += strlen(self::sentForTunnel($of));
                }
                return strlen($line);
            },
        ]);
        $host = trim((string) parse_url($url, PHP_URL_HOST), '[]');
        if ($host === 'localhost' || $host === '::1' || str_starts_with($host, '127.')) {
            curl_setopt($handle, CURLOPT_PROXY, ''); // whatever the environment says
        }
        $files = [
            CURLOPT_CAINFO => $this->identity->caFile,
            CURLOPT_SSLCERT => $this->identity->certFile,
            CURLOPT_SSLKEY => $this->identity->keyFile ?? $this->identity->certFile,
        ];
        curl_setopt_array($handle, array_filter($files, static fn (?string $file): bool => $file !== null));
        return $handle;
    }

    // ---- curl's loop -------------------------------------------------------------

    private function ready(): void
    {
        if ($this->multi === null || $this->process !== getmypid()) {
            $this->close(); // of a forked child: they are the parent's
            $this->multi = curl_multi_init();
            $this->process = (int) getmypid();
        }
    }

    /** Its code, if it has ended. */
    private function finished(\CurlHandle $handle): ?int
    {
        $this->turn();
        $id = spl_object_id($handle);
        $code = $this->ends[$id] ?? null;
        unset($this->ends[$id]);
        return $code;
    }

    private function poll(float $mostMs): void
    {
        curl_multi_select($this->multi, max(0.0, min($mostMs / 1000, self::LONGEST_POLL_S)));
    }

    /** Does what can be done without waiting. */
    private function turn(): void
    {
        curl_multi_exec($this->multi, $active);
        while (($info = curl_multi_info_read($this->multi)) !== false) {
            $this->ends[spl_object_id($info['handle'])] = $info['result'];
        }
        $this->endProbes();
    }

    // ---- probes ------------------------------------------------------------------

    /** It goes on while other requests or pauses do. */
    private function beginProbe(string $url): void
    {
        $this->ready();
        $talk = (new Talk($this->replicas, 0.0))->probe($url);
        $send = $talk->current();
        if (!$send instanceof Send) {
            return;
        }
        $handle = $this->handle($send, $url, self::body($send));
        curl_setopt($handle, CURLOPT_TIMEOUT_MS, (int) $send->timeoutMs);
        curl_multi_add_handle($this->multi, $handle);
        $this->probes[spl_object_id($handle)] = [
            'handle' => $handle, 'url' => $url, 'talk' => $talk,
        ];
    }

    private function endProbes(): void
    {
        foreach ($this->probes as $id => $probe) {
            if (!isset($this->ends[$id])) {
                continue;
            }
            $status = $this->ends[$id] === CURLE_OK
                ? (int) curl_getinfo($probe['handle'], CURLINFO_RESPONSE_CODE)
                : 0;
            unset($this->ends[$id], $this->probes[$id]);
            curl_multi_remove_handle($this->multi, $probe['handle']);
            $probe['talk']->send(new Answer($status, [], $probe['url']));
        }
    }
}
