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

mod error;
pub mod layout;
mod map;
#[cfg(all(loom, test))]
mod map_loom;
mod node;
mod options;
mod read;
mod tree;
mod upkeep;
mod write;

pub use error::{BatchError, Error, Result};
pub use layout::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use map::ChunkMap;
pub use options::Options;
pub use read::columns::{Piece, WIDTH_MAX, Widths};
pub use read::range::{Entry, Range};
pub use read::split_points::SplitPoints;
pub use sapwood_engine::{Compute, Computed, Direction, KeyRange, Upsert};
pub use sapwood_mem::Pages;
pub use sapwood_mem::epoch::prepare_process;
pub use upkeep::check::Corruption;
pub use upkeep::stats::OrderedStats;
pub use write::value::ValueMut;
