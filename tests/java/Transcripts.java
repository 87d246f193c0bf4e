// SPDX-License-Identifier: MIT
package org.redlockd;

import java.lang.System.Logger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.ResourceBundle;
import java.util.Set;
import java.util.concurrent.SynchronousQueue;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Plays the transcripts of the folder tests/protocol, which is the argument, without I/O;
 * docs/client-authors.md says what is in them. Ends with "N passed, N failed".
 */
public final class Transcripts {
    private Transcripts() {
    }

    public static void main(String[] arguments) throws Exception {
        List<Path> files;
        try (Stream<Path> all = Files.list(Path.of(arguments[0]))) {
            files = all.filter(one -> one.toString().endsWith(".json"))
                .sorted().collect(Collectors.toList());
        }
        int passed = 0;
        int failed = 0;
        for (Path file : files) {
            Map<String, Object> content = Json.object(Json.read(Files.readString(file)));
            for (Object one : (List<?>) content.get("transcripts")) {
                Map<String, Object> transcript = Json.object(one);
                try {
                    if ("together".equals(transcript.get("talk"))) {
                        new Together().play(steps(content, transcript));
                    } else {
                        new Player(transcript, Json.object(content.get("grant")))
                            .play(steps(content, transcript));
                    }
                    passed++;
                } catch (AssertionError | RuntimeException e) {
                    failed++;
                    System.out.println("FAIL  " + file.getFileName() + ": "
                        + transcript.get("name") + ": " + e.getMessage());
                }
            }
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 && passed > 140 ? 0 : 1);
    }

    /** asks: the request of the file, to this replica. */
    private static List<Map<String, Object>> steps(Map<String, Object> content,
            Map<String, Object> transcript) {
        List<Object> all = new ArrayList<>();
        if (transcript.containsKey("begins")) {
            all.addAll((List<?>) content.get(transcript.get("begins")));
        }
        all.addAll((List<?>) transcript.get("steps"));
        List<Map<String, Object>> steps = new ArrayList<>();
        for (Object one : all) {
            Map<String, Object> step = new LinkedHashMap<>(Json.object(one));
            if (step.containsKey("asks")) {
                Map<String, Object> whole = new LinkedHashMap<>(Json.object(content.get("request")));
                whole.put("server", step.remove("asks"));
                whole.putAll(step);
                step = whole;
            }
            steps.add(step);
        }
        return steps;
    }

    static void expect(boolean is, Object what) {
        if (!is) {
            throw new AssertionError(String.valueOf(what));
        }
    }

    /** What a talk returns, or throws. */
    interface Told {
        Object by(Step.Performer steps) throws InterruptedException;
    }

    /** A talk, in a thread that runs only while the player waits for its next step. */
    static final class Running {
        private static final Object NOTHING = new Object();
        private final SynchronousQueue<Object> wanted = new SynchronousQueue<>();
        private final SynchronousQueue<Object> given = new SynchronousQueue<>();
        Step now; // null: it has ended
        Object result;
        RuntimeException error;
        boolean isOver; // and the transcript knows
        Map<String, Object> asked;
        String url;
        double sentMs;

        Running(Told talk) {
            Thread thread = new Thread(() -> {
                try {
                    result = talk.by(step -> {
                        wanted.put(step);
                        Object answer = given.take();
                        return answer == NOTHING ? null : (Answer) answer;
                    });
                } catch (RuntimeException e) { // which the transcript names
                    error = e;
                } catch (InterruptedException e) {
                    error = new IllegalStateException(e);
                }
                try {
                    wanted.put(NOTHING);
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            });
            thread.setDaemon(true);
            thread.start();
            next();
        }

        private void next() {
            try {
                Object step = wanted.take();
                now = step == NOTHING ? null : (Step) step;
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }

        void send(Answer answer) {
            try {
                given.put(answer == null ? NOTHING : answer);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            next();
        }
    }

    /** Keeps the last warning. */
    static final class Warnings implements Logger {
        String last = "";

        @Override public String getName() {
            return "warnings";
        }

        @Override public boolean isLoggable(Level level) {
            return true;
        }

        @Override public void log(Level level, ResourceBundle bundle, String text, Throwable e) {
            log(level, bundle, text);
        }

        @Override public void log(Level level, ResourceBundle bundle, String text, Object... more) {
            if (level == Level.WARNING) {
                last = text;
            }
        }
    }

    /** Plays one transcript. */
    static final class Player {
        private static final Set<String> MEMBERS = Set.of("name", "why", "servers", "talk",
            "options", "begins", "steps");
        /** What a step may have beside its first word; of an end, anything. */
        private static final Map<String, Set<String>> STEPS = Map.ofEntries(
            Map.entry("send", Set.of("of", "server", "headers", "body", "timeout_ms", "wait_ms")),
            Map.entry("again", Set.of("of", "timeout_ms")),
            Map.entry("answer", Set.of("of", "after_ms", "body", "grant", "text", "retry_after",
                "overdue")),
            Map.entry("pause_ms", Set.of("of")), Map.entry("hold", Set.of()),
            Map.entry("leave", Set.of("of")), Map.entry("cancel", Set.of("gives_back")),
            Map.entry("pass_ms", Set.of()), Map.entry("choose", Set.of("probes")),
            Map.entry("failed", Set.of()), Map.entry("worked", Set.of()),
            Map.entry("probed", Set.of("works")), Map.entry("busy", Set.of()));
        private static final Map<Class<?>, String> ERRORS = Map.of(
            LockHeldException.class, "held", LockLostException.class, "lost",
            RateLimitedException.class, "rate_limited", UnavailableException.class, "unavailable",
            UntrustedException.class, "untrusted", UnauthorizedException.class, "unauthorized",
            ForbiddenException.class, "forbidden", RequestRefusedException.class, "refused");
        private static final Map<String, String> FAILURES = Map.of("lost", Answer.LOST, "unsent",
            Answer.UNSENT, "untrusted", Answer.UNTRUSTED);
        private static final double TIMEOUT_MS = 5000;

        private final Map<String, Object> transcript;
        private final Map<String, Object> options;
        private final Map<String, Object> grant;
        private final String kind;
        private final Replicas replicas;
        private final Talk talk;
        private final Warnings warnings = new Warnings();
        private final List<String> due = new ArrayList<>();
        private final Map<String, String> keys = new HashMap<>();
        private final Map<String, Running> running = new HashMap<>();
        private volatile double time = 1_000_000;
        private Hold hold;
        private Wanted wanted;
        private Attempt attempt;
        private volatile String version;
        private boolean isStale;
        private boolean isBusy; // with other requests

        Player(Map<String, Object> transcript, Map<String, Object> grant) {
            expect(MEMBERS.containsAll(transcript.keySet()), "an unknown member");
            this.transcript = transcript;
            this.grant = grant;
            options = Json.object(transcript.get("options"));
            kind = (String) transcript.get("talk");
            Clock.fake = () -> time;
            replicas = new Replicas(IntStream.range(0, number(transcript, "servers"))
                .mapToObj(Player::url).collect(Collectors.toList()));
            replicas.probe = due::add;
            talk = new Talk(replicas, TIMEOUT_MS, new Log(warnings));
            if (!grant.isEmpty()) {
                hold = new Hold(List.of("a"), Grant.read(response(200, Json.write(grant), "", time)));
            }
        }

        private static String url(Object number) {
            return "http://server-" + number;
        }

        private static int number(Map<String, Object> of, String name) {
            return ((Long) of.get(name)).intValue();
        }

        private static double ms(Map<String, Object> of, String name, double otherwise) {
            return of.containsKey(name) ? ((Number) of.get(name)).doubleValue() : otherwise;
        }

        private Answer response(int status, String content, String url, double sentMs) {
            Answer.Response response = new Answer.Response();
            response.status = status;
            response.content = content;
            response.isRepeated = isStale;
            return response.read(url, sentMs);
        }

        void play(List<Map<String, Object>> steps) {
            for (int i = 0; i < steps.size(); i++) {
                try {
                    take(steps.get(i));
                } catch (AssertionError | RuntimeException e) {
                    throw new AssertionError("step " + i + ", " + Json.write(steps.get(i)) + ": "
                        + e, e);
                }
            }
            running.forEach((name, one) -> expect(one.isOver, name + " did not end"));
        }

        private void take(Map<String, Object> step) {
            if (step.containsKey("end")) {
                end(step);
                return;
            }
            Set<String> words = new HashSet<>(step.keySet());
            words.retainAll(STEPS.keySet());
            expect(words.size() == 1, "an unknown step");
            String word = words.iterator().next();
            Set<String> others = new HashSet<>(step.keySet());
            others.remove(word);
            others.removeAll(STEPS.get(word));
            expect(others.isEmpty(), "an unknown member: " + others);
            switch (word) {
                case "send":
                    send(of(step), step);
                    break;
                case "again":
                    Map<String, Object> whole = new LinkedHashMap<>(of(step).asked);
                    whole.put("server", step.get("again"));
                    whole.putAll(step);
                    send(of(step), whole);
                    break;
                case "answer":
                    answer(of(step), step);
                    break;
                case "pause_ms":
                    pause(of(step), step.get("pause_ms"));
                    break;
                case "hold":
                    compare(state(hold), Json.object(step.get("hold")));
                    break;
                case "leave":
                    Running left = of(step);
                    skip(left);
                    expect(left.now != null, "it has ended");
                    left.isOver = true;
                    break;
                case "cancel":
                    cancel(of(step), step.get("gives_back"));
                    break;
                case "pass_ms":
                    time += number(step, "pass_ms");
                    break;
                case "busy":
                    isBusy = step.get("busy").equals(true);
                    break;
                default:
                    replica(word, step);
            }
        }

        // ---- the talks

        private Running of(Map<String, Object> step) {
            String name = (String) step.getOrDefault("of", kind);
            Running one = running.get(name);
            if (one == null || one.isOver) {
                one = new Running(told(name.split(" ")[0]));
                running.put(name, one);
            }
            return one;
        }

        private Told told(String what) {
            String resource = String.valueOf(options.get("resource"));
            switch (what) {
                case "acquire":
                    wanted = wanted();
                    Attempt own = new Attempt(wanted);
                    attempt = own;
                    return steps -> talk.acquire(wanted, own, steps);
                case "renew":
                    return this::renewing;
                case "extend":
                    return steps -> talk.extend(hold, (Long) options.get("ttl_ms"), steps);
                case "downgrade":
                    return steps -> {
                        talk.downgrade(hold, steps);
                        return null;
                    };
                case "release":
                    return steps -> {
                        talk.release(hold, false, steps);
                        return null;
                    };
                case "inspect":
                    return steps -> Optional.ofNullable(talk.holder(resource, steps));
                case "watch":
                    return steps -> {
                        Map<String, Object> of = talk.nextHolder(resource, version, steps);
                        version = String.valueOf(of.get("version"));
                        return Optional.ofNullable(Talk.isHeld(of) ? of : null);
                    };
                case "force":
                    return steps -> talk.force((String) options.get("id"),
                        String.valueOf(options.get("fencing_token")), steps);
                default:
                    throw new AssertionError("no talk " + what);
            }
        }

        private Wanted wanted() {
            LockRequest request = new LockRequest(null, ((List<?>) options.get("resources"))
                .stream().map(String::valueOf).collect(Collectors.toList()));
            Double waitMs = null;
            for (Map.Entry<String, Object> one : options.entrySet()) {
                switch (one.getKey()) {
                    case "resources":
                    case "permits":
                        break;
                    case "ttl_ms":
                        request.ttl(Duration.ofMillis((Long) one.getValue()));
                        break;
                    case "wait_ms":
                        waitMs = ms(options, "wait_ms", 0);
                        break;
                    case "owner":
                        request.owner((String) one.getValue());
                        break;
                    case "limit":
                        request.permits((int) ms(options, "permits", 1), number(options, "limit"));
                        break;
                    case "shared":
                        expect(one.getValue().equals(true), "shared");
                        request.shared();
                        break;
                    default:
                        throw new AssertionError("no option " + one.getKey());
                }
            }
            return new Wanted(request, waitMs);
        }

        /** Until each renewal, the lock waits. */
        private Object renewing(Step.Performer steps) throws InterruptedException {
            do {
                steps.perform(new Step.Pause(Math.max(0, hold.grant().renewAtMs - time)));
            } while (talk.extend(hold, null, steps));
            return null;
        }

        /** Pauses that are none. */
        private void skip(Running one) {
            while (one.now instanceof Step.Pause && ((Step.Pause) one.now).ms <= 1) {
                time += ((Step.Pause) one.now).ms;
                one.send(null);
            }
        }

        // ---- the steps

        private void send(Running one, Map<String, Object> step) {
            skip(one);
            one.asked = step;
            expect(one.now instanceof Step.Send, "no request: " + one.now + " " + one.error);
            Step.Send asked = (Step.Send) one.now;
            asked.tryFirstIf(isBusy);
            one.url = replicas.choose();
            one.sentMs = time;
            expect((asked.method + " " + asked.path).equals(step.get("send")), asked);
            expect(one.url.equals(url(step.get("server"))), one.url);
            expect(step.containsKey("body") ? step.get("body").equals(asked.content())
                : asked.content() == null, asked);
            expect(isClose(asked.timeoutMs, step.getOrDefault("timeout_ms", TIMEOUT_MS)), asked);
            expect(isClose(asked.waitsMs(), step.getOrDefault("wait_ms", 0)), asked);
            Map<String, Object> headers = Json.object(step.get("headers"));
            expect(headers.keySet().equals(asked.headers.keySet()), asked);
            headers.forEach((name, value) -> {
                String text = (String) value;
                String is = asked.headers.get(name);
                expect(is.equals(text.startsWith("$") ? keys.computeIfAbsent(text, key -> is)
                    : text), name + " is another one");
            });
            expect(new HashSet<>(keys.values()).size() == keys.size(), "the keys are the same");
        }

        private void answer(Running one, Map<String, Object> step) {
            time += ms(step, "after_ms", 0);
            expect(one.now instanceof Step.Send, "nothing was asked");
            boolean isOverdue = step.containsKey("overdue");
            if (isOverdue) {
                replicas.avoid(one.url);
            }
            Object is = step.get("answer");
            if (is.equals("stale")) { // the same request again, at once
                isStale = true;
                return;
            }
            if (is instanceof String) {
                expect(FAILURES.containsKey(is), "no answer " + is);
                one.send(Answer.failure(FAILURES.get(is), "", one.url, one.sentMs)
                    .after(isStale));
            } else {
                one.send(answered(one, step, ((Long) is).intValue(), isOverdue));
            }
            isStale = false;
        }

        private Answer answered(Running one, Map<String, Object> step, int status,
                boolean isOverdue) {
            Object body = step.get("body");
            if (step.containsKey("grant")) {
                Map<String, Object> changed = new LinkedHashMap<>(grant);
                changed.putAll(Json.object(step.get("grant")));
                body = changed;
            }
            expect(step.containsKey("text") || body != null, "an answer without a body");
            Answer.Response response = new Answer.Response();
            response.status = status;
            response.content = step.containsKey("text") ? (String) step.get("text")
                : Json.write(body);
            response.retryAfter = String.valueOf(step.getOrDefault("retry_after", ""));
            response.isRepeated = isStale;
            Answer answer = response.read(one.url, one.sentMs);
            if (answer.isGood() && !isOverdue) {
                replicas.works(one.url);
            }
            return answer;
        }

        private void pause(Running one, Object expected) {
            expect(one.now instanceof Step.Pause, "no pause: " + one.now + " " + one.error);
            double ms = ((Step.Pause) one.now).ms;
            expect(isClose(ms, expected), ms);
            time += ms;
            one.send(null);
        }

        private void cancel(Running one, Object givesBack) {
            expect(givesBack.equals(attempt.mayBeGranted()), "gives_back");
            one.isOver = true;
            if (attempt.mayBeGranted()) {
                running.put(kind, new Running(steps -> {
                    talk.giveBack(wanted, attempt, null, steps);
                    return null;
                }));
            }
        }

        private void replica(String word, Map<String, Object> step) {
            String url = url(step.get(word));
            switch (word) {
                case "choose":
                    due.clear();
                    expect(replicas.choose().equals(url), "another one");
                    expect(due.equals(((List<?>) step.getOrDefault("probes", List.of())).stream()
                        .map(Player::url).collect(Collectors.toList())), due);
                    break;
                case "failed":
                    replicas.avoid(url);
                    break;
                case "worked":
                    replicas.works(url);
                    break;
                default:
                    Running probe = new Running(steps -> {
                        talk.probe(url, steps);
                        return null;
                    });
                    expect(((Step.Send) probe.now).path.equals("/readyz"), "no probe");
                    probe.send(response(step.get("works").equals(true) ? 200 : 503, "{}", url,
                        time));
            }
        }

        // ---- how it ends

        private void end(Map<String, Object> step) {
            Running one = of(step);
            skip(one);
            expect(one.now == null, "it goes on: " + one.now);
            Map<String, Object> says = new LinkedHashMap<>();
            String is = outcome(one, says);
            expect(is.equals(step.get("end")), is + ": " + one.error);
            Map<String, Object> more = new LinkedHashMap<>(step);
            more.keySet().removeAll(Set.of("end", "of"));
            compare(says, more);
            one.isOver = true;
        }

        private String outcome(Running one, Map<String, Object> says) {
            if (one.error != null) {
                expect(ERRORS.containsKey(one.error.getClass()), one.error);
                says.putAll(members(one.error));
                return ERRORS.get(one.error.getClass());
            }
            if (warnings.last.contains("not released")) {
                return "not_released";
            }
            if (one.result instanceof Grant) {
                says.putAll(state(new Hold(List.of("a"), (Grant) one.result)));
                return "granted";
            }
            if (one.result instanceof Optional) {
                if (!((Optional<?>) one.result).isPresent()) {
                    return "free";
                }
                HeldLock held = new HeldLock(Json.object(((Optional<?>) one.result).get()));
                says.putAll(holder(held.owner(), held.fencingToken(), held.readers(),
                    held.remaining()));
                says.put("id", held.id());
                says.put("resources", held.resources());
                says.put("waiters", (long) held.waiters());
                says.put("slots", longs(held.slots()));
                says.put("version", held.version().orElse(null));
                return "holder";
            }
            return Boolean.FALSE.equals(one.result) ? "free" : "done";
        }

        private static Map<String, Object> members(RuntimeException error) {
            Map<String, Object> says = new LinkedHashMap<>();
            if (error instanceof LockHeldException) {
                LockHeldException held = (LockHeldException) error;
                return holder(held.owner(), held.fencingToken(), held.readers(),
                    held.remaining());
            }
            if (error instanceof RequestRefusedException) {
                says.put("status", (long) ((RequestRefusedException) error).status());
                says.put("code", ((RequestRefusedException) error).code());
            }
            if (error instanceof RateLimitedException) {
                says.put("retry_after_ms",
                    ((RateLimitedException) error).retryAfter().toMillis());
            }
            return says;
        }

        private static Map<String, Object> holder(Optional<String> owner, OptionalLong token,
                int readers, Optional<Duration> remaining) {
            Map<String, Object> says = new LinkedHashMap<>();
            says.put("owner", owner.orElse(null));
            says.put("fencing_token", token.isPresent() ? (Long) token.getAsLong() : null);
            says.put("readers", (long) readers);
            says.put("remaining_ms", remaining.map(Duration::toMillis).orElse(null));
            return says;
        }

        private Map<String, Object> state(Hold of) {
            Map<String, Object> says = new LinkedHashMap<>();
            says.put("token", of.grant().token);
            says.put("slots", longs(of.slots));
            says.put("fencing_token", of.grant().fencingToken);
            says.put("shared", of.grant().isShared);
            says.put("work_ms", of.remainingMs());
            says.put("validity_ms", of.validityMs());
            says.put("renew_ms", Math.max(0, of.grant().renewAtMs - time));
            return says;
        }

        private static List<Long> longs(List<Integer> of) {
            return of.stream().map(Integer::longValue).collect(Collectors.toList());
        }

        private static void compare(Map<String, Object> says, Map<String, Object> expected) {
            expected.forEach((name, value) -> {
                expect(says.containsKey(name), "it has no " + name);
                Object is = says.get(name);
                expect(name.endsWith("_ms") && value != null && is != null
                    ? isClose(((Number) is).doubleValue(), value)
                    : is == null ? value == null : is.equals(value), name + " is " + is);
            });
        }

        /** An exact time may be rounded; a range is of times drawn at random. */
        private static boolean isClose(double actual, Object expected) {
            List<?> limits = expected instanceof List ? (List<?>) expected
                : List.of(expected, expected);
            return actual >= ((Number) limits.get(0)).doubleValue() - 1
                && actual <= ((Number) limits.get(1)).doubleValue() + 1;
        }
    }

    /** Plays which operations go together. */
    static final class Together {
        private static final Map<String, Set<String>> STEPS = Map.of("ask",
            Set.of("operation", "wait_ms", "must_wait", "urgent", "more"), "leaves",
            Set.of("wait_ms", "batch"), "lands", Set.of("answer", "results", "told", "stale"), "overdue",
            Set.of(), "gives_up", Set.of());

        private final Coalescer coalescer = new Coalescer();
        private final Map<String, Coalescer.Operation> operations = new LinkedHashMap<>();
        private final List<Coalescer.Operation> requested = new ArrayList<>(); // in one moment
        private final List<Coalescer.Flight> departing = new ArrayList<>();
        private final List<Coalescer.Flight> underWay = new ArrayList<>();
        private final Set<String> gone = new HashSet<>();

        void play(List<Map<String, Object>> steps) {
            for (int i = 0; i < steps.size(); i++) {
                try {
                    take(steps.get(i));
                } catch (AssertionError | RuntimeException e) {
                    throw new AssertionError("step " + i + ", " + Json.write(steps.get(i)) + ": "
                        + e, e);
                }
            }
            expect(departing.isEmpty(), "more leaves");
        }

        private void take(Map<String, Object> step) {
            Set<String> words = new HashSet<>(step.keySet());
            words.retainAll(STEPS.keySet());
            expect(words.size() == 1, "an unknown step");
            String word = words.iterator().next();
            expect(step.keySet().stream().allMatch(
                one -> one.equals(word) || STEPS.get(word).contains(one)), "an unknown member");
            if (word.equals("leaves")) {
                leaves(step);
                return;
            }
            expect(departing.isEmpty(), "more leaves");
            String name = (String) step.get(word);
            switch (word) {
                case "ask":
                    ask(name, step);
                    break;
                case "lands":
                    lands(flight(name), step);
                    break;
                case "overdue":
                    departing.addAll(coalescer.left(flight(name)));
                    break;
                default:
                    coalescer.abandon(operations.get(name));
                    gone.add(name);
            }
        }

        private void ask(String name, Map<String, Object> step) {
            Map<String, Object> of = Json.object(step.get("operation"));
            Step.Send send;
            if (of.get("operation").equals("acquire")) {
                LockRequest request = new LockRequest(null, of.containsKey("resources")
                    ? ((List<?>) of.get("resources")).stream().map(String::valueOf)
                        .collect(Collectors.toList()) : List.of((String) of.get("resource")));
                if (of.containsKey("limit")) {
                    request.permits(1, ((Long) of.get("limit")).intValue());
                }
                if (of.containsKey("mode")) {
                    request.shared();
                }
                send = new Attempt(new Wanted(request, null)).ask(Player.TIMEOUT_MS,
                    Player.ms(step, "wait_ms", 0));
                send.isPatient = step.containsKey("must_wait");
            } else {
                Hold hold = hold(of);
                send = of.get("operation").equals("release")
                    ? Step.Send.release(hold, Player.TIMEOUT_MS)
                    : Step.Send.extend(hold, Map.of("ttl_ms", of.get("ttl_ms")), Player.TIMEOUT_MS);
                send.isUrgent = step.containsKey("urgent");
            }
            Map<String, Object> item = new LinkedHashMap<>(send.item());
            item.remove("idempotency_key");
            item.remove("permits");
            expect(item.equals(of), item);
            operations.put(name, new Coalescer.Operation(send));
            requested.add(operations.get(name));
            if (!step.containsKey("more")) {
                departing.addAll(coalescer.add(requested));
                requested.clear();
            }
        }

        private static Hold hold(Map<String, Object> of) {
            Answer.Response response = new Answer.Response();
            response.status = 201;
            response.content = Json.write(Map.of("id", of.get("id"), "token", of.get("token"),
                "fencing_token", 1L, "ttl_ms", 10_000L, "elapsed_ms", 0L, "validity_ms", 9900L,
                "renew_after_ms", 3000L));
            return new Hold(List.of((String) of.get("id")), Grant.read(response.read("", 0)));
        }

        private List<String> names(Coalescer.Flight flight) {
            return flight.operations.stream().map(one -> operations.entrySet().stream()
                .filter(entry -> entry.getValue() == one).findFirst().orElseThrow().getKey())
                .collect(Collectors.toList());
        }

        private Coalescer.Flight flight(String first) {
            return underWay.stream().filter(one -> names(one).get(0).equals(first)).findFirst()
                .orElseThrow();
        }

        private void leaves(Map<String, Object> step) {
            expect(!departing.isEmpty(), "nothing leaves");
            Coalescer.Flight flight = departing.remove(0);
            underWay.add(flight);
            expect(names(flight).equals(step.get("leaves")), names(flight));
            boolean isBatch = flight.operations.size() > 1 || step.containsKey("batch");
            expect(flight.isBatch == isBatch, "a batch: " + flight.isBatch);
            Step.Send send = flight.send();
            expect(send.path.equals("/batch") == isBatch, send);
            expect(send.waitsMs() == Player.ms(step, "wait_ms", 0), send);
            expect(!isBatch || ((List<?>) Json.object(Json.read(Json.write(send.content())))
                .get("operations")).size() == flight.operations.size(), send);
        }

        private void lands(Coalescer.Flight flight, Map<String, Object> step) {
            underWay.remove(flight);
            Map<String, Object> told = new LinkedHashMap<>();
            coalescer.landed(flight, came(step)).forEach((operation, answer) ->
                operations.forEach((name, one) -> {
                    if (one == operation && !gone.contains(name)) {
                        told.put(name, (long) answer.status);
                        operation.response.complete(answer);
                    }
                }));
            expect(told.equals(step.get("told")), told);
            departing.addAll(coalescer.left(flight));
        }

        private static Answer came(Map<String, Object> step) {
            if (step.get("answer").equals("lost")) {
                return Answer.failure(Answer.LOST, "", "", 0);
            }
            Answer.Response response = new Answer.Response();
            response.status = ((Long) step.get("answer")).intValue();
            response.content = step.containsKey("results") ? Json.write(Map.of("results",
                ((List<?>) step.get("results")).stream().map(status -> Map.of("status", status,
                    (Long) status >= 400 ? "problem" : "grant", Map.of("code", "so")))
                    .collect(Collectors.toList()))) : "{}";
            response.isRepeated = step.containsKey("stale");
            return response.read("", 0);
        }
    }
}
