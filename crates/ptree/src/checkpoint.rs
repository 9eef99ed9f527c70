//! Checkpoints: the heap's pages are written to its file, so that the log may be forgotten.
//!
//! A checkpoint is *fuzzy*: it notes where the log ends, then writes all pages that were changed
//! before, while commits go on. A page may hold changes of commits behind that point, and even half
//! of one; the log has all of them, and is synced before the page is written (write-ahead logging:
//! Mohan et al., "ARIES", TODS 1992). At last the superblock says from where on the log counts.

use std::ops::Range;
use std::sync::MutexGuard;

use sapwood_disk::is_full;
use sapwood_disk::log::{LogStart, Lsn};

use crate::dirty::DirtyPages;
use crate::error::{Error, Result};
use crate::heap::layout::PAGE_WORDS;
use crate::log::PoolLog;
use crate::object::load;
use crate::pool::{Core, Files, Inner, Pool, lock};
use crate::superblock::{HEAP_FILE, Superblock};

/// Pages that are written in one go: 1 MiB.
const RUN_PAGES: usize = 256;
/// Runs that are copied before the log is synced for them.
const RUNS: usize = 16;
const PAGE_BYTES: usize = PAGE_WORDS * 8;

impl Pool {
    /// Writes all changed pages to the heap's file, and gives up what the log has of them, unless it is shared.
    /// Commits go on meanwhile.
    ///
    /// # Errors
    /// [`Error::Io`]: the pool takes no more commits; opened again it has all of them.
    /// [`Error::Options`] inside of [`Pool::together`].
    pub fn checkpoint(&self) -> Result<()> {
        let Some(files) = &self.inner.files else { return Ok(()) };
        self.inner.expect_apart()?;
        let mut last = lock(&files.superblock);
        self.inner.checkpoint(files, &mut last, None)
    }

    /// Lets no checkpoint be written as long as the answer lives; waits for one that is being written.
    pub fn hold_files(&self) -> FilesHeld<'_> {
        FilesHeld(self.inner.files.as_ref().map(|files| lock(&files.superblock)))
    }

    /// Writes a checkpoint and closes this handle, so that the next opening has no log to read.
    ///
    /// # Errors
    /// As of [`Pool::checkpoint`].
    pub fn close(self) -> Result<()> {
        if self.inner.log().is_some() { self.checkpoint() } else { Ok(()) }
    }
}

/// Files stay as they are, but for the log that grows, as long as this lives: see [`Pool::hold_files`].
#[derive(Debug)]
pub struct FilesHeld<'a>(
    #[expect(dead_code, reason = "it is held")] Option<MutexGuard<'a, Superblock>>,
);

impl Inner {
    /// Whether the log has grown long, or changed pages fill the memory.
    pub(crate) fn is_checkpoint_due(&self, core: &Core, end: Lsn) -> bool {
        let (dirty, memory) = (core.dirty.bytes(), self.options.memory_bytes);
        let Some(log) = self.pool_log() else { return false };
        core.together.is_none()
            // A checkpoint of another thread may have passed the commit. Of a shared log others know how long it
            // has grown.
            && (!log.is_shared()
                && end.saturating_sub(core.checkpoint) >= self.options.checkpoint_bytes
                || dirty > memory / 2
                // Not at each commit while a transaction is open that keeps all memory.
                || dirty > memory / 8 && dirty + core.private.bytes() > memory)
    }

    /// Writes a checkpoint that is due, if no other thread does already.
    pub(crate) fn checkpoint_by_commit(&self) -> Result<()> {
        let Some(files) = &self.files else { return Ok(()) };
        let mut last = match files.superblock.try_lock() {
            Ok(last) => last,
            Err(std::sync::TryLockError::Poisoned(last)) => last.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return Ok(()),
        };
        let is_full = {
            let core = self.core();
            core.dirty.bytes() + core.private.bytes() > self.options.memory_bytes
        };
        self.checkpoint(files, &mut last, None)?;
        if is_full { self.give_memory_back(files, &mut last) } else { Ok(()) }
    }

    /// Lets the file take the place of all pages, if no transaction is open.
    fn give_memory_back(&self, files: &Files, last: &mut Superblock) -> Result<()> {
        let Some(file) = files.heap.descriptor() else { return Ok(()) };
        // In this order, as a thread has them that begins a transaction inside of `together`.
        let copying = match self.copying.try_lock() {
            Ok(copying) => copying,
            Err(std::sync::TryLockError::Poisoned(copying)) => copying.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return Ok(()),
        };
        // No transaction begins while this is held: pages hold what is committed, and nothing else.
        let lanes = lock(&self.lanes);
        if lanes.open > 0 {
            return Ok(());
        }
        self.checkpoint(files, last, Some(&copying))?;
        let mut core = self.core();
        let bytes = core.heap.used_words() * 8;
        let io = |cause| Error::io(format!("map {HEAP_FILE}"), &cause);
        self.space.give_way_to_file(file, bytes).map_err(io)?;
        core.private = DirtyPages::default();
        Ok(())
    }

    /// Writes a checkpoint. `copying` is there if the caller holds it.
    fn checkpoint(
        &self,
        files: &Files,
        last: &mut Superblock,
        copying: Option<&MutexGuard<'_, ()>>,
    ) -> Result<()> {
        let Some(pool_log) = &files.log else { return Err(Error::ReadOnly) };
        let log = pool_log.log();
        let (mut dirty, (lsn, part), heap_words) = {
            let mut core = self.core();
            core.check()?;
            // No commit is between its record and its pages while the core is locked.
            (std::mem::take(&mut core.dirty), log.position(), core.heap.used_words())
        };
        // Records of others move the end of a shared log, and change no page.
        if dirty.count() == 0 && (pool_log.is_shared() || lsn == last.log.lsn) {
            return Ok(());
        }
        if heap_words as u64 > last.heap_words {
            // A sync that failed may have left in doubt how long the file is, which no later one says anything about.
            dirty.mark(heap_words - 1, 1);
        }
        let io =
            |what: &str, cause: &std::io::Error| Error::io(format!("{what} {HEAP_FILE}"), cause);
        let written = (|| {
            files.heap.lengthen(heap_words as u64 * 8).map_err(|cause| io("lengthen", &cause))?;
            let mut bytes = Vec::new();
            for runs in dirty.runs(RUN_PAGES).chunks(RUNS) {
                bytes.clear();
                {
                    // Commits that are logged together are in memory before they are in the log.
                    let _logged = copying.is_none().then(|| lock(&self.copying));
                    for run in runs {
                        self.copy_pages(run, &mut bytes);
                    }
                }
                // The copies may hold changes up to now.
                log.sync(log.position().0).map_err(|cause| io("sync the log of", &cause))?;
                let mut rest = &bytes[..];
                for run in runs {
                    let (pages, behind) = rest.split_at(run.len() * PAGE_BYTES);
                    let offset = (run.start * PAGE_BYTES) as u64;
                    files.heap.write_at(offset, pages).map_err(|cause| io("write", &cause))?;
                    rest = behind;
                }
            }
            log.sync(lsn).map_err(|cause| io("sync the log of", &cause))?;
            files.heap.sync().map_err(|cause| io("sync", &cause))
        })();
        if let Err(error) = written {
            // Where nothing worse happened than a full disk, another try may do.
            self.core().dirty.add(&dirty);
            if !matches!(&error, Error::Io { kind, .. } if is_full(*kind)) {
                self.fail(&error);
            }
            return Err(error);
        }
        let next = Superblock {
            generation: last.generation + 1,
            log: LogStart { lsn, part, durable: log.durable() },
            heap_words: heap_words as u64,
            ..last.clone()
        };
        let done = next.write(&*files.heap).map_err(|cause| io("write the superblock of", &cause));
        done.inspect_err(|error| self.fail(error))?;
        *last = next;
        {
            let mut core = self.core();
            core.private.add(&dirty);
            core.checkpoint = lsn;
        }
        self.note_checkpoint();
        match pool_log {
            // The older superblock may still be what a damaged disk leaves; its log goes all the same.
            PoolLog::Own(log) => {
                log.forget_before(part).map_err(|cause| io("recycle the log of", &cause))
            }
            PoolLog::Shared(_) => Ok(()),
        }
    }

    /// Appends the bytes of some pages. Their words may change meanwhile.
    fn copy_pages(&self, pages: &Range<usize>, into: &mut Vec<u8>) {
        let words = pages.start * PAGE_WORDS..pages.end * PAGE_WORDS;
        let have = self.space.len().min(words.end);
        for word in self.space.get(words.start, have - words.start).unwrap_or(&[]) {
            into.extend_from_slice(&load(word).to_le_bytes());
        }
        into.resize(into.len() + (words.end - have) * 8, 0);
    }
}
