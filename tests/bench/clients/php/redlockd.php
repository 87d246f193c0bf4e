<?php

// SPDX-License-Identifier: MIT
// run() of our package. PACKAGE names its folder.
declare(strict_types=1);

require getenv('PACKAGE') . '/autoload.php';
require __DIR__ . '/tally.php';

tally(function (array $urls): Closure {
    $client = new Redlockd\Client($urls);
    return fn (string $name) => $client->lock($name, ttlMs: TTL_S * 1000)->run(fn () => null);
});
