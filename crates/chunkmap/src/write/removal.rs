//! Many entries are removed: those of a range, or those that a closure does not want.

use std::ops::ControlFlow;

use crate::Direction;
use crate::error::Result;
use crate::map::ChunkMap;
use sapwood_engine::KeyRange;
use sapwood_engine::{Compute, Computed};

impl ChunkMap {
    /// Removes every entry within `bounds` that is there when it begins, and answers how many;
    /// what is put meanwhile may stay. Not atomic as a whole.
    ///
    /// # Errors
    /// As of [`remove`](Self::remove); some entries may be gone by then.
    pub fn remove_range(&self, bounds: impl KeyRange) -> Result<u64> {
        let mut removed = 0;
        let end = self.scan_keys(bounds, Direction::Ascending, |key| match self.remove(key) {
            Ok(was_there) => {
                removed += u64::from(was_there);
                ControlFlow::Continue(())
            }
            Err(refused) => ControlFlow::Break(refused),
        })?;
        match end {
            ControlFlow::Continue(()) => Ok(removed),
            ControlFlow::Break(refused) => Err(refused),
        }
    }

    /// Removes the entries of which `keep` says false, and answers how many. What is put meanwhile
    /// may be asked about or not. Not atomic as a whole.
    ///
    /// An entry is removed as it was when `keep` refused it: one that a writer changes meanwhile is
    /// asked about again. So `keep` may see an entry twice, the second time as
    /// [`compute`](Self::compute) does.
    ///
    /// # Errors
    /// As of [`scan`](Self::scan) and [`remove`](Self::remove); some entries may be gone by then.
    ///
    /// # Panics
    /// If `keep` does; the entry that it was asked about is there.
    pub fn retain(&self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        let mut removed = 0;
        let end = self.scan(.., Direction::Ascending, |key, value| {
            if keep(key, value) {
                return ControlFlow::Continue(());
            }
            // What the scan shows may be superseded. What `compute` shows is not, while it decides.
            let decided = self.compute(key, |now| match now {
                Some(value) if !keep(key, value) => Compute::Remove,
                _ => Compute::Keep,
            });
            match decided {
                Ok(done) => {
                    removed += u64::from(done == Computed::Removed);
                    ControlFlow::Continue(())
                }
                Err(refused) => ControlFlow::Break(refused),
            }
        })?;
        match end {
            ControlFlow::Continue(()) => Ok(removed),
            ControlFlow::Break(refused) => Err(refused),
        }
    }
}
