package sapwood.benchvs;

import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.NavigableMap;

/**
 * A map under test. JVM maps have iterators only: stream and iterator scans are one.
 */
abstract class OrderedMap {
    final NavigableMap<byte[], byte[]> map;

    OrderedMap(NavigableMap<byte[], byte[]> map) {
        this.map = map;
    }

    /** Inserts, or adds one to the first 8 bytes of the value there, atomically. */
    abstract void putIfAbsentOrUpdate(byte[] key, byte[] value);

    void get(byte[] key, Tally tally) {
        byte[] value = map.get(key);
        if (value != null) {
            tally.add(Consume.sum(value));
        }
    }

    void getCopy(byte[] key, Tally tally) {
        byte[] value = map.get(key);
        if (value != null) {
            tally.add(Consume.sum(Arrays.copyOf(value, value.length)));
        }
    }

    void scan(byte[] from, long limit, boolean descending, boolean keysOnly, Tally tally) {
        NavigableMap<byte[], byte[]> view =
                descending ? map.headMap(from, true).descendingMap() : map.tailMap(from, true);
        if (keysOnly) {
            Iterator<byte[]> keys = view.navigableKeySet().iterator();
            for (long left = limit; left > 0 && keys.hasNext(); left--) {
                tally.add(Consume.sum(keys.next()));
            }
        } else {
            Iterator<Map.Entry<byte[], byte[]>> entries = view.entrySet().iterator();
            for (long left = limit; left > 0 && entries.hasNext(); left--) {
                Map.Entry<byte[], byte[]> entry = entries.next();
                tally.add(Consume.sum(entry.getKey()) + Consume.sum(entry.getValue()));
            }
        }
    }

    /** Bytes outside the collected heap. */
    long offHeapBytes() {
        return 0;
    }
}
