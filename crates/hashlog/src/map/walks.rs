//! All entries: walks by buckets and by the log, snapshots.

use std::ops::ControlFlow;

use sapwood_engine::{Compute, Computed};

use super::HashLog;
use crate::error::{Error, Result};
use crate::ops::by_layout;
use crate::options::Layout;
use crate::walks::hold::Hold;
use crate::walks::snapshot::{Snapshot, Sweep, check_part};

impl HashLog {
    /// Visits the entries in bucket order, until `visit` breaks. A key that is there throughout
    /// is visited exactly once. The index does not grow meanwhile.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corrupt`] for records on the disk; [`Error::WouldBlock`] inside a
    /// closure, while the log is compacted.
    pub fn for_each<B>(
        &self,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.for_each_part(0, 1, visit)
    }

    /// Part `part` of `parts` disjoint parts of [`HashLog::for_each`], for as many threads. Compiled
    /// with its caller: a call of a closure would cost a tenth of each entry.
    ///
    /// # Errors
    /// As [`HashLog::for_each`]; [`Error::Argument`] if `part` is not below `parts`.
    pub fn for_each_part<B>(
        &self,
        part: usize,
        parts: usize,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        check_part(part, parts)?;
        by_layout!(self, F => self.store.walk_buckets::<F, B>((part, parts), &mut visit))
    }

    /// One step of a walk of all entries: visits the entries of whole buckets from `cursor` on, until
    /// `entries_min` were visited or there are no more, and of one bucket at least; answers the
    /// cursor of the next step, or 0 at the end. The first step has cursor 0.
    ///
    /// Between two steps nothing is held: writers go on, the index grows, the log is compacted or
    /// checkpointed, and opened again. A key that is there from the first step to the end of the
    /// last one is visited exactly once, with a value that it had meanwhile; one that is put or
    /// removed meanwhile is visited or not. The steps of a walk may differ in length, and any
    /// number of walks go on at once. All steps together cost what [`HashLog::for_each`] does, and a
    /// little for each step.
    ///
    /// A cursor is a number below that of the buckets. Every other number is taken too, as that of
    /// a walk of some of the entries.
    ///
    /// ```
    /// use sapwood_hashlog::{HashLog, Options};
    ///
    /// let log = HashLog::in_memory(Options::default())?;
    /// log.put_many(&[(b"one", b"1"), (b"two", b"2")])?;
    /// let (mut cursor, mut keys) = (0, Vec::new());
    /// loop {
    ///     cursor = log.scan_from(cursor, 1, |key, _value| keys.push(key.to_vec()))?;
    ///     if cursor == 0 {
    ///         break;
    ///     }
    /// }
    /// keys.sort();
    /// assert_eq!(keys, [b"one", b"two"]);
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`HashLog::for_each`]; `visit` was called for some entries by then, and the same step may
    /// be tried again.
    pub fn scan_from(
        &self,
        cursor: u64,
        entries_min: usize,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        self.step_from(cursor, entries_min, &mut visit)
    }

    fn step_from(
        &self,
        cursor: u64,
        entries_min: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        let mut visit = |key: &[u8], value: &[u8]| visit(key, value);
        by_layout!(self, F => self.store.scan_from::<F>(cursor, entries_min, &mut visit))
    }

    /// Visits all entries that can be read, and tells what keeps others from being read: in a bucket one damaged
    /// record hides those behind it.
    ///
    /// ```
    /// use sapwood_hashlog::{HashLog, Options};
    ///
    /// let log = HashLog::in_memory(Options::default())?;
    /// log.put_many(&[(b"one", b"1"), (b"two", b"2")])?;
    /// let (mut count, mut problems) = (0, Vec::new());
    /// log.for_each_readable(|_key, _value| count += 1, |problem| problems.push(problem));
    /// assert_eq!((count, problems.len()), (2, 0));
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    pub fn for_each_readable(
        &self,
        mut visit: impl FnMut(&[u8], &[u8]),
        mut problem: impl FnMut(Error),
    ) {
        self.walk_readable(&mut visit, &mut problem);
    }

    fn walk_readable(&self, visit: &mut dyn FnMut(&[u8], &[u8]), problem: &mut dyn FnMut(Error)) {
        let mut visit = |key: &[u8], value: &[u8]| visit(key, value);
        let mut problem = |error| problem(error);
        by_layout!(self, F => self.store.walk_readable::<F>(&mut visit, &mut problem));
    }

    /// One entry, owned, chosen by `random`, a number all of whose bits are random; `None` without
    /// entries.
    ///
    /// The bucket is the one that `random` names, or else the first few from there on that have
    /// entries, and each of their entries is as likely. So every entry can be chosen, and those of
    /// buckets with few entries, or behind empty ones, are chosen more often. One bucket is looked
    /// at, or a few: many only where most entries were removed, and all where all were.
    ///
    /// The entry was there at a moment of the call. `None` says that no entry was there throughout.
    ///
    /// ```
    /// use sapwood_hashlog::{HashLog, Options};
    ///
    /// let log = HashLog::in_memory(Options::default())?;
    /// let random = 0x9E37_79B9_7F4A_7C15;
    /// assert_eq!(log.sample(random)?, None);
    /// log.put(b"one", b"1")?;
    /// assert_eq!(log.sample(random)?, Some((b"one".to_vec(), b"1".to_vec())));
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`HashLog::for_each`].
    pub fn sample(&self, random: u64) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        by_layout!(self, F => self.store.sample::<F>(random))
    }

    /// The entries, owned, in bucket order. A key that is there from the call to the iterator's end
    /// comes exactly once, with a value that it had meanwhile. Of a key that is put or removed
    /// meanwhile the entry may come or not.
    ///
    /// Some hundred entries are in memory at a time, by [`HashLog::scan_from`]. Between them nothing
    /// is held: writers go on, the index grows, the log is compacted. An error is the last item.
    ///
    /// ```
    /// use sapwood_hashlog::{HashLog, Options};
    ///
    /// let log = HashLog::in_memory(Options::default())?;
    /// log.put_many(&[(b"one", b"1"), (b"two", b"2")])?;
    /// let mut entries = log.iter().collect::<Result<Vec<_>, _>>()?;
    /// entries.sort();
    /// assert_eq!(entries[1], (b"two".to_vec(), b"2".to_vec()));
    /// assert_eq!(entries.len(), 2);
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    ///
    /// # Errors
    /// Each step may answer as [`HashLog::for_each`].
    pub fn iter(&self) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> + '_ {
        let entries: Box<dyn Iterator<Item = _> + '_> =
            by_layout!(self, F => Box::new(self.store.entries::<F>()));
        entries
    }

    /// Removes the entries of which `keep` says false, and answers how many. An entry that is put
    /// meanwhile may be asked about or not. Not atomic as a whole; writers go on.
    ///
    /// An entry is removed as it was when `keep` refused it: one that a writer changes meanwhile is
    /// asked about again. So `keep` may see an entry twice, the second time as
    /// [`HashLog::compute`] does.
    ///
    /// ```
    /// use sapwood_hashlog::{HashLog, Options};
    ///
    /// let log = HashLog::in_memory(Options::default())?;
    /// log.put_many(&[(b"one", b"1"), (b"two", b"2")])?;
    /// assert_eq!(log.retain(|_key, value| value == b"2")?, 1);
    /// assert_eq!(log.get(b"one")?, None);
    /// assert_eq!(log.get(b"two")?, Some(b"2".to_vec()));
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`HashLog::for_each`] and [`HashLog::compute`]; some entries may be gone by then.
    ///
    /// # Panics
    /// If `keep` does; the entry that it was asked about is there.
    pub fn retain(&self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        let mut removed = 0;
        for entry in self.iter() {
            let (key, seen) = entry?;
            if keep(&key, &seen) {
                continue;
            }
            let done = self.compute(&key, |now| match now {
                Some(now) if now == seen || !keep(&key, now) => Compute::Remove,
                _ => Compute::Keep,
            })?;
            removed += u64::from(done == Computed::Removed);
        }
        Ok(removed)
    }

    /// Visits the entries in log order as they were at one moment of the call, until `visit`
    /// breaks. Writers go on; what they change meanwhile they copy.
    ///
    /// # Errors
    /// As [`HashLog::snapshot`]; [`Error::Io`] and [`Error::Corrupt`] for records on the disk.
    pub fn scan_log<B>(
        &self,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.snapshot()?.scan(visit)
    }

    /// Fixes this moment for walks. As long as it lives, records below its boundary are copied
    /// instead of changed, and nothing is compacted.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] inside a closure; [`Error::OutOfMemory`] and [`Error::Io`] if the log
    /// cannot begin a page.
    pub fn snapshot(&self) -> Result<Snapshot<'_>> {
        Ok(Snapshot { moment: self.store.moment()?, store: &self.store })
    }

    /// Begins a walk of the log that fixes nothing: a key that is there from now until it has been
    /// walked is visited exactly once, with a value that it has in that time. As long as it lives,
    /// nothing is compacted; writers change in place what they may change in place. [`Snapshot`]
    /// shows one moment instead, for which writers copy what they change, and pages are closed.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use sapwood_hashlog::{HashLog, Options};
    ///
    /// let log = HashLog::in_memory(Options::default())?;
    /// log.put(b"key", b"value")?;
    /// let mut seen = 0;
    /// let _all = log.sweep()?.scan_part(0, 1, |_key, _value| {
    ///     seen += 1;
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(seen, 1);
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::WouldBlock`] inside a closure.
    pub fn sweep(&self) -> Result<Sweep<'_>> {
        Ok(Sweep(Snapshot { moment: self.store.sweep()?, store: &self.store }))
    }

    /// As [`HashLog::sweep`], for records that are changed where they were met: they stay there as
    /// long as it lives. `None` where records may go, in a directory; where there is a journal; and
    /// unless the layout is [`Layout::Fixed8`].
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use sapwood_hashlog::{Addresses, ChangeRun, HashLog, Layout, Options, RecordRun, ValueMut};
    ///
    /// struct AddOne;
    /// impl ChangeRun for AddOne {
    ///     fn becomes(&self, _key: [u8; 8], value: [u8; 8]) -> Option<[u8; 8]> {
    ///         Some((u64::from_le_bytes(value) + 1).to_le_bytes())
    ///     }
    ///     fn met(&mut self, _at: usize, _key: [u8; 8], _before: [u8; 8]) {}
    ///     fn by_key(&mut self, _at: usize, key: [u8; 8], value: Option<&mut ValueMut<'_>>) {
    ///         if let Some(word) = value.and_then(|value| value.first_chunk_mut()) {
    ///             *word = self.becomes(key, *word).unwrap_or(*word);
    ///         }
    ///     }
    /// }
    ///
    /// let mut options = Options::default();
    /// options.layout = Layout::Fixed8;
    /// let log = HashLog::in_memory(options)?;
    /// for key in 0..5_000_u64 {
    ///     log.put(&key.to_le_bytes(), &2_u64.to_le_bytes())?;
    /// }
    /// let hold = log.hold()?.expect("a log in memory, of fixed records");
    /// let mut runs = Vec::new();
    /// let _all = hold.scan_part(0, 1, |batch| {
    ///     if let Addresses::Stepped { first, step } = batch.addresses() {
    ///         let mut run = RecordRun { first, step, bits: [0; 16] };
    ///         for at in (0..batch.len()).filter(|at| batch.entry(*at).is_some()) {
    ///             run.bits[at / 64] |= 1 << (at % 64);
    ///         }
    ///         runs.push(run);
    ///     }
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// let changed = runs.iter().map(|run| hold.update_run(run, 0, &mut AddOne));
    /// assert_eq!(changed.sum::<Result<usize, _>>()?, 5_000);
    /// assert_eq!(log.get(&7_u64.to_le_bytes())?, Some(3_u64.to_le_bytes().to_vec()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::WouldBlock`] inside a closure.
    pub fn hold(&self) -> Result<Option<Hold<'_>>> {
        let stays = self.is_in_memory() && self.store.options.layout == Layout::Fixed8;
        if !stays || self.journal.is_some() {
            return Ok(None);
        }
        Hold::new(&self.store).map(Some)
    }
}
