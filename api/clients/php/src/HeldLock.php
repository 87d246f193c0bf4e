<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd;

/**
 * A lock that somebody holds, as a server described it. null: not known, as for
 * locks of other libraries, and of readers.
 */
final class HeldLock
{
    /**
     * @param list<string> $resources
     * @param int|null     $remainingMs until it expires, unless it is extended
     * @param int          $waiters     clients that wait for it at the server that was asked
     * @param int          $readers     how many hold it; 0: it is exclusive
     * @param list<int>    $slots       of permits
     * @param string       $version     changes when the lock changes hands
     */
    public function __construct(
        public readonly string $id,
        public readonly array $resources,
        public readonly ?string $owner,
        public readonly ?int $fencingToken,
        public readonly ?int $remainingMs,
        public readonly int $waiters,
        public readonly int $readers,
        public readonly array $slots,
        public readonly string $version,
    ) {
    }

    /**
     * @internal
     * @param array<string, mixed> $of
     */
    public static function read(array $of): self
    {
        return new self(
            $of['id'],
            $of['resources'] ?? [$of['resource']],
            $of['owner'] ?? null,
            $of['fencing_token'] ?? null,
            $of['remaining_ms'] ?? null,
            $of['waiters'] ?? 0,
            $of['readers'] ?? 0,
            $of['slots'] ?? [],
            $of['version'] ?? '',
        );
    }
}
