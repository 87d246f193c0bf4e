// SPDX-License-Identifier: MIT
package org.redlockd;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/** Somebody else held the lock until the wait had passed. */
public class LockHeldException extends RedlockdException {
    private static final long serialVersionUID = 1L;

    private final HeldLock holder;

    LockHeldException(String message, Map<String, Object> heldBy) {
        super(message);
        holder = new HeldLock(heldBy);
    }

    /** The holder's label; empty: not known, or there is none. */
    public Optional<String> owner() {
        return holder.owner();
    }

    public OptionalLong fencingToken() {
        return holder.fencingToken();
    }

    /** How many hold it; 0: it is exclusive, or that is not known. */
    public int readers() {
        return holder.readers();
    }

    /** Until it expires, unless it is extended. */
    public Optional<Duration> remaining() {
        return holder.remaining();
    }
}
