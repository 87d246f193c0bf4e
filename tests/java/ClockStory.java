// SPDX-License-Identifier: MIT
package org.redlockd;

import java.nio.file.Files;
import java.nio.file.Path;

/** The clock runs on while the machine sleeps: played with a file in the place of /proc/uptime. */
public final class ClockStory {
    private static final double COARSE_MS = 60;

    private ClockStory() {
    }

    private static void near(double actualMs, double expectedMs) {
        if (Math.abs(actualMs - expectedMs) > COARSE_MS) {
            throw new AssertionError(actualMs + ", not " + expectedMs);
        }
    }

    public static void main(String[] arguments) throws Exception {
        double uptimeMs = 1000 * Double.parseDouble(
            Files.readString(Path.of(Clock.uptime)).split(" ")[0]);
        near(Clock.nowMs(), uptimeMs);
        Path file = Files.createTempFile("redlockd", ".uptime");
        Clock.uptime = file.toString();
        try {
            Files.writeString(file, uptimeMs / 1000 + 90 + " 1.00\n");
            near(Clock.nowMs() - uptimeMs, 90_000);
            Files.writeString(file, uptimeMs / 1000 + " 1.00\n");
            double beforeMs = Clock.nowMs();
            near(beforeMs - uptimeMs, 90_000); // it never steps back
            Files.writeString(file, "");
            near(Clock.nowMs() - beforeMs, 0);
        } finally {
            Files.delete(file);
        }
        near(Clock.nowMs() - uptimeMs, 90_000);
        Thread.currentThread().interrupt();
        Clock.uptime = "/proc/uptime";
        near(Clock.nowMs() - uptimeMs, 90_000);
        System.out.println("ok    the clock runs on while the machine sleeps");
    }
}
