import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

/** Threads that share by monitor, by atomic, by queue, by future and by stream. */
public class Main {
    private static final TreeMap<Integer, Integer> counts = new TreeMap<>();

    private static synchronized void count(int key) {
        counts.merge(key, 1, Integer::sum);
    }

    public static void main(String[] args) throws Exception {
        var calls = new AtomicInteger();
        var threads = IntStream.range(0, 6).mapToObj(worker -> new Thread(() -> {
            for (int turn = 0; turn < 1000; turn++) {
                calls.incrementAndGet();
                count(worker % 4);
            }
        })).toList();
        threads.forEach(Thread::start);
        for (var thread : threads) {
            thread.join();
        }
        System.out.println(calls + " " + counts);

        var pool = Executors.newFixedThreadPool(3);
        var futures = pool.invokeAll(List.<Callable<Integer>>of(() -> 6 * 7, () -> "four".length(), () -> 1 / 0));
        for (var future : futures) {
            try {
                System.out.println(future.get());
            } catch (ExecutionException failure) {
                System.out.println(failure.getCause());
            }
        }
        pool.shutdown();
        System.out.println(pool.awaitTermination(5, TimeUnit.SECONDS));

        var queue = new ArrayBlockingQueue<Integer>(2);
        var producer = new Thread(() -> IntStream.rangeClosed(0, 100).map(n -> (n + 1) % 101).forEach(n -> {
            try {
                queue.put(n);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }));
        producer.start();
        int sum = 0;
        for (int next; (next = queue.take()) != 0; ) {
            sum += next;
        }
        producer.join();
        System.out.println(sum);
        System.out.println(IntStream.rangeClosed(1, 1000).parallel().mapToLong(n -> (long) n * n).sum());
        var joined = CompletableFuture.supplyAsync(() -> "one").thenCombine(CompletableFuture.supplyAsync(() -> "two"), (a, b) -> a + b);
        System.out.println(joined.thenApply(String::length).get());
    }
}
