//! A thread's ring to the kernel, which fills buffers from files: reads that are handed over together, by
//! io_uring.
//!
//! *For* many short reads at once: one system call hands over all that were begun, one waits for as many
//! of them as are wanted, and the kernel wakes the thread once for all of these. *Not for* a single read,
//! which a plain system call does in less time; nor for writes.
//!
//! *Thread safety*: a ring stays with the thread that has made it. The kernel takes calls from no other
//! (`IORING_SETUP_SINGLE_ISSUER`), and puts answers into the ring while that thread asks for some, not
//! whenever the disk interrupts it (`IORING_SETUP_DEFER_TASKRUN`, of Linux 6.1).
//!
//! # Invariants
//!
//! - I-LENT: a buffer belongs to the ring from the moment its read is begun until the kernel's answer has
//!   come, or the read is known never to have been handed over. Until then the ring neither reads, moves,
//!   nor frees its bytes, whatever the caller does: a caller that loses interest leaves the buffer with
//!   the ring, and a ring that is dropped first waits for all answers. If it cannot, the buffers stay.
//! - I-ROOM: no more reads are in flight than the kernel has room for answers to.

#[cfg(not(target_os = "linux"))]
mod absent;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(test, target_os = "linux", not(loom)))]
mod tests;

use std::fs::File;
use std::sync::Arc;

#[cfg(not(target_os = "linux"))]
pub use absent::Ring;
#[cfg(target_os = "linux")]
pub use linux::Ring;

/// A read that owns what it needs.
#[derive(Debug)]
pub struct Read<T> {
    /// From which file.
    pub file: Arc<File>,
    /// At which byte.
    pub offset: u64,
    /// Filled from its beginning.
    pub into: Vec<T>,
}

/// The name of a read that was begun. It means something to its ring alone.
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket(u32);
