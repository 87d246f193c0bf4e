// SPDX-License-Identifier: MIT
package org.redlockd;

/**
 * The request is wrong, and would be wrong again.
 */
public class RequestRefusedException extends RedlockdException {
    private static final long serialVersionUID = 1L;

    private final int status;
    private final String code;

    RequestRefusedException(String message, int status, String code) {
        super(message);
        this.status = status;
        this.code = code;
    }

    public int status() {
        return status;
    }

    /** Of the problem; "": it is not from redlockd. */
    public String code() {
        return code;
    }
}
