//! Operations that change entries. Each goes into the record of its key as a writer (`lock`), and leaves the change in
//! the record or its entry (`entry`).

pub(crate) mod add;
pub(crate) mod batch;
pub(crate) mod entry;
pub(crate) mod lock;
pub(crate) mod put;
pub(crate) mod removal;
pub(crate) mod sorted_run;
pub(crate) mod update;
pub(crate) mod value;

use sapwood_mem::reclaim::{Guard, Left};
use sapwood_mem::sync::Backoff;

use crate::error::{Error, Result};
use crate::map::ChunkMap;
use crate::tree::{Found, Leaf};

impl ChunkMap {
    /// The chunk that was found, once; then the one that covers the key.
    #[inline]
    fn leaf_once<'g>(
        &'g self,
        guard: &'g Guard,
        found: &mut Option<Found>,
        key: &[u8],
    ) -> Leaf<'g> {
        let leaf = found.take().and_then(|found| self.tree.found_leaf(guard, found));
        leaf.unwrap_or_else(|| self.tree.leaf(guard, key))
    }

    /// Runs `attempt`; when memory runs out, frees what readers have left and
    /// tries again before it gives up.
    fn with_memory<R>(&self, mut attempt: impl FnMut(&Guard) -> Result<R>) -> Result<R> {
        const ATTEMPTS_MAX: usize = 64;
        // Pins are short: only a thread that the system does not run stays in one for so many
        // sleeps of a wait, a tenth of a second and more.
        const WAITS_MAX: usize = 2_000;
        let reclaimer = &self.tree.reclaimer;
        let backoff = Backoff::new();
        let (mut attempts, mut waits) = (0, 0);
        loop {
            let retired_before = reclaimer.retired_bytes();
            let result = attempt(&reclaimer.pin());
            attempts += 1;
            if !matches!(result, Err(Error::OutOfMemory { .. })) {
                self.compact_if_due();
                return result;
            }
            if attempts == ATTEMPTS_MAX {
                return result;
            }
            while reclaimer.flush() == Left::Pinned
                && reclaimer.retired_bytes() >= retired_before
                && waits < WAITS_MAX
            {
                backoff.wait();
                waits += 1;
            }
            if reclaimer.retired_bytes() == retired_before {
                // What is retired is in the hands of readers, or nothing is.
                return result;
            }
        }
    }
}
