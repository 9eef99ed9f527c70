package sapwood.benchvs;

import java.util.Arrays;
import java.util.concurrent.ConcurrentSkipListMap;

/** The JDK's ConcurrentSkipListMap over byte arrays in unsigned lexicographic order. */
final class JdkSkipList extends OrderedMap {
    JdkSkipList() {
        super(new ConcurrentSkipListMap<>(Arrays::compareUnsigned));
    }

    @Override
    void putIfAbsentOrUpdate(byte[] key, byte[] value) {
        byte[] there = map.get(key);
        if (there == null) {
            there = map.putIfAbsent(key, value);
        }
        if (there != null) {
            // In place, as Oak's benchmark does; the lock makes concurrent additions add up.
            synchronized (there) {
                Consume.WORD.set(there, 0, (long) Consume.WORD.get(there, 0) + 1);
            }
        }
    }
}
