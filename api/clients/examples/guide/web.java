// SPDX-License-Identifier: MIT
// POST /orders/<id>/ship ships an order; two requests never work on the same order at
// once.
//   java -cp redlockd-client.jar web.java [PORT]
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executors;
import org.redlockd.Client;
import org.redlockd.LockHeldException;
import org.redlockd.LockLostException;
import org.redlockd.UnavailableException;

class Web {
    static final List<String> STATES = List.of("new", "picked", "packed", "shipped");
    static final HttpClient http = HttpClient.newHttpClient();
    static final Client locks = Client.create(); // all threads share its connections

    static class StoreException extends IOException {
        final int status;

        StoreException(int status) {
            super("the store says " + status);
            this.status = status;
        }
    }

    static String variable(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }

    static String ask(String method, String path, String body, long fencingToken)
            throws IOException, InterruptedException {
        URI uri = URI.create(variable("STORE", "http://127.0.0.1:8090") + path);
        HttpResponse<String> response = http.send(
            HttpRequest.newBuilder(uri).timeout(Duration.ofSeconds(10))
                .header("X-Fencing-Token", "" + fencingToken)
                .method(method, BodyPublishers.ofString(body)).build(),
            BodyHandlers.ofString());
        if (response.statusCode() != 200) {
            throw new StoreException(response.statusCode());
        }
        return response.body();
    }

    static void ship(String order) throws IOException, InterruptedException {
        double seconds = Double.parseDouble(variable("LOCK_TTL_S", "10"));
        Duration ttl = Duration.ofMillis((long) (1000 * seconds));
        String path = "/orders/" + order;
        // a loss interrupts the request to the store that is under way
        locks.lock("order:" + order).ttl(ttl).waitAtMost(Duration.ofSeconds(2)).interruptOnLoss()
            .runWithLock(lock -> {
                // an earlier holder may have done some steps: read the state under the lock
                int done = STATES.indexOf(ask("GET", path, "", 0));
                for (String state : STATES.subList(done + 1, STATES.size())) {
                    lock.check(); // throws LockLostException
                    ask("PUT", path, state, lock.fencingToken());
                }
            });
    }

    static void handle(HttpExchange exchange) throws IOException {
        try {
            ship(exchange.getRequestURI().getPath().split("/")[2]);
            answer(exchange, 200, "shipped");
        } catch (LockHeldException e) {
            answer(exchange, 409, "another request ships it");
        } catch (LockLostException e) { // some steps may be done: the next request continues
            answer(exchange, 503, "not finished, try again");
        } catch (UnavailableException e) { // nothing was done
            answer(exchange, 503, "no lock service, try again");
        } catch (StoreException e) { // 409: a later holder has written
            answer(exchange, e.status == 404 ? 404 : 503, e.getMessage());
        } catch (IOException | InterruptedException | RuntimeException e) {
            e.printStackTrace();
            answer(exchange, 500, "a bug");
        }
    }

    static void answer(HttpExchange exchange, int status, String text) throws IOException {
        if (status == 409 || status == 503) {
            exchange.getResponseHeaders().set("Retry-After", "1");
        }
        byte[] body = (text + "\n").getBytes();
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    public static void main(String[] arguments) throws IOException {
        int port = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 8091;
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/orders/", Web::handle);
        server.start();
    }
}
