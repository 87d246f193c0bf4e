// SPDX-License-Identifier: MIT
package org.redlockd;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A lock of redlockd as java.util.concurrent.locks.Lock. The threads that share this object exclude
 * each other by a ReentrantLock; the one that has it asks redlockd.
 */
final class JavaLock implements java.util.concurrent.locks.Lock {
    private final LockRequest request;
    private final ReentrantLock local = new ReentrantLock();
    private Lock lock; // of the thread that has `local`

    JavaLock(LockRequest request) {
        this.request = request;
    }

    private interface Acquire {
        boolean run() throws InterruptedException;
    }

    /** With `local`, which is unlocked again unless the lock is held then. */
    private boolean enter(Acquire acquire) throws InterruptedException {
        boolean isHeld = false;
        try {
            if (local.getHoldCount() > 1) {
                lock.check();
                isHeld = true;
            } else {
                isHeld = acquire.run();
            }
        } finally {
            if (!isHeld) {
                local.unlock();
            }
        }
        return isHeld;
    }

    private boolean acquire(Double waitMs) throws InterruptedException {
        lock = request.acquireWithin(waitMs);
        return true;
    }

    @Override public void lock() {
        boolean isInterrupted = false;
        try {
            while (true) {
                local.lock();
                try {
                    enter(() -> acquire(null));
                    return;
                } catch (InterruptedException e) {
                    isInterrupted = true; // the lock was given back: from the beginning
                }
            }
        } finally {
            if (isInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    @Override public void lockInterruptibly() throws InterruptedException {
        local.lockInterruptibly();
        enter(() -> acquire(null));
    }

    /** Asks the servers once; if the thread is interrupted, so is the question. */
    @Override public boolean tryLock() {
        try {
            return tryLock(0, TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    @Override public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
        double untilMs = Clock.nowMs() + unit.toNanos(time) / 1e6;
        if (!local.tryLock(time, unit)) {
            return false;
        }
        try {
            return enter(() -> acquire(Math.max(0, untilMs - Clock.nowMs())));
        } catch (LockHeldException e) {
            return false;
        }
    }

    /** Throws LockLostException if the lock was lost before. */
    @Override public void unlock() {
        if (!local.isHeldByCurrentThread()) {
            throw new IllegalMonitorStateException(request.name()
                + ": this thread does not hold the lock");
        }
        try {
            if (local.getHoldCount() == 1) {
                lock.release();
            }
        } finally {
            local.unlock();
        }
    }

    @Override public Condition newCondition() {
        throw new UnsupportedOperationException("redlockd has no conditions");
    }

    @Override public String toString() {
        return "JavaLock " + request.name();
    }
}
