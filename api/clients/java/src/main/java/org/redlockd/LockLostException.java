// SPDX-License-Identifier: MIT
package org.redlockd;

/**
 * The lock expired, or was released by force, before its holder released it. What the holder did
 * since then may have overlapped with the work of the next holder.
 */
public class LockLostException extends RedlockdException {
    private static final long serialVersionUID = 1L;

    LockLostException(String message) {
        super(message);
    }
}
