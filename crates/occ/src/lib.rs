//! Optimistic transactions over keys of any engine.
//!
//! | module | contents |
//! |---|---|
//! | [`versions`] | a word for each stripe of keys: how often it changed, and what changes it now |
//! | [`reads`] | what a transaction has read, and its commit; that of many keys, each by its value |
//! | [`turn`] | the way for a transaction that met conflict after conflict |
//!
//! The crate knows no keys, values or tables. Keys fall into *stripes* by a hash; two keys of one stripe
//! are one key to it, which costs a conflict now and then, and is never wrong. It runs closures that
//! read and change an engine, whose operations on one key are linearizable.
//!
//! Source: H. T. Kung, J. T. Robinson, "On Optimistic Methods for Concurrency Control", TODS 1981, with
//! the versions and the order of locks of S. Tu et al., "Speedy Transactions in Multicore In-Memory
//! Databases" (Silo), SOSP 2013; changes outside of transactions share a stripe, and transactions have
//! it alone.
//!
//! ```
//! use sapwood_occ::{Reads, Versions};
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//!
//! let (from, to) = (AtomicU64::new(10), AtomicU64::new(0));
//! let versions = Versions::new();
//! let stripes = [versions.stripe(1), versions.stripe(2)];
//!
//! let mut reads = Reads::begin(&versions)?;
//! let before = reads.read(stripes[0], || from.load(Relaxed))?;
//! {
//!     let mut stripes = stripes.to_vec();
//!     let _claimed = reads.claim(&mut stripes)?;
//!     from.store(before - 3, Relaxed);
//!     to.fetch_add(3, Relaxed);
//! }
//!
//! // A change that is no transaction.
//! let _shared = versions.share(|stripe| stripe(stripes[1]))?;
//! to.fetch_add(1, Relaxed);
//! # Ok::<(), sapwood_occ::Conflict>(())
//! ```
#![forbid(unsafe_code)]

pub mod reads;
pub mod turn;
pub mod versions;

#[cfg(all(loom, test))]
mod occ_loom;

pub use reads::{Claims, Look, Reads};
pub use turn::Turn;
pub use versions::{Shared, SharedAtOnce, Stripe, Versions};

/// The transaction met another, or a change, and has to begin again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// What it read has changed since.
    Changed,
    /// What it wants is being changed, and was so for as long as it waited.
    Busy,
    /// Its thread is in the middle of a change that it could wait for.
    Within,
}
