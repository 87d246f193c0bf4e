// SPDX-License-Identifier: MIT
package org.redlockd;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * What to lock, and how. Client.lock() makes it; its first methods change it, and the last ones
 * acquire locks, as often as you like. Wrong values throw IllegalArgumentException.
 */
public final class LockRequest {
    /** How long an acquire that was interrupted waits until the lock is given back. */
    private static final int GIVE_BACK_MS = 2000;

    final List<String> resources;
    Long ttlMs;
    String owner;
    Integer limit;
    int permits = 1;
    boolean isShared;
    private final Client client;
    private Double waitMs;
    private boolean interrupts;
    private Consumer<LockLostException> onLoss;

    LockRequest(Client client, List<String> resources) {
        this.client = client;
        this.resources = resources;
    }

    /** Until the lock of a dead holder expires; the server's default if this is not called. */
    public LockRequest ttl(Duration ttl) {
        ttlMs = ttl.toMillis();
        return this;
    }

    /**
     * How long to wait for the lock, and for a server that works; without a limit if this is not
     * called.
     */
    public LockRequest waitAtMost(Duration wait) {
        waitMs = (double) wait.toMillis();
        return this;
    }

    /** A label, shown to clients that find the lock held. */
    public LockRequest owner(String label) {
        owner = label;
        return this;
    }

    /** As a reader, beside other readers. */
    public LockRequest shared() {
        isShared = true;
        return this;
    }

    /** At most so many permits of the resource are held at once, and so many are taken. */
    public LockRequest permits(int taken, int most) {
        permits = taken;
        limit = most;
        return this;
    }

    /**
     * A loss interrupts the thread that acquired the lock, until it is released. withLock() makes a
     * LockLostException of that.
     */
    public LockRequest interruptOnLoss() {
        interrupts = true;
        return this;
    }

    /** Called with the loss, by another thread. */
    public LockRequest onLoss(Consumer<LockLostException> action) {
        onLoss = action;
        return this;
    }

    /** Work under a lock, which returns something. */
    @FunctionalInterface
    public interface Work<T, E extends Exception> {
        T with(Lock lock) throws E, InterruptedException;
    }

    /** Work under a lock, which returns nothing. */
    @FunctionalInterface
    public interface Task<E extends Exception> {
        void with(Lock lock) throws E, InterruptedException;
    }

    /**
     * Acquires the lock, works, and releases the lock. Returns what the work returns. Throws
     * LockLostException if the lock was lost meanwhile, unless the work threw something itself.
     */
    public <T, E extends Exception> T withLock(Work<T, E> work) throws E, InterruptedException {
        Lock lock = acquire();
        try (lock) {
            return work.with(lock);
        } catch (Exception e) { // after the release
            if (e instanceof InterruptedException && lock.hasInterrupted()) {
                LockLostException loss = new LockLostException(
                    name() + ": the lock was lost, which interrupted the work");
                loss.initCause(e);
                throw loss;
            }
            throw e;
        }
    }

    /** withLock() for work that returns nothing. */
    public <E extends Exception> void runWithLock(Task<E> task) throws E, InterruptedException {
        this.<Object, E>withLock(lock -> {
            task.with(lock);
            return null;
        });
    }

    /** Throws LockHeldException if somebody else holds it until the wait has passed. */
    public Lock acquire() throws InterruptedException {
        return acquireWithin(waitMs);
    }

    /** Does not wait. Empty: somebody else holds it. */
    public Optional<Lock> tryAcquire() throws InterruptedException {
        try {
            return Optional.of(acquireWithin(0.0));
        } catch (LockHeldException e) {
            return Optional.empty();
        }
    }

    /** As java.util.concurrent knows locks: see README.md for what differs. */
    public java.util.concurrent.locks.Lock asJavaLock() {
        return new JavaLock(this);
    }

    /** Without a limit if waitMs is null. */
    Lock acquireWithin(Double waitMs) throws InterruptedException {
        Wanted wanted = new Wanted(this, waitMs);
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        Attempt attempt = new Attempt(wanted);
        boolean hasEnded = false;
        try {
            Grant grant = client.talk.acquire(wanted, attempt, client.caller);
            hasEnded = true;
            return new Lock(client, new Hold(wanted.resources, grant), interrupts, onLoss);
        } catch (RedlockdException e) {
            hasEnded = true;
            throw e;
        } finally {
            if (!hasEnded && attempt.mayBeGranted()) {
                giveBack(wanted, attempt);
            }
        }
    }

    String name() {
        return Wanted.name(resources);
    }

    /**
     * In another thread: this one is interrupted. If its request is part of a batch, that goes on
     * for the others, and its response says what there is to give back.
     */
    private void giveBack(Wanted wanted, Attempt attempt) {
        Thread thread = Background.workBeforeEnd(() -> {
            try {
                client.talk.giveBack(wanted, attempt, attempt.lastAnswer(), client.caller);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // nobody knows that thread
            }
        });
        try {
            thread.join(GIVE_BACK_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // once more: it goes on without this one
        }
    }
}
