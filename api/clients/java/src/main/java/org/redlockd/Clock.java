// SPDX-License-Identifier: MIT
package org.redlockd;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.DoubleSupplier;

/**
 * The clock by which validity is measured, in milliseconds since an arbitrary moment. It never
 * steps back, and runs on while the machine sleeps, as the TTLs on the nodes do.
 *
 * <p>System.nanoTime() stops while the machine sleeps; /proc/uptime does not, but shows only
 * hundredths of a second. So the time asleep is what the second has gained on the first. Where
 * there is no /proc/uptime, the time asleep is not noticed.
 */
final class Clock {
    private static final double COARSE_MS = 25;
    /**
     * Timers stop while the machine sleeps: whoever waits for a moment looks at the clock again
     * after this time at most.
     */
    static final double LONGEST_SLEEP_MS = 1000;

    private static final AtomicReference<Double> ASLEEP_MS = new AtomicReference<>();

    /** Another one for tests. */
    static volatile String uptime = "/proc/uptime";
    /** For tests: it returns the time. */
    static volatile DoubleSupplier fake;

    private Clock() {
    }

    static double nowMs() {
        DoubleSupplier other = fake;
        if (other != null) {
            return other.getAsDouble();
        }
        double uptimeMs = uptimeMs();
        // read last: a thread that waits for a CPU in between has not been asleep
        double awakeMs = System.nanoTime() / 1e6;
        return awakeMs + ASLEEP_MS.accumulateAndGet(uptimeMs < 0 ? null : uptimeMs - awakeMs, Clock::later);
    }

    private static Double later(Double beforeMs, Double aheadMs) {
        if (aheadMs == null) {
            return beforeMs == null ? (Double) 0.0 : beforeMs;
        }
        return beforeMs == null || aheadMs > beforeMs + COARSE_MS ? aheadMs : beforeMs;
    }

    /** Negative: not known. */
    private static double uptimeMs() {
        // no channel: the interrupt of a thread would close it
        try (InputStream file = new FileInputStream(uptime)) {
            String text = new String(file.readNBytes(64), StandardCharsets.US_ASCII);
            return 1000 * Double.parseDouble(text.split(" ")[0]);
        } catch (IOException | NumberFormatException e) {
            return -1;
        }
    }

    /** A random time. */
    static double betweenMs(double leastMs, double mostMs) {
        return leastMs + (mostMs - leastMs) * ThreadLocalRandom.current().nextDouble();
    }

    /** Until that moment. */
    static void sleepUntil(double momentMs) throws InterruptedException {
        for (double leftMs; (leftMs = momentMs - nowMs()) > 0;) {
            Thread.sleep((long) Math.ceil(Math.min(leftMs, LONGEST_SLEEP_MS)));
        }
    }
}
