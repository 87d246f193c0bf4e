<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Symfony;

use Redlockd\Client;
use Redlockd\Exception\LockHeld;
use Redlockd\Exception\LockLost;
use Redlockd\Exception\RedlockdException;
use Redlockd\Internal\Clock;
use Redlockd\Internal\Grant;
use Redlockd\Internal\Hold;
use Redlockd\Internal\Wanted;
use Symfony\Component\Lock\BlockingSharedLockStoreInterface;
use Symfony\Component\Lock\BlockingStoreInterface;
use Symfony\Component\Lock\Exception\InvalidTtlException;
use Symfony\Component\Lock\Exception\LockAcquiringException;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Exception\LockReleasingException;
use Symfony\Component\Lock\Key;

/**
 * A store for Symfony's Lock component, 5.4 or later: exclusive and shared locks,
 * blocking without polling.
 *
 * A TTL of Symfony must not be longer than the --max-ttl-ms of the servers. Nothing
 * renews a lock but refresh() of Symfony's lock. A key may be serialized, and go on
 * in another process. A shared lock cannot become an exclusive one.
 */
final class RedlockdStore implements BlockingStoreInterface, BlockingSharedLockStoreInterface
{
    /**
     * @param float $initialTtl seconds, of a lock until its first refresh()
     * @param float $waitLimit  seconds: a blocking acquire that has waited for so long fails
     */
    public function __construct(
        private readonly Client $client,
        private readonly float $initialTtl = 30.0,
        private readonly float $waitLimit = INF,
    ) {
        if ($initialTtl <= 0) {
            throw new InvalidTtlException('a TTL is longer than 0 s');
        }
    }

    /** The fencing token of a lock that this key holds. */
    public function fencingToken(Key $key): int
    {
        $hold = $this->hold($key);
        if ($hold === null) {
            throw new \LogicException("\"$key\": this key does not hold the lock");
        }
        return $hold->grant->fencingToken;
    }

    public function save(Key $key): void
    {
        $this->acquire($key, false, 0.0);
    }

    public function waitAndSave(Key $key): void
    {
        $this->acquire($key, false, $this->waitLimit);
    }

    public function saveRead(Key $key): void
    {
        $this->acquire($key, true, 0.0);
    }

    public function waitAndSaveRead(Key $key): void
    {
        $this->acquire($key, true, $this->waitLimit);
    }

    public function putOffExpiration(Key $key, float $ttl): void
    {
        if ($ttl <= 0) {
            throw new InvalidTtlException('a TTL is longer than 0 s');
        }
        $hold = $this->hold($key);
        if ($hold === null) {
            throw new LockConflictedException("\"$key\": this key does not hold the lock");
        }
        $this->extend($key, $hold, (int) round(1000 * $ttl));
    }

    public function delete(Key $key): void
    {
        $hold = $this->hold($key);
        $key->removeState(self::class);
        if ($hold === null) {
            return;
        }
        try {
            $this->client->release($hold);
        } catch (LockLost $loss) {
            if ($loss !== $hold->loss) {
                throw $loss; // of another lock, by a signal handler
            }
            // it had expired: there is nothing to release
        } catch (RedlockdException $error) {
            throw new LockReleasingException($error->getMessage(), 0, $error);
        }
    }

    public function exists(Key $key): bool
    {
        $hold = $this->hold($key);
        if ($hold === null || $hold->findLoss() !== null) {
            return false;
        }
        if ($hold->grant->isShared) {
            // who the other readers are, a server does not tell: until its expiry,
            // only a forced release takes it away
            return true;
        }
        $holder = $this->client->get((string) $key);
        return $holder !== null && $holder->fencingToken === $hold->grant->fencingToken;
    }

    // ---- keys and holds ----------------------------------------------------------

    private function acquire(Key $key, bool $shared, float $waitSeconds): void
    {
        $hold = $this->hold($key);
        if ($hold !== null && $hold->findLoss() === null) {
            $this->acquireAgain($key, $hold, $shared);
            return;
        }
        $wanted = new Wanted(
            [(string) $key],
            (int) round(1000 * $this->initialTtl),
            $waitSeconds === INF ? null : 1000 * $waitSeconds,
            shared: $shared,
        );
        $isKept = false;
        try {
            $this->client->acquire($wanted, fn (Grant $grant) => $this->keep($key, $grant));
            $isKept = true;
        } catch (LockHeld $held) {
            throw new LockConflictedException($held->getMessage(), 0, $held);
        } catch (RedlockdException $error) {
            throw new LockAcquiringException($error->getMessage(), 0, $error);
        } finally {
            if (!$isKept) {
                $key->removeState(self::class); // it was given back
            }
        }
    }

    /** By the key that has it: Symfony asks a store for that, too. */
    private function acquireAgain(Key $key, Hold $hold, bool $shared): void
    {
        if ($hold->grant->isShared && !$shared) {
            throw new LockConflictedException("\"$key\": a shared lock cannot become an exclusive one: release it first");
        }
        if ($shared && !$hold->grant->isShared) {
            $this->change($key, $hold, fn (): \Generator => $this->client->talk()->downgrade($hold));
        } else {
            $this->extend($key, $hold, $hold->grant->ttlMs);
        }
    }

    private function extend(Key $key, Hold $hold, int $ttlMs): void
    {
        $this->change($key, $hold, fn (): \Generator => $this->client->talk()->extend($hold, $ttlMs));
    }

    /** @param \Closure(): \Generator<int, \Redlockd\Internal\Send|\Redlockd\Internal\Pause, \Redlockd\Internal\Answer|null, mixed> $talk */
    private function change(Key $key, Hold $hold, \Closure $talk): void
    {
        try {
            $this->client->caller()->run($talk());
        } catch (LockLost $loss) {
            if ($loss !== $hold->loss) {
                throw $loss; // of another lock, by a signal handler
            }
            $key->removeState(self::class);
            throw new LockConflictedException($loss->getMessage(), 0, $loss);
        } catch (RedlockdException $error) {
            throw new LockAcquiringException($error->getMessage(), 0, $error);
        }
        $this->keep($key, $hold->grant);
    }

    private function keep(Key $key, Grant $grant): void
    {
        $seconds = max(0.0, $grant->workUntilMs - Clock::nowMs()) / 1000;
        $key->setState(self::class, [
            'id' => $grant->id,
            'token' => $grant->token,
            'fencing_token' => $grant->fencingToken,
            'ttl_ms' => $grant->ttlMs,
            'shared' => $grant->isShared,
            // A moment of Clock means nothing to another process or machine.
            'work_until' => microtime(true) + $seconds,
        ]);
        $key->resetLifetime();
        $key->reduceLifetime($seconds);
    }

    private function hold(Key $key): ?Hold
    {
        if (!$key->hasState(self::class)) {
            return null;
        }
        $of = $key->getState(self::class);
        $workUntilMs = Clock::nowMs() + 1000 * ($of['work_until'] - microtime(true));
        return new Hold((string) $key, new Grant(
            $of['id'],
            $of['token'],
            $of['fencing_token'],
            $of['ttl_ms'],
            $workUntilMs,
            $workUntilMs + $of['ttl_ms'] / 10,
            $workUntilMs,
            [],
            $of['shared'],
        ));
    }
}
