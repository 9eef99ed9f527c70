package sapwood.benchvs;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Path;
import org.HdrHistogram.Histogram;

/**
 * Loads one map, then takes a command a line and answers with a JSON object a line, so that the
 * Rust side interleaves its runs with ours.
 *
 * <pre>
 * load-generated KEY_BYTES VALUE_BYTES integer|prefix|middle ENTRIES
 * load-listed FILE
 * run WORKLOAD THREADS OPS SEED
 * latencies WORKLOAD THREADS OPS SEED
 * everything
 * </pre>
 */
public final class Main {
    private final OrderedMap map;
    private Space space;
    private Runner runner;

    private Main(OrderedMap map) {
        this.map = map;
    }

    public static void main(String[] arguments) throws Exception {
        // Libraries that print must not disturb the answers.
        PrintStream answers = System.out;
        System.setOut(System.err);
        if (arguments.length != 1) {
            System.err.println("usage: java -jar bench-vs-jvm.jar jdk-skiplist|mapdb-offheap");
            System.exit(2);
        }
        Main main = new Main(switch (arguments[0]) {
            case "jdk-skiplist" -> new JdkSkipList();
            case "mapdb-offheap" -> new MapDbOffHeap();
            default -> throw new IllegalArgumentException("no map is called " + arguments[0]);
        });
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String answer;
            try {
                answer = main.answer(line.split(" "));
            } catch (Exception | OutOfMemoryError failure) {
                failure.printStackTrace();
                answer = "{\"error\":\"" + failure.toString().replaceAll("[\"\\\\\\p{Cntrl}]", " ") + "\"}";
            }
            answers.println(answer);
            answers.flush();
        }
    }

    private String answer(String[] words) throws Exception {
        return switch (words[0]) {
            case "load-generated" -> load(Space.generated(
                    Integer.parseInt(words[1]), Integer.parseInt(words[2]), words[3], Integer.parseInt(words[4])));
            case "load-listed" -> load(Space.listed(Path.of(words[1])));
            case "run" -> {
                Runner.Outcome outcome = runner.run(job(words), false);
                yield "{\"elapsed_ns\":" + outcome.elapsedNs() + ",\"entries\":" + outcome.tally().entries
                        + ",\"sum\":" + outcome.tally().sum + "}";
            }
            case "latencies" -> {
                Histogram latencies = runner.run(job(words), true).latencies();
                yield "{\"p50\":" + latencies.getValueAtPercentile(50)
                        + ",\"p99\":" + latencies.getValueAtPercentile(99)
                        + ",\"p999\":" + latencies.getValueAtPercentile(99.9)
                        + ",\"max\":" + latencies.getMaxValue() + "}";
            }
            case "everything" -> {
                Tally tally = new Tally();
                map.scan(new byte[] {0}, Long.MAX_VALUE, false, false, tally);
                yield "{\"entries\":" + tally.entries + ",\"sum\":" + tally.sum + "}";
            }
            default -> throw new IllegalArgumentException("no command is called " + words[0]);
        };
    }

    private static Job job(String[] words) {
        return new Job(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]), Long.parseLong(words[4]));
    }

    private String load(Space space) {
        this.space = space;
        runner = new Runner(map, space);
        long before = usedBytes();
        long begin = System.nanoTime();
        for (int number : space.loadOrder) {
            map.map.putIfAbsent(space.key(number), space.value(number));
        }
        long elapsed = System.nanoTime() - begin;
        return "{\"elapsed_ns\":" + elapsed + ",\"used_bytes\":" + (usedBytes() - before) + "}";
    }

    /** Bytes of live objects and of direct memory. */
    private long usedBytes() {
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory() + map.offHeapBytes();
    }
}
