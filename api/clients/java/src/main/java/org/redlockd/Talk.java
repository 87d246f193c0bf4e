// SPDX-License-Identifier: MIT
package org.redlockd;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What is asked of redlockd, and when, without I/O: the rules of docs/client-authors.md.
 *
 * <p>Each talk calls its Performer with what to do next. It returns when it is done, or throws.
 */
final class Talk {
    private static final double BACKOFF_FIRST_MS = 50;
    private static final double BACKOFF_LAST_MS = 2000;
    // a response to a watch that reports nothing new should take its time
    private static final double POLL_MS = 1000;
    private static final int PROBE_TIMEOUT_MS = 1000;
    /** An extend with less time left waits for no other request. */
    private static final double URGENT_MS = 1000;

    private final Replicas replicas;
    private final double timeoutMs;
    private final Log log;

    Talk(Replicas replicas, double timeoutMs, Log log) {
        this.replicas = replicas;
        this.timeoutMs = timeoutMs;
        this.log = log;
    }

    // ---- one's own lock ------------------------------------------------------------------------

    /** Asks until the lock is held or the time is up. */
    Grant acquire(Wanted wanted, Attempt attempt, Step.Performer steps)
            throws InterruptedException {
        double deadlineMs = wanted.waitMs == null ? Double.POSITIVE_INFINITY
            : Clock.nowMs() + wanted.waitMs;
        int failures = 0;
        int denials = 0;
        while (true) {
            Answer answer = steps.perform(attempt.ask(timeoutMs, deadlineMs - Clock.nowMs()));
            Grant grant = Grant.read(answer);
            if (grant != null && grant.workUntilMs > Clock.nowMs()) {
                return grant;
            }
            boolean wasTry = attempt.read(answer);
            double leftMs = Math.max(0, deadlineMs - Clock.nowMs());
            denials = answer.isDenial() ? denials + 1 : 0;
            if (answer.isHeld()) {
                if (leftMs <= 0) {
                    throw held(wanted, answer);
                }
                if (wasTry) {
                    attempt.waitFromNowOn();
                } else if (answer.number("waited_ms") == 0) { // it did not wait
                    double delayMs = answer.retryAfterMs();
                    steps.perform(new Step.Pause(Math.min(leftMs,
                        delayMs > 0 ? delayMs : backoffMs(0, null))));
                }
            } else if (answer.isDenial()) {
                replicas.avoid(answer.url);
                if (denials >= replicas.size()) {
                    throw denial(wanted.name(), answer);
                }
            } else if (answer.isFinal()) {
                throw refusal(wanted.name(), answer);
            } else {
                failures++;
                // each replica once, and one of them again
                if (leftMs <= 0 && failures > replicas.size()) {
                    throw unavailable(wanted.name() + ": no server grants it", answer);
                }
                replicas.avoid(answer.url);
                String text = wanted.name() + ": not acquired yet, trying again (" + why(answer)
                    + ")";
                if (failures == 1) {
                    log.warning(text);
                } else {
                    log.info(text);
                }
                steps.perform(new Step.Pause(Math.min(pauseMs(failures, answer), leftMs)));
            }
        }
    }

    /**
     * Of an acquire that was given up: releases what it may have been granted. came: the response
     * to its last request, if that was waited for; otherwise null.
     */
    void giveBack(Wanted wanted, Attempt attempt, Answer came, Step.Performer steps)
            throws InterruptedException {
        if (came != null && came.grantsNothing()) {
            return;
        }
        boolean wasLost = false;
        int failures = 0;
        Answer last = came != null && Grant.read(came) != null ? came : null;
        while (failures <= replicas.size()) {
            Answer answer = last != null ? last : steps.perform(attempt.askAgain(timeoutMs));
            last = null;
            Grant grant = Grant.read(answer);
            if (grant != null) {
                try {
                    release(new Hold(wanted.resources, grant), false, steps);
                    return;
                } catch (LockLostException e) {
                    // the request that was given up may have come later than this one, and have
                    // taken its place
                    if (wasLost) {
                        return;
                    }
                    wasLost = true;
                    continue;
                }
            }
            if (answer.isFinal() && !answer.isDenial()) {
                return; // others hold it: nothing was granted
            }
            replicas.avoid(answer.url);
            failures++;
            if (failures <= replicas.size()) {
                steps.perform(new Step.Pause(backoffMs(failures, null)));
            }
        }
        log.warning(wanted.name()
            + ": cancelled, and not released: it may be held until its TTL ends");
    }

    /**
     * Returns whether the lock was extended; false: it cannot be, and expires. Throws
     * LockLostException if it is lost. ttlMs: null: a renewal. Otherwise servers may refuse it,
     * which throws, and renewals then have this TTL, too.
     */
    boolean extend(Hold hold, Long ttlMs, Step.Performer steps) throws InterruptedException {
        Step.Send asked = extension(hold, ttlMs);
        return extend(hold, ttlMs, asked, steps.perform(asked), steps);
    }

    /** The first request of a renewal, whose response goes to renew(). */
    Step.Send renewal(Hold hold) {
        return extension(hold, null);
    }

    /** extend() without a TTL, from the response to the first request on. */
    boolean renew(Hold hold, Step.Send first, Answer came, Step.Performer steps)
            throws InterruptedException {
        return extend(hold, null, first, came, steps);
    }

    private boolean extend(Hold hold, Long ttlMs, Step.Send first, Answer came,
            Step.Performer steps) throws InterruptedException {
        int failures = 0;
        int refusals = 0;
        Step.Send asked = first;
        Answer answer = came;
        for (;; asked = extension(hold, ttlMs), answer = steps.perform(asked)) {
            Grant grant = Grant.read(answer);
            if (grant != null) {
                hold.extended(grant);
                return true;
            }
            if (asked.wants("mode") != hold.wantsShared) {
                continue; // the token may have changed meanwhile
            }
            if (answer.isEnded()) {
                throw new LockLostException(hold.name + ": the lock ended (" + answer + ")");
            }
            if (answer.code().equals(Answer.MAX_HOLD)) {
                log.warning(hold.name + ": no longer extended (" + answer + ")");
                if (ttlMs != null) {
                    throw refusal(hold.name, answer);
                }
                return false;
            }
            if (ttlMs != null && answer.isFinal()
                    && !(answer.isRepeated && hold.isDowngrading())) {
                refusals++;
                if (refusals == failures + 1 && refusals >= replicas.size()) {
                    throw refusal(hold.name, answer);
                }
            }
            failures++;
            replicas.avoid(answer.url);
            log.warning(hold.name + ": not extended yet (" + why(answer) + ")");
            steps.perform(new Step.Pause(
                Math.min(pauseMs(failures, answer), hold.remainingMs() / 4)));
        }
    }

    /** Throws LockLostException if there is no time left for it. */
    private Step.Send extension(Hold hold, Long ttlMs) {
        double leftMs = hold.remainingMs();
        if (leftMs <= 0) {
            throw hold.late();
        }
        // read first: requested with either token, a server finds the lock in either mode
        boolean wantsShared = hold.wantsShared;
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("ttl_ms", ttlMs == null ? (Long) hold.grant().ttlMs : ttlMs);
        if (wantsShared) {
            body.put("mode", "shared");
        }
        // Connection and response together take at most half of what is left: so another replica
        // can be asked.
        Step.Send send = Step.Send.extend(hold, body, Math.min(timeoutMs, leftMs / 4));
        send.isUrgent = leftMs < URGENT_MS;
        return send;
    }

    /**
     * Makes an exclusive lock a shared one. If this is interrupted, the next renewal does it.
     */
    void downgrade(Hold hold, Step.Performer steps) throws InterruptedException {
        if (hold.grant().isShared) {
            return;
        }
        hold.wantsShared = true;
        try {
            extend(hold, hold.grant().ttlMs, steps);
        } catch (RequestRefusedException e) {
            if (!e.code().equals(Answer.MAX_HOLD)) {
                hold.wantsShared = false; // no server has begun it
            }
            throw e;
        }
    }

    /**
     * Throws LockLostException if the lock had ended. If no server answers, that is only logged:
     * the lock expires, and other clients wait for that long. mayBeDone: by a request that was
     * interrupted.
     */
    void release(Hold hold, boolean mayBeDone, Step.Performer steps) throws InterruptedException {
        hold.isReleased = true;
        boolean mayBe = mayBeDone;
        for (int failures = 1;; failures++) {
            Answer answer = steps.perform(Step.Send.release(hold, timeoutMs));
            if (answer.status == 200) {
                return;
            }
            if (answer.isEnded()) {
                if (mayBe || answer.isRepeated) {
                    return; // that may have been our own release
                }
                throw new LockLostException(hold.name + ": the lock had ended (" + answer + ")");
            }
            mayBe |= answer.isRepeated || !(answer.isDenial() || answer.isLimit()
                || answer.code().equals(Answer.UNSENT));
            replicas.avoid(answer.url);
            double leftMs = hold.validityMs();
            if (leftMs <= 0 || failures > replicas.size()) {
                log.warning(hold.name + ": not released; it expires in "
                    + Math.round(leftMs) + " ms (" + answer + ")");
                return;
            }
            steps.perform(new Step.Pause(Math.min(leftMs,
                pauseMs(failures, answer.isLimit() ? answer : null))));
        }
    }

    // ---- any lock ------------------------------------------------------------------------------

    /**
     * Asks each replica once, and one of them again, until one returns something else than a
     * failure of its own: an object with this member, or a problem.
     */
    private Answer ask(String method, String path, String member, Step.Performer steps)
            throws InterruptedException {
        String what = method + " " + path;
        int failures = 0;
        int denials = 0;
        while (true) {
            Answer answer = steps.perform(new Step.Send(method, path, timeoutMs));
            denials = answer.isDenial() ? denials + 1 : 0;
            if (denials >= replicas.size()) {
                throw denial(what, answer);
            }
            if (denials == 0 && (answer.isFinal() || answer.has(member))) {
                return answer;
            }
            failures++;
            replicas.avoid(answer.url);
            if (failures > replicas.size()) {
                throw unavailable(what, answer);
            }
            if (denials == 0) {
                steps.perform(new Step.Pause(backoffMs(0, null)));
            }
        }
    }

    /** The body of a good response. */
    Map<String, Object> get(String what, String path, String member, Step.Performer steps)
            throws InterruptedException {
        Answer answer = ask("GET", path, member, steps);
        if (answer.status != 200) {
            throw refusal(what, answer);
        }
        return answer.body;
    }

    /** The lock as GET /locks/(id) describes it; null: nobody holds it. */
    Map<String, Object> holder(String resource, Step.Performer steps) throws InterruptedException {
        Map<String, Object> body = get(resource, "/locks/" + id(resource), "held", steps);
        return isHeld(body) ? body : null;
    }

    static boolean isHeld(Map<String, Object> body) {
        return Boolean.TRUE.equals(body.get("held"));
    }

    /**
     * Waits until the lock has another version than this; null: none is known. Goes on while
     * servers fail. Returns the lock as GET /locks/(id) describes it, held or not.
     */
    Map<String, Object> nextHolder(String resource, String version, Step.Performer steps)
            throws InterruptedException {
        boolean waits = version != null;
        int failures = 0;
        int denials = 0;
        while (true) {
            String query = waits ? "?after=" + version + "&wait_ms=" + Attempt.LONGEST_WAIT_MS : "";
            Step.Send send = new Step.Send("GET", "/locks/" + id(resource) + query, timeoutMs);
            send.waitMs = waits ? Attempt.LONGEST_WAIT_MS : 0;
            Answer answer = steps.perform(send);
            denials = answer.isDenial() ? denials + 1 : 0;
            if (denials > 0) {
                replicas.avoid(answer.url);
                if (denials >= replicas.size()) {
                    throw denial(resource, answer);
                }
            } else if (answer.has("version")) {
                failures = 0;
                waits = version != null;
                if (!String.valueOf(answer.body.get("version")).equals(version)) {
                    return answer.body;
                }
                steps.perform(new Step.Pause(
                    Math.max(0, answer.sentMs + POLL_MS - Clock.nowMs())));
            } else if (answer.isFinal()) {
                throw refusal(resource, answer);
            } else {
                failures++;
                replicas.avoid(answer.url);
                waits = false; // a server that does not wait, as it stops, may still answer
                steps.perform(new Step.Pause(pauseMs(failures, answer)));
            }
        }
    }

    /**
     * Returns whether there was something to release. fencingToken: "all": the locks of all
     * readers.
     */
    boolean force(String id, String fencingToken, Step.Performer steps)
            throws InterruptedException {
        Answer answer = ask("DELETE", "/locks/" + escaped(id) + "?force=" + fencingToken,
            "released", steps);
        if (answer.isEnded()) {
            return false;
        }
        if (answer.status != 200) {
            throw refusal(id, answer);
        }
        return true;
    }

    /** Whether a replica that failed is back. */
    void probe(String url, Step.Performer steps) throws InterruptedException {
        Step.Send send = new Step.Send("GET", "/readyz", PROBE_TIMEOUT_MS);
        send.url = url;
        Answer answer = steps.perform(send);
        replicas.probed(url, answer.status >= 200 && answer.status <= 499 && !answer.isLimit());
    }

    /** As the servers make it: any proxy passes it on unchanged. */
    static String id(String resource) {
        if (resource.matches("[A-Za-z0-9._:-]+") && !resource.matches("\\.\\.?")) {
            return resource;
        }
        return "~" + Base64.getUrlEncoder().withoutPadding()
            .encodeToString(resource.getBytes(StandardCharsets.UTF_8));
    }

    static String escaped(String text) {
        StringBuilder escaped = new StringBuilder();
        for (byte one : text.getBytes(StandardCharsets.UTF_8)) {
            char c = (char) (one & 0xff);
            escaped.append(Character.toString(c).matches("[A-Za-z0-9_.~:-]") ? c
                : String.format("%%%02X", (int) c));
        }
        return escaped.toString();
    }

    // ---- pauses and errors ---------------------------------------------------------------------

    /** Random, so that clients that failed together do not try again together. */
    private static double backoffMs(int failures, Answer answer) {
        double longestMs = Math.min(BACKOFF_LAST_MS,
            BACKOFF_FIRST_MS * (1 << Math.min(failures, 10)));
        return Math.max(Clock.betweenMs(longestMs / 2, longestMs),
            answer == null ? 0 : answer.retryAfterMs());
    }

    /**
     * Another replica, which is asked next, need not be busy: what this one asks for counts only
     * once each has failed.
     */
    private double pauseMs(int failures, Answer answer) {
        return backoffMs(failures, failures % replicas.size() == 0 ? answer : null);
    }

    private static String why(Answer answer) {
        return Replicas.shown(answer.url) + ": " + answer;
    }

    /** A refusal that is not from redlockd says where it is from. */
    private static String refused(String what, Answer answer) {
        return what + ": " + answer
            + (answer.isFromElsewhere() ? " (from " + Replicas.shown(answer.url) + ")" : "");
    }

    private static RedlockdException denial(String what, Answer answer) {
        String text = refused(what, answer);
        switch (answer.status) {
            case 401:
                return new UnauthorizedException(text, 401, answer.code());
            case 403:
                return new ForbiddenException(text, 403, answer.code());
            default:
                return new UntrustedException(text);
        }
    }

    private static RedlockdException refusal(String what, Answer answer) {
        return answer.isDenial() ? denial(what, answer)
            : new RequestRefusedException(refused(what, answer), answer.status, answer.code());
    }

    private static RedlockdException unavailable(String what, Answer answer) {
        String text = what + " (" + why(answer) + ")";
        return answer.isLimit()
            ? new RateLimitedException(text, Duration.ofMillis((long) answer.retryAfterMs()))
            : new UnavailableException(text);
    }

    private static LockHeldException held(Wanted wanted, Answer answer) {
        if (wanted.limit != null) {
            return new LockHeldException(wanted.name() + ": not enough of its " + wanted.limit
                + " permits are free", Map.of());
        }
        Map<String, Object> of = Json.object(answer.body.get("held_by"));
        HeldLock holder = new HeldLock(of);
        int readers = holder.readers();
        String by = readers == 0 ? holder.owner().orElse("somebody else")
            : readers == 1 ? "a reader" : readers + " readers";
        return new LockHeldException(wanted.name() + ": the lock is held by " + by, of);
    }
}
