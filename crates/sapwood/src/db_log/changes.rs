//! Changes that are waited for.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use sapwood_disk::log::Synced;

use super::DbLog;
use crate::{Commit, Error, LogError, Result};

/// The changes that a thread had made at some moment ([`Db::changes`](crate::Db::changes)), which may be
/// on their way to the disk.
///
/// A thread waits for them by [`Changes::wait`], a task by `.await`, with any runtime. All that are
/// waited for share syncs, whichever way.
#[derive(Debug, Clone)]
pub struct Changes {
    pub(crate) log: Option<(Arc<DbLog>, u64)>,
    pub(crate) trees: Option<Commit>,
}

impl Changes {
    /// Waits until the changes last: they survive power loss.
    ///
    /// # Errors
    /// [`Error::Log`] and [`Error::Trees`] where the disk refused: whether they last is not known.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let visits = db.create_ordered_table("visits", OrderedTableOptions::default())?;
    /// visits.add(b"ada", 1)?;
    /// db.changes().wait()?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn wait(&self) -> Result<()> {
        if let Some((log, lsn)) = &self.log {
            log.wal.sync_to(*lsn).map_err(|cause| log.named(cause))?;
        }
        self.trees.as_ref().map_or(Ok(()), |commit| commit.wait().map_err(Error::trees))
    }

    /// Whether the changes are known to last.
    ///
    /// ```
    /// # use sapwood::Db;
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// assert!(db.changes().are_durable(), "there are none");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn are_durable(&self) -> bool {
        self.log.as_ref().is_none_or(|(log, lsn)| log.wal.is_durable(*lsn))
            && self.trees.as_ref().is_none_or(Commit::is_durable)
    }
}

impl PartialEq for Changes {
    /// Whether they end at the same change.
    fn eq(&self, other: &Changes) -> bool {
        let end = |changes: &Changes| {
            let trees = changes.trees.as_ref().map(Commit::position);
            (changes.log.as_ref().map(|(_, lsn)| *lsn), trees)
        };
        end(self) == end(other)
    }
}

impl IntoFuture for Changes {
    type Output = Result<()>;
    type IntoFuture = Lasting;

    fn into_future(self) -> Lasting {
        let log = self.log.map(|(log, lsn)| (log.wal.synced(lsn), log));
        Lasting { log, trees: self.trees.map(Commit::into_future) }
    }
}

/// The future of [`Changes`]: done when they last, or with the error of [`Changes::wait`]. It needs no
/// runtime, holds up no thread, and may be dropped at any time: the changes stay what they are.
///
/// ```
/// use sapwood::{Db, OrderedTableOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let db = Db::open(directory.path())?;
/// let visits = db.create_ordered_table("visits", OrderedTableOptions::default())?;
/// # runtime.block_on(async {
/// visits.add(b"ada", 1)?;
/// // Readers see it; power loss may take it back.
/// db.changes().await?;
/// // It lasts.
/// # Ok::<(), sapwood::Error>(())
/// # })?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a future does nothing before it is polled"]
pub struct Lasting {
    log: Option<(Synced, Arc<DbLog>)>,
    trees: Option<<Commit as IntoFuture>::IntoFuture>,
}

impl Future for Lasting {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let Lasting { log, trees } = self.get_mut();
        if let Some((synced, of)) = log {
            let done = ready!(Pin::new(synced).poll(context));
            if let Err(cause) = done {
                let (what, why) = ("sync the log".to_owned(), cause.to_string().into());
                let cause = LogError::Io { what, kind: cause.kind(), why };
                return Poll::Ready(Err(of.named(cause)));
            }
            *log = None;
        }
        let Some(trees) = trees else { return Poll::Ready(Ok(())) };
        Pin::new(trees).poll(context).map_err(Error::trees)
    }
}
