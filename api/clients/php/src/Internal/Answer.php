<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Internal;

/** What a request came to: a response, or that there is none. */
final class Answer
{
    public const ENDED = ['lock_not_found', 'not_owner'];
    public const MAX_HOLD = 'max_hold_reached';
    // codes of this package, where there is no response
    public const LOST = 'no_response';
    public const UNSENT = 'unsent';
    public const UNTRUSTED = 'untrusted';

    private const HELD = ['lock_held', 'too_many_readers'];

    public readonly string $code;

    /**
     * @param int                  $status     0: there is no response
     * @param array<string, mixed> $body
     * @param string               $url        of the replica that was asked
     * @param float                $sentMs     the moment before the request was sent
     * @param bool                 $isRepeated the request may have arrived twice, as a kept
     *                                         connection had ended before the response
     */
    public function __construct(
        public readonly int $status,
        public readonly array $body,
        public readonly string $url = '',
        public readonly float $sentMs = 0.0,
        public readonly string $contentType = '',
        public readonly bool $isRepeated = false,
    ) {
        $code = $body['code'] ?? '';
        $this->code = is_string($code) ? $code : '';
    }

    public static function failure(
        string $code,
        string $detail,
        string $url,
        float $sentMs,
        bool $isRepeated = false,
    ): self {
        return new self(0, ['code' => $code, 'detail' => $detail], $url, $sentMs, '', $isRepeated);
    }

    /** The same, after another one: to a request that may have been carried out before. */
    public function after(self $other): self
    {
        return $this->isRepeated || !$other->isRepeated ? $this : new self(
            $this->status,
            $this->body,
            $this->url,
            $this->sentMs,
            $this->contentType,
            true,
        );
    }

    /** The content may be no JSON: a proxy may have answered. */
    public static function read(
        int $status,
        string $content,
        string $retryAfter,
        string $url,
        float $sentMs,
        string $contentType = '',
        bool $isRepeated = false,
    ): self {
        $body = json_decode($content, true);
        if (!is_array($body) || ($body !== [] && array_is_list($body))) {
            $body = [];
        }
        if (!isset($body['retry_after_ms']) && preg_match('/^\d{1,9}$/D', $retryAfter)) {
            $body['retry_after_ms'] = 1000 * (int) $retryAfter;
        }
        return new self($status, $body, $url, $sentMs, $contentType, $isRepeated);
    }

    /** Whether the request is wrong, here and at every other replica. */
    public function isFinal(): bool
    {
        return $this->status >= 300 && $this->status < 500
            && $this->status !== 408 && $this->status !== 429;
    }

    /** By redlockd or by a gateway in front. Another replica may know other identities. */
    public function isDenial(): bool
    {
        return $this->status === 401 || $this->status === 403 || $this->code === self::UNTRUSTED;
    }

    public function isLimit(): bool
    {
        return $this->status === 429;
    }

    /** Whether the server that gave it works. */
    public function isGood(): bool
    {
        return $this->status >= 200 && $this->status < 500 && $this->status !== 408
            && !$this->isLimit() && !$this->isDenial();
    }

    /** Whether others hold the lock, and it can be waited for. */
    public function isHeld(): bool
    {
        return in_array($this->code, self::HELD, true);
    }

    public function isEnded(): bool
    {
        return in_array($this->code, self::ENDED, true);
    }

    /** Whether an acquire with this response certainly was not granted. */
    public function grantsNothing(): bool
    {
        return !$this->isRepeated
            && ($this->isFinal() || $this->isDenial() || $this->isLimit() || $this->code === self::UNSENT);
    }

    /** Whether it is what was asked for, and no page of a proxy. */
    public function has(string $member): bool
    {
        return $this->status === 200 && array_key_exists($member, $this->body);
    }

    public function retryAfterMs(): float
    {
        $afterMs = $this->body['retry_after_ms'] ?? 0;
        return is_int($afterMs) || is_float($afterMs) ? max(0.0, (float) $afterMs) : 0.0;
    }

    /** Whether something else than redlockd has refused it, whose problems have a code. */
    public function isFromElsewhere(): bool
    {
        return $this->status >= 300 && $this->code === '';
    }

    public function text(): string
    {
        $detail = $this->body['detail'] ?? '';
        if ($this->isFromElsewhere()) {
            $kind = preg_replace('/[^ -~]/', '?', substr($this->contentType, 0, 80));
            $detail = 'not from redlockd (' . ($kind ?: 'no Content-Type') . ')';
        }
        $status = $this->status ? "$this->status " : '';
        return rtrim($status . (is_string($detail) ? $detail : ''));
    }
}
