// SPDX-License-Identifier: MIT
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.redlockd.Client;
import org.redlockd.HeldLock;
import org.redlockd.Lock;
import org.redlockd.LockHeldException;
import org.redlockd.LockLostException;
import org.redlockd.LockRequest;
import org.redlockd.RequestRefusedException;
import org.redlockd.UnavailableException;

/**
 * Stories of the Java package over a redlockd at REDLOCKD_URL. Each prints a line; the last one
 * says how many passed and failed.
 */
public final class Stories {
    private static final Client CLIENT = Client.create();
    private static final Client OTHER = Client.create();
    private static final Duration SECOND = Duration.ofSeconds(1);
    /** Of locks that must be kept, also on a busy machine. */
    private static final Duration LONGER = Duration.ofSeconds(3);

    private interface Story {
        void run() throws Exception;
    }

    private Stories() {
    }

    private static void is(Object actual, Object expected) {
        if (!Objects.equals(actual, expected)) {
            throw new AssertionError(actual + ", not " + expected);
        }
    }

    private static <E extends Throwable> E raises(Class<E> kind, Story story) {
        try {
            story.run();
        } catch (Throwable e) {
            if (e.getClass() != kind) {
                throw new AssertionError(e + ", not " + kind, e);
            }
            return kind.cast(e);
        }
        throw new AssertionError("no " + kind);
    }

    private static void untilFree(String resource, int limitS) throws InterruptedException {
        long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(limitS);
        while (OTHER.get(resource).isPresent() && System.nanoTime() < endNs) {
            Thread.sleep(20);
        }
        is(OTHER.get(resource).isPresent(), false);
    }

    /** Another thread does it: its result. */
    private static <T> T aside(Callable<T> action) throws Exception {
        ExecutorService pool = Executors.newSingleThreadExecutor();
        try {
            return pool.submit(action).get();
        } finally {
            pool.shutdownNow();
        }
    }

    private static Thread interruptAfter(double ms) {
        Thread one = Thread.currentThread();
        Thread thread = new Thread(() -> {
            try {
                TimeUnit.MICROSECONDS.sleep((long) (1000 * ms));
            } catch (InterruptedException e) {
                return; // it is not wanted any more
            }
            one.interrupt();
        });
        thread.start();
        return thread;
    }

    private static void calledOff(Thread interrupter) throws InterruptedException {
        boolean was = Thread.interrupted();
        interrupter.interrupt();
        interrupter.join();
        is(Thread.interrupted() && was, false);
    }

    // ---- stories -------------------------------------------------------------------------------

    private static void work() throws Exception {
        long token = CLIENT.lock("run").withLock(lock -> {
            LockHeldException held = raises(LockHeldException.class,
                () -> OTHER.lock("run").waitAtMost(Duration.ZERO).acquire());
            is(held.fencingToken().getAsLong(), lock.fencingToken());
            is(OTHER.get("run").get().fencingToken().getAsLong(), lock.fencingToken());
            lock.check();
            return lock.fencingToken();
        });
        is(OTHER.get("run").isPresent(), false);
        is(raises(IOException.class, () -> CLIENT.lock("run").runWithLock(lock -> {
            throw new IOException("a");
        })).getMessage(), "a");
        is(OTHER.get("run").isPresent(), false);
        Lock after;
        try (Lock lock = CLIENT.lock("run").owner("web-3").acquire()) {
            is(lock.fencingToken() > token, true);
            is(OTHER.get("run").get().owner().get(), "web-3");
            after = lock;
        }
        is(OTHER.get("run").isPresent(), false);
        is(after.isHeld(), false);
        after.close();
        raises(IllegalStateException.class, after::release);
        raises(IllegalStateException.class, after::check);
        raises(IllegalStateException.class, () -> after.extend(SECOND));
    }

    private static void renewals() throws Exception {
        List<Lock> locks = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            locks.add(CLIENT.lock("renewed" + i).ttl(LONGER).acquire());
        }
        Thread.sleep(7000);
        for (Lock lock : locks) {
            lock.check();
            lock.release();
            is(lock.remaining(), Duration.ZERO);
        }
    }

    private static void forced() throws Exception {
        BlockingQueue<LockLostException> losses = new LinkedBlockingQueue<>();
        Lock lock = CLIENT.lock("forced").ttl(SECOND).onLoss(losses::add).acquire();
        HeldLock one = OTHER.locks("forced").get(0);
        is(one.resources(), List.of("forced"));
        is(OTHER.forceRelease(one.id(), one.fencingToken().getAsLong()), true);
        is(OTHER.forceRelease(one.id(), one.fencingToken().getAsLong()), false);
        is(losses.poll(5, TimeUnit.SECONDS) != null, true);
        is(raises(LockLostException.class, lock::check).getMessage().contains("the lock ended"),
            true);
        raises(LockLostException.class, () -> lock.extend(SECOND));
        raises(LockLostException.class, lock::release);
        raises(IllegalStateException.class, lock::release);
        lock.close();
        is(raises(IOException.class, () -> {
            try (Lock again = CLIENT.lock("forced").ttl(SECOND).acquire()) {
                OTHER.forceRelease("forced", again.fencingToken());
                throw new IOException("the work's own");
            }
        }).getSuppressed()[0].getClass(), LockLostException.class);
    }

    private static void interruptOnLoss() throws Exception {
        LockRequest request = CLIENT.lock("interrupt").ttl(SECOND).interruptOnLoss();
        long beganNs = System.nanoTime();
        raises(LockLostException.class, () -> request.runWithLock(lock -> {
            OTHER.forceRelease("interrupt", lock.fencingToken());
            Thread.sleep(20_000);
        }));
        is(System.nanoTime() - beganNs < 10_000_000_000L, true);
        is(Thread.interrupted(), false);
        // work that does not wait is not disturbed, and the thread is as it was
        raises(LockLostException.class, () -> request.runWithLock(lock -> {
            OTHER.forceRelease("interrupt", lock.fencingToken());
            while (lock.isHeld()) {
                Thread.onSpinWait();
            }
        }));
        is(Thread.interrupted(), false);
        // somebody else's interrupt stays what it is
        raises(InterruptedException.class, () -> request.runWithLock(lock -> {
            Thread.currentThread().interrupt();
            Thread.sleep(1000);
        }));
        untilFree("interrupt", 2);
    }

    private static void kinds() throws Exception {
        try (Lock both = CLIENT.lock("b", "a").waitAtMost(Duration.ZERO).acquire()) {
            both.check();
            is(OTHER.lock("a").tryAcquire().isPresent(), false);
        }
        try (Lock permits = CLIENT.lock("pool").permits(2, 3).acquire()) {
            is(permits.slots().size(), 2);
            is(OTHER.lock("pool").permits(2, 3).tryAcquire().isPresent(), false);
            is(OTHER.lock("pool").permits(1, 3).withLock(one -> one.slots().size()), 1);
        }
        Lock lock = CLIENT.lock("catalog").acquire();
        is(OTHER.lock("catalog").shared().tryAcquire().isPresent(), false);
        lock.downgrade();
        is(lock.isShared(), true);
        Lock reader = OTHER.lock("catalog").shared().tryAcquire().get();
        is(CLIENT.get("catalog").get().readers(), 2);
        lock.release();
        is(OTHER.forceReleaseReaders("catalog"), true);
        raises(LockLostException.class, reader::release);
    }

    private static void refusals() throws Exception {
        Lock lock = CLIENT.lock("longer").ttl(Duration.ofSeconds(2)).acquire();
        lock.extend(Duration.ofSeconds(20));
        is(lock.remaining().toSeconds() >= 15, true);
        RequestRefusedException refused = raises(RequestRefusedException.class,
            () -> lock.extend(Duration.ofSeconds(999)));
        is(refused.status() + refused.code(), "400invalid_request");
        lock.release();
        raises(IllegalArgumentException.class, () -> CLIENT.lock().acquire());
        raises(IllegalArgumentException.class, () -> CLIENT.lock("a", "b").permits(1, 2).acquire());
        raises(IllegalArgumentException.class, () -> CLIENT.lock("a").permits(1, 2).shared()
            .acquire());
        for (String bad : List.of("ftp://a", "a:1", "http://", "http://a/?b", "http://a b")) {
            raises(IllegalArgumentException.class, () -> Client.builder().urls(bad).build());
        }
        raises(IllegalArgumentException.class, () -> Client.builder().timeout(Duration.ZERO).build());
        raises(IllegalArgumentException.class, () -> Client.builder().authToken("a b").build());
        raises(IllegalArgumentException.class,
            () -> Client.builder().authTokenFile(Path.of("/nowhere")).build());
        raises(IllegalArgumentException.class,
            () -> Client.builder().keyFile(Path.of("/nowhere")).build());
        Path file = Files.createTempFile("redlockd", ".pem");
        try {
            for (String bad : List.of("", "no certificate\n")) {
                Files.writeString(file, bad);
                raises(IllegalArgumentException.class, () -> Client.builder().caFile(file).build());
                raises(IllegalArgumentException.class,
                    () -> Client.builder().certFile(file).build());
            }
        } finally {
            Files.delete(file);
        }
    }

    private static void interrupts() throws Exception {
        for (int i = 0; i < 40; i++) {
            Thread interrupter = interruptAfter(0.5 * i);
            try {
                CLIENT.lock("interrupted").runWithLock(lock -> Thread.sleep(5));
            } catch (InterruptedException e) {
                // that was the purpose
            }
            calledOff(interrupter);
        }
        untilFree("interrupted", 2);
        try (Lock held = OTHER.lock("interrupted").acquire()) {
            long beganNs = System.nanoTime();
            Thread interrupter = interruptAfter(200);
            raises(InterruptedException.class, () -> CLIENT.lock("interrupted").acquire());
            is(System.nanoTime() - beganNs < 2_500_000_000L, true);
            calledOff(interrupter);
            held.check();
        }
        untilFree("interrupted", 2);
        // also a thread that is interrupted already releases, and stays interrupted
        Lock lock = CLIENT.lock("interrupted").acquire();
        Thread.currentThread().interrupt();
        lock.release();
        is(Thread.interrupted(), true);
        is(OTHER.get("interrupted").isPresent(), false);
    }

    /** Also if the request is one of a batch, with those of other threads. */
    private static void interruptsAmongOthers() throws Exception {
        AtomicBoolean isOver = new AtomicBoolean();
        ExecutorService pool = Executors.newFixedThreadPool(16);
        List<Future<?>> others = new ArrayList<>();
        for (int i = 0; i < 16; i++) {
            String name = "among:other" + i;
            others.add(pool.submit(() -> {
                while (!isOver.get()) {
                    CLIENT.lock(name).runWithLock(Lock::check);
                }
                return 0;
            }));
        }
        for (int i = 0; i < 100; i++) {
            Thread interrupter = interruptAfter(0.1 * i);
            try {
                CLIENT.lock("among:" + i).runWithLock(lock -> Thread.sleep(1));
            } catch (InterruptedException e) {
                // that was the purpose
            }
            calledOff(interrupter);
        }
        isOver.set(true);
        for (Future<?> one : others) {
            one.get();
        }
        pool.shutdown();
        long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(2);
        while (!OTHER.locks("among:").isEmpty() && System.nanoTime() < endNs) {
            Thread.sleep(20);
        }
        is(OTHER.locks("among:"), List.of());
    }

    private static void forgotten() throws Exception {
        aside(() -> CLIENT.lock("forgotten").ttl(SECOND).acquire().fencingToken());
        for (int i = 0; i < 20; i++) {
            System.gc();
            Thread.sleep(100);
        }
        untilFree("forgotten", 3);
    }

    private static void watch() throws Exception {
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        Thread watcher = new Thread(() -> {
            try {
                CLIENT.watch("watched", held -> {
                    seen.add(held.map(one -> one.owner().orElse("?")).orElse("nobody"));
                    return seen.size() < 3;
                });
                seen.add("end");
            } catch (InterruptedException e) {
                seen.add("interrupted");
            }
        });
        watcher.start();
        is(seen.poll(5, TimeUnit.SECONDS), "nobody");
        try (Lock lock = OTHER.lock("watched").owner("web-3").acquire()) {
            is(seen.poll(5, TimeUnit.SECONDS), "web-3");
            lock.check();
        }
        is(seen.poll(5, TimeUnit.SECONDS), "nobody");
        watcher.interrupt();
        is(seen.poll(5, TimeUnit.SECONDS), "interrupted");
    }

    private static void list() throws Exception {
        List<Lock> locks = new ArrayList<>();
        for (String name : List.of("list/\u00e9", "list/\"b\" \\c", "list/\ud83d\ude00")) {
            locks.add(CLIENT.lock(name).acquire());
        }
        List<HeldLock> found = OTHER.locks("list/");
        is(found.size(), 3);
        is(OTHER.locks("list/\u00e9").get(0).resources(), List.of("list/\u00e9"));
        is(OTHER.get("list/\"b\" \\c").isPresent(), true);
        locks.forEach(Lock::release);
        is(OTHER.locks("list/").size(), 0);
    }

    private static void nobodyThere() {
        Client nobody = Client.builder().urls("http://127.0.0.1:1", "http://127.0.0.1:2")
            .timeout(Duration.ofMillis(500)).build();
        raises(UnavailableException.class,
            () -> nobody.lock("a").waitAtMost(Duration.ZERO).acquire());
        raises(UnavailableException.class, () -> nobody.get("a"));
    }

    private static int most(Callable<?> eachThread, int count) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(count);
        List<Future<?>> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            all.add(pool.submit(eachThread));
        }
        for (Future<?> one : all) {
            one.get();
        }
        pool.shutdown();
        return MOST.getAndSet(0);
    }

    private static final AtomicInteger INSIDE = new AtomicInteger();
    private static final AtomicInteger MOST = new AtomicInteger();

    private static void inside() throws InterruptedException {
        MOST.accumulateAndGet(INSIDE.incrementAndGet(), Math::max);
        Thread.sleep(2);
        INSIDE.decrementAndGet();
    }

    private static void threads() throws Exception {
        is(most(() -> {
            for (int i = 0; i < 5; i++) {
                CLIENT.lock("shared by threads").waitAtMost(Duration.ofSeconds(30))
                    .runWithLock(lock -> inside());
            }
            return 0;
        }, 8), 1);
    }

    private static void javaLock() throws Exception {
        java.util.concurrent.locks.Lock view = CLIENT.lock("view").ttl(LONGER).asJavaLock();
        java.util.concurrent.locks.Lock other = OTHER.lock("view").asJavaLock();
        raises(IllegalMonitorStateException.class, view::unlock);
        raises(UnsupportedOperationException.class, view::newCondition);
        view.lock();
        long token = OTHER.get("view").get().fencingToken().getAsLong();
        is(view.tryLock(), true); // it is reentrant
        is(other.tryLock(), false);
        is(other.tryLock(100, TimeUnit.MILLISECONDS), false);
        is(aside(view::tryLock), false);
        raises(IllegalMonitorStateException.class, other::unlock);
        view.unlock();
        is(OTHER.get("view").get().fencingToken().getAsLong(), token);
        Thread interrupter = interruptAfter(100);
        raises(InterruptedException.class, other::lockInterruptibly);
        calledOff(interrupter);
        Thread waiting = new Thread(() -> {
            other.lock();
            if (!Thread.interrupted()) { // it must have stayed so
                throw new IllegalStateException("not interrupted");
            }
            other.unlock();
        });
        AtomicInteger failures = new AtomicInteger();
        waiting.setUncaughtExceptionHandler((thread, e) -> failures.incrementAndGet());
        waiting.start();
        Thread.sleep(100);
        waiting.interrupt();
        Thread.sleep(4000);
        is(waiting.isAlive(), true);
        view.unlock();
        waiting.join(10_000);
        is(waiting.isAlive(), false);
        is(failures.get(), 0);
        is(other.tryLock(2, TimeUnit.SECONDS), true);
        OTHER.forceRelease("view", OTHER.get("view").get().fencingToken().getAsLong());
        raises(LockLostException.class, other::unlock);
        is(other.tryLock(), true); // it can be used again
        other.unlock();
        is(most(() -> {
            for (int i = 0; i < 5; i++) {
                view.lock();
                try {
                    inside();
                } finally {
                    view.unlock();
                }
            }
            return 0;
        }, 4), 1);
        untilFree("view", 2);
    }

    private static void token() throws Exception {
        Path file = Files.createTempFile("redlockd", ".token");
        try {
            Files.writeString(file, "a-token\r\n");
            Client client = Client.builder().authTokenFile(file).build();
            client.lock("with a token").runWithLock(lock -> lock.check());
            Files.writeString(file, "a token\n");
            IllegalArgumentException wrong = raises(IllegalArgumentException.class,
                () -> Client.builder().authTokenFile(file).build());
            is(wrong.getMessage().contains("a token"), false);
        } finally {
            Files.delete(file);
        }
    }

    public static void main(String[] arguments) {
        Map<String, Story> stories = new LinkedHashMap<>();
        stories.put("work returns what it returns, and releases", Stories::work);
        stories.put("threads renew it", Stories::renewals);
        stories.put("a forced release is noticed at the next renewal", Stories::forced);
        stories.put("a loss interrupts a thread that wants it", Stories::interruptOnLoss);
        stories.put("several, permits, readers, a downgrade", Stories::kinds);
        stories.put("extend asks for another TTL; what is wrong is refused", Stories::refusals);
        stories.put("an interrupt at any moment leaves no lock", Stories::interrupts);
        stories.put("an interrupt among other threads leaves no lock",
            Stories::interruptsAmongOthers);
        stories.put("a lock that nobody refers to expires", Stories::forgotten);
        stories.put("a watch reports each holder, until it is interrupted", Stories::watch);
        stories.put("a list of locks with any names", Stories::list);
        stories.put("servers that are not there", Stories::nobodyThere);
        stories.put("threads share a client, and one of them holds the lock", Stories::threads);
        stories.put("java.util.concurrent.locks.Lock", Stories::javaLock);
        stories.put("a token in a file", Stories::token);
        int failed = 0;
        for (Map.Entry<String, Story> one : stories.entrySet()) {
            try {
                one.getValue().run();
                System.out.println("ok    " + one.getKey());
            } catch (Throwable e) {
                failed++;
                System.out.println("FAIL  " + one.getKey() + ": " + e);
                e.printStackTrace(System.out);
            }
        }
        System.out.println((stories.size() - failed) + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }
}
