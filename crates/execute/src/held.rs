//! A walk under a hold, which keeps records where it met them.
//!
//! A hash table in memory keeps the records that a walk of its log met where they are, with their
//! keys, for as long as a hold lives ([`sapwood_hashlog::Hold`]). So of most objects a bit is
//! collected, not a key; and the second pass (`change`) reads key and value in the record that it
//! changes.

use sapwood_aggregate::{Disaggregator, Guess};
use sapwood_hashlog::Hold;

use crate::Result;
use crate::objects::Request;
use crate::pool::{Chosen, Filled, Pool};
use crate::sink::Sink;

/// Keys from which it is guessed which objects get a unit more.
const SAMPLE: usize = 32_768;

/// Guesses which objects of a table will get a unit more.
pub(crate) fn guess(hold: &Hold<'_>, by: &Disaggregator) -> Option<Guess> {
    let mut keys = Vec::with_capacity(SAMPLE);
    if by.has_equal_parts() && hold.entries() > 2 * SAMPLE as u64 {
        hold.sample_keys(SAMPLE, &mut keys);
    }
    by.guess(hold.entries(), &keys)
}

/// Hands over what is selected, by a walk of the log.
pub(crate) fn scan<S: Sink>(
    hold: &Hold<'_>,
    request: &Request<'_>,
    pool: &Pool<'_>,
    make: &(impl Fn() -> S + Sync),
) -> Result<Filled<S>> {
    // More parts than threads, so that no thread waits long for the last.
    let parts = if pool.threads() == 1 { 1 } else { pool.threads() * 8 };
    let chosen = match request.selection.is_everything() {
        true => Chosen::All,
        false => Chosen::Perhaps,
    };
    pool.in_parts(parts, make, |part, worker| {
        Ok(hold.scan_part(part, parts, |batch| worker.push_columns(batch, chosen))?)
    })
}
