// SPDX-License-Identifier: MIT
package org.redlockd;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What to lock, and how: as LockRequest describes it. */
final class Wanted {
    final List<String> resources;
    final Long ttlMs; // null: the server's default
    final Double waitMs; // null: without a limit
    final String owner; // null: none
    final Integer limit; // how many permits the resource has; null: it is a lock
    final int permits;
    final boolean isShared;

    /** Throws IllegalArgumentException. */
    Wanted(LockRequest of, Double waitMs) {
        resources = of.resources;
        ttlMs = of.ttlMs;
        this.waitMs = waitMs;
        owner = of.owner;
        limit = of.limit;
        permits = of.permits;
        isShared = of.isShared;
        refuse(resources.isEmpty(), "name at least one resource");
        refuse(limit != null && resources.size() > 1, "a limit is of one resource");
        refuse(limit != null && isShared, "a permit has one holder: it cannot be shared");
    }

    private static void refuse(boolean is, String why) {
        if (is) {
            throw new IllegalArgumentException(why);
        }
    }

    String name() {
        return name(resources);
    }

    static String name(List<String> resources) {
        return String.join(", ", resources);
    }

    /** Of the request that asks for it. */
    Map<String, Object> body() {
        Map<String, Object> body = new LinkedHashMap<>();
        if (resources.size() > 1) {
            body.put("resources", resources);
        } else {
            body.put("resource", resources.get(0));
        }
        if (ttlMs != null) {
            body.put("ttl_ms", ttlMs);
        }
        if (owner != null) {
            body.put("owner", owner);
        }
        if (limit != null) {
            body.put("limit", (long) limit);
            body.put("permits", (long) permits);
        }
        if (isShared) {
            body.put("mode", "shared");
        }
        return body;
    }
}
