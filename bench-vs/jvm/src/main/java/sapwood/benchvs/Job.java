package sapwood.benchvs;

/** One run: the same operations as crates/bench/src/ordered/workload.rs plans. */
record Job(String workload, int threads, int ops, long seed) {
    /** Marks an operation that writes. */
    static final int WRITES = 1 << 31;

    static int number(int op) {
        return op & ~WRITES;
    }

    static boolean writes(int op) {
        return (op & WRITES) != 0;
    }

    boolean changes() {
        return workload.equals("get-95-put-5") || workload.equals("put")
                || workload.equals("put-if-absent-or-update");
    }

    int[] plan(Space space, int thread) {
        Random64 random = new Random64(seed + ((long) thread << 32));
        int starts = space.inOrder.length - space.scanEntries() + 1;
        int[] plan = new int[ops];
        for (int i = 0; i < ops; i++) {
            plan[i] = switch (workload) {
                case "get-zero-copy", "get-copy" -> space.inOrder[random.below(space.inOrder.length)];
                case "get-95-put-5" -> Long.remainderUnsigned(random.next(), 100) < 5
                        ? random.below(space.range) | WRITES
                        : space.inOrder[random.below(space.inOrder.length)];
                case "put", "put-if-absent-or-update" -> random.below(space.range) | WRITES;
                default -> {
                    int rank = random.below(starts);
                    yield workload.startsWith("scan-descending") ? rank + space.scanEntries() - 1 : rank;
                }
            };
        }
        return plan;
    }
}
