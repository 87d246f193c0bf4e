// SPDX-License-Identifier: MIT
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
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.net.ssl.SSLParameters;

/** Requests by java.net.http, over connections that are kept. Threads may share it. */
final class Http {
    /** Those of the clients: what they do waits for nothing. */
    private static final Executor THREADS =
        Executors.newCachedThreadPool(Background.daemons("redlockd http"));

    private final Identity identity;
    private final HttpClient client;
    /** Replicas that have answered: connections to them may be kept ones. */
    private final Map<String, Boolean> answered = new ConcurrentHashMap<>();

    Http(Identity identity, double timeoutMs) {
        this.identity = identity;
        SSLParameters parameters = new SSLParameters();
        parameters.setProtocols(new String[] {"TLSv1.3", "TLSv1.2"});
        HttpClient.Builder builder = HttpClient.newBuilder()
            .executor(THREADS)
            .version(HttpClient.Version.HTTP_1_1)
            .followRedirects(HttpClient.Redirect.NEVER)
            .connectTimeout(duration(timeoutMs))
            .sslParameters(parameters);
        client = (identity.tls == null ? builder : builder.sslContext(identity.tls)).build();
    }

    private static Duration duration(double ms) {
        return Duration.ofNanos((long) (1e6 * Math.max(1, ms)));
    }

    /** A request to a replica. It may be sent twice. */
    final class Exchange {
        private final Step.Send wanted;
        private final String url;
        private final double sentMs;
        private volatile Future<?> underWay;
        private volatile IOException ended; // null: it goes on

        /** sentMs: the moment before it begins. */
        Exchange(Step.Send wanted, String url, double sentMs) {
            this.wanted = wanted;
            this.url = url;
            this.sentMs = sentMs;
        }

        /** Once. What it comes to is always an Answer. */
        CompletableFuture<Answer> begin() {
            String used = identity.authorization();
            return answer(used).thenCompose(
                first -> first.status == 401 && identity.refresh(used)
                    ? answer(identity.authorization())
                        .thenApply(again -> again.after(first.isRepeated))
                    : CompletableFuture.completedFuture(first));
        }

        /** Ends it, with this failure: closes its connection, from Java 16 on. */
        void end(IOException why) {
            ended = why;
            Future<?> request = underWay;
            if (request != null) {
                request.cancel(true);
            }
        }

        private CompletableFuture<Answer> answer(String authorization) {
            return response(authorization).handle((response, error) -> {
                // HttpClient itself repeats a GET
                if (error == null || !answered.containsKey(url) || !isClosed(error)) {
                    return CompletableFuture.completedFuture(read(response, error));
                }
                answered.remove(url);
                return response(authorization).handle((again, failure) -> {
                    if (again == null) { // the first one may have arrived: never UNSENT
                        return Answer.failure(Answer.LOST, words(why(failure)), url, sentMs);
                    }
                    again.isRepeated = true;
                    return read(again, null);
                });
            }).thenCompose(answer -> answer);
        }

        private CompletableFuture<Answer.Response> response(String authorization) {
            if (ended != null) {
                return CompletableFuture.failedFuture(ended);
            }
            CompletableFuture<Answer.Response> response = new CompletableFuture<>();
            CompletableFuture<?> request;
            try {
                request = client.sendAsync(request(wanted, url, authorization),
                    head -> reads(head, response));
            } catch (RuntimeException | Error e) { // as without memory for a thread
                return CompletableFuture.failedFuture(e);
            }
            underWay = request;
            if (ended != null) {
                request.cancel(true);
            }
            request.whenComplete((none, error) -> {
                if (error != null) {
                    response.completeExceptionally(error);
                }
            });
            return response;
        }

        /**
         * The future of sendAsync() itself completes in the common pool, in which the program may
         * have work that waits.
         */
        private HttpResponse.BodySubscriber<String> reads(HttpResponse.ResponseInfo head,
                CompletableFuture<Answer.Response> response) {
            HttpResponse.BodySubscriber<String> body =
                HttpResponse.BodyHandlers.ofString().apply(head);
            body.getBody().thenAccept(content -> response.completeAsync(() -> {
                Answer.Response got = new Answer.Response();
                got.status = head.statusCode();
                got.content = content;
                got.contentType = head.headers().firstValue("Content-Type").orElse("");
                got.retryAfter = head.headers().firstValue("Retry-After").orElse("");
                return got;
            }, THREADS));
            return body;
        }

        private Answer read(Answer.Response response, Throwable error) {
            if (response != null) {
                answered.put(url, true);
                return response.read(url, sentMs);
            }
            Throwable why = why(error);
            return Answer.failure(kind(why), words(why), url, sentMs);
        }

        private Throwable why(Throwable error) {
            return ended != null ? ended : cause(error);
        }
    }

    // ---- failures ------------------------------------------------------------------------------

    /** Futures wrap it. */
    private static Throwable cause(Throwable error) {
        Throwable one = error;
        while (one instanceof CompletionException && one.getCause() != null) {
            one = one.getCause();
        }
        return one;
    }

    /** Before a byte of the response: the server may have closed a kept connection. */
    private static boolean isClosed(Throwable failure) {
        Throwable error = cause(failure);
        if (!(error instanceof IOException) || error instanceof HttpTimeoutException || error instanceof ConnectException
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

    private static String kind(Throwable error) {
        // the certificate is checked before a request is sent
        return isUntrusted(error) ? Answer.UNTRUSTED
            : error instanceof HttpConnectTimeoutException || error instanceof ConnectException
                ? Answer.UNSENT : Answer.LOST;
    }

    private static String words(Throwable error) {
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
            .timeout(duration(wanted.timeoutMs + wanted.waitsMs()));
        wanted.headers.forEach(request::header);
        Map<String, Object> content = wanted.content();
        String user = URI.create(url).getRawUserInfo();
        if (authorization != null) {
            request.header("Authorization", authorization);
        } else if (user != null) {
            String plain = URLDecoder.decode(user.replace("+", "%2B"), StandardCharsets.UTF_8);
            request.header("Authorization", "Basic " + Base64.getEncoder().encodeToString(
                (plain.contains(":") ? plain : plain + ":").getBytes(StandardCharsets.UTF_8)));
        }
        if (content == null) {
            return request.method(wanted.method, HttpRequest.BodyPublishers.noBody()).build();
        }
        return request.header("Content-Type", "application/json").method(wanted.method,
            HttpRequest.BodyPublishers.ofString(Json.write(content))).build();
    }
}
