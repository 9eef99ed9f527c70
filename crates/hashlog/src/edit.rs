//! Changes of many entries where a walk met them.

use crate::error::BatchError;
use crate::log;
use crate::log::begin_lock::Shared;
use crate::map::HashLog;
use crate::ops::by_layout;
use crate::record::value::ValueMut;
use sapwood_engine::RecordAddress;

/// Changes entries where a walk met them; see [`HashLog::edit`](crate::HashLog::edit). Threads share it.
pub struct Edit<'a> {
    /// The edit ends before the log may be compacted.
    pub(crate) begun: Option<(log::LogEdit<'a>, Shared<'a>)>,
    pub(crate) log: &'a HashLog,
}

impl Edit<'_> {
    /// As [`HashLog::update_at`](crate::HashLog::update_at), and fastest for addresses that ascend.
    /// Any addresses may be given.
    ///
    /// Inside `change`, and meanwhile inside closures of other threads, an update of a key whose
    /// record lies among those of the batch may answer
    /// [`Error::WouldBlock`](crate::Error::WouldBlock).
    ///
    /// # Errors
    /// As [`HashLog::update_at`](crate::HashLog::update_at).
    ///
    /// # Panics
    /// As [`HashLog::update_at`](crate::HashLog::update_at).
    pub fn update_at<K: AsRef<[u8]>>(
        &self,
        addresses: &[RecordAddress],
        keys: &[K],
        mut change: impl FnMut(usize, Option<&mut ValueMut<'_>>),
    ) -> std::result::Result<usize, BatchError> {
        assert_eq!(addresses.len(), keys.len(), "one address for each key");
        let Some((edit, _)) = &self.begun else {
            return self.log.update_at(addresses, keys, change);
        };
        let log = self.log;
        by_layout!(log, F => {
            log.store.update_at::<F, K>(addresses, keys, Some(edit), &mut change)
        })
    }
}

impl std::fmt::Debug for Edit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edit").finish_non_exhaustive()
    }
}
