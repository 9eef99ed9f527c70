//! A crash-safe heap: objects and trees that live in files, are used like memory, and are never
//! half-changed.
//!
//! A [`Pool`] is a heap of objects and a log. A [`Transaction`] changes objects and trees, all of it
//! or none.
//!
//! | module | contents |
//! |---|---|
//! | `object`, `view` | names of objects, their first words, and objects as an operation sees them |
//! | `heap` | which words belong to objects: zones, chunks, runs, walks |
//! | `lane`, `transaction`, `together` | copies of what a transaction changes, and how they become the heap's |
//! | `redo`, `log`, `dirty`, `checkpoint`, `superblock`, `open` | from memory to files and back |
//! | `commit` | commits that are waited for |
//! | `version`, `state` | readers beside a writer |
//! | `objects` | objects of users |
//! | `tree` | B-tree, crit-bit tree, red-black tree; the catalog; verbs |
//! | `info`, `check`, `salvage` | what files say; whether all holds; what can be saved of damaged ones |
//!
//! **Absent:** unsafe code, files that are not the disk's, threads but the log's
//! (`sapwood_disk`), which a commit may want.
#![forbid(unsafe_code)]

mod check;
mod checkpoint;
mod commit;
mod dirty;
mod error;
mod heap;
mod info;
mod lane;
#[cfg(test)]
mod layouts;
mod log;
mod object;
mod objects;
mod open;
mod options;
mod pool;
mod redo;
mod salvage;
mod state;
mod sums;
mod superblock;
mod together;
mod transaction;
mod tree;
mod version;
#[cfg(all(test, loom))]
mod version_loom;
mod view;

pub use check::CheckReport;
pub use checkpoint::FilesHeld;
pub use commit::{Commit, Lasting};
pub use error::{Error, Result};
pub use heap::walk::{ClassReport, Found, HeapReport};
pub use info::PoolInfo;
pub use object::{ObjectId, ObjectType};
pub use open::{DamagedPool, OpeningPool};
pub use options::PoolOptions;
pub use pool::Pool;
pub use salvage::{Salvage, SalvagedTree};
pub use sapwood_disk::log::Durability;
pub use sapwood_engine::{Compute, Computed, Direction, KeyRange, Upsert};
pub use together::Joint;
pub use transaction::{Transaction, Unsettled};
pub use tree::catalog::TreeInfo;
pub use tree::entry::{KEY_BYTES_MAX, TreeLayout, VALUE_BYTES_MAX};
pub use tree::split_points::SplitPoints;
pub use tree::structure::TreeKind;
pub use tree::value::ValueMut;
pub use tree::{Entries, Frozen, Tree};
