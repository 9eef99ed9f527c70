//! Strings with an expiry, in hash tables: what the commands of Redis work on.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@format`] | the stored form of a value |
//! | `parts` | values and keys that are too long for a page of the engine |
//! | `expiries` | keys by the end of their time |
//! | `heads` | long values by key, for puts that do not look at what they overwrite |
//! | [`keyspace`] | a database of Redis: these together |
//! | `memory` | what tables have taken of memory, and what of it is in use |
//! | `tables` | tables of Sapwood, by name |
//! | `tidying` | memory that removed entries have left in hash tables, given back |

pub mod format;

mod expiries;
mod heads;
pub mod keyspace;
pub(crate) mod memory;
pub(crate) mod parts;
pub(crate) mod tables;
pub(crate) mod tidying;
