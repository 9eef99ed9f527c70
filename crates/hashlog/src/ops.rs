//! Operations on keys, over index and log.
//!
//! | module | holds |
//! |---|---|
//! | `store` | the store: its fields, and how an attempt is driven until it is done |
//! | `point` | get, put, update, add and remove of one key |
//! | `batch` | many operations that share their waits |
//! | `update_at` | changes of entries whose addresses are known |

pub(crate) mod batch;
pub(crate) mod point;
pub(crate) mod store;
pub(crate) mod update_at;
