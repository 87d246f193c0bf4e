<?php

// SPDX-License-Identifier: MIT
// One of several processes leads, and counts the seconds of its term. When it ends or
// loses its lock, another one leads.  php leader.php NAME

declare(strict_types=1);

use Redlockd\Client;
use Redlockd\Exception\LockLost;
use Redlockd\Lock;

require getenv('REDLOCKD_PHP') ?: 'vendor/autoload.php';

final class StoreError extends RuntimeException
{
}

final class Stopped extends Exception
{
}

function write(string $path, string $text, int $fencingToken): void
{
    $store = getenv('STORE') ?: 'http://127.0.0.1:8090';
    @file_get_contents($store . $path, false, stream_context_create(['http' => [
        'method' => 'PUT',
        'content' => $text,
        'header' => "X-Fencing-Token: $fencingToken",
        'ignore_errors' => true,
    ]]));
    $status = explode(' ', $http_response_header[0] ?? 'none 0')[1];
    if ($status !== '200') {
        throw new StoreError("the store says $status");
    }
}

function lead(Lock $lock, string $owner): void
{
    echo "leads, with fencing token {$lock->fencingToken()}\n";
    for ($second = 1;; $second++) {
        $lock->check(); // extends the lock in time; throws LockLost
        write('/leader/' . $second % 10, $owner, $lock->fencingToken());
        sleep(1); // let it be shorter than a third of the TTL
    }
}

function standForElection(Client $client, string $owner): never
{
    $ttlMs = (int) (1000 * (float) (getenv('LOCK_TTL_S') ?: 10));
    while (true) {
        try {
            // without waitMs, it waits without a limit
            $lock = $client->lock('leader', ttlMs: $ttlMs, owner: $owner);
            $lock->run(fn (Lock $lock) => lead($lock, $owner));
        } catch (LockLost $loss) {
            echo "leads no more: {$loss->getMessage()}\n";
        } catch (StoreError $error) {
            echo "failed: {$error->getMessage()}\n";
            sleep(1);
        }
    }
}

pcntl_async_signals(true);
try {
    pcntl_signal(SIGTERM, fn () => throw new Stopped());
    standForElection(new Client(), $argv[1] ?? '127.0.0.1:9000');
} catch (Stopped) {
    // run() has released the lock
}
