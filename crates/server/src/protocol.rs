//! The Redis protocol: [`request`] finds commands in the bytes that came, [`reply`] writes what goes
//! back, [`glob`] matches the patterns of keys.
//!
//! Nothing here reads a clock, holds a lock or knows a table.

pub mod glob;
pub mod reply;
pub mod request;
