//! Loading: what a contender of the ordered bench does outside the rounds.

use std::sync::Arc;
use std::time::Duration;

use super::space::Space;
use super::workload::Job;
use crate::Error;
use crate::rounds::Contender;
use crate::tally::Tally;

/// Figures of a load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) elapsed: Duration,
    /// Growth of resident memory (of the heap in use, for a JVM) over the load.
    pub(crate) resident_bytes: Option<u64>,
    /// Bytes by the engine's own account, if it keeps one.
    pub(crate) accounted: Option<Accounted>,
}

/// Bytes by an engine's own account.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accounted {
    /// Keys, values and everything that they need.
    pub(crate) used_bytes: u64,
    pub(crate) overhead_bytes: u64,
    pub(crate) free_bytes: u64,
    pub(crate) pages: &'static str,
}

/// What scans of everything did to an engine before scans were timed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settled {
    pub(crate) scans: usize,
    /// Bytes that they moved inside of the engine.
    pub(crate) moved_bytes: u64,
    pub(crate) accounted: Option<Accounted>,
}

/// One participant, and what is done to it outside the rounds.
pub(crate) trait Loadable: Contender<Job> {
    /// Whether resident memory tells what it takes although the process has freed memory at hand.
    fn maps_its_memory(&self) -> bool;

    /// Most bytes of a key that it takes.
    fn key_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// Loads the space's entries on one thread, with put_if_absent, in its order.
    fn load(&mut self, space: &Arc<Space>) -> Result<Load, Error>;

    /// The tally of a full scan; `None` where there is nothing to check.
    fn everything(&mut self) -> Result<Option<Tally>, Error>;

    /// Scans everything until scans change nothing any more inside of the engine; `None` where they never do.
    fn settle(&mut self) -> Option<Settled> {
        None
    }
}
