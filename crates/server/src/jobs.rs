//! Work that threads without clients do: which there is, how far it is, and its end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sapwood::aggregate::{Cancel, Progress};

use crate::store::format::Millis;

/// Work of a command that takes long, for a thread that serves no clients.
pub struct Job {
    work: Box<dyn FnOnce(&mut Vec<u8>) + Send>,
    cancel: Cancel,
    /// From when on the work is to be refused, which it does by itself.
    deadline: Option<Instant>,
    /// Whether the client wants no reply.
    is_silent: bool,
    /// Is told how long the work took.
    report: Option<Report>,
}

type Report = Box<dyn FnOnce(Duration) + Send>;

impl Job {
    /// Work that goes on to its end.
    pub(crate) fn new(work: impl FnOnce(&mut Vec<u8>) + Send + 'static) -> Job {
        Job::with_cancel(Cancel::new(), work)
    }

    /// Work that looks at `cancel`, and ends early when it says so. Its connection has failed then,
    /// or its client was killed.
    pub(crate) fn with_cancel(
        cancel: Cancel,
        work: impl FnOnce(&mut Vec<u8>) + Send + 'static,
    ) -> Job {
        Job { work: Box::new(work), cancel, deadline: None, is_silent: false, report: None }
    }

    /// The same work, which refuses at once to begin at a moment or later: to be run then, wherever it waits.
    pub(crate) fn with_deadline(self, deadline: Option<Instant>) -> Job {
        Job { deadline, ..self }
    }

    /// The same work, whose reply is thrown away.
    pub(crate) fn silenced(self) -> Job {
        Job { is_silent: true, ..self }
    }

    /// The same work, which tells how long it took.
    pub(crate) fn with_report(self, report: impl FnOnce(Duration) + Send + 'static) -> Job {
        Job { report: Some(Box::new(report)), ..self }
    }

    /// The means to end the work early, if it looks at it.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// When it is to be run where it waits, if no thread has had time for it.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Does the work, and appends the reply.
    pub fn run(self, out: &mut Vec<u8>) {
        let before = out.len();
        let begun = Instant::now();
        (self.work)(out);
        if let Some(report) = self.report {
            report(begun.elapsed());
        }
        if self.is_silent {
            out.truncate(before);
        }
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("cancel", &self.cancel).finish()
    }
}

/// Tells a job to end when what waits for it does.
pub(crate) struct CancelOnDrop(pub(crate) Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The effect of a job on its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    Changes,
}

/// A job that waits for a thread, or has one.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) id: u64,
    /// The client that waits for it.
    pub(crate) client: u64,
    pub(crate) command: &'static str,
    pub(crate) table: Box<str>,
    /// What the client calls it.
    pub(crate) name: Option<Box<str>>,
    pub(crate) begun: Millis,
    pub(crate) effect: Effect,
    pub(crate) cancel: Cancel,
    done: AtomicU64,
    total: AtomicU64,
}

impl Running {
    /// Notes how far it is; threads tell in any order.
    pub(crate) fn note(&self, progress: Progress) {
        // Relaxed: numbers for people, which tell nothing of other memory.
        self.total.store(progress.total, Ordering::Relaxed);
        self.done.fetch_max(progress.done, Ordering::Relaxed);
    }

    /// The last that was noted.
    pub(crate) fn progress(&self) -> Progress {
        let done = self.done.load(Ordering::Relaxed);
        Progress { done, total: self.total.load(Ordering::Relaxed) }
    }
}

/// All jobs.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    by_id: Mutex<BTreeMap<u64, Arc<Running>>>,
    last: AtomicU64,
}

/// A job's place among all; it is given back when the job ends, or is dropped.
#[derive(Debug)]
pub(crate) struct Begun {
    jobs: Arc<Jobs>,
    pub(crate) running: Arc<Running>,
}

impl Jobs {
    pub(crate) fn begin(
        self: &Arc<Self>,
        client: u64,
        command: &'static str,
        (table, name): (&str, Option<Box<str>>),
        begun: Millis,
        effect: Effect,
    ) -> Begun {
        // Relaxed: nothing else is told by the number.
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let running = Arc::new(Running {
            id,
            client,
            command,
            table: table.into(),
            name,
            begun,
            effect,
            cancel: Cancel::new(),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
        });
        self.lock().insert(id, Arc::clone(&running));
        Begun { jobs: Arc::clone(self), running }
    }

    /// Those that there are, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Running>> {
        self.lock().values().map(Arc::clone).collect()
    }

    /// Tells a job to stop; false if there is none of the number.
    pub(crate) fn cancel(&self, id: u64) -> bool {
        let by_id = self.lock();
        let found = by_id.get(&id);
        if let Some(running) = found {
            running.cancel.cancel();
        }
        found.is_some()
    }

    /// Tells all jobs of a name to stop, and how many there are.
    pub(crate) fn cancel_named(&self, name: &str) -> usize {
        let by_id = self.lock();
        let named = by_id.values().filter(|running| running.name.as_deref() == Some(name));
        named.map(|running| running.cancel.cancel()).count()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Running>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.jobs.lock().remove(&self.running.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_known_until_they_end() {
        let jobs = Arc::new(Jobs::default());
        let first = jobs.begin(7, "sw.check", ("t", None), 0, Effect::Reads);
        let second = jobs.begin(7, "sw.disaggregate", ("t", None), 0, Effect::Changes);
        second.running.note(Progress { done: 5, total: 9 });
        second.running.note(Progress { done: 3, total: 9 });
        let ids: Vec<u64> = jobs.all().iter().map(|running| running.id).collect();
        assert_eq!(ids, [first.running.id, second.running.id]);
        assert_eq!(jobs.all()[1].progress(), Progress { done: 5, total: 9 });
        assert!(jobs.cancel(second.running.id) && second.running.cancel.is_cancelled());
        assert!(!first.running.cancel.is_cancelled());
        let id = second.running.id;
        drop(second);
        assert!(!jobs.cancel(id));
        assert_eq!(jobs.all().len(), 1);
    }

    #[test]
    fn jobs_of_a_name_are_told_together() {
        let jobs = Arc::new(Jobs::default());
        let begin = |name: Option<&str>| {
            jobs.begin(7, "sw.query", ("t", name.map(Box::from)), 0, Effect::Reads)
        };
        let all = [Some("a"), Some("b"), Some("a"), None].map(begin);
        assert_eq!(jobs.cancel_named("c"), 0);
        assert_eq!(jobs.cancel_named("a"), 2);
        let told = all.each_ref().map(|begun| begun.running.cancel.is_cancelled());
        assert_eq!(told, [true, false, true, false]);
    }
}
