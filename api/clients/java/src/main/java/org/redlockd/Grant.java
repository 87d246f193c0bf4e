// SPDX-License-Identifier: MIT
package org.redlockd;

import java.util.List;
import java.util.Map;

/** A lock as a response granted it. Moments are those of Clock, in milliseconds. */
final class Grant {
    final String id;
    final String token;
    final long fencingToken;
    final long ttlMs;
    final double renewAtMs;
    final double untilMs;
    final double workUntilMs;
    final List<Integer> slots;
    final boolean isShared;

    private Grant(Grant of, String token, double untilMs, double workUntilMs, boolean isShared) {
        id = of.id;
        fencingToken = of.fencingToken;
        ttlMs = of.ttlMs;
        renewAtMs = of.renewAtMs;
        slots = of.slots;
        this.token = token;
        this.untilMs = untilMs;
        this.workUntilMs = workUntilMs;
        this.isShared = isShared;
    }

    private Grant(Map<String, Object> of, double sentMs) {
        id = (String) of.get("id");
        token = (String) of.get("token");
        fencingToken = (Long) of.get("fencing_token");
        ttlMs = (Long) of.get("ttl_ms");
        double grantedMs = sentMs + (Long) of.get("elapsed_ms");
        renewAtMs = grantedMs + (Long) of.get("renew_after_ms");
        untilMs = grantedMs + (Long) of.get("validity_ms");
        workUntilMs = untilMs - ttlMs / 10.0; // a tenth of the TTL to end the work
        slots = Json.integers(of.get("slots"));
        isShared = "shared".equals(of.get("mode"));
    }

    /** null: it is no grant, or was cut off, or is not from redlockd. */
    static Grant read(Answer answer) {
        Map<String, Object> of = answer.body;
        boolean isGrant = answer.status == 200 || answer.status == 201;
        for (String name : List.of("fencing_token", "ttl_ms", "elapsed_ms", "validity_ms",
            "renew_after_ms")) {
            isGrant &= of.get(name) instanceof Long;
        }
        for (String name : List.of("id", "token")) { // they are sent back as they are
            isGrant &= of.get(name) instanceof String && ((String) of.get(name)).matches("[!-~]+");
        }
        return isGrant ? new Grant(of, answer.sentMs) : null;
    }

    /**
     * This grant after an extend. While a lock becomes a shared one, the response of a renewal may
     * come last, with the token from before. No response takes back what an earlier one promised.
     */
    Grant after(Grant before) {
        boolean isOlder = before.isShared && !isShared;
        return new Grant(this, isOlder ? before.token : token,
            Math.max(before.untilMs, untilMs), Math.max(before.workUntilMs, workUntilMs),
            isShared || isOlder);
    }

    @Override public String toString() { // without the token, a secret
        return "Grant " + id + " " + fencingToken;
    }
}
