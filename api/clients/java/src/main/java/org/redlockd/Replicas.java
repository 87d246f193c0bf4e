// SPDX-License-Identifier: MIT
package org.redlockd;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/** The servers, and which one to ask. Threads may share it. */
final class Replicas {
    private static final double AVOID_FIRST_MS = 1000;
    private static final double AVOID_LAST_MS = 60_000;
    private static final int MOST_FAILURES = 10;

    private static final class Mark {
        int failures;
        double failedAtMs;
        double untilMs;
        boolean isAvoided;
        boolean isProbed;
    }

    final List<String> urls;
    /** Begins a probe in the background, whose end is reported to probed(). */
    Consumer<String> probe = url -> { };
    private final Map<String, Mark> marks = new HashMap<>();
    private final ReentrantLock mutex = new ReentrantLock();

    Replicas(List<String> urls) {
        this.urls = urls;
    }

    /** Without a user and a password. */
    static String shown(String url) {
        return url.replaceFirst("(?<=://)[^/?#]*@", "");
    }

    int size() {
        return urls.size();
    }

    /**
     * The first that is not avoided; if all are, the one that failed first. Waiting clients are
     * served in order only if they ask the same server.
     */
    String choose() {
        List<String> due = new ArrayList<>();
        String best = null;
        mutex.lock();
        try {
            double nowMs = Clock.nowMs();
            for (String url : urls) {
                if (!isAvoided(url, nowMs, due) && best == null) {
                    best = url;
                }
            }
            if (best == null) {
                best = urls.stream().min(Comparator.comparingDouble(
                    url -> marks.get(url).failedAtMs)).orElseThrow();
            }
        } finally {
            mutex.unlock();
        }
        due.forEach(probe);
        return best;
    }

    /** It failed, or a response is overdue. "": no replica was asked. */
    void avoid(String url) {
        if (url.isEmpty()) {
            return;
        }
        mutex.lock();
        try {
            Mark mark = marks.computeIfAbsent(url, one -> new Mark());
            double nowMs = Clock.nowMs();
            mark.failedAtMs = nowMs;
            if (!mark.isAvoided || nowMs >= mark.untilMs) {
                double avoidMs = Math.min(AVOID_LAST_MS, AVOID_FIRST_MS * (1 << mark.failures));
                // random, so that clients do not probe together
                mark.untilMs = nowMs + Clock.betweenMs(avoidMs * 0.75, avoidMs);
                mark.failures = Math.min(mark.failures + 1, MOST_FAILURES);
            }
            mark.isAvoided = true;
        } finally {
            mutex.unlock();
        }
    }

    /** It answered a request, in time. */
    void works(String url) {
        mutex.lock();
        try {
            marks.remove(url);
        } finally {
            mutex.unlock();
        }
    }

    void probed(String url, boolean isBack) {
        mutex.lock();
        try {
            Mark mark = marks.get(url);
            if (mark == null) {
                return;
            }
            mark.isProbed = false;
            if (isBack) {
                mark.isAvoided = false; // if it fails again, for longer
            }
        } finally {
            mutex.unlock();
        }
        if (!isBack) {
            avoid(url);
        }
    }

    private boolean isAvoided(String url, double nowMs, List<String> due) {
        Mark mark = marks.get(url);
        if (mark == null || !mark.isAvoided) {
            return false;
        }
        if (nowMs < mark.untilMs) {
            return true;
        }
        if (urls.size() == 1) {
            return false;
        }
        if (!mark.isProbed) {
            mark.isProbed = true;
            due.add(url);
        }
        return true;
    }
}
