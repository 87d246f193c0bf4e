// SPDX-License-Identifier: MIT
// Writes the report of a day, section by section. Each machine has this line in its
// crontab:
//   0 2 * * * java -cp /usr/local/lib/redlockd-client.jar /usr/local/bin/report.java
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.time.LocalDate;
import java.util.List;
import org.redlockd.Client;
import org.redlockd.Lock;
import org.redlockd.LockHeldException;
import org.redlockd.RedlockdException;

class Report {
    static final HttpClient http = HttpClient.newHttpClient();

    static String variable(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }

    static HttpResponse<String> ask(String method, String section, String body, long fencingToken)
            throws IOException, InterruptedException {
        URI uri = URI.create(variable("STORE", "http://127.0.0.1:8090") + "/report/" + section);
        return http.send(
            HttpRequest.newBuilder(uri).timeout(Duration.ofSeconds(10))
                .header("X-Fencing-Token", "" + fencingToken)
                .method(method, BodyPublishers.ofString(body)).build(),
            BodyHandlers.ofString());
    }

    static void write(Lock lock, String today) throws IOException, InterruptedException {
        // another machine may have finished before our clock reached two
        if (ask("GET", "day", "", 0).body().equals(today)) {
            return;
        }
        for (String section : List.of("orders", "stock", "returns", "day")) {
            lock.check(); // throws LockLostException
            String text = section.equals("day") ? today : "of " + today;
            int status = ask("PUT", section, text, lock.fencingToken()).statusCode();
            if (status != 200) {
                throw new IOException("the store says " + status);
            }
        }
        System.out.println("report of " + today + ": done");
    }

    public static void main(String[] arguments) throws InterruptedException {
        double seconds = Double.parseDouble(variable("LOCK_TTL_S", "60"));
        Duration ttl = Duration.ofMillis((long) (1000 * seconds));
        String today = LocalDate.now().toString();
        try {
            // a loss interrupts the request to the store that is under way
            Client.create().lock("report").ttl(ttl).waitAtMost(Duration.ZERO).interruptOnLoss()
                .runWithLock(lock -> write(lock, today));
        } catch (LockHeldException e) {
            // another machine writes it
        } catch (RedlockdException | IOException e) {
            System.err.println("report of " + today + ": not finished: " + e); // cron mails this
            System.exit(1);
        }
    }
}
