// SPDX-License-Identifier: MIT
package org.redlockd;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Stories of the operations of many threads that go together, over a server that responds as the
 * story says. Each prints a line; the last one says how many passed and failed.
 */
public final class Coalescing {
    private static final int LIMIT_S = 20;

    private interface Story {
        void run() throws Exception;
    }

    private Coalescing() {
    }

    private static void expect(boolean is, Object what) {
        if (!is) {
            throw new AssertionError(String.valueOf(what));
        }
    }

    private static void until(BooleanSupplier is, String what) throws InterruptedException {
        long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_S);
        while (!is.getAsBoolean()) {
            expect(System.nanoTime() < endNs, "in vain: " + what);
            Thread.sleep(2);
        }
    }

    private static Map<String, Object> problem(int status, String code) {
        return Map.of("status", (long) status, "code", code, "detail", code);
    }

    /** An operation that a server got, as an item of a batch; `batch` is null for a single call. */
    private static final class Got {
        final Map<String, Object> of;
        final List<Got> batch;

        Got(Map<String, Object> of, List<Got> batch) {
            this.of = of;
            this.batch = batch;
        }

        boolean is(String operation) {
            return operation.equals(of.get("operation"));
        }

        String name() {
            return String.valueOf(of.getOrDefault("resource", of.get("id")));
        }

        Object key() {
            return of.get("idempotency_key");
        }
    }

    private static final class Fake implements AutoCloseable {
        final List<Got> got = new CopyOnWriteArrayList<>();
        final List<List<Got>> batches = new CopyOnWriteArrayList<>();
        final Map<String, Object> grant = new LinkedHashMap<>(Map.of("ttl_ms", 30_000L,
            "elapsed_ms", 0L, "validity_ms", 29_000L, "renew_after_ms", 10_000L));
        /** What it responds to an operation; null: it grants it. */
        volatile Function<Got, Map<String, Object>> refuses = one -> null;
        /** What it responds to a whole batch; null: as usual; empty: it closes the connection. */
        volatile Function<List<Got>, Map<String, Object>> refusesBatch = one -> null;
        volatile String knows; // the value of the header
        final Set<Object> connections = ConcurrentHashMap.newKeySet();
        private final AtomicLong numbers = new AtomicLong(1_795_221_641_865_000L);
        private final HttpServer server;
        private final ExecutorService pool = Executors.newCachedThreadPool();

        Fake() throws IOException {
            server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
            server.setExecutor(pool);
            server.createContext("/", this::respond);
            server.start();
        }

        String url() {
            return "http://127.0.0.1:" + server.getAddress().getPort();
        }

        @Override public void close() {
            server.stop(0);
            pool.shutdownNow();
        }

        List<Got> of(Predicate<Got> wanted) {
            return got.stream().filter(wanted).collect(Collectors.toList());
        }

        List<Got> of(String operation) {
            return of(one -> one.is(operation));
        }

        /** How many requests had these. */
        static long requests(List<Got> operations) {
            return operations.stream().filter(one -> one.batch == null).count()
                + operations.stream().filter(one -> one.batch != null)
                    .map(one -> System.identityHashCode(one.batch)).distinct().count();
        }

        private void respond(HttpExchange exchange) throws IOException {
            connections.add(exchange.getRemoteAddress());
            Map<String, Object> body = Json.object(read(new String(
                exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8)));
            String authorization = exchange.getRequestHeaders().getFirst("Authorization");
            boolean isKnown = knows == null || knows.equals(authorization);
            if (exchange.getRequestURI().getPath().equals("/batch")) {
                List<Got> batch = new ArrayList<>();
                ((List<?>) body.get("operations")).forEach(
                    one -> batch.add(new Got(Json.object(one), batch)));
                got.addAll(batch);
                batches.add(batch);
                Map<String, Object> refusal = isKnown ? refusesBatch.apply(batch)
                    : problem(401, "unauthorized");
                send(exchange, refusal != null ? refusal : Map.of("results",
                    batch.stream().map(this::result).collect(Collectors.toList())));
                return;
            }
            Got one = new Got(single(exchange, body), null);
            got.add(one);
            Map<String, Object> refusal = isKnown ? refuses.apply(one)
                : problem(401, "unauthorized");
            send(exchange, refusal != null ? refusal : granted(one));
        }

        private static Object read(String text) {
            return text.isEmpty() ? null : Json.read(text);
        }

        /** As an item of a batch would say it. */
        private static Map<String, Object> single(HttpExchange exchange,
                Map<String, Object> body) {
            Map<String, Object> of = new LinkedHashMap<>(body);
            String method = exchange.getRequestMethod();
            if (method.equals("POST")) {
                of.put("operation", "acquire");
                of.put("idempotency_key", exchange.getRequestHeaders().getFirst("Idempotency-Key"));
            } else {
                of.put("operation", method.equals("PUT") ? "extend"
                    : method.equals("DELETE") ? "release" : method);
                of.put("token", exchange.getRequestHeaders().getFirst("X-Lock-Token"));
                of.put("id", exchange.getRequestURI().getPath().split("/")[2]);
            }
            return of;
        }

        private Map<String, Object> result(Got one) {
            Map<String, Object> refusal = refuses.apply(one);
            return refusal != null ? Map.of("status", refusal.get("status"), "problem", refusal)
                : Map.of("status", 200L, one.is("release") ? "release" : "grant", granted(one));
        }

        private Map<String, Object> granted(Got one) {
            if (one.is("release")) {
                return Map.of("released", true);
            }
            Map<String, Object> body = new LinkedHashMap<>(grant);
            long number = numbers.incrementAndGet();
            body.put("id", one.name());
            body.put("fencing_token", number);
            body.put("token", one.is("extend") ? one.of.get("token") : number + ".secret");
            return body;
        }

        private static void send(HttpExchange exchange, Map<String, Object> body)
                throws IOException {
            if (body.isEmpty()) {
                exchange.close();
                return;
            }
            byte[] content = Json.write(body).getBytes(StandardCharsets.UTF_8);
            Object status = body.getOrDefault("status", 200L);
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(((Long) status).intValue(), content.length);
            exchange.getResponseBody().write(content);
            exchange.close();
        }
    }

    private static void pass(CountDownLatch gate) {
        try {
            gate.await(LIMIT_S, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** A client whose two places are taken until the gate is open, and its threads. */
    private static final class Crowd implements AutoCloseable {
        final Fake fake = new Fake();
        final Client client;
        final CountDownLatch gate = new CountDownLatch(1);
        final List<Task> busy = new ArrayList<>();
        Duration wait = Duration.ZERO;

        /** A thread. */
        final class Task extends FutureTask<Lock> {
            final Thread thread;

            Task(Callable<Lock> work) {
                super(work);
                thread = new Thread(this);
                thread.setDaemon(true);
                thread.start();
            }

            Lock result() throws Exception {
                try {
                    return get(LIMIT_S, TimeUnit.SECONDS);
                } catch (ExecutionException e) {
                    throw (Exception) e.getCause();
                }
            }
        }

        Crowd() throws Exception {
            this(builder -> builder);
        }

        Crowd(Function<Client.Builder, Client.Builder> with) throws Exception {
            client = with.apply(Client.builder().urls(fake.url())).build();
        }

        Task acquires(String name) {
            return new Task(() -> client.lock(name).waitAtMost(wait).acquire());
        }

        Crowd takePlaces() throws Exception {
            Function<Got, Map<String, Object>> before = fake.refuses;
            fake.refuses = one -> {
                if (one.name().startsWith("busy")) {
                    pass(gate);
                }
                return before.apply(one);
            };
            for (int i = 0; i < 2; i++) {
                int count = fake.got.size();
                busy.add(acquires("busy" + i));
                until(() -> fake.got.size() > count, "a place is taken");
            }
            return this;
        }

        List<Task> collects(String... names) throws Exception {
            List<Task> tasks = new ArrayList<>();
            for (String name : names) {
                int count = client.caller.collected();
                tasks.add(acquires(name));
                until(() -> client.caller.collected() == count + 1, "it is collected");
            }
            return tasks;
        }

        /** The tasks have left, in a batch that has no response yet. */
        List<Task> sends(CountDownLatch until, Map<String, Object> response, String... names)
                throws Exception {
            takePlaces();
            wait = Duration.ofSeconds(LIMIT_S); // with which they are tried
            List<Task> tasks = collects(names);
            fake.refusesBatch = batch -> {
                boolean isIt = batch.stream().anyMatch(
                    one -> one.name().equals(names[0]) && !one.of.containsKey("ttl_ms"));
                if (isIt) {
                    pass(until);
                }
                return isIt ? response : null;
            };
            int count = fake.batches.size();
            gate.countDown();
            until(() -> fake.batches.size() > count, "the batch is sent");
            expect(last().size() == names.length, last());
            return tasks;
        }

        List<Got> last() {
            return fake.batches.get(fake.batches.size() - 1);
        }

        @Override public void close() throws Exception {
            gate.countDown();
            fake.close();
        }
    }

    private static String[] names(int count) {
        return IntStream.range(0, count).mapToObj(i -> "name" + i).toArray(String[]::new);
    }

    private static <E extends Exception> E raises(Class<E> kind, Crowd.Task task) {
        try {
            task.result();
        } catch (Exception e) {
            if (kind.isInstance(e)) {
                return kind.cast(e);
            }
            throw new AssertionError(e + ", not " + kind, e);
        }
        throw new AssertionError("no " + kind);
    }

    // ---- stories -------------------------------------------------------------------------------

    private static void together() throws Exception {
        try (Crowd crowd = new Crowd().takePlaces()) {
            List<Crowd.Task> tasks = crowd.collects(names(20));
            expect(crowd.fake.got.size() == 2, "two are under way");
            crowd.gate.countDown();
            for (Crowd.Task one : tasks) {
                one.result().check();
            }
            expect(crowd.last().size() == 20, crowd.last().size());
            expect(crowd.fake.got.stream().map(Got::key).distinct().count() == 22, "keys");
            for (Crowd.Task one : tasks) { // alone: as single calls
                one.result().release();
            }
            expect(crowd.fake.of(one -> one.is("release") && one.batch == null).size() == 20,
                "releases");
        }
    }

    private static void errors() throws Exception {
        try (Crowd crowd = new Crowd()) {
            crowd.fake.refuses = one -> one.name().equals("held")
                ? Map.of("status", 409L, "code", "lock_held", "held_by", Map.of("owner", "web-3"))
                : one.name().equals("no") ? problem(403, "forbidden")
                : one.name().equals("wrong") ? problem(400, "invalid_request") : null;
            crowd.takePlaces();
            List<Crowd.Task> tasks = crowd.collects("held", "no", "wrong", "good");
            crowd.gate.countDown();
            expect(raises(LockHeldException.class, tasks.get(0)).owner().get().equals("web-3"),
                "the owner");
            raises(ForbiddenException.class, tasks.get(1));
            expect(raises(RequestRefusedException.class, tasks.get(2)).status() == 400, "400");
            tasks.get(3).result().check();
        }
    }

    private static void waits() throws Exception {
        try (Crowd crowd = new Crowd()) {
            crowd.fake.refuses = one -> one.name().equals("held") && !one.of.containsKey("wait_ms")
                ? problem(409, "lock_held") : null;
            crowd.takePlaces();
            Crowd.Task task = crowd.new Task(() -> crowd.client.lock("held").acquire());
            until(() -> crowd.client.caller.collected() == 1, "it is collected");
            crowd.gate.countDown();
            task.result();
            List<Got> asked = crowd.fake.of(one -> one.name().equals("held"));
            expect(asked.size() == 2 && asked.get(1).of.get("wait_ms").equals(10_000L)
                && !asked.get(0).key().equals(asked.get(1).key()), asked.size());
        }
    }

    private static void lost() throws Exception {
        try (Crowd crowd = new Crowd().takePlaces()) {
            // also the second, over another connection
            crowd.fake.refusesBatch = batch -> batch.size() > 1 ? Map.of() : null;
            crowd.wait = Duration.ofSeconds(LIMIT_S);
            List<Crowd.Task> tasks = crowd.collects(names(3));
            crowd.gate.countDown();
            until(() -> crowd.fake.batches.size() >= 3, "it is repeated");
            crowd.fake.refusesBatch = batch -> null;
            for (Crowd.Task one : tasks) {
                one.result().check();
            }
            for (String name : names(3)) {
                List<Got> asked = crowd.fake.of(one -> one.name().equals(name));
                expect(asked.size() >= 3, asked.size());
                expect(asked.stream().map(Got::key).distinct().count() == 1, "one key");
            }
        }
    }

    private static void refused() throws Exception {
        try (Crowd crowd = new Crowd().takePlaces()) {
            crowd.fake.refusesBatch = batch -> problem(404, "no_such_call");
            List<Crowd.Task> tasks = crowd.collects(names(3));
            crowd.gate.countDown();
            for (Crowd.Task one : tasks) {
                one.result().check();
            }
            expect(crowd.last().size() == 3, "a batch");
            expect(crowd.fake.of(one -> one.name().startsWith("name") && one.batch == null).size()
                == 3, "single calls");
        }
    }

    private static void interruptedCollected() throws Exception {
        try (Crowd crowd = new Crowd().takePlaces()) {
            List<Crowd.Task> tasks = crowd.collects("left", "other");
            tasks.get(0).thread.interrupt();
            raises(InterruptedException.class, tasks.get(0));
            expect(crowd.client.caller.collected() == 1, "it is taken out");
            crowd.gate.countDown();
            tasks.get(1).result();
            expect(crowd.fake.of(one -> one.name().equals("left")).isEmpty(), "it was sent");
        }
    }

    /** The batch goes on for the others; what it grants to nobody is released. */
    private static void interruptedInABatch(boolean isLost) throws Exception {
        CountDownLatch response = new CountDownLatch(1);
        try (Crowd crowd = new Crowd()) {
            List<Crowd.Task> tasks = crowd.sends(response, isLost ? Map.of() : null, "left",
                "other", "third");
            tasks.get(0).thread.interrupt();
            Thread.sleep(100);
            expect(crowd.fake.of("release").isEmpty(), "too early");
            response.countDown();
            raises(InterruptedException.class, tasks.get(0)); // it has waited for that
            List<Got> asked = crowd.fake.of(one -> one.name().equals("left"));
            Got release = asked.get(asked.size() - 1);
            expect(release.is("release"), release.of);
            expect(crowd.fake.of("release").size() == 1, "others are released");
            if (isLost) {
                Got again = asked.get(asked.size() - 2);
                expect(again.of.get("ttl_ms").equals(100L)
                    && again.key().equals(asked.get(0).key()), again.of);
            }
            tasks.get(1).result().check();
            tasks.get(2).result().check();
        }
    }

    /** Nobody waits for such a batch. */
    private static void allInterruptedInABatch() throws Exception {
        CountDownLatch response = new CountDownLatch(1);
        try (Crowd crowd = new Crowd()) {
            List<Crowd.Task> tasks = crowd.sends(response, null, "left", "left2");
            tasks.forEach(one -> one.thread.interrupt());
            for (Crowd.Task one : tasks) {
                raises(InterruptedException.class, one);
            }
            expect(crowd.fake.of("release").size() == 2, crowd.fake.got.stream().map(one -> one.of + " " + (one.batch != null)).collect(Collectors.toList()));
            response.countDown();
        }
    }

    private static void renewals() throws Exception {
        try (Crowd crowd = new Crowd()) {
            crowd.fake.grant.put("renew_after_ms", 600L);
            List<Crowd.Task> tasks = new ArrayList<>();
            for (String name : names(40)) {
                tasks.add(crowd.acquires(name));
            }
            for (Crowd.Task one : tasks) {
                one.result();
            }
            until(() -> crowd.fake.of("extend").size() >= 120, "renewals");
            List<Got> extend = crowd.fake.of("extend");
            expect(Fake.requests(extend) < extend.size() / 3, Fake.requests(extend));
            for (Crowd.Task one : tasks) {
                one.result().check();
            }
        }
    }

    /** Those that are due together go together. */
    private static void urgent() throws Exception {
        try (Crowd crowd = new Crowd()) {
            crowd.fake.grant.putAll(Map.of("ttl_ms", 3000L, "validity_ms", 3000L,
                "renew_after_ms", 1750L));
            crowd.takePlaces();
            List<Crowd.Task> tasks = crowd.collects(names(20));
            crowd.gate.countDown();
            List<Lock> locks = new ArrayList<>();
            for (Crowd.Task one : tasks) {
                locks.add(one.result());
            }
            CountDownLatch gate = new CountDownLatch(1);
            crowd.fake.refuses = one -> {
                if (one.name().startsWith("again")) {
                    pass(gate);
                }
                return null;
            };
            crowd.acquires("again0");
            crowd.acquires("again1");
            until(() -> crowd.fake.of(one -> one.name().startsWith("again")).size() == 2, "busy");
            until(() -> crowd.fake.of("extend").size() >= 40, "they are renewed twice");
            locks.forEach(Lock::check);
            long requests = Fake.requests(crowd.fake.of("extend"));
            expect(requests < 20, requests);
            gate.countDown();
        }
    }

    private static void queuedRenewal() throws Exception {
        try (Crowd crowd = new Crowd()) {
            crowd.fake.grant.put("renew_after_ms", 400L);
            Lock lock = crowd.acquires("renewed").result();
            crowd.fake.grant.put("renew_after_ms", 10_000L);
            crowd.takePlaces();
            until(() -> crowd.client.caller.collected() == 1, "the renewal is due");
            Crowd.Task release = crowd.new Task(() -> {
                lock.release();
                return null;
            });
            until(() -> release.thread.getState() != Thread.State.RUNNABLE
                && crowd.client.caller.collected() == 1, "the release is collected");
            Thread.sleep(50);
            crowd.gate.countDown();
            release.result();
            expect(crowd.fake.of("extend").isEmpty(), "it was sent");
            expect(crowd.fake.of("release").size() == 1, "it was not released");
        }
    }

    /** A renewal has less time than the acquires in its batch. */
    private static void ownTime() throws Exception {
        CountDownLatch response = new CountDownLatch(1);
        try (Crowd crowd = new Crowd()) {
            crowd.fake.grant.putAll(Map.of("ttl_ms", 6000L, "validity_ms", 6000L,
                "renew_after_ms", 500L));
            Lock lock = crowd.acquires("renewed").result();
            crowd.fake.grant.put("renew_after_ms", 5000L);
            crowd.takePlaces();
            until(() -> crowd.client.caller.collected() == 1, "the renewal is due");
            List<Crowd.Task> tasks = crowd.collects("a", "b");
            crowd.fake.refusesBatch = batch -> {
                if (batch.size() > 1) {
                    pass(response);
                }
                return null;
            };
            crowd.gate.countDown();
            until(() -> crowd.fake.of("extend").size() == 2, "it is sent again");
            expect(crowd.fake.of("extend").get(0).batch != null, "it was in a batch");
            expect(!tasks.get(0).isDone(), "the batch has ended");
            response.countDown();
            tasks.get(1).result().check();
            lock.check();
        }
    }

    private static void overdue() throws Exception {
        Caller.overdueMs = 300;
        try (Crowd crowd = new Crowd().takePlaces()) {
            for (Crowd.Task one : crowd.collects(names(5))) {
                one.result().check(); // while the first two hang
            }
            expect(!crowd.busy.get(0).isDone(), "they do not hang");
        } finally {
            Caller.overdueMs = 1000 * LIMIT_S;
        }
    }

    private static void token() throws Exception {
        Path file = Files.createTempFile("redlockd", ".token");
        Files.writeString(file, "one\n");
        try (Crowd crowd = new Crowd(builder -> builder.authTokenFile(file))) {
            crowd.takePlaces();
            List<Crowd.Task> tasks = crowd.collects(names(3));
            crowd.fake.knows = "Bearer two";
            Files.writeString(file, "two\n");
            crowd.gate.countDown();
            for (Crowd.Task one : tasks) {
                one.result().check();
            }
            expect(crowd.fake.of(one -> one.name().equals("name0")).size() == 2, "sent twice");
        } finally {
            Files.delete(file);
        }
        // a server that knows it for some operations only: the others go alone
        try (Crowd crowd = new Crowd()) {
            crowd.fake.refuses = one -> one.name().equals("name1") && one.batch != null
                ? problem(401, "unauthorized") : null;
            crowd.takePlaces();
            List<Crowd.Task> tasks = crowd.collects(names(3));
            crowd.gate.countDown();
            for (Crowd.Task one : tasks) {
                one.result().check();
            }
            expect(crowd.fake.of(one -> one.name().equals("name1")).size() == 2, "sent twice");
        }
    }

    /** The threads of java.util.concurrent that all parts of a program share. */
    private static void commonPool() throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        for (int i = 0; i < 8; i++) {
            ForkJoinPool.commonPool().execute(() -> pass(end));
        }
        try (Crowd crowd = new Crowd(builder -> builder.timeout(Duration.ofSeconds(2)))) {
            for (int i = 0; i < 50; i++) {
                crowd.acquires("one").result().release();
            }
            expect(crowd.fake.connections.size() < 10, crowd.fake.connections.size());
        } finally {
            end.countDown();
        }
    }

    /** A renewal goes on although its report has failed. */
    private static void logger() throws Exception {
        AtomicInteger reports = new AtomicInteger();
        Handler throwing = new Handler() {
            @Override public void publish(LogRecord one) {
                if (!one.getMessage().startsWith("logged: ")) {
                    return; // a lock of another story
                }
                if (reports.incrementAndGet() % 2 == 1) {
                    throw new IllegalStateException("no report");
                }
                throw new AssertionError("no report, and worse");
            }

            @Override public void flush() {
                // nothing is kept
            }

            @Override public void close() {
                // nothing is open
            }
        };
        Logger logger = Logger.getLogger("org.redlockd");
        logger.addHandler(throwing);
        Thread.setDefaultUncaughtExceptionHandler((thread, e) -> { }); // it would print it
        try (Crowd crowd = new Crowd()) {
            crowd.fake.grant.putAll(Map.of("ttl_ms", 3000L, "validity_ms", 3000L,
                "renew_after_ms", 500L));
            crowd.fake.refuses = one -> crowd.fake.of("acquire").size() == 1
                && one.is("acquire") || one.is("extend") && crowd.fake.of("extend").size() <= 4
                ? problem(503, "no_quorum") : null;
            crowd.wait = Duration.ofSeconds(LIMIT_S);
            Lock lock = crowd.acquires("logged").result();
            until(() -> crowd.fake.of("extend").size() >= 7, "it is renewed again");
            lock.check();
            expect(reports.get() == 1 + 4, reports);
        } finally {
            logger.removeHandler(throwing);
            Thread.setDefaultUncaughtExceptionHandler(null);
        }
    }

    /** More locks than there are workers, whose servers take none of their renewals. */
    private static void failing() throws Exception {
        try (Fake bad = new Fake(); Fake good = new Fake()) {
            bad.grant.putAll(Map.of("ttl_ms", 60_000L, "validity_ms", 59_000L,
                "renew_after_ms", 1000L));
            bad.refuses = one -> one.is("extend") ? problem(503, "no_quorum") : null;
            good.grant.putAll(Map.of("ttl_ms", 2000L, "validity_ms", 2000L,
                "renew_after_ms", 200L));
            Client failing = Client.builder().urls(bad.url()).build();
            List<Lock> kept = new ArrayList<>();
            for (int i = 0; i < 270; i++) {
                kept.add(failing.lock("bad" + i).acquire());
            }
            until(() -> bad.of("extend").stream().map(Got::name).distinct().count() == 270,
                "all renewals fail");
            CountDownLatch lost = new CountDownLatch(1);
            Lock lock = Client.builder().urls(good.url()).build().lock("good")
                .onLoss(loss -> lost.countDown()).acquire();
            until(() -> good.of("extend").size() > 2, "the other client renews its lock");
            lock.check();
            good.refuses = bad.refuses;
            expect(lost.await(4, TimeUnit.SECONDS), "a loss is reported at once");
            expect(kept.get(0).isHeld(), "the others are held");
            kept.forEach(Lock::close);
        }
    }

    public static void main(String[] arguments) {
        System.setProperty("sun.net.httpserver.nodelay", "true");
        // with one processor, or two, it is not used
        System.setProperty("java.util.concurrent.ForkJoinPool.common.parallelism", "3");
        Caller.overdueMs = 1000 * LIMIT_S; // a busy machine shall not free a place
        Logger.getLogger("org.redlockd").setUseParentHandlers(false);
        Map<String, Story> stories = new LinkedHashMap<>();
        stories.put("what comes while two are under way is one batch", Coalescing::together);
        stories.put("each has its own result", Coalescing::errors);
        stories.put("a try that finds the lock held then waits alone", Coalescing::waits);
        stories.put("without a response each is repeated with its key", Coalescing::lost);
        stories.put("a batch that is refused goes in single calls", Coalescing::refused);
        stories.put("interrupted while it is collected: never sent",
            Coalescing::interruptedCollected);
        stories.put("interrupted in a batch: released", () -> interruptedInABatch(false));
        stories.put("interrupted in a batch without a response: released by its key",
            () -> interruptedInABatch(true));
        stories.put("all of a batch interrupted: it ends", Coalescing::allInterruptedInABatch);
        stories.put("renewals that are due go together", Coalescing::renewals);
        stories.put("an urgent extend waits for nothing", Coalescing::urgent);
        stories.put("a renewal that is collected ends with the release",
            Coalescing::queuedRenewal);
        stories.put("an operation of a batch has its own timeout", Coalescing::ownTime);
        stories.put("a request that hangs frees its place", Coalescing::overdue);
        stories.put("a new access token is read for a batch", Coalescing::token);
        stories.put("a program whose common pool waits; connections are kept",
            Coalescing::commonPool);
        stories.put("a logger that throws ends no renewals", Coalescing::logger);
        stories.put("renewals that fail hold no other client up", Coalescing::failing);
        int failed = 0;
        for (Map.Entry<String, Story> one : stories.entrySet()) {
            if (arguments.length > 0 && !one.getKey().contains(arguments[0])) {
                continue;
            }
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
