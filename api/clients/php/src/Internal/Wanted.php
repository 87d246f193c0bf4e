<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Internal;

/** What to lock, and how. */
final class Wanted
{
    public readonly string $name;

    /**
     * @param list<string> $resources
     * @param int|null     $ttlMs     null: the server's default
     * @param float|null   $waitMs    null: without a limit
     * @param int|null     $limit     how many permits the resource has; null: it is a lock
     */
    public function __construct(
        public readonly array $resources,
        public readonly ?int $ttlMs = null,
        public readonly ?float $waitMs = null,
        public readonly ?string $owner = null,
        public readonly ?int $limit = null,
        public readonly int $permits = 1,
        public readonly bool $shared = false,
    ) {
        if ($resources === []) {
            throw new \InvalidArgumentException('name at least one resource');
        }
        if ($limit !== null && count($resources) > 1) {
            throw new \InvalidArgumentException('a limit is of one resource');
        }
        if ($limit === null && $permits !== 1) {
            throw new \InvalidArgumentException('permits need a limit');
        }
        if ($limit !== null && $shared) {
            throw new \InvalidArgumentException('a permit has one holder: it cannot be shared');
        }
        $this->name = implode(', ', $resources);
    }

    /** The same with another wait. */
    public function within(?float $waitMs): self
    {
        return new self(
            $this->resources,
            $this->ttlMs,
            $waitMs,
            $this->owner,
            $this->limit,
            $this->permits,
            $this->shared,
        );
    }

    /** @return array<string, mixed> of the request that asks for it */
    public function body(): array
    {
        $body = count($this->resources) > 1
            ? ['resources' => $this->resources]
            : ['resource' => $this->resources[0]];
        if ($this->ttlMs !== null) {
            $body['ttl_ms'] = $this->ttlMs;
        }
        if ($this->owner !== null) {
            $body['owner'] = $this->owner;
        }
        if ($this->limit !== null) {
            $body += ['limit' => $this->limit, 'permits' => $this->permits];
        }
        if ($this->shared) {
            $body['mode'] = 'shared';
        }
        return $body;
    }
}
