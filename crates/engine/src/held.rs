//! Records that stay where a walk met them, and their keys.

use crate::{ColumnBuffer, RecordAddress};

/// Some of the records at the addresses `first + n * step`, n below [`RecordRun::LEN_MAX`]: each is a
/// bit.
///
/// ```
/// use sapwood_engine::{RecordAddress, RecordRun};
///
/// let mut run = RecordRun { first: RecordAddress::from_word(30), step: 3, bits: [0; 16] };
/// (run.bits[0], run.bits[1]) = (0b101, 1);
/// assert_eq!(run.len(), 3);
/// let words = |at: usize| run.address(at).map(RecordAddress::word);
/// assert_eq!([words(0), words(1), words(2), words(3)], [Some(30), Some(36), Some(222), None]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRun {
    /// The address that bit 0 means.
    pub first: RecordAddress,
    /// How much more each word is.
    pub step: u64,
    /// Record `n` has bit `n % 64` of word `n / 64`.
    pub bits: [u64; 16],
}

const _: () = assert!(RecordRun::LEN_MAX == 16 * 64);

impl RecordRun {
    /// Most records of a run: those of a batch.
    pub const LEN_MAX: usize = ColumnBuffer::LEN_MAX;

    /// How many records it has.
    pub fn len(&self) -> usize {
        self.bits.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|bits| *bits == 0)
    }

    /// Which bit its record number `at` has.
    pub fn slot(&self, mut at: usize) -> Option<usize> {
        for (word, &bits) in self.bits.iter().enumerate() {
            let count = bits.count_ones() as usize;
            if at < count {
                let rest = (0..at).fold(bits, |rest, _| rest & (rest - 1));
                return Some(word * 64 + rest.trailing_zeros() as usize);
            }
            at -= count;
        }
        None
    }

    /// The address of its record number `at`.
    pub fn address(&self, at: usize) -> Option<RecordAddress> {
        self.slot(at).map(|slot| self.address_of_slot(slot as u64))
    }

    /// The address that a bit means.
    #[inline]
    pub fn address_of_slot(&self, slot: u64) -> RecordAddress {
        let ahead = slot.wrapping_mul(self.step);
        RecordAddress::from_word(self.first.word().wrapping_add(ahead))
    }
}

/// Records of 8-byte keys that stay where a walk met them, so that their keys are not kept elsewhere.
///
/// # Consistency
/// As long as it lives, the record at an address that its walk handed out is there, and has the key
/// that it had then.
pub trait HeldKeys: Sync + std::fmt::Debug {
    /// Appends the keys of the records of a run, in order.
    ///
    /// # Panics
    /// If the run is of another walk.
    fn read_run(&self, run: &RecordRun, keys: &mut Vec<[u8; 8]>);

    /// Appends the keys of some records.
    ///
    /// # Panics
    /// If an address is of another walk.
    fn read_each(&self, addresses: &[RecordAddress], keys: &mut Vec<[u8; 8]>);
}
