//! Walks over all entries.
//!
//! | module | holds |
//! |---|---|
//! | `by_log` | visits in log order: of a moment, or of the live log |
//! | `snapshot` | the same, as a value that a caller holds |
//! | `columns` | the same, handed out as columns of fixed records |
//! | `hold` | the same, of records that stay where they are until they are changed |
//! | `places` | the order in which walks begin, stop and go on |
//! | `by_bucket` | visits in bucket order, weakly consistent |
//! | `resumable` | the same, in steps between which nothing is held |
//! | `entries` | the same, as an iterator over owned entries |
//! | `sample` | an entry at random |
//! | `check` | a check of every invariant of index and log, and the counts |

pub(crate) mod by_bucket;
pub(crate) mod by_log;
pub(crate) mod check;
pub(crate) mod columns;
pub(crate) mod entries;
pub(crate) mod hold;
mod places;
mod resumable;
mod sample;
pub(crate) mod snapshot;

use std::ops::ControlFlow;

/// A visitor of entries, of a type that walks need not know: their code stands once in this crate.
pub(crate) type VisitEntry<'v> = &'v mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;
