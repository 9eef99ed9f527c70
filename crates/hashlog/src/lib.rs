//! A latch-free hash index over a hybrid log.
//!
//! [`HashLog`] re-imagines FASTER (Chandramouli et al., "FASTER: a concurrent key-value store
//! with in-place updates", SIGMOD 2018): an index of 64-byte buckets that names records in a log
//! whose newest part is updated in place and whose oldest part lies on a disk.
//! `docs/design/hashlog.md` describes the design, its invariants and its costs.
//!
//! | module | holds |
//! |---|---|
//! | `map`, `options`, `error`, `stats` | the public types |
//! | `record` | records: address, layout, hash, value |
//! | `journal` | the journal that hears of changes, and the latches of writers that tell it |
//! | `index` | chains of records by hash |
//! | `files` | what lies on the disk |
//! | `log` | pages in memory, their boundaries, their way to the disk and back |
//! | `ops` | operations on keys |
//! | `walks` | visits of all entries |
//! | `compaction` | giving the room of superseded records back |
//! | `checkpoint` | writing a consistent cut, and opening one |
//! | `logged` | the journal's half of changes: latch, claim, and what is logged |
//!
//! *Useful for* counters, sessions and state that are reached by key, also when they outgrow
//! memory. *Not useful for* order: ranges and neighbours are the ordered engine's.

mod checkpoint;
mod compaction;
mod edit;
mod error;
mod files;
#[cfg(fuzzing)]
pub mod fuzzing;
#[cfg(all(loom, test))]
mod hashlog_loom;
mod index;
mod journal;
#[cfg(all(loom, test))]
mod journal_loom;
mod lock;
mod log;
mod logged;
mod map;
mod ops;
mod options;
mod record;
mod stats;
mod striped;
mod walks;

pub use edit::Edit;
pub use error::{BatchError, Error, Result};
pub use map::{FilesHeld, HashLog};
pub use ops::update_run::ChangeRun;
pub use options::{ColdReads, Compaction, Cut, Layout, Options};
pub use record::layout::KEY_BYTES_MAX;
pub use record::value::ValueMut;
pub use sapwood_engine::{Addresses, ColumnBatch, Columns, HeldKeys, RecordAddress, RecordRun};
pub use sapwood_engine::{Compute, Computed, Upsert};
pub use sapwood_mem::Pages;
pub use stats::{CheckpointInfo, Compacted, HashStats, StoredCheckpoint};
pub use walks::columns::ColumnScan;
pub use walks::hold::Hold;
pub use walks::snapshot::{Snapshot, Sweep};
