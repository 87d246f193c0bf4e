// SPDX-License-Identifier: MIT
package org.redlockd;

import java.lang.ref.Cleaner;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * A lock that was acquired, until it is released: for try (…), or for acquire() and release() of
 * LockRequest, which makes it. Meanwhile threads of this package extend it. Call check() right
 * before each step that cannot be undone.
 *
 * <p>A lock that is not released, and to which nothing refers any more, is no longer extended:
 * it expires. Threads may share a lock.
 */
public final class Lock implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    private final Client client;
    private final Hold hold;
    private final Keeper keeper;
    private final ReentrantLock mutex = new ReentrantLock();
    private final Cleaner.Cleanable forgotten;
    private Thread thread; // to interrupt; null: none
    private boolean hasInterrupted;
    private boolean isReleased;

    Lock(Client client, Hold hold, boolean interrupts, Consumer<LockLostException> onLoss) {
        this.client = client;
        this.hold = hold;
        thread = interrupts ? Thread.currentThread() : null;
        boolean wantsToKnow = interrupts || onLoss != null;
        Keeper kept = new Keeper(hold, client.talk, client.caller,
            wantsToKnow ? loss -> lost(loss, onLoss) : loss -> { });
        keeper = kept;
        // what the cleaner calls must not refer to this lock
        forgotten = CLEANER.register(this, kept::stop);
    }

    /** Throws LockLostException if the lock is lost, by the clock of this machine. */
    public void check() {
        LockLostException loss = holding().findLoss();
        if (loss != null) {
            throw again(loss);
        }
    }

    /** How long you may work under it; zero: it is lost, or released. Asks no server. */
    public Duration remaining() {
        return Duration.ofNanos((long) (1e6 * hold.remainingMs()));
    }

    /** Whether you may work under it. Asks no server. */
    public boolean isHeld() {
        return hold.remainingMs() > 0;
    }

    /** A storage should refuse lower ones than the highest it has seen. */
    public long fencingToken() {
        return hold.grant().fencingToken;
    }

    /** The numbers of its permits. */
    public List<Integer> slots() {
        return hold.slots;
    }

    /** Whether it is shared with other readers now. */
    public boolean isShared() {
        return hold.grant().isShared;
    }

    /** To so much from now on; later extends use this TTL, too. */
    public void extend(Duration ttl) throws InterruptedException {
        Hold held = holding();
        change(() -> client.talk.extend(held, ttl.toMillis(), client.caller));
    }

    /**
     * Makes an exclusive lock a shared one: other readers may join from now on. Stop writing before.
     */
    public void downgrade() throws InterruptedException {
        Hold held = holding();
        change(() -> {
            client.talk.downgrade(held, client.caller);
            return true;
        });
    }

    /**
     * Lets others have the lock. Throws LockLostException if it was lost before: then others may
     * have worked at the same time. If the thread is interrupted, another thread goes on, and the
     * thread stays interrupted.
     */
    public void release() {
        if (!releases()) {
            throw new IllegalStateException(hold.name + ": the lock is released already");
        }
    }

    /** release(), unless that was called already. */
    @Override public void close() {
        releases();
    }

    @Override public String toString() { // without the token, a secret
        return "Lock " + hold.name + (isHeld() ? " held" : "");
    }

    /** A loss has interrupted its thread. */
    boolean hasInterrupted() {
        mutex.lock();
        try {
            return hasInterrupted;
        } finally {
            mutex.unlock();
        }
    }

    private interface Change {
        boolean run() throws InterruptedException;
    }

    private void change(Change what) throws InterruptedException {
        try {
            what.run();
            keeper.moved();
        } catch (LockLostException e) {
            keeper.lose(e);
            throw e;
        }
    }

    private Hold holding() {
        if (hold.isReleased) {
            throw new IllegalStateException(hold.name + ": the lock is released");
        }
        return hold;
    }

    /** The stack of the thread that calls, not of the one that noticed. */
    private static LockLostException again(LockLostException loss) {
        LockLostException now = new LockLostException(loss.getMessage());
        now.initCause(loss);
        return now;
    }

    private void lost(LockLostException loss, Consumer<LockLostException> onLoss) {
        mutex.lock();
        try {
            if (thread != null) {
                hasInterrupted = true;
                thread.interrupt();
            }
        } finally {
            mutex.unlock();
        }
        if (onLoss != null) {
            Background.call(() -> onLoss.accept(loss));
        }
    }

    /** Whether it was not released before. */
    private boolean releases() {
        boolean isInterrupted;
        mutex.lock();
        try {
            if (isReleased) {
                return false;
            }
            isReleased = true;
            // or nothing could be asked any more
            isInterrupted = Thread.interrupted() && !(hasInterrupted
                && thread == Thread.currentThread());
            thread = null;
        } finally {
            mutex.unlock();
        }
        forgotten.clean(); // stops the keeper
        LockLostException loss = hold.findLoss();
        try {
            // A lost lock is released, too: of several resources, some may be locked.
            client.talk.release(hold, false, client.caller);
        } catch (InterruptedException e) {
            isInterrupted = true;
            goOn();
        } catch (LockLostException e) {
            loss = loss == null ? e : loss;
        } finally {
            if (isInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
        if (loss != null) {
            throw again(loss);
        }
        return true;
    }

    private void goOn() {
        Background.workBeforeEnd(() -> {
            try {
                client.talk.release(hold, true, client.caller);
            } catch (LockLostException e) {
                client.log.warning(e.getMessage());
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // nobody knows this thread
            }
        });
    }
}
