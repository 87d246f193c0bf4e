<?php

// SPDX-License-Identifier: MIT
// Ships the orders that are not shipped yet. Start as many workers as you like, on any
// machines; SIGTERM ends a worker when it has finished its order.

declare(strict_types=1);

use Redlockd\Client;
use Redlockd\Exception\LockHeld;
use Redlockd\Exception\LockLost;
use Redlockd\Exception\Unavailable;
use Redlockd\Lock;

require getenv('REDLOCKD_PHP') ?: 'vendor/autoload.php';

const STATES = ['new', 'picked', 'packed', 'shipped'];

final class StoreError extends RuntimeException
{
}

/** @param array<string, mixed> $options */
function ask(string $path, array $options = []): string
{
    $store = getenv('STORE') ?: 'http://127.0.0.1:8090';
    $context = stream_context_create(['http' => $options + ['ignore_errors' => true]]);
    $text = @file_get_contents($store . $path, false, $context);
    $status = (int) explode(' ', $http_response_header[0] ?? 'none 0')[1];
    if ($status !== 200) {
        throw new StoreError("the store says $status");
    }
    return $text;
}

function work(string $order, Lock $lock): void
{
    // the list may be stale: another worker may have shipped the order meanwhile
    $done = array_search(ask("/orders/$order"), STATES, true);
    foreach (array_slice(STATES, $done + 1) as $state) {
        $lock->check(); // extends the lock in time; throws LockLost
        ask("/orders/$order", [
            'method' => 'PUT',
            'content' => $state,
            'header' => "X-Fencing-Token: {$lock->fencingToken()}",
        ]);
        echo "$order $state\n";
    }
}

function tryOrder(string $order, Client $client): void
{
    $ttlMs = (int) (1000 * (float) (getenv('LOCK_TTL_S') ?: 10));
    try {
        $lock = $client->lock("order:$order", ttlMs: $ttlMs, waitMs: 0);
        $lock->run(fn (Lock $lock) => work($order, $lock));
    } catch (LockHeld) {
        // another worker has the order: try the next one
    } catch (LockLost | StoreError $error) {
        // the order stays in the list: the next holder of its lock continues
        echo "$order given up: {$error->getMessage()}\n";
    }
}

$isOver = false;
pcntl_async_signals(true);
pcntl_signal(SIGTERM, function () use (&$isOver): void {
    $isOver = true;
});
$client = new Client();
while (!$isOver) {
    try {
        foreach (explode("\n", trim(ask('/orders/'))) as $line) {
            [$order, $state] = explode(' ', "$line ");
            if ($order !== '' && $state !== 'shipped' && !$isOver) {
                tryOrder($order, $client);
            }
        }
    } catch (Unavailable | StoreError $error) {
        echo "store or lock service failed: {$error->getMessage()}\n";
    }
    sleep($isOver ? 0 : 1); // a signal ends it early
}
