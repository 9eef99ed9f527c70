//! Batches of rows in the order of their keys, merged.
//!
//! The merge reads each run from its beginning to its end, and gives its memory back there. The run whose row is
//! next is on top of a heap: where the file is nearly in order, it stays there for many rows.

use std::cmp::Ordering;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashSet};
use std::hash::BuildHasher;
use std::mem;

use foldhash::fast::RandomState;
use sapwood::key;

use super::encoder::{Encoded, EncodedRow, Place};

/// The first bytes of a key, as a number: where those of two keys differ, it orders them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Prefix(u128);

impl Prefix {
    #[inline]
    pub(super) fn of(key: &[u8]) -> Prefix {
        let whole = key.first_chunk::<16>().copied();
        Prefix(u128::from_be_bytes(whole.unwrap_or_else(|| {
            let mut bytes = [0; 16];
            bytes[..key.len()].copy_from_slice(key);
            bytes
        })))
    }
}

/// A batch whose rows are in the order of their keys.
pub(super) struct Run {
    pub(super) batch: Encoded,
    /// Rows of the file before it.
    pub(super) rows_before: u64,
    /// The number that the first of its rows takes.
    pub(super) first_number: u64,
}

impl Run {
    /// The same in no more memory than it needs.
    pub(super) fn tight(mut self) -> Run {
        self.batch.bytes.shrink_to_fit();
        self.batch.rows.shrink_to_fit();
        self
    }

    fn memory(&self) -> usize {
        self.batch.bytes.capacity() + self.batch.rows.capacity() * size_of::<EncodedRow>()
    }
}

/// Runs of less memory are not worth merging before all are there.
const DUE_MIN: usize = 64 << 20;

/// A merged run ends once it has so many bytes.
const MERGED_BYTES: usize = 4 << 20;

/// Of so many keys one is counted.
const COUNTED_PART: u64 = 64;

/// Runs that wait until all are there, in the order of the file. Where most rows have keys that others have, they are
/// merged before, so that the memory is some four times that of the rows which stay, or less.
#[derive(Default)]
pub(super) struct Runs {
    all: Vec<Run>,
    memory: usize,
    /// The memory from which on rows are counted next.
    due: usize,
    hasher: RandomState,
}

impl Runs {
    pub(super) fn push(&mut self, run: Run) {
        self.memory += run.memory();
        self.all.push(run);
    }

    /// Whether a merge leaves out half of the rows, or more, as far as a sample of keys tells. Where it does not, it is
    /// asked again once there is twice as much.
    pub(super) fn are_due(&mut self) -> bool {
        if self.memory < self.due.max(DUE_MIN) {
            return false;
        }
        let (mut rows, mut keys) = (0, HashSet::new());
        for Run { batch, .. } in &self.all {
            for (row, EncodedRow { key_end, .. }) in batch.rows.iter().enumerate() {
                let hash = self.hasher.hash_one(&batch.bytes[batch.begin(row)..*key_end]);
                if hash.is_multiple_of(COUNTED_PART) {
                    rows += 1;
                    keys.insert(hash);
                }
            }
        }
        self.due = 2 * self.memory;
        keys.len() <= rows / 2
    }

    pub(super) fn take(&mut self) -> Vec<Run> {
        self.memory = 0;
        mem::take(&mut self.all)
    }

    /// Takes the rows that stayed.
    pub(super) fn put_back(&mut self, merged: Merged) {
        for run in merged.runs {
            self.push(run.tight());
        }
        self.due = 2 * self.memory;
    }
}

/// Rows of a merge, in the order of their keys, as runs.
#[derive(Default)]
pub(super) struct Merged {
    runs: Vec<Run>,
}

impl Merged {
    pub(super) fn push(&mut self, place: Place, key: &[u8], value: &[u8]) {
        let is_full = |run: &Run| run.batch.bytes.len() >= MERGED_BYTES;
        if self.runs.last().is_none_or(is_full) {
            if let Some(full) = self.runs.pop() {
                self.runs.push(full.tight());
            }
            // Places are those in the file.
            let batch = Encoded { has_lines: true, ..Encoded::default() };
            self.runs.push(Run { batch, rows_before: 0, first_number: 0 });
        }
        self.runs.last_mut().expect("it is there").batch.push(place, key, value);
    }
}

/// A row of a run.
pub(super) struct Row<'r> {
    /// In the file.
    pub(super) place: Place,
    /// Without the number.
    pub(super) key: &'r [u8],
    /// Where rows are numbered.
    pub(super) number: Option<u64>,
    pub(super) value: &'r [u8],
}

/// The rows of runs in the order of their keys; those of a key in the order of their runs.
pub(super) struct Merge {
    heads: BinaryHeap<Head>,
}

/// A run, and which of its rows is next.
struct Head {
    prefix: Prefix,
    /// Its place among the runs.
    number: usize,
    run: Box<Run>,
    row: usize,
    number_bytes: usize,
}

impl Merge {
    /// Merges runs in the order of the file. So many bytes at the end of each key are a number.
    pub(super) fn of(runs: Vec<Run>, number_bytes: usize) -> Merge {
        let runs = runs.into_iter().filter(|run| !run.batch.rows.is_empty()).enumerate();
        let heads = runs.map(|(number, run)| {
            let (prefix, run) = (Prefix(0), Box::new(run));
            let mut head = Head { prefix, number, run, row: 0, number_bytes };
            head.prefix = Prefix::of(head.key());
            head
        });
        Merge { heads: heads.collect() }
    }

    /// The next row.
    pub(super) fn first(&self) -> Option<Row<'_>> {
        self.heads.peek().map(Head::first)
    }

    /// Goes on behind the next row, if there is one.
    pub(super) fn pass(&mut self) {
        let Some(mut head) = self.heads.peek_mut() else { return };
        head.row += 1;
        if head.row < head.run.batch.rows.len() {
            head.prefix = Prefix::of(head.key());
        } else {
            PeekMut::pop(head);
        }
    }
}

impl Head {
    /// The key of the next row.
    fn key(&self) -> &[u8] {
        let batch = &self.run.batch;
        &batch.bytes[batch.begin(self.row)..batch.rows[self.row].key_end - self.number_bytes]
    }

    fn first(&self) -> Row<'_> {
        let Run { batch, rows_before, first_number } = &*self.run;
        let row = &batch.rows[self.row];
        let number = (self.number_bytes > 0).then(|| {
            let bytes = &batch.bytes[row.key_end - self.number_bytes..row.key_end];
            first_number + key::decode::<u64>(bytes).expect("it was written as one")
        });
        Row {
            place: batch.place(row.place, *rows_before),
            key: self.key(),
            number,
            value: &batch.bytes[row.key_end..row.end],
        }
    }
}

/// The next row is the greatest.
impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        let by_prefix = other.prefix.cmp(&self.prefix);
        let by_key = || other.key().cmp(self.key());
        by_prefix.then_with(by_key).then_with(|| other.number.cmp(&self.number))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

#[cfg(test)]
mod tests {
    use sapwood::key::KeyEncode;

    use super::*;

    /// Keys of few different bytes, so that some are the beginning of others, and equal in all that prefixes have.
    fn draw(random: &mut fastrand::Rng) -> Vec<u8> {
        let alike = random.usize(0..18);
        let mut key = vec![0; alike];
        key.extend((0..random.usize(1..4)).map(|_| random.choice([0, 1, 0xFF]).expect("some")));
        key
    }

    #[test]
    fn runs_are_merged_by_key_and_those_of_a_key_by_place() {
        let mut random = fastrand::Rng::with_seed(7);
        for number_bytes in [0, size_of::<u64>()] {
            let (mut runs, mut expected, mut rows_before) = (Vec::new(), Vec::new(), 0);
            for _ in 0..60 {
                let count = random.u64(0..40);
                let mut batch = Encoded { count, numbers: count, ..Encoded::default() };
                for row in 0..count {
                    let mut key = draw(&mut random);
                    let place = Place { line: row + 1, row };
                    let number = rows_before + row;
                    let value = number.to_le_bytes();
                    expected.push((key.clone(), number, number_bytes > 0));
                    if number_bytes > 0 {
                        row.encode_to(&mut key);
                    }
                    batch.push(place, &key, &value);
                }
                let batch = batch.sorted(number_bytes);
                runs.push(Run { batch, rows_before, first_number: rows_before }.tight());
                rows_before += count;
            }
            // By the number behind the key.
            expected.sort();
            let mut merge = Merge::of(runs, number_bytes);
            for (key, number, is_numbered) in expected {
                let row = merge.first().expect("a row is left");
                assert_eq!((row.key, row.number), (&key[..], is_numbered.then_some(number)));
                assert_eq!(row.value, number.to_le_bytes());
                assert_eq!(row.place, Place { line: number + 1, row: number });
                merge.pass();
            }
            assert!(merge.first().is_none());
        }
    }

    /// Rows of so many keys, of 1 KiB each, in runs of 1 MiB.
    fn waiting(mib: u64, keys: u64) -> Runs {
        let (mut runs, mut random) = (Runs::default(), fastrand::Rng::with_seed(3));
        for rows_before in (0..mib).map(|run| run << 10) {
            let mut batch = Encoded { count: 1 << 10, ..Encoded::default() };
            for row in 0..batch.count {
                let key = random.u64(0..keys).to_be_bytes();
                batch.push(Place { line: row + 1, row }, &key, &[0; 1000]);
            }
            runs.push(Run { batch: batch.sorted(0), rows_before, first_number: 0 }.tight());
        }
        runs
    }

    #[test]
    fn runs_are_due_where_most_rows_are_repeated() {
        assert!(!waiting(60, 10).are_due(), "too little");
        assert!(waiting(70, 10).are_due());
        // Of 71,680 rows about 24,000 would stay, and 51,000.
        assert!(waiting(70, 25_000).are_due());
        let mut distinct = waiting(70, 100_000);
        assert!(!distinct.are_due());
        assert!(distinct.due > distinct.memory);
    }
}
