package sapwood.benchvs;

/** SplitMix64, as in crates/bench/src/random.rs: equal seeds give equal streams on both sides. */
final class Random64 {
    private long state;

    Random64(long seed) {
        state = seed;
    }

    long next() {
        state += 0x9E3779B97F4A7C15L;
        long mixed = state;
        mixed = (mixed ^ (mixed >>> 30)) * 0xBF58476D1CE4E5B9L;
        mixed = (mixed ^ (mixed >>> 27)) * 0x94D049BB133111EBL;
        return mixed ^ (mixed >>> 31);
    }

    /** A number below {@code limit}, from the high half of a word. */
    int below(int limit) {
        return (int) (((next() >>> 32) * limit) >>> 32);
    }
}
