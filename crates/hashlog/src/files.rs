//! Files of a log: what lies on the disk, checked as it is read.
//!
//! | module | holds |
//! |---|---|
//! | `stored` | the bytes of every stored structure: magic, version, checksum |
//! | `parts` | the log as a row of files, and where each page lies in them |
//! | `image` | an index, written down |
//! | `manifest` | a complete checkpoint, named |
//! | `checkpoint_number` | the number of a checkpoint, in names and manifests |
//! | `kept` | the checkpoints of a log that are on the disk |
//! | `page` | the records of a stored page |
//! | `identity` | which table a directory belongs to |

pub(crate) mod checkpoint_number;
pub(crate) mod identity;
pub(crate) mod image;
pub(crate) mod kept;
pub(crate) mod manifest;
pub(crate) mod page;
pub(crate) mod parts;
pub(crate) mod stored;

use std::sync::Arc;

use sapwood_disk::Disk;

/// The files of a log.
pub(crate) type Directory = Arc<dyn Disk>;
