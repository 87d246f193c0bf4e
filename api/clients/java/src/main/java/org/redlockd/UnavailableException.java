// SPDX-License-Identifier: MIT
package org.redlockd;

/**
 * No server granted or refused the lock until the wait had passed. If a response was lost, the lock
 * may be held until its TTL ends.
 */
public class UnavailableException extends RedlockdException {
    private static final long serialVersionUID = 1L;

    UnavailableException(String message) {
        super(message);
    }
}
