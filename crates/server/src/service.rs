//! What all sessions share: databases, transactions that watch, and the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sapwood::{Db, HashTableOptions};

use crate::clients::{Clients, Limits};
use crate::clock::Clock;
use crate::command::{AllReplicas, Refusal};
use crate::replicas::Replicas;
use crate::store::format::Millis;
use crate::store::keyspace::{self, Keys, Keyspace};
use crate::watched::Watched;

/// Choices for a [`Service`].
#[derive(Debug)]
pub struct Options {
    /// Databases that `SELECT` can choose from.
    pub databases: usize,
    /// Threads that execute commands at a time.
    pub threads: usize,
    /// Bytes of memory beyond which commands that need more are refused.
    pub maxmemory: Option<u64>,
    /// The clock.
    pub clock: Clock,
    /// Clients that may be connected at a time.
    pub maxclients: usize,
    /// The time after which a client that does nothing is closed, in whole seconds; zero for never.
    pub timeout: Duration,
    /// The silence after which the system asks whether a client is there; zero for never.
    pub tcp_keepalive: Duration,
    /// Bytes of messages to a client that it has not taken, at most; one with more is closed.
    pub messages_bytes_max: usize,
}

impl Default for Options {
    /// Those of Redis: 16 databases, 10,000 clients, 32 MiB of messages to each, no other limit; a
    /// thread for each core.
    fn default() -> Options {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Options {
            databases: 16,
            threads,
            maxmemory: None,
            clock: Clock::System,
            maxclients: 10_000,
            timeout: Duration::ZERO,
            tcp_keepalive: Duration::from_secs(300),
            messages_bytes_max: 32 << 20,
        }
    }
}

/// Databases by number. One is made when it is used first.
#[derive(Debug, Clone)]
pub(crate) struct Databases(Vec<Option<Arc<Keyspace>>>);

impl Databases {
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&Arc<Keyspace>> {
        self.0.get(number)?.as_ref()
    }

    pub(crate) fn set(&mut self, number: usize, space: Option<Arc<Keyspace>>) {
        if let Some(database) = self.0.get_mut(number) {
            *database = space;
        }
    }

    /// Those that there are, with their numbers.
    pub(crate) fn made(&self) -> impl Iterator<Item = (usize, &Arc<Keyspace>)> {
        self.0.iter().enumerate().filter_map(|(number, space)| Some((number, space.as_ref()?)))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

/// What all sessions share.
#[derive(Debug)]
pub struct Service {
    pub(crate) db: Db,
    pub(crate) databases: Replicas<Databases>,
    pub(crate) options: Options,
    pub(crate) watched: Watched,
    /// Whether the memory's limit is reached.
    is_full: AtomicBool,
    pub(crate) clients: Clients,
}

impl Service {
    /// A service over a database, with what its tables hold already.
    ///
    /// # Errors
    /// Those of opening its tables.
    pub fn new(db: Db, options: Options) -> keyspace::Result<Service> {
        let databases = Databases(vec![None; options.databases]);
        let limits = Limits::new(
            options.maxclients,
            options.timeout,
            options.tcp_keepalive,
            options.messages_bytes_max,
        );
        let service = Service {
            databases: Replicas::new(options.threads + 1, &databases),
            db,
            watched: Watched::default(),
            is_full: AtomicBool::new(false),
            clients: Clients::new(limits),
            options,
        };
        {
            let names = service.db.table_names();
            let mut all = service.databases.exclusive();
            for number in 0..service.options.databases {
                if number == 0 || names.contains(&keyspace_name(number)) {
                    all.set(number, Some(Arc::new(service.open_keyspace(number)?)));
                }
            }
        }
        Ok(service)
    }

    pub(crate) fn open_keyspace(&self, number: usize) -> keyspace::Result<Keyspace> {
        Keyspace::open(&self.db, &keyspace_name(number), HashTableOptions::default())
    }

    /// Sets a clock that is set by hand; false for the system's.
    pub fn set_clock(&self, now: Millis) -> bool {
        self.options.clock.set(now)
    }

    /// Whether commands that need memory are refused.
    pub(crate) fn is_full(&self) -> bool {
        // Relaxed: the limit is not exact.
        self.is_full.load(Ordering::Relaxed)
    }

    /// Bytes of memory that the tables have taken.
    pub fn used_memory(&self) -> u64 {
        self.databases.shared().made().map(|(_, space)| space.reserved_bytes()).sum()
    }

    /// Compares the memory that is used with its limit. For a timer.
    pub fn check_memory(&self) {
        if let Some(limit) = self.options.maxmemory {
            self.is_full.store(self.used_memory() > limit, Ordering::Relaxed);
        }
    }

    /// Closes clients that do nothing for longer than they may. For a timer.
    pub fn close_idle_clients(&self) {
        self.clients.close_idle(self.options.clock.now());
    }

    /// Removes keys whose time has ended, some hundred of each database; true if there are more.
    /// For a timer.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn expire(&self) -> keyspace::Result<bool> {
        const AT_ONCE: usize = 256;
        if self.clients.pause.at(self.options.clock.now()).is_some() {
            // What clients see stands still.
            return Ok(false);
        }
        let mut are_more = false;
        for number in 0..self.options.databases {
            // Held for one database only, so that a transaction need not wait for all.
            let databases = self.databases.shared();
            let Some(space) = databases.get(number) else { continue };
            let keys = Keys { space, now: self.options.clock.now(), is_exclusive: false };
            are_more |= keys.expire(AT_ONCE, |key| self.watched.touch(number, key))?;
        }
        Ok(are_more)
    }

    /// Looks through the ends of keys' times where that is worth it. For a timer.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn sweep(&self) -> keyspace::Result<()> {
        const AT_ONCE: usize = 256;
        for number in 0..self.options.databases {
            let mut from: Option<Vec<u8>> = None;
            loop {
                let databases = self.databases.shared();
                let Some(space) = databases.get(number) else { break };
                let keys = Keys { space, now: self.options.clock.now(), is_exclusive: false };
                from = keys.sweep_expiries(from.as_deref(), AT_ONCE)?;
                if from.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// The name of the table of a database.
fn keyspace_name(number: usize) -> String {
    format!("redis.{number}")
}

impl From<Refusal> for String {
    fn from(refusal: Refusal) -> String {
        match refusal {
            Refusal::Text(text) => text.into_owned(),
            Refusal::NeedsExclusive => "ERR this needs the database for itself".to_owned(),
        }
    }
}
