//! What all sessions share: databases, transactions that watch, and the clock.

use std::collections::{BTreeSet, HashSet};
use std::mem;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sapwood::{Db, HashTableOptions};
use tokio_util::sync::CancellationToken;

use crate::acl::{self, FileError, Users};
use crate::admin::saves::Running;
use crate::admin::{self, Admin, Shutdown};
use crate::catalog::Catalog;
use crate::clients::{Clients, Counts, Limits, Origin, OutputLimits};
use crate::clock::Clock;
use crate::databases::{AllReplicas, Databases, keyspace_name};
use crate::jobs::Jobs;
use crate::replicas::Replicas;
use crate::store::format::Millis;
use crate::store::keyspace::{self, Keys, Keyspace};
use crate::store::memory::Memory;
use crate::store::tidying::Tidying;
use crate::watched::Watched;

/// Memory that removed entries have left may exceed the limit by this part of it.
const RESERVED_PART: u64 = 4;

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
    /// Bounds of replies and messages that a client leaves unread; one with more is closed.
    pub output_limits: OutputLimits,
    /// Bytes that a client may send before they are executed, at most; one with more is closed.
    pub query_bytes_max: usize,
    /// Users and passwords.
    pub users: acl::Options,
    /// How it is run.
    pub admin: admin::Options,
}

impl Default for Options {
    /// The defaults of Redis: 16 databases, 10,000 clients, 32 MiB of messages to each and 1 GiB of
    /// requests from each, no other limit; a thread for each core.
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
            output_limits: OutputLimits::default(),
            query_bytes_max: 1 << 30,
            users: acl::Options::default(),
            admin: admin::Options::default(),
        }
    }
}

/// What all sessions share.
#[derive(Debug)]
pub struct Service {
    pub(crate) db: Db,
    /// Shared with jobs.
    pub(crate) databases: Arc<Replicas<Databases>>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) options: Options,
    pub(crate) watched: Watched,
    /// Databases whose flush has begun, and not ended yet: none of their keys is seen any more.
    flushing: Mutex<BTreeSet<usize>>,
    pub(crate) admin: Admin,
    /// Whether keys whose time has ended are removed before they are asked for.
    is_expiring: AtomicBool,
    /// Set if the memory's limit was reached at the last look.
    is_full: AtomicBool,
    /// Memory of all but hash tables at the last look.
    memory_beside: Mutex<Memory>,
    tidying: Mutex<Tidying>,
    pub(crate) clients: Clients,
    pub(crate) users: Arc<Users>,
}

impl Service {
    /// A service over a database, with what its tables hold already, for these commands.
    ///
    /// # Errors
    /// Those of opening its tables.
    pub(crate) fn with_commands(
        catalog: &'static Catalog,
        db: Db,
        options: Options,
    ) -> keyspace::Result<Service> {
        let databases = Databases::new(options.databases);
        let limits = Limits::new(
            options.maxclients,
            options.timeout,
            options.tcp_keepalive,
            options.output_limits,
            options.query_bytes_max,
        );
        let service = Service {
            databases: Arc::new(Replicas::new(options.threads + 1, &databases)),
            jobs: Arc::default(),
            db,
            watched: Watched::default(),
            flushing: Mutex::default(),
            admin: Admin::new(
                &options.admin,
                catalog,
                options.threads + 1,
                options.maxmemory,
                options.clock.now(),
            ),
            is_expiring: AtomicBool::new(true),
            is_full: AtomicBool::new(false),
            memory_beside: Mutex::default(),
            tidying: Mutex::default(),
            clients: Clients::new(limits),
            users: Arc::new(Users::new(&options.users, catalog)),
            options,
        };
        if service.db.directory().is_none() {
            // Nothing is saved, and clients that ask for the schedule see that.
            service.admin.settings.set_save(Vec::new());
        }
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

    /// The same service with the users of a file, which `ACL LOAD` reads again and `ACL SAVE`
    /// writes. A user `default` that the file does not have stays as the options made it.
    ///
    /// # Errors
    /// [`FileError`], for a file that cannot be read and for each line of it that is wrong.
    pub fn with_users_of(mut self, path: PathBuf) -> Result<Service, FileError> {
        let mut users = Users::new(&self.options.users, self.users.catalog());
        users.set_file(path)?;
        self.users = Arc::new(users);
        Ok(self)
    }

    /// Opens a database; one whose flush has begun without its keys, which ends the flush.
    pub(crate) fn open_keyspace(&self, number: usize) -> keyspace::Result<Keyspace> {
        let (name, options) = (keyspace_name(number), HashTableOptions::default());
        if !self.lock_flushing().contains(&number) {
            return Keyspace::open(&self.db, &name, options);
        }
        let space = Keyspace::open_empty(&self.db, &name, options)?;
        self.lock_flushing().remove(&number);
        Ok(space)
    }

    /// Notes that a database is to be emptied when it is opened next.
    pub(crate) fn note_flush(&self, number: usize) {
        self.lock_flushing().insert(number);
    }

    /// Databases whose flush has not ended.
    pub(crate) fn flushing(&self) -> BTreeSet<usize> {
        self.lock_flushing().clone()
    }

    fn lock_flushing(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.flushing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets a clock that is set by hand; false for the system's.
    pub fn set_clock(&self, now: Millis) -> bool {
        self.options.clock.set(now)
    }

    /// Tells if the memory's limit was reached at the last look.
    pub(crate) fn was_full(&self) -> bool {
        // Relaxed: the limit is not exact.
        self.is_full.load(Ordering::Relaxed)
    }

    /// Tells if commands that need memory are refused. Where the limit was reached it is looked at
    /// anew: what was removed since makes room at once.
    pub(crate) fn is_full(&self, databases: &Databases) -> bool {
        if self.was_full() {
            let beside = *self.lock_memory_beside();
            self.note_memory(databases.memory_of_hash_tables() + beside);
        }
        self.was_full()
    }

    /// Bytes of memory that entries of tables and their indexes use. Not for commands, which have
    /// the databases' lock already.
    pub fn used_memory(&self) -> u64 {
        self.databases.shared().memory().used
    }

    /// Bytes of memory that tables have taken from the system: those that are used, and those that
    /// removed entries have left. Not for commands, as above.
    pub fn reserved_memory(&self) -> u64 {
        self.databases.shared().memory().reserved
    }

    /// Compares the memory that is used with its limit. For a timer.
    pub fn check_memory(&self) {
        self.look_at_memory(&self.databases.shared());
    }

    /// For commands, which have the databases' lock already.
    pub(crate) fn look_at_memory(&self, databases: &Databases) {
        let beside = databases.memory_beside();
        *self.lock_memory_beside() = beside;
        self.note_memory(databases.memory_of_hash_tables() + beside);
    }

    fn note_memory(&self, memory: Memory) {
        // Relaxed: a figure for reports.
        self.admin.memory_peak.fetch_max(memory.used, Ordering::Relaxed);
        let limit = self.admin.settings.maxmemory();
        // Pages that removed entries have left may be written to, but not without end: they are
        // given back more slowly than memory can be written.
        let is_full = limit.is_some_and(|limit| {
            memory.used > limit || memory.reserved > limit.saturating_add(limit / RESERVED_PART)
        });
        self.is_full.store(is_full, Ordering::Relaxed);
    }

    fn lock_memory_beside(&self) -> MutexGuard<'_, Memory> {
        self.memory_beside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives memory back that removed entries have left in hash tables, page by page while `go_on`
    /// says so; true if there is more to do. For a timer.
    ///
    /// # Errors
    /// The first of those of the tables. Each table has had its turn.
    pub fn tidy(&self, mut go_on: impl FnMut() -> bool) -> sapwood::Result<bool> {
        let limit = self.admin.settings.maxmemory();
        let (is_short, names) = {
            let databases = self.databases.shared();
            let reserved = databases.memory_of_hash_tables().reserved;
            let names = databases.hash_tables().map(|table| table.name().to_owned());
            (limit.is_some_and(|limit| reserved > limit), names.collect::<HashSet<String>>())
        };
        let mut tidying = self.tidying.lock().unwrap_or_else(PoisonError::into_inner);
        tidying.retain(|name| names.contains(name));
        let mut outcome = Ok(());
        let mut are_more = false;
        for name in names {
            let mut is_more = true;
            while is_more && go_on() {
                // Held for a page only, so that commands that run alone need not wait long.
                let databases = self.databases.shared();
                let Some(table) = databases.hash_table(&name) else { break };
                let mut is_first = true;
                let tidied = tidying.tidy(table, is_short, &mut || mem::take(&mut is_first));
                is_more = *tidied.as_ref().unwrap_or(&false);
                outcome = outcome.and(tidied.map(drop));
            }
            are_more |= is_more;
        }
        outcome.map(|()| are_more)
    }

    /// Limits of clients.
    pub fn limits(&self) -> &Limits {
        &self.clients.limits
    }

    /// Numbers of clients, and of what they listen to.
    pub fn client_counts(&self) -> Counts {
        self.clients.counts()
    }

    /// Closes clients that do nothing for longer than they may. For a timer.
    pub fn close_idle_clients(&self) {
        self.clients.close_idle(self.options.clock.now());
    }

    /// Closes clients that have left much unread for longer than they may. For a timer.
    pub fn close_full_clients(&self) {
        self.clients.close_full(self.options.clock.now());
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
        // Relaxed: it takes effect when it does.
        if !self.is_expiring.load(Ordering::Relaxed) {
            return Ok(false);
        }
        for number in 0..self.options.databases {
            // Held for one database only, so that a transaction need not wait for all.
            let databases = self.databases.shared();
            let Some(space) = databases.get(number) else { continue };
            let keys = Keys { space, now: self.options.clock.now(), is_exclusive: false };
            are_more |= keys.expire(AT_ONCE, |key| {
                self.admin.tally.expired.fetch_add(1, Ordering::Relaxed);
                self.watched.touch(number, key);
            })?;
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
            if let Some(space) = self.databases.shared().get(number) {
                space.settle();
            }
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

/// Running it: checkpoints, counts, the end.
impl Service {
    pub(crate) fn set_active_expiry(&self, is_on: bool) {
        self.is_expiring.store(is_on, Ordering::Relaxed);
    }

    /// Tells the log of a client that sent a request of HTTP, once a minute.
    pub(crate) fn note_http(&self, origin: &Origin, now: Millis) {
        const PAUSE_MILLIS: Millis = 60_000;
        let told = &self.admin.http_told_at;
        // Relaxed: it orders nothing.
        let last = told.load(Ordering::Relaxed);
        let is_due = last == 0 || now.abs_diff(last) > PAUSE_MILLIS;
        if is_due && told.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            tracing::warn!(
                client = %origin.peer(),
                "POST or Host: came where commands are expected; a page in a browser may be \
                 trying to send commands, and the connection was ended"
            );
        }
    }

    /// Takes a sample of how many commands there are. For a timer, ten times a second.
    pub fn sample(&self) {
        self.admin.tally.sample(self.clients.bytes());
    }

    /// Whether a checkpoint is due, by the rules or by a client's wish. For a timer, whose caller
    /// takes it then by [`save`](Self::save) on a thread of its own.
    pub fn is_save_due(&self) -> bool {
        let admin = &self.admin;
        let (rules, changes) = (admin.settings.save(), admin.tally.changes.sum());
        self.db.directory().is_some()
            && admin.saves.is_due(&rules, changes, self.options.clock.now())
    }

    /// Takes a checkpoint of all tables, while clients go on.
    ///
    /// # Errors
    /// Those of the tables, as text; another checkpoint runs.
    pub fn save(&self) -> Result<(), String> {
        let running = self.admin.saves.begin();
        self.save_by(&running.ok_or_else(|| "Background save already in progress".to_owned())?)
    }

    /// Takes the last checkpoint, once one that runs has ended: that may not have what came late.
    ///
    /// # Errors
    /// Those of the tables, as text.
    pub fn save_last(&self) -> Result<(), String> {
        self.save_by(&self.admin.saves.begin_next())
    }

    fn save_by(&self, running: &Running<'_>) -> Result<(), String> {
        let changes = self.admin.tally.changes.sum();
        let result = self.db.checkpoint().map_err(|error| error.to_string());
        self.admin.saves.ended(running, changes, self.options.clock.now(), result.clone());
        result
    }

    /// Cancelled when a client asks for the end.
    pub fn stop_wanted(&self) -> CancellationToken {
        self.admin.stop.clone()
    }

    /// Whether a last checkpoint is to be taken at the end.
    pub fn saves_at_the_end(&self) -> bool {
        self.db.directory().is_some()
            && match self.admin.shutdown() {
                Shutdown::ByRules => !self.admin.settings.save().is_empty(),
                Shutdown::Save => true,
                Shutdown::NoSave => false,
            }
    }
}
