// SPDX-License-Identifier: MIT
package org.redlockd;

/**
 * No server has a certificate that this client trusts: signed by a known CA, for its name, and not
 * expired.
 */
public class UntrustedException extends RedlockdException {
    private static final long serialVersionUID = 1L;

    UntrustedException(String message) {
        super(message);
    }
}
