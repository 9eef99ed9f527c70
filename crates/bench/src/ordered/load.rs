//! What takes part in the rounds: engines of this process, the baseline, engines of a JVM.

use std::sync::Arc;
use std::time::Duration;

use super::space::Space;
use super::workload::Job;
use crate::Error;
use crate::rounds::Contender;
use crate::tally::Tally;

/// What the load measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) elapsed: Duration,
    /// Growth of resident memory (of the heap in use, for a JVM) over the load.
    pub(crate) resident_bytes: Option<u64>,
    /// What the engine itself accounts for, where it does.
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

/// One participant, and what is done to it outside the rounds.
pub(crate) trait Loadable: Contender<Job> {
    /// Whether resident memory tells what it takes although the process has freed memory at hand.
    fn maps_its_memory(&self) -> bool;

    /// Loads the space's entries on one thread, with put_if_absent, in its order.
    fn load(&mut self, space: &Arc<Space>) -> Result<Load, Error>;

    /// What a full scan finds; `None` where there is nothing to check.
    fn everything(&mut self) -> Result<Option<Tally>, Error>;
}
