package org.redlockd;

import java.io.EOFException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketException;
import java.net.URI;
import java.net.URLDecoder;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.channels.ClosedChannelException;
import java.nio.charset.StandardCharsets;
import java.security.cert.CertPathValidatorException;
import java.security.cert.CertificateException;
import java.time.Duration;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.ssl.SSLParameters;

/**
 * Carries out talks with java.net.http, over connections that are kept. Threads may share it.
 */
final class Caller implements Step.Performer {
    /**
     * A request that has no response so long after it should have one marks its replica: others ask
     * another one meanwhile.
     */
    private static final double OVERDUE_MS = 500;

    private final Replicas replicas;
    private final Identity identity;
    private final HttpClient http;
    /** Replicas that have answered: connections to them may be kept ones. */
    private final Map<String, Boolean> answered = new ConcurrentHashMap<>();

    Caller(Replicas replicas, Talk talk, Identity identity, double timeoutMs) {
        this.replicas = replicas;
        this.identity = identity;
        SSLParameters parameters = new SSLParameters();
        parameters.setProtocols(new String[] {"TLSv1.3", "TLSv1.2"});
        HttpClient.Builder builder = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .followRedirects(HttpClient.Redirect.NEVER)
            .connectTimeout(duration(timeoutMs))
            .sslParameters(parameters);
        http = (identity.tls == null ? builder : builder.sslContext(identity.tls)).build();
        replicas.probe = url -> Background.work(() -> {
            try {
                talk.probe(url, this);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // nobody does that to a worker
            }
        });
    }

    private static Duration duration(double ms) {
        return Duration.ofNanos((long) (1e6 * Math.max(1, ms)));
    }

    @Override public Answer perform(Step step) throws InterruptedException {
        if (step instanceof Step.Pause) {
            Clock.sleepUntil(Clock.nowMs() + ((Step.Pause) step).ms);
            return null;
        }
        Step.Send wanted = (Step.Send) step;
        String url = wanted.url == null ? replicas.choose() : wanted.url;
        String used = identity.authorization();
        Answer answer = exchange(wanted, url, used);
        return answer.status == 401 && identity.refresh(used)
            ? exchange(wanted, url, identity.authorization()) : answer;
    }

    private Answer exchange(Step.Send wanted, String url, String authorization)
            throws InterruptedException {
        double sentMs = Clock.nowMs();
        AtomicBoolean isOverdue = new AtomicBoolean();
        Background.Timer timer = Background.at(sentMs + wanted.waitMs + OVERDUE_MS, () -> {
            isOverdue.set(true);
            replicas.avoid(url);
        });
        try {
            Answer answer = response(wanted, url, authorization).read(url, sentMs);
            answered.put(url, true);
            if (answer.isGood() && !isOverdue.get()) {
                replicas.works(url);
            }
            return answer;
        } catch (IOException e) {
            return Answer.failure(kind(e), words(e), url, sentMs);
        } finally {
            timer.cancel();
        }
    }

    private Answer.Response response(Step.Send wanted, String url, String authorization)
            throws IOException, InterruptedException {
        HttpRequest request = request(wanted, url, authorization);
        try {
            return send(request, wanted);
        } catch (IOException e) {
            // HttpClient itself repeats a GET
            if (!answered.containsKey(url) || !isClosed(e)) {
                throw e;
            }
            answered.remove(url);
            Answer.Response response = send(request, wanted);
            response.isRepeated = true;
            return response;
        }
    }

    private Answer.Response send(HttpRequest request, Step.Send wanted)
            throws IOException, InterruptedException {
        CompletableFuture<HttpResponse<String>> future =
            http.sendAsync(request, HttpResponse.BodyHandlers.ofString());
        boolean isDone = false;
        try {
            // the client's own timeout ends with the headers
            HttpResponse<String> got = future.get(
                (long) Math.ceil(wanted.timeoutMs + wanted.waitMs) + 1, TimeUnit.MILLISECONDS);
            isDone = true;
            Answer.Response response = new Answer.Response();
            response.status = got.statusCode();
            response.content = got.body();
            response.contentType = got.headers().firstValue("Content-Type").orElse("");
            response.retryAfter = got.headers().firstValue("Retry-After").orElse("");
            return response;
        } catch (ExecutionException e) {
            throw e.getCause() instanceof IOException ? (IOException) e.getCause()
                : new IOException(e.getCause());
        } catch (TimeoutException e) {
            throw new HttpTimeoutException("request timed out");
        } finally {
            if (!isDone) {
                future.cancel(true); // which closes the connection, from Java 16 on
            }
        }
    }

    // ---- failures ------------------------------------------------------------------------------

    /** Before a byte of the response: the server may have closed a kept connection. */
    private static boolean isClosed(IOException error) {
        if (error instanceof HttpTimeoutException || error instanceof ConnectException
            || isUntrusted(error)) {
            return false;
        }
        for (Throwable one = error; one != null; one = one.getCause()) {
            if (one instanceof EOFException || one instanceof SocketException
                || one instanceof ClosedChannelException
                || String.valueOf(one.getMessage()).matches(
                    "(?i).*(connection reset|broken pipe|received no bytes).*")) {
                return true;
            }
        }
        return false;
    }

    private static boolean isUntrusted(Throwable error) {
        for (Throwable one = error; one != null; one = one.getCause()) {
            if (one instanceof CertificateException || one instanceof CertPathValidatorException
                || one.getClass().getName().endsWith("CertPathBuilderException")) {
                return true;
            }
        }
        return false;
    }

    private static String kind(IOException error) {
        // the certificate is checked before a request is sent
        return isUntrusted(error) ? Answer.UNTRUSTED
            : error instanceof HttpConnectTimeoutException || error instanceof ConnectException
                ? Answer.UNSENT : Answer.LOST;
    }

    private static String words(IOException error) {
        Throwable one = error;
        while (one.getMessage() == null && one.getCause() != null) {
            one = one.getCause();
        }
        String words = one.getMessage() != null ? one.getMessage()
            : error instanceof ConnectException ? "cannot connect" : one.getClass().getSimpleName();
        return isUntrusted(error) ? "the server's certificate is not trusted: " + words : words;
    }

    // ---- requests ------------------------------------------------------------------------------

    private static HttpRequest request(Step.Send wanted, String url, String authorization) {
        HttpRequest.Builder request = HttpRequest.newBuilder(
            URI.create(url.replaceFirst("(?<=://)[^/?#]*@", "") + wanted.path))
            .header("Accept", "application/json")
            .timeout(duration(wanted.timeoutMs + wanted.waitMs));
        wanted.headers.forEach(request::header);
        String user = URI.create(url).getRawUserInfo();
        if (authorization != null) {
            request.header("Authorization", authorization);
        } else if (user != null) {
            String plain = URLDecoder.decode(user.replace("+", "%2B"), StandardCharsets.UTF_8);
            request.header("Authorization", "Basic " + Base64.getEncoder().encodeToString(
                (plain.contains(":") ? plain : plain + ":").getBytes(StandardCharsets.UTF_8)));
        }
        if (wanted.body == null) {
            return request.method(wanted.method, HttpRequest.BodyPublishers.noBody()).build();
        }
        return request.header("Content-Type", "application/json").method(wanted.method,
            HttpRequest.BodyPublishers.ofString(Json.write(wanted.body))).build();
    }
}
