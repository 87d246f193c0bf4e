// SPDX-License-Identifier: MIT
package org.redlockd;

/**
 * 403: the servers know this client, but it may not do this.
 */
public class ForbiddenException extends RequestRefusedException {
    private static final long serialVersionUID = 1L;

    ForbiddenException(String message, int status, String code) {
        super(message, status, code);
    }
}
