//! Reads that are in flight by io_uring, and the ring of each thread.
//!
//! A thread that begins several reads has a ring of its own from then on, which goes to the kernel with
//! all of them by one call and waits for many by one. One ring for all threads would need a lock around
//! both, and one thread that waits would have to wake the others; a ring of a thread needs neither, and
//! the kernel asks for it where it is to wake a thread once for many answers.
//!
//! *Thread safety*: a [`RingRead`] stays with its thread. What a thread that ends has in flight, it waits
//! for: the buffers are the ring's (`sapwood_mem::ring`, I-LENT).

use std::cell::RefCell;
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;

use sapwood_mem::ring::{Read, Ring, Ticket};

use crate::Blocks;
use crate::blocks::Block;
use crate::pool::{Done, Job};

thread_local! {
    static RING: RefCell<Option<Own>> = const { RefCell::new(None) };
}

/// The ring of a thread, in the process that has made it: a forked child has the thread's memory, and no ring.
struct Own {
    process: u32,
    ring: Option<Ring<Block>>,
}

impl Own {
    fn make() -> io::Result<Own> {
        Ok(Own { process: std::process::id(), ring: Some(Ring::new()?) })
    }

    fn ring(&mut self) -> Option<&mut Ring<Block>> {
        self.ring.as_mut().filter(|_| self.process == std::process::id())
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // What it is in the child is not to be touched.
            std::mem::forget(self.ring.take());
        }
    }
}

/// A read that is in flight by the ring of the thread that has begun it.
#[derive(Debug)]
pub(crate) struct RingRead {
    /// None once it is waited for.
    ticket: Option<Ticket>,
    /// The ring is its thread's.
    _thread: PhantomData<*mut ()>,
}

/// Does something with the calling thread's ring; `None` where it has none, as when the thread ends.
fn with_ring<R>(act: impl FnOnce(&mut Ring<Block>) -> R) -> Option<R> {
    RING.try_with(|own| own.borrow_mut().as_mut()?.ring().map(act)).ok().flatten()
}

/// Makes the ring of the calling thread, if it has none.
///
/// # Errors
/// What the system answers where io_uring is missing, too old, or forbidden.
pub(crate) fn prepare() -> io::Result<()> {
    let made = RING.try_with(|own| {
        let mut own = own.borrow_mut();
        match own.as_mut().and_then(Own::ring) {
            Some(ring) if !ring.is_broken() => return Ok(()),
            // It has answers that are still to be taken.
            Some(ring) if !ring.is_idle() => return Err(io::ErrorKind::WouldBlock.into()),
            _ => {}
        }
        *own = Some(Own::make()?);
        Ok(())
    });
    made.map_err(io::Error::other)?
}

/// Begins all reads by the calling thread's ring, which [is there](prepare).
pub(crate) fn begin(jobs: Vec<Job>) -> Vec<RingRead> {
    let begun = with_ring(|ring| {
        let begin = |job: Job| {
            let Job { file, offset, into } = job;
            let ticket = Some(ring.begin(Read { file, offset, into: into.0 }));
            RingRead { ticket, _thread: PhantomData }
        };
        let begun = jobs.into_iter().map(begin).collect();
        ring.submit();
        begun
    });
    begun.expect("the ring was prepared")
}

/// Waits until as many reads have their answers as there are of these without one: these, if the disk
/// answers in the order in which it was asked.
pub(crate) fn wait_for_many<'r>(reads: impl Iterator<Item = &'r RingRead>) {
    let _ended = with_ring(|ring| {
        let has_none = |read: &&RingRead| read.ticket.as_ref().is_some_and(|it| !ring.is_done(it));
        let count = reads.filter(has_none).count();
        ring.wait_for(count);
    });
}

impl RingRead {
    /// Waits for it.
    pub(crate) fn wait(mut self) -> Done {
        let ticket = self.ticket.take().expect("it is waited for once");
        match with_ring(|ring| ring.wait(ticket)) {
            Some((read, answer)) => finish(read, answer),
            // The thread ends, and its ring has gone before what waits for it.
            None => (Blocks::default(), Err(io::Error::other("the reading thread has ended"))),
        }
    }
}

impl Drop for RingRead {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let _ended = with_ring(|ring| ring.abandon(ticket));
        }
    }
}

/// Brings a read to the end that a read by a thread of the pool comes to: both answer the same.
fn finish(read: Read<Block>, answer: io::Result<usize>) -> Done {
    let Read { file, offset, into } = read;
    let mut into = Blocks(into);
    let bytes = into.bytes_mut();
    let result = match answer {
        Ok(count) if count == bytes.len() => Ok(()),
        // At the end of the file, or cut short by the system: the same calls follow.
        Ok(count) => file.read_exact_at(&mut bytes[count..], offset + count as u64),
        Err(cause) if is_passing(cause.kind()) => file.read_exact_at(bytes, offset),
        Err(cause) => Err(cause),
    };
    (into, result)
}

/// Whether a refusal says nothing of the disk: of a signal, of a ring without room, or of a kernel without memory.
fn is_passing(refusal: io::ErrorKind) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory, WouldBlock};
    matches!(refusal, Interrupted | WouldBlock | OutOfMemory)
}
