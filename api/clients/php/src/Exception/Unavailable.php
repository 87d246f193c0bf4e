<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Exception;

/**
 * No server granted or refused the lock until the wait had passed. If a response
 * was lost, the lock may be held until its TTL ends.
 */
class Unavailable extends RedlockdException
{
}
