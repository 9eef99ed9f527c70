//! The Redis protocol: [`request`] finds commands in the bytes that came, [`reply`] writes what
//! goes back, [`glob`] matches the patterns of keys, `units` reads numbers of bytes. Druid's:
//! `native` finds the table that a query names.
//!
//! Nothing here reads a clock, holds a lock or knows a table.

pub mod glob;
pub(crate) mod native;
pub mod reply;
pub mod request;
pub(crate) mod units;
