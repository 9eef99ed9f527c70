//! Which records is this thread changing right now?
//!
//! A closure may call back into the map. It must not wait for a record that its
//! own thread is changing, nor, while it is changing one, for a record that
//! another thread is changing: two threads could wait for each other. Both are
//! told apart here and answered with an error instead of a wait.

use std::cell::RefCell;
use std::mem::ManuallyDrop;

use crate::error::Error;

/// Records whose writer bit a thread holds; mostly one, rarely more than a few. Without a destructor:
/// it is used by the destructors of other thread-locals.
struct List {
    first: [usize; FIRST],
    len: usize,
    /// Allocated while there are more.
    more: ManuallyDrop<Vec<usize>>,
}

const FIRST: usize = 4;

impl List {
    const fn new() -> List {
        List { first: [0; FIRST], len: 0, more: ManuallyDrop::new(Vec::new()) }
    }

    #[inline]
    fn push(&mut self, address: usize) {
        match self.first.get_mut(self.len) {
            Some(place) => {
                *place = address;
                self.len += 1;
            }
            None => self.more.push(address),
        }
    }

    fn remove(&mut self, address: usize) {
        if let Some(at) = self.more.iter().rposition(|held| *held == address) {
            self.more.swap_remove(at);
            if self.more.is_empty() {
                drop(std::mem::take(&mut *self.more));
            }
            return;
        }
        let at = self.first[..self.len].iter().rposition(|held| *held == address);
        let at = at.expect("pushed by new, and only removed here");
        self.len -= 1;
        self.first[at] = match self.more.pop() {
            // The first ones stay full while there are more.
            Some(last) => {
                self.len += 1;
                last
            }
            None => self.first[self.len],
        };
        if self.more.is_empty() && self.more.capacity() > 0 {
            drop(std::mem::take(&mut *self.more));
        }
    }

    fn contains(&self, address: usize) -> bool {
        self.first[..self.len].contains(&address) || self.more.contains(&address)
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(not(loom))]
thread_local! {
    static HELD: RefCell<List> = const { RefCell::new(List::new()) };
}

// A model's threads share one thread of the system.
#[cfg(loom)]
loom::thread_local! {
    static HELD: RefCell<List> = RefCell::new(List::new());
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
