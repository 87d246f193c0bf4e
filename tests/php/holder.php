<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

// Works while it holds a lock, and says when it did: see tests/go/user/holder.
//
//   holder.php RESOURCE TTL_MS [cancel MS]; the URLs are in REDLOCKD_URL

use Redlockd\Client;
use Redlockd\Exception\LockLost;

require (getenv('PACKAGE') ?: dirname(__DIR__, 2) . '/api/clients/php') . '/autoload.php';

function say(string $what, int|float $at, mixed ...$more): void
{
    echo implode(' ', [$what, $at, ...$more]), "\n";
}

/** An exception comes after so many milliseconds, from a signal handler. */
function cancelAfter(int $ms): void
{
    pcntl_async_signals(true);
    pcntl_signal(SIGUSR1, static fn () => throw new Exception('cancelled'));
    $parent = getmypid();
    if (pcntl_fork() === 0) {
        usleep(1000 * $ms);
        posix_kill($parent, SIGUSR1);
        posix_kill(getmypid(), SIGKILL);
    }
}

[, $resource, $ttlMs] = $argv;
try {
    $client = new Client(timeoutMs: 1000);
    $lock = $client->lock($resource, ttlMs: (int) $ttlMs, owner: 'holder');
    if (isset($argv[4])) {
        cancelAfter((int) $argv[4]);
    }
    $lock->acquire();
} catch (Exception $error) {
    say('not', hrtime(true), get_class($error), $error->getMessage());
    exit;
}
say('held', hrtime(true), $lock->fencingToken());
stream_set_blocking(STDIN, false);
$loss = null;
while (fgets(STDIN) !== '' && !feof(STDIN)) {
    // before the question: however long the process is stopped in between, a late
    // moment is not reported
    $at = hrtime(true);
    if ($lock->isHeld()) {
        say('ctx', $at); // work that only asks whether it is held
    }
    $at = hrtime(true);
    try {
        $lock->check();
    } catch (LockLost $loss) {
        break;
    }
    say('step', $at);
    usleep(2000);
}
say('lost', hrtime(true), $loss === null ? 'false' : 'true', $loss?->getMessage() ?? '');
try {
    $lock->release();
    say('released', hrtime(true), '<nil>');
} catch (LockLost $late) {
    say('released', hrtime(true), $late->getMessage());
}
