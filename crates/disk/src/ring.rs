//! Reads that are in flight by io_uring, and the ring of each thread.
//!
//! A thread that begins several reads has a ring of its own from then on, which goes to the kernel with
//! all of them by one call and waits for many by one. One ring for all threads would need a lock around
//! both, and one thread that waits would have to wake the others; a ring of a thread needs neither, and
//! the kernel asks for it where it is to wake a thread once for many answers.
//!
//! A ring is a descriptor and some memory of the kernel, and a thread keeps it. So there are [`RINGS_MAX`]
//! of them at once, and threads beyond read by others. Between batches a ring has no buffers: with the last
//! read that is wanted of a thread, those go that were dropped.
//!
//! *Thread safety*: a [`RingRead`] stays with its thread. What a thread that ends has in flight, it waits
//! for: the buffers are the ring's (`sapwood_mem::ring`, I-LENT).

use std::cell::RefCell;
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use sapwood_mem::ring::{Read, Ring, Ticket};

use crate::Blocks;
use crate::blocks::Block;
use crate::pool::{Done, Job};

/// Rings of a process at most. More threads than that keep a disk busy through those that have one.
const RINGS_MAX: u64 = 64;

/// The rings that there are, and above them the process whose they are: a forked child has none of its
/// parent's.
static RINGS: AtomicU64 = AtomicU64::new(0);
const COUNT_BITS: u32 = 32;

thread_local! {
    static RING: RefCell<Option<Own>> = const { RefCell::new(None) };
}

/// The right to a ring.
struct Place {
    process: u32,
}

impl Place {
    /// `None` where there are as many rings as there may be.
    fn take() -> Option<Place> {
        let process = std::process::id();
        let more = |rings| Some(count(rings, process) + 1).filter(|count| *count <= RINGS_MAX);
        // Relaxed: nothing but the number is told.
        RINGS
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |rings| {
                Some(u64::from(process) << COUNT_BITS | more(rings)?)
            })
            .ok()
            .map(|_| Place { process })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The last word of another process says nothing of this one's.
        let fewer = |rings| (count(rings, self.process) > 0).then(|| rings - 1);
        let _of_another = RINGS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
    }
}

/// The number of a process's rings.
fn count(rings: u64, process: u32) -> u64 {
    if rings >> COUNT_BITS == u64::from(process) { rings & ((1 << COUNT_BITS) - 1) } else { 0 }
}

/// The ring of a thread, in the process that has made it: a forked child has the thread's memory, and no ring.
struct Own {
    process: u32,
    ring: Option<Ring<Block>>,
    /// Given back when the ring has gone.
    _place: Place,
}

impl Own {
    fn make() -> Result<Own, NoRing> {
        let place = Place::take().ok_or(NoRing::Enough)?;
        let ring = Some(Ring::new().map_err(NoRing::Refused)?);
        Ok(Own { process: place.process, ring, _place: place })
    }

    /// Waits for reads that were dropped, if those are all that the ring has.
    fn settle(&mut self) {
        if self.ring.as_ref().is_some_and(Ring::is_left)
            && let Some(ring) = self.ring()
        {
            ring.settle();
        }
    }

    /// The ring, to ask the kernel.
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

/// Why a thread has no ring.
#[derive(Debug)]
pub(crate) enum NoRing {
    /// There are as many as there may be, for other threads.
    Enough,
    /// The system's answer where io_uring is missing, too old, or forbidden.
    Refused(io::Error),
}

/// A read that is in flight by the ring of the thread that has begun it.
#[derive(Debug)]
pub(crate) struct RingRead {
    /// None once it is waited for.
    ticket: Option<Ticket>,
    /// The process in which its ring is one.
    process: u32,
    /// The ring is its thread's.
    _thread: PhantomData<*mut ()>,
}

/// Does something with what the calling thread has; `None` where it has none, as when the thread ends.
fn with_own<R>(act: impl FnOnce(&mut Own) -> Option<R>) -> Option<R> {
    RING.try_with(|own| act(own.borrow_mut().as_mut()?)).ok().flatten()
}

/// Does something with the calling thread's ring.
fn with_ring<R>(act: impl FnOnce(&mut Ring<Block>) -> R) -> Option<R> {
    with_own(|own| own.ring().map(act))
}

/// Makes the ring of the calling thread, if it has none.
pub(crate) fn prepare() -> Result<(), NoRing> {
    let made = RING.try_with(|own| {
        let mut own = own.borrow_mut();
        match own.as_mut().and_then(Own::ring) {
            Some(ring) if !ring.is_broken() => return Ok(()),
            // It has answers that are still to be taken.
            Some(ring) if !ring.is_idle() => {
                return Err(NoRing::Refused(io::ErrorKind::WouldBlock.into()));
            }
            _ => {}
        }
        // A broken one gives its place up.
        *own = None;
        *own = Some(Own::make()?);
        Ok(())
    });
    made.map_err(|ended| NoRing::Refused(io::Error::other(ended)))?
}

/// Whether the system permits rings: the calling thread has one then, unless others have enough.
///
/// # Errors
/// What the system answers.
pub(crate) fn probe() -> io::Result<()> {
    match prepare() {
        // The threads that have them were permitted to.
        Ok(()) | Err(NoRing::Enough) => Ok(()),
        Err(NoRing::Refused(cause)) => Err(cause),
    }
}

/// Begins all reads by the calling thread's ring, which [is there](prepare).
pub(crate) fn begin(jobs: Vec<Job>) -> Vec<RingRead> {
    let begun = with_own(|own| {
        let process = own.process;
        let ring = own.ring()?;
        let begin = |job: Job| {
            let Job { file, offset, into } = job;
            let ticket = Some(ring.begin(Read { file, offset, into: into.0 }));
            RingRead { ticket, process, _thread: PhantomData }
        };
        let begun = jobs.into_iter().map(begin).collect();
        ring.submit();
        Some(begun)
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
        let done = self.with_its_ring(|own| {
            // An answer that is there is taken without a call of the system.
            let ring = own.ring.as_mut()?;
            let done = match ring.take(ticket) {
                Ok(done) => done,
                Err(ticket) => own.ring()?.wait(ticket),
            };
            own.settle();
            Some(done)
        });
        match done {
            Some((read, answer)) => finish(read, answer),
            // The thread ends, and its ring has gone before what waits for it.
            None => (Blocks::default(), Err(io::Error::other("the reading thread has ended"))),
        }
    }

    /// Does something with the ring that has begun it, or with what a forked child has of that.
    fn with_its_ring<R>(&self, act: impl FnOnce(&mut Own) -> Option<R>) -> Option<R> {
        with_own(|own| if own.process == self.process { act(own) } else { None })
    }
}

impl Drop for RingRead {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let _ended = self.with_its_ring(|own| {
                own.ring.as_mut()?.abandon(ticket);
                own.settle();
                Some(())
            });
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier, Mutex, PoisonError};
    use std::thread;

    use super::*;
    use crate::{BLOCK_BYTES, BegunRead, Disk, DiskReads, File, FileDisk, OwnedRead};

    /// Held by the test that counts rings.
    static COUNTED: Mutex<()> = Mutex::new(());

    const BLOCKS: u64 = 300;

    /// A file whose blocks are told by their bytes; `None` where the system refuses a ring.
    fn disk() -> Option<(tempfile::TempDir, FileDisk, Arc<dyn File>)> {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = FileDisk::open(folder.path()).expect("made");
        let disk = match disk.with_reads(DiskReads::IoUring) {
            Ok(disk) => disk,
            Err(cause) => {
                println!("skipped: {cause}");
                return None;
            }
        };
        let file = disk.create("a").expect("made");
        let mut blocks = Blocks::new(BLOCKS as usize * BLOCK_BYTES);
        for (number, block) in blocks.bytes_mut().chunks_mut(BLOCK_BYTES).enumerate() {
            block.fill(number as u8);
        }
        file.write_at(0, &blocks).expect("written");
        Some((folder, disk, file))
    }

    fn begin(disk: &FileDisk, file: &Arc<dyn File>, count: u64) -> Vec<BegunRead> {
        let read = |at: u64| OwnedRead {
            file: Arc::clone(file),
            offset: at % BLOCKS * BLOCK_BYTES as u64,
            into: Blocks::new(BLOCK_BYTES),
        };
        disk.begin_reads((0..count).map(read).collect())
    }

    fn expect_all(begun: Vec<BegunRead>) {
        for (at, begun) in begun.into_iter().enumerate() {
            let (into, result) = begun.wait();
            result.expect("read");
            assert_eq!(into.bytes(), [(at as u64 % BLOCKS) as u8; BLOCK_BYTES]);
        }
    }

    #[test]
    fn threads_beyond_the_limit_of_rings_read_by_others() {
        const THREADS: u64 = RINGS_MAX + 20;
        let _counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
        // A thread of its own opens the disk, and so has a ring no longer.
        let Some((_folder, disk, file)) = thread::spawn(disk).join().expect("no panic") else {
            return;
        };
        let all_have_read = Barrier::new(THREADS as usize);
        for round in 1..=2 {
            thread::scope(|scope| {
                let read = || {
                    expect_all(begin(&disk, &file, 40));
                    all_have_read.wait();
                    // Those that have a ring keep it, and no other thread has got one.
                    expect_all(begin(&disk, &file, 2));
                    all_have_read.wait();
                    assert!(RINGS.load(Ordering::Relaxed) as u32 as u64 <= RINGS_MAX);
                };
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(read)).collect();
                // A scope ends before a thread's ring is gone; to join it waits for that, too.
                threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            });
            // Rings went with their threads, so that each round has as many.
            assert_eq!(disk.ring_reads(), round * RINGS_MAX * 42);
        }
        // A disk that is opened meanwhile is read by rings, as soon as there is one to be had.
        let places: Vec<Place> = std::iter::from_fn(Place::take).collect();
        assert_eq!(places.len() as u64, RINGS_MAX);
        thread::scope(|scope| {
            let reading = scope.spawn(|| {
                assert!(matches!(prepare(), Err(NoRing::Enough)));
                let before = disk.ring_reads();
                expect_all(begin(&disk, &file, 10));
                assert_eq!(disk.ring_reads(), before, "by others");
                assert_eq!(DiskReads::IoUring.choose().ok(), Some(crate::ReadsBy::IoUring));
                drop(places);
                expect_all(begin(&disk, &file, 10));
                assert_eq!(disk.ring_reads(), before + 10);
            });
            reading.join().expect("no panic");
        });
    }

    #[test]
    fn a_place_is_of_its_process() {
        let other = 7_u64 << COUNT_BITS | 5;
        assert_eq!((count(other, 7), count(other, 8), count(0, 8)), (5, 0, 0));
    }

    #[test]
    fn no_buffer_stays_with_a_thread_whose_reads_were_dropped() {
        let _counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
        // Its ring goes before the next test counts them.
        thread::spawn(drop_reads).join().expect("no panic");
    }

    fn drop_reads() {
        let Some((_folder, disk, file)) = disk() else { return };
        let is_idle = || with_ring(|ring| ring.is_idle()).expect("a ring");
        for count in [1, 5, 1000] {
            drop(begin(&disk, &file, count));
            assert!(is_idle(), "{count} were dropped");
            // Some are dropped, and the last one is waited for.
            let mut begun = begin(&disk, &file, count);
            let last = begun.pop().expect("one at least");
            drop(begun);
            last.wait().1.expect("read");
            assert!(is_idle(), "the last of {count} was waited for");
            // A batch within another one.
            let outer = begin(&disk, &file, 3);
            drop(begin(&disk, &file, count));
            assert!(!is_idle());
            expect_all(outer);
            assert!(is_idle());
        }
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _in_flight = begin(&disk, &file, 100);
            panic!("with reads in flight");
        }));
        assert!(panicked.is_err() && is_idle());
    }
}
