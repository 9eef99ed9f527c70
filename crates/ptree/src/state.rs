//! What is known of an open tree, in memory alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
use std::time::Duration;

#[cfg(loom)]
pub(crate) use loom::thread::ThreadId;

use crate::error::{Error, Result};
use crate::object::ObjectId;
use crate::sums::Sums;
use crate::version::Version;

/// The number of a thread, which no other has had.
#[cfg(not(loom))]
pub(crate) type ThreadId = u64;

#[cfg(not(loom))]
use live::is_live;
#[cfg(not(loom))]
pub(crate) use live::this_thread;

/// Threads that have used a tree and have not ended.
#[cfg(not(loom))]
mod live {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::ThreadId;

    static LIVE: Mutex<BTreeSet<ThreadId>> = Mutex::new(BTreeSet::new());

    /// The number of a thread, as long as that lives.
    struct Here(ThreadId);

    impl Here {
        fn begin() -> Here {
            static THREADS: AtomicU64 = AtomicU64::new(1);
            let id = THREADS.fetch_add(1, Ordering::Relaxed);
            lock().insert(id);
            Here(id)
        }
    }

    impl Drop for Here {
        fn drop(&mut self) {
            lock().remove(&self.0);
        }
    }

    fn lock() -> MutexGuard<'static, BTreeSet<ThreadId>> {
        LIVE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn this_thread() -> ThreadId {
        thread_local!(static HERE: Here = Here::begin());
        // A thread that is ending, and uses a tree once more, is as good as gone: it has no number.
        HERE.try_with(|here| here.0).unwrap_or(0)
    }

    pub(super) fn is_live(thread: ThreadId) -> bool {
        thread == 0 || lock().contains(&thread)
    }
}

#[cfg(loom)]
pub(crate) fn this_thread() -> ThreadId {
    loom::thread::current().id()
}

/// Models leave no transaction behind.
#[cfg(loom)]
fn is_live(_thread: ThreadId) -> bool {
    true
}

/// One for each tree that was used since the pool was opened.
#[derive(Debug)]
pub(crate) struct TreeState {
    /// The tree's head, which also puts trees into an order.
    pub(crate) head: ObjectId,
    pub(crate) name: String,
    pub(crate) version: Version,
    /// Readers that want no commit to happen share it; a commit takes it.
    pub(crate) publishing: RwLock<()>,
    pub(crate) is_removed: AtomicBool,
    /// Taken by a commit while it stores words, and by a rank.
    pub(crate) sums: std::sync::Mutex<Sums>,
    writer: Mutex<Writer>,
    released: Condvar,
}

/// The transaction that has a tree, and those that want it.
#[derive(Debug)]
struct Writer {
    /// The thread of the transaction.
    holder: Option<ThreadId>,
    waiting: usize,
}

impl TreeState {
    pub(crate) fn new(head: ObjectId, name: String) -> TreeState {
        TreeState {
            head,
            name,
            version: Version::new(),
            publishing: RwLock::new(()),
            is_removed: AtomicBool::new(false),
            sums: std::sync::Mutex::default(),
            writer: Mutex::new(Writer { holder: None, waiting: 0 }),
            released: Condvar::new(),
        }
    }

    /// # Errors
    /// [`Error::TreeRemoved`].
    pub(crate) fn check(&self) -> Result<()> {
        match self.is_removed.load(Ordering::Acquire) {
            true => Err(Error::TreeRemoved),
            false => Ok(()),
        }
    }

    /// Waits until no transaction has the tree, and takes it.
    ///
    /// # Errors
    /// [`Error::Reentrant`] where this thread would wait for itself, [`Error::Abandoned`] where the thread of
    /// the other transaction has ended.
    pub(crate) fn hold(&self) -> Result<()> {
        let this = this_thread();
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(holder) = writer.holder {
            if holder == this {
                return Err(Error::Reentrant { tree: self.name.clone() });
            }
            if !is_live(holder) {
                return Err(Error::Abandoned { tree: self.name.clone() });
            }
            writer.waiting += 1;
            writer = self.wait(writer);
            writer.waiting -= 1;
        }
        writer.holder = Some(this);
        Ok(())
    }

    /// Waits until a transaction ends, or so long that its thread may have ended.
    #[cfg(not(loom))]
    fn wait<'w>(&self, writer: MutexGuard<'w, Writer>) -> MutexGuard<'w, Writer> {
        const LOOKED_AFTER: Duration = Duration::from_secs(1);
        let (writer, _) = self
            .released
            .wait_timeout(writer, LOOKED_AFTER)
            .unwrap_or_else(PoisonError::into_inner);
        writer
    }

    #[cfg(loom)]
    fn wait<'w>(&self, writer: MutexGuard<'w, Writer>) -> MutexGuard<'w, Writer> {
        self.released.wait(writer).unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the tree if no transaction has it, and answers true then.
    ///
    /// # Errors
    /// [`Error::Abandoned`]: no run of the transaction would come by it.
    pub(crate) fn try_hold(&self) -> Result<bool> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        match writer.holder {
            Some(holder) if !is_live(holder) => {
                return Err(Error::Abandoned { tree: self.name.clone() });
            }
            Some(_) => return Ok(false),
            None => writer.holder = Some(this_thread()),
        }
        Ok(true)
    }

    pub(crate) fn release(&self) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.holder = None;
        // Waking is a system call, whether a thread waits or not.
        if writer.waiting > 0 {
            self.released.notify_one();
        }
    }
}
