//! Commits that are waited for.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use sapwood_disk::log::{Log, Lsn, Synced};

use crate::error::{Error, Result};

/// A commit, which may be on its way to the disk.
///
/// A thread waits for it by [`Commit::wait`], a task by `.await`, with any runtime. Commits that are
/// waited for share syncs, whichever way.
#[derive(Debug, Clone)]
pub struct Commit {
    log: Option<Arc<Log>>,
    place: Place,
}

/// Where the record of a commit ends.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    At(Lsn),
    /// It becomes one with others; known once that is in the log.
    Later(Arc<OnceLock<Lsn>>),
}

impl Place {
    pub(crate) fn lsn(&self) -> Option<Lsn> {
        match self {
            Place::At(lsn) => Some(*lsn),
            Place::Later(end) => end.get().copied(),
        }
    }
}

impl Commit {
    pub(crate) fn new(log: Option<Arc<Log>>, place: Place) -> Commit {
        Commit { log, place }
    }

    /// Waits until the commit lasts: it survives power loss.
    ///
    /// # Errors
    /// [`Error::Io`] where the disk refused: whether it lasts is not known. [`Error::Options`] inside
    /// of [`Pool::together`](crate::Pool::together).
    pub fn wait(&self) -> Result<()> {
        let Some((log, lsn)) = self.logged()? else { return Ok(()) };
        log.sync(lsn).map_err(|cause| Error::io("commit", &cause))
    }

    /// The log, which has the commit, and where; none where the pool is in memory alone.
    fn logged(&self) -> Result<Option<(&Arc<Log>, Lsn)>> {
        match (&self.log, self.place.lsn()) {
            (None, _) => Ok(None),
            (Some(log), Some(lsn)) => Ok(Some((log, lsn))),
            (Some(_), None) => Err(Error::Options(
                "the commit is logged together with others that are still to come: wait after them"
                    .to_owned(),
            )),
        }
    }

    /// Whether the commit is known to last.
    pub fn is_durable(&self) -> bool {
        let Some(log) = &self.log else { return true };
        self.place.lsn().is_some_and(|lsn| log.durable() >= lsn)
    }

    /// The position of the commit in the pool's log, by which commits are ordered; [`u64::MAX`] of one that is
    /// logged together with others that are still to come.
    pub fn position(&self) -> u64 {
        self.place.lsn().unwrap_or(Lsn::MAX)
    }
}

impl IntoFuture for Commit {
    type Output = Result<()>;
    type IntoFuture = Lasting;

    fn into_future(self) -> Lasting {
        Lasting { commit: self, synced: None }
    }
}

/// The future of a [`Commit`]: done when the commit lasts, or with the error of [`Commit::wait`]. It
/// needs no runtime, holds up no thread, and may be dropped at any time: the commit stays what it is.
///
/// ```
/// use sapwood_ptree::{Pool, PoolOptions, TreeKind, TreeLayout};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let disk = std::sync::Arc::new(sapwood_disk::FileDisk::open(folder.path())?);
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let pool = Pool::create(disk, PoolOptions::default())?;
/// let visits = pool.create_tree("visits", TreeKind::BTree, TreeLayout::Bytes)?;
/// # runtime.block_on(async {
/// let transaction = pool.begin()?;
/// transaction.put(&visits, "ada", "1")?;
/// let commit = transaction.commit()?;
/// // Readers see it; power loss may take it back.
/// commit.await?;
/// // It lasts.
/// # Ok::<(), sapwood_ptree::Error>(())
/// # })?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a future does nothing before it is polled"]
pub struct Lasting {
    commit: Commit,
    /// From the first poll on.
    synced: Option<Synced>,
}

impl Future for Lasting {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let Lasting { commit, synced } = self.get_mut();
        if synced.is_none() {
            let Some((log, lsn)) = commit.logged()? else { return Poll::Ready(Ok(())) };
            *synced = Some(log.synced(lsn));
        }
        let Some(synced) = synced else { return Poll::Ready(Ok(())) };
        let done = ready!(Pin::new(synced).poll(context));
        Poll::Ready(done.map_err(|cause| Error::io("commit", &cause)))
    }
}
