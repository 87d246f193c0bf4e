<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Internal;

/** What a talk wants instead of a request: nothing, for so long. */
final class Pause
{
    public function __construct(public readonly float $ms)
    {
    }
}
