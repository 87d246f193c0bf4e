// SPDX-License-Identifier: MIT
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.LongStream;
import org.redlockd.Client;
import org.redlockd.RedlockdException;

/**
 * Cycles of acquire and release with our package, counted as ../../load.c does; threads
 * share one client.
 *
 * <pre>Cycles CLIENTS SECONDS URL…</pre>
 */
final class Cycles {
    private static final Duration TTL = Duration.ofSeconds(30);
    private static final long WARM_UP_NS = 500_000_000L;

    private final Client client;
    private final long begin = System.nanoTime() + WARM_UP_NS; // those that end from here
    private final long end;                                    // to here count
    private final AtomicInteger cycles = new AtomicInteger();
    private final AtomicInteger failures = new AtomicInteger();

    private Cycles(Client client, double seconds) {
        this.client = client;
        end = begin + (long) (seconds * 1e9);
    }

    private void run(int number, LongStream.Builder us) {
        long start;
        for (int i = 0; (start = System.nanoTime()) - end < 0; i++) {
            cycles.incrementAndGet();
            try {
                client.lock("bench:" + ProcessHandle.current().pid() + ":" + number + ":" + i)
                    .ttl(TTL).runWithLock(lock -> { });
            } catch (RedlockdException | InterruptedException e) {
                if (failures.incrementAndGet() == 1) {
                    e.printStackTrace();
                }
                continue;
            }
            long now = System.nanoTime();
            if (now - begin >= 0 && now - end < 0) {
                us.add((now - start) / 1000);
            }
        }
    }

    private static long cpuUs() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime() / 1000;
    }

    private static long percentile(long[] sorted, int percent) {
        return sorted.length == 0 ? 0 : sorted[sorted.length * percent / 100];
    }

    /** Prints what sample_report in ../../../sample.c does. */
    public static void main(String[] arguments) throws InterruptedException {
        int clients = Integer.parseInt(arguments[0]);
        double seconds = Double.parseDouble(arguments[1]);
        String[] urls = Arrays.copyOfRange(arguments, 2, arguments.length);
        // what the first lock of a process costs, with what it loads
        long beforeFirstUs = cpuUs();
        Client client = Client.builder().urls(urls).build();
        client.lock("bench:first").runWithLock(lock -> { });
        long beforeUs = cpuUs();

        Cycles of = new Cycles(client, seconds);
        List<Thread> threads = new ArrayList<>();
        List<LongStream.Builder> each = new ArrayList<>();
        for (int i = 0; i < clients; i++) {
            int number = i;
            LongStream.Builder us = LongStream.builder();
            each.add(us);
            threads.add(new Thread(() -> of.run(number, us)));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        long[] us = each.stream().flatMapToLong(LongStream.Builder::build).sorted().toArray();
        System.out.printf("cycles_per_s %.0f cycles %d failures %d p50_us %d p99_us %d"
            + " client_cpu_us %d first_cpu_us %d%n", us.length / seconds,
            of.cycles.get(), of.failures.get(), percentile(us, 50), percentile(us, 99),
            cpuUs() - beforeUs, beforeUs - beforeFirstUs);
    }
}
