<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

// Stories of the PHP package over a redlockd at REDLOCKD_URL. Each prints a line;
// the last one says how many passed and failed.

use Redlockd\Client;
use Redlockd\Exception\LockHeld;
use Redlockd\Exception\LockLost;
use Redlockd\Exception\RequestRefused;
use Redlockd\Exception\Unavailable;
use Redlockd\Internal\Clock;
use Redlockd\Symfony\RedlockdStore;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\LockFactory;

require dirname(__DIR__, 2) . '/api/clients/php/autoload.php';
require '/usr/share/php/Psr/Log/autoload.php';
require '/usr/share/php/Symfony/Component/Lock/autoload.php';
require __DIR__ . '/Warnings.php';

function is(mixed $actual, mixed $expected, string $what = ''): void
{
    if ($actual !== $expected) {
        throw new RuntimeException("$what: " . json_encode($actual) . ', not ' . json_encode($expected));
    }
}

/** @param class-string<Throwable> $kind */
function throws(string $kind, Closure $do): Throwable
{
    try {
        $do();
    } catch (Throwable $error) {
        is(get_class($error), $kind, $error->getMessage());
        return $error;
    }
    throw new RuntimeException("no $kind");
}

$client = new Client();
$other = new Client();
$stories = [];

$stories['run returns what the work returns, and releases'] = function () use ($client, $other): void {
    $token = 0;
    is($client->lock('run')->run(function ($lock) use ($other, &$token): int {
        $token = $lock->fencingToken();
        $held = throws(LockHeld::class, fn () => $other->lock('run', waitMs: 0)->acquire());
        is($held->fencingToken, $token);
        is($other->get('run')->fencingToken, $token);
        return 7;
    }), 7);
    is($other->get('run'), null);
    $error = throws(DomainException::class, fn () => $client->lock('run')->run(
        fn () => throw new DomainException('of the work'),
    ));
    is($error->getMessage(), 'of the work');
    is($other->get('run'), null);
    is($client->lock('run')->run(fn ($lock) => $lock->fencingToken() > $token), true);
};
$stories['check renews, and remaining time rises'] = function () use ($client): void {
    $lock = $client->lock('renewed', ttlMs: 900);
    $lock->acquire();
    for ($i = 0; $i < 30; $i++) {
        usleep(60_000);
        $lock->check();
    }
    is($lock->isHeld(), true);
    $lock->release();
    is($lock->remainingMs(), 0);
};
$stories['a lock that nobody renews is lost'] = function () use ($client): void {
    $lock = $client->lock('late', ttlMs: 300);
    $lock->acquire();
    usleep(350_000);
    is($lock->isHeld(), false);
    throws(LockLost::class, fn () => $lock->check());
    throws(LockLost::class, fn () => $lock->release());
    throws(LogicException::class, fn () => $lock->release());
    throws(LockLost::class, fn () => $client->lock('late', ttlMs: 300)->run(fn () => usleep(350_000)));
};
$stories['a forced release is noticed at the next renewal'] = function () use ($client, $other): void {
    $lock = $client->lock('forced', ttlMs: 900);
    $lock->acquire();
    [$listed] = iterator_to_array($other->locks('forced'), false);
    is($other->forceRelease($listed->id, $listed->fencingToken), true);
    is($other->forceRelease($listed->id, $listed->fencingToken), false);
    usleep(400_000);
    $loss = throws(LockLost::class, fn () => $lock->check());
    is(str_contains($loss->getMessage(), 'the lock ended'), true, $loss->getMessage());
    throws(LockLost::class, fn () => $lock->release());
    throws(InvalidArgumentException::class, fn () => $other->forceRelease('forced', 'each'));
};
$stories['several, permits, readers, a downgrade'] = function () use ($client, $other): void {
    $both = $client->lock(['b', 'a'], waitMs: 0);
    $both->acquire();
    is($other->lock('a')->tryAcquire(), false);
    $both->release();
    $permits = $client->lock('pool', limit: 3, permits: 2);
    $permits->acquire();
    is(count($permits->slots()), 2);
    is($other->lock('pool', limit: 3, permits: 2)->tryAcquire(), false);
    is($other->lock('pool', limit: 3)->tryAcquire(), true); // and given back
    $permits->release();
    $lock = $client->lock('catalog');
    $reader = $other->lock('catalog', shared: true);
    $lock->acquire();
    is($reader->tryAcquire(), false);
    $lock->downgrade();
    is($lock->isShared(), true);
    $reader->acquire();
    is($client->get('catalog')->readers, 2);
    $lock->release();
    $reader->release();
};
$stories['extend asks for another TTL; what is wrong is refused'] = function () use ($client): void {
    $lock = $client->lock('longer', ttlMs: 1000);
    $lock->acquire();
    $lock->extend(20_000);
    is($lock->remainingMs() > 15_000, true);
    $refused = throws(RequestRefused::class, fn () => $lock->extend(999_999_999));
    is([$refused->status, $refused->errorCode], [400, 'invalid_request']);
    is($lock->isHeld(), true);
    $lock->release();
    foreach ([[], [['a', 'b'], 'limit' => 2], ['a', 'permits' => 2], ['a', 'limit' => 1, 'shared' => true]] as $bad) {
        throws($bad === [] ? ArgumentCountError::class : InvalidArgumentException::class, fn () => $client->lock(...$bad));
    }
    throws(LogicException::class, fn () => $client->lock('never')->fencingToken());
};
$stories['a lock that goes out of scope is released'] = function () use ($client, $other): void {
    $lock = $client->lock('scope');
    $lock->acquire();
    throws(LogicException::class, fn () => $lock->acquire());
    unset($lock);
    is($other->get('scope'), null);
};
$stories['a forked child does not hold the lock, and does not release it'] = function () use ($client, $other): void {
    $lock = $client->lock('fork');
    $lock->acquire();
    $child = pcntl_fork();
    if ($child === 0) {
        $isOurs = $lock->isHeld();
        $isSeen = $client->get('fork') !== null; // over connections of its own
        unset($lock);
        posix_kill(getmypid(), $isSeen && !$isOurs ? SIGTERM : SIGKILL);
    }
    pcntl_waitpid($child, $status);
    is(pcntl_wtermsig($status), SIGTERM);
    $lock->check();
    is($other->get('fork')->fencingToken, $lock->fencingToken());
    $lock->release();
};
$stories['SIGALRM renews it, and interrupts work whose lock is lost'] = function () use ($client, $other): void {
    throws(InvalidArgumentException::class, fn () => $client->lock('a', ttlMs: 1000, renewBySignal: true));
    $until = microtime(true) + 7;
    $client->lock('alarm', ttlMs: 5000, renewBySignal: true)->run(function () use ($until): void {
        while (microtime(true) < $until) {
            usleep(200_000); // which asks nothing
        }
    });
    is($other->get('alarm'), null);
    $lock = $client->lock('alarm', ttlMs: 5000, renewBySignal: true);
    $loss = throws(LockLost::class, fn () => $lock->run(function ($lock) use ($other): void {
        $other->forceRelease('alarm', $lock->fencingToken());
        for ($until = microtime(true) + 9; microtime(true) < $until; usleep(100_000));
        throw new RuntimeException('it was not interrupted');
    }));
    is(str_contains($loss->getMessage(), 'the lock ended'), true, $loss->getMessage());
};
$stories['a watch reports each holder'] = function () use ($client, $other): void {
    $watch = $client->watch('watched');
    is($watch->current(), null);
    $lock = $other->lock('watched', owner: 'web-3');
    $lock->acquire();
    $watch->next();
    is($watch->current()->owner, 'web-3');
    $lock->release();
    $watch->next();
    is($watch->current(), null);
};
$stories['servers that are not there'] = function (): void {
    $warnings = new Warnings();
    $nobody = new Client(['http://127.0.0.1:1', 'http://127.0.0.1:2'], timeoutMs: 500, logger: $warnings);
    $began = microtime(true);
    throws(Unavailable::class, fn () => $nobody->lock('a', waitMs: 0)->acquire());
    is(microtime(true) - $began < 5, true, 'it took long');
    is(str_contains($warnings->all[0] ?? '', 'not acquired yet'), true);
    throws(Unavailable::class, fn () => $nobody->get('a'));
    foreach (['ftp://a', 'a:1', 'http://', '', 'http://a/?b'] as $bad) {
        throws(InvalidArgumentException::class, fn () => new Client($bad === '' ? ',' : $bad));
    }
};
$stories['the time asleep counts'] = function (): void {
    $least = Clock::nowMs();
    usleep(20_000);
    is(Clock::nowMs() - $least >= 20, true);
    $uptimeMs = 1000 * (float) file_get_contents('/proc/uptime');
    is(abs(Clock::nowMs() - $uptimeMs) < 60, true, 'it is far from the uptime');
};
$stories['the clock does not run ahead if the process is stopped'] = function (): void {
    $parent = getmypid();
    $child = pcntl_fork();
    if ($child === 0) {
        for ($i = 0; $i < 8; $i++) {
            usleep(50_000);
            posix_kill($parent, SIGSTOP);
            usleep(100_000);
            posix_kill($parent, SIGCONT);
        }
        posix_kill(getmypid(), SIGKILL);
    }
    while (pcntl_waitpid($child, $status, WNOHANG) === 0) {
        for ($i = 0; $i < 100; $i++) {
            Clock::nowMs();
        }
    }
    $uptimeMs = 1000 * (float) file_get_contents('/proc/uptime');
    is(abs(Clock::nowMs() - $uptimeMs) < 60, true, 'it is far from the uptime');
};

// ---- Symfony -----------------------------------------------------------------------

$stories['Symfony: exclusive locks'] = function () use ($client, $other): void {
    $store = new RedlockdStore($client, 10);
    $factory = new LockFactory($store);
    $key = new Key('invoice');
    $lock = $factory->createLockFromKey($key, 20);
    $rival = (new LockFactory(new RedlockdStore($other)))->createLock('invoice', 20);
    is($lock->acquire(), true);
    is($rival->acquire(), false);
    is($lock->isAcquired(), true);
    is($lock->getRemainingLifetime() > 10, true);
    is($store->fencingToken($key), $other->get('invoice')->fencingToken);
    is($lock->acquire(), true, 'again, by the same key');
    $lock->refresh(5);
    is($lock->getRemainingLifetime() > 10, true, 'a shorter TTL takes nothing back');
    $lock->release();
    is($lock->isAcquired(), false);
    is($rival->acquire(), true);
    unset($rival); // which releases it
    is($other->get('invoice'), null);
};
$stories['Symfony: a key goes on in another process'] = function () use ($client, $other): void {
    $key = new Key('moved');
    (new LockFactory(new RedlockdStore($client)))->createLockFromKey($key, 20, false)->acquire();
    $there = unserialize(serialize($key));
    $lock = (new LockFactory(new RedlockdStore($other)))->createLockFromKey($there, 20);
    is($lock->isAcquired(), true);
    $lock->refresh();
    $lock->release();
    is($client->get('moved'), null);
};
$stories['Symfony: a lost lock conflicts'] = function () use ($client, $other): void {
    $lock = (new LockFactory(new RedlockdStore($client)))->createLock('lost', 20, false);
    $lock->acquire();
    $other->forceRelease('lost', $other->get('lost')->fencingToken);
    is($lock->isAcquired(), false);
    throws(LockConflictedException::class, fn () => $lock->refresh());
    $lock->release();
};
$stories['Symfony: readers, and waiting without polling'] = function () use ($client, $other): void {
    $lock = (new LockFactory(new RedlockdStore($client)))->createLock('read', 20);
    $reader = (new LockFactory(new RedlockdStore($other, waitLimit: 0.3)))->createLock('read', 20);
    is($lock->acquire(), true);
    is($reader->acquireRead(), false);
    $began = microtime(true);
    throws(LockConflictedException::class, fn () => $reader->acquire(true));
    is(abs(microtime(true) - $began - 0.3) < 0.25, true, 'the wait');
    is($lock->acquireRead(), true, 'a downgrade');
    is($reader->acquireRead(), true);
    is($reader->acquire(), false, 'an upgrade');
    $lock->release();
    $reader->release();
};

$passed = $failed = 0;
foreach ($stories as $name => $story) {
    try {
        $story();
        $passed++;
        echo "ok    $name\n";
    } catch (Throwable $error) {
        $failed++;
        echo "FAIL  $name: {$error->getMessage()} at {$error->getFile()}:{$error->getLine()}\n";
    }
}
echo "$passed passed, $failed failed\n";
exit($failed === 0 ? 0 : 1);
