package sapwood.benchvs;

/** How many entries were read, and the sum of all their bytes. */
final class Tally {
    long entries;
    long sum;

    void add(long sum) {
        entries++;
        this.sum += sum;
    }

    void add(Tally other) {
        entries += other.entries;
        sum += other.sum;
    }
}
