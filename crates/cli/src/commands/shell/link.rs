//! A way on which requests go out and replies come back as bytes of the Redis protocol.
//!
//! There are two: to a server ([`super::remote`]), and to a database in this process
//! ([`super::in_process`]).

use std::fmt::Debug;
use std::io;
use std::time::Duration;

/// A way to one session.
pub(crate) trait Link: Debug {
    /// Sends a request.
    ///
    /// # Errors
    /// Those of the system.
    fn send(&mut self, request: &[u8]) -> io::Result<()>;

    /// Appends bytes that have come; waits for some, but not much longer than `patience`.
    ///
    /// # Errors
    /// Those of the system.
    fn receive(&mut self, into: &mut Vec<u8>, patience: Duration) -> io::Result<Received>;

    /// Stops the command that runs, as well as can be.
    fn cancel(&mut self) -> Cancelled;
}

/// The end of a wait for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    Some,
    None,
    /// No more will come.
    Ended,
}

/// What a cancelled command still says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancelled {
    /// It answers, soon.
    Answers,
    /// Nothing: the link is of no use any more.
    Silent,
}
