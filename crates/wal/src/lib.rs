//! The log of a database: tables that live in memory outlive the process by it.
//!
//! A [`Wal`] takes down each change of its tables ([`Journal`]) in one log of a [`Disk`], and
//! writes [checkpoints](Wal::checkpoint): snapshots of all tables, after which the log before them goes.
//! Opening reads the snapshots and does the changes again that the log has from there on (Gray and
//! Reuter: "Transaction Processing: Concepts and Techniques", 1993, chapters 9 to 11).
//!
//! A snapshot is taken while changes go on, so it may have some that the log has, too. That does no
//! harm: an [`Effect`] does not depend on what was there, and the log is synced up to the end of the
//! snapshot before the checkpoint counts.
//!
//! | modules, each above those it uses | |
//! |---|---|
//! | `error` | what is refused |
//! | `frame` | changes as bytes in records of the log |
//! | `pace` | how fast checkpoints are written |
//! | `snapshot`, `manifest` | the other files |
//! | `appender` | one order of all changes, and the first failure |
//! | `wal`, `open` | tables, checkpoints, opening |
//! | `view` | opening to read, while another process appends |
//! | `follow` | reading what another process appends |
//! | `salvage` | what files say, damaged or not |
//!
//! **Absent:** unsafe code, engines, the meaning of descriptions, threads but the log's, and one that packs a large
//! snapshot while its table is read.
#![forbid(unsafe_code)]

mod appender;
mod error;
mod follow;
mod frame;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod manifest;
mod open;
mod pace;
mod salvage;
mod snapshot;
mod view;
mod wal;

pub use appender::{LogGroup, LogRoom, Records};
pub use error::{Error, Result};
pub use follow::{Follower, LogChange, LogRecord};
pub use frame::{RECORDS, TableId};
pub use open::Recovery;
pub use salvage::{Frames, InspectedTable, Inspection};
pub use snapshot::{Block, Cut, Layout, Piece, ReadAhead, Snapshot, Values};
pub use view::View;
pub use wal::{Checkpoint, Checkpoints, Contents, Entries, FilesHeld, Recovered, Wal, WalOptions};

#[cfg(doc)]
use sapwood_disk::Disk;
#[cfg(doc)]
use sapwood_engine::{Effect, Journal};
