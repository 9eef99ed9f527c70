//! What takes part in the rounds: engines of this process, the floor, engines of a JVM.

use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::space::{Space, Tally};
use super::workload::{Job, Workload};
use crate::Error;

/// What one timed run measured and looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) elapsed: Duration,
    pub(crate) tally: Tally,
}

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

/// One participant. Calls are coarse: a whole run each.
pub(crate) trait Contender {
    fn name(&self) -> &str;

    /// Whether it takes part in `workload`.
    fn runs(&self, workload: Workload) -> bool;

    /// Whether resident memory tells what it takes although the process has freed memory at hand.
    fn maps_its_memory(&self) -> bool;

    /// Loads the space's entries on one thread, with put_if_absent, in its order.
    fn load(&mut self, space: &Arc<Space>) -> Result<Load, Error>;

    /// Runs `job`, then checks what it left behind and puts back what it changed, untimed.
    fn run(&mut self, job: &Job) -> Result<Outcome, Error>;

    /// As `run`, with each operation timed on its own, in nanoseconds.
    fn latencies(&mut self, job: &Job) -> Result<Percentiles, Error>;

    /// What a full scan finds; `None` where there is nothing to check.
    fn everything(&mut self) -> Result<Option<Tally>, Error>;

    /// Whether single operations can be timed.
    fn is_timed_singly(&self) -> bool {
        true
    }
}

/// Latencies of single operations, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Percentiles {
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) p999: u64,
    pub(crate) max: u64,
}

impl From<&Histogram<u64>> for Percentiles {
    fn from(histogram: &Histogram<u64>) -> Self {
        Percentiles {
            p50: histogram.value_at_quantile(0.50),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
        }
    }
}
