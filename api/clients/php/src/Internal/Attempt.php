<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Internal;

/**
 * One acquire. All its requests have one key: if a response with a grant was lost,
 * the next request gets the same lock.
 */
final class Attempt
{
    // proxies may cut requests after 60 s, some after 15 s
    public const LONGEST_WAIT_MS = 10000;

    private readonly string $key; // as secret as a token
    public bool $mayBeGranted = false; // by a request whose response does not say
    public bool $isOpen = false; // a request is under way
    public bool $hasEnded = false; // with an error of its own, not of a signal handler

    public function __construct(private readonly Wanted $wanted)
    {
        $this->key = bin2hex(random_bytes(16));
    }

    /**
     * @template T of \Throwable
     * @param T $error
     * @return T
     */
    public function ended(\Throwable $error): \Throwable
    {
        $this->hasEnded = true;
        return $error;
    }

    public function ask(float $timeoutMs, float $leftMs): Send
    {
        $waitMs = floor(min(max($leftMs, 0.0), (float) self::LONGEST_WAIT_MS));
        $body = $this->wanted->body();
        if ($waitMs > 0) {
            $body['wait_ms'] = (int) $waitMs;
        }
        $this->isOpen = true;
        return $this->send($body, $timeoutMs, $waitMs);
    }

    /** The same again, to find out whether it was granted. */
    public function askAgain(float $timeoutMs): Send
    {
        return $this->send(['ttl_ms' => 100] + $this->wanted->body(), $timeoutMs, 0.0);
    }

    /** @return array<string, mixed> without the key */
    public function __debugInfo(): array
    {
        return ['wanted' => $this->wanted];
    }

    /** @param array<string, mixed> $body */
    private function send(array $body, float $timeoutMs, float $waitMs): Send
    {
        return new Send('POST', '/locks', ['Idempotency-Key' => $this->key], $body, $timeoutMs, $waitMs);
    }
}
