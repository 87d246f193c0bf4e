import java.util.List;

/** Holds the lock within another one, "beside". */
public class Nested {
    public static void main(String[] args) throws Exception {
        var urls = List.of(System.getenv("URLS").split(" "));
        long ttlMs = Long.parseLong(args[1]), waitMs = Long.parseLong(args[2]);
        try (var beside = new Lock(urls, "beside", ttlMs, waitMs)) {
            Aside.work(args);
            beside.check();
        }
    }
}
