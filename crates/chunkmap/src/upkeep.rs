//! The order of chunks and memory, and looks at both. Operations of `write` bring the work; a map has no thread of its own.

pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod compact;
pub(crate) mod rebalance;
pub(crate) mod stats;
