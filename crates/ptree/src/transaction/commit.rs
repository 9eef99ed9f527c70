//! Commits: what a transaction did is logged, made visible, and made to last.

use std::sync::PoisonError;

use smallvec::SmallVec;

use super::Transaction;
use crate::commit::Commit;
use crate::dirty::DirtyPages;
use crate::error::{Error, Result};
use crate::log::PoolLog;
use crate::pool::{Inner, Pool, apply};
use crate::redo;
use sapwood_disk::log::Durability;

impl Pool {
    /// Begins a transaction.
    ///
    /// # Errors
    /// [`Error::ReadOnly`](crate::Error::ReadOnly), [`Error::Io`](crate::Error::Io) after a commit that
    /// failed, [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn begin(&self) -> Result<Transaction<'_>> {
        Ok(Transaction::new(&self.inner, self.inner.take_lane()?))
    }

    /// Runs `change` in a transaction and commits, or aborts where it fails.
    ///
    /// # Errors
    /// Those of `change`, [`Pool::begin`] and [`Transaction::commit`].
    pub fn transaction<R>(&self, change: impl FnOnce(&Transaction<'_>) -> Result<R>) -> Result<R> {
        let transaction = self.begin()?;
        let done = change(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }
}

/// A commit that readers see, and that may not last as long as the pool's durability wants.
#[must_use = "settle it, to wait until it lasts"]
pub struct Unsettled<'p> {
    pub(super) pool: &'p Inner,
    pub(super) published: Published,
}

impl Unsettled<'_> {
    /// Waits for what the pool's durability wants, and writes a checkpoint if one is due.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn settle(self) -> Result<Commit> {
        self.pool.settle(self.published)
    }
}

impl std::fmt::Debug for Unsettled<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unsettled").field("commit", &self.published.commit).finish_non_exhaustive()
    }
}

/// A commit that readers see.
pub(super) struct Published {
    commit: Commit,
    is_checkpoint_due: bool,
    /// Whether it is logged with commits that are still to come.
    is_together: bool,
}

impl Inner {
    /// Logs what a transaction did and makes it visible; `ends_group` as of
    /// [`SharedLog::append`](sapwood_disk::log::SharedLog::append).
    pub(super) fn publish(
        &self,
        transaction: &Transaction<'_>,
        ends_group: bool,
    ) -> Result<Published> {
        let redo = transaction.redo();
        if redo.is_empty() {
            let commit = self.last_commit();
            return Ok(Published { commit, is_checkpoint_due: false, is_together: false });
        }
        let trees = transaction.lane().held.borrow();
        let mut visible: SmallVec<[_; 4]> = match transaction.is_visible() {
            true => trees.iter().collect(),
            false => SmallVec::new(),
        };
        // In one order, as readers of several trees take them.
        visible.sort_by_key(|tree| tree.head);
        let _readers_wait: SmallVec<[_; 4]> = visible
            .iter()
            .map(|tree| tree.publishing.write().unwrap_or_else(PoisonError::into_inner))
            .collect();
        // After the trees, which a reader may keep for long: commits to others go on meanwhile.
        let mut core = self.core();
        core.check()?;
        let place = core.append(self, redo.bytes(), ends_group)?;
        let mut sums: SmallVec<[_; 4]> = visible
            .iter()
            .map(|tree| tree.sums.lock().unwrap_or_else(PoisonError::into_inner))
            .collect();
        for sums in &mut sums {
            sums.touch(transaction.lane().touched().map(|object| (object.id(), object.len())));
        }
        for tree in &visible {
            tree.version.begin_change();
        }
        transaction.store_copies(|at, words| core.dirty.mark(at, words));
        for tree in &visible {
            tree.version.end_change();
        }
        drop(sums);
        self.apply_allocations(redo.allocations(), &mut core.dirty)?;
        for &(id, chunks) in transaction.freed().iter() {
            core.heap.give_freed(id, chunks);
        }
        let is_together = core.together.is_some();
        let end = place.lsn().filter(|_| !is_together);
        let is_checkpoint_due = end.is_some_and(|end| self.is_checkpoint_due(&core, end));
        let commit = Commit::new(self.log().cloned(), place);
        Ok(Published { commit, is_checkpoint_due, is_together })
    }

    /// Does logged changes of descriptors.
    fn apply_allocations(&self, mut changes: &[u8], dirty: &mut DirtyPages) -> Result<()> {
        while let Some(change) = redo::next(&mut changes)? {
            apply(&change, &self.space, self.space.most(), dirty)?;
        }
        Ok(())
    }

    /// Waits for what the options want of a commit, and writes a checkpoint if one is due.
    pub(super) fn settle(&self, published: Published) -> Result<Commit> {
        let Published { commit, is_checkpoint_due, is_together } = published;
        if is_together {
            // The thread's own end is waited for by `Pool::together`.
            if self.pass_together() {
                return Ok(commit);
            }
            self.core().check()?;
        }
        match (self.options.durability, self.pool_log()) {
            (Durability::Sync, _) => commit.wait().inspect_err(|cause| self.fail(cause))?,
            (Durability::Interval(_), Some(PoolLog::Shared(log))) => {
                let bound = log.bound_unsynced().map_err(|cause| Error::io("commit", &cause));
                bound.inspect_err(|cause| self.fail(cause))?;
            }
            _ => {}
        }
        self.checkpoint_if(is_checkpoint_due);
        Ok(commit)
    }

    /// Commits that are logged together; `is_inner` where others are still to come.
    pub(crate) fn unsettled(&self, commit: Commit, is_inner: bool) -> Unsettled<'_> {
        let is_checkpoint_due =
            !is_inner && self.is_checkpoint_due(&self.core(), commit.position());
        let published = Published { commit, is_checkpoint_due, is_together: is_inner };
        Unsettled { pool: self, published }
    }

    fn checkpoint_if(&self, is_due: bool) {
        // The commit is what it is. A checkpoint that fails is told by the next one, or by the next
        // transaction where the pool takes no more.
        if is_due && let Err(error) = self.checkpoint_by_commit() {
            self.note_failed_checkpoint(error);
        }
    }
}
