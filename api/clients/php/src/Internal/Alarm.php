<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Internal;

use Redlockd\Lock;

/** Renews locks when SIGALRM comes, in programs that have ext-pcntl. */
final class Alarm
{
    /** @var array<int, \WeakReference<Lock>> */
    private static array $locks = [];
    private static int $process = 0;

    public static function add(Lock $lock): void
    {
        if (self::$process !== getmypid()) {
            self::$process = (int) getmypid();
            self::$locks = []; // of a forked child: they are the parent's
            pcntl_async_signals(true);
            pcntl_signal(SIGALRM, self::ring(...));
        }
        self::$locks[spl_object_id($lock)] = \WeakReference::create($lock);
        self::set();
    }

    public static function remove(Lock $lock): void
    {
        if (isset(self::$locks[spl_object_id($lock)])) {
            unset(self::$locks[spl_object_id($lock)]);
            self::set();
        }
    }

    private static function ring(): void
    {
        $lost = null;
        try {
            foreach (self::$locks as $id => $reference) {
                $lock = $reference->get();
                if ($lock !== null && $lock->nextMs() <= Clock::nowMs() + 500) {
                    $lock->renew($lock->client()->background());
                }
                $loss = $lock?->loss();
                if ($lock === null || $loss !== null) {
                    unset(self::$locks[$id]);
                    $lost ??= $loss;
                }
            }
        } finally {
            self::set(); // also if a logger threw: the next signal goes on
        }
        if ($lost !== null) {
            throw $lost;
        }
    }

    private static function set(): void
    {
        $next = INF;
        foreach (self::$locks as $reference) {
            $next = min($next, $reference->get()?->nextMs() ?? INF);
        }
        // 0: no alarm any more
        pcntl_alarm($next === INF ? 0 : max(1, (int) floor(($next - Clock::nowMs()) / 1000)));
    }
}
