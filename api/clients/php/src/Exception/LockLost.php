<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Exception;

/**
 * The lock expired, or was released by force, before its holder released it.
 * What the holder did since then may have overlapped with the work of the next
 * holder.
 */
final class LockLost extends RedlockdException
{
}
