//! Checkpoints: a consistent cut of the log, written while threads go on, and its recovery.
//!
//! A checkpoint fixes a moment as a scan does, writes the log up to the boundary, syncs it, and
//! then writes a manifest that says so. A full one also writes an image of the index as of the
//! moment: a slot that names a record above the boundary is followed down its chain. Recovery reads
//! the newest image that the manifest names and replays the log behind it: each record says which
//! record its slot named before, so the chains come out as they were.
//!
//! What a file refers to is synced before the file is: parts before the image, both before the
//! manifest, which takes its name by a rename. Files that no kept manifest needs go last.
//!
//! A number is used once. Where the rename of a manifest was tried and failed, or the sync that
//! makes it last, the manifest may be there, now or after a crash: what it names stays until a
//! later checkpoint is complete.
//!
//! | module | holds |
//! |---|---|
//! | `write` | the writing of one, and the removal of files that none needs |
//! | `found` | the checkpoints of a directory, before any is opened |
//! | `open` | the opening of one |

mod found;
mod open;
mod write;

pub(crate) use found::{check, list};
pub(crate) use open::Opening;

#[cfg(all(test, not(loom)))]
mod tests;
