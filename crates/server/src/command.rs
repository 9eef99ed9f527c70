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
mod backups;
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
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use sapwood::Db;

use crate::catalog::{Catalog, Categories, Description, Flags, KeyPlaces};
use crate::command::client::Client;
use crate::databases::Access;
use crate::jobs::Job;
use crate::protocol::reply::Reply;
use crate::refusal::{NO_DATABASE, Refusal};
use crate::service::{Options, Service};
use crate::store::format::Millis;
use crate::store::keyspace::{self, Keys, Keyspace};

/// A command: what is known of it, and what it does.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// What is known of it.
    pub description: Description,
    /// Its subcommands.
    pub subcommands: &'static [Command],
    /// What it does.
    pub run: Run,
}

impl Deref for Command {
    type Target = Description;

    #[inline]
    fn deref(&self) -> &Description {
        &self.description
    }
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
        let description = Description::new(group, name, arity);
        Command { description, subcommands: &[], run }
    }

    const fn with(mut self, flags: Flags, categories: Categories) -> Self {
        self.description.flags = self.description.flags.union(flags);
        self.description.categories = self.description.categories.union(categories);
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
        self.description.keys = KeyPlaces { first, last, step };
        self
    }

    /// What documentation says.
    pub(crate) const fn about(
        mut self,
        since: &'static str,
        syntax: &'static str,
        summary: &'static str,
    ) -> Self {
        self.description.since = since;
        self.description.syntax = syntax;
        self.description.summary = summary;
        self
    }

    /// Tips for clients and clusters.
    pub(crate) const fn tips(mut self, tips: &'static [&'static str]) -> Self {
        self.description.tips = tips;
        self
    }

    /// Its subcommands.
    pub(crate) const fn subcommands(mut self, subcommands: &'static [Command]) -> Self {
        self.subcommands = subcommands;
        self
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
    backups::COMMANDS,
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
        let description = Description { id, ..command.description };
        Command { description, subcommands, run: command.run }
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

/// What is known of all commands.
pub(crate) fn catalog() -> &'static Catalog {
    static CATALOG: LazyLock<Catalog> =
        LazyLock::new(|| Catalog::new(all_with_subcommands().map(|it| it.description)));
    &CATALOG
}

impl Service {
    /// A service over a database, with what its tables hold already.
    ///
    /// # Errors
    /// Those of opening its tables.
    pub fn new(db: Db, options: Options) -> keyspace::Result<Service> {
        Service::with_commands(catalog(), db, options)
    }
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
