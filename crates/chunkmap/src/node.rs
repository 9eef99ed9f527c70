//! Nodes as bytes: records, the chunks that order them, and the inner nodes above.

pub(crate) mod abbreviation;
pub(crate) mod build;
pub(crate) mod chunk;
pub(crate) mod cursor;
pub(crate) mod enter;
pub(crate) mod hazard_pointers;
pub(crate) mod inner;
pub(crate) mod nearest;
pub(crate) mod record;
pub(crate) mod reentrancy;
pub(crate) mod shape;
pub(crate) mod sorted_keys;
pub(crate) mod ticket;
