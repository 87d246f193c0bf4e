<?php

// SPDX-License-Identifier: MIT
// What the programs of this folder share: cycles of acquire and release, counted
// as ../../load.c does. Each is called as
//
//   PROGRAM CLIENTS SECONDS WHERE…
//
// PHP has no threads: each client is a process.
declare(strict_types=1);

const TTL_S = 30;
const WARM_UP_NS = 500_000_000;

/** User and system time, of this process or of the children that it has waited for. */
function cpu_us(int $whose): int
{
    $used = getrusage($whose);
    return ($used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec']) * 1_000_000
        + $used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec'];
}

/** Of one client; cycles that end from $begin to $end count. */
function cycles(Closure $cycle, int $begin, int $end): array
{
    $found = ['us' => [], 'cycles' => 0, 'failures' => 0];
    while (($start = hrtime(true)) < $end) {
        $found['cycles']++;
        try {
            $cycle('bench:' . getmypid() . ":{$found['cycles']}");
        } catch (Exception $error) {
            if (++$found['failures'] === 1) {
                fwrite(STDERR, "{$error->getMessage()}\n");
            }
            continue;
        }
        $now = hrtime(true);
        if ($now >= $begin && $now < $end) {
            $found['us'][] = intdiv($now - $start, 1000);
        }
    }
    return $found;
}

/**
 * Lets each client do its cycles, and prints what came of them, as sample_report in
 * ../../../sample.c. $connect gets WHERE, and returns what does a cycle.
 */
function tally(Closure $connect): void
{
    global $argv;
    [$clients, $seconds, $where] = [(int) $argv[1], (float) $argv[2], array_slice($argv, 3)];
    $begin = hrtime(true) + WARM_UP_NS;
    $end = $begin + (int) ($seconds * 1e9);
    $pipes = [];
    for ($number = 0; $number < $clients; $number++) {
        [$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        if (pcntl_fork() === 0) {
            fwrite($theirs, json_encode(cycles($connect($where), $begin, $end)));
            exit;
        }
        fclose($theirs);
        $pipes[] = $ours;
    }
    // throws if a client has ended without a word
    $each = array_map(fn ($pipe) => json_decode(stream_get_contents($pipe), true,
        flags: JSON_THROW_ON_ERROR), $pipes);
    while (pcntl_wait($status) > 0);
    $us = array_merge(...array_column($each, 'us'));
    sort($us);
    $percentile = fn (int $percent): int => $us[intdiv(count($us) * $percent, 100)] ?? 0;
    printf("cycles_per_s %.0f cycles %d failures %d p50_us %d p99_us %d client_cpu_us %d\n",
        count($us) / $seconds, array_sum(array_column($each, 'cycles')),
        array_sum(array_column($each, 'failures')), $percentile(50), $percentile(99),
        cpu_us(1));
}
