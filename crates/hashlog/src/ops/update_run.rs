//! Changes of the records of a hold, where they lie.
//!
//! A run is a piece of a page: under an edit of the log one window is over all of it, and each of its
//! records that is the newest of its key is changed by a plain load and store. In the page at the
//! tail, which edits do not cover, records are changed by atomic instructions, as updates by address
//! are. A record that was superseded, removed or claimed goes by its key, which it still has, in its
//! turn.

use sapwood_mem::sync::Ordering;

use crate::error::BatchError;
use crate::log::{LogEdit, Row};
use crate::ops::store::Store;
use crate::record::address::Address;
use crate::record::in_place::{InPlace, Write};
use crate::record::value::ValueMut;
use crate::record::{Fixed, Record};
use sapwood_engine::RecordRun;

/// What becomes of the entries of a run: `at` counts them from 0.
pub trait ChangeRun {
    /// What a value becomes; `None` if it stays as it is. It may be asked again, of the value as it is
    /// then.
    fn becomes(&self, key: [u8; 8], value: [u8; 8]) -> Option<[u8; 8]>;

    /// Is told once of each entry that was found where it was, with its value before, once it has
    /// become what was answered last.
    fn met(&mut self, at: usize, key: [u8; 8], before: [u8; 8]);

    /// Changes the values of entries that were found where they were, from number `at` on, and that no
    /// other thread changes meanwhile: as `becomes` and `met` of one after the other.
    fn change_group(&mut self, at: usize, keys: &[[u8; 8]], values: &mut [[u8; 8]]) {
        for (at, (key, value)) in (at..).zip(keys.iter().zip(values)) {
            let before = *value;
            *value = self.becomes(*key, before).unwrap_or(before);
            self.met(at, *key, before);
        }
    }

    /// Changes an entry that was found by its key; `None` if it is gone. It may be called again, with
    /// the value as it is then, and the last call counts.
    fn by_key(&mut self, at: usize, key: [u8; 8], value: Option<&mut ValueMut<'_>>);
}

/// Records that are changed together: those of a word of bits.
const GROUP: usize = u64::BITS as usize;
/// Records that go by their keys together.
const TOGETHER: usize = 64;

/// How far a run is changed.
struct Position {
    /// The entry, and the bit of its record.
    at: usize,
    slot: usize,
}

impl Store {
    /// Changes the entries of a run that a hold has checked, but the first `done`.
    pub(crate) fn update_run(
        &self,
        run: &RecordRun,
        done: usize,
        edit: Option<&LogEdit<'_>>,
        change: &mut impl ChangeRun,
    ) -> std::result::Result<usize, BatchError> {
        let len = run.len();
        assert!(done <= len, "so many entries are not in the run");
        let mut next = Position { at: done, slot: run.slot(done).unwrap_or(RecordRun::LEN_MAX) };
        while next.at < len {
            let first = Address::from(run.first);
            let may_be_here = match edit {
                Some(edit) if first < edit.limit => {
                    self.change_window(run, edit, &mut next, change)
                }
                Some(_) => self.change_each(run, &mut next, change),
                None => false,
            };
            let keys = self.keys_elsewhere(run, &next, may_be_here);
            let at = next.at;
            self.update_many::<Fixed, _>(&keys, &mut |behind, value| {
                change.by_key(at + behind, keys[behind], value);
            })
            .map_err(|stopped| BatchError { done: at + stopped.done, ..stopped })?;
            next.at += keys.len();
            next.slot = run.slot(next.at).unwrap_or(RecordRun::LEN_MAX);
        }
        Ok(len)
    }

    /// Changes entries under an edit, up to one that is not where it was. False if none may be changed
    /// there.
    fn change_window(
        &self,
        run: &RecordRun,
        edit: &LogEdit<'_>,
        next: &mut Position,
        change: &mut impl ChangeRun,
    ) -> bool {
        let first = Address::from(run.address_of_slot(next.slot as u64));
        let limit = Address::from(run.address_of_slot(RecordRun::LEN_MAX as u64));
        let _window = edit.open(first..limit.min(edit.limit));
        let pin = self.log.epochs.pin();
        // Under the pin: a snapshot that moves it later waits.
        if first < self.log.fixed_below() {
            return false;
        }
        let records = self.log.records(&pin);
        let mut group = Group::new();
        for word in next.slot / GROUP..run.bits.len() {
            let bits = run.bits[word] & behind(next.slot, word);
            if bits == 0 {
                continue;
            }
            let row = records.row(run.address_of_slot((word * GROUP) as u64).into());
            let stopped = group.load(&row, bits);
            change.change_group(next.at, &group.keys[..group.len], &mut group.values[..group.len]);
            group.store(&row);
            next.at += group.len;
            if let Some(slot) = stopped {
                next.slot = word * GROUP + slot;
                return true;
            }
        }
        next.slot = RecordRun::LEN_MAX;
        true
    }

    /// The same in the mutable region, one by one.
    fn change_each(
        &self,
        run: &RecordRun,
        next: &mut Position,
        change: &mut impl ChangeRun,
    ) -> bool {
        let pin = self.log.epochs.pin();
        // Before any record is looked at: see `Store::look`.
        if Address::from(run.first) < self.log.read_only() {
            return false;
        }
        let records = self.log.records(&pin);
        for slot in slots(run, next.slot) {
            let record = records.at(run.address_of_slot(slot as u64).into());
            next.slot = slot;
            if !record.is_unclaimed() {
                return true;
            }
            change_atomically(next.at, record, change);
            next.at += 1;
        }
        next.slot = RecordRun::LEN_MAX;
        true
    }

    /// The keys of the next entries that are not where they were, of one at least, where the others
    /// may be changed there.
    fn keys_elsewhere(&self, run: &RecordRun, next: &Position, may_be_here: bool) -> Vec<[u8; 8]> {
        let pin = self.log.epochs.pin();
        let records = self.log.records(&pin);
        let mut keys = Vec::new();
        for slot in slots(run, next.slot).take(TOGETHER) {
            let record = records.at(run.address_of_slot(slot as u64).into());
            if may_be_here && !keys.is_empty() && record.is_unclaimed() {
                break;
            }
            keys.push(record.fixed_words().0);
        }
        keys
    }
}

/// The bits of a run from one on.
fn slots(run: &RecordRun, from: usize) -> impl Iterator<Item = usize> {
    (from..RecordRun::LEN_MAX).filter(|slot| run.bits[slot / 64] >> (slot % 64) & 1 == 1)
}

/// The bits of a word that are not before a slot of the run.
fn behind(slot: usize, word: usize) -> u64 {
    match slot.saturating_sub(word * GROUP) {
        before @ 0..GROUP => u64::MAX << before,
        _ => 0,
    }
}

/// Keys and values of records, copied to be changed.
struct Group {
    keys: [[u8; 8]; GROUP],
    values: [[u8; 8]; GROUP],
    /// Which of the row each is.
    slots: [u8; GROUP],
    len: usize,
    /// Whether each is the one of its number.
    is_whole: bool,
}

impl Group {
    fn new() -> Group {
        let (words, slots) = ([[0; 8]; GROUP], [0; GROUP]);
        Group { keys: words, values: words, slots, len: 0, is_whole: false }
    }

    /// Copies the records whose bit is set, up to one that is not the newest of its key: its number.
    fn load(&mut self, row: &Row<'_>, bits: u64) -> Option<usize> {
        row.prefetch_ahead(GROUP);
        (self.len, self.is_whole) = (0, false);
        if bits == u64::MAX && self.load_all(row) {
            return None;
        }
        let mut rest = bits;
        while rest != 0 {
            let slot = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let record = row.at(slot);
            if !record.is_unclaimed() {
                return Some(slot);
            }
            (self.keys[self.len], self.values[self.len]) = words(record);
            self.slots[self.len] = slot as u8;
            self.len += 1;
        }
        None
    }

    /// Copies all records of the row; false if one is not the newest of its key.
    fn load_all(&mut self, row: &Row<'_>) -> bool {
        let mut are_unclaimed = true;
        for (at, (key, value)) in self.keys.iter_mut().zip(&mut self.values).enumerate() {
            let record = row.at(at);
            are_unclaimed &= record.is_unclaimed();
            (*key, *value) = words(record);
        }
        if are_unclaimed {
            (self.len, self.is_whole) = (GROUP, true);
        }
        are_unclaimed
    }

    /// Puts the values back.
    fn store(&self, row: &Row<'_>) {
        let store = |record: Record, value: [u8; 8]| {
            // Release: pairs with the Acquire of gets.
            record.fixed_value().store(u64::from_le_bytes(value), Ordering::Release);
        };
        if self.is_whole {
            self.values.iter().enumerate().for_each(|(at, value)| store(row.at(at), *value));
            return;
        }
        for (slot, value) in self.slots[..self.len].iter().zip(&self.values) {
            store(row.at(usize::from(*slot)), *value);
        }
    }
}

/// Key and value.
#[inline(always)]
fn words(record: Record) -> ([u8; 8], [u8; 8]) {
    // Acquire: pairs with the Release of the last writer.
    let value = record.fixed_value().load(Ordering::Acquire);
    (record.fixed_words().0, value.to_le_bytes())
}

/// Changes a record in the mutable region.
fn change_atomically(at: usize, record: Record, change: &mut impl ChangeRun) {
    let key = record.fixed_words().0;
    let before = Fixed::update_atomically(record, &mut |value| {
        let bytes = value.first_chunk_mut().expect("values of fixed records have 8 bytes");
        let before = *bytes;
        match change.becomes(key, before) {
            Some(after) => *bytes = after,
            None => return (before, Write::Unchanged),
        }
        (before, Write::Changed)
    });
    change.met(at, key, before.expect("fixed records are changed by atomic instructions"));
}
