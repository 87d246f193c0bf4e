package org.redlockd;

import java.security.SecureRandom;
import java.util.Map;

/**
 * One acquire. All its requests have one key: if a response with a grant was lost, the next request
 * gets the same lock.
 */
final class Attempt {
    private static final SecureRandom RANDOM = new SecureRandom();
    static final int LONGEST_WAIT_MS = 10_000; // proxies may cut requests after 60 s

    /** By a request whose response does not say. */
    boolean mayBeGranted;
    /** A request is under way, or its grant is not yet used. */
    boolean isOpen;
    private final Wanted wanted;
    private final String key; // as secret as a token

    Attempt(Wanted wanted) {
        this.wanted = wanted;
        key = String.format("%016x%016x", RANDOM.nextLong(), RANDOM.nextLong());
    }

    Step.Send ask(double timeoutMs, double leftMs) {
        long waitMs = (long) Math.max(0, Math.min(leftMs, LONGEST_WAIT_MS));
        Map<String, Object> body = wanted.body();
        if (waitMs > 0) {
            body.put("wait_ms", waitMs);
        }
        isOpen = true;
        Step.Send send = request(body, timeoutMs);
        send.waitMs = waitMs;
        return send;
    }

    /** The same again, to find out whether it was granted. */
    Step.Send askAgain(double timeoutMs) {
        Map<String, Object> body = wanted.body();
        body.put("ttl_ms", 100L);
        return request(body, timeoutMs);
    }

    private Step.Send request(Map<String, Object> body, double timeoutMs) {
        return new Step.Send("POST", "/locks", Map.of("Idempotency-Key", key), body, timeoutMs);
    }
}
