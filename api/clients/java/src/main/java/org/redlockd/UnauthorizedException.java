// SPDX-License-Identifier: MIT
package org.redlockd;

/**
 * 401: the servers do not know the access token, or there is none.
 */
public class UnauthorizedException extends RequestRefusedException {
    private static final long serialVersionUID = 1L;

    UnauthorizedException(String message, int status, String code) {
        super(message, status, code);
    }
}
