<?php

// SPDX-License-Identifier: MIT
// Writes the report of a day, section by section. Each machine has this line in its
// crontab:
//   0 2 * * * php /usr/local/bin/report.php

declare(strict_types=1);

use Redlockd\Client;
use Redlockd\Exception\LockHeld;
use Redlockd\Exception\RedlockdException;
use Redlockd\Lock;

require getenv('REDLOCKD_PHP') ?: 'vendor/autoload.php';

final class StoreError extends RuntimeException
{
}

/**
 * @param array<string, mixed> $options
 * @return array{int, string} the status, and the text
 */
function ask(string $path, array $options = []): array
{
    $store = getenv('STORE') ?: 'http://127.0.0.1:8090';
    $context = stream_context_create(['http' => $options + ['ignore_errors' => true]]);
    $text = @file_get_contents($store . $path, false, $context);
    return [(int) explode(' ', $http_response_header[0] ?? 'none 0')[1], (string) $text];
}

function writeReport(Lock $lock, string $today): void
{
    // another machine may have finished before our clock reached two
    [, $day] = ask('/report/day');
    if ($day === $today) {
        return;
    }
    foreach (['orders', 'stock', 'returns', 'day'] as $section) {
        $lock->check(); // extends the lock in time; throws LockLost
        [$status] = ask("/report/$section", [
            'method' => 'PUT',
            'content' => $section === 'day' ? $today : "of $today",
            'header' => "X-Fencing-Token: {$lock->fencingToken()}",
        ]);
        if ($status !== 200) {
            throw new StoreError("the store says $status");
        }
    }
    echo "report of $today: done\n";
}

$ttlMs = (int) (1000 * (float) (getenv('LOCK_TTL_S') ?: 60));
$today = date('Y-m-d');
try {
    $lock = (new Client())->lock('report', ttlMs: $ttlMs, waitMs: 0);
    $lock->run(fn (Lock $lock) => writeReport($lock, $today));
} catch (LockHeld) {
    // another machine writes it
} catch (RedlockdException | StoreError $error) {
    fwrite(STDERR, "report of $today: not finished: {$error->getMessage()}\n"); // cron mails this
    exit(1);
}
