package sapwood.benchvs;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
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
 * Takes a command a line and answers with a JSON object a line, so that the Rust side interleaves its runs
 * with ours. The file of {@code load} has the rows as JSON lines; they are read before any time is taken.
 *
 * <pre>
 * load millis|iso BATCH LONG DOUBLE DIMENSION,DIMENSION,... FILE
 * ingest all|hour|none
 * json all|hour|none
 * </pre>
 */
public final class Main {
    private List<InputRow> rows = new ArrayList<>();
    private List<byte[]> json = new ArrayList<>();
    private TimestampSpec time;
    private List<String> dimensions;
    private String x;
    private String y;
    private long begin;
    private long sum;

    private String load(String[] words) throws Exception {
        rows = new ArrayList<>();
        json = new ArrayList<>();
        time = new TimestampSpec("time", words[1], null);
        int batch = Integer.parseInt(words[2]);
        x = words[3];
        y = words[4];
        dimensions = List.of(words[5].split(","));
        begin = Long.MAX_VALUE;
        sum = 0;
        ObjectMapper mapper = new ObjectMapper();
        StringBuilder lines = new StringBuilder();
        try (BufferedReader file = Files.newBufferedReader(Path.of(words[6]))) {
            for (String line = file.readLine(); line != null; line = file.readLine()) {
                Map<String, Object> event = mapper.readValue(line, new TypeReference<>() {});
                long at = time.extractTimestamp(event).getMillis();
                rows.add(new MapBasedInputRow(at, dimensions, event));
                begin = Math.min(begin, at);
                sum += ((Number) event.getOrDefault(x, 0)).longValue();
                lines.append(line).append('\n');
                if (rows.size() % batch == 0) {
                    json.add(lines.toString().getBytes(StandardCharsets.UTF_8));
                    lines.setLength(0);
                }
            }
        }
        if (!lines.isEmpty()) {
            json.add(lines.toString().getBytes(StandardCharsets.UTF_8));
        }
        return String.format(Locale.ROOT, "{\"rows\":%d,\"sum\":%d}", rows.size(), sum);
    }

    public static void main(String[] arguments) throws Exception {
        // Libraries that print must not disturb the answers.
        PrintStream answers = System.out;
        System.setOut(System.err);
        Main main = new Main();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String answer;
            try {
                String[] words = line.split(" ", 7);
                answer = words[0].equals("load") ? main.load(words) : main.answer(words);
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
        InputRowSchema schema = new InputRowSchema(time, schemas(), ColumnsFilter.all());
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

    private IncrementalIndex index(Granularity granularity) {
        AggregatorFactory[] metrics = {
            new CountAggregatorFactory("rows"),
            new LongSumAggregatorFactory("x sum", x),
            new DoubleSumAggregatorFactory("y sum", y),
            new LongMinAggregatorFactory("x min", x),
            new DoubleMaxAggregatorFactory("y max", y),
        };
        return new OnheapIncrementalIndex.Builder()
                .setIndexSchema(IncrementalIndexSchema.builder()
                        .withMinTimestamp(begin)
                        .withTimestampSpec(time)
                        .withQueryGranularity(granularity)
                        .withDimensionsSpec(schemas())
                        .withMetrics(metrics)
                        .withRollup(true)
                        .build())
                .setMaxRowCount(Integer.MAX_VALUE)
                .build();
    }

    private DimensionsSpec schemas() {
        List<DimensionSchema> schemas = new ArrayList<>();
        for (String name : dimensions) {
            schemas.add(new StringDimensionSchema(name));
        }
        return new DimensionsSpec(schemas);
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
