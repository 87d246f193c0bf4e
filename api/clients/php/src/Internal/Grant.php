<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Internal;

/** A lock as a response granted it. Moments are those of Clock, in milliseconds. */
final class Grant
{
    /** @param list<int> $slots of permits */
    public function __construct(
        public readonly string $id,
        public readonly string $token, // a secret
        public readonly int $fencingToken,
        public readonly int $ttlMs,
        public readonly float $renewAtMs,
        public readonly float $untilMs,
        public readonly float $workUntilMs,
        public readonly array $slots,
        public readonly bool $isShared,
    ) {
    }

    /** @return array<string, mixed> without the token */
    public function __debugInfo(): array
    {
        return ['id' => $this->id, 'fencingToken' => $this->fencingToken];
    }

    /** null: it is no grant, or was cut off, or is not from redlockd. */
    public static function read(Answer $answer): ?self
    {
        $of = $answer->body;
        if ($answer->status !== 200 && $answer->status !== 201) {
            return null;
        }
        foreach (['fencing_token', 'ttl_ms', 'elapsed_ms', 'validity_ms', 'renew_after_ms'] as $name) {
            if (!is_int($of[$name] ?? null)) {
                return null;
            }
        }
        foreach (['id', 'token'] as $name) {
            // it is sent back as it is
            if (!is_string($of[$name] ?? null) || !preg_match('/^[!-~]+$/D', $of[$name])) {
                return null;
            }
        }
        $granted = $answer->sentMs + $of['elapsed_ms'];
        $until = $granted + $of['validity_ms'];
        return new self(
            $of['id'],
            $of['token'],
            $of['fencing_token'],
            $of['ttl_ms'],
            $granted + $of['renew_after_ms'],
            $until,
            $until - $of['ttl_ms'] / 10, // a tenth of the TTL to end the work
            is_array($of['slots'] ?? null) ? array_values($of['slots']) : [],
            ($of['mode'] ?? '') === 'shared',
        );
    }

    /**
     * This grant after an extend. While a lock becomes a shared one, the response
     * of a renewal may come last, with the token from before. No response takes
     * back what an earlier one promised.
     */
    public function after(self $before): self
    {
        $isOlder = $before->isShared && !$this->isShared;
        return new self(
            $this->id,
            $isOlder ? $before->token : $this->token,
            $this->fencingToken,
            $this->ttlMs,
            $this->renewAtMs,
            max($before->untilMs, $this->untilMs),
            max($before->workUntilMs, $this->workUntilMs),
            $this->slots,
            $isOlder || $this->isShared,
        );
    }
}
