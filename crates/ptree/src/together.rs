//! Commits that are logged together: after a crash all of them are there, or none.
//!
//! Each is a transaction of its own, and visible as soon as it ends. Their records are collected, and
//! become one record of the log. Until then nothing of them is in the log, so that no page with their
//! changes may be written: a checkpoint copies no page meanwhile.
//!
//! Commits of other threads that end meanwhile go into the same record, since they may build on
//! what these have changed; they wait for its end with nothing in hand.

use std::sync::{MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::pool::{Commit, Inner, Pool, Together, lock};
use crate::state::this_thread;

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
        let inner = &*self.inner;
        if inner.collects() {
            let answer = changes();
            return Ok((answer, inner.commit_at(inner.last_commit().position() + 1)));
        }
        let together = inner.begin_together()?;
        let answer = changes();
        let commit = together.end()?;
        Ok((answer, inner.settle_together(commit)?))
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
        self.pool.end_together()?;
        Ok(self.pool.last_commit())
    }
}

impl Drop for Collection<'_> {
    fn drop(&mut self) {
        // The pool keeps the error for the next commit, and has none to keep where the end came.
        let _kept = self.pool.end_together();
    }
}

impl Inner {
    /// Whether this thread collects commits.
    fn collects(&self) -> bool {
        self.core().together.as_ref().is_some_and(|together| together.thread == this_thread())
    }

    fn begin_together(&self) -> Result<Collection<'_>> {
        let copying = lock(&self.copying);
        let mut core = self.core();
        core.check()?;
        core.together = Some(Together { thread: this_thread(), records: Vec::new() });
        Ok(Collection { pool: self, _copying: copying })
    }

    fn end_together(&self) -> Result<()> {
        let mut core = self.core();
        let Some(Together { records, .. }) = core.together.take() else { return Ok(()) };
        self.together_ended.notify_all();
        if records.is_empty() {
            return Ok(());
        }
        let logged = core.append(self, &records).map(drop);
        if let Err(error) = &logged {
            // Memory has what the log has not.
            core.failed.get_or_insert_with(|| error.clone());
        }
        logged
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
            false => Ok(()),
            true => Err(Error::Options(
                "changes that are logged together are still to come: checkpoint after them"
                    .to_owned(),
            )),
        }
    }
}
