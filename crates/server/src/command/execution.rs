//! The way from a request to the reply of its command: rights, pauses, queues of transactions, counts.

use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use crate::acl::{Context, Denied};
use crate::catalog::Flags;
use crate::clients::{Entry, Paused};
use crate::command::acl::authenticate;
use crate::command::client::{ARGUMENT_BYTES, Client};
use crate::command::{self, Answer, Call, Command, pubsub};
use crate::databases::{Access, Databases};
use crate::jobs::Job;
use crate::protocol::reply::Reply;
use crate::refusal::{NO_CHANNEL, NO_KEY, OUT_OF_MEMORY, Refusal, refuse};
use crate::service::Service;
use crate::store::format::{self, Millis};
use crate::store::parts::PIECE_BYTES;

pub(crate) enum Dispatched {
    Done(Option<Job>),
    /// It waits until clients are not paused any more.
    Paused,
    NeedsExclusive,
}

/// Finds the command of a request and executes it, or keeps it for `EXEC`.
pub(crate) fn dispatch(
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
    let permitted = match client.transaction {
        Some(_) if command.flags.contains(Flags::NO_MULTI) => Err(NOT_IN_TRANSACTION),
        _ => permit(service, client, access.databases(), command, args),
    };
    if let Err(refusal) = permitted {
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
        let owned = args.iter().map(|arg| arg.to_vec()).collect();
        transaction.bytes += args.iter().map(|arg| ARGUMENT_BYTES + arg.len()).sum::<usize>();
        transaction.queued.push((command, owned));
        Reply::new(out, protocol).simple("QUEUED");
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
    let outcome = run_whole(&mut call);
    if !matches!(outcome, Err(Refusal::NeedsExclusive)) {
        service.note_call(&call.client.entry, command, args, begun.elapsed(), now, &outcome);
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

/// Runs a command. What one changes that no other runs beside is there after a crash, or none of it.
fn run_whole(call: &mut Call<'_>) -> Answer {
    let (service, command) = (call.service, call.command);
    // `EXEC` sees to that itself, if its commands change something.
    if !command.flags.contains(Flags::WRITE) {
        return (command.run)(call);
    }
    if !call.is_exclusive() {
        // Of several keys, or entries of a table, all are changed, or none.
        return match command.keys.last < 0 || command.group == "table" {
            true => run_with_room(call),
            false => (command.run)(call),
        };
    }
    match service.db.together(|| run_with_room(call)) {
        Ok((outcome, _changes)) => outcome,
        Err(error) => Err(error.into()),
    }
}

/// Runs a command for whose changes the log has room: a full disk refuses it as a whole.
fn run_with_room(call: &mut Call<'_>) -> Answer {
    let (command, db) = (call.command, &call.service.db);
    let len = call.args.iter().map(|arg| arg.len()).sum::<usize>();
    // Values are stored as they are, or in pieces, of which the first and the last may be changed
    // in part.
    let changes = 2 * (call.args.len() + len / PIECE_BYTES + 2);
    let bytes = len + (len / PIECE_BYTES + 4) * PIECE_BYTES;
    db.with_room(bytes, changes, || (command.run)(call)).map_err(Refusal::from)?
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
    // A command before it may have changed users.
    inner.client.see_users(inner.service);
    let databases = inner.access.databases();
    let result =
        permit_queued(inner.service, inner.client, databases, command, args).and_then(|()| {
            match command.flags.contains(Flags::WRITE) {
                true => run_with_room(&mut inner),
                false => (command.run)(&mut inner),
            }
        });
    if let (Ok(()), Some(job)) = (&result, inner.job.take()) {
        let mut written = Vec::new();
        job.run(&mut written);
        inner.reply.written(&written);
    }
    let entry = &inner.client.entry;
    inner.service.note_call(entry, command, args, begun.elapsed(), inner.now, &result);
    if let Err(refusal) = result {
        call.reply.truncate(before);
        refuse(&mut call.reply, &refusal);
    }
}

/// The job of a command, whose time is added to that of the call.
pub(crate) fn report_job(
    service: &Arc<Service>,
    client: &Client,
    args: &[&[u8]],
    now: Millis,
    job: Job,
) -> Job {
    let Ok(command) = command::resolve(args) else { return job };
    let (service, entry) = (Arc::clone(service), Arc::clone(&client.entry));
    let args: Vec<Vec<u8>> = args.iter().map(|arg| arg.to_vec()).collect();
    job.with_report(move |took| {
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        service.note_job(&entry, command, &args, took, now);
    })
}

const NOT_AUTHENTICATED: Refusal = Refusal::text("NOAUTH Authentication required.");
const NOT_IN_TRANSACTION: Refusal = Refusal::text("ERR Command not allowed inside a transaction");

/// Tells if a client may call a command, with a name and a password as that user. Nothing is
/// executed: the client waits for no pause.
pub(crate) fn expect_right(
    service: &Service,
    client: &mut Client,
    login: Option<(&[u8], &[u8])>,
    args: &[&[u8]],
) -> Result<(), Refusal> {
    let command = command::resolve(args)?;
    let outcome = match login {
        Some((name, password)) => authenticate(service, client, b"HELLO", name, password),
        None => Ok(()),
    };
    let outcome = outcome.and_then(|()| permit_user(service, client, command, args));
    if let Err(refusal) = &outcome {
        service.note_refusal(Some(command), refusal);
    }
    outcome
}

/// Whether a client may call a command now.
fn permit(
    service: &Service,
    client: &mut Client,
    databases: &Databases,
    command: &'static Command,
    args: &[&[u8]],
) -> Result<(), Refusal> {
    permit_user(service, client, command, args)?;
    has_room(service, databases, command)
}

/// Refuses what the client's user may not call, and all to a client that has to say a password.
fn permit_user(
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
                let name = command.name;
                let text =
                    format!("NOPERM this user has no permissions to run the '{name}' command");
                Refusal::Text(text.into())
            }
            Denied::Key(_) => NO_KEY,
            Denied::Channel(_) => NO_CHANNEL,
        })?;
    }
    Ok(())
}

/// Whether a client may call a command of a transaction still.
fn permit_queued(
    service: &Service,
    client: &Client,
    databases: &Databases,
    command: &Command,
    args: &[&[u8]],
) -> Result<(), Refusal> {
    if !client.login.is_free() {
        // A command before it may have ended the user, too.
        let may_call = client.login.is_authenticated() || command.flags.contains(Flags::NO_AUTH);
        let checked = match may_call {
            true => client.check_rights(service, command, args, Context::Multi),
            false => Err(Denied::Command),
        };
        checked.map_err(|denied| {
            let reason = match denied {
                Denied::Command => "no permission to execute the command or subcommand",
                Denied::Key(_) => "no permission to touch the specified keys",
                Denied::Channel(_) => {
                    "no permission to access one of the channels used as arguments"
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
    has_room(service, databases, command)
}

fn has_room(service: &Service, databases: &Databases, command: &Command) -> Result<(), Refusal> {
    if command.flags.contains(Flags::DENYOOM) && service.is_full(databases) {
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
    pub(crate) fn note_client(&self) {
        let tally = &self.admin.tally;
        // Relaxed: counts for reports.
        tally.connected.fetch_add(1, Ordering::Relaxed);
        tally.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_end(&self) {
        // Relaxed: a count for reports.
        self.admin.tally.connected.fetch_sub(1, Ordering::Relaxed);
    }

    fn note_call(
        &self,
        entry: &Entry,
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
            self.note_slow_call(entry, command, args, took, now);
        }
    }

    /// Adds the time of a command's job to that of its call.
    fn note_job(
        &self,
        entry: &Entry,
        command: &'static Command,
        args: &[&[u8]],
        took: Duration,
        now: Millis,
    ) {
        self.admin.tally.called(command.id, 0, took);
        if self.is_slow(took) {
            self.note_slow_call(entry, command, args, took, now);
        }
    }

    /// Without secrets. `EXEC` is not kept: the commands of its transaction are.
    #[cold]
    fn note_slow_call(
        &self,
        entry: &Entry,
        command: &'static Command,
        args: &[&[u8]],
        took: Duration,
        now: Millis,
    ) {
        match command {
            command if command.flags.contains(Flags::SENSITIVE) => {
                self.note_slow(entry, &[args[0], b"(redacted)"], took, now);
            }
            command if command.name != "exec" => self.note_slow(entry, args, took, now),
            _ => {}
        }
    }

    pub(crate) fn note_gets(
        &self,
        entry: &Entry,
        keys: &[&[u8]],
        hits: u64,
        took: Duration,
        now: Millis,
    ) {
        let (tally, count) = (&self.admin.tally, keys.len() as u64);
        tally.called(*GET, count, took);
        tally.hits.add(hits);
        tally.misses.add(count - hits);
        let each = took / keys.len() as u32;
        if self.is_slow(each) {
            self.note_slow(entry, &[b"GET", keys[0]], each, now);
        }
    }

    pub(crate) fn note_sets(
        &self,
        entry: &Entry,
        entries: &[(&[u8], &[u8])],
        took: Duration,
        now: Millis,
    ) {
        let (tally, count) = (&self.admin.tally, entries.len() as u64);
        tally.called(*SET, count, took);
        tally.changes.add(count);
        let each = took / entries.len() as u32;
        if self.is_slow(each) {
            let value = match format::decode(entries[0].1) {
                Some(format::Stored::Inline { value, .. }) => value,
                _ => &[],
            };
            self.note_slow(entry, &[b"SET", entries[0].0, value], each, now);
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
    fn note_slow(&self, entry: &Entry, args: &[&[u8]], took: Duration, now: Millis) {
        let settings = &self.admin.settings;
        let (micros, millis) = (took.as_micros() as u64, took.as_millis() as u64);
        let least = settings.slowlog_micros();
        if least >= 0 && micros as i64 >= least {
            let name = entry.seen().name.as_deref().unwrap_or_default().to_owned();
            let from = (entry.origin.peer(), name);
            self.admin.slow.add(settings.slowlog_len(), now / 1_000, micros, args, from);
        }
        let threshold = settings.latency_millis();
        if threshold > 0 && millis >= threshold {
            self.admin.spikes.add("command", now / 1_000, millis);
        }
    }
}

static GET: LazyLock<usize> = LazyLock::new(|| command::find(b"get").map_or(0, |get| get.id));
static SET: LazyLock<usize> = LazyLock::new(|| command::find(b"set").map_or(0, |set| set.id));
