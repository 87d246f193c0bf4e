// SPDX-License-Identifier: MIT
package org.redlockd;

import java.io.Serializable;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.Collectors;

/**
 * A lock that somebody holds, as a server described it. What is empty is not known, as for locks of
 * other libraries, and of readers.
 */
public final class HeldLock implements Serializable {
    private static final long serialVersionUID = 1L;

    private final HashMap<String, Object> of;

    HeldLock(Map<String, Object> of) {
        this.of = new HashMap<>(of);
    }

    public String id() {
        return String.valueOf(of.get("id"));
    }

    public List<String> resources() {
        List<String> several = texts("resources");
        return several.isEmpty() ? List.of(String.valueOf(of.get("resource"))) : several;
    }

    public Optional<String> owner() {
        Object owner = of.get("owner");
        return owner instanceof String ? Optional.of((String) owner) : Optional.empty();
    }

    public OptionalLong fencingToken() {
        return number("fencing_token");
    }

    /** Until it expires, unless it is extended. */
    public Optional<Duration> remaining() {
        OptionalLong ms = number("remaining_ms");
        return ms.isPresent() ? Optional.of(Duration.ofMillis(ms.getAsLong())) : Optional.empty();
    }

    /** Clients that wait for it at the server that was asked. */
    public int waiters() {
        return (int) number("waiters").orElse(0);
    }

    /** How many hold it; 0: it is exclusive. */
    public int readers() {
        return (int) number("readers").orElse(0);
    }

    /** The numbers of permits. */
    public List<Integer> slots() {
        return Json.integers(of.get("slots"));
    }

    /** Changes when the lock changes hands. */
    public Optional<String> version() {
        return Optional.ofNullable(of.get("version")).map(String::valueOf);
    }

    @Override public String toString() {
        return "HeldLock " + id() + " of " + owner().orElse("?");
    }

    private OptionalLong number(String name) {
        Object value = of.get(name);
        return value instanceof Number ? OptionalLong.of(((Number) value).longValue())
            : OptionalLong.empty();
    }

    private List<String> texts(String name) {
        Object value = of.get(name);
        return value instanceof List ? ((List<?>) value).stream().map(String::valueOf)
            .collect(Collectors.toUnmodifiableList()) : List.of();
    }
}
