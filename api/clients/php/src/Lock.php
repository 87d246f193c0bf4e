<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd;

use Redlockd\Exception\LockHeld;
use Redlockd\Exception\LockLost;
use Redlockd\Exception\RedlockdException;
use Redlockd\Internal\Alarm;
use Redlockd\Internal\Caller;
use Redlockd\Internal\Clock;
use Redlockd\Internal\Grant;
use Redlockd\Internal\Hold;
use Redlockd\Internal\Pause;
use Redlockd\Internal\Wanted;

/**
 * A lock for run(), which keeps it until the work is done; or for acquire() and
 * release().
 *
 * PHP has no threads, so nothing renews the lock while your code runs: call check()
 * between the steps of the work, at least once in each third of the TTL. It renews
 * the lock in time, and throws LockLost if it is lost. Or let SIGALRM renew it
 * ($renewBySignal, with ext-pcntl in a program of the command line): then LockLost
 * is thrown in the midst of the work.
 *
 * A lock that goes out of scope, also at the end of a request or script, is
 * released. The same object may be used again.
 */
final class Lock
{
    private const SHORTEST_TTL_MS = 5000; // for alarms, which count whole seconds

    private ?Hold $hold = null;
    private int $process = 0;
    /** @var \Generator<int, Internal\Send|Pause, Internal\Answer|null, bool>|null a renewal that has begun */
    private ?\Generator $renewal = null;
    private float $resumeAtMs = 0.0; // after a pause of the renewal
    private bool $isRenewing = false; // a signal handler may have come in between
    private bool $isLast = false; // it cannot be extended any more

    /** @internal Client::lock() makes locks */
    public function __construct(
        private readonly Client $client,
        private readonly Wanted $wanted,
        private readonly bool $renewBySignal,
    ) {
        if ($renewBySignal && !function_exists('pcntl_alarm')) {
            throw new \InvalidArgumentException('renewBySignal needs ext-pcntl');
        }
        if ($renewBySignal && ($wanted->ttlMs ?? self::SHORTEST_TTL_MS) < self::SHORTEST_TTL_MS) {
            throw new \InvalidArgumentException('renewBySignal needs a TTL of at least 5,000 ms');
        }
    }

    public function __destruct()
    {
        if ($this->ownHold() === null) {
            return;
        }
        try {
            $this->release();
        } catch (\Throwable $error) {
            $this->client->logger()?->warning($error->getMessage());
        }
    }

    /**
     * Acquires the lock, does the work, and releases the lock. Returns what the
     * work returns. Throws LockLost if the lock was lost meanwhile, unless the work
     * threw something itself.
     *
     * @template T
     * @param callable(self): T $work
     * @return T
     * @throws LockHeld
     * @throws LockLost
     * @throws RedlockdException
     */
    public function run(callable $work): mixed
    {
        $this->acquire();
        try {
            $result = $work($this);
        } catch (\Throwable $error) {
            try {
                $this->release();
            } catch (\Throwable $later) {
                $this->client->logger()?->warning($later->getMessage());
            }
            throw $error;
        }
        $this->release();
        return $result;
    }

    /**
     * Throws LockHeld if somebody else holds it until the wait has passed. If it is
     * interrupted by an exception of a signal handler, the lock is given back.
     *
     * @throws LockHeld
     * @throws RedlockdException
     */
    public function acquire(): void
    {
        $this->acquireAs($this->wanted);
    }

    /**
     * Whether it was acquired, without a wait; false: somebody else holds it.
     *
     * @throws RedlockdException
     */
    public function tryAcquire(): bool
    {
        try {
            $this->acquireAs($this->wanted->within(0.0));
        } catch (LockHeld) {
            return false;
        }
        return true;
    }

    private function acquireAs(Wanted $wanted): void
    {
        if ($this->ownHold() !== null) {
            throw new \LogicException("$wanted->name: this object holds the lock already");
        }
        try {
            $this->client->acquire($wanted, function (Grant $grant) use ($wanted): void {
                $this->process = (int) getmypid();
                $this->hold = new Hold($wanted->name, $grant, $grant->slots);
            });
        } catch (\Throwable $error) {
            $this->hold = null; // it was given back
            throw $error;
        }
        $this->renewal = null;
        $this->isLast = $this->isRenewing = false;
        if ($this->renewBySignal) {
            Alarm::add($this);
        }
    }

    /**
     * Renews the lock if it is time, and throws if it is lost. Call it between the
     * steps of the work, and right before each step that cannot be undone.
     *
     * @throws LockLost
     */
    public function check(): void
    {
        $hold = $this->holding();
        $this->renew($this->client->caller());
        $loss = $hold->findLoss();
        if ($loss !== null) {
            throw $loss;
        }
    }

    /** How long you may work under it, in milliseconds; 0: it is lost, or not held. Asks no server. */
    public function remainingMs(): int
    {
        return (int) ($this->ownHold()?->remainingMs() ?? 0);
    }

    /** Whether this object holds it. Asks no server. */
    public function isHeld(): bool
    {
        return $this->remainingMs() > 0;
    }

    /** A storage should refuse lower ones than the highest it has seen. */
    public function fencingToken(): int
    {
        return $this->holding()->grant->fencingToken;
    }

    /** @return list<int> the numbers of its permits */
    public function slots(): array
    {
        return $this->holding()->slots;
    }

    /** Whether it is shared with other readers now. */
    public function isShared(): bool
    {
        return $this->holding()->grant->isShared;
    }

    /**
     * Extends it to so many milliseconds from now on, which is its TTL then.
     *
     * @throws LockLost
     * @throws RedlockdException
     */
    public function extend(int $ttlMs): void
    {
        $hold = $this->holding();
        $this->change(fn (): \Generator => $this->client->talk()->extend($hold, $ttlMs));
    }

    /**
     * Makes an exclusive lock a shared one: other readers may join from now on.
     *
     * @throws LockLost
     * @throws RedlockdException
     */
    public function downgrade(): void
    {
        $hold = $this->holding();
        $this->change(fn (): \Generator => $this->client->talk()->downgrade($hold));
    }

    /**
     * Lets others have the lock. Throws LockLost if it was lost before: then others
     * may have worked at the same time.
     *
     * @throws LockLost
     */
    public function release(): void
    {
        $hold = $this->holding();
        Alarm::remove($this);
        $loss = $hold->findLoss();
        $this->hold = $this->renewal = null;
        try {
            // A lost lock is released, too: of several resources, some may be locked.
            $this->client->release($hold);
        } catch (LockLost $late) {
            throw $hold->isDone ? $loss ?? $late : $late;
        }
        if ($loss !== null) {
            throw $loss;
        }
    }

    // ---- renewals ----------------------------------------------------------------

    /** @internal Goes on with a renewal, if it is time. A loss is left in the hold. */
    public function renew(Caller $caller): void
    {
        $hold = $this->ownHold();
        if ($hold === null || $this->isRenewing) {
            return;
        }
        $this->isRenewing = true;
        try {
            $this->renewStep($hold, $caller);
        } catch (LockLost $loss) {
            if ($loss !== $hold->loss) {
                throw $loss; // of another lock, by a signal handler
            }
        } finally {
            $this->isRenewing = false;
            if ($this->renewal?->valid() === false) {
                $this->renewal = null; // an exception has ended it: the next one begins anew
            }
        }
    }

    private function renewStep(Hold $hold, Caller $caller): void
    {
        if ($this->isLast || $hold->loss !== null) {
            return;
        }
        if ($this->renewal === null) {
            if (Clock::nowMs() < $hold->grant->renewAtMs) {
                return;
            }
            $this->renewal = $this->client->talk()->extend($hold);
            $this->resumeAtMs = 0.0;
        }
        while ($this->renewal->valid()) {
            $step = $this->renewal->current();
            if ($step instanceof Pause) {
                // the work goes on meanwhile
                if ($this->resumeAtMs === 0.0) {
                    $this->resumeAtMs = Clock::nowMs() + $step->ms;
                }
                if (Clock::nowMs() < $this->resumeAtMs) {
                    return;
                }
                $this->resumeAtMs = 0.0;
                $this->renewal->send(null);
            } else {
                $this->renewal->send($caller->send($step));
            }
        }
        $this->isLast = !$this->renewal->getReturn();
        $this->renewal = null;
    }

    /** @internal When renew() has something to do, or the loss is to be noticed. INF: never. */
    public function nextMs(): float
    {
        $hold = $this->ownHold();
        if ($hold === null || $hold->loss !== null) {
            return INF;
        }
        $workUntil = $hold->grant->workUntilMs;
        if ($this->isLast) {
            return $workUntil;
        }
        return min($workUntil, $this->renewal !== null ? $this->resumeAtMs : $hold->grant->renewAtMs);
    }

    /** @internal */
    public function loss(): ?LockLost
    {
        return $this->ownHold()?->findLoss();
    }

    /** @internal */
    public function client(): Client
    {
        return $this->client;
    }

    /** @param \Closure(): \Generator<int, Internal\Send|Pause, Internal\Answer|null, mixed> $talk */
    private function change(\Closure $talk): void
    {
        $this->client->caller()->run($talk());
        $this->renewal = null; // what it would have done is done
        $this->isLast = false;
    }

    private function holding(): Hold
    {
        return $this->ownHold()
            ?? throw new \LogicException("{$this->wanted->name}: this object does not hold the lock: acquire it first");
    }

    /** A forked child does not hold what its parent holds. */
    private function ownHold(): ?Hold
    {
        return $this->process === getmypid() ? $this->hold : null;
    }
}
