//! Commands: what each is called, what it takes, which keys it names, and what it does.
//!
//! | module | commands |
//! |---|---|
//! | `strings` | `GET`, `SET`, and all that read or change a value |
//! | `counters` | `INCR` and its like |
//! | `keys` | `DEL`, `SCAN`, `RENAME`, and all that needs no value |
//! | `expiry` | `EXPIRE`, `TTL` and their like |
//! | `transactions` | `MULTI`, `EXEC`, `WATCH` |
//! | `tables` | `SW.PUT`, `SW.AGGREGATE`, and all that works on tables of Sapwood |
//! | `connection` | `PING`, `HELLO`, `SELECT`, `RESET` |
//! | `clients` | `CLIENT` |
//! | `pubsub` | `SUBSCRIBE`, `PUBLISH` and their like |
//! | `acl` | `AUTH`, and `ACL` with its subcommands |
//! | `object` | `OBJECT` |
//! | `server` | `INFO`, `CONFIG`, `SAVE`, and all that is about the server |
//! | `latency` | `SLOWLOG` and `LATENCY` |
//! | `documented` | `COMMAND` |
//! | `info` | the sections of `INFO` |

mod acl;
mod arguments;
pub(crate) mod client;
mod clients;
mod connection;
mod counters;
mod documented;
pub(crate) mod execution;
mod expiry;
pub(crate) mod info;
mod keys;
mod latency;
mod object;
pub(crate) mod pubsub;
mod server;
mod strings;
mod tables;
pub(crate) mod transactions;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use bitflags::bitflags;

use crate::command::client::Client;
use crate::databases::Access;
use crate::jobs::Job;
use crate::protocol::reply::Reply;
use crate::refusal::{NO_DATABASE, Refusal};
use crate::service::Service;
use crate::store::format::Millis;
use crate::store::keyspace::{Keys, Keyspace};

bitflags! {
    /// What a command does, as `COMMAND INFO` tells it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Flags: u32 {
        /// It changes data.
        const WRITE = 1;
        /// It reads data.
        const READONLY = 1 << 1;
        /// It may make the data larger, and is refused when there is no memory.
        const DENYOOM = 1 << 2;
        /// It is for administrators.
        const ADMIN = 1 << 3;
        /// It has to do with messages.
        const PUBSUB = 1 << 4;
        /// It takes constant or logarithmic time.
        const FAST = 1 << 5;
        /// A client that has not said its password may call it.
        const NO_AUTH = 1 << 6;
        /// A transaction does not hold it.
        const NO_MULTI = 1 << 7;
        /// It has no other command beside it while it runs.
        const EXCLUSIVE = 1 << 8;
        /// Its time grows with the data.
        const SLOW_SCAN = 1 << 9;
        /// A transaction does it at once and does not keep it for `EXEC`.
        const NOT_QUEUED = 1 << 10;
        /// Its arguments hold secrets.
        const SENSITIVE = 1 << 11;
        /// A client of version 2 that has subscribed may call it.
        const WHILE_LISTENING = 1 << 16;
        /// It changes no data, and waits like a change while changes are paused.
        const MAY_REPLICATE = 1 << 17;
    }

    /// The classes of commands that the rules of a user name.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Categories: u32 {
        /// Keys, whatever they hold.
        const KEYSPACE = 1;
        /// Reads data.
        const READ = 1 << 1;
        /// Changes data.
        const WRITE = 1 << 2;
        /// Strings.
        const STRING = 1 << 3;
        /// Messages.
        const PUBSUB = 1 << 4;
        /// For administrators.
        const ADMIN = 1 << 5;
        /// Takes constant or logarithmic time.
        const FAST = 1 << 6;
        /// The others.
        const SLOW = 1 << 7;
        /// Could do harm.
        const DANGEROUS = 1 << 8;
        /// The connection.
        const CONNECTION = 1 << 9;
        /// Transactions.
        const TRANSACTION = 1 << 10;
        /// Tables of Sapwood.
        const TABLE = 1 << 11;
    }
}

/// Where the keys of a command stand among its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPlaces {
    /// The first, counted from the command's name, which is 0; 0 for a command without keys.
    pub first: usize,
    /// The last; below 0 it is counted from the end.
    pub last: isize,
    /// From one to the next.
    pub step: usize,
}

/// A command.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// Its number among all commands and subcommands, of those that [`all`] answers.
    pub(crate) id: usize,
    /// Its name in small letters; that of a subcommand is behind a `|`.
    pub name: &'static str,
    /// Arguments with the name; below 0 there may be more.
    pub arity: isize,
    /// What it does.
    pub flags: Flags,
    /// Its classes.
    pub categories: Categories,
    /// Its keys.
    pub keys: KeyPlaces,
    /// The group in the documentation.
    pub group: &'static str,
    /// The version of Redis, or of Sapwood, that had it first.
    pub since: &'static str,
    /// What it is for, in a sentence.
    pub summary: &'static str,
    /// Its arguments, as documentation writes them.
    pub syntax: &'static str,
    /// Tips for clients and clusters.
    pub tips: &'static [&'static str],
    /// Its subcommands.
    pub subcommands: &'static [Command],
    /// What it does.
    pub run: Run,
}

/// What a command does.
pub type Run = fn(&mut Call<'_>) -> Answer;

/// The end of a command: its reply is written, or it is refused and nothing is.
pub type Answer = Result<(), Refusal>;

impl Command {
    /// A command of a group, by name, number of arguments and what it does.
    pub(crate) const fn new(
        group: &'static str,
        name: &'static str,
        arity: isize,
        run: Run,
    ) -> Self {
        Command {
            id: 0,
            name,
            arity,
            flags: Flags::empty(),
            categories: Categories::empty(),
            keys: KeyPlaces { first: 0, last: 0, step: 0 },
            group,
            since: "1.0.0",
            summary: "",
            syntax: "",
            tips: &[],
            subcommands: &[],
            run,
        }
    }

    const fn with(mut self, flags: Flags, categories: Categories) -> Self {
        self.flags = self.flags.union(flags);
        self.categories = self.categories.union(categories);
        self
    }

    /// It reads data.
    pub(crate) const fn reads(self) -> Self {
        self.with(Flags::READONLY, Categories::READ)
    }

    /// It changes data.
    pub(crate) const fn writes(self) -> Self {
        self.with(Flags::WRITE, Categories::WRITE)
    }

    /// It changes data, and may need more memory for them.
    pub(crate) const fn grows(self) -> Self {
        self.writes().with(Flags::DENYOOM, Categories::empty())
    }

    /// It takes constant or logarithmic time.
    pub(crate) const fn fast(self) -> Self {
        self.with(Flags::FAST, Categories::FAST)
    }

    /// Others see it whole or not at all: it has no other command beside it.
    pub(crate) const fn alone(self) -> Self {
        self.with(Flags::EXCLUSIVE, Categories::empty())
    }

    /// Further flags.
    pub(crate) const fn flags(self, flags: Flags) -> Self {
        self.with(flags, Categories::empty())
    }

    /// Further classes.
    pub(crate) const fn categories(self, categories: Categories) -> Self {
        self.with(Flags::empty(), categories)
    }

    /// Its keys.
    pub(crate) const fn keys(mut self, first: usize, last: isize, step: usize) -> Self {
        self.keys = KeyPlaces { first, last, step };
        self
    }

    /// What documentation says.
    pub(crate) const fn about(
        mut self,
        since: &'static str,
        syntax: &'static str,
        summary: &'static str,
    ) -> Self {
        self.since = since;
        self.syntax = syntax;
        self.summary = summary;
        self
    }

    /// Tips for clients and clusters.
    pub(crate) const fn tips(mut self, tips: &'static [&'static str]) -> Self {
        self.tips = tips;
        self
    }

    /// Its subcommands.
    pub(crate) const fn subcommands(mut self, subcommands: &'static [Command]) -> Self {
        self.subcommands = subcommands;
        self
    }

    /// Its classes; every command is fast or slow.
    pub fn categories_all(&self) -> Categories {
        let speed = match self.flags.contains(Flags::FAST) {
            true => Categories::FAST,
            false => Categories::SLOW,
        };
        let admin = match self.flags.contains(Flags::ADMIN) {
            true => Categories::ADMIN | Categories::DANGEROUS,
            false => Categories::empty(),
        };
        let messages = match self.flags.contains(Flags::PUBSUB) {
            true => Categories::PUBSUB,
            false => Categories::empty(),
        };
        self.categories | speed | admin | messages
    }

    /// Whether so many arguments are right.
    pub fn takes(&self, arguments: usize) -> bool {
        match self.arity {
            least if least < 0 => arguments >= least.unsigned_abs(),
            exact => arguments == exact.unsigned_abs(),
        }
    }

    /// The keys among its arguments.
    pub fn keys_of<'a>(&self, args: &'a [&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
        self.key_places(args.len()).filter_map(|at| args.get(at).copied())
    }

    /// Where its keys stand among so many arguments.
    pub(crate) fn key_places(&self, arguments: usize) -> impl Iterator<Item = usize> {
        let last = match self.keys.last {
            last if last < 0 => arguments.saturating_sub(last.unsigned_abs()),
            last => last.unsigned_abs().min(arguments.saturating_sub(1)),
        };
        let first = self.keys.first;
        let places = if first == 0 { 1..1 } else { first..last.max(first - 1) + 1 };
        places.step_by(self.keys.step.max(1))
    }
}

/// Every command, by group.
pub const GROUPS: &[&[Command]] = &[
    strings::COMMANDS,
    counters::COMMANDS,
    keys::COMMANDS,
    expiry::COMMANDS,
    transactions::COMMANDS,
    tables::COMMANDS,
    connection::COMMANDS,
    clients::COMMANDS,
    pubsub::COMMANDS,
    acl::COMMANDS,
    object::COMMANDS,
    documented::COMMANDS,
    server::COMMANDS,
    latency::COMMANDS,
];

/// All commands with their numbers; those of a command's subcommands follow its own.
static COMMANDS: LazyLock<Vec<Command>> =
    LazyLock::new(|| numbered(&mut GROUPS.iter().copied().flatten(), &mut 0));

/// Commands with numbers from `next` on. Lists of subcommands stay as long as the process.
fn numbered(
    commands: &mut dyn Iterator<Item = &'static Command>,
    next: &mut usize,
) -> Vec<Command> {
    let number = |command: &Command| {
        let id = *next;
        *next += 1;
        let subcommands = Vec::leak(numbered(&mut command.subcommands.iter(), next));
        Command { id, subcommands, ..*command }
    };
    commands.map(number).collect()
}

/// All commands.
pub fn all() -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter()
}

/// All commands, each with its subcommands behind it: in the order of their numbers.
pub(crate) fn all_with_subcommands() -> impl Iterator<Item = &'static Command> {
    all().flat_map(|command| std::iter::once(command).chain(command.subcommands))
}

/// Bytes of the longest name.
const NAME_BYTES_MAX: usize = 32;

/// The command of a name, in letters of either size.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    static BY_NAME: LazyLock<HashMap<&'static [u8], &'static Command, foldhash::fast::FixedState>> =
        LazyLock::new(|| all().map(|command| (command.name.as_bytes(), command)).collect());
    let mut lower = [0; NAME_BYTES_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    BY_NAME.get(&*lower).copied()
}

/// The command of a name, or the subcommand of a name with a `|`.
pub(crate) fn find_with_subcommand(name: &[u8]) -> Option<&'static Command> {
    let Some(bar) = name.iter().position(|byte| *byte == b'|') else { return find(name) };
    let of_name = |command: &&Command| command.name.as_bytes().eq_ignore_ascii_case(name);
    find(&name[..bar])?.subcommands.iter().find(of_name)
}

/// The command that arguments name, or its subcommand.
///
/// # Errors
/// Redis's own for a name that it does not know, and for a number of arguments that is wrong.
pub fn resolve(args: &[&[u8]]) -> Result<&'static Command, Refusal> {
    let command = find(args[0]).ok_or_else(|| Refusal::unknown(args))?;
    if !command.takes(args.len()) {
        return Err(Refusal::arguments(command.name));
    }
    let (Some(name), false) = (args.get(1), command.subcommands.is_empty()) else {
        return Ok(command);
    };
    let of_name = |subcommand: &&Command| {
        let behind = subcommand.name.split_once('|').map_or("", |(_, behind)| behind);
        behind.as_bytes().eq_ignore_ascii_case(name)
    };
    let Some(subcommand) = command.subcommands.iter().find(of_name) else {
        let name = String::from_utf8_lossy(&name[..name.len().min(128)]);
        let of = command.name.to_uppercase();
        return Err(Refusal::err(format!("unknown subcommand '{name}'. Try {of} HELP.")));
    };
    match subcommand.takes(args.len()) {
        true => Ok(subcommand),
        false => Err(Refusal::arguments(subcommand.name)),
    }
}

/// A command that is being executed.
pub struct Call<'a> {
    /// What all sessions share.
    pub(crate) service: &'a Service,
    /// The client that called.
    pub(crate) client: &'a mut Client,
    /// The command's name and what follows it.
    pub(crate) args: &'a [&'a [u8]],
    /// The command.
    pub(crate) command: &'static Command,
    /// Its reply.
    pub(crate) reply: Reply<'a>,
    /// The databases.
    pub(crate) access: Access<'a>,
    /// The moment of its execution.
    pub(crate) now: Millis,
    /// What is left to do away from the network; its reply is this command's.
    pub(crate) job: Option<Job>,
}

impl<'a> Call<'a> {
    /// Keys of the client's database, and the reply.
    pub(crate) fn open(&mut self) -> Result<(Keys<'_>, &mut Reply<'a>), Refusal> {
        let number = self.client.database;
        self.make_database(number)?;
        let keys = Self::keys_in(&self.access, self.now, number)?;
        Ok((keys, &mut self.reply))
    }

    /// Keys of the client's database.
    pub(crate) fn keys(&mut self) -> Result<Keys<'_>, Refusal> {
        Ok(self.open()?.0)
    }

    /// Keys of any database; it is made if it is not there yet.
    pub(crate) fn keys_of(&mut self, number: usize) -> Result<Keys<'_>, Refusal> {
        self.make_database(number)?;
        Self::keys_in(&self.access, self.now, number)
    }

    fn make_database(&mut self, number: usize) -> Result<(), Refusal> {
        if self.access.databases().get(number).is_none() {
            match &mut self.access {
                Access::Shared(_) => return Err(Refusal::NeedsExclusive),
                Access::Exclusive(all) => {
                    let space = self.service.open_keyspace(number)?;
                    all.set(number, Some(Arc::new(space)));
                }
            }
        }
        Ok(())
    }

    fn keys_in<'c>(
        access: &'c Access<'_>,
        now: Millis,
        number: usize,
    ) -> Result<Keys<'c>, Refusal> {
        let space = access.databases().get(number).ok_or(NO_DATABASE)?;
        Ok(Keys { space, now, is_exclusive: matches!(access, Access::Exclusive(_)) })
    }

    /// Whether no other command runs beside this one.
    pub(crate) fn is_exclusive(&self) -> bool {
        matches!(self.access, Access::Exclusive(_))
    }

    /// Sets a database, or takes it out, if this command has them for itself.
    pub(crate) fn set_database(&mut self, number: usize, space: Option<Arc<Keyspace>>) {
        if let Access::Exclusive(all) = &mut self.access {
            all.set(number, space);
        }
    }

    /// Tells the transactions that watch a key of the client's database that it has changed.
    pub(crate) fn touch(&self, key: &[u8]) {
        self.service.watched.touch(self.client.database, key);
    }
}
