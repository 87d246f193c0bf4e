// SPDX-License-Identifier: MIT
// One of several processes leads, and counts the seconds of its term. When it ends or
// loses its lock, another one leads.
//   java -cp redlockd-client.jar leader.java NAME
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import org.redlockd.Client;
import org.redlockd.Lock;
import org.redlockd.LockLostException;

class Leader {
    static final HttpClient http = HttpClient.newHttpClient();

    static String variable(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }

    static void lead(Lock lock, String owner) throws IOException, InterruptedException {
        System.out.println("leads, with fencing token " + lock.fencingToken());
        String store = variable("STORE", "http://127.0.0.1:8090");
        for (int second = 1;; second++) {
            lock.check(); // throws LockLostException
            URI path = URI.create(store + "/leader/" + second % 10);
            HttpRequest request = HttpRequest.newBuilder(path)
                .header("X-Fencing-Token", "" + lock.fencingToken())
                .PUT(BodyPublishers.ofString(owner)).build();
            HttpResponse<String> response = http.send(request, BodyHandlers.ofString());
            if (response.statusCode() != 200) {
                throw new IOException("the store says " + response.statusCode());
            }
            Thread.sleep(1000);
        }
    }

    static void standForElection(Client client, String owner) throws InterruptedException {
        double seconds = Double.parseDouble(variable("LOCK_TTL_S", "10"));
        Duration ttl = Duration.ofMillis((long) (1000 * seconds));
        while (true) {
            try {
                // without waitAtMost(), it waits without a limit; a loss interrupts lead()
                client.lock("leader").ttl(ttl).owner(owner).interruptOnLoss()
                    .runWithLock(lock -> lead(lock, owner));
            } catch (LockLostException e) {
                System.out.println("leads no more: " + e.getMessage());
            } catch (IOException e) {
                System.out.println("failed: " + e);
                Thread.sleep(1000);
            }
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        String owner = arguments.length > 0 ? arguments[0] : "127.0.0.1:9000";
        Client client = Client.builder().build();
        Thread leader = new Thread(() -> {
            try {
                standForElection(client, owner);
            } catch (InterruptedException e) {
                // runWithLock() has released the lock
            }
        });
        leader.start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            leader.interrupt();
            try {
                leader.join(5000);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(0); // SIGTERM is no failure
        }));
    }
}
