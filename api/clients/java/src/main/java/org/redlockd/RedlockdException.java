// SPDX-License-Identifier: MIT
package org.redlockd;

/**
 * Every error of this package.
 */
public class RedlockdException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    RedlockdException(String message) {
        super(message);
    }
}
