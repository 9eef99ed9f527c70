//! The Redis protocol, without a socket: [`request`] finds commands in the bytes that came,
//! [`reply`] writes what goes back, [`glob`] matches the patterns of keys.
//!
//! Nothing here reads a clock, holds a lock or knows a table.
#![forbid(unsafe_code)]

pub mod glob;
pub mod reply;
pub mod request;
