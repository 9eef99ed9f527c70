//! What is known of an open tree, in memory alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

#[cfg(loom)]
use loom::sync::{Condvar, Mutex};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex};

#[cfg(loom)]
pub(crate) use loom::thread::ThreadId;

use crate::error::{Error, Result};
use crate::object::ObjectId;
use crate::version::Version;

/// Tells threads that live from each other: the address of something that each has.
#[cfg(not(loom))]
pub(crate) type ThreadId = usize;

#[cfg(not(loom))]
pub(crate) fn this_thread() -> ThreadId {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here) as usize)
}

#[cfg(loom)]
pub(crate) fn this_thread() -> ThreadId {
    loom::thread::current().id()
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
    /// [`Error::Reentrant`] where this thread would wait for itself.
    pub(crate) fn hold(&self) -> Result<()> {
        let this = this_thread();
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(holder) = writer.holder {
            if holder == this {
                return Err(Error::Reentrant { tree: self.name.clone() });
            }
            writer.waiting += 1;
            writer = self.released.wait(writer).unwrap_or_else(PoisonError::into_inner);
            writer.waiting -= 1;
        }
        writer.holder = Some(this);
        Ok(())
    }

    /// Takes the tree if no transaction has it; whether it did.
    pub(crate) fn try_hold(&self) -> bool {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = writer.holder.is_none();
        if is_free {
            writer.holder = Some(this_thread());
        }
        is_free
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
