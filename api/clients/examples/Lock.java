import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A lock of redlockd for `try (…)`. A loss interrupts the thread that acquired it. Call check()
 * right before each step that cannot be undone.
 */
public class Lock implements AutoCloseable {
    private final HttpClient http = HttpClient.newHttpClient();
    private final ExecutorService renewer = Executors.newSingleThreadExecutor();
    private final String key = UUID.randomUUID().toString(); // the same for each repeat
    private final String bearer = System.getenv("REDLOCKD_AUTH_TOKEN"); // null: none
    private final Thread worker = Thread.currentThread();
    private final List<String> urls;
    private final long ttlMs;
    private volatile long untilMs, renewAtMs, toldMs;
    private volatile boolean isLost;
    private String grant = "";

    public Lock(List<String> urls, String resource, long ttlMs, long waitMs) throws Exception {
        this.urls = new ArrayList<>(urls);
        this.ttlMs = ttlMs;
        acquire(resource, waitMs);
        renewer.submit(() -> {
            try {
                renew();
            } catch (RuntimeException unexpected) {
                lose();
            }
            return null;
        });
    }

    @Override public void close() throws Exception {
        boolean isInterrupted = Thread.interrupted(); // or nothing could be asked any more
        renewer.shutdownNow();
        try {
            renewer.awaitTermination(1, TimeUnit.SECONDS);
            ask("DELETE", path(), 2000, "{" + token() + "}");
        } finally {
            if (isInterrupted && !isLost) { // by somebody else
                worker.interrupt();
            }
        }
    }

    public void check() {
        if (leftMs() <= 0) {
            throw new CancellationException("lock lost");
        }
    }

    public String fence() {
        return field(grant, "fencing_token");
    }

    private void acquire(String resource, long waitMs) throws Exception {
        String name = resource.replace("\\", "\\\\").replace("\"", "\\\"");
        long endMs = nowMs() + waitMs;
        while (field(grant, "token").isEmpty()) {
            long sliceMs = Math.max(0, Math.min(10000, endMs - nowMs()));
            grant = ask("POST", "/locks", sliceMs + 2000, "{\"resource\":\"" + name
                + "\",\"ttl_ms\":" + ttlMs + ",\"wait_ms\":" + sliceMs + "}");
            if (!"lock_held".contains(field(grant, "code"))) {
                throw new IllegalStateException(grant);
            }
            if (nowMs() > endMs && fence().isEmpty()) {
                throw new TimeoutException(grant);
            }
            if (grant.isEmpty()) {
                Thread.sleep(toldMs + (long) (200 + 800 * Math.random()));
            }
        }
    }

    private void renew() throws InterruptedException {
        while (leftMs() > 0) {
            Thread.sleep(Math.max(0, Math.min(renewAtMs - nowMs(), leftMs())));
            renewAtMs = nowMs() + ttlMs / 20; // unless this succeeds
            String again = "{" + token() + ",\"ttl_ms\":" + ttlMs + "}";
            String answer = ask("PUT", path() + "/extend", leftMs() / urls.size(), again);
            if (List.of("lock_not_found", "not_owner").contains(field(answer, "code"))) {
                untilMs = 0;
            }
        }
        lose();
    }

    private void lose() {
        untilMs = 0;
        isLost = true;
        worker.interrupt();
    }

    private String path() {
        return "/locks/" + field(grant, "id");
    }

    private String token() {
        return "\"token\":\"" + field(grant, "token") + "\"";
    }

    private static long nowMs() { // stops while the machine is suspended
        return System.nanoTime() / 1000000;
    }

    private long leftMs() { // a tenth of the TTL is for ending the work
        return untilMs - ttlMs / 10 - nowMs();
    }

    private static String field(String json, String name) { // enough for redlockd's answers
        String start = '"' + name + "\":";
        return (json + start).split(start + "\"?", 2)[1].split("[\",}]", 2)[0];
    }

    private static long ms(HttpResponse<String> answer, String name) {
        return Long.parseLong("0" + field(answer.body(), name));
    }

    /** The answer of the first replica that has one; "": none has. */
    private String ask(String method, String path, long limitMs, String body)
            throws InterruptedException {
        for (int i = 0; i < urls.size(); i++, Collections.rotate(urls, -1)) {
            try {
                long sentMs = nowMs();
                var answer = http.send(request(method, path, limitMs, body),
                    HttpResponse.BodyHandlers.ofString());
                if (answer.statusCode() < 300 && !method.equals("DELETE")) {
                    long grantedMs = sentMs + ms(answer, "elapsed_ms");
                    untilMs = grantedMs + ms(answer, "validity_ms");
                    renewAtMs = grantedMs + ms(answer, "renew_after_ms");
                }
                if (answer.statusCode() < 429) {
                    return answer.body();
                }
                toldMs = ms(answer, "retry_after_ms");
            } catch (IOException e) {
                // no answer: the next replica
            }
        }
        return "";
    }

    private HttpRequest request(String method, String path, long limitMs, String body) {
        var request = HttpRequest.newBuilder(URI.create(urls.get(0) + path))
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", key)
            .method(method, HttpRequest.BodyPublishers.ofString(body))
            .timeout(Duration.ofMillis(Math.max(1, limitMs)));
        if (bearer != null) {
            request.header("Authorization", "Bearer " + bearer);
        }
        return request.build();
    }

    /** RESOURCE TTL_MS WAIT_MS WORK_MS */
    public static void main(String[] args) throws Exception {
        var urls = List.of(System.getenv("URLS").split(" "));
        try (var lock = new Lock(urls, args[0], Long.parseLong(args[1]), Long.parseLong(args[2]))) {
            for (int step = 0; step < Integer.parseInt(args[3]) / 50; step++) {
                Thread.sleep(50);
                lock.check();
                System.out.println("working " + System.currentTimeMillis() + " " + lock.fence());
            }
        } catch (InterruptedException e) {
            throw new CancellationException("lock lost");
        }
    }
}
