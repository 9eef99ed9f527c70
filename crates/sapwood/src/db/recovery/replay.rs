//! Changes that a log tells, done again by several threads.
//!
//! The thread that reads the log sorts them into batches; other threads do these. All changes of a key go to
//! one of them, in their order, and changes of different keys may come in any. Entries of a snapshot have
//! no order: they go in runs, as they come, so that neighbours are put by one thread, and all are in
//! before the first change. Batches of roll-ups go to one thread after the other.

#[cfg(feature = "rollup")]
mod rollups;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZero;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Scope};

use sapwood_chunkmap::ChunkMap;
use sapwood_engine::Effect;
use sapwood_hashlog::HashLog;
use sapwood_wal::TableId;

use crate::Error;
use crate::ordered_table::write;

#[cfg(not(feature = "rollup"))]
use crate::no_rollups::Records;
#[cfg(feature = "rollup")]
use rollups::Records;

#[cfg(not(feature = "rollup"))]
pub(crate) use crate::no_rollups::RollupTarget;
#[cfg(feature = "rollup")]
pub(crate) use rollups::RollupTarget;

/// Changes of a batch, and bytes of their keys and values: as many as make neighbours of random keys
/// probable, in memory that is little beside what opening a database takes anyway.
const BATCH_CHANGES: usize = 64 << 10;
const BATCH_BYTES: usize = 1 << 20;
/// Batches that wait for a thread.
const WAITING: usize = 2;
/// Threads that do changes, at most: they share the memory's bandwidth, and one thread reads for all.
const THREADS_MAX: usize = 16;

/// A table that takes changes.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: Arc<str>,
    pub(crate) engine: Engine,
    /// The first change that was refused. Others of the same key do not come behind it.
    failed: OnceLock<Error>,
}

/// The engine of a table, which tells no journal.
#[derive(Debug)]
pub(crate) enum Engine {
    Ordered(Box<ChunkMap>),
    Hash(HashLog),
}

impl Target {
    pub(crate) fn new(name: &Arc<str>, engine: Engine) -> Arc<Target> {
        Arc::new(Target { name: Arc::clone(name), engine, failed: OnceLock::new() })
    }

    /// The engine with all changes, or why it does not have them. No thread does changes any more.
    pub(crate) fn finish(self: Arc<Self>) -> Result<Engine, Error> {
        let target = Arc::into_inner(self).expect("the threads have ended");
        match target.failed.into_inner() {
            None => Ok(target.engine),
            Some(error) => Err(error),
        }
    }

    fn put_many(&self, entries: &mut [(&[u8], &[u8])]) -> Result<(), Error> {
        let table = || Arc::clone(&self.name);
        match &self.engine {
            Engine::Ordered(map) => {
                // Neighbours find what they need in the cache. Puts of the same key stay in their order.
                entries.sort_by_key(|(key, _)| *key);
                match map.put_many(entries) {
                    Ok(_) => Ok(()),
                    Err(stopped) => {
                        Err(Error::OrderedEngine { table: table(), cause: stopped.error })
                    }
                }
            }
            Engine::Hash(log) => log
                .put_many(entries)
                .map_err(|stopped| Error::HashEngine { table: table(), cause: stopped.error }),
        }
    }

    fn write(&self, key: &[u8], offset: usize, bytes: &[u8]) -> Result<(), Error> {
        let table = || Arc::clone(&self.name);
        match &self.engine {
            Engine::Ordered(map) => map
                .update(key, |value| write(value, offset, bytes))
                .map(drop)
                .map_err(|cause| Error::OrderedEngine { table: table(), cause }),
            Engine::Hash(log) => log
                .update(key, |value| write(value, offset, bytes))
                .map(drop)
                .map_err(|cause| Error::HashEngine { table: table(), cause }),
        }
    }

    fn remove(&self, key: &[u8]) -> Result<(), Error> {
        let table = || Arc::clone(&self.name);
        match &self.engine {
            Engine::Ordered(map) => map
                .remove(key)
                .map(drop)
                .map_err(|cause| Error::OrderedEngine { table: table(), cause }),
            Engine::Hash(log) => log
                .remove(key)
                .map(drop)
                .map_err(|cause| Error::HashEngine { table: table(), cause }),
        }
    }
}

/// Changes for one thread.
#[derive(Default)]
struct Batch {
    targets: Vec<Arc<Target>>,
    changes: Vec<Change>,
    /// Keys, each before its value.
    bytes: Vec<u8>,
}

struct Change {
    /// In `targets`.
    target: usize,
    key_end: usize,
    end: usize,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Put,
    Write { offset: usize },
    Remove,
}

impl Batch {
    fn push(&mut self, target: &Arc<Target>, key: &[u8], effect: Effect<'_>) {
        if self.targets.last().is_none_or(|last| !Arc::ptr_eq(last, target)) {
            self.targets.push(Arc::clone(target));
        }
        let (what, value) = match effect {
            Effect::Put(value) => (What::Put, value),
            Effect::Write { offset, bytes } => (What::Write { offset }, bytes),
            Effect::Remove => (What::Remove, &[][..]),
        };
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let (target, end) = (self.targets.len() - 1, self.bytes.len());
        self.changes.push(Change { target, key_end, end, what });
    }

    fn is_full(&self) -> bool {
        self.changes.len() >= BATCH_CHANGES || self.bytes.len() >= BATCH_BYTES
    }

    /// Does the changes: of puts one behind the other the cache misses overlap.
    fn run(self) {
        let mut puts: Vec<(&[u8], &[u8])> = Vec::with_capacity(self.changes.len());
        let mut begin = 0;
        let same = |one: &Change, other: &Change| {
            one.target == other.target && one.what == What::Put && other.what == What::Put
        };
        for changes in self.changes.chunk_by(same) {
            let target = &self.targets[changes[0].target];
            puts.clear();
            for change in changes {
                puts.push((
                    &self.bytes[begin..change.key_end],
                    &self.bytes[change.key_end..change.end],
                ));
                begin = change.end;
            }
            if target.failed.get().is_some() {
                continue;
            }
            let (key, bytes) = puts[0];
            let done = match changes[0].what {
                What::Put => target.put_many(&mut puts),
                What::Write { offset } => target.write(key, offset, bytes),
                What::Remove => target.remove(key),
            };
            if let Err(error) = done {
                // The first one counts.
                let _later = target.failed.set(error);
            }
        }
    }
}

enum Message {
    Run(Batch),
    Records(Records),
    /// Drop it once all before is done.
    Done(Sender<()>),
}

/// Sorts changes, and hands them to threads. A few changes are done by the thread that brings them.
pub(crate) struct Replay<'s, 'e> {
    scope: &'s Scope<'s, 'e>,
    threads: usize,
    /// Of each thread, the changes that it will be given next.
    batches: Vec<Batch>,
    /// None before the first batch is full.
    senders: Vec<SyncSender<Message>>,
    /// The thread that takes the entries of snapshots now.
    turn: usize,
    has_entries: bool,
    /// Records of a roll-up that a thread will be given next.
    records: Option<Records>,
    /// That thread.
    records_turn: usize,
}

impl<'s, 'e> Replay<'s, 'e> {
    /// With so many threads; else as many as the machine has processors.
    pub(crate) fn new(scope: &'s Scope<'s, 'e>, threads: Option<NonZero<usize>>) -> Self {
        let threads = threads.or_else(|| thread::available_parallelism().ok());
        let threads = threads.map_or(1, NonZero::get).min(THREADS_MAX);
        Replay {
            scope,
            threads,
            batches: (0..threads).map(|_| Batch::default()).collect(),
            senders: Vec::new(),
            turn: 0,
            has_entries: false,
            records: None,
            records_turn: 0,
        }
    }

    /// Does an entry of a snapshot.
    pub(crate) fn entry(&mut self, target: &Arc<Target>, key: &[u8], value: &[u8]) {
        self.has_entries = true;
        let at = self.turn;
        self.push(at, target, key, Effect::Put(value));
        if self.batches[at].changes.is_empty() {
            self.turn = (at + 1) % self.threads;
        }
    }

    /// Does a change behind all that came before.
    pub(crate) fn change(
        &mut self,
        table: TableId,
        target: &Arc<Target>,
        key: &[u8],
        effect: Effect<'_>,
    ) {
        if std::mem::take(&mut self.has_entries) {
            self.wait();
        }
        let mut hasher = DefaultHasher::new();
        (table, key).hash(&mut hasher);
        // The high bits: the threads are few.
        let at = ((hasher.finish() >> 32) * self.threads as u64) >> 32;
        self.push(at as usize, target, key, effect);
    }

    /// Takes a batch of a roll-up, behind those that it took before.
    pub(crate) fn record(&mut self, target: &Arc<RollupTarget>, record: &[u8]) {
        if self.records.as_ref().is_some_and(|records| !records.are_of(target)) {
            self.send_records();
        }
        let records = self.records.get_or_insert_with(|| Records::of(target));
        records.push(record);
        if records.are_enough() {
            self.send_records();
        }
    }

    fn send_records(&mut self) {
        let Some(records) = self.records.take() else { return };
        // One other thread would take turns with this one, and copy what it is given.
        if self.threads == 1 || records.are_large() {
            return records.run();
        }
        if self.senders.is_empty() {
            self.start();
        }
        self.records_turn = (self.records_turn + 1) % self.threads;
        match self.senders.get(self.records_turn) {
            // In the order of the log to each thread, so that the one before is never behind one that waits for it.
            Some(sender) => {
                sender.send(Message::Records(records)).expect("it ends after this one");
            }
            None => records.run(),
        }
    }

    fn push(&mut self, at: usize, target: &Arc<Target>, key: &[u8], effect: Effect<'_>) {
        self.batches[at].push(target, key, effect);
        if self.batches[at].is_full() {
            self.send(at);
        }
    }

    fn send(&mut self, at: usize) {
        let batch = std::mem::take(&mut self.batches[at]);
        if self.senders.is_empty() {
            self.start();
        }
        match self.senders.get(at) {
            Some(sender) => sender.send(Message::Run(batch)).expect("it ends after this one"),
            None => batch.run(),
        }
    }

    /// Starts the threads: all of them, or none, where the system has none left.
    fn start(&mut self) {
        for number in 0..self.threads {
            let (sender, messages) = sync_channel::<Message>(WAITING);
            let work = move || {
                for message in messages {
                    match message {
                        Message::Run(batch) => batch.run(),
                        Message::Records(records) => records.run(),
                        Message::Done(sender) => drop(sender),
                    }
                }
            };
            let builder = thread::Builder::new().name(format!("sapwood-replay-{number}"));
            if builder.spawn_scoped(self.scope, work).is_err() {
                return self.senders.clear();
            }
            self.senders.push(sender);
        }
    }

    /// Lets all threads have done what they were given.
    fn wait(&mut self) {
        for at in 0..self.batches.len() {
            self.send_rest(at);
        }
        let (done, all_done) = channel();
        for sender in &self.senders {
            sender.send(Message::Done(done.clone())).expect("it ends after this one");
        }
        drop(done);
        // Nothing is sent: it ends when all threads have dropped theirs.
        let _end = all_done.recv();
    }

    fn send_rest(&mut self, at: usize) {
        if self.senders.is_empty() {
            std::mem::take(&mut self.batches[at]).run();
        } else if !self.batches[at].changes.is_empty() {
            self.send(at);
        }
    }

    /// Hands out what is left. The threads end with it, and have done all when their scope ends.
    pub(crate) fn end(mut self) {
        self.send_records();
        for at in 0..self.batches.len() {
            self.send_rest(at);
        }
    }
}
