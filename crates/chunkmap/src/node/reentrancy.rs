//! The check against waits in a circle: the records that this thread is changing.
//!
//! A closure may call back into the map. It must not wait for a record that its
//! own thread is changing, nor, while it is changing one, for a record that
//! another thread is changing: two threads could wait for each other. Both are
//! told apart here and answered with an error instead of a wait.

use std::cell::RefCell;

use sapwood_mem::reentry::HeldLocks;

use crate::error::Error;

#[cfg(not(loom))]
thread_local! {
    /// Addresses of the records whose writer bit this thread holds.
    static HELD: RefCell<HeldLocks> = const { RefCell::new(HeldLocks::new()) };
}

// A model's threads share one thread of the system.
#[cfg(loom)]
loom::thread_local! {
    static HELD: RefCell<HeldLocks> = RefCell::new(HeldLocks::new());
}

/// One record in the list, until dropped.
#[derive(Debug)]
pub(crate) struct Held {
    address: usize,
    /// Belongs to the list of its thread.
    not_send: std::marker::PhantomData<*const ()>,
}

impl Held {
    #[inline]
    pub(crate) fn new(record: *const u8) -> Held {
        let address = record as usize;
        HELD.with(|held| held.borrow_mut().push(address));
        Held { address, not_send: std::marker::PhantomData }
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        HELD.with(|held| held.borrow_mut().remove(self.address));
    }
}

/// Whether this thread is inside of a closure that changes a value.
pub(crate) fn holds_any() -> bool {
    HELD.with(|held| !held.borrow().is_empty())
}

/// May this thread wait until another one lets go of `record`?
#[cold]
pub(crate) fn may_wait(record: *const u8) -> Result<(), Error> {
    HELD.with(|held| {
        let held = held.borrow();
        if held.contains(record as usize) {
            Err(Error::Reentrant)
        } else if held.is_empty() {
            Ok(())
        } else {
            Err(Error::WouldBlock)
        }
    })
}
