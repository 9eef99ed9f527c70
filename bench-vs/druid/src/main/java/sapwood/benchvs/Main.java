package sapwood.benchvs;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.druid.data.input.ColumnsFilter;
import org.apache.druid.data.input.InputRow;
import org.apache.druid.data.input.InputRowSchema;
import org.apache.druid.data.input.MapBasedInputRow;
import org.apache.druid.data.input.impl.ByteEntity;
import org.apache.druid.data.input.impl.DimensionSchema;
import org.apache.druid.data.input.impl.DimensionsSpec;
import org.apache.druid.data.input.impl.JsonInputFormat;
import org.apache.druid.data.input.impl.StringDimensionSchema;
import org.apache.druid.data.input.impl.TimestampSpec;
import org.apache.druid.java.util.common.granularity.Granularities;
import org.apache.druid.java.util.common.granularity.Granularity;
import org.apache.druid.java.util.common.parsers.CloseableIterator;
import org.apache.druid.java.util.common.parsers.JSONPathSpec;
import org.apache.druid.query.aggregation.AggregatorFactory;
import org.apache.druid.query.aggregation.CountAggregatorFactory;
import org.apache.druid.query.aggregation.DoubleMaxAggregatorFactory;
import org.apache.druid.query.aggregation.DoubleSumAggregatorFactory;
import org.apache.druid.query.aggregation.LongMinAggregatorFactory;
import org.apache.druid.query.aggregation.LongSumAggregatorFactory;
import org.apache.druid.segment.incremental.IncrementalIndex;
import org.apache.druid.segment.incremental.IncrementalIndexSchema;
import org.apache.druid.segment.incremental.OnheapIncrementalIndex;

/**
 * Makes the stream of crates/bench/src/rollup/workload.rs, then takes a command a line and answers with a
 * JSON object a line, so that the Rust side interleaves its runs with ours.
 *
 * <pre>
 * ingest all|hour|none
 * json all|hour|none
 * </pre>
 */
public final class Main {
    private static final String[] DIMENSIONS = {"country", "device", "page", "user", "campaign"};
    private static final long BEGIN = 1_400_025_600_000L;
    private static final long DAY = 24 * 3_600_000L;

    private final List<InputRow> rows = new ArrayList<>();
    private final List<byte[]> json = new ArrayList<>();
    private final long sum;

    private Main(int count, int batch) {
        Random64 random = new Random64(0x5eed);
        double step = (double) DAY / count;
        long sum = 0;
        StringBuilder lines = new StringBuilder();
        for (int number = 0; number < count; number++) {
            int combination = random.below(10_000);
            long x = random.below(1_000);
            double y = random.below(1_000) / 4.0;
            long time = BEGIN + (long) (number * step);
            String[] values = {
                "country " + combination % 10,
                "device " + combination / 10 % 10,
                "page " + combination / 100 % 10,
                "user " + combination / 1_000,
                "campaign " + combination,
            };
            Map<String, Object> event = new LinkedHashMap<>();
            lines.append("{\"time\":").append(time);
            for (int at = 0; at < values.length; at++) {
                event.put(DIMENSIONS[at], values[at]);
                lines.append(",\"").append(DIMENSIONS[at]).append("\":\"").append(values[at]).append('"');
            }
            event.put("x", x);
            event.put("y", y);
            lines.append(",\"x\":").append(x).append(",\"y\":").append(y).append("}\n");
            rows.add(new MapBasedInputRow(time, List.of(DIMENSIONS), event));
            sum += x;
            if ((number + 1) % batch == 0 || number + 1 == count) {
                json.add(lines.toString().getBytes(StandardCharsets.UTF_8));
                lines.setLength(0);
            }
        }
        this.sum = sum;
    }

    public static void main(String[] arguments) throws Exception {
        // Libraries that print must not disturb the answers.
        PrintStream answers = System.out;
        System.setOut(System.err);
        if (arguments.length != 2) {
            System.err.println("usage: java ... sapwood.benchvs.Main ROWS BATCH");
            System.exit(2);
        }
        Main main = new Main(Integer.parseInt(arguments[0]), Integer.parseInt(arguments[1]));
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
        Granularity granularity = switch (words[1]) {
            case "all" -> Granularities.ALL;
            case "hour" -> Granularities.HOUR;
            case "none" -> Granularities.NONE;
            default -> throw new IllegalArgumentException("no granularity is called " + words[1]);
        };
        long before = used();
        IncrementalIndex index = index(granularity);
        long begin = System.nanoTime();
        switch (words[0]) {
            case "ingest" -> {
                for (InputRow row : rows) {
                    index.add(row);
                }
            }
            case "json" -> parse(index);
            default -> throw new IllegalArgumentException("no command is called " + words[0]);
        }
        long elapsed = System.nanoTime() - begin;
        long bytes = used() - before;
        long found = 0;
        long counted = 0;
        long facts = 0;
        for (var row : index) {
            facts++;
            counted += row.getMetric("rows").longValue();
            found += row.getMetric("x sum").longValue();
        }
        if (counted != rows.size() || found != sum) {
            throw new IllegalStateException(counted + " rows that sum to " + found);
        }
        index.close();
        return String.format(
                Locale.ROOT, "{\"elapsed_ns\":%d,\"facts\":%d,\"bytes\":%d}", elapsed, facts, bytes);
    }

    /** Druid's own way from JSON lines to rows. */
    private void parse(IncrementalIndex index) throws Exception {
        List<DimensionSchema> dimensions = new ArrayList<>();
        for (String name : DIMENSIONS) {
            dimensions.add(new StringDimensionSchema(name));
        }
        InputRowSchema schema = new InputRowSchema(
                new TimestampSpec("time", "millis", null), new DimensionsSpec(dimensions), ColumnsFilter.all());
        JsonInputFormat format = new JsonInputFormat(JSONPathSpec.DEFAULT, null, null, null, null);
        File temporary = new File(System.getProperty("java.io.tmpdir"));
        for (byte[] lines : json) {
            var reader = format.createReader(schema, new ByteEntity(lines), temporary);
            try (CloseableIterator<InputRow> parsed = reader.read()) {
                while (parsed.hasNext()) {
                    index.add(parsed.next());
                }
            }
        }
    }

    private static IncrementalIndex index(Granularity granularity) {
        List<DimensionSchema> dimensions = new ArrayList<>();
        for (String name : DIMENSIONS) {
            dimensions.add(new StringDimensionSchema(name));
        }
        AggregatorFactory[] metrics = {
            new CountAggregatorFactory("rows"),
            new LongSumAggregatorFactory("x sum", "x"),
            new DoubleSumAggregatorFactory("y sum", "y"),
            new LongMinAggregatorFactory("x min", "x"),
            new DoubleMaxAggregatorFactory("y max", "y"),
        };
        return new OnheapIncrementalIndex.Builder()
                .setIndexSchema(IncrementalIndexSchema.builder()
                        .withMinTimestamp(BEGIN)
                        .withTimestampSpec(new TimestampSpec("time", "millis", null))
                        .withQueryGranularity(granularity)
                        .withDimensionsSpec(new DimensionsSpec(dimensions))
                        .withMetrics(metrics)
                        .withRollup(true)
                        .build())
                .setMaxRowCount(Integer.MAX_VALUE)
                .build();
    }

    /** The heap in use after a collection. */
    private static long used() {
        for (int time = 0; time < 3; time++) {
            System.gc();
        }
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }
}
