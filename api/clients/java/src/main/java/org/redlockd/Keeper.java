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

    private final Hold hold;
    private final Talk talk;
    private final Step.Performer steps;
    private final Consumer<LockLostException> onLoss;
    private final ReentrantLock mutex = new ReentrantLock();
    private Background.Timer timer;
    private boolean isRenewing;
    private boolean isLast; // it cannot be extended any more
    private volatile boolean isStopped;

    /** onLoss: called once, by a thread that must not wait. */
    Keeper(Hold hold, Talk talk, Step.Performer steps, Consumer<LockLostException> onLoss) {
        this.hold = hold;
        this.talk = talk;
        this.steps = steps;
        this.onLoss = onLoss;
        change(() -> { });
    }

    /** From now on the lock cannot be lost. */
    void stop() {
        change(() -> isStopped = true);
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
                Background.work(this::renew);
                isRenewing = true;
            }
        });
    }

    private void renew() {
        try {
            boolean isExtended = talk.extend(hold, null, step -> {
                if (isStopped) {
                    throw new Stopped();
                }
                return steps.perform(step);
            });
            change(() -> {
                isRenewing = false;
                isLast = !isExtended;
            });
        } catch (LockLostException e) {
            lose(e);
        } catch (Stopped e) {
            // nobody wants it any more
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // nobody does that to a worker
        }
    }
}
