//! A client's session: bytes that it sent in, replies out.

use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::command::{self, Access, Call, Command, Flags, OUT_OF_MEMORY, Refusal};
use crate::protocol::reply::{Protocol, Reply};
use crate::protocol::request::{Limits, Parser};
use crate::service::{Databases, Service};
use crate::store::format::{self, Millis};
use crate::store::keyspace::{self, Keys};
use crate::watched::Watch;

/// Bytes of replies beyond which a session pauses until they are sent.
const REPLIES_BYTES_MAX: usize = 1 << 20;
/// Neighbouring reads or writes that go to the engine as one batch, at most.
const BATCH_MAX: usize = 64;

/// What a session does next.
#[derive(Debug)]
pub enum Next {
    /// It needs more bytes.
    More,
    /// It has replies to be sent before it goes on with the bytes that it has.
    Full,
    /// It waits for a job, whose bytes are the next reply.
    Job(Job),
    /// It ends, once its replies are sent.
    Close,
}

/// Work of a command that takes long, for a thread that serves no clients.
pub struct Job(pub(crate) Box<dyn FnOnce(&mut Vec<u8>) + Send>);

impl Job {
    /// Does the work, and appends the reply.
    pub fn run(self, out: &mut Vec<u8>) {
        (self.0)(out);
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}

/// Commands that wait for `EXEC`.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) queued: Vec<(&'static Command, Vec<Vec<u8>>)>,
    /// Whether a command was refused: `EXEC` will be, too.
    pub(crate) is_broken: bool,
}

/// What is known of a client.
#[derive(Debug)]
pub struct Client {
    pub(crate) id: u64,
    pub(crate) protocol: Protocol,
    pub(crate) database: usize,
    pub(crate) transaction: Option<Box<Transaction>>,
    /// What it watches, and under which keys.
    pub(crate) watch: Option<Arc<Watch>>,
    pub(crate) watched_keys: Vec<(usize, Vec<u8>)>,
    /// Whether the connection ends after the reply.
    pub(crate) is_closing: bool,
}

/// A client's session.
#[derive(Debug)]
pub struct Session {
    service: Arc<Service>,
    parser: Parser,
    client: Client,
}

/// Neighbouring reads, or writes, of single keys.
#[derive(Default)]
struct Batch<'i> {
    gets: SmallVec<[&'i [u8]; 32]>,
    sets: SmallVec<[(&'i [u8], &'i [u8]); 32]>,
}

impl Session {
    /// A session of a new client.
    pub fn new(service: Arc<Service>) -> Session {
        let client = Client {
            id: service.next_client(),
            protocol: Protocol::Resp2,
            database: 0,
            transaction: None,
            watch: None,
            watched_keys: Vec::new(),
            is_closing: false,
        };
        service.note_client();
        Session { service, parser: Parser::new(Limits::REDIS), client }
    }

    /// Executes the requests in `input` and appends their replies to `out`, in order; answers how
    /// many bytes it used, and what comes next. The next input begins with those that are left.
    pub fn run(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Next) {
        let service = Arc::clone(&self.service);
        let mut databases = service.databases.shared();
        let now = service.options.clock.now();
        let mut batch = Batch::default();
        let mut used = 0;
        let begun = out.len();
        loop {
            let rest = &input[used..];
            if out.len() - begun > REPLIES_BYTES_MAX {
                debug_assert!(
                    batch.is_empty(),
                    "a batch is executed before its replies are counted"
                );
                return (used, if rest.is_empty() { Next::More } else { Next::Full });
            }
            let end = match self.parser.parse(rest) {
                Ok(Some(end)) => end,
                Ok(None) => {
                    self.execute(&mut batch, &databases, now, out);
                    return (used, Next::More);
                }
                Err(error) => {
                    self.execute(&mut batch, &databases, now, out);
                    Reply::new(out, self.client.protocol).error(&format!("ERR {error}"));
                    return (used, Next::Close);
                }
            };
            used += end;
            if self.client.is_plain() {
                if batch.take(&self.parser, rest, &service) {
                    if batch.is_full() {
                        self.execute(&mut batch, &databases, now, out);
                    }
                    continue;
                }
                // A read behind writes, or a write behind reads, begins the next batch.
                self.execute(&mut batch, &databases, now, out);
                if batch.take(&self.parser, rest, &service) {
                    continue;
                }
            }
            let args: SmallVec<[&[u8]; 16]> = self.parser.arguments(rest).collect();
            if args.is_empty() {
                continue;
            }
            let client = &mut self.client;
            let job = match dispatch(&service, client, &args, out, Access::Shared(&databases), now)
            {
                Dispatched::Done(job) => job,
                Dispatched::NeedsExclusive => {
                    drop(databases);
                    let mut all = service.databases.exclusive();
                    let access = Access::Exclusive(&mut all);
                    let dispatched = dispatch(&service, client, &args, out, access, now);
                    drop(all);
                    databases = service.databases.shared();
                    match dispatched {
                        Dispatched::Done(job) => job,
                        Dispatched::NeedsExclusive => None,
                    }
                }
            };
            if let Some(job) = job {
                return (used, Next::Job(job));
            }
            if self.client.is_closing {
                return (used, Next::Close);
            }
        }
    }

    /// Bytes of a request that must be there before it is of use to go on.
    pub fn wanted(&self) -> usize {
        self.parser.wanted()
    }

    fn execute(
        &mut self,
        batch: &mut Batch<'_>,
        databases: &Databases,
        now: Millis,
        out: &mut Vec<u8>,
    ) {
        if batch.is_empty() {
            return;
        }
        let Some(space) = databases.get(self.client.database) else {
            debug_assert!(false, "a batch needs a database that is there");
            return;
        };
        let keys = Keys { space, now, is_exclusive: false };
        let mut reply = Reply::new(out, self.client.protocol);
        let begun = Instant::now();
        if !batch.gets.is_empty() {
            let hits = execute_gets(&keys, &batch.gets, &mut reply);
            self.service.note_gets(&batch.gets, hits, begun.elapsed(), now);
            batch.gets.clear();
        }
        if !batch.sets.is_empty() {
            execute_sets(&self.service, self.client.database, &keys, &batch.sets, &mut reply);
            self.service.note_sets(&batch.sets, begun.elapsed(), now);
            batch.sets.clear();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.client.unwatch(&self.service);
        self.service.note_end();
    }
}

impl Client {
    /// Whether its reads and writes of single keys need no look at its state.
    #[inline]
    fn is_plain(&self) -> bool {
        self.transaction.is_none()
    }

    /// The databases in which it watches keys.
    pub(crate) fn watched_databases(&self) -> Vec<usize> {
        let mut numbers: Vec<_> = self.watched_keys.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Forgets what it watches.
    pub(crate) fn unwatch(&mut self, service: &Service) {
        if let Some(watch) = self.watch.take() {
            for (database, key) in self.watched_keys.drain(..) {
                service.watched.remove(database, &key, &watch);
            }
        }
    }
}

impl<'i> Batch<'i> {
    fn is_empty(&self) -> bool {
        self.gets.is_empty() && self.sets.is_empty()
    }

    fn is_full(&self) -> bool {
        self.gets.len() + self.sets.len() >= BATCH_MAX
    }

    /// Takes a request in if it is a read or a write of a single key like those before it.
    #[inline]
    fn take(&mut self, parser: &Parser, request: &'i [u8], service: &Service) -> bool {
        let Some(name) = parser.place(0) else { return false };
        if name.len() != 3 {
            return false;
        }
        let (Some(key), value) = (parser.place(1), parser.place(2)) else { return false };
        let key = &request[key];
        if !keyspace::is_plain(key) || parser.place(3).is_some() {
            return false;
        }
        let name = &request[name];
        match value {
            None if self.sets.is_empty() && name.eq_ignore_ascii_case(b"get") => {
                self.gets.push(key);
                true
            }
            Some(value)
                if self.gets.is_empty()
                    && name.eq_ignore_ascii_case(b"set")
                    && value.len() <= keyspace::INLINE_BYTES_MAX
                    && !service.is_full() =>
            {
                let Some(stored) = format::within(request, value.start, value.end) else {
                    return false;
                };
                self.sets.push((key, stored));
                true
            }
            _ => false,
        }
    }
}

/// Answers how many keys were there.
fn execute_gets(keys: &Keys<'_>, gets: &[&[u8]], reply: &mut Reply<'_>) -> u64 {
    let mut shown = 0;
    let mut hits = 0;
    let mut show = |value: Option<&[u8]>| {
        shown += 1;
        match value {
            Some(value) => {
                hits += 1;
                reply.bulk(value);
            }
            None => reply.null(),
        }
    };
    let result = match gets {
        [key] => keys.get_with(key, |current| show(current.map(|current| current.value))),
        gets => keys.get_many(gets, show),
    };
    if let Err(error) = result {
        // Each request has a reply.
        for _ in shown..gets.len() {
            refuse(reply, &error.clone().into());
        }
    }
    hits
}

fn execute_sets(
    service: &Service,
    database: usize,
    keys: &Keys<'_>,
    sets: &[(&[u8], &[u8])],
    reply: &mut Reply<'_>,
) {
    let put_each = |entries: &[(&[u8], &[u8])], reply: &mut Reply<'_>| {
        for (key, stored) in entries {
            let value = match format::decode(stored) {
                Some(format::Stored::Inline { value, .. }) => value,
                _ => continue,
            };
            match keys.modify(key, |_| keyspace::Change::Put(value.into(), None)) {
                Ok(()) => reply.simple("OK"),
                Err(error) => refuse(reply, &error.into()),
            }
        }
    };
    match keys.put_many(sets) {
        Ok(Some(())) => sets.iter().for_each(|_| reply.simple("OK")),
        // Values in parts are seen before they are overwritten.
        Ok(None) => put_each(sets, reply),
        Err(error) => {
            let done = match &error {
                keyspace::Error::Table(sapwood::Error::HashBatch { done, .. }) => *done,
                _ => 0,
            };
            sets[..done].iter().for_each(|_| reply.simple("OK"));
            refuse(reply, &error.into());
            put_each(&sets[done + 1..], reply);
        }
    }
    if !service.watched.is_empty() {
        for (key, _) in sets {
            service.watched.touch(database, key);
        }
    }
}

/// Writes a refusal as a reply.
pub(crate) fn refuse(reply: &mut Reply<'_>, refusal: &Refusal) {
    match refusal {
        Refusal::Text(text) => reply.error(text),
        Refusal::NeedsExclusive => reply.error("ERR this needs the database for itself"),
    }
}

enum Dispatched {
    Done(Option<Job>),
    NeedsExclusive,
}

/// Finds the command of a request and executes it, or keeps it for `EXEC`.
fn dispatch(
    service: &Service,
    client: &mut Client,
    args: &[&[u8]],
    out: &mut Vec<u8>,
    mut access: Access<'_>,
    now: Millis,
) -> Dispatched {
    let protocol = client.protocol;
    let command = match command::resolve(args) {
        Ok(command) => command,
        Err(refusal) => {
            client.break_transaction();
            service.note_refusal(command::find(args[0]), &refusal);
            refuse(&mut Reply::new(out, protocol), &refusal);
            return Dispatched::Done(None);
        }
    };
    if let Err(refusal) = permit(service, client, command) {
        client.break_transaction();
        service.note_refusal(Some(command), &refusal);
        refuse(&mut Reply::new(out, protocol), &refusal);
        return Dispatched::Done(None);
    }
    if let Some(transaction) = &mut client.transaction
        && !command.flags.contains(Flags::NOT_QUEUED)
    {
        if command.flags.contains(Flags::NO_MULTI) {
            transaction.is_broken = true;
            Reply::new(out, protocol).error("ERR Command not allowed inside a transaction");
        } else {
            let owned = args.iter().map(|arg| arg.to_vec()).collect();
            transaction.queued.push((command, owned));
            Reply::new(out, protocol).simple("QUEUED");
        }
        return Dispatched::Done(None);
    }
    if command.flags.contains(Flags::EXCLUSIVE) && matches!(access, Access::Shared(_)) {
        return Dispatched::NeedsExclusive;
    }
    let before = out.len();
    let reply = Reply::new(out, protocol);
    let access = access.reborrow();
    let mut call = Call { service, client, args, command, reply, access, now, job: None };
    let begun = Instant::now();
    let outcome = (command.run)(&mut call);
    if !matches!(outcome, Err(Refusal::NeedsExclusive)) {
        service.note_call(command, args, begun.elapsed(), now, &outcome);
    }
    match outcome {
        Ok(()) => Dispatched::Done(call.job),
        Err(refusal) => {
            call.reply.truncate(before);
            if refusal == Refusal::NeedsExclusive && !call.is_exclusive() {
                return Dispatched::NeedsExclusive;
            }
            refuse(&mut call.reply, &refusal);
            Dispatched::Done(None)
        }
    }
}

/// Executes a command of a transaction; a job of its is done at once.
pub(crate) fn execute_queued(call: &mut Call<'_>, command: &'static Command, args: &[&[u8]]) {
    let before = call.reply.len();
    let mut inner = Call {
        service: call.service,
        client: &mut *call.client,
        args,
        command,
        reply: call.reply.reborrow(),
        access: call.access.reborrow(),
        now: call.now,
        job: None,
    };
    let begun = Instant::now();
    let result =
        permit(inner.service, inner.client, command).and_then(|()| (command.run)(&mut inner));
    inner.service.note_call(command, args, begun.elapsed(), inner.now, &result);
    let job = inner.job.take();
    match (result, job) {
        (Err(refusal), _) => {
            call.reply.truncate(before);
            refuse(&mut call.reply, &refusal);
        }
        (Ok(()), Some(job)) => {
            let mut written = Vec::new();
            job.run(&mut written);
            call.reply.written(&written);
        }
        (Ok(()), None) => {}
    }
}

/// Whether a client may call a command now.
fn permit(service: &Service, _client: &Client, command: &Command) -> Result<(), Refusal> {
    if command.flags.contains(Flags::DENYOOM) && service.is_full() {
        return Err(OUT_OF_MEMORY);
    }
    Ok(())
}

impl Client {
    fn break_transaction(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.is_broken = true;
        }
    }
}

/// What `INFO` and `SLOWLOG` tell of clients and commands.
impl Service {
    fn note_client(&self) {
        let tally = &self.admin.tally;
        // Relaxed: counts for reports.
        tally.connected.fetch_add(1, Ordering::Relaxed);
        tally.connections.fetch_add(1, Ordering::Relaxed);
    }

    fn note_end(&self) {
        // Relaxed: a count for reports.
        self.admin.tally.connected.fetch_sub(1, Ordering::Relaxed);
    }

    fn note_call(
        &self,
        command: &'static Command,
        args: &[&[u8]],
        took: Duration,
        now: Millis,
        outcome: &Result<(), Refusal>,
    ) {
        let admin = &self.admin;
        admin.tally.called(command.id, 1, took);
        match outcome {
            Err(Refusal::Text(text)) => {
                admin.tally.failed(command.id);
                admin.tally.error(text);
            }
            Ok(()) if command.flags.contains(Flags::WRITE) => admin.tally.changes.add(1),
            _ => {}
        }
        if self.is_slow(took) {
            match command.flags.contains(Flags::SENSITIVE) {
                true => self.note_slow(&[args[0], b"(redacted)"], took, now),
                false => self.note_slow(args, took, now),
            }
        }
    }

    fn note_gets(&self, keys: &[&[u8]], hits: u64, took: Duration, now: Millis) {
        let (tally, count) = (&self.admin.tally, keys.len() as u64);
        tally.called(*GET, count, took);
        tally.hits.add(hits);
        tally.misses.add(count - hits);
        let each = took / keys.len() as u32;
        if self.is_slow(each) {
            self.note_slow(&[b"GET", keys[0]], each, now);
        }
    }

    fn note_sets(&self, entries: &[(&[u8], &[u8])], took: Duration, now: Millis) {
        let (tally, count) = (&self.admin.tally, entries.len() as u64);
        tally.called(*SET, count, took);
        tally.changes.add(count);
        let each = took / entries.len() as u32;
        if self.is_slow(each) {
            let value = match format::decode(entries[0].1) {
                Some(format::Stored::Inline { value, .. }) => value,
                _ => &[],
            };
            self.note_slow(&[b"SET", entries[0].0, value], each, now);
        }
    }

    fn note_refusal(&self, command: Option<&'static Command>, refusal: &Refusal) {
        if let Some(command) = command {
            self.admin.tally.rejected(command.id);
        }
        if let Refusal::Text(text) = refusal {
            self.admin.tally.error(text);
        }
    }

    #[inline]
    fn is_slow(&self, took: Duration) -> bool {
        let settings = &self.admin.settings;
        let least = settings.slowlog_micros();
        let millis = settings.latency_millis();
        (least >= 0 && took.as_micros() as i64 >= least)
            || (millis > 0 && took.as_millis() as u64 >= millis)
    }

    #[cold]
    fn note_slow(&self, args: &[&[u8]], took: Duration, now: Millis) {
        let settings = &self.admin.settings;
        let (micros, millis) = (took.as_micros() as u64, took.as_millis() as u64);
        let least = settings.slowlog_micros();
        if least >= 0 && micros as i64 >= least {
            self.admin.slow.add(settings.slowlog_len(), now / 1_000, micros, args);
        }
        let threshold = settings.latency_millis();
        if threshold > 0 && millis >= threshold {
            self.admin.spikes.add("command", now / 1_000, millis);
        }
    }
}

static GET: LazyLock<usize> = LazyLock::new(|| command::find(b"get").map_or(0, |get| get.id));
static SET: LazyLock<usize> = LazyLock::new(|| command::find(b"set").map_or(0, |set| set.id));
