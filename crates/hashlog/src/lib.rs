//! A latch-free hash index over a hybrid log.
//!
//! [`HashLog`] re-imagines FASTER (Chandramouli et al., "FASTER: a concurrent key-value store
//! with in-place updates", SIGMOD 2018): an index of 64-byte buckets that names records in a log
//! whose newest part is updated in place and whose oldest part lies on a disk.
//! `docs/design/hashlog.md` describes the design, its invariants and its costs.
//!
//! *Useful for* counters, sessions and state that are reached by key, also when they outgrow
//! memory. *Not useful for* order: ranges and neighbours are the ordered engine's.

mod address;
mod batch;
mod bucket;
mod buckets;
mod check;
mod checkpoint;
mod cold;
mod compact;
mod compactor;
mod core;
mod counter;
mod error;
mod flush;
mod frames;
#[cfg(fuzzing)]
pub mod fuzzing;
mod grow;
mod hash;
#[cfg(all(loom, test))]
mod hashlog_loom;
mod identity;
mod image;
mod index;
mod layout;
mod life;
mod log;
mod manifest;
mod map;
mod options;
mod parts;
mod placed;
mod point;
mod record;
mod runs;
mod scan;
mod stats;
mod stored;
mod survey;
mod value;
mod walk;

pub use checkpoint::Cut;
pub use compact::Compacted;
pub use error::{BatchError, Error, Result};
pub use layout::KEY_BYTES_MAX;
pub use map::{Edit, HashLog, Snapshot, Sweep, Upsert};
pub use options::{ColdReads, Compaction, Layout, Options};
pub use runs::{Columns, Place, Run, Runs};
pub use sapwood_mem::Pages;
pub use stats::{CheckpointInfo, HashStats, StoredCheckpoint};
pub use value::ValueMut;
