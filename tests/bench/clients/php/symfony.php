<?php

// SPDX-License-Identifier: MIT
// Symfony's Lock: a CombinedStore over a RedisStore for each node, with phpredis.
declare(strict_types=1);

use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\CombinedStore;
use Symfony\Component\Lock\Store\RedisStore;
use Symfony\Component\Lock\Strategy\ConsensusStrategy;

require '/usr/share/php/Symfony/Component/Lock/autoload.php';
require __DIR__ . '/tally.php';

tally(function (array $nodes): Closure {
    $stores = array_map(function (string $node): RedisStore {
        [$host, $port] = explode(':', $node);
        $redis = new Redis();
        $redis->connect($host, (int) $port);
        return new RedisStore($redis);
    }, $nodes);
    $factory = new LockFactory(new CombinedStore($stores, new ConsensusStrategy()));
    return function (string $name) use ($factory): void {
        $lock = $factory->createLock($name, TTL_S);
        $lock->acquire() || throw new RuntimeException("$name: not acquired");
        $lock->release();
    };
});
