//! Loading: what a contender of the hash bench does outside the rounds.

use std::time::Duration;

use super::workload::Job;
use crate::Error;
use crate::rounds::Contender;

/// Figures of a load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) elapsed: Duration,
    /// Growth of resident memory from before the store was made to after the load.
    pub(crate) resident_bytes: Option<u64>,
    /// As much of that as lies on 2 MiB pages.
    pub(crate) huge_bytes: Option<u64>,
    /// Bytes by the store's own account, where it keeps one.
    pub(crate) accounted_bytes: Option<u64>,
}

/// One participant, and what is done to it outside the rounds.
pub(crate) trait Loadable: Contender<Job> {
    /// Makes its store anew and loads all keys on one thread; `None` where another form does.
    fn load(&mut self, keys: u32) -> Result<Option<Load>, Error>;

    /// Reads every entry and compares: an error says what is wrong.
    fn check_everything(&mut self) -> Result<(), Error>;
}
