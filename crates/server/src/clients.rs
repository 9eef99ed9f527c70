//! Clients that are connected: what each of them is and does, messages for them, and their limits.
//!
//! | module | holds |
//! |---|---|
//! | `entry` | what others see of a client |
//! | `mailbox` | messages for a client, and orders for its connection |
//! | `channels` | subscriptions, and the messages that go to them |
//! | `pause` | a time in which commands wait |
//!
//! A session writes its own entry once per run, under a lock that nothing else takes but a command
//! about clients: there is no contention, whatever the number of clients.

mod channels;
mod entry;
mod mailbox;
mod pause;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) use channels::{Channels, Kind, Subscriptions};
pub(crate) use entry::{Entry, Origin, Seen};
pub(crate) use mailbox::Order;
pub(crate) use pause::{Pause, Paused};

use crate::store::format::Millis;

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
    messages_bytes: AtomicUsize,
}

// Relaxed throughout: a limit tells nothing of other memory.
impl Limits {
    pub(crate) fn new(
        clients: usize,
        idle: Duration,
        keepalive: Duration,
        messages_bytes: usize,
    ) -> Limits {
        Limits {
            clients: clients.into(),
            idle_seconds: idle.as_secs().into(),
            keepalive_seconds: keepalive.as_secs().into(),
            messages_bytes: messages_bytes.into(),
        }
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

    /// Bytes of messages that a client has not taken, at most.
    pub fn messages_bytes(&self) -> usize {
        match self.messages_bytes.load(Ordering::Relaxed) {
            0 => usize::MAX,
            bytes => bytes,
        }
    }

    /// Sets it; 0 for any number.
    pub fn set_messages_bytes(&self, bytes: usize) {
        self.messages_bytes.store(bytes, Ordering::Relaxed);
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

    /// Takes a client of this process in.
    pub(crate) fn admit_within(&self, now: Millis) -> Arc<Entry> {
        self.lock().add(Origin::Within, now)
    }

    /// Forgets a client that has gone.
    pub(crate) fn remove(&self, id: u64) {
        let mut connected = self.lock();
        if let Some(entry) = connected.by_id.remove(&id) {
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

    fn lock(&self) -> MutexGuard<'_, Connected> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
