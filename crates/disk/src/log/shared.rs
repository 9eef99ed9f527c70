//! Logs that several engines append to.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use super::Log;
use super::format::Lsn;

/// What an engine has of a log that it shares with others: records of different engines have one order, and what
/// is left of them after a crash is a prefix of all. Whatever opens the log tells each engine its own.
pub trait SharedLog: Debug + Send + Sync {
    /// The log, for its positions and its syncs.
    fn log(&self) -> &Arc<Log>;
    /// The number that tells the log from others.
    fn id(&self) -> u64;
    /// Keeps room for a record of the engine that has so many bytes, as [`Log::claim`] does; by the
    /// answer it is [given back](Log::give_back).
    ///
    /// # Errors
    /// The errors of [`Log::claim`].
    fn claim(&self, record_bytes: usize) -> io::Result<u64>;
    /// Appends a record of the engine, whose changes come behind; the position behind the record. Where
    /// `ends_group`, all that this thread has changed in other engines and not appended yet is part of the same
    /// record, and is there after a crash if this is.
    ///
    /// # Errors
    /// `StorageFull`: nothing is appended, and another record may be; any other is for good.
    fn append(&self, record: &[u8], ends_group: bool) -> io::Result<Lsn>;
    /// Appends a record that was [claimed](Self::claim), and whose changes are made.
    ///
    /// # Errors
    /// Why there is no record any more.
    fn append_claimed(&self, record: &[u8], ends_group: bool) -> io::Result<Lsn>;
    /// Waits for a sync where more bytes of the log are not synced than may be. For changes that wait for nothing
    /// else, once they are made.
    ///
    /// # Errors
    /// As of [`Log::sync`].
    fn bound_unsynced(&self) -> io::Result<()>;
}
