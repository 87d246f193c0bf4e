// SPDX-License-Identifier: MIT
package org.redlockd;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What a request came to: a response, or that there is none. */
final class Answer {
    static final String MAX_HOLD = "max_hold_reached";
    // codes of this package, where there is no response
    static final String LOST = "no_response";
    static final String UNSENT = "unsent";
    static final String UNTRUSTED = "untrusted";

    private static final Set<String> ENDED = Set.of("lock_not_found", "not_owner");
    private static final Set<String> HELD = Set.of("lock_held", "too_many_readers");
    private static final int LONGEST_TYPE = 80;
    private static final int MISDIRECTED = 421;

    final int status; // 0: there is no response
    final Map<String, Object> body;
    final String url;
    final double sentMs; // the moment before the request was sent
    /**
     * The request may have arrived twice, as a kept connection had ended before the response.
     */
    final boolean isRepeated;
    private final String contentType;

    private Answer(int status, Map<String, Object> body, String url, double sentMs,
        boolean isRepeated, String contentType) {
        this.status = status;
        this.body = body;
        this.url = url;
        this.sentMs = sentMs;
        this.isRepeated = isRepeated;
        this.contentType = contentType;
    }

    static Answer failure(String code, String detail, String url, double sentMs) {
        return new Answer(0, Map.of("code", code, "detail", detail), url, sentMs, false, "");
    }

    /** The same, but the request may have been carried out before, if it went out twice. */
    Answer after(boolean wasSent) {
        return new Answer(status, body, url, sentMs, isRepeated || wasSent, contentType);
    }

    /** A response as it came: its content may be no JSON, as a proxy may have answered. */
    static final class Response {
        int status;
        String content = "";
        String contentType = "";
        String retryAfter = "";
        boolean isRepeated;

        Answer read(String url, double sentMs) {
            Map<String, Object> body;
            try {
                body = new LinkedHashMap<>(Json.object(Json.read(content)));
            } catch (IllegalArgumentException e) {
                body = new LinkedHashMap<>();
            }
            if (retryAfter.matches("\\d{1,9}")) {
                body.putIfAbsent("retry_after_ms", 1000 * Long.parseLong(retryAfter));
            }
            return new Answer(status, body, url, sentMs, isRepeated, contentType);
        }
    }

    /** Of an operation, within the response to its batch. */
    Answer result(Map<String, Object> of) {
        Map<String, Object> own = Map.of();
        for (String kind : List.of("grant", "release", "problem")) {
            own = of.get(kind) instanceof Map ? Json.object(of.get(kind)) : own;
        }
        if (own.isEmpty() || !(of.get("status") instanceof Long)) {
            return failure(LOST, "the response to a batch has not one for each operation", url,
                sentMs);
        }
        return new Answer(((Long) of.get("status")).intValue(), own, url, sentMs, isRepeated,
            contentType);
    }

    String code() {
        return body.get("code") instanceof String ? (String) body.get("code") : "";
    }

    /** Not below 0; 0: there is none. */
    double number(String member) {
        Object value = body.get(member);
        return value instanceof Number ? Math.max(0, ((Number) value).doubleValue()) : 0;
    }

    /** Whether the request is wrong, here and at every other replica. */
    boolean isFinal() {
        return status >= 300 && status <= 499 && status != 408 && status != 429;
    }

    /** By redlockd or by a gateway in front. Another replica may know other identities. */
    boolean isDenial() {
        return status == 401 || status == 403 || code().equals(UNTRUSTED);
    }

    /**
     * Of a batch: whether the server takes none, or not this one, which says nothing about its
     * operations.
     */
    boolean refusesBatch() {
        return isFinal() && !isDenial() && status != MISDIRECTED;
    }

    boolean isLimit() {
        return status == 429;
    }

    /** Whether the server that gave it works. */
    boolean isGood() {
        return status >= 200 && status <= 499 && status != 408 && !isLimit() && !isDenial();
    }

    /** Whether others hold the lock, and it can be waited for. */
    boolean isHeld() {
        return HELD.contains(code());
    }

    boolean isEnded() {
        return ENDED.contains(code());
    }

    /** Whether an acquire with this response certainly was not granted. */
    boolean grantsNothing() {
        return !isRepeated && (isFinal() || isDenial() || isLimit() || code().equals(UNSENT));
    }

    /** Whether it is what was asked for, and no page of a proxy. */
    boolean has(String member) {
        return status == 200 && body.containsKey(member);
    }

    double retryAfterMs() {
        return number("retry_after_ms");
    }

    /** Whether something else than redlockd has refused it, whose problems have a code. */
    boolean isFromElsewhere() {
        return status >= 300 && code().isEmpty();
    }

    @Override public String toString() {
        String detail = body.get("detail") instanceof String ? (String) body.get("detail") : "";
        if (isFromElsewhere()) {
            String kind = contentType.replaceAll("[^ -~]", "?");
            kind = kind.substring(0, Math.min(LONGEST_TYPE, kind.length()));
            detail = "not from redlockd (" + (kind.isEmpty() ? "no Content-Type" : kind) + ")";
        }
        return ((status > 0 ? status + " " : "") + detail).trim();
    }
}
