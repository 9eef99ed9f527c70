//! Clients that are connected: what each of them is and does, messages for them, and their limits.
//!
//! | module | holds |
//! |---|---|
//! | `entry` | what others see of a client |
//! | `mailbox` | messages for a client, and orders for its connection |
//! | `channels` | subscriptions, and the messages that go to them |
//! | `output` | bounds of what a client leaves unread |
//! | `pause` | a time in which commands wait |
//!
//! A session writes its own entry once per run, under a lock that nothing else takes but a command
//! about clients: there is no contention, whatever the number of clients.

mod channels;
mod entry;
mod mailbox;
mod output;
mod pause;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) use channels::{Channels, Kind, Subscriptions};
pub(crate) use entry::{Entry, Origin, Seen};
pub(crate) use mailbox::Order;
pub use output::{OutputLimit, OutputLimits, OutputLimitsError};
pub(crate) use pause::{Pause, Paused};

use crate::store::format::Millis;

/// Bytes that every client may send before they are executed: the least value of the limit of them,
/// as in Redis.
pub const QUERY_BYTES_LEAST: usize = 1 << 20;

/// Limits of clients, which may be changed while clients are served: what comes next sees them.
///
/// ```
/// use sapwood_server::{Service, service::Options};
///
/// let service = Service::new(sapwood::Db::in_memory(), Options::default())?;
/// let limits = service.limits();
/// assert_eq!(limits.clients(), 10_000);
/// limits.set_clients(500);
/// assert_eq!(limits.clients(), 500);
/// # Ok::<(), sapwood_server::store::keyspace::Error>(())
/// ```
#[derive(Debug)]
pub struct Limits {
    clients: AtomicUsize,
    idle_seconds: AtomicU64,
    keepalive_seconds: AtomicU64,
    output: Mutex<OutputLimits>,
    /// Hard bounds of `output`: of clients that have not subscribed, and of those that have; 0 for
    /// none.
    hard_bytes: [AtomicUsize; 2],
    query_bytes: AtomicUsize,
}

// Relaxed throughout: a limit tells nothing of other memory.
impl Limits {
    pub(crate) fn new(
        clients: usize,
        idle: Duration,
        keepalive: Duration,
        output: OutputLimits,
        query_bytes: usize,
    ) -> Limits {
        let limits = Limits {
            clients: clients.into(),
            idle_seconds: idle.as_secs().into(),
            keepalive_seconds: keepalive.as_secs().into(),
            output: Mutex::default(),
            hard_bytes: Default::default(),
            query_bytes: query_bytes.into(),
        };
        limits.set_output(output);
        limits
    }

    /// Clients at a time, at most.
    pub fn clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    /// Sets it. Clients beyond it stay.
    pub fn set_clients(&self, clients: usize) {
        self.clients.store(clients, Ordering::Relaxed);
    }

    /// Seconds after which a client that does nothing is closed; 0 for never.
    pub fn idle_seconds(&self) -> u64 {
        self.idle_seconds.load(Ordering::Relaxed)
    }

    /// Sets it.
    pub fn set_idle_seconds(&self, seconds: u64) {
        self.idle_seconds.store(seconds, Ordering::Relaxed);
    }

    /// Seconds of silence after which the system asks whether a client is there; 0 for never.
    pub fn keepalive_seconds(&self) -> u64 {
        self.keepalive_seconds.load(Ordering::Relaxed)
    }

    /// Sets it, for connections that come.
    pub fn set_keepalive_seconds(&self, seconds: u64) {
        self.keepalive_seconds.store(seconds, Ordering::Relaxed);
    }

    /// Bounds of what clients leave unread.
    pub fn output(&self) -> OutputLimits {
        *self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets them.
    pub fn set_output(&self, limits: OutputLimits) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        *output = limits;
        for (bytes, limit) in self.hard_bytes.iter().zip([limits.normal, limits.pubsub]) {
            bytes.store(limit.hard_bytes, Ordering::Relaxed);
        }
    }

    /// Bytes of replies and messages that a client may leave unread, at most.
    pub(crate) fn unread_bytes(&self, is_subscriber: bool) -> usize {
        match self.hard_bytes[usize::from(is_subscriber)].load(Ordering::Relaxed) {
            0 => usize::MAX,
            bytes => bytes,
        }
    }

    /// Bytes that a client may send before they are executed, those of commands that wait for
    /// `EXEC` among them, at most.
    pub fn query_bytes(&self) -> usize {
        self.query_bytes.load(Ordering::Relaxed)
    }

    /// Sets it.
    pub fn set_query_bytes(&self, bytes: usize) {
        self.query_bytes.store(bytes, Ordering::Relaxed);
    }
}

/// Numbers of clients, for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Clients that are connected.
    pub connected: usize,
    /// Clients that wait: for a job, or for the end of a pause.
    pub blocked: usize,
    /// Clients that were taken in since the service began.
    pub accepted: u64,
    /// Clients that were turned away since the service began.
    pub rejected: u64,
    /// Clients that were closed since then because they left too much unread.
    pub closed_for_output: u64,
    /// Clients that were closed since then because they sent too much that could not be executed.
    pub closed_for_query: u64,
    /// Channels with subscribers.
    pub channels: usize,
    /// Patterns with subscribers.
    pub patterns: usize,
    /// Channels of shards with subscribers.
    pub shard_channels: usize,
}

/// Clients by number; the numbers grow.
#[derive(Debug, Default)]
struct Connected {
    by_id: BTreeMap<u64, Arc<Entry>>,
    last: u64,
    /// Bytes that came from clients that have gone, and that went to them.
    bytes_gone: (u64, u64),
    /// The order that new clients get, too.
    order: Order,
}

impl Connected {
    fn add(&mut self, origin: Origin, now: Millis) -> Arc<Entry> {
        self.last += 1;
        let entry = Arc::new(Entry::new(self.last, origin, now));
        entry.mailbox.order(self.order);
        self.by_id.insert(entry.id, Arc::clone(&entry));
        entry
    }
}

/// All clients.
#[derive(Debug)]
pub(crate) struct Clients {
    connected: Mutex<Connected>,
    pub(crate) limits: Limits,
    pub(crate) channels: Channels,
    pub(crate) pause: Pause,
    accepted: AtomicU64,
    rejected: AtomicU64,
    closed_for_output: AtomicU64,
    closed_for_query: AtomicU64,
}

impl Clients {
    pub(crate) fn new(limits: Limits) -> Clients {
        Clients {
            connected: Mutex::default(),
            limits,
            channels: Channels::default(),
            pause: Pause::default(),
            accepted: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            closed_for_output: AtomicU64::new(0),
            closed_for_query: AtomicU64::new(0),
        }
    }

    /// Takes a client in; `None` if there are as many as may be.
    pub(crate) fn admit(&self, origin: Origin, now: Millis) -> Option<Arc<Entry>> {
        let mut connected = self.lock();
        // Relaxed: counts for reports, here and below.
        if connected.by_id.len() >= self.limits.clients() {
            self.rejected.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.accepted.fetch_add(1, Ordering::Relaxed);
        Some(connected.add(origin, now))
    }

    /// Takes a client in that stays for a moment, however many there are.
    pub(crate) fn admit_beyond_limit(&self, origin: Origin, now: Millis) -> Arc<Entry> {
        // Relaxed: a count for reports.
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.lock().add(origin, now)
    }

    /// Takes a client of this process in.
    pub(crate) fn admit_within(&self, now: Millis) -> Arc<Entry> {
        self.lock().add(Origin::Within, now)
    }

    /// Forgets a client that has gone.
    pub(crate) fn remove(&self, id: u64) {
        let mut connected = self.lock();
        if let Some(entry) = connected.by_id.remove(&id) {
            if entry.mailbox.is_full() {
                let (client, why) = (entry.origin.peer(), "it does not take its replies");
                tracing::warn!(client, "closed: {why} (client-output-buffer-limit)");
                self.closed_for_output.fetch_add(1, Ordering::Relaxed);
            }
            let seen = entry.seen();
            connected.bytes_gone.0 += seen.bytes_in;
            connected.bytes_gone.1 += seen.bytes_out;
        }
    }

    /// Bytes that have come from all clients so far, and that have gone to them.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let connected = self.lock();
        connected.by_id.values().fold(connected.bytes_gone, |(bytes_in, bytes_out), entry| {
            let seen = entry.seen();
            (bytes_in + seen.bytes_in, bytes_out + seen.bytes_out)
        })
    }

    /// A client by its number.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<Entry>> {
        self.lock().by_id.get(&id).map(Arc::clone)
    }

    /// All clients, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        self.lock().by_id.values().map(Arc::clone).collect()
    }

    pub(crate) fn counts(&self) -> Counts {
        let all = self.all();
        Counts {
            connected: all.len(),
            blocked: all.iter().filter(|entry| entry.seen().is_blocked).count(),
            accepted: self.accepted.load(Ordering::Relaxed),
            rejected: self.rejected.load(Ordering::Relaxed),
            closed_for_output: self.closed_for_output.load(Ordering::Relaxed),
            closed_for_query: self.closed_for_query.load(Ordering::Relaxed),
            channels: self.channels.count(Kind::Channel),
            patterns: self.channels.count(Kind::Pattern),
            shard_channels: self.channels.count(Kind::ShardChannel),
        }
    }

    /// Gives an order to the connections of all clients, and of those that come.
    pub(crate) fn order_all(&self, order: Order) {
        let mut connected = self.lock();
        connected.order = connected.order.max(order);
        connected.by_id.values().for_each(|entry| entry.mailbox.order(order));
    }

    /// Lets commands that wait for the end of a pause go on.
    pub(crate) fn unpause(&self) {
        self.pause.end();
        self.lock().by_id.values().for_each(|entry| entry.mailbox.wake());
    }

    /// Closes clients that have done nothing for as long as the limit says. One that has
    /// subscribed, or waits for a job, is not idle.
    pub(crate) fn close_idle(&self, now: Millis) {
        let idle = self.limits.idle_seconds().saturating_mul(1_000);
        if idle == 0 {
            return;
        }
        let connected = self.lock();
        let remote = connected.by_id.values().filter(|entry| entry.origin.is_remote());
        remote.filter(|entry| entry.is_idle(now, idle)).for_each(|entry| entry.kill());
    }

    /// Closes clients that have left more unread than their soft bound for as long as that says.
    /// For a timer.
    pub(crate) fn close_full(&self, now: Millis) {
        let OutputLimits { normal, pubsub, .. } = self.limits.output();
        if normal.soft_bytes == 0 && pubsub.soft_bytes == 0 {
            return;
        }
        for entry in self.all() {
            let waiting = entry.mailbox.bytes();
            let mut seen = entry.seen();
            let limit = if seen.is_subscriber() { pubsub } else { normal };
            if limit.soft_bytes == 0 || seen.bytes_kept + waiting <= limit.soft_bytes {
                seen.full_since = None;
                continue;
            }
            let since = *seen.full_since.get_or_insert(now);
            drop(seen);
            if now.saturating_sub(since) >= limit.soft_seconds.saturating_mul(1_000) {
                entry.mailbox.overflow();
            }
        }
    }

    /// Notes that a client is closed that has sent too much.
    pub(crate) fn note_long_query(&self, entry: &Entry) {
        let client = entry.origin.peer();
        tracing::warn!(client, "closed: its requests are too long (client-query-buffer-limit)");
        self.closed_for_query.fetch_add(1, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Connected> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
