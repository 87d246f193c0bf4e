<?php

// SPDX-License-Identifier: MIT
// POST /orders/<id>/ship ships an order; two requests never work on the same order
// at once.  php web.php [PORT]

declare(strict_types=1);

use Redlockd\Client;
use Redlockd\Exception\LockHeld;
use Redlockd\Exception\LockLost;
use Redlockd\Exception\Unavailable;
use Redlockd\Lock;

if (PHP_SAPI === 'cli') { // PHP's own server runs this file again, for each request
    $arguments = ['-S', '127.0.0.1:' . ($argv[1] ?? '8091'), __FILE__];
    pcntl_exec(PHP_BINARY, $arguments, ['PHP_CLI_SERVER_WORKERS' => '4'] + getenv());
}
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
        throw new StoreError("the store says $status", $status);
    }
    return $text;
}

function ship(string $order): void
{
    $ttlMs = (int) (1000 * (float) (getenv('LOCK_TTL_S') ?: 10));
    $lock = (new Client())->lock("order:$order", ttlMs: $ttlMs, waitMs: 2_000);
    $lock->run(function (Lock $lock) use ($order): void {
        // an earlier holder may have done some steps: read the state under the lock
        $done = array_search(ask("/orders/$order"), STATES, true);
        foreach (array_slice(STATES, $done + 1) as $state) {
            $lock->check(); // extends the lock in time; throws LockLost
            ask("/orders/$order", [
                'method' => 'PUT',
                'content' => $state,
                'header' => "X-Fencing-Token: {$lock->fencingToken()}",
            ]);
        }
    });
}

function answer(int $status, string $text): void
{
    http_response_code($status);
    if ($status === 409 || $status === 503) {
        header('Retry-After: 1');
    }
    echo $text, "\n";
}

try {
    ship(explode('/', $_SERVER['REQUEST_URI'])[2]);
    answer(200, 'shipped');
} catch (LockHeld) {
    answer(409, 'another request ships it');
} catch (LockLost) { // some steps may be done: the next request continues
    answer(503, 'not finished, try again');
} catch (Unavailable) { // nothing was done
    answer(503, 'no lock service, try again');
} catch (StoreError $error) { // 409: a later holder has written
    answer($error->getCode() === 404 ? 404 : 503, $error->getMessage());
}
