//! What is known of an open tree, in memory alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

#[cfg(loom)]
use loom::sync::{Condvar, Mutex};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex};

use crate::error::{Error, Result};
use crate::object::ObjectId;
use crate::version::Version;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    None,
    /// Some transaction has it.
    Has,
}

impl TreeState {
    pub(crate) fn new(head: ObjectId, name: String) -> TreeState {
        TreeState {
            head,
            name,
            version: Version::new(),
            publishing: RwLock::new(()),
            is_removed: AtomicBool::new(false),
            writer: Mutex::new(Writer::None),
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
    pub(crate) fn hold(&self) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        while *writer == Writer::Has {
            writer = self.released.wait(writer).unwrap_or_else(PoisonError::into_inner);
        }
        *writer = Writer::Has;
    }

    /// Takes the tree if no transaction has it; whether it did.
    pub(crate) fn try_hold(&self) -> bool {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = *writer == Writer::None;
        *writer = Writer::Has;
        is_free
    }

    pub(crate) fn release(&self) {
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = Writer::None;
        self.released.notify_one();
    }
}
