//! A concurrent ordered map of byte keys to byte values in off-heap chunks.
//!
//! [`ChunkMap`] re-imagines Oak (Meir et al., "Oak: a scalable off-heap allocated
//! key-value map", PPoPP 2020): chunks of ordered entries over an arena,
//! zero-copy reads, in-place updates, scans both ways. `docs/design/chunkmap.md`
//! describes the design, its invariants and its costs.
//!
//! *Useful for* hot, fast-changing entries that are also read in order. *Not
//! useful for* data larger than memory, or for point access alone: a hash
//! engine is faster there.

mod abbreviation;
mod add;
mod batch;
mod build;
mod check;
mod chunk;
mod cluster;
mod columns;
mod compact;
mod cursor;
mod entering;
mod error;
mod hazards;
mod held;
mod inner;
mod keys;
pub mod layout;
mod map;
#[cfg(all(loom, test))]
mod map_loom;
mod navigate;
mod nearest;
mod options;
mod range;
mod rebalance;
mod record;
mod removal;
mod run;
mod scan;
mod shape;
mod split_points;
mod stats;
mod striped;
mod tree;
mod value;
mod writing;

pub use check::Corruption;
pub use columns::{Piece, WIDTH_MAX, Widths};
pub use error::{BatchError, Error, Result};
pub use layout::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use map::ChunkMap;
pub use options::Options;
pub use range::{Entry, Range};
pub use sapwood_engine::{Compute, Computed, Direction, KeyRange, Upsert};
pub use sapwood_mem::Pages;
pub use sapwood_mem::epoch::prepare_process;
pub use split_points::SplitPoints;
pub use stats::OrderedStats;
pub use value::ValueMut;
