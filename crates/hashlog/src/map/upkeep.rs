//! Checkpoints, compaction, and what a log holds and costs.

use std::ops::ControlFlow;

use sapwood_mem::sync::held::MutexGuard;

use super::HashLog;
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::ops::by_layout;
use crate::options::{Cut, Layout, Options};
use crate::record::address::Address;
use crate::stats::{CheckpointInfo, Compacted, HashStats};

/// Files stay as long as this lives: see [`HashLog::hold_files`].
#[derive(Debug)]
pub struct FilesHeld<'a>(#[expect(dead_code, reason = "it is held")] Option<MutexGuard<'a, ()>>);

impl HashLog {
    /// Writes a checkpoint: the log as it is at one moment of the call, while all threads go on.
    /// Everything that it covers is there after any crash, once it has returned.
    ///
    /// # Errors
    /// [`Error::NoDirectory`] in memory; [`Error::View`]; [`Error::WouldBlock`] inside a closure;
    /// [`Error::Io`]: the one before is there, and this one may be; [`HashLog::checkpoints`] lists
    /// it where only removing older files failed.
    pub fn checkpoint(&self, cut: Cut) -> Result<CheckpointInfo> {
        by_layout!(self, F => self.store.checkpoint::<F>(cut))
    }

    /// Lets no file go away that a checkpoint needs as long as the answer lives: checkpoints wait, and what
    /// compactions free stays. It waits for a checkpoint that is being written.
    pub fn hold_files(&self) -> FilesHeld<'_> {
        FilesHeld(self.store.checkpoints.as_ref().map(|checkpoints| lock(&checkpoints.files)))
    }

    /// The checkpoints that are kept, oldest first.
    ///
    /// # Errors
    /// [`Error::NoDirectory`] in memory.
    pub fn checkpoints(&self) -> Result<Vec<CheckpointInfo>> {
        self.store.expect_checkpoints().map(|all| all.infos())
    }

    /// The number of the newest checkpoint, if nothing has changed since its moment.
    pub fn unchanged_since(&self) -> Option<u64> {
        let tail = self.store.log.tail().bytes();
        let newest = self.store.checkpoints.as_ref()?.infos().pop()?;
        // What a checkpoint has is changed by copies at the tail alone.
        (newest.end == tail).then_some(newest.number)
    }

    /// Moves live records out of the oldest `share` (0.0 to 1.0) of the log and gives it up.
    /// Traffic goes on; walks and checkpoints wait for a page or 1 MiB of it at most.
    /// Files go once no checkpoint that is kept needs them. A log does this by itself, too:
    /// [`Options::compaction`].
    ///
    /// # Errors
    /// [`Error::WouldBlock`] inside a closure; as [`HashLog::put`] and [`HashLog::get_with`]:
    /// then the log is as good as before, only longer. [`Error::Argument`] if `share` is not a
    /// number from 0.0 to 1.0.
    pub fn compact(&self, share: f64) -> Result<Compacted> {
        if !(0.0..=1.0).contains(&share) {
            let why = format!("a share of {share} cannot be compacted: 0.0 to 1.0, 1.0 for all");
            return Err(Error::Argument(why));
        }
        let (begin, tail) = (self.store.log.begin().bytes(), self.store.log.tail().bytes());
        let bytes = ((tail - begin) as f64 * share) as u64;
        self.compact_below(begin + bytes)
    }

    /// Moves live records out of the oldest page of the log and gives it up, where that needs no
    /// wait for a walk, a checkpoint or another compaction: `None` where it would. For a caller that
    /// gives memory back between other work. Pages behind it are given up one by one; nothing is
    /// freed where the tail is on the oldest.
    ///
    /// ```
    /// use sapwood_hashlog::{HashLog, Options};
    ///
    /// let mut options = Options::default();
    /// options.page_bytes = 4 << 10;
    /// let log = HashLog::in_memory(options)?;
    /// for key in 0..1_000_u64 {
    ///     log.put(&key.to_le_bytes(), b"a value")?;
    /// }
    /// for key in 1..1_000_u64 {
    ///     log.remove(&key.to_le_bytes())?;
    /// }
    /// while log.compact_step()?.is_some_and(|done| done.bytes_freed > 0) {}
    /// assert!(log.stats().log_bytes <= 2 * 4096);
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`HashLog::compact`].
    pub fn compact_step(&self) -> Result<Option<Compacted>> {
        by_layout!(self, F => self.store.compact_step::<F>())
    }

    /// Compacts the log if it is longer than `bytes_max`, by what it is longer.
    ///
    /// # Errors
    /// As [`HashLog::compact`].
    pub fn compact_to(&self, bytes_max: u64) -> Result<Compacted> {
        self.compact_below(self.store.log.tail().bytes().saturating_sub(bytes_max))
    }

    /// Estimates how many bytes of the log are superseded, removed or left unused, by a sample of
    /// the pages: in a directory, up to 64 reads of 64 KiB, and as many of single records as a
    /// thousand records in doubt need. In memory they are counted.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] inside a closure; [`Error::Io`] and [`Error::Corrupt`] for what is on
    /// the disk.
    pub fn estimate_garbage(&self) -> Result<u64> {
        by_layout!(self, F => self.store.estimate_garbage::<F>())
    }

    fn compact_below(&self, limit: u64) -> Result<Compacted> {
        let limit = Address::from_bytes(limit);
        let done = by_layout!(self, F => self.store.compact::<F>(limit))?;
        self.store.drop_unneeded_parts()?;
        Ok(done)
    }

    /// The number of entries. A log in memory counts them, which is exact while no thread writes.
    /// In a directory it is a walk, which reads what is on the disk: [`HashLog::len_estimate`] is
    /// for callers that need it often.
    ///
    /// # Errors
    /// As [`HashLog::for_each`], in a directory.
    pub fn len(&self) -> Result<usize> {
        match self.store.log.parts {
            None => Ok(self.len_estimate()),
            Some(_) => self.len_exact(),
        }
    }

    /// Whether there is no entry. A log in memory looks at its count. In a directory it is a walk
    /// that ends at the first entry: short, unless most of what lies before it was removed.
    ///
    /// # Errors
    /// As [`HashLog::for_each`], in a directory.
    pub fn is_empty(&self) -> Result<bool> {
        match self.store.log.parts {
            None => Ok(self.len_estimate() == 0),
            Some(_) => Ok(self.for_each(|_, _| ControlFlow::Break(()))?.is_continue()),
        }
    }

    /// The number of entries by counters, at no cost. In memory they are right while no
    /// thread writes. In a directory a put on a key whose newest record is on the disk does not
    /// read it, and is taken to replace an entry: each that follows a removal leaves the count one
    /// too low, as far as to 0 in a full log, until [`HashLog::len`] sets it right. Decide nothing
    /// by it.
    pub fn len_estimate(&self) -> usize {
        self.store.entries.sum() as usize
    }

    /// The number of entries, by a walk.
    ///
    /// # Errors
    /// As [`HashLog::for_each`].
    pub fn len_exact(&self) -> Result<usize> {
        // Of several that count at once one sets the estimate right.
        let counting = self.store.counting.try_lock();
        let (mut count, estimate) = (0, self.store.entries.net());
        let _all = self.for_each(|_, _| {
            count += 1;
            ControlFlow::<()>::Continue(())
        })?;
        // What other threads did meanwhile they have counted themselves.
        if self.store.log.parts.is_some() && counting.is_ok() {
            self.store.entries.add(count as i64 - estimate);
        }
        Ok(count)
    }

    /// Removes every entry that is there when it starts.
    ///
    /// # Errors
    /// As [`HashLog::for_each`] and [`HashLog::remove`].
    pub fn clear(&self) -> Result<()> {
        let mut keys = Vec::new();
        let _all = self.for_each(|key, _| {
            keys.push(key.to_vec());
            ControlFlow::<()>::Continue(())
        })?;
        keys.iter().try_for_each(|key| self.remove(key).map(drop))
    }

    /// The lengths of its keys and values.
    pub fn layout(&self) -> Layout {
        self.store.options.layout
    }

    /// Whether the log lives in memory alone.
    ///
    /// ```
    /// use sapwood_hashlog::{HashLog, Options};
    ///
    /// assert!(HashLog::in_memory(Options::default())?.is_in_memory());
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    pub fn is_in_memory(&self) -> bool {
        self.store.log.parts.is_none()
    }

    /// The options the log was made or opened with.
    pub fn options(&self) -> &Options {
        &self.store.options
    }

    /// Figures of the log: contents and costs.
    pub fn stats(&self) -> HashStats {
        self.store.stats()
    }

    /// Verifies the invariants of index and log while no thread writes.
    ///
    /// # Errors
    /// The first that does not hold, and where.
    pub fn check(&self) -> std::result::Result<(), String> {
        by_layout!(self, F => self.store.check::<F>())
    }
}
