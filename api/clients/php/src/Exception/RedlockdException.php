<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Exception;

/** Every error of this package. */
class RedlockdException extends \RuntimeException
{
}
