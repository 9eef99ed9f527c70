//! Files of a log: what lies on the disk, checked as it is read.
//!
//! | module | holds |
//! |---|---|
//! | `stored` | the bytes of every stored structure: magic, version, checksum |
//! | `parts` | the log as a row of files, and where each page lies in them |
//! | `image` | an index, written down |
//! | `manifest` | a complete checkpoint, named |
//! | `identity` | which table a directory belongs to |

pub(crate) mod identity;
pub(crate) mod image;
pub(crate) mod manifest;
pub(crate) mod parts;
pub(crate) mod stored;
