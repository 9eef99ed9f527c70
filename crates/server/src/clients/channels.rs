//! Subscriptions to channels, and the messages that go to them.
//!
//! One lock orders all messages and subscriptions: every subscriber gets the messages of all
//! channels in one order, and none after the end of its subscription. A message without subscribers
//! anywhere takes no lock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::acl::User;
use crate::clients::entry::Entry;
use crate::protocol::glob;

/// Something that a client subscribes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Channel,
    /// All channels whose names match.
    Pattern,
    /// A channel with a name space of its own: in a cluster, a channel of a shard.
    ShardChannel,
}

impl Kind {
    /// The name of a message.
    fn message(self) -> &'static [u8] {
        match self {
            Kind::Channel => b"message",
            Kind::Pattern => b"pmessage",
            Kind::ShardChannel => b"smessage",
        }
    }
}

/// The subscriptions of a client, for itself.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    channels: BTreeSet<Box<[u8]>>,
    patterns: BTreeSet<Box<[u8]>>,
    shard_channels: BTreeSet<Box<[u8]>>,
}

impl Subscriptions {
    pub(crate) fn of(&self, kind: Kind) -> &BTreeSet<Box<[u8]>> {
        match kind {
            Kind::Channel => &self.channels,
            Kind::Pattern => &self.patterns,
            Kind::ShardChannel => &self.shard_channels,
        }
    }

    pub(crate) fn of_mut(&mut self, kind: Kind) -> &mut BTreeSet<Box<[u8]>> {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
            Kind::ShardChannel => &mut self.shard_channels,
        }
    }

    /// Whether a user may have all of them.
    pub(crate) fn are_allowed(&self, user: &User) -> bool {
        self.patterns.iter().all(|pattern| user.allows_channels(pattern))
            && self.channels.iter().chain(&self.shard_channels).all(|it| user.allows_channel(it))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.patterns.is_empty() && self.shard_channels.is_empty()
    }

    /// The number that a reply to a subscription tells.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::Channel | Kind::Pattern => self.channels.len() + self.patterns.len(),
            Kind::ShardChannel => self.shard_channels.len(),
        }
    }
}

type Subscribers = BTreeMap<u64, Arc<Entry>>;
type ByName = HashMap<Box<[u8]>, Subscribers, foldhash::fast::RandomState>;

#[derive(Debug, Default)]
struct Inside {
    channels: ByName,
    patterns: ByName,
    shard_channels: ByName,
}

impl Inside {
    fn of(&self, kind: Kind) -> &ByName {
        match kind {
            Kind::Channel => &self.channels,
            Kind::Pattern => &self.patterns,
            Kind::ShardChannel => &self.shard_channels,
        }
    }

    fn of_mut(&mut self, kind: Kind) -> &mut ByName {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
            Kind::ShardChannel => &mut self.shard_channels,
        }
    }

    fn names(&self) -> usize {
        self.channels.len() + self.patterns.len() + self.shard_channels.len()
    }
}

/// All subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    /// Names with subscribers. Written under the lock.
    names: AtomicUsize,
    inside: Mutex<Inside>,
}

impl Channels {
    pub(crate) fn subscribe(&self, kind: Kind, name: &[u8], entry: &Arc<Entry>) {
        let mut inside = self.lock();
        let subscribers = inside.of_mut(kind).entry(name.into()).or_default();
        subscribers.insert(entry.id, Arc::clone(entry));
        self.names.store(inside.names(), Ordering::SeqCst);
    }

    /// Ends a subscription: no message of it comes any more.
    pub(crate) fn unsubscribe(&self, kind: Kind, name: &[u8], entry: &Entry) {
        let mut inside = self.lock();
        let by_name = inside.of_mut(kind);
        if let Some(subscribers) = by_name.get_mut(name) {
            subscribers.remove(&entry.id);
            if subscribers.is_empty() {
                by_name.remove(name);
            }
        }
        self.names.store(inside.names(), Ordering::SeqCst);
    }

    /// The subscriptions of a client, as those see them that send. For commands that are rare: it
    /// looks at all names.
    pub(crate) fn of_client(&self, id: u64) -> Subscriptions {
        let inside = self.lock();
        let mut found = Subscriptions::default();
        for kind in [Kind::Channel, Kind::Pattern, Kind::ShardChannel] {
            let its = inside.of(kind).iter().filter(|(_, clients)| clients.contains_key(&id));
            found.of_mut(kind).extend(its.map(|(name, _)| name.clone()));
        }
        found
    }

    /// Ends all subscriptions of a client.
    pub(crate) fn forget(&self, subscriptions: &Subscriptions, entry: &Entry) {
        for kind in [Kind::Channel, Kind::Pattern, Kind::ShardChannel] {
            subscriptions.of(kind).iter().for_each(|name| self.unsubscribe(kind, name, entry));
        }
    }

    /// Sends a message to the subscribers of a channel; answers to how many. A client whose
    /// messages pile up to more than `bytes_max` is closed.
    pub(crate) fn publish(
        &self,
        kind: Kind,
        channel: &[u8],
        message: &[u8],
        bytes_max: usize,
    ) -> usize {
        if self.names.load(Ordering::SeqCst) == 0 {
            return 0;
        }
        let inside = self.lock();
        let mut receivers = 0;
        for entry in inside.of(kind).get(channel).into_iter().flat_map(BTreeMap::values) {
            receivers += 1;
            entry.mailbox.post(bytes_max, |reply| {
                reply.push(3);
                reply.bulk(kind.message());
                reply.bulk(channel);
                reply.bulk(message);
            });
        }
        if kind == Kind::ShardChannel {
            return receivers;
        }
        for (pattern, subscribers) in &inside.patterns {
            if !glob::matches(pattern, channel) {
                continue;
            }
            for entry in subscribers.values() {
                receivers += 1;
                entry.mailbox.post(bytes_max, |reply| {
                    reply.push(4);
                    reply.bulk(Kind::Pattern.message());
                    reply.bulk(pattern);
                    reply.bulk(channel);
                    reply.bulk(message);
                });
            }
        }
        receivers
    }

    /// Names with subscribers, of those that match.
    pub(crate) fn names(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Box<[u8]>> {
        let inside = self.lock();
        let names = inside.of(kind).keys();
        names.filter(|name| pattern.is_none_or(|p| glob::matches(p, name))).cloned().collect()
    }

    /// Names with subscribers.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.lock().of(kind).len()
    }

    /// Subscribers of a name.
    pub(crate) fn subscribers(&self, kind: Kind, name: &[u8]) -> usize {
        self.lock().of(kind).get(name).map_or(0, BTreeMap::len)
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
