//! Strings with an expiry, in hash tables: what the commands of Redis work on.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@format`] | the stored form of a value |
//! | `parts` | values and keys that are too long for a page of the engine |
//! | `expiries` | keys by the end of their time |
//! | [`keyspace`] | a database of Redis: the three together |
//! | `tables` | tables of Sapwood, by name |

pub mod format;

mod expiries;
pub mod keyspace;
mod parts;
pub(crate) mod tables;
