package sapwood.benchvs;

import org.mapdb.BTreeMap;
import org.mapdb.DB;
import org.mapdb.DBMaker;
import org.mapdb.Serializer;

/** MapDB's B-tree in direct memory; values are deserialised by each read. */
final class MapDbOffHeap extends OrderedMap {
    private final BTreeMap<byte[], byte[]> tree;

    MapDbOffHeap() {
        this(DBMaker.memoryDirectDB().make());
    }

    private MapDbOffHeap(DB db) {
        this(db.treeMap("ordered", Serializer.BYTE_ARRAY, Serializer.BYTE_ARRAY)
                .valuesOutsideNodesEnable()
                .create());
    }

    private MapDbOffHeap(BTreeMap<byte[], byte[]> tree) {
        super(tree);
        this.tree = tree;
    }

    @Override
    void putIfAbsentOrUpdate(byte[] key, byte[] value) {
        while (true) {
            byte[] there = tree.get(key);
            if (there == null) {
                there = tree.putIfAbsent(key, value);
                if (there == null) {
                    return;
                }
            }
            byte[] changed = there.clone();
            Consume.WORD.set(changed, 0, (long) Consume.WORD.get(changed, 0) + 1);
            if (tree.replace(key, there, changed)) {
                return;
            }
        }
    }

    @Override
    long offHeapBytes() {
        return java.lang.management.ManagementFactory
                .getPlatformMXBeans(java.lang.management.BufferPoolMXBean.class)
                .stream()
                .mapToLong(java.lang.management.BufferPoolMXBean::getMemoryUsed)
                .sum();
    }
}
