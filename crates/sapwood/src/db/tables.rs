//! Tables of a database by engine: created, opened, found by their names, with their schemas.

#[cfg(feature = "sql")]
mod filled;
mod hash;
mod hash_slot;
mod ordered;
#[cfg(feature = "rollup")]
mod rollup;
mod schemas;
mod tree;

pub(super) use hash_slot::HashSlot;
pub(crate) use ordered::ToLoad;
pub(super) use schemas::{Schemas, TABLE as SCHEMA_TABLE};
