//! Pools: a heap in a directory, its log, and what is open of it.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use sapwood_disk::log::{Log, Lsn};
use sapwood_disk::{CachedFile, is_full};
use sapwood_mem::sync::Ordering;
use sapwood_mem::words::Words;

use crate::commit::{Commit, Place};
use crate::dirty::DirtyPages;
use crate::error::{Error, Result};
use crate::heap::layout::{self, Chunk, Class};
use crate::heap::{self, Heap, HeapReport, LaneRun};
use crate::lane::BoxedLane;
use crate::log::PoolLog;
use crate::object::{ObjectId, Word};
use crate::options::PoolOptions;
use crate::redo::{self, Change, Redo};
use crate::state::{ThreadId, TreeState};
use crate::superblock::Superblock;
use crate::view::Committed;

/// A heap of objects, in memory and, where it has a directory, in files.
///
/// Clones are the same pool. It may be used by any number of threads.
#[derive(Debug, Clone)]
pub struct Pool {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    /// The committed words of the heap, and objects that are being made.
    pub(crate) space: Words,
    core: Mutex<Core>,
    /// Told when commits that are logged together have ended, or joint ones.
    pub(crate) together_ended: Condvar,
    /// Held by a checkpoint while it copies pages, and by [`Pool::together`]. Before `lanes`.
    pub(crate) copying: Mutex<()>,
    pub(crate) lanes: Mutex<Lanes>,
    pub(crate) trees: Mutex<HashMap<ObjectId, Arc<TreeState>>>,
    pub(crate) files: Option<Files>,
    pub(crate) options: PoolOptions,
    /// Why the last checkpoint that a commit wrote failed.
    failed_checkpoint: Mutex<Option<Error>>,
}

/// Lanes of transactions that ended, and how many have not.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    idle: Vec<BoxedLane>,
    pub(crate) open: usize,
}

/// The files of a pool.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) heap: Arc<dyn CachedFile>,
    /// None where the pool is open to be read only.
    pub(crate) log: Option<PoolLog>,
    /// The position behind the last record when the pool was opened.
    pub(crate) end_at_opening: Lsn,
    /// The last one. Held by the thread that writes a checkpoint.
    pub(crate) superblock: Mutex<Superblock>,
}

/// What one commit at a time changes.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) heap: Heap,
    pub(crate) dirty: DirtyPages,
    /// Pages that were changed since memory was given back, and are not dirty.
    pub(crate) private: DirtyPages,
    /// Where the log counts from.
    pub(crate) checkpoint: Lsn,
    /// Changes of the heap itself, on their way to the log.
    redo: Redo,
    /// Commits that are logged together, while they are collected.
    pub(crate) together: Option<Together>,
    /// Commits under way that become one record with changes of other engines.
    pub(crate) joints: usize,
    /// Whether a thread waits for their end.
    pub(crate) joints_awaited: bool,
    /// Why no more commits are taken.
    pub(crate) failed: Option<Error>,
}

/// Bytes of changes of descriptors that the heap makes by itself at a time, at most.
const OWN_BYTES: usize = 2 * heap::DISSOLVED_BYTES;

/// Records that become one.
#[derive(Debug)]
pub(crate) struct Together {
    pub(crate) thread: ThreadId,
    pub(crate) records: Vec<u8>,
    /// Room in the log that is kept for them.
    pub(crate) claimed: u64,
    /// Where the record ends, once it is in the log.
    pub(crate) end: Arc<OnceLock<Lsn>>,
}

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    pub(crate) fn over(
        space: Words,
        heap: Heap,
        dirty: DirtyPages,
        files: Option<Files>,
        options: PoolOptions,
    ) -> Pool {
        let core = Core {
            heap,
            dirty,
            private: DirtyPages::default(),
            checkpoint: files.as_ref().map_or(0, |files| lock(&files.superblock).log.lsn),
            redo: Redo::default(),
            together: None,
            joints: 0,
            joints_awaited: false,
            failed: None,
        };
        Pool {
            inner: Arc::new(Inner {
                space,
                core: Mutex::new(core),
                together_ended: Condvar::new(),
                copying: Mutex::default(),
                lanes: Mutex::default(),
                trees: Mutex::default(),
                files,
                options,
                failed_checkpoint: Mutex::default(),
            }),
        }
    }

    /// Waits until all commits so far last.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&self) -> Result<()> {
        self.inner.last_commit().wait()
    }

    /// Replaces the time of [`Durability::Interval`](crate::Durability::Interval), or gives it where the
    /// pool was opened with another level; `None` for no such time.
    pub fn set_sync_interval(&self, interval: Option<Duration>) {
        if let Some(log) = self.inner.log() {
            log.set_sync_interval(interval);
        }
    }

    /// The last commit: to wait for it is to wait for all so far.
    pub fn last_commit(&self) -> Commit {
        self.inner.last_commit()
    }

    /// How full the heap is, and how its free room is spread. Walks all descriptors.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn heap_report(&self) -> Result<HeapReport> {
        let _no_commit = self.inner.core();
        crate::heap::report(&self.inner.space)
    }

    /// Bytes of the heap that are in use: from its beginning to the end of the last chunk.
    pub fn heap_bytes(&self) -> u64 {
        self.inner.core().heap.used_words() as u64 * 8
    }

    /// Why the last checkpoint failed that a commit wrote by itself, if it did: the disk is full,
    /// most likely. Such a commit is there all the same, and the log grows until one succeeds.
    pub fn failed_checkpoint(&self) -> Option<Error> {
        lock(&self.inner.failed_checkpoint).clone()
    }

    /// Why a sync of the log failed, if one did, whether a commit waited for it or the interval of
    /// [`Durability::Interval`](crate::Durability::Interval) wanted it. What it concerned may be
    /// lost: the pool takes no more commits, and each that waits is told.
    pub fn failed_sync(&self) -> Option<Error> {
        self.inner.log()?.failed_sync().map(|cause| Error::io("commit", &cause))
    }

    /// Whether the log lies in persistent memory (DAX), where a commit lasts without a system call.
    pub fn is_dax(&self) -> bool {
        self.inner.log().is_some_and(|log| log.is_dax())
    }

    /// Bytes of the files of its own log; none where it shares one.
    pub fn log_bytes(&self) -> u64 {
        match self.inner.pool_log() {
            Some(PoolLog::Own(log)) => log.file_bytes(),
            Some(PoolLog::Shared(_)) | None => 0,
        }
    }
}

impl Inner {
    /// A lane for a transaction, which is open until the lane comes back.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::OutOfMemory`].
    pub(crate) fn take_lane(&self) -> Result<BoxedLane> {
        if let Some(files) = &self.files
            && files.log.is_none()
        {
            return Err(Error::ReadOnly);
        }
        let idle = {
            let mut lanes = lock(&self.lanes);
            lanes.open += 1;
            lanes.idle.pop()
        };
        match idle.map_or_else(BoxedLane::new, Ok) {
            Ok(lane) => Ok(lane),
            Err(error) => {
                lock(&self.lanes).open -= 1;
                Err(error)
            }
        }
    }

    pub(crate) fn give_lane(&self, lane: BoxedLane) {
        let mut lanes = lock(&self.lanes);
        lanes.open -= 1;
        lanes.idle.push(lane);
    }

    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        lock(&self.core)
    }

    pub(crate) fn committed(&self) -> Committed<'_> {
        Committed(&self.space)
    }

    pub(crate) fn pool_log(&self) -> Option<&PoolLog> {
        self.files.as_ref()?.log.as_ref()
    }

    pub(crate) fn log(&self) -> Option<&Arc<Log>> {
        self.pool_log().map(PoolLog::log)
    }

    pub(crate) fn last_commit(&self) -> Commit {
        self.commit_at(self.log().map_or(0, |log| log.position().0))
    }

    /// The commit whose record ends there.
    pub(crate) fn commit_at(&self, lsn: Lsn) -> Commit {
        Commit::new(self.log().cloned(), Place::At(lsn))
    }

    /// Slots for a lane.
    pub(crate) fn take_run(&self, class: Class) -> Result<LaneRun> {
        let mut core = self.core();
        core.check()?;
        let claimed = self.claim_own()?;
        let Core { heap, redo, .. } = &mut *core;
        let taken = heap.take_run(&self.space, class, redo);
        core.log_own_changes(self, claimed)?;
        taken
    }

    /// Chunks for a large object.
    pub(crate) fn take_chunks(&self, count: usize) -> Result<Chunk> {
        let mut core = self.core();
        core.check()?;
        let claimed = self.claim_own()?;
        let Core { heap, redo, .. } = &mut *core;
        let taken = heap.take_chunks(&self.space, count, redo);
        core.log_own_changes(self, claimed)?;
        taken
    }

    /// Keeps room in the log for what the heap is about to do by itself.
    fn claim_own(&self) -> Result<u64> {
        let Some(log) = self.pool_log() else { return Ok(0) };
        log.claim(OWN_BYTES).map_err(|cause| Error::io("make room in the log", &cause))
    }

    /// Takes back the room of objects that were made in vain.
    pub(crate) fn take_back(&self, made: impl Iterator<Item = (ObjectId, usize)>) {
        let mut made = made.peekable();
        if made.peek().is_none() {
            return;
        }
        let mut core = self.core();
        for (id, words) in made {
            core.heap.give_back(id, words);
        }
    }

    pub(crate) fn note_failed_checkpoint(&self, error: Error) {
        *lock(&self.failed_checkpoint) = Some(error);
    }

    /// Notes that a checkpoint succeeded.
    pub(crate) fn note_checkpoint(&self) {
        *lock(&self.failed_checkpoint) = None;
    }

    /// Notes that the log or the heap's file refused: what is in memory is not what is stored.
    pub(crate) fn fail(&self, cause: &Error) {
        self.core().failed.get_or_insert_with(|| cause.clone());
    }
}

impl Core {
    pub(crate) fn check(&self) -> Result<()> {
        match &self.failed {
            Some(cause) => Err(cause.clone()),
            None => Ok(()),
        }
    }

    /// Logs a record, or collects it; where it ends. `ends_group` as of
    /// [`SharedLog::append`](sapwood_disk::log::SharedLog::append).
    pub(crate) fn append(
        &mut self,
        pool: &Inner,
        record: &[u8],
        ends_group: bool,
    ) -> Result<Place> {
        let Some(log) = pool.pool_log() else { return Ok(Place::At(0)) };
        let placed = match &mut self.together {
            Some(together) => log.claim(record.len()).map(|claimed| {
                together.claimed += claimed;
                together.records.extend_from_slice(record);
                Place::Later(Arc::clone(&together.end))
            }),
            None => log.append(record, ends_group).map(Place::At),
        };
        placed.map_err(|cause| {
            let error = Error::io("append to the log", &cause);
            // What a full disk refuses is not in the log, and another commit may fit.
            if !is_full(cause.kind()) {
                self.failed = Some(error.clone());
            }
            error
        })
    }

    /// Logs what the heap did by itself, for which there is a claim.
    fn log_own_changes(&mut self, pool: &Inner, claimed: u64) -> Result<()> {
        let redo = std::mem::take(&mut self.redo);
        let logged = match (pool.pool_log(), &mut self.together) {
            (None, _) => Ok(()),
            (Some(log), Some(_)) if redo.is_empty() => {
                log.log().give_back(claimed);
                Ok(())
            }
            (Some(_), Some(together)) => {
                together.claimed += claimed;
                together.records.extend_from_slice(redo.bytes());
                Ok(())
            }
            (Some(log), None) => {
                let logged = match redo.is_empty() {
                    true => Ok(()),
                    false => log.append_claimed(redo.bytes(), false).map(drop),
                };
                log.log().give_back(claimed);
                logged
            }
        };
        if let Err(cause) = logged {
            // The heap has done what the log does not know.
            let error = Error::io("append to the log", &cause);
            self.failed = Some(error.clone());
            return Err(error);
        }
        let mut changes = redo.bytes();
        while let Some(change) = redo::next(&mut changes)? {
            mark(&change, &mut self.dirty);
        }
        self.redo = redo;
        self.redo.clear();
        Ok(())
    }
}

#[inline(always)]
fn mark(change: &Change<'_>, dirty: &mut DirtyPages) {
    match change {
        Change::Store { at, words } => dirty.mark(*at, words.len() / 8),
        Change::Set { at, .. } | Change::Clear { at, .. } => dirty.mark(*at, 1),
    }
}

#[cold]
fn beyond(at: usize) -> Error {
    Error::corrupt(at, "the log changes words that no heap has")
}

/// Words behind the end of a heap, which has them from then on.
#[cold]
fn grow(space: &Words, at: usize, len: usize, limit: usize) -> Result<&[Word]> {
    let refused =
        |cause: std::io::Error| redo::out_of_memory(space.len(), limit, &cause.to_string());
    space.grow(at + len).map_err(refused)?;
    space.get(at, len).ok_or_else(|| Error::corrupt(at, "the heap did not grow"))
}

/// Does a logged change to the words of a heap, which grows where it must, to `limit` at most.
///
/// # Errors
/// [`Error::Corrupt`] for a change beyond it or to the superblock, [`Error::OutOfMemory`].
#[inline(always)]
pub(crate) fn apply(
    change: &Change<'_>,
    space: &Words,
    limit: usize,
    dirty: &mut DirtyPages,
) -> Result<()> {
    let (at, len) = match change {
        Change::Store { at, words } => (*at, words.len() / 8),
        Change::Set { at, .. } | Change::Clear { at, .. } => (*at, 1),
    };
    if at < layout::SUPERBLOCK_WORDS || len == 0 || at + len > limit {
        return Err(beyond(at));
    }
    let found = match space.get(at, len) {
        Some(found) => found,
        None => grow(space, at, len, limit)?,
    };
    match change {
        Change::Store { words, .. } => {
            for (word, bytes) in found.iter().zip(words.chunks_exact(8)) {
                let value = bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                word.store(value, Ordering::Relaxed);
            }
        }
        Change::Set { mask, .. } => {
            found[0].fetch_or(*mask, Ordering::Relaxed);
        }
        Change::Clear { mask, .. } => {
            found[0].fetch_and(!*mask, Ordering::Relaxed);
        }
    }
    mark(change, dirty);
    Ok(())
}
