//! Appends what tables tell to the log, in one order, and remembers the first failure.

use std::cell::{Cell, RefCell};
use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use parking_lot::{RwLock, RwLockReadGuard};
use sapwood_disk::log::{Log, Lsn, SharedLog};
use sapwood_engine::{Effect, Journal, Refused};

use crate::error::{Error, Result};
use crate::frame::{FRAME_HEAD_BYTES_MAX, Frame, TableId};

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The log, and why it takes no more changes, if it does not.
///
/// | word | written, under the lock | read |
/// |---|---|---|
/// | `has_failed` | the first append that fails, release | before a change, acquire: the reason is there |
/// | `lacks_room` | a claim that is refused, or granted behind one, relaxed, without the lock | reports, relaxed |
/// | `end` | each append, relaxed | after a change, by a thread that may have made an append itself |
/// | `due_at` | the append that reaches it; a checkpoint | each append, under the lock |
#[derive(Debug)]
pub(crate) struct Appender {
    pub(crate) log: Arc<Log>,
    state: Mutex<State>,
    has_failed: AtomicBool,
    lacks_room: AtomicBool,
    /// The position behind the last record.
    end: AtomicU64,
    /// The position from which on a checkpoint is due.
    due_at: AtomicU64,
    due: Mutex<Due>,
    became_due: Condvar,
    /// Shared by threads whose changes go together, until these are appended.
    together: RwLock<()>,
}

/// Changes of a thread that become one record.
#[derive(Debug)]
struct Group {
    /// The log that they are for.
    of: *const Appender,
    /// The record, as far as it is.
    record: Vec<u8>,
    /// Room that is kept for it.
    claimed: u64,
    /// True while changes are taken back, which the record does not get.
    is_taking_back: bool,
}

thread_local! {
    static TOGETHER: RefCell<Option<Group>> = const { RefCell::new(None) };
    /// Room that this thread has claimed for changes to come, and the log that has it.
    static AHEAD: Cell<(*const Appender, u64)> = const { Cell::new((ptr::null(), 0)) };
    /// The log that this thread appended to last, and the position behind that.
    static TOLD: Cell<(*const Appender, Lsn)> = const { Cell::new((ptr::null(), 0)) };
}

/// What a thread waits for that writes checkpoints.
#[derive(Debug, Default)]
struct Due {
    is_due: bool,
    has_ended: bool,
}

#[derive(Debug, Default)]
struct State {
    /// The first append that failed, which had no claim. None comes behind it: a gap would make
    /// what lasts no prefix of what happened.
    failed: Option<Error>,
    /// The record that is made up.
    record: Vec<u8>,
}

/// Bytes of the longest record whose memory is kept for the next.
const RECORD_KEPT: usize = 64 << 10;

impl Appender {
    pub(crate) fn new(log: Log, due_at: Lsn) -> Arc<Appender> {
        let end = AtomicU64::new(log.position().0);
        Arc::new(Appender {
            log: Arc::new(log),
            state: Mutex::default(),
            has_failed: AtomicBool::new(false),
            lacks_room: AtomicBool::new(false),
            end,
            due_at: AtomicU64::new(due_at),
            due: Mutex::default(),
            together: RwLock::new(()),
            became_due: Condvar::new(),
        })
    }

    /// The position behind the last record that this thread, or one that it has heard of, appended.
    pub(crate) fn end(&self) -> Lsn {
        self.end.load(Ordering::Relaxed)
    }

    /// Waits for a sync where more bytes are not synced than these.
    pub(crate) fn bound_unsynced(&self, bytes: u64) -> io::Result<()> {
        let (end, durable) = (self.end(), self.log.durable());
        match end.saturating_sub(durable) > bytes {
            true => self.log.sync(end),
            false => Ok(()),
        }
    }

    /// A position behind all records of this thread.
    pub(crate) fn told(&self) -> Lsn {
        match TOLD.get() {
            (of, _) if of.is_null() => 0,
            // At most: a log that is gone may have been at this address.
            (of, end) if ptr::eq(of, self) => end.min(self.end()),
            // It has appended to another log since.
            _ => self.end(),
        }
    }

    /// Lets a checkpoint be due from a position on: at once, if the log has come there meanwhile.
    pub(crate) fn set_due(&self, at: Lsn) {
        let _none_appends = lock(&self.state);
        match self.end() >= at {
            true => self.become_due(),
            false => self.due_at.store(at, Ordering::Relaxed),
        }
    }

    /// The caller has the lock of `state`.
    fn become_due(&self) {
        self.due_at.store(Lsn::MAX, Ordering::Relaxed);
        lock(&self.due).is_due = true;
        self.became_due.notify_all();
    }

    /// Waits until a checkpoint is due, or some time has passed: true; false once
    /// [`end_waiting`](Self::end_waiting) was called.
    pub(crate) fn wait_until_due(&self, at_most: Option<Duration>) -> bool {
        let waits = |due: &mut Due| !due.is_due && !due.has_ended;
        let due = lock(&self.due);
        let mut due = match at_most {
            None => self.became_due.wait_while(due, waits).unwrap_or_else(PoisonError::into_inner),
            Some(time) => {
                let waited = self.became_due.wait_timeout_while(due, time, waits);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        due.is_due = false;
        !due.has_ended
    }

    pub(crate) fn end_waiting(&self) {
        lock(&self.due).has_ended = true;
        self.became_due.notify_all();
    }

    /// # Errors
    /// Those of the first append, or sync, that failed.
    pub(crate) fn check(&self) -> Result<()> {
        if self.has_failed.load(Ordering::Acquire)
            && let Some(failed) = &lock(&self.state).failed
        {
            return Err(failed.clone());
        }
        match self.log.failed_sync() {
            Some(cause) => Err(Error::io("sync the log", &cause)),
            None => Ok(()),
        }
    }

    /// Lets no append come any more.
    pub(crate) fn refuse(&self, cause: Error) {
        lock(&self.state).failed.get_or_insert(cause);
        self.has_failed.store(true, Ordering::Release);
    }

    /// Keeps room for so many changes, whose keys and bytes have so many bytes together; by the
    /// answer it is [given back](Self::give_back). Among changes that go together, it is kept until
    /// they are appended.
    ///
    /// # Errors
    /// [`Error::NoRoom`]; as of [`check`](Self::check).
    pub(crate) fn claim(&self, bytes: usize, changes: usize) -> Result<u64> {
        if self.with_group(|group| group.is_some_and(|group| group.is_taking_back)) {
            return Ok(0);
        }
        self.check()?;
        let bytes = bytes + changes * FRAME_HEAD_BYTES_MAX;
        let claimed = self.claim_of_log(bytes, changes).or_else(|refused| {
            let wanted = Log::claimed_bytes(bytes, changes);
            match AHEAD.get() {
                (of, ahead) if ptr::eq(of, self) && ahead >= wanted => {
                    AHEAD.set((of, ahead - wanted));
                    Ok(wanted)
                }
                _ => Err(refused),
            }
        })?;
        Ok(self.with_group(|group| match group {
            None => claimed,
            Some(group) => {
                group.claimed += claimed;
                0
            }
        }))
    }

    /// Keeps room in the log for changes of this thread: for so many, whose keys and values have so many bytes together. They
    /// use it where the log has no more, until the room is dropped.
    ///
    /// # Errors
    /// The errors of [`claim`](Self::claim).
    pub(crate) fn room(&self, bytes: usize, changes: usize) -> Result<LogRoom<'_>> {
        self.check()?;
        let bytes = bytes + changes * FRAME_HEAD_BYTES_MAX;
        let claimed = self.claim_of_log(bytes, changes)?;
        Ok(LogRoom { appender: self, before: AHEAD.replace((self, claimed)) })
    }

    fn claim_of_log(&self, bytes: usize, changes: usize) -> Result<u64> {
        let claimed = self.log.claim_many(bytes, changes);
        // Relaxed: a figure. Where nothing changes, it is not written.
        if self.lacks_room.load(Ordering::Relaxed) != claimed.is_err() {
            self.lacks_room.store(claimed.is_err(), Ordering::Relaxed);
        }
        claimed.map_err(|cause| Error::no_room(&cause))
    }

    /// True after a claim that was refused for lack of room, until one is granted.
    pub(crate) fn lacks_room(&self) -> bool {
        self.lacks_room.load(Ordering::Relaxed)
    }

    pub(crate) fn give_back(&self, claimed: u64) {
        if claimed > 0 {
            self.log.give_back(claimed);
        }
    }

    /// Takes changes back that this thread has made as part of a group, behind a
    /// [mark](Self::mark): the log hears of neither.
    pub(crate) fn take_back<R>(&self, mark: usize, take_back: impl FnOnce() -> R) -> R {
        let set = |is_taking_back: bool| {
            self.with_group(|group| {
                if let Some(group) = group {
                    group.is_taking_back = is_taking_back;
                    group.record.truncate(mark);
                }
            });
        };
        set(true);
        let done = take_back();
        set(false);
        done
    }

    /// The place in the record of this thread's changes that go together where the next one goes.
    pub(crate) fn mark(&self) -> usize {
        self.with_group(|group| group.map_or(0, |group| group.record.len()))
    }

    /// Appends what this thread's changes that go together are so far. For the one that began them, while no
    /// other thread can change the same entries: a later change of these comes behind.
    pub(crate) fn append_group(&self) {
        let made = self
            .with_group(|group| group.map_or_else(Vec::new, |group| mem::take(&mut group.record)));
        if !made.is_empty() {
            let mut state = lock(&self.state);
            // As for single changes.
            let _failed = self.append_record(&mut state, &made);
        }
    }

    /// Shows the group that this thread's changes go into, if they go together.
    fn with_group<R>(&self, show: impl FnOnce(Option<&mut Group>) -> R) -> R {
        TOGETHER
            .with_borrow_mut(|group| show(group.as_mut().filter(|group| ptr::eq(group.of, self))))
    }

    /// Appends a frame for which there is no claim; the position behind it.
    ///
    /// # Errors
    /// [`Error::NoRoom`]; as of [`check`](Self::check). It is not appended then.
    pub(crate) fn append(&self, frame: &Frame<'_>) -> Result<Lsn> {
        self.append_ahead(frame, false)
    }

    /// Appends a frame of an engine that makes its change afterwards; the position behind it. Where
    /// `ends_group`, changes of this thread that go together and were made before are the same
    /// record.
    fn append_ahead(&self, frame: &Frame<'_>, ends_group: bool) -> Result<Lsn> {
        let claimed = self.claim(frame.bytes(), 1)?;
        let appended = self.append_claimed(frame, ends_group);
        self.give_back(claimed);
        appended
    }

    /// Appends a frame for which there is a claim.
    fn append_claimed(&self, frame: &Frame<'_>, ends_group: bool) -> Result<Lsn> {
        let made = match ends_group {
            true => self.with_group(|group| {
                group.map_or_else(Vec::new, |group| mem::take(&mut group.record))
            }),
            false => Vec::new(),
        };
        let mut state = lock(&self.state);
        let mut record = mem::take(&mut state.record);
        record.clear();
        record.extend_from_slice(&made);
        frame.encode(&mut record);
        let appended = self.append_record(&mut state, &record);
        if record.capacity() <= RECORD_KEPT {
            state.record = record;
        }
        appended
    }

    /// Appends a record for which there are claims: memory has its changes, or will have them.
    fn append_record(&self, state: &mut State, record: &[u8]) -> Result<Lsn> {
        if let Some(failed) = &state.failed {
            return Err(failed.clone());
        }
        let end = self.log.append_claimed(record).map_err(|cause: io::Error| {
            let error = Error::io("append to the log", &cause);
            state.failed = Some(error.clone());
            self.has_failed.store(true, Ordering::Release);
            error
        })?;
        self.end.store(end, Ordering::Relaxed);
        TOLD.set((self, end));
        if end >= self.due_at.load(Ordering::Relaxed) {
            self.become_due();
        }
        Ok(end)
    }

    /// Takes a change down: in the record of those that go together, or in one of its own.
    fn tell(&self, frame: &Frame<'_>) {
        let is_noted = self.with_group(|group| match group {
            None => false,
            Some(group) => {
                if !group.is_taking_back {
                    frame.encode(&mut group.record);
                }
                true
            }
        });
        if !is_noted {
            // The appender knows of a failure, and the caller of the table asks.
            let _failed = self.append_claimed(frame, false);
        }
    }

    /// Begins changes of this thread that are one record of the log, appended when the group is dropped. Within another
    /// group of the same log they are part of that: none begins.
    ///
    /// A thread that `holds` something for which other groups may wait does not wait behind a thread that waits to be
    /// [apart](Self::apart): that one waits for the others.
    pub(crate) fn group(&self, holds: bool) -> Option<LogGroup<'_>> {
        if self.is_together() {
            return None;
        }
        let shared = match holds {
            true => self.together.read_recursive(),
            false => self.together.read(),
        };
        let group = Group { of: self, record: Vec::new(), claimed: 0, is_taking_back: false };
        let before = TOGETHER.replace(Some(group));
        Some(LogGroup { appender: self, before, _shared: shared })
    }

    /// Whether this thread is among changes that go together.
    pub(crate) fn is_together(&self) -> bool {
        self.with_group(|group| group.is_some())
    }

    /// # Errors
    /// [`Error::Table`] in the middle of changes of this thread that go together.
    pub(crate) fn expect_apart(&self) -> Result<()> {
        match self.is_together() {
            false => Ok(()),
            true => {
                let what = "a checkpoint cannot be written among changes that go together";
                Err(Error::Table(what.to_owned()))
            }
        }
    }

    /// Runs something while no changes that go together are made by half.
    ///
    /// # Errors
    /// [`Error::Table`] in the middle of such changes of this thread.
    pub(crate) fn apart<R>(&self, work: impl FnOnce() -> R) -> Result<R> {
        self.expect_apart()?;
        let _alone = self.together.write();
        Ok(work())
    }
}

/// Room that the log keeps for changes of a thread: [`Wal::room`](crate::Wal::room).
#[must_use = "dropped, it is given back"]
#[derive(Debug)]
pub struct LogRoom<'a> {
    appender: &'a Appender,
    before: (*const Appender, u64),
}

impl Drop for LogRoom<'_> {
    fn drop(&mut self) {
        let (_, left) = AHEAD.replace(self.before);
        self.appender.give_back(left);
    }
}

/// Changes of a thread that are one record of the log: [`Wal::group`](crate::Wal::group). Dropped, also by a panic, it appends
/// them: memory has them.
#[must_use = "dropped, it ends"]
#[derive(Debug)]
pub struct LogGroup<'a> {
    appender: &'a Appender,
    before: Option<Group>,
    /// Behind the append: until then no thread is apart.
    _shared: RwLockReadGuard<'a, ()>,
}

impl Drop for LogGroup<'_> {
    fn drop(&mut self) {
        let Some(group) = TOGETHER.replace(self.before.take()) else { return };
        if !group.record.is_empty() {
            let mut state = lock(&self.appender.state);
            // As for single changes.
            let _failed = self.appender.append_record(&mut state, &group.record);
        }
        self.appender.give_back(group.claimed);
    }
}

/// What one table tells.
#[derive(Debug)]
pub(crate) struct TableJournal {
    pub(crate) table: TableId,
    pub(crate) appender: Arc<Appender>,
}

impl TableJournal {
    /// Why an append ahead of its change did not come: `StorageFull` where another may, whatever the system answered.
    fn refused(error: Error) -> io::Error {
        match error {
            Error::NoRoom { .. } => io::Error::new(io::ErrorKind::StorageFull, error),
            error => io::Error::other(error),
        }
    }
}

impl Journal for TableJournal {
    fn claim(&self, bytes: usize, changes: usize) -> std::result::Result<u64, Refused> {
        self.appender.claim(bytes, changes).map_err(|error| match error {
            Error::NoRoom { kind, why } => Refused { kind, why },
            error => Refused { kind: io::ErrorKind::Other, why: error.to_string().into() },
        })
    }

    fn give_back(&self, claimed: u64) {
        self.appender.give_back(claimed);
    }

    fn log(&self, key: &[u8], effect: Effect<'_>) {
        self.appender.tell(&Frame::Change { table: self.table, key, effect });
    }

    fn sync(&self) -> io::Result<()> {
        self.appender.check().map_err(io::Error::other)?;
        self.appender.log.sync(self.appender.end())
    }
}

/// Records of one table, whose changes come behind them.
#[derive(Debug)]
pub struct Records(pub(crate) TableJournal);

impl Records {
    /// Takes a record down: as one of its own, or as part of the changes of this thread that go
    /// [together](crate::Wal::together).
    ///
    /// # Errors
    /// `StorageFull`: nothing is appended, and another record may be; any other is for good.
    pub fn append(&self, record: &[u8]) -> io::Result<()> {
        let TableJournal { table, appender } = &self.0;
        let frame = Frame::Change { table: *table, key: &[], effect: Effect::Put(record) };
        if appender.is_together() {
            // Kept until the record is appended.
            let kept = appender.claim(record.len(), 1).map_err(TableJournal::refused)?;
            appender.tell(&frame);
            appender.give_back(kept);
            return Ok(());
        }
        appender.append_ahead(&frame, false).map(drop).map_err(TableJournal::refused)
    }

    /// Makes all that was told before last.
    ///
    /// # Errors
    /// Why it is not known to last.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

/// What an engine appends that keeps its records in the log, and has them told again as changes of a table.
#[derive(Debug)]
pub(crate) struct TableLog {
    pub(crate) log: u64,
    pub(crate) journal: TableJournal,
    pub(crate) unsynced_bytes: u64,
}

impl SharedLog for TableLog {
    fn log(&self) -> &Arc<Log> {
        &self.journal.appender.log
    }

    fn id(&self) -> u64 {
        self.log
    }

    fn claim(&self, record_bytes: usize) -> io::Result<u64> {
        let appender = &self.journal.appender;
        let claimed = appender
            .check()
            .and_then(|()| appender.claim_of_log(record_bytes + FRAME_HEAD_BYTES_MAX, 1));
        claimed.map_err(TableJournal::refused)
    }

    fn append(&self, record: &[u8], ends_group: bool) -> io::Result<Lsn> {
        let TableJournal { table, appender } = &self.journal;
        let frame = Frame::Change { table: *table, key: &[], effect: Effect::Put(record) };
        appender.append_ahead(&frame, ends_group).map_err(TableJournal::refused)
    }

    fn append_claimed(&self, record: &[u8], ends_group: bool) -> io::Result<Lsn> {
        let TableJournal { table, appender } = &self.journal;
        let frame = Frame::Change { table: *table, key: &[], effect: Effect::Put(record) };
        appender.append_claimed(&frame, ends_group).map_err(TableJournal::refused)
    }

    fn bound_unsynced(&self) -> io::Result<()> {
        self.journal.appender.bound_unsynced(self.unsynced_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use sapwood_disk::SimDisk;
    use sapwood_disk::log::LogOptions;

    use super::*;

    /// A transaction has a tree, changes of another thread that go together wait for it, and a checkpoint waits
    /// for these: the transaction commits, and then the others go on.
    #[test]
    fn a_thread_that_others_wait_for_does_not_wait_behind_them() {
        let log = Log::create(Arc::new(SimDisk::new()), 1, LogOptions::default(), 0);
        let appender = Appender::new(log.expect("a disk that works"), Lsn::MAX);
        let tree = Mutex::new(());
        thread::scope(|scope| {
            let has_tree = tree.lock().expect("no panic");
            let (begun, is_begun) = mpsc::channel();
            let (appender, tree) = (&*appender, &tree);
            scope.spawn(move || {
                let _group = appender.group(false);
                begun.send(()).expect("it is waited for");
                drop(tree.lock());
            });
            is_begun.recv().expect("it runs");
            scope.spawn(move || appender.apart(|| ()).expect("no changes of this thread"));
            // Until the other one waits to be alone.
            while appender.together.try_read().is_some() {
                thread::yield_now();
            }
            let _group = appender.group(true);
            drop(has_tree);
        });
    }

    /// Changes that came while a checkpoint was written may make the next one due, without another one.
    #[test]
    fn what_is_due_already_is_told_at_once() {
        let log = Log::create(Arc::new(SimDisk::new()), 1, LogOptions::default(), 0);
        let appender = Appender::new(log.expect("a disk that works"), Lsn::MAX);
        let frame = Frame::Drop { table: 1 };
        let end = appender.append(&frame).expect("room");
        appender.set_due(end + 1);
        assert!(!lock(&appender.due).is_due);
        appender.set_due(end);
        assert!(lock(&appender.due).is_due && appender.wait_until_due(None));
        appender.append(&frame).expect("room");
        assert!(!lock(&appender.due).is_due, "it is told once");
    }
}
