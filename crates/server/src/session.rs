//! A client's session: bytes that it sent in, replies out.

use std::sync::Arc;
use std::time::Instant;

use sapwood::{Changes, Db};
use smallvec::SmallVec;

use crate::acl::Login;
use crate::admin::AppendFsync;
use crate::clients::{Entry, Origin};
use crate::command::client::{Client, Messages, Replies};
use crate::command::execution::{self, Dispatched, dispatch, report_job};
use crate::databases::{Access, Databases};
use crate::jobs::Job;
use crate::protocol::reply::{Protocol, Reply};
use crate::protocol::request::{self, Parser};
use crate::refusal::{Refusal, refuse};
use crate::service::Service;
use crate::store::format::{self, Millis};
use crate::store::keyspace::{self, Keys};

/// Bytes of replies beyond which a session pauses until they are sent.
const REPLIES_BYTES_MAX: usize = 1 << 20;
/// Neighbouring reads or writes that go to the engine as one batch, at most.
const BATCH_MAX: usize = 64;
/// The same for the first batch of a client: more come when its values turn out to be short, so
/// that a pipeline of reads of long values makes a bounded number of them at a time.
const BATCH_FIRST: usize = 8;

/// What a session does next.
#[derive(Debug)]
pub enum Next {
    /// It needs more bytes.
    More,
    /// It has replies to be sent before it goes on with the bytes that it has; or clients are
    /// paused, and [`Session::pause_millis`] says for how long.
    Full,
    /// It waits for a job, whose bytes are the next reply.
    Job(Job),
    /// It ends, once its replies are sent.
    Close,
}

/// A client's session.
#[derive(Debug)]
pub struct Session {
    service: Arc<Service>,
    parser: Parser,
    client: Client,
    /// Requests of the next batch, at most.
    batch_max: usize,
    /// Changes that must last before the replies of the last run are sent.
    unlasting: Option<Changes>,
}

/// Neighbouring reads, or writes, of single keys.
#[derive(Default)]
struct Batch<'i> {
    gets: SmallVec<[&'i [u8]; 32]>,
    sets: SmallVec<[(&'i [u8], &'i [u8]); 32]>,
}

impl Session {
    /// A session of a new client of this process. It counts as no connection.
    pub fn new(service: Arc<Service>) -> Session {
        let now = service.options.clock.now();
        let entry = service.clients.admit_within(now);
        Session::of(service, entry, now)
    }

    /// A session of a client that has connected; `None` if there are as many as may be.
    pub(crate) fn connect(service: Arc<Service>, origin: Origin) -> Option<Session> {
        let now = service.options.clock.now();
        let entry = service.clients.admit(origin, now)?;
        Some(Session::of(service, entry, now))
    }

    /// A session of a client that stays for a moment, however many there are.
    pub(crate) fn connect_beyond_limit(service: Arc<Service>, origin: Origin) -> Session {
        let now = service.options.clock.now();
        let entry = service.clients.admit_beyond_limit(origin, now);
        Session::of(service, entry, now)
    }

    fn of(service: Arc<Service>, entry: Arc<Entry>, now: Millis) -> Session {
        let client = Client {
            id: entry.id,
            protocol: Protocol::Resp2,
            database: 0,
            transaction: None,
            watch: None,
            watched_keys: Vec::new(),
            is_closing: false,
            entry,
            replies: Replies::On,
            subscriptions: None,
            last_command: "NULL",
            now,
            bytes_waiting: 0,
            login: Login::new(&service.users),
        };
        client.show_user();
        client.entry.seen().bytes_fixed = size_of::<Session>() + size_of::<Entry>();
        service.note_client();
        let parser = Parser::new(client.limits());
        Session { service, parser, client, batch_max: BATCH_FIRST, unlasting: None }
    }

    /// Executes the requests in `input` and appends their replies to `out`, in order; answers how
    /// many bytes it used, and what comes next. The next input begins with those that are left.
    pub fn run(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Next) {
        if self.client.entry.mailbox.is_ended() {
            return (0, Next::Close);
        }
        let before = out.len();
        let changes = self.always_synced().map(|db| (db.changes(), db));
        let (used, mut next) = self.run_requests(input, out);
        if matches!(next, Next::More | Next::Full) && self.is_query_too_long(input.len() - used) {
            next = Next::Close;
        }
        self.unlasting = changes.and_then(|(before, db)| {
            let changes = db.changes();
            (changes != before && !changes.are_durable()).then_some(changes)
        });
        self.parser.give_back();
        let is_blocked = match &next {
            Next::Job(_) => true,
            Next::Full => self.pause_millis().is_some(),
            Next::More | Next::Close => false,
        };
        let client = &mut self.client;
        client.bytes_waiting = input.len() - used;
        client.show(|seen| {
            seen.bytes_in += used as u64;
            seen.bytes_out += (out.len() - before) as u64;
            seen.is_blocked = is_blocked;
            seen.is_closing = matches!(next, Next::Close);
        });
        (used, next)
    }

    /// Tells if the client may call a command, with a name and a password as that user. Nothing is
    /// executed: the client waits for no pause.
    ///
    /// # Errors
    /// The refusal that the command would have.
    pub(crate) fn expect_right(
        &mut self,
        login: Option<(&[u8], &[u8])>,
        args: &[&[u8]],
    ) -> Result<(), Refusal> {
        execution::expect_right(&self.service, &mut self.client, login, args)
    }

    /// The database of a service that syncs always.
    pub(crate) fn always_synced(&self) -> Option<Db> {
        let always = self.service.admin.settings.append_fsync() == AppendFsync::Always;
        always.then(|| self.service.db.clone())
    }

    /// Takes the changes of the last run that must last before its replies are sent: those of a service
    /// that syncs always.
    pub fn take_unlasting(&mut self) -> Option<Changes> {
        self.unlasting.take()
    }

    /// Appends the messages that have come for the client since the last call.
    ///
    /// ```
    /// # use sapwood_server::{Service, Session, service::Options};
    /// let service = std::sync::Arc::new(Service::new(sapwood::Db::in_memory(), Options::default())?);
    /// let (mut one, mut other) = (Session::new(service.clone()), Session::new(service));
    /// let mut out = Vec::new();
    /// one.run(b"SUBSCRIBE news\r\n", &mut out);
    /// out.clear();
    /// other.run(b"PUBLISH news hello\r\n", &mut out);
    /// assert_eq!(out, b":1\r\n");
    /// out.clear();
    /// one.messages(&mut out);
    /// assert_eq!(out, b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n");
    /// # Ok::<(), sapwood_server::store::keyspace::Error>(())
    /// ```
    pub fn messages(&mut self, out: &mut Vec<u8>) {
        let mailbox = &self.client.entry.mailbox;
        if mailbox.has_messages() {
            let mut messages = mailbox.take();
            self.note_messages(messages.len());
            out.append(&mut messages);
            self.client.entry.mailbox.sent();
        }
    }

    /// Milliseconds for which requests wait, if clients are paused.
    pub fn pause_millis(&self) -> Option<Millis> {
        self.service.clients.pause.left(self.service.options.clock.now())
    }

    /// A way for messages to the client, for other threads.
    ///
    /// ```
    /// # use sapwood_server::{Service, Session, service::Options};
    /// let service = std::sync::Arc::new(Service::new(sapwood::Db::in_memory(), Options::default())?);
    /// let mut session = Session::new(service);
    /// let messages = session.to_messages();
    /// std::thread::spawn(move || messages.post(|reply| reply.integer(7))).join().expect("it ends");
    /// let mut out = Vec::new();
    /// session.messages(&mut out);
    /// assert_eq!(out, b":7\r\n");
    /// # Ok::<(), sapwood_server::store::keyspace::Error>(())
    /// ```
    pub fn to_messages(&self) -> Messages {
        self.client.to_messages(&self.service)
    }

    /// What others see of the client.
    pub(crate) fn entry(&self) -> &Arc<Entry> {
        &self.client.entry
    }

    /// Notes that something came from the client or went to it, beside what is executed.
    pub(crate) fn note_life(&self) {
        self.client.entry.seen().at = self.service.options.clock.now();
    }

    /// Notes that the job of [`Next::Job`] has ended, with so many bytes of replies.
    pub(crate) fn note_end_of_job(&self, replies_bytes: usize) {
        self.note_life();
        let mut seen = self.client.entry.seen();
        seen.is_blocked = false;
        seen.bytes_out += replies_bytes as u64;
    }

    /// Notes messages that go out.
    pub(crate) fn note_messages(&self, bytes: usize) {
        self.client.entry.seen().bytes_out += bytes as u64;
    }

    /// Notes bytes of replies that the client has not taken. One with too many is closed.
    pub(crate) fn note_kept(&self, bytes: usize) {
        self.client.entry.seen().bytes_kept = bytes;
        self.are_too_long(bytes);
    }

    /// Tells if bytes of replies are more than the client may leave unread. Its connection ends then.
    pub(crate) fn are_too_long(&self, replies_bytes: usize) -> bool {
        let limits = &self.service.clients.limits;
        let are_too_long = replies_bytes > limits.unread_bytes(self.client.subscriptions.is_some());
        if are_too_long {
            self.client.entry.mailbox.overflow();
        }
        are_too_long
    }

    /// Tells if the client has sent more than it may before it is executed: `waiting` bytes of a
    /// request, and commands that wait for `EXEC`. Its connection ends then.
    pub(crate) fn is_query_too_long(&self, waiting: usize) -> bool {
        let queued = self.client.transaction.as_ref().map_or(0, |transaction| transaction.bytes);
        let clients = &self.service.clients;
        let is_too_long = waiting.saturating_add(queued) > clients.limits.query_bytes();
        if is_too_long {
            clients.note_long_query(&self.client.entry);
        }
        is_too_long
    }

    fn run_requests(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Next) {
        let service = Arc::clone(&self.service);
        self.see_users(&service);
        if self.client.is_closing {
            return (0, Next::Close);
        }
        let mut databases = service.databases.shared();
        let mut now = service.options.clock.now();
        self.client.now = now;
        let mut is_paused = service.clients.pause.at(now).is_some();
        let mut batch = Batch::default();
        let mut used = 0;
        let begun = out.len();
        loop {
            let rest = &input[used..];
            if out.len() - begun > REPLIES_BYTES_MAX {
                // A request that began the next batch is used up, and must have its reply.
                self.execute(&mut batch, &databases, now, out);
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
            let is_there = databases.get(self.client.database).is_some();
            if self.client.is_plain() && is_there && !is_paused {
                if batch.take(&self.parser, rest, &service) {
                    if batch.len() >= self.batch_max {
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
            if request::is_http(args[0]) {
                service.note_http(&self.client.entry.origin, now);
                return (used, Next::Close);
            }
            let client = &mut self.client;
            client.bytes_waiting = rest.len();
            let before = out.len();
            let job = match dispatch(&service, client, &args, out, Access::Shared(&databases), now)
            {
                Dispatched::Done(job) => job,
                Dispatched::Paused => return (used - end, Next::Full),
                Dispatched::NeedsExclusive => {
                    drop(databases);
                    let mut all = service.databases.exclusive();
                    // It may have waited: keys end meanwhile.
                    now = service.options.clock.now();
                    client.now = now;
                    let access = Access::Exclusive(&mut all);
                    let dispatched = dispatch(&service, client, &args, out, access, now);
                    drop(all);
                    databases = service.databases.shared();
                    now = service.options.clock.now();
                    is_paused = service.clients.pause.at(now).is_some();
                    match dispatched {
                        Dispatched::Done(job) => job,
                        Dispatched::Paused => return (used - end, Next::Full),
                        Dispatched::NeedsExclusive => None,
                    }
                }
            };
            let is_silent = client.is_silenced(out, before);
            let job = job.map(|job| {
                let job = report_job(&service, client, &args, now, job);
                if is_silent { job.silenced() } else { job }
            });
            drop(args);
            self.see_users(&service);
            if let Some(job) = job {
                return (used, Next::Job(job));
            }
            if self.client.is_closing {
                return (used, Next::Close);
            }
        }
    }

    /// Sees changes of users, and of the user that the client is.
    fn see_users(&mut self, service: &Service) {
        self.client.see_users(service);
        self.parser.set_limits(self.client.limits());
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
        let before = out.len();
        let mut reply = Reply::new(out, self.client.protocol);
        let begun = Instant::now();
        if !batch.gets.is_empty() {
            self.client.last_command = "get";
            let hits = execute_gets(&keys, &batch.gets, &mut reply);
            self.service.note_gets(&self.client.entry, &batch.gets, hits, begun.elapsed(), now);
            batch.gets.clear();
        }
        if !batch.sets.is_empty() {
            self.client.last_command = "set";
            execute_sets(&self.service, self.client.database, &keys, &batch.sets, &mut reply);
            self.service.note_sets(&self.client.entry, &batch.sets, begun.elapsed(), now);
            batch.sets.clear();
        }
        let bytes = out.len() - before;
        if bytes > REPLIES_BYTES_MAX {
            self.batch_max = (self.batch_max / (bytes / REPLIES_BYTES_MAX + 1)).max(1);
        } else if bytes <= REPLIES_BYTES_MAX / 8 {
            self.batch_max = (self.batch_max * 2).min(BATCH_MAX);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.client.unwatch(&self.service);
        self.client.end_subscriptions(&self.service);
        self.service.clients.remove(self.client.id);
        self.service.note_end();
    }
}

impl<'i> Batch<'i> {
    fn is_empty(&self) -> bool {
        self.gets.is_empty() && self.sets.is_empty()
    }

    #[inline]
    fn len(&self) -> usize {
        self.gets.len() + self.sets.len()
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
                    && !service.was_full() =>
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
        Ok(()) => sets.iter().for_each(|_| reply.simple("OK")),
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use sapwood::Db;

    use super::*;
    use crate::clock::Clock;
    use crate::replicas::thread_number;
    use crate::service::Options;

    #[test]
    fn a_command_that_has_waited_for_others_sees_the_time_behind_the_wait() {
        // A number above 0, so that the replica that this thread holds is not the first.
        thread_number();
        let test = || {
            let clock = Clock::Manual(AtomicU64::new(1_000));
            let options = Options { clock, threads: thread_number() + 1, ..Options::default() };
            let service = Arc::new(Service::new(Db::in_memory(), options).expect("memory"));
            let mut session = Session::new(Arc::clone(&service));
            let held = service.databases.shared();
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    let mut out = Vec::new();
                    let requests = b"SET a 1 PX 10\r\nEXISTS a b\r\nGET a\r\nPING\r\n";
                    session.run(requests, &mut out);
                    out
                });
                while !service.databases.has_writer() {
                    std::thread::yield_now();
                }
                service.set_clock(1_010);
                drop(held);
                let replies = waiting.join().expect("it ends");
                assert_eq!(replies, b"+OK\r\n:0\r\n$-1\r\n+PONG\r\n");
            });
        };
        std::thread::spawn(test).join().expect("it sees the time");
    }
}
