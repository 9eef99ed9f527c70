//! Records: their bytes, their address and the two layouts that read and write them.
//!
//! | module | holds |
//! |---|---|
//! | `address` | the address of a record in the log; a user's hint of one |
//! | `layout` | every offset, mask and shift of slots, buckets and records |
//! | `hash` | the hash of a key, and the bucket and tag in it |
//! | `form` | reading and writing records: one `Form` for each layout |
//! | `in_place` | changes of a record where it lies, and why an attempt at one stops |
//! | `value` | a value that a closure changes |

pub(crate) mod address;
mod form;
pub(crate) mod hash;
pub(crate) mod in_place;
pub(crate) mod layout;
pub(crate) mod value;

pub(crate) use form::*;
