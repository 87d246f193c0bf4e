package org.redlockd;

import java.util.Map;

/** What a talk wants to be done: a Send or a Pause. */
abstract class Step {
    /** Does what a talk wants. Returns what a Send came to; of a Pause: null. */
    interface Performer {
        Answer perform(Step step) throws InterruptedException;
    }

    /** A request. */
    static final class Send extends Step {
        final String method;
        final String path;
        final Map<String, String> headers;
        final Map<String, Object> body; // null: none
        final double timeoutMs; // for the connection, and for the response
        double waitMs; // how much later the response may come, as the server waits
        String url; // of the replica; null: of the first that is not avoided

        Send(String method, String path, Map<String, String> headers, Map<String, Object> body,
            double timeoutMs) {
            this.method = method;
            this.path = path;
            this.headers = headers;
            this.body = body;
            this.timeoutMs = timeoutMs;
        }

        @Override public String toString() {
            return method + " " + path + " " + headers.keySet() + " " + body + " timeout "
                + timeoutMs + " wait " + waitMs;
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
