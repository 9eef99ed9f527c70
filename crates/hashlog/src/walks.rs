//! Walks over all entries.
//!
//! | module | holds |
//! |---|---|
//! | `by_log` | visits in log order: of a moment, or of the live log |
//! | `snapshot` | the same, as a value that a caller holds |
//! | `columns` | the same, handed out as columns of fixed records |
//! | `by_bucket` | visits in bucket order, weakly consistent |
//! | `check` | a check of every invariant of index and log, and the counts |

pub(crate) mod by_bucket;
pub(crate) mod by_log;
pub(crate) mod check;
pub(crate) mod columns;
pub(crate) mod entries;
pub(crate) mod snapshot;
