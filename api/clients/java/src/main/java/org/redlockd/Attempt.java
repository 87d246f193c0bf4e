// SPDX-License-Identifier: MIT
package org.redlockd;

import java.security.SecureRandom;
import java.util.Map;
import java.util.concurrent.ExecutionException;

/**
 * One acquire. All its requests have one key: if a response with a grant was lost, the next request
 * gets the same lock.
 */
final class Attempt {
    private static final SecureRandom RANDOM = new SecureRandom();
    static final int LONGEST_WAIT_MS = 10_000; // proxies may cut requests after 60 s

    /** By a request whose response does not say. */
    private boolean mayBeGranted;
    private Step.Send asked; // whose response is not read yet; null: none
    private boolean isPatient;
    private final Wanted wanted;
    private String key; // as secret as a token

    Attempt(Wanted wanted) {
        this.wanted = wanted;
        key = newKey();
    }

    private static String newKey() {
        return String.format("%016x%016x", RANDOM.nextLong(), RANDOM.nextLong());
    }

    Step.Send ask(double timeoutMs, double leftMs) {
        asked = Step.Send.acquire(wanted, key, wanted.body(), timeoutMs);
        asked.waitMs = (long) Math.max(0, Math.min(leftMs, LONGEST_WAIT_MS));
        asked.isPatient = isPatient;
        return asked;
    }

    /** The response to the last request is not used. Returns whether that was a try. */
    boolean read(Answer answer) {
        boolean wasTry = asked.isTry;
        asked = null;
        mayBeGranted |= !answer.grantsNothing();
        return wasTry;
    }

    /**
     * A try has found the lock held: from now on its requests wait, whatever else is under way.
     * They have another key, as a server undoes a request that waits if its client leaves, but not
     * a repeat; unless a grant of the old key may be on its way.
     */
    void waitFromNowOn() {
        isPatient = true;
        if (!mayBeGranted) {
            key = newKey();
        }
    }

    /** Of one that was given up: whether it has to be given back. */
    boolean mayBeGranted() {
        return mayBeGranted || asked != null && !asked.isUnsent;
    }

    /**
     * Of one that was given up: waits for the response to its last request, if that is under way
     * with others. null: there is none, or it does not say whether the lock is held.
     */
    Answer lastAnswer() throws InterruptedException {
        if (asked == null || asked.later == null) {
            return null;
        }
        try {
            Answer answer = asked.later.get();
            return mayBeGranted && answer.grantsNothing() ? null : answer;
        } catch (ExecutionException e) {
            throw new IllegalStateException(e);
        }
    }

    /** The same again, to find out whether it was granted. */
    Step.Send askAgain(double timeoutMs) {
        Map<String, Object> body = wanted.body();
        body.put("ttl_ms", 100L);
        return Step.Send.acquire(wanted, key, body, timeoutMs);
    }
}
