// SPDX-License-Identifier: MIT
package org.redlockd;

import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * Connections to the servers, for any number of locks and threads. It needs no end: when nothing
 * refers to it any more, its connections are closed.
 */
public final class Client {
    private static final String DEFAULT_URL = "http://127.0.0.1:8080";
    private static final int PAGE_SIZE = 1000;

    final Log log = new Log(System.getLogger("org.redlockd"));
    final Talk talk;
    final Caller caller;

    /** As the environment says: see Builder. */
    public static Client create() {
        return builder().build();
    }

    public static Builder builder() {
        return new Builder();
    }

    /**
     * How to ask which servers. What is omitted comes from the environment: REDLOCKD_URL (several
     * URLs with commas between them), REDLOCKD_AUTH_TOKEN or REDLOCKD_AUTH_TOKEN_FILE,
     * REDLOCKD_CACERT, REDLOCKD_CERT, REDLOCKD_KEY.
     */
    public static final class Builder {
        private List<String> urls = Arrays.asList(variable("REDLOCKD_URL", "").split(","));
        private Duration timeout = Duration.ofSeconds(5);
        private String token;
        private Path tokenFile;
        private Path ca;
        private Path cert;
        private Path key;

        private Builder() {
        }

        /** Of the replicas, in the order in which they are asked. */
        public Builder urls(String... of) {
            urls = Arrays.asList(of);
            return this;
        }

        /** For a connection with its response: 5 s if omitted. */
        public Builder timeout(Duration limit) {
            timeout = limit;
            return this;
        }

        /** The access token itself. */
        public Builder authToken(String text) {
            token = text;
            return this;
        }

        /** A file with one line, the access token. It is read again after a 401. */
        public Builder authTokenFile(Path file) {
            tokenFile = file;
            return this;
        }

        /** A PEM file with the CAs to trust, instead of those of the JVM. */
        public Builder caFile(Path file) {
            ca = file;
            return this;
        }

        /** The client's own certificate, in PEM. */
        public Builder certFile(Path file) {
            cert = file;
            return this;
        }

        /** Its key, in PEM (PKCS#8), without a passphrase; it may be in the certificate's file. */
        public Builder keyFile(Path file) {
            key = file;
            return this;
        }

        /** Throws IllegalArgumentException. */
        public Client build() {
            if (timeout.isNegative() || timeout.isZero()) {
                throw new IllegalArgumentException("a timeout is longer than 0 s");
            }
            boolean hasToken = token != null || tokenFile != null;
            boolean hasFiles = ca != null || cert != null || key != null;
            return new Client(checked(urls), timeout.toNanos() / 1e6, new Identity(
                hasToken ? token : variable("REDLOCKD_AUTH_TOKEN", null),
                hasToken ? tokenFile : file("REDLOCKD_AUTH_TOKEN_FILE"),
                hasFiles ? ca : file("REDLOCKD_CACERT"),
                hasFiles ? cert : file("REDLOCKD_CERT"),
                hasFiles ? key : file("REDLOCKD_KEY")));
        }

        private static String variable(String name, String otherwise) {
            String value = System.getenv(name);
            return value == null || value.isEmpty() ? otherwise : value;
        }

        private static Path file(String variable) {
            String value = variable(variable, null);
            return value == null ? null : Path.of(value);
        }

        private static List<String> checked(List<String> urls) {
            List<String> all = urls.stream().map(url -> url.trim().replaceFirst("/$", ""))
                .filter(url -> !url.isEmpty()).collect(Collectors.toUnmodifiableList());
            for (String url : all) {
                if (!isUrl(url)) {
                    throw new IllegalArgumentException(
                        "not an http:// or https:// URL: " + Replicas.shown(url));
                }
            }
            return all.isEmpty() ? List.of(DEFAULT_URL) : all;
        }

        private static boolean isUrl(String url) {
            try {
                URI target = URI.create(url);
                return url.matches("(?i)https?://.*") && target.getHost() != null
                    && target.getQuery() == null && target.getFragment() == null;
            } catch (IllegalArgumentException e) {
                return false;
            }
        }
    }

    private Client(List<String> urls, double timeoutMs, Identity identity) {
        Replicas replicas = new Replicas(urls);
        talk = new Talk(replicas, timeoutMs, log);
        caller = new Caller(replicas, talk, new Http(identity, timeoutMs), log);
    }

    /** Of one resource, or of all of several: nothing is asked yet. */
    public LockRequest lock(String... resources) {
        return new LockRequest(this, List.of(resources));
    }

    /** Who holds the lock; empty: nobody. */
    public Optional<HeldLock> get(String resource) throws InterruptedException {
        return Optional.ofNullable(talk.holder(resource, caller)).map(HeldLock::new);
    }

    /** Those that are held, and whose resource begins so. */
    public List<HeldLock> locks(String prefix) throws InterruptedException {
        Map<String, HeldLock> found = new LinkedHashMap<>(); // a lock may be on two pages
        String query = "?page_size=" + PAGE_SIZE
            + (prefix.isEmpty() ? "" : "&prefix=" + Talk.escaped(prefix));
        Object cursor = "";
        do {
            Map<String, Object> body = talk.get("the list", "/locks" + query
                + (cursor.equals("") ? "" : "&cursor=" + Talk.escaped(cursor.toString())),
                "locks", caller);
            for (Object of : (List<?>) body.get("locks")) {
                HeldLock one = new HeldLock(Json.object(of));
                found.putIfAbsent(one.id(), one);
            }
            cursor = body.get("next_cursor");
        } while (cursor != null);
        return new ArrayList<>(found.values());
    }

    /**
     * Who holds the lock, now and whenever it changes hands; empty: nobody. Readers who join
     * others, or leave some behind, are no change. It misses nobody who holds the lock for a
     * second, and goes on while servers fail, until the action returns false.
     */
    public void watch(String resource, Predicate<Optional<HeldLock>> action)
            throws InterruptedException {
        String version = null;
        Map<String, Object> of;
        do {
            of = talk.nextHolder(resource, version, caller);
            version = String.valueOf(of.get("version"));
        } while (action.test(Talk.isHeld(of) ? Optional.of(new HeldLock(of)) : Optional.empty()));
    }

    /**
     * Releases the lock of a dead holder; locks() has its id and fencing token. The holder is not
     * notified. false: no lock with this fencing token is held (any more).
     */
    public boolean forceRelease(String id, long fencingToken) throws InterruptedException {
        return talk.force(id, Long.toString(fencingToken), caller);
    }

    /** The same for the locks of all readers. */
    public boolean forceReleaseReaders(String id) throws InterruptedException {
        return talk.force(id, "all", caller);
    }

    @Override public String toString() {
        return "Client";
    }
}
