//! Group commit: one thread syncs for all that wait, other threads and tasks alike.
//!
//! A caller of [`Shared::sync`] leads if no other does, and wakes all whose records last afterwards.
//! Tasks lead nothing: the log's own thread does it for them, and for what an interval wants. It is
//! started by the first that needs it, sleeps where there is nothing to do, and ends with the log.
//!
//! | shared word | written by | read by |
//! |---|---|---|
//! | `durable` | the leader, under the lock, release (and the first time, before there is a log) | any thread, acquire: what it did to the files is done |
//! | `has_failed` | the leader, under the lock, release (and opening, before there is a log) | `append`, acquire: the reason is there |

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use super::format::Lsn;
use super::{Shared, lock};
use crate::Clock;

/// All that wait for syncs.
#[derive(Debug)]
pub(super) struct Group {
    state: Mutex<State>,
    synced: Condvar,
    durable: AtomicU64,
    has_failed: AtomicBool,
    clock: Arc<dyn Clock>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether a thread syncs.
    has_leader: bool,
    /// Threads that wait for it.
    waiting: usize,
    /// The first sync that failed: no later one is believed.
    failed: Option<(io::ErrorKind, String)>,
    tasks: BTreeMap<Task, Waker>,
    next_task: u64,
    /// When what was appended is to be synced.
    due: Option<Duration>,
    /// Whether the log is being dropped.
    has_ended: bool,
    thread: Option<JoinHandle<()>>,
}

/// A task that waits: the position, and a number that no other has.
pub(super) type Task = (Lsn, u64);

/// What the log's thread does next.
enum Step {
    Sync,
    Sleep(Option<Duration>),
    End,
}

impl Group {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Group {
        Group {
            state: Mutex::default(),
            synced: Condvar::new(),
            durable: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            clock,
        }
    }

    /// Notes how far a log lasts that is made or opened.
    pub(super) fn begin(&self, durable: Lsn) {
        self.durable.store(durable, Ordering::Release);
    }

    /// Notes that a log that is opened lasts so far alone, and why.
    pub(super) fn fail(&self, durable: Lsn, cause: &io::Error) {
        self.begin(durable);
        lock(&self.state).failed = Some((cause.kind(), format!("make the log last: {cause}")));
        self.has_failed.store(true, Ordering::Release);
    }

    /// The position up to which the log is known to last.
    pub(super) fn durable(&self) -> Lsn {
        self.durable.load(Ordering::Acquire)
    }

    /// # Errors
    /// That of the first sync that failed.
    pub(super) fn check(&self) -> io::Result<()> {
        match self.has_failed.load(Ordering::Acquire) {
            true => lock(&self.state).check(),
            false => Ok(()),
        }
    }

    /// Forgets a task.
    pub(super) fn forget(&self, task: Task) {
        // A waker that goes may do anything, this too: the lock must be free again.
        let _waker = {
            let mut state = lock(&self.state);
            state.tasks.remove(&task)
        };
    }

    /// Ends the thread and waits for it. What is arranged is synced first.
    pub(super) fn end(&self) {
        let thread = {
            let mut state = lock(&self.state);
            state.has_ended = true;
            state.thread.take()
        };
        let Some(thread) = thread else { return };
        self.clock.wake(thread.thread());
        // A task that the thread wakes may drop the log.
        if thread.thread().id() != std::thread::current().id() {
            // Its panic is that of a waker, and was told.
            let _ended = thread.join();
        }
    }

    fn next_step(&self) -> Step {
        let mut state = lock(&self.state);
        let is_due = state.due.is_some_and(|due| state.has_ended || due <= self.clock.now());
        if state.failed.is_none() && (is_due || !state.tasks.is_empty()) {
            // Whatever is appended behind this sync is arranged for anew.
            state.due = None;
            return Step::Sync;
        }
        if state.has_ended { Step::End } else { Step::Sleep(state.due) }
    }
}

impl State {
    fn check(&self) -> io::Result<()> {
        match &self.failed {
            Some((kind, why)) => Err(io::Error::new(*kind, why.clone())),
            None => Ok(()),
        }
    }

    /// Tasks whose records last.
    fn take_tasks(&mut self, durable: Lsn) -> BTreeMap<Task, Waker> {
        let later = self.tasks.split_off(&(durable.saturating_add(1), 0));
        std::mem::replace(&mut self.tasks, later)
    }
}

impl Shared {
    pub(super) fn sync(&self, lsn: Lsn) -> io::Result<()> {
        let group = &self.group;
        if group.durable() >= lsn {
            return Ok(());
        }
        let lsn = lsn.min(lock(&self.tail).lsn);
        let mut state = lock(&group.state);
        loop {
            state.check()?;
            if group.durable() >= lsn {
                return Ok(());
            }
            if state.has_leader {
                state.waiting += 1;
                state = group.synced.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.waiting -= 1;
                continue;
            }
            state.has_leader = true;
            drop(state);
            let done = self.sync_all();
            state = lock(&group.state);
            state.has_leader = false;
            let tasks = match done {
                Ok(durable) => {
                    group.durable.store(durable, Ordering::Release);
                    state.take_tasks(durable)
                }
                Err(cause) => {
                    state.failed = Some((cause.kind(), format!("sync the log: {cause}")));
                    group.has_failed.store(true, Ordering::Release);
                    std::mem::take(&mut state.tasks)
                }
            };
            // Waking is a system call, whether a thread waits or not.
            if state.waiting > 0 {
                group.synced.notify_all();
            }
            if !tasks.is_empty() {
                drop(state);
                tasks.into_values().for_each(Waker::wake);
                state = lock(&group.state);
            }
        }
    }

    /// Answers a task, or registers it.
    pub(super) fn poll_sync(
        self: &Arc<Shared>,
        lsn: Lsn,
        task: &mut Option<Task>,
        waker: &Waker,
    ) -> Poll<io::Result<()>> {
        // Dropped behind the lock, as in `forget`.
        let _waker;
        let mut state = lock(&self.group.state);
        let is_durable = self.group.durable() >= lsn;
        let checked = state.check();
        if is_durable || checked.is_err() {
            _waker = task.take().and_then(|task| state.tasks.remove(&task));
            // What lasted before a sync failed lasts.
            return Poll::Ready(if is_durable { Ok(()) } else { checked });
        }
        let known = task.unwrap_or_else(|| {
            state.next_task += 1;
            (lsn, state.next_task)
        });
        *task = Some(known);
        _waker = state.tasks.insert(known, waker.clone());
        if self.wake_thread(&mut state).is_ok() {
            return Poll::Pending;
        }
        // No thread can be had: this one does its work.
        drop(state);
        let done = self.sync(lsn);
        if let Some(task) = task.take() {
            self.group.forget(task);
        }
        Poll::Ready(done)
    }

    /// Lets the log's thread sync after the interval.
    #[cold]
    pub(super) fn arrange_sync(self: &Arc<Shared>) {
        let Some(interval) = self.sync_interval() else { return };
        let mut state = lock(&self.group.state);
        // The thread knows of an earlier time already.
        if state.due.is_some() {
            return;
        }
        state.due = Some(self.group.clock.now().saturating_add(interval));
        if self.wake_thread(&mut state).is_err() {
            state.due = None;
            drop(state);
            // Its error is noted, as that of the thread would be.
            let _noted = self.sync(Lsn::MAX);
        }
    }

    /// Makes the log's thread look what there is to do.
    fn wake_thread(self: &Arc<Shared>, state: &mut State) -> io::Result<()> {
        if state.has_ended {
            return Err(io::Error::other("the log is being dropped"));
        }
        // One whose waker panicked has ended.
        match state.thread.as_ref().filter(|thread| !thread.is_finished()) {
            Some(thread) => self.group.clock.wake(thread.thread()),
            None => {
                let log = Arc::clone(self);
                let builder = std::thread::Builder::new().name("sapwood-log".to_owned());
                state.thread = Some(builder.spawn(move || log.run())?);
            }
        }
        Ok(())
    }

    /// The log's thread.
    fn run(&self) {
        loop {
            match self.group.next_step() {
                // The group knows its error.
                Step::Sync => drop(self.sync(Lsn::MAX)),
                Step::Sleep(until) => self.group.clock.sleep_until(until),
                Step::End => return,
            }
        }
    }
}
