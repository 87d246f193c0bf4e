// SPDX-License-Identifier: MIT
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import org.redlockd.Client;
import org.redlockd.Lock;
import org.redlockd.LockLostException;
import org.redlockd.LockRequest;
import org.redlockd.RedlockdException;

/**
 * Works while it holds a lock, and says when it did: see tests/go/user/holder.
 *
 * <p>Holder RESOURCE TTL_MS [cancel MS]; the URLs are in REDLOCKD_URL.
 */
public final class Holder {
    private static final AtomicBoolean IS_OVER = new AtomicBoolean();
    private static final AtomicBoolean IS_LOST = new AtomicBoolean();

    private Holder() {
    }

    private static synchronized void say(String what, long at, String more) {
        System.out.println(what + " " + at + " " + more);
    }

    private static Thread works(String what, BooleanSupplier mayWork) {
        Thread thread = new Thread(() -> {
            while (true) {
                // before the question: however long the process is stopped in between, a late
                // moment is not reported
                long at = System.nanoTime();
                if (!mayWork.getAsBoolean()) {
                    return;
                }
                say(what, at, "");
                try {
                    Thread.sleep(2);
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }
        });
        thread.start();
        return thread;
    }

    private static boolean isOurs(Lock lock) {
        try {
            lock.check();
            return true;
        } catch (LockLostException e) {
            return false;
        }
    }

    private static Lock acquire(String[] arguments) throws InterruptedException {
        LockRequest request = Client.builder().timeout(Duration.ofSeconds(1)).build()
            .lock(arguments[0]).ttl(Duration.ofMillis(Long.parseLong(arguments[1])))
            .owner("holder").onLoss(loss -> IS_LOST.set(true));
        if (arguments.length > 2) {
            Thread main = Thread.currentThread();
            Thread canceller = new Thread(() -> {
                try {
                    Thread.sleep(Long.parseLong(arguments[3]));
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
                main.interrupt();
            });
            canceller.setDaemon(true);
            canceller.start();
        }
        return request.acquire();
    }

    public static void main(String[] arguments) throws InterruptedException {
        Lock lock;
        try {
            lock = acquire(arguments);
        } catch (RedlockdException | InterruptedException e) {
            say("not", System.nanoTime(), e.toString());
            return;
        }
        say("held", System.nanoTime(), String.valueOf(lock.fencingToken()));
        Thread input = new Thread(() -> {
            try {
                System.in.readAllBytes();
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
            IS_OVER.set(true);
        });
        input.setDaemon(true);
        input.start();
        Thread steps = works("step", () -> !IS_OVER.get() && isOurs(lock));
        Thread context = works("ctx", () -> !IS_OVER.get() && !IS_LOST.get() && lock.isHeld());
        steps.join();
        context.join();
        try {
            lock.check();
            say("lost", System.nanoTime(), "false");
        } catch (LockLostException e) {
            say("lost", System.nanoTime(), "true " + e.getMessage());
        }
        try {
            lock.release();
            say("released", System.nanoTime(), "<nil>");
        } catch (LockLostException e) {
            say("released", System.nanoTime(), e.getMessage());
        }
        System.exit(0); // also while standard input is open
    }
}
