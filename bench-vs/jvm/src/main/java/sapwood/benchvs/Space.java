package sapwood.benchvs;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Which keys and values does a run use? The same as crates/bench/src/ordered/space.rs: numbers in
 * key order, half of them loaded in random order, values as windows of a pool of random bytes.
 */
final class Space {
    private static final int POOL_BYTES = 64 * 1024;
    private static final long SEED = 0x5A9000D5L;
    private static final int SCAN_ENTRIES = 10_000;

    final int range;
    final int[] loadOrder;
    final int[] inOrder;
    final boolean[] loaded;

    private final byte[] template;
    private final int numberAt;
    /** Whether a number's sixteenth is in front of what keys share, and the rest behind it. */
    private final boolean isAround;
    private final byte[] pool;
    private final int valueBytes;
    private final List<byte[]> keys;
    private final List<byte[]> values;

    private Space(int range, byte[] template, int numberAt, boolean isAround, byte[] pool,
            int valueBytes, List<byte[]> keys, List<byte[]> values) {
        this.range = range;
        this.template = template;
        this.numberAt = numberAt;
        this.isAround = isAround;
        this.pool = pool;
        this.valueBytes = valueBytes;
        this.keys = keys;
        this.values = values;
        int[] order = new int[range];
        for (int i = 0; i < range; i++) {
            order[i] = i;
        }
        Random64 random = new Random64(SEED + 1);
        for (int i = range - 1; i >= 1; i--) {
            int other = random.below(i + 1);
            int kept = order[i];
            order[i] = order[other];
            order[other] = kept;
        }
        loadOrder = Arrays.copyOf(order, range / 2);
        inOrder = loadOrder.clone();
        Arrays.sort(inOrder);
        loaded = new boolean[range];
        for (int number : loadOrder) {
            loaded[number] = true;
        }
    }

    static Space generated(int keyBytes, int valueBytes, String shape, int entries) {
        byte[] template = new byte[keyBytes];
        int numberAt = shape.equals("prefix") ? keyBytes - 8 : 0;
        if (!shape.equals("integer")) {
            Arrays.fill(template, (byte) 'k');
        }
        byte[] pool = new byte[POOL_BYTES];
        Random64 random = new Random64(SEED);
        for (int at = 0; at < POOL_BYTES; at += 8) {
            Consume.WORD.set(pool, at, random.next());
        }
        boolean isAround = shape.equals("middle");
        return new Space(
                entries * 2, template, numberAt, isAround, pool, valueBytes, null, null);
    }

    /** Keys and values from a file: big-endian lengths, then bytes, in key order. */
    static Space listed(Path file) throws IOException {
        List<byte[]> keys = new ArrayList<>();
        List<byte[]> values = new ArrayList<>();
        try (DataInputStream input =
                new DataInputStream(new BufferedInputStream(Files.newInputStream(file)))) {
            while (true) {
                keys.add(input.readNBytes(input.readInt()));
                values.add(input.readNBytes(input.readInt()));
            }
        } catch (EOFException end) {
            if (keys.size() != values.size()) {
                throw new IOException(file + " ends within an entry", end);
            }
        }
        return new Space(keys.size(), null, 0, false, null, 0, keys, values);
    }

    /** A fresh array: maps keep the keys that they are given. */
    byte[] key(int number) {
        if (keys != null) {
            return keys.get(number).clone();
        }
        byte[] key = template.clone();
        long written = isAround ? number / 16 : number;
        for (int i = 0; i < 8; i++) {
            key[numberAt + i] = (byte) (written >>> (56 - 8 * i));
        }
        if (isAround) {
            key[key.length - 1] = (byte) (number % 16);
        }
        return key;
    }

    /** A fresh array: maps keep the values that they are given, and updates change them. */
    byte[] value(int number) {
        if (values != null) {
            return values.get(number).clone();
        }
        int begin = (int) (((long) number * 8) % (POOL_BYTES - valueBytes));
        return Arrays.copyOfRange(pool, begin, begin + valueBytes);
    }

    int scanEntries() {
        return Math.min(SCAN_ENTRIES, inOrder.length / 2);
    }
}
