// SPDX-License-Identifier: MIT
package org.redlockd;

import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The threads of this package: one that watches the time, and workers for what waits, such as
 * renewals. They are daemons, and end with the program.
 */
final class Background {
    private static final int MOST_WORKERS = 256;
    private static final int IDLE_S = 10;
    private static final int PATIENCE_MS = 50; // until a worker may be free

    private static final ScheduledThreadPoolExecutor TIMERS =
        new ScheduledThreadPoolExecutor(1, daemons("redlockd timers"));
    private static final ThreadPoolExecutor WORKERS = new ThreadPoolExecutor(0, MOST_WORKERS,
        IDLE_S, TimeUnit.SECONDS, new SynchronousQueue<>(), daemons("redlockd worker"),
        (task, workers) -> TIMERS.schedule(() -> workers.execute(task), PATIENCE_MS,
            TimeUnit.MILLISECONDS));

    static {
        TIMERS.setRemoveOnCancelPolicy(true);
    }

    private Background() {
    }

    /** An action that may be cancelled. */
    static final class Timer implements Runnable {
        private final double atMs;
        private final Runnable action;
        private volatile boolean isCancelled;
        private volatile Future<?> next;

        private Timer(double atMs, Runnable action) {
            this.atMs = atMs;
            this.action = action;
            schedule();
        }

        private void schedule() {
            // the executor's clock stops while the machine sleeps
            double delayMs = Math.min(atMs - Clock.nowMs(), Clock.LONGEST_SLEEP_MS);
            next = TIMERS.schedule(this, (long) Math.ceil(1000 * delayMs), TimeUnit.MICROSECONDS);
        }

        @Override public void run() {
            if (isCancelled) {
                return;
            }
            if (Clock.nowMs() >= atMs) {
                action.run();
            } else {
                schedule();
            }
        }

        /** The action does not begin from now on, but may be under way. */
        void cancel() {
            isCancelled = true;
            next.cancel(false);
        }
    }

    /** Calls the action at this moment of Clock. It must not wait. */
    static Timer at(double momentMs, Runnable action) {
        return new Timer(momentMs, action);
    }

    /** Calls the action in a worker, soon. */
    static void work(Runnable action) {
        WORKERS.execute(action);
    }

    /** Calls an action of the program, at once: all workers may be busy with renewals that fail. */
    static void call(Runnable action) {
        daemons("redlockd callback").newThread(action).start();
    }

    /** In a thread of its own, for which the end of the program waits. */
    static Thread workBeforeEnd(Runnable action) {
        Thread thread = new Thread(action, "redlockd release");
        thread.setDaemon(false);
        thread.start();
        return thread;
    }

    static ThreadFactory daemons(String name) {
        return action -> {
            Thread thread = new Thread(action, name);
            thread.setDaemon(true);
            return thread;
        };
    }
}
