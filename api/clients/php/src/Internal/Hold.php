<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Internal;

use Redlockd\Exception\LockLost;

/**
 * A lock that was granted: until when, and whether it was lost. Work under it ends
 * a tenth of the TTL before its validity does.
 */
final class Hold
{
    public ?LockLost $loss = null;
    public bool $isReleased = false;
    public bool $isDone = false; // the talk of the release has ended with a loss
    public bool $wantsShared; // a downgrade has begun: from now on, each extend asks for it

    /** @param list<int> $slots of permits */
    public function __construct(
        public readonly string $name,
        public Grant $grant,
        public readonly array $slots = [],
    ) {
        $this->wantsShared = $grant->isShared;
    }

    /** A server may have made it a shared one. */
    public function isDowngrading(): bool
    {
        return $this->wantsShared && !$this->grant->isShared;
    }

    public function extended(Grant $grant): void
    {
        $this->grant = $grant->after($this->grant);
    }

    /** For work: less than until the validity ends. */
    public function remainingMs(): float
    {
        if ($this->loss !== null || $this->isReleased) {
            return 0.0;
        }
        return max(0.0, $this->grant->workUntilMs - Clock::nowMs());
    }

    public function validityMs(): float
    {
        return max(0.0, $this->grant->untilMs - Clock::nowMs());
    }

    /** Before the release. null: it is not lost. */
    public function findLoss(): ?LockLost
    {
        if ($this->loss === null && $this->remainingMs() <= 0) {
            $this->loss = $this->late();
        }
        return $this->loss;
    }

    /** By what a server said. */
    public function ended(string $text): LockLost
    {
        return $this->loss ??= new LockLost($text);
    }

    public function late(): LockLost
    {
        return new LockLost("$this->name: nothing extended the lock in time");
    }
}
