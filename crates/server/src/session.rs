//! A client's session: bytes that it sent in, replies out.

use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use sapwood::aggregate::Cancel;
use smallvec::SmallVec;

use crate::acl::{self, Context, Denied, Login, Reason, User};
use crate::clients::{Entry, Kind, Origin, Paused, Subscriptions};
use crate::command::{self, Access, Call, Command, Flags, OUT_OF_MEMORY, Refusal, pubsub};
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

/// Work of a command that takes long, for a thread that serves no clients.
pub struct Job {
    work: Box<dyn FnOnce(&mut Vec<u8>) + Send>,
    cancel: Cancel,
    /// Whether the client wants no reply.
    is_silent: bool,
}

impl Job {
    /// Work that goes on to its end.
    pub(crate) fn new(work: impl FnOnce(&mut Vec<u8>) + Send + 'static) -> Job {
        Job::with_cancel(Cancel::new(), work)
    }

    /// Work that looks at `cancel`, and ends early when it says so. Its client has gone then, or
    /// was killed.
    pub(crate) fn with_cancel(
        cancel: Cancel,
        work: impl FnOnce(&mut Vec<u8>) + Send + 'static,
    ) -> Job {
        Job { work: Box::new(work), cancel, is_silent: false }
    }

    /// The means to end the work early, if it looks at it.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Does the work, and appends the reply.
    pub fn run(self, out: &mut Vec<u8>) {
        let before = out.len();
        (self.work)(out);
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

/// A way for messages to a client from beside its session, such as from a job that tells how far it
/// is. Clones are the same. It may outlive the session; its messages go nowhere then.
#[derive(Debug, Clone)]
pub struct Messages {
    entry: Arc<Entry>,
    bytes_max: usize,
}

impl Messages {
    /// Sends a message, written in the client's version of the protocol: in version 3 a push, which
    /// comes between replies. A client of version 2 that has not subscribed expects none.
    pub fn post(&self, write: impl FnOnce(&mut Reply<'_>)) {
        self.entry.mailbox.post(self.bytes_max, write);
    }
}

/// The replies that a client wants, as it said with `CLIENT REPLY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Replies {
    #[default]
    On,
    Off,
    /// None to this command.
    Skip,
    /// None to the command behind this one.
    SkipNext,
}

/// Commands that wait for `EXEC`.
#[derive(Default)]
pub(crate) struct Transaction {
    pub(crate) queued: Vec<(&'static Command, Vec<Vec<u8>>)>,
    /// Whether a command was refused: `EXEC` will be, too.
    pub(crate) is_broken: bool,
}

impl std::fmt::Debug for Transaction {
    /// Without the arguments, among which passwords may be.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.queued.iter().map(|(command, _)| command.name).collect();
        let mut debug = f.debug_struct("Transaction");
        debug.field("queued", &names).field("is_broken", &self.is_broken).finish()
    }
}

/// A key that a client watches.
#[derive(Debug)]
pub(crate) struct WatchedKey {
    pub(crate) database: usize,
    pub(crate) key: Vec<u8>,
    /// The end of its time, as it was when the watch began: another end is a change.
    pub(crate) end: Option<Millis>,
}

impl WatchedKey {
    /// Whether its time has ended by then.
    pub(crate) fn ends_by(&self, now: Millis) -> bool {
        self.end.is_some_and(|end| end <= now)
    }
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
    pub(crate) watched_keys: Vec<WatchedKey>,
    /// Whether the connection ends after the reply.
    pub(crate) is_closing: bool,
    /// What others see of it.
    pub(crate) entry: Arc<Entry>,
    pub(crate) replies: Replies,
    /// What it has subscribed to; `None` for nothing.
    pub(crate) subscriptions: Option<Box<Subscriptions>>,
    /// The last command, the moment of it, and the bytes that were there when it began.
    pub(crate) last_command: &'static str,
    pub(crate) now: Millis,
    pub(crate) bytes_waiting: usize,
    /// The user that it is.
    pub(crate) login: Login,
}

/// A client's session.
#[derive(Debug)]
pub struct Session {
    service: Arc<Service>,
    parser: Parser,
    client: Client,
    /// Requests of the next batch, at most.
    batch_max: usize,
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
        service.note_client();
        let parser = Parser::new(client.limits());
        Session { service, parser, client, batch_max: BATCH_FIRST }
    }

    /// Executes the requests in `input` and appends their replies to `out`, in order; answers how
    /// many bytes it used, and what comes next. The next input begins with those that are left.
    pub fn run(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Next) {
        if self.client.entry.mailbox.is_ended() {
            return (0, Next::Close);
        }
        let before = out.len();
        let (used, next) = self.run_requests(input, out);
        self.parser.give_back();
        let client = &mut self.client;
        client.bytes_waiting = input.len() - used;
        client.show(|seen| {
            seen.bytes_in += used as u64;
            seen.bytes_out += (out.len() - before) as u64;
            seen.has_job = matches!(next, Next::Job(_));
            seen.is_closing = matches!(next, Next::Close);
        });
        (used, next)
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
            out.append(&mut mailbox.take());
            mailbox.sent();
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

    /// Notes that the job of [`Next::Job`] has ended.
    pub(crate) fn note_end_of_job(&self) {
        self.note_life();
        self.client.entry.seen().has_job = false;
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
            drop(args);
            self.see_users(&service);
            if let Some(mut job) = job {
                job.is_silent = is_silent;
                return (used, Next::Job(job));
            }
            if self.client.is_closing {
                return (used, Next::Close);
            }
        }
    }

    /// Sees changes of users, and of the user that the client is.
    fn see_users(&mut self, service: &Service) {
        let client = &mut self.client;
        match client.login.refresh(&service.users) {
            Ok(false) => {}
            Ok(true) => {
                let subscriptions = client.subscriptions.as_ref();
                if subscriptions.is_some_and(|all| !all.are_allowed(client.login.user())) {
                    client.is_closing = true;
                }
            }
            Err(acl::UserHasGone) => client.is_closing = true,
        }
        self.parser.set_limits(client.limits());
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
            self.service.note_gets(&batch.gets, hits, begun.elapsed(), now);
            batch.gets.clear();
        }
        if !batch.sets.is_empty() {
            self.client.last_command = "set";
            execute_sets(&self.service, self.client.database, &keys, &batch.sets, &mut reply);
            self.service.note_sets(&batch.sets, begun.elapsed(), now);
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

impl Client {
    /// Whether its reads and writes of single keys need no look at its state.
    #[inline]
    fn is_plain(&self) -> bool {
        self.transaction.is_none()
            && self.replies == Replies::On
            && self.subscriptions.is_none()
            && self.login.is_free()
    }

    /// Bounds of what it may send.
    fn limits(&self) -> Limits {
        match self.login.is_authenticated() {
            true => Limits::REDIS,
            false => Limits::UNAUTHENTICATED,
        }
    }

    /// Becomes a user, for a password that was right.
    pub(crate) fn log_in(&mut self, user: Arc<User>) {
        self.login.become_user(user);
        self.show_user();
    }

    /// Becomes the user of a client that has just come.
    pub(crate) fn log_out(&mut self, service: &Service) {
        self.login = Login::new(&service.users);
        self.show_user();
    }

    fn show_user(&self) {
        let user = self.login.user();
        let mut seen = self.entry.seen();
        seen.user = String::from_utf8_lossy(&user.name).into_owned().into();
        seen.user_id = user.id;
    }

    /// Whether its user may call a command now; a refusal is noted.
    fn check_rights(
        &self,
        service: &Service,
        command: &Command,
        args: &[&[u8]],
        context: Context,
    ) -> Result<(), Denied> {
        let user = self.login.user();
        let checked = user.check(command, args);
        if let Err(denied) = checked {
            let argument = |at: usize| args.get(at).copied().unwrap_or_default();
            let (reason, object) = match denied {
                Denied::Command => (Reason::Command, command.name.as_bytes()),
                Denied::Key(at) => (Reason::Key, argument(at)),
                Denied::Channel(at) => (Reason::Channel, argument(at)),
            };
            self.note_refusal(service, (reason, context), object, &user.name);
        }
        checked
    }

    /// Notes a refusal for `ACL LOG`.
    pub(crate) fn note_refusal(
        &self,
        service: &Service,
        what: (Reason, Context),
        object: &[u8],
        user: &[u8],
    ) {
        let describe = || {
            self.show(|_| {});
            self.entry.describe(self.now)
        };
        service.users.log.add(what, object, user, describe, self.now);
    }

    /// Tells others what it is and does, and what `more` says.
    pub(crate) fn show(&self, more: impl FnOnce(&mut crate::clients::Seen)) {
        let mut seen = self.entry.seen();
        if seen.protocol != self.protocol {
            seen.protocol = self.protocol;
            self.entry.mailbox.set_protocol(self.protocol);
        }
        seen.at = self.now;
        seen.command = self.last_command;
        seen.database = self.database;
        seen.queued = self.transaction.as_ref().map(|transaction| transaction.queued.len());
        seen.watched = self.watched_keys.len();
        seen.is_watch_broken = self.watch.as_ref().is_some_and(|watch| watch.is_broken());
        let count = |kind| self.subscriptions.as_ref().map_or(0, |all| all.of(kind).len());
        seen.channels = count(Kind::Channel);
        seen.patterns = count(Kind::Pattern);
        seen.shard_channels = count(Kind::ShardChannel);
        seen.bytes_waiting = self.bytes_waiting;
        more(&mut seen);
    }

    /// Messages to it from beside its session.
    pub(crate) fn to_messages(&self, service: &Service) -> Messages {
        let bytes_max = service.clients.limits.messages_bytes();
        Messages { entry: Arc::clone(&self.entry), bytes_max }
    }

    /// Whether it is in the mode of version 2 in which it gets messages, and may say little.
    pub(crate) fn is_listening(&self) -> bool {
        self.subscriptions.is_some() && self.protocol == Protocol::Resp2
    }

    pub(crate) fn end_subscriptions(&mut self, service: &Service) {
        if let Some(subscriptions) = self.subscriptions.take() {
            service.clients.channels.forget(&subscriptions, &self.entry);
        }
    }

    /// Takes the replies back that it does not want; answers whether it wants none.
    fn is_silenced(&mut self, out: &mut Vec<u8>, before: usize) -> bool {
        match self.replies {
            Replies::On => return false,
            Replies::Off => {}
            Replies::Skip => self.replies = Replies::On,
            Replies::SkipNext => self.replies = Replies::Skip,
        }
        // Replies to subscriptions are messages.
        if !self.last_command.ends_with("subscribe") {
            out.truncate(before);
        }
        true
    }

    /// Forgets what it watches.
    pub(crate) fn unwatch(&mut self, service: &Service) {
        if let Some(watch) = self.watch.take() {
            for WatchedKey { database, key, .. } in self.watched_keys.drain(..) {
                service.watched.remove(database, &key, &watch);
            }
        }
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
    /// It waits until clients are not paused any more.
    Paused,
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
            let refusal = client.break_transaction(service, command::find(args[0]), refusal);
            refuse(&mut Reply::new(out, protocol), &refusal);
            return Dispatched::Done(None);
        }
    };
    if let Err(refusal) = permit(service, client, command, args) {
        let refusal = client.break_transaction(service, Some(command), refusal);
        refuse(&mut Reply::new(out, protocol), &refusal);
        return Dispatched::Done(None);
    }
    if client.is_listening() && !command.flags.contains(Flags::WHILE_LISTENING) {
        let refusal = pubsub::only_these(command.name);
        let refusal = client.break_transaction(service, Some(command), refusal);
        refuse(&mut Reply::new(out, protocol), &refusal);
        return Dispatched::Done(None);
    }
    if let Some(paused) = service.clients.pause.at(now)
        && client.waits(command, paused)
    {
        return Dispatched::Paused;
    }
    client.last_command = command.name;
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
    let result = permit_queued(inner.service, inner.client, command, args)
        .and_then(|()| (command.run)(&mut inner));
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

const NOT_AUTHENTICATED: Refusal = Refusal::text("NOAUTH Authentication required.");

/// Whether a client may call a command now.
fn permit(
    service: &Service,
    client: &mut Client,
    command: &'static Command,
    args: &[&[u8]],
) -> Result<(), Refusal> {
    if !client.login.is_free() {
        if !client.login.is_authenticated() && !command.flags.contains(Flags::NO_AUTH) {
            return Err(NOT_AUTHENTICATED);
        }
        client.last_command = command.name;
        let context = match client.transaction {
            Some(_) => Context::Multi,
            None => Context::TopLevel,
        };
        client.check_rights(service, command, args, context).map_err(|denied| match denied {
            Denied::Command => {
                let user = String::from_utf8_lossy(&client.login.user().name).into_owned();
                let name = command.name;
                let text =
                    format!("NOPERM User {user} has no permissions to run the '{name}' command");
                Refusal::Text(text.into())
            }
            Denied::Key(_) => Refusal::text("NOPERM No permissions to access a key"),
            Denied::Channel(_) => Refusal::text("NOPERM No permissions to access a channel"),
        })?;
    }
    has_room(service, command)
}

/// Whether a client may call a command of a transaction still.
fn permit_queued(
    service: &Service,
    client: &Client,
    command: &Command,
    args: &[&[u8]],
) -> Result<(), Refusal> {
    if !client.login.is_free() {
        client.check_rights(service, command, args, Context::Multi).map_err(|denied| {
            let reason = match denied {
                Denied::Command => "no permission to execute the command or subcommand",
                Denied::Key(_) => "no permission to touch the specified keys",
                Denied::Channel(_) => {
                    "no permission to access one of the channels used as arguments to the command"
                }
            };
            let text = format!(
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and \
                 the EXEC call. This command is no longer allowed for the following reason: \
                 {reason}"
            );
            Refusal::Text(text.into())
        })?;
    }
    has_room(service, command)
}

fn has_room(service: &Service, command: &Command) -> Result<(), Refusal> {
    if command.flags.contains(Flags::DENYOOM) && service.is_full() {
        return Err(OUT_OF_MEMORY);
    }
    Ok(())
}

impl Client {
    /// Whether a pause holds a command back. One does not hold back its own end.
    fn waits(&self, command: &Command, paused: Paused) -> bool {
        let changes =
            |command: &Command| command.flags.intersects(Flags::WRITE.union(Flags::MAY_REPLICATE));
        match paused {
            Paused::All => command.name != "client|unpause",
            Paused::Writes if command.name == "exec" => {
                let queued = self.transaction.iter().flat_map(|transaction| &transaction.queued);
                queued.into_iter().any(|(command, _)| changes(command))
            }
            Paused::Writes => changes(command),
        }
    }

    /// Notes a command that is refused before it is kept or executed; answers what the client is
    /// told. An `EXEC` that is refused ends the transaction.
    fn break_transaction(
        &mut self,
        service: &Service,
        command: Option<&'static Command>,
        refusal: Refusal,
    ) -> Refusal {
        service.note_refusal(command, &refusal);
        let is_exec = command.is_some_and(|command| command.name == "exec");
        match (is_exec, refusal) {
            (true, Refusal::Text(text)) => {
                self.transaction = None;
                self.unwatch(service);
                let text = text.strip_prefix("ERR ").unwrap_or(&text);
                let text = format!("EXECABORT Transaction discarded because of: {text}");
                Refusal::Text(text.into())
            }
            (_, refusal) => {
                if let Some(transaction) = &mut self.transaction {
                    transaction.is_broken = true;
                }
                refusal
            }
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
