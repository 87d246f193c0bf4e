<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Exception;

/** Somebody else held the lock until the wait had passed. */
final class LockHeld extends RedlockdException
{
    /** @param string|null $owner        the label of the holder, if it has one
     *  @param int|null    $fencingToken of the holder; null: not known
     *  @param int|null    $readers      how many readers hold it; null: none
     *  @param int|null    $remainingMs  until it expires, unless it is extended */
    public function __construct(
        string $message,
        public readonly ?string $owner = null,
        public readonly ?int $fencingToken = null,
        public readonly ?int $readers = null,
        public readonly ?int $remainingMs = null,
    ) {
        parent::__construct($message);
    }
}
