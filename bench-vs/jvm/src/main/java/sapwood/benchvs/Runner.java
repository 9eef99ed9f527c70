package sapwood.benchvs;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CyclicBarrier;
import org.HdrHistogram.Histogram;

/** Runs jobs on a map; afterwards, untimed, checks what they wrote and puts the map back. */
final class Runner {
    private final OrderedMap map;
    private final Space space;

    Runner(OrderedMap map, Space space) {
        this.map = map;
        this.space = space;
    }

    record Outcome(long elapsedNs, Tally tally, Histogram latencies) {}

    Outcome run(Job job, boolean timeEach) throws Exception {
        List<int[]> plans = new ArrayList<>();
        for (int thread = 0; thread < job.threads(); thread++) {
            plans.add(job.plan(space, thread));
        }
        CyclicBarrier barrier = new CyclicBarrier(job.threads());
        long[] begins = new long[job.threads()];
        long[] ends = new long[job.threads()];
        Tally[] tallies = new Tally[job.threads()];
        Histogram[] histograms = new Histogram[job.threads()];
        List<Thread> threads = new ArrayList<>();
        List<Throwable> failures = java.util.Collections.synchronizedList(new ArrayList<>());
        for (int i = 0; i < job.threads(); i++) {
            int at = i;
            Thread thread = new Thread(() -> {
                try {
                    Tally tally = new Tally();
                    Histogram histogram = timeEach ? new Histogram(3) : null;
                    barrier.await();
                    begins[at] = System.nanoTime();
                    work(job.workload(), plans.get(at), tally, histogram);
                    ends[at] = System.nanoTime();
                    tallies[at] = tally;
                    histograms[at] = histogram;
                } catch (Throwable failure) {
                    failures.add(failure);
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        if (!failures.isEmpty()) {
            throw new IllegalStateException("a thread of " + job.workload() + " failed", failures.get(0));
        }
        Tally tally = new Tally();
        Histogram latencies = new Histogram(3);
        long begin = Long.MAX_VALUE;
        long end = Long.MIN_VALUE;
        for (int i = 0; i < job.threads(); i++) {
            begin = Math.min(begin, begins[i]);
            end = Math.max(end, ends[i]);
            tally.add(tallies[i]);
            if (timeEach) {
                latencies.add(histograms[i]);
            }
        }
        restore(job, plans);
        return new Outcome(end - begin, tally, latencies);
    }

    private void work(String workload, int[] plan, Tally tally, Histogram histogram) {
        for (int op : plan) {
            long begin = histogram == null ? 0 : System.nanoTime();
            operate(workload, op, tally);
            if (histogram != null) {
                histogram.recordValue(Math.max(0, System.nanoTime() - begin));
            }
        }
    }

    private void operate(String workload, int op, Tally tally) {
        int number = Job.number(op);
        switch (workload) {
            case "get-zero-copy" -> map.get(space.key(number), tally);
            case "get-copy" -> map.getCopy(space.key(number), tally);
            case "get-95-put-5" -> {
                if (Job.writes(op)) {
                    map.map.put(space.key(number), space.value(number));
                } else {
                    map.get(space.key(number), tally);
                }
            }
            case "put" -> map.map.put(space.key(number), space.value(number));
            case "put-if-absent-or-update" ->
                    map.putIfAbsentOrUpdate(space.key(number), space.value(number));
            default -> map.scan(
                    space.key(space.inOrder[number]),
                    space.scanEntries(),
                    workload.startsWith("scan-descending"),
                    workload.endsWith("-keys"),
                    tally);
        }
    }

    private void restore(Job job, List<int[]> plans) {
        if (!job.changes()) {
            return;
        }
        Map<Integer, Long> writes = new TreeMap<>();
        for (int[] plan : plans) {
            for (int op : plan) {
                if (Job.writes(op)) {
                    writes.merge(Job.number(op), 1L, Long::sum);
                }
            }
        }
        boolean adds = job.workload().equals("put-if-absent-or-update");
        writes.forEach((number, times) -> {
            boolean loaded = space.loaded[number];
            long updates = !adds ? 0 : loaded ? times : times - 1;
            byte[] key = space.key(number);
            byte[] found = map.map.get(key);
            long expected = Consume.sum(space.value(number)) + updates;
            if (found == null || Consume.sum(found) != expected) {
                throw new IllegalStateException("value " + number + " is wrong after " + job.workload());
            }
            if (!loaded) {
                map.map.remove(key);
            } else if (updates > 0) {
                map.map.put(key, space.value(number));
            }
        });
    }
}
