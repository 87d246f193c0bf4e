// SPDX-License-Identifier: MIT
package org.redlockd;

import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A lock that was granted: until when, and whether it was lost. Work under it ends a tenth of the
 * TTL before its validity does. Threads may share it.
 */
final class Hold {
    final String name;
    final List<String> resources;
    final List<Integer> slots;
    volatile boolean isReleased;
    /** A downgrade has begun: from now on, each extend asks for it. */
    volatile boolean wantsShared;
    private final AtomicReference<Grant> grant;
    private final AtomicReference<LockLostException> loss = new AtomicReference<>();

    Hold(List<String> resources, Grant grant) {
        this.resources = resources;
        name = Wanted.name(resources);
        this.grant = new AtomicReference<>(grant);
        slots = grant.slots;
        wantsShared = grant.isShared;
    }

    Grant grant() {
        return grant.get();
    }

    /** A server may have made it a shared one. */
    boolean isDowngrading() {
        return wantsShared && !grant().isShared;
    }

    void extended(Grant next) {
        grant.updateAndGet(next::after);
    }

    /** For work: less than until the validity ends. */
    double remainingMs() {
        return loss.get() != null || isReleased ? 0
            : Math.max(0, grant().workUntilMs - Clock.nowMs());
    }

    double validityMs() {
        return Math.max(0, grant().untilMs - Clock.nowMs());
    }

    void lose(LockLostException why) {
        loss.compareAndSet(null, why);
    }

    /** Before the release. null: it is not lost. */
    LockLostException findLoss() {
        if (remainingMs() <= 0) {
            lose(late());
        }
        return loss.get();
    }

    LockLostException late() {
        return new LockLostException(name + ": nothing extended the lock in time");
    }
}
