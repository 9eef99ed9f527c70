//! Levels of durability.

use std::time::Duration;

/// What a change waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The change is in the page cache: it outlives the process, however that ends, and power loss once
    /// the system has written it, or a sync was called. After power loss there is some prefix of the
    /// changes.
    #[default]
    Buffered,
    /// As of `Buffered`, and a thread of the log syncs it so long after the first change that does not
    /// last, for all of them. Power loss takes no older changes, and a sync under way little more. At
    /// the end what is left is synced. Where a sync fails, the next change says so.
    Interval(Duration),
    /// The change lasts: one sync of the log, which all share that wait at the time.
    Sync,
}
