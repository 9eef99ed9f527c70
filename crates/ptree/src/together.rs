//! Commits that are logged together: after a crash all of them are there, or none.
//!
//! Each is a transaction of its own, and visible as soon as it ends. Their records are collected, and
//! become one record of the log. Until then nothing of them is in the log, so that no page with their
//! changes may be written: a checkpoint copies no page meanwhile.
//!
//! Commits of other threads that end meanwhile go into the same record, since they may build on
//! what these have changed; they wait for its end with nothing in hand.
//!
//! A commit that becomes one record with changes of other engines ([`Pool::join`]) cannot do so: changes of
//! other engines that come between would be logged before it, and were made after it. It is refused, and none
//! are collected while one is under way.

use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};

use sapwood_disk::log::Lsn;

use crate::commit::{Commit, Place};
use crate::error::{Error, Result};
use crate::pool::{Inner, Pool, Together, lock};
use crate::state::this_thread;
use crate::transaction::{Transaction, Unsettled};

#[cfg(doc)]
use sapwood_disk::log::SharedLog;

impl Pool {
    /// Runs `changes`, and logs all that is committed meanwhile as one: after a crash or a power loss
    /// all of it is there, or nothing. Unlike a transaction it cannot be aborted, and readers see
    /// each commit when it is made. Inside another call on this thread it is a part of that.
    ///
    /// The pool's durability is that of the whole: no commit inside waits for the disk. Another
    /// thread that calls this waits until it ends, and so does one that commits, after its commit;
    /// so `changes` waits for no other thread that writes to the pool.
    ///
    /// ```
    /// # use sapwood_ptree::{Pool, PoolOptions, TreeKind, TreeLayout};
    /// # let pool = Pool::in_memory(PoolOptions::default())?;
    /// let tree = pool.create_tree("steps", TreeKind::BTree, TreeLayout::Bytes)?;
    /// let (done, commit) = pool.together(|| {
    ///     tree.put("first", "1")?;
    ///     assert_eq!(tree.len()?, 1);
    ///     tree.put("second", "2")
    /// })?;
    /// assert!(done?);
    /// commit.wait()?;
    /// # Ok::<(), sapwood_ptree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] where the disk refused: the changes are in memory and may not be in the log, so
    /// that the pool takes no more; and as of [`Pool::begin`].
    pub fn together<R>(&self, changes: impl FnOnce() -> R) -> Result<(R, Commit)> {
        let (answer, unsettled) = self.together_unsettled(changes)?;
        Ok((answer, unsettled.settle()?))
    }

    /// As [`together`](Self::together), and leaves it to the caller to wait for what the pool's durability wants.
    /// In a [shared log](SharedLog), what this thread has changed in other engines is part of the same record.
    ///
    /// # Errors
    /// As of [`together`](Self::together).
    pub fn together_unsettled<R>(&self, changes: impl FnOnce() -> R) -> Result<(R, Unsettled<'_>)> {
        let inner = &*self.inner;
        if let Some(end) = inner.collects() {
            let answer = changes();
            let commit = Commit::new(inner.log().cloned(), Place::Later(end));
            return Ok((answer, inner.unsettled(commit, true)));
        }
        let together = inner.begin_together()?;
        let answer = changes();
        let commit = together.end()?;
        Ok((answer, inner.unsettled(commit, false)))
    }

    /// Lets a commit of this thread be one record of a [shared log](SharedLog) with what the thread changes in
    /// other engines until then; none while commits of another thread are [logged together](Self::together). Those
    /// wait as long as the answer lives.
    pub fn join(&self) -> Option<Joint<'_>> {
        let mut core = self.inner.core();
        if core.together.as_ref().is_some_and(|together| together.thread != this_thread()) {
            return None;
        }
        core.joints += 1;
        Some(Joint { pool: &self.inner })
    }

    /// Waits until no commits of another thread are [logged together](Self::together), if some are. To be
    /// called without a transaction, for which that thread may wait.
    pub fn pass_together(&self) {
        self.inner.pass_together();
    }
}

/// A commit that becomes one record with changes of other engines: see [`Pool::join`].
#[derive(Debug)]
pub struct Joint<'p> {
    pool: &'p Inner,
}

impl<'p> Joint<'p> {
    /// Commits as [`Transaction::commit_unsettled`] does, and what this thread has changed in other engines with
    /// it.
    ///
    /// # Errors
    /// As of [`Transaction::commit`].
    pub fn commit(self, transaction: Transaction<'p>) -> Result<Unsettled<'p>> {
        transaction.commit_as(true)
    }
}

impl Drop for Joint<'_> {
    fn drop(&mut self) {
        let is_awaited = {
            let mut core = self.pool.core();
            core.joints -= 1;
            core.joints == 0 && std::mem::take(&mut core.joints_awaited)
        };
        // Waking is a system call, whether a thread waits or not.
        if is_awaited {
            self.pool.together_ended.notify_all();
        }
    }
}

/// A collection, which ends when this goes: what was committed is committed, whatever the closure
/// does.
struct Collection<'p> {
    pool: &'p Inner,
    _copying: MutexGuard<'p, ()>,
}

impl Collection<'_> {
    fn end(self) -> Result<Commit> {
        let end = self.pool.end_together()?;
        Ok(end.map_or_else(|| self.pool.last_commit(), |lsn| self.pool.commit_at(lsn)))
    }
}

impl Drop for Collection<'_> {
    fn drop(&mut self) {
        // The pool keeps the error for the next commit, and has none to keep where the end came.
        let _kept = self.pool.end_together();
    }
}

impl Inner {
    /// Where the record of the commits will end that this thread collects, if it does.
    fn collects(&self) -> Option<Arc<OnceLock<Lsn>>> {
        let core = self.core();
        let own = core.together.as_ref().filter(|together| together.thread == this_thread());
        own.map(|together| Arc::clone(&together.end))
    }

    fn begin_together(&self) -> Result<Collection<'_>> {
        let copying = lock(&self.copying);
        let mut core = self.core();
        while core.joints > 0 {
            core.joints_awaited = true;
            core = self.together_ended.wait(core).unwrap_or_else(PoisonError::into_inner);
        }
        core.check()?;
        let (thread, end) = (this_thread(), Arc::default());
        core.together = Some(Together { thread, records: Vec::new(), claimed: 0, end });
        Ok(Collection { pool: self, _copying: copying })
    }

    /// Logs what was collected; where that ends, if there is some.
    fn end_together(&self) -> Result<Option<Lsn>> {
        let mut core = self.core();
        let Some(Together { records, claimed, end, .. }) = core.together.take() else {
            return Ok(None);
        };
        self.together_ended.notify_all();
        let log = self.pool_log();
        let (Some(log), false) = (log, records.is_empty()) else {
            if let Some(log) = log {
                log.log().give_back(claimed);
            }
            // What waits for nothing has nothing to wait for.
            let _first = end.set(0);
            return Ok(None);
        };
        let logged = log.append_claimed(&records, true);
        log.log().give_back(claimed);
        match logged {
            Ok(lsn) => {
                let _first = end.set(lsn);
                Ok(Some(lsn))
            }
            Err(cause) => {
                // Memory has what the log has not.
                let error = Error::io("append to the log", &cause);
                core.failed.get_or_insert_with(|| error.clone());
                Err(error)
            }
        }
    }

    /// Waits until no other thread collects commits; whether this one does.
    pub(crate) fn pass_together(&self) -> bool {
        let this = this_thread();
        let mut core = self.core();
        while let Some(together) = &core.together {
            if together.thread == this {
                return true;
            }
            core = self.together_ended.wait(core).unwrap_or_else(PoisonError::into_inner);
        }
        false
    }

    /// # Errors
    /// [`Error::Options`] inside of [`Pool::together`], whose thread would wait for itself.
    pub(crate) fn expect_apart(&self) -> Result<()> {
        match self.collects() {
            None => Ok(()),
            Some(_) => Err(Error::Options(
                "changes that are logged together are still to come: checkpoint after them"
                    .to_owned(),
            )),
        }
    }
}
