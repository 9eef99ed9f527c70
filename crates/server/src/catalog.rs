//! What is known of commands without executing them.
//!
//! | module | holds |
//! |---|---|
//! | `categories` | classes of commands by name |
//! | `needs` | the rights that a command needs |

pub(crate) mod categories;
pub(crate) mod needs;

use bitflags::bitflags;

use crate::catalog::needs::Needs;

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

/// What is known of a command.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// Its number among all commands and subcommands.
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
}

impl Description {
    /// A command of a group, by name and number of arguments; the rest is empty.
    pub(crate) const fn new(group: &'static str, name: &'static str, arity: isize) -> Self {
        Description {
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
        }
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

/// All commands and subcommands, by their numbers.
pub(crate) struct Catalog {
    /// The subcommands of a command follow it.
    descriptions: Box<[Description]>,
    needs: Box<[Needs]>,
}

impl Catalog {
    /// Those of an iterator, in the order of their numbers.
    pub(crate) fn new(descriptions: impl Iterator<Item = Description>) -> Catalog {
        let descriptions: Box<[Description]> = descriptions.collect();
        debug_assert!(descriptions.iter().enumerate().all(|(at, of)| at == of.id));
        let needs = descriptions.iter().map(Needs::of).collect();
        Catalog { descriptions, needs }
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Description] {
        &self.descriptions
    }

    /// The command of a name in letters of either size, or the subcommand of a name with a `|`.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Description> {
        self.descriptions.iter().find(|it| it.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// A command and its subcommands.
    pub(crate) fn with_subcommands(&self, command: &Description) -> &[Description] {
        let from = &self.descriptions[command.id..];
        let is_of_it = |it: &&Description| {
            it.name.strip_prefix(command.name).is_some_and(|behind| behind.starts_with('|'))
        };
        &from[..1 + from[1..].iter().take_while(is_of_it).count()]
    }

    /// The commands and subcommands of a class.
    pub(crate) fn of_class(&self, class: Categories) -> impl Iterator<Item = &Description> {
        self.descriptions.iter().filter(move |it| it.categories_all().intersects(class))
    }

    /// The rights that a command needs.
    #[inline]
    pub(crate) fn needs(&self, command: &Description) -> &Needs {
        &self.needs[command.id]
    }
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").field("commands", &self.descriptions.len()).finish()
    }
}
