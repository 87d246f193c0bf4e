// SPDX-License-Identifier: MIT
package org.redlockd;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** What a talk wants to be done: a Send or a Pause. */
abstract class Step {
    /** Does what a talk wants. Returns what a Send came to; of a Pause: null. */
    interface Performer {
        Answer perform(Step step) throws InterruptedException;
    }

    /** How others may use the resources of an operation in the same batch. */
    enum Claim {
        EXCLUSIVE, SHARED, PERMITS
    }

    /** A request. An acquire, an extend or a release is also an operation of a batch. */
    static final class Send extends Step {
        static final String ACQUIRE = "acquire";

        final String method;
        final String path;
        final Map<String, String> headers;
        final double timeoutMs; // for the connection, and for the response
        double waitMs; // how much later the response may come, as the server waits
        String url; // of the replica; null: of the first that is not avoided

        final String operation; // null: it is in no batch, and beside all others
        List<String> resources = List.of();
        Claim claim = Claim.EXCLUSIVE;
        boolean isUrgent; // it waits for no other request
        boolean isPatient; // a try has found the lock held
        private final Map<String, Object> body; // null: none
        private String id; // null: the lock is to be acquired

        // the performer says:
        boolean isTry; // it was sent without its wait, beside others
        boolean isUnsent; // it was interrupted before that
        /** It was interrupted, and is under way with others: its response; otherwise null. */
        CompletableFuture<Answer> later;

        private Send(String operation, String method, String path, Map<String, String> headers,
            Map<String, Object> body, double timeoutMs) {
            this.operation = operation;
            this.method = method;
            this.path = path;
            this.headers = headers;
            this.body = body;
            this.timeoutMs = timeoutMs;
        }

        /** One that is no operation. */
        Send(String method, String path, double timeoutMs) {
            this(null, method, path, Map.of(), null, timeoutMs);
        }

        static Send acquire(Wanted wanted, String key, Map<String, Object> body,
                double timeoutMs) {
            Send send = new Send(ACQUIRE, "POST", "/locks", Map.of("Idempotency-Key", key), body,
                timeoutMs);
            send.resources = wanted.resources;
            send.claim = wanted.isShared ? Claim.SHARED
                : wanted.limit != null ? Claim.PERMITS : Claim.EXCLUSIVE;
            return send;
        }

        static Send extend(Hold hold, Map<String, Object> body, double timeoutMs) {
            return of(hold, "extend", "PUT", "/extend", body, timeoutMs);
        }

        static Send release(Hold hold, double timeoutMs) {
            return of(hold, "release", "DELETE", "", null, timeoutMs);
        }

        private static Send of(Hold hold, String operation, String method, String end,
                Map<String, Object> body, double timeoutMs) {
            Grant grant = hold.grant();
            Send send = new Send(operation, method, "/locks/" + grant.id + end,
                Map.of("X-Lock-Token", grant.token), body, timeoutMs);
            send.id = grant.id;
            send.resources = hold.resources;
            send.claim = grant.isShared ? Claim.SHARED : Claim.EXCLUSIVE;
            return send;
        }

        /** The same operations in one request: items are JSON. */
        static Send batch(List<String> items, double timeoutMs) {
            return new Send(null, "POST", "/batch", Map.of(),
                Map.of("operations", new Json.Written("[" + String.join(",", items) + "]")),
                timeoutMs);
        }

        String token() {
            return headers.get("X-Lock-Token");
        }

        /** An acquire that would wait goes without its wait first. */
        void tryFirstIf(boolean isBesideOthers) {
            isTry = waitMs > 0 && operation != null && !isPatient && isBesideOthers;
        }

        /** How long the server waits. */
        double waitsMs() {
            return isTry ? 0 : waitMs;
        }

        boolean wants(String member) {
            return body.containsKey(member);
        }

        /** The body of its single call; null: none. */
        Map<String, Object> content() {
            if (operation == null || waitsMs() <= 0) {
                return body;
            }
            Map<String, Object> content = new LinkedHashMap<>(body);
            content.put("wait_ms", (long) waitMs);
            return content;
        }

        /** As an operation of a batch. */
        Map<String, Object> item() {
            Map<String, Object> item = new LinkedHashMap<>();
            item.put("operation", operation);
            if (id == null) {
                item.put("idempotency_key", headers.get("Idempotency-Key"));
            } else {
                item.put("id", id);
                item.put("token", token());
            }
            if (body != null) {
                item.putAll(body);
            }
            return item;
        }

        @Override public String toString() { // without tokens and keys, which are secrets
            return method + " " + path + " " + headers.keySet() + " "
                + (operation == null ? "" : content()) + " timeout " + timeoutMs + " wait "
                + waitsMs();
        }
    }

    /** Nothing, for so long. */
    static final class Pause extends Step {
        final double ms;

        Pause(double ms) {
            this.ms = ms;
        }

        @Override public String toString() {
            return "pause " + ms;
        }
    }
}
