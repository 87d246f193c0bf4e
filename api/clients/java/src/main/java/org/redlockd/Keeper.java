// SPDX-License-Identifier: MIT
package org.redlockd;

import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * Extends a lock while it is held, and notices when it is lost: also while a server takes its time.
 */
final class Keeper {
    /** The lock was released while it was extended. */
    private static final class Stopped extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    private static final double LATER_MS = 50;

    private final Hold hold;
    private final Talk talk;
    private final Caller caller;
    private final Consumer<LockLostException> onLoss;
    private final ReentrantLock mutex = new ReentrantLock();
    private Background.Timer timer;
    private Coalescer.Operation renewal; // whose response is not there yet; null: none
    private boolean isRenewing;
    private boolean isLast; // it cannot be extended any more
    private volatile boolean isStopped;

    /** onLoss: called once, by a thread that must not wait. */
    Keeper(Hold hold, Talk talk, Caller caller, Consumer<LockLostException> onLoss) {
        this.hold = hold;
        this.talk = talk;
        this.caller = caller;
        this.onLoss = onLoss;
        change(() -> { });
    }

    /** From now on the lock cannot be lost. */
    void stop() {
        change(() -> {
            isStopped = true;
            if (renewal != null) {
                caller.takeOut(renewal); // it would be sent before the release
            }
        });
    }

    /** After an extend that was asked for. */
    void moved() {
        change(() -> isLast = false);
    }

    void lose(LockLostException loss) {
        mutex.lock();
        try {
            if (isStopped) {
                return;
            }
            isStopped = true;
            timer.cancel();
            hold.lose(loss);
        } finally {
            mutex.unlock();
        }
        onLoss.accept(hold.findLoss());
    }

    private void change(Runnable what) {
        mutex.lock();
        try {
            what.run();
        } finally {
            schedule(); // also if there is no memory for a thread: a loss must be noticed
            mutex.unlock();
        }
    }

    /** With the mutex. */
    private void schedule() {
        if (timer != null) {
            timer.cancel();
        }
        if (!isStopped) {
            Grant grant = hold.grant();
            timer = Background.at(isRenewing || isLast ? grant.workUntilMs
                : Math.min(grant.renewAtMs, grant.workUntilMs), this::wake);
        }
    }

    private void wake() {
        LockLostException loss = hold.findLoss();
        if (loss != null) {
            lose(loss);
            return;
        }
        change(() -> {
            if (!isStopped && !isRenewing && !isLast
                && Clock.nowMs() >= hold.grant().renewAtMs) {
                begin();
            }
        });
    }

    /** With the mutex: requests the first extend, with those of other locks that are due. */
    private void begin() {
        Step.Send first = talk.renewal(hold);
        renewal = new Coalescer.Operation(first);
        caller.performSoon(renewal);
        isRenewing = true;
        renewal.response.thenAccept(came -> {
            try {
                if (Grant.read(came) != null) { // it waits for nothing: not for a worker, either
                    renew(first, came);
                } else {
                    Background.work(() -> renew(first, came));
                }
            } catch (RuntimeException | Error e) { // no thread can be made
                tryLater();
            }
        });
    }

    private void renew(Step.Send first, Answer came) {
        boolean isDecided = false;
        try {
            boolean isExtended = talk.renew(hold, first, came, step -> {
                if (isStopped) {
                    throw new Stopped();
                }
                return caller.perform(step);
            });
            change(() -> {
                isRenewing = false;
                isLast = !isExtended;
            });
            isDecided = true;
        } catch (LockLostException e) {
            isDecided = true;
            lose(e);
        } catch (Stopped e) {
            isDecided = true; // nobody wants it any more
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // nobody does that to a worker
        } finally {
            if (!isDecided) {
                tryLater();
            }
        }
    }

    /** Whatever has ended a renewal: the next one is not forgotten. */
    private void tryLater() {
        Background.at(Clock.nowMs() + LATER_MS, () -> change(() -> isRenewing = false));
    }
}
