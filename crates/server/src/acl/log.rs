//! The latest refusals, for `ACL LOG`, and how many there were.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::format::Millis;

/// Refusals that are kept, unless another number is chosen.
const LEN_MAX: usize = 128;
/// Refusals among which a like one is looked for.
const LOOKED_AT: usize = 10;
/// Milliseconds within which like refusals are one.
const ALIKE_MILLIS: Millis = 60_000;

/// The reason of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Auth,
    Command,
    Key,
    Channel,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reason::Auth => "auth",
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
        }
    }
}

/// The place of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    TopLevel,
    Multi,
}

impl Context {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Context::TopLevel => "toplevel",
            Context::Multi => "multi",
        }
    }
}

/// A refusal, or some that are alike.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) count: u64,
    pub(crate) reason: Reason,
    pub(crate) context: Context,
    /// The command, the key or the channel.
    pub(crate) object: Vec<u8>,
    pub(crate) user: Vec<u8>,
    /// The client that was refused last, as `CLIENT LIST` shows it.
    pub(crate) client: String,
    pub(crate) updated: Millis,
}

/// The latest refusals.
#[derive(Debug)]
pub(crate) struct Log {
    entries: Mutex<VecDeque<Entry>>,
    len_max: AtomicUsize,
    auth: AtomicU64,
    command: AtomicU64,
    key: AtomicU64,
    channel: AtomicU64,
}

impl Default for Log {
    fn default() -> Log {
        Log {
            entries: Mutex::default(),
            len_max: AtomicUsize::new(LEN_MAX),
            auth: AtomicU64::new(0),
            command: AtomicU64::new(0),
            key: AtomicU64::new(0),
            channel: AtomicU64::new(0),
        }
    }
}

// Relaxed throughout: counts and a limit tell nothing of other memory.
impl Log {
    /// Adds a refusal; its count is set here.
    pub(crate) fn add(
        &self,
        (reason, context): (Reason, Context),
        object: &[u8],
        user: &[u8],
        client: impl FnOnce() -> String,
        now: Millis,
    ) {
        self.counter(reason).fetch_add(1, Ordering::Relaxed);
        let len_max = self.len_max();
        if len_max == 0 {
            return;
        }
        let client = client();
        let mut entries = self.lock();
        let is_like = |entry: &Entry| {
            entry.reason == reason
                && entry.context == context
                && now.abs_diff(entry.updated) <= ALIKE_MILLIS
                && entry.object == object
                && entry.user == user
        };
        let like = entries.iter().take(LOOKED_AT).position(is_like);
        let entry = match like.and_then(|at| entries.remove(at)) {
            Some(like) => Entry { count: like.count + 1, client, updated: now, ..like },
            None => Entry {
                count: 1,
                reason,
                context,
                object: object.to_vec(),
                user: user.to_vec(),
                client,
                updated: now,
            },
        };
        entries.push_front(entry);
        entries.truncate(len_max);
    }

    /// So many refusals, the latest first.
    pub(crate) fn latest(&self, count: usize) -> Vec<Entry> {
        self.lock().iter().take(count).cloned().collect()
    }

    /// Forgets the refusals.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Refusals that are kept at most.
    pub(crate) fn len_max(&self) -> usize {
        self.len_max.load(Ordering::Relaxed)
    }

    /// Keeps so many at most, from the next one on.
    pub(crate) fn set_len_max(&self, len_max: usize) {
        self.len_max.store(len_max, Ordering::Relaxed);
    }

    /// Refusals of a reason since the start.
    pub(crate) fn count(&self, reason: Reason) -> u64 {
        self.counter(reason).load(Ordering::Relaxed)
    }

    fn counter(&self, reason: Reason) -> &AtomicU64 {
        match reason {
            Reason::Auth => &self.auth,
            Reason::Command => &self.command,
            Reason::Key => &self.key,
            Reason::Channel => &self.channel,
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(log: &Log, object: &str, now: Millis) {
        let what = (Reason::Key, Context::TopLevel);
        log.add(what, object.as_bytes(), b"user", String::new, now);
    }

    #[test]
    fn like_refusals_are_one() {
        let log = Log::default();
        add(&log, "a", 0);
        add(&log, "b", 1);
        add(&log, "a", 60_000);
        let seen: Vec<_> = log.latest(9).into_iter().map(|it| (it.object, it.count)).collect();
        assert_eq!(seen, [(b"a".to_vec(), 2), (b"b".to_vec(), 1)]);
        // The minute is over.
        add(&log, "b", 60_002);
        assert_eq!(log.latest(9).len(), 3);
        assert_eq!(log.count(Reason::Key), 4);
        assert_eq!(log.count(Reason::Command), 0);
    }

    #[test]
    fn the_log_is_bounded() {
        let log = Log::default();
        (0..1_000).for_each(|at| add(&log, &at.to_string(), 0));
        assert_eq!(log.latest(2_000).len(), LEN_MAX);
        log.set_len_max(5);
        assert_eq!(log.latest(9).len(), 9, "entries stay until the next one");
        add(&log, "next", 0);
        assert_eq!(log.latest(9).len(), 5);
        log.set_len_max(0);
        add(&log, "more", 0);
        assert_eq!(log.latest(9).len(), 5);
        log.clear();
        assert!(log.latest(9).is_empty());
    }
}
