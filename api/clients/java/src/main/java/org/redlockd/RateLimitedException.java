// SPDX-License-Identifier: MIT
package org.redlockd;

import java.time.Duration;

/** No server granted it: this client asks too often, or holds too many locks. */
public class RateLimitedException extends UnavailableException {
    private static final long serialVersionUID = 1L;

    private final Duration retryAfter;

    RateLimitedException(String message, Duration retryAfter) {
        super(message);
        this.retryAfter = retryAfter;
    }

    /** Zero: the servers did not say. */
    public Duration retryAfter() {
        return retryAfter;
    }
}
