<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Exception;

/** No server granted it: this client asks too often, or holds too many locks. */
final class RateLimited extends Unavailable
{
    public function __construct(string $message, public readonly int $retryAfterMs)
    {
        parent::__construct($message);
    }
}
