//! Reads that go on while their caller does something else.

use std::io;
use std::sync::Arc;

use crate::pool::Done;
use crate::ring::{self, RingRead};
use crate::{Blocks, File, Pending, Work};

/// A read that owns what it needs.
#[derive(Debug)]
pub struct OwnedRead {
    /// From which file.
    pub file: Arc<dyn File>,
    /// At which byte; a multiple of [`BLOCK_BYTES`](crate::BLOCK_BYTES).
    pub offset: u64,
    /// Filled whole, or the answer says why not.
    pub into: Blocks,
}

/// A read that was begun. It stays with the thread that has begun it; dropped, it goes on without a
/// listener, and its buffer is freed when the disk is done with it.
#[derive(Debug)]
pub struct BegunRead(By);

#[derive(Debug)]
enum By {
    Thread(Pending<Done>),
    Ring(RingRead),
}

impl OwnedRead {
    /// Reads, while the caller waits.
    pub(crate) fn read(mut self) -> Done {
        let result = self.file.read_at(self.offset, &mut self.into);
        (self.into, result)
    }

    /// Splits it into what is to be done, by [`Disk::spawn`](crate::Disk::spawn), and its answer.
    pub(crate) fn split(self) -> (BegunRead, Work) {
        let (answer, work) = Pending::new(move || self.read());
        (BegunRead(By::Thread(answer)), work)
    }
}

impl BegunRead {
    /// One that is done.
    pub fn ready(into: Blocks, result: io::Result<()>) -> BegunRead {
        BegunRead(By::Thread(Pending::ready((into, result))))
    }

    pub(crate) fn by_ring(read: RingRead) -> BegunRead {
        BegunRead(By::Ring(read))
    }

    /// Waits for it: its buffer, and what became of it.
    ///
    /// # Panics
    /// If the disk did.
    pub fn wait(self) -> (Blocks, io::Result<()>) {
        match self.0 {
            By::Thread(answer) => answer.wait(),
            By::Ring(read) => read.wait(),
        }
    }

    /// Waits until all of these are done, or nearly all, by one wait: for the last one, or for as many
    /// answers.
    pub fn wait_for_many<'r>(reads: impl DoubleEndedIterator<Item = &'r BegunRead> + Clone) {
        let last = reads.clone().rev().find_map(|read| match &read.0 {
            By::Thread(answer) => Some(answer),
            By::Ring(_) => None,
        });
        if let Some(last) = last {
            last.wait_until_done();
        }
        ring::wait_for_many(reads.filter_map(|read| match &read.0 {
            By::Ring(read) => Some(read),
            By::Thread(_) => None,
        }));
    }
}
