<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Internal;

/**
 * The clock by which validity is measured, in milliseconds since an arbitrary
 * moment. It never steps back, and runs on while the machine sleeps, as the TTLs
 * on the nodes do.
 *
 * hrtime() stops while the machine sleeps; /proc/uptime does not, but shows only
 * hundredths of a second. So the time asleep is what the second has gained on the
 * first. Where there is no /proc/uptime, the time asleep is not noticed.
 */
final class Clock
{
    private const UPTIME = '/proc/uptime';
    private const COARSE_MS = 25.0;

    private static ?float $asleepMs = null;

    /** @var (\Closure(): float)|null for tests */
    public static ?\Closure $fake = null;

    public static function nowMs(): float
    {
        if (self::$fake !== null) {
            return (self::$fake)();
        }
        do {
            $beganMs = hrtime(true) / 1e6;
            $text = @file_get_contents(self::UPTIME);
            $awakeMs = hrtime(true) / 1e6;
            // again, if the process was stopped or a signal handler ran in between
        } while ($awakeMs - $beganMs > self::COARSE_MS / 2);
        $aheadMs = $text === false ? 0.0 : 1000 * (float) $text - $awakeMs;
        if (self::$asleepMs === null || $aheadMs > self::$asleepMs + self::COARSE_MS) {
            self::$asleepMs = $aheadMs;
        }
        return $awakeMs + self::$asleepMs;
    }

    /** A random time. */
    public static function betweenMs(float $leastMs, float $mostMs): float
    {
        return $leastMs + ($mostMs - $leastMs) * random_int(0, 1 << 30) / (1 << 30);
    }
}
