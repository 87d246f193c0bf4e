// SPDX-License-Identifier: MIT
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.redlockd.Client;
import org.redlockd.Lock;
import org.redlockd.LockLostException;
import org.redlockd.RedlockdException;
import org.redlockd.UnavailableException;

/**
 * Threads of one client, each with locks of its own, until standard input ends.
 *
 * <p>Crowd PREFIX TTL_MS KEPT CHANGED; the URLs are in REDLOCKD_URL. KEPT threads hold PREFIX:0 and
 * so on, and work under them; CHANGED threads acquire and release others, again and again. Prints
 * "held NUMBER", "thousand" for so many cycles, and at last "lost NUMBER MOMENT WHY" with the
 * last moment of work, or "kept NUMBER MOMENT"; "failed TEXT" for what must not happen; and "cycles
 * COUNT LOST" of all that changed.
 */
public final class Crowd {
    private static final Client CLIENT =
        Client.builder().timeout(Duration.ofSeconds(1)).build();
    private static final AtomicInteger CYCLES = new AtomicInteger();
    private static final AtomicInteger LOST = new AtomicInteger();
    private static final int THOUSAND = 1000;
    private static final Logger LOGGER = Logger.getLogger("org.redlockd");
    private static volatile boolean isOver;

    private Crowd() {
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }

    private static void keep(String name, int number, Duration ttl) throws InterruptedException {
        Lock lock = CLIENT.lock(name + ":" + number).ttl(ttl).acquire();
        say("held " + number);
        long last = 0;
        try {
            while (!isOver) {
                // before the question: however long the process is stopped in between, a late
                // moment is not reported
                long at = System.nanoTime();
                lock.check();
                last = at;
                Thread.sleep(2);
            }
            lock.release();
            say("kept " + number + " " + last);
        } catch (LockLostException e) {
            say("lost " + number + " " + last + " " + e.getMessage());
        }
    }

    private static void change(String name, int number, Duration ttl)
            throws InterruptedException {
        while (!isOver) {
            try (Lock lock = CLIENT.lock(name + ":changed:" + number).ttl(ttl)
                    .waitAtMost(Duration.ofSeconds(3)).acquire()) {
                lock.check();
                if (CYCLES.incrementAndGet() % THOUSAND == 0) {
                    say("thousand");
                }
            } catch (LockLostException | UnavailableException e) {
                LOST.incrementAndGet();
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        LOGGER.setLevel(Level.OFF); // it would report each request that fails
        String name = arguments[0];
        Duration ttl = Duration.ofMillis(Long.parseLong(arguments[1]));
        int kept = Integer.parseInt(arguments[2]);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < kept + Integer.parseInt(arguments[3]); i++) {
            int number = i;
            Thread thread = new Thread(() -> {
                try {
                    if (number < kept) {
                        keep(name, number, ttl);
                    } else {
                        change(name, number, ttl);
                    }
                } catch (RedlockdException | InterruptedException e) {
                    say("failed " + e);
                }
            });
            threads.add(thread);
            thread.start();
        }
        try {
            System.in.readAllBytes();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        isOver = true;
        for (Thread one : threads) {
            one.join();
        }
        say("cycles " + CYCLES + " " + LOST);
    }
}
