import java.util.List;
import java.util.concurrent.CancellationException;

/** Another thread than the main one holds the lock; the main one holds "beside". */
public class Aside {
    private static final List<String> URLS = List.of(System.getenv("URLS").split(" "));

    static void work(String[] args) {
        long ttlMs = Long.parseLong(args[1]), waitMs = Long.parseLong(args[2]);
        try (var lock = new Lock(URLS, args[0], ttlMs, waitMs)) {
            for (int step = 0; step < Integer.parseInt(args[3]) / 50; step++) {
                Thread.sleep(50);
                lock.check();
                System.out.println("working " + System.currentTimeMillis() + " " + lock.fence());
            }
        } catch (InterruptedException | CancellationException lost) {
            System.out.println("lock lost");
        } catch (Exception error) {
            error.printStackTrace();
        }
    }

    public static void main(String[] args) throws Exception {
        long ttlMs = Long.parseLong(args[1]), waitMs = Long.parseLong(args[2]);
        try (var beside = new Lock(URLS, "beside", ttlMs, waitMs)) {
            var thread = new Thread(() -> work(args));
            thread.start();
            thread.join();
            beside.check();
        }
        System.out.println("all well");
    }
}
