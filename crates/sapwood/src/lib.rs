//! Sapwood: hot, fast-changing keyed state in tables of bytes, outside every managed heap.
//!
//! A [`Db`] holds named [`Table`]s. A table maps byte keys, kept in order, to byte values; any
//! number of threads read and change it at once. Values are read where they lie, under a
//! guard, and changed in place. Typed keys that sort as their values do are made by [`key`].
//!
//! ```
//! use sapwood::{Db, Direction, TableOptions, Upsert, key};
//! use std::ops::ControlFlow;
//!
//! let db = Db::in_memory();
//! let delays = db.create_table("delays", TableOptions::default())?;
//!
//! // Count minutes per (carrier, destination): one search, in place once the key is there.
//! for (carrier, destination, minutes) in [("UA", "IAH", 11_i64), ("UA", "ORD", 12), ("UA", "IAH", 20)] {
//!     let key = key::encode(&(carrier, destination));
//!     delays.put_if_absent_or_update(&key, &minutes.to_le_bytes(), |value| {
//!         let sum = i64::from_le_bytes((**value).try_into().expect("8 bytes were put"));
//!         value.copy_from_slice(&(sum + minutes).to_le_bytes());
//!     })?;
//! }
//! let houston = delays.get(&key::encode(&("UA", "IAH")))?;
//! assert_eq!(houston.as_deref(), Some(&31_i64.to_le_bytes()[..]));
//!
//! // All destinations of a carrier, in order, without creating anything per entry.
//! let united = key::prefix_range(&key::encode(&"UA"));
//! let mut entries = 0;
//! let _ = delays.scan(united.bounds(), Direction::Ascending, |_key, _value| {
//!     entries += 1;
//!     ControlFlow::<()>::Continue(())
//! })?;
//! assert_eq!(entries, 2);
//! # Ok::<(), sapwood::Error>(())
//! ```
//!
//! # Durability
//!
//! A `Db` lives in memory: what it holds ends with the process. Every change passes one place
//! (`mutation.rs`), so that a log can stand there.
//!
//! # What is absent
//!
//! No threads, no files, no global state, no clock and no randomness: a `Db` does only what a
//! caller's thread asks of it, and the same changes in the same order give the same contents.
#![forbid(unsafe_code)]

mod db;
mod error;
pub mod key;
mod mutation;
mod options;
mod range;
mod table;

pub use db::{Db, DbStats};
pub use error::{Error, Result};
pub use options::{Engine, Options, TableOptions};
pub use range::Range;
pub use sapwood_chunkmap::{
    Compute, Computed, Direction, Entry, Error as EngineError, KEY_BYTES_MAX, Stats, Upsert,
    VALUE_BYTES_MAX, ValueMut,
};
pub use table::Table;

/// The README's example runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;
