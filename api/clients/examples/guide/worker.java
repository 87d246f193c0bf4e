// SPDX-License-Identifier: MIT
// Ships the orders that are not shipped yet. Start as many workers as you like, on any
// machines; SIGTERM ends a worker when it has finished its order.
//   java -cp redlockd-client.jar worker.java
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.redlockd.Client;
import org.redlockd.Lock;
import org.redlockd.LockHeldException;
import org.redlockd.LockLostException;
import org.redlockd.UnavailableException;

class Worker {
    static final List<String> STATES = List.of("new", "picked", "packed", "shipped");
    static final HttpClient http = HttpClient.newHttpClient();
    static final Client client = Client.create();
    static final CountDownLatch stop = new CountDownLatch(1);

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
            throw new IOException("the store says " + response.statusCode());
        }
        return response.body();
    }

    static void work(String order, Lock lock) throws IOException, InterruptedException {
        String path = "/orders/" + order;
        // the list may be stale: another worker may have shipped the order meanwhile
        int done = STATES.indexOf(ask("GET", path, "", 0));
        for (String state : STATES.subList(done + 1, STATES.size())) {
            lock.check(); // throws LockLostException
            ask("PUT", path, state, lock.fencingToken());
            System.out.println(order + " " + state);
        }
    }

    static void tryOrder(String order) throws InterruptedException {
        double seconds = Double.parseDouble(variable("LOCK_TTL_S", "10"));
        Duration ttl = Duration.ofMillis((long) (1000 * seconds));
        try {
            // a loss interrupts the request to the store that is under way
            client.lock("order:" + order).ttl(ttl).waitAtMost(Duration.ZERO).interruptOnLoss()
                .runWithLock(lock -> work(order, lock));
        } catch (LockHeldException e) {
            // another worker has the order: try the next one
        } catch (LockLostException | IOException e) {
            // the order stays in the list: the next holder of its lock continues
            System.out.println(order + " given up: " + e);
        }
    }

    static void tryOrders() throws InterruptedException {
        try {
            for (String line : ask("GET", "/orders/", "", 0).split("\n")) {
                if (!line.isEmpty() && !line.endsWith(" shipped") && stop.getCount() > 0) {
                    tryOrder(line.split(" ")[0]);
                }
            }
        } catch (UnavailableException | IOException e) {
            System.out.println("store or lock service failed: " + e);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Thread worker = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stop.countDown();
            try {
                worker.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(0); // SIGTERM is no failure
        }));
        do {
            tryOrders();
        } while (!stop.await(1, TimeUnit.SECONDS));
    }
}
