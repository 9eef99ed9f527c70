//! The trait of an ordered engine: the adapter that each engine writes.
//!
//! Answers are owned, so that they can be compared with the oracle's or checked later.

use crate::interleave;
use crate::{Bytes, Shown};
use std::fmt;
use std::ops::Bound;

/// A key and its value; of a scan that reads keys only, the value is empty.
pub type Pair = (Vec<u8>, Vec<u8>);

/// Both ends of a range of keys.
pub type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// An engine's answer, or why it refused.
pub type Result<T> = std::result::Result<T, Refusal>;

/// Why an engine refused an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The key is empty or too long.
    KeyLength,
    /// The value is too long.
    ValueLength,
    /// The memory budget is used up.
    OutOfMemory,
    /// The value is not a counter of 8 bytes.
    NotACounter,
    /// The counter would leave its range.
    Overflow,
    /// Anything that no stream of operations may meet, in the engine's words.
    Other(String),
}

/// The way of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the least key up.
    Ascending,
    /// From the greatest key down.
    Descending,
}

/// Which of an engine's scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanForm {
    /// A closure sees each key and value.
    Stream,
    /// A closure sees each key.
    Keys,
    /// An iterator of entries under guards.
    Entries,
    /// An iterator of owned pairs.
    Owned,
}

impl ScanForm {
    /// Every form.
    pub const ALL: [ScanForm; 4] =
        [ScanForm::Stream, ScanForm::Keys, ScanForm::Entries, ScanForm::Owned];
}

/// One step of a change in place.
#[derive(Clone, PartialEq, Eq)]
pub enum Edit {
    /// Replace the whole value.
    Set(Bytes),
    /// Add bytes at the end.
    Append(Bytes),
    /// Cut, or grow with zero bytes.
    Resize(usize),
    /// Xor every byte.
    Xor(u8),
}

impl fmt::Debug for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Edit::Set(bytes) => write!(f, "Set({})", Shown(bytes)),
            Edit::Append(bytes) => write!(f, "Append({})", Shown(bytes)),
            Edit::Resize(len) => write!(f, "Resize({len})"),
            Edit::Xor(byte) => write!(f, "Xor({byte})"),
        }
    }
}

/// A value under change: the adapter hands its engine's to [`Edited::apply`].
pub trait ValueEdit {
    /// The bytes as they are now.
    fn bytes(&mut self) -> &mut [u8];
    /// Replaces the whole value.
    fn set(&mut self, bytes: &[u8]) -> Result<()>;
    /// Adds bytes at the end.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
    /// Cuts, or grows with zero bytes.
    fn resize(&mut self, len: usize) -> Result<()>;
}

impl ValueEdit for Vec<u8> {
    fn bytes(&mut self) -> &mut [u8] {
        self
    }
    fn set(&mut self, bytes: &[u8]) -> Result<()> {
        self.clear();
        self.extend_from_slice(bytes);
        Ok(())
    }
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
    fn resize(&mut self, len: usize) -> Result<()> {
        Vec::resize(self, len, 0);
        Ok(())
    }
}

/// The value that a change in place left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The value after the last step that was done.
    pub after: Vec<u8>,
    /// The step that was refused, and why; the steps before it are done, those after it are not.
    pub refused: Option<(usize, Refusal)>,
}

impl Edited {
    /// Changes a value step by step, pausing between steps where the thread's seed says so.
    pub fn apply(edits: &[Edit], value: &mut dyn ValueEdit) -> Edited {
        let mut refused = None;
        for (index, edit) in edits.iter().enumerate() {
            interleave::pause();
            let done = match edit {
                Edit::Set(bytes) => value.set(bytes),
                Edit::Append(bytes) => value.append(bytes),
                Edit::Resize(len) => value.resize(*len),
                Edit::Xor(byte) => {
                    value.bytes().iter_mut().for_each(|b| *b ^= byte);
                    Ok(())
                }
            };
            if let Err(refusal) = done {
                refused = Some((index, refusal));
                break;
            }
        }
        interleave::pause();
        let after = value.bytes().to_vec();
        Edited { after, refused }
    }
}

/// The outcome of `put_if_absent_or_update`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upserted {
    /// The key was absent.
    Inserted,
    /// The key was present and its value changed.
    Updated(Edited),
}

/// The decision of the closure of `compute`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Leave everything.
    Keep,
    /// This value, whether the key is there or not.
    Replace(Vec<u8>),
    /// The key gone.
    Remove,
}

/// The outcome of `compute`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Computed {
    /// The value is as before.
    Kept,
    /// The key was absent and is there now.
    Inserted,
    /// The key has another value.
    Replaced,
    /// The key was there and is gone.
    Removed,
    /// The key was absent and still is.
    Absent,
}

/// The sums that an engine says it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accounting {
    /// Entries.
    pub entries: u64,
    /// Bytes of their keys.
    pub key_bytes: u64,
    /// Bytes of their values.
    pub value_bytes: u64,
}

/// An ordered engine of byte keys and byte values, with owned answers.
///
/// Adapters call [`interleave::pause`] wherever the engine runs their closure.
pub trait OrderedEngine: Sync {
    /// A copy of the value.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;
    /// A copy of the value, made in a closure that sees it in place. An adapter checks that the
    /// bytes are the same at the closure's end as at its begin.
    fn get_with(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;
    /// Whether the key is there.
    fn contains_key(&self, key: &[u8]) -> Result<bool>;
    /// Whether it replaced a value.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool>;
    /// Whether it inserted.
    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool>;
    /// Whether the key was there.
    fn remove(&self, key: &[u8]) -> Result<bool>;
    /// The value that it removed.
    fn take(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;
    /// A change in place.
    fn update(&self, key: &[u8], edits: &[Edit]) -> Result<Option<Edited>>;
    /// An insert, or else a change in place.
    fn upsert(&self, key: &[u8], value: &[u8], edits: &[Edit]) -> Result<Upserted>;
    /// A decision on what is there.
    fn compute(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Decision,
    ) -> Result<Computed>;
    /// The entry of the least key.
    fn first(&self) -> Result<Option<Pair>>;
    /// The entry of the greatest key.
    fn last(&self) -> Result<Option<Pair>>;
    /// The entry of the greatest key `<= key`.
    fn floor(&self, key: &[u8]) -> Result<Option<Pair>>;
    /// The entry of the greatest key `< key`.
    fn lower(&self, key: &[u8]) -> Result<Option<Pair>>;
    /// The entry of the least key `>= key`.
    fn ceiling(&self, key: &[u8]) -> Result<Option<Pair>>;
    /// The entry of the least key `> key`.
    fn higher(&self, key: &[u8]) -> Result<Option<Pair>>;
    /// Removes the entry of the least key.
    fn pop_first(&self) -> Result<Option<Pair>>;
    /// Removes the entry of the greatest key.
    fn pop_last(&self) -> Result<Option<Pair>>;
    /// Up to `limit` entries in the order of the scan.
    fn scan(
        &self,
        form: ScanForm,
        bounds: Bounds<'_>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>>;
    /// All entries of a range taken from both ends: bit `i % 64` of `from_back` says whether the
    /// `i`-th is taken from the back.
    fn both_ends(&self, bounds: Bounds<'_>, from_back: u64) -> Result<Vec<Pair>>;
    /// The value of each key.
    fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Vec<u8>>>>;
    /// How many it replaced; or how many pairs are in, and why no more.
    fn put_many(&self, pairs: &[(Bytes, Bytes)]) -> std::result::Result<usize, (usize, Refusal)>;
    /// Number of entries, by counter.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of entries, by walking.
    fn len_exact(&self) -> usize;
    /// Removes everything.
    fn clear(&self) -> Result<()>;
    /// Verifies the engine's own invariants while no thread writes.
    fn check(&self) -> std::result::Result<(), String>;
    /// The sums that the engine says it holds, where it counts.
    fn accounting(&self) -> Option<Accounting>;
}
