//! The calls by which a process reaches its files: counted, made to fail, and taken back.
//!
//! A program that links this crate and calls [`arm`] has its own `open64`, `pwrite64`, `fdatasync`
//! and so on: the linker prefers them to those of the C library, so that the standard library calls
//! them. No code above knows of it: files are real ones, and the code that opens and writes them is
//! the code that ships. Nothing changes for files outside of the armed folder.
//!
//! - A [`Failure`] makes the n-th call of a kind fail, once or from then on.
//! - A [`PowerLoss`] ends the process at the n-th call, after it has taken back what was not
//!   synced: bytes since the file's last `fdatasync`, names since the folder's last `fsync`.
//!
//! Syncs of the armed folder are not passed on to the system: the shim decides what lasts, and a
//! process that only ends loses nothing. So thousands of runs do not wait for a disk.
//!
//! *Not for* programs that ship, other systems than Linux with the GNU C library, and calls that
//! the crate `disk` does not make: a `write` to an armed file
//! ends the process with a message, lest a loss of power miss it.
//!
//! *Thread safety*: one lock is held over each call that changes something, so that a loss of power
//! falls between two calls. Reads hold it to be counted, not while they read.

mod calls;
mod journal;
mod plan;

pub use plan::{Call, Failure, Fate, Plan, PowerLoss, Repeat, Since, SystemError};

use std::io;
use std::path::Path;

/// Begins to count and to disturb the calls of this process that concern files in `folder`. What
/// is there already lasts. `removed`, a folder beside it on the same disk, takes files whose
/// removal is not synced yet.
///
/// # Errors
/// What the system answers, or `Unsupported` when the calls do not come here: the program was
/// linked in another way.
pub fn arm(folder: &Path, removed: &Path, plan: Plan) -> io::Result<()> {
    calls::expect_linked()?;
    journal::arm(&std::fs::canonicalize(folder)?, &std::fs::canonicalize(removed)?, plan);
    Ok(())
}

/// How many calls of each kind there were since [`arm`], in the order of [`Call::ALL`].
pub fn counts() -> [u64; Call::ALL.len()] {
    journal::counts()
}

/// Whether the planned failure has happened.
pub fn has_failed() -> bool {
    journal::has_failed()
}
