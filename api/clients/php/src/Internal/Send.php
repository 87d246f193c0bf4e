<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Internal;

/** A request that a talk wants to be sent. */
final class Send
{
    /**
     * @param array<string, string>     $headers
     * @param array<string, mixed>|null $body
     * @param float                     $timeoutMs for the connection, and for the response
     * @param float                     $waitMs    how much later the response may come: the server waits
     * @param string                    $url       of the replica; '': of the first that is not avoided
     */
    public function __construct(
        public readonly string $method,
        public readonly string $path,
        public readonly array $headers,
        public readonly ?array $body,
        public readonly float $timeoutMs,
        public readonly float $waitMs = 0.0,
        public readonly string $url = '',
    ) {
    }
}
