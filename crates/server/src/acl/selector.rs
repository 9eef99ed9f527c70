//! A selector: a set of commands, with the keys and channels that they may be called with.
//!
//! Rules are compiled when they are given: those about commands into a bit for each, so that a check
//! of a command is a load. Users see rules that are made of the bits, as in Redis 7.0, and files hold
//! them.

use std::cmp::Reverse;

use crate::acl::pattern::Pattern;
use crate::catalog::needs::{Channels, KeyRights};
use crate::catalog::{Catalog, Categories, Description, Flags, categories};

/// A rule that is not taken. The texts are those of Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A command or a class that there is not.
    #[error("Unknown command or category name in ACL")]
    Unknown,
    /// Text that is no rule.
    #[error("Syntax error")]
    Syntax,
    /// A pattern of keys for a user of all keys.
    #[error(
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not \
         have any effect. Try 'resetkeys' to start with an empty list of patterns"
    )]
    AllKeys,
    /// A pattern of channels for a user of all channels.
    #[error(
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does \
         not have any effect. Try 'resetchannels' to start with an empty list of channels"
    )]
    AllChannels,
    /// A password that is taken away and was not there.
    #[error("The password you are trying to remove from the user does not exist")]
    NoPassword,
    /// A hash of a password that is none.
    #[error(
        "The password hash must be exactly 64 characters and contain only lowercase hexadecimal \
         characters"
    )]
    NoHash,
    /// A first argument of a subcommand.
    #[error("Allowing first-arg of a subcommand is not supported")]
    ArgumentOfSubcommand,
}

/// What a user may not do, from the least to the most particular.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Denied {
    /// The command.
    Command,
    /// The key that is this argument.
    Key(usize),
    /// The channel that is this argument.
    Channel(usize),
}

/// A bit for each command and subcommand.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CommandBits(Box<[u64]>);

impl CommandBits {
    /// All, or none.
    fn filled(sign: Sign, catalog: &Catalog) -> CommandBits {
        let word = match sign {
            Sign::Plus => u64::MAX,
            Sign::Minus => 0,
        };
        CommandBits(vec![word; catalog.all().len().div_ceil(64)].into())
    }

    #[inline]
    fn has(&self, command: &Description) -> bool {
        self.0[command.id / 64] >> (command.id % 64) & 1 == 1
    }

    /// Sets the bits of commands.
    fn set(&mut self, commands: &[Description], sign: Sign) {
        for command in commands {
            let bit = 1 << (command.id % 64);
            match sign {
                Sign::Plus => self.0[command.id / 64] |= bit,
                Sign::Minus => self.0[command.id / 64] &= !bit,
            }
        }
    }

    /// Sets the bits of a class, and those of the subcommands of its commands.
    fn set_class(&mut self, class: Categories, sign: Sign, catalog: &Catalog) {
        for command in catalog.of_class(class) {
            self.set(catalog.with_subcommands(command), sign);
        }
    }

    fn has_all(&self, catalog: &Catalog) -> bool {
        catalog.all().iter().all(|command| self.has(command))
    }

    /// The class that a sign fits best: more of its commands have the sign's bit than have not, and
    /// no other class has fewer that have not.
    fn best_class(&self, sign: Sign, catalog: &Catalog) -> Option<(&'static str, Categories)> {
        let fit = |class: Categories| {
            let is_like = |command: &&Description| self.has(command) == (sign == Sign::Plus);
            let like = catalog.of_class(class).filter(is_like).count();
            (catalog.of_class(class).count() - like, Reverse(like))
        };
        let classes = categories::all().map(|named| (fit(named.1), named));
        let fitting = classes.filter(|((other, Reverse(like)), _)| like > other);
        fitting.min_by_key(|(fit, _)| *fit).map(|(_, named)| named)
    }
}

/// Whether a rule gives or takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
}

impl Sign {
    fn opposite(self) -> Sign {
        match self {
            Sign::Plus => Sign::Minus,
            Sign::Minus => Sign::Plus,
        }
    }

    /// The rule of this sign about a command, or about a class behind `@`.
    fn rule(self, name: &str) -> Vec<u8> {
        let mark = match self {
            Sign::Plus => '+',
            Sign::Minus => '-',
        };
        format!("{mark}{name}").into_bytes()
    }
}

/// A pattern of keys, and what may be done with them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KeyPattern {
    pattern: Pattern,
    rights: KeyRights,
}

/// All, or those of some patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Names<P> {
    All,
    Of(Vec<P>),
}

/// The channels of a user that has just been made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NewUsersChannels {
    /// None, until a rule allows some.
    #[default]
    None,
    /// All.
    All,
}

/// A set of commands, with the keys and channels that they may be called with.
#[derive(Debug, Clone)]
pub(crate) struct Selector {
    catalog: &'static Catalog,
    commands: CommandBits,
    /// The rules begin with all commands, or with none.
    first_sign: Sign,
    /// Classes without commands for which the rules say otherwise. They have no bits.
    empty_classes: Vec<&'static str>,
    /// First arguments with which a command may be called that may not be called else.
    first_arguments: Vec<(usize, Box<[u8]>)>,
    keys: Names<KeyPattern>,
    channels: Names<Pattern>,
}

impl Selector {
    /// A selector of no commands and no keys.
    pub(crate) fn new(catalog: &'static Catalog, channels: NewUsersChannels) -> Selector {
        Selector {
            catalog,
            commands: CommandBits::filled(Sign::Minus, catalog),
            first_sign: Sign::Minus,
            empty_classes: Vec::new(),
            first_arguments: Vec::new(),
            keys: Names::Of(Vec::new()),
            channels: match channels {
                NewUsersChannels::None => Names::Of(Vec::new()),
                NewUsersChannels::All => Names::All,
            },
        }
    }

    /// Whether all commands may be called, with all keys and all channels.
    pub(crate) fn allows_all(&self) -> bool {
        self.keys == Names::All
            && self.channels == Names::All
            && self.commands.has_all(self.catalog)
    }

    /// Applies a rule about commands, keys or channels.
    pub(crate) fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        match &*rule.to_ascii_lowercase() {
            b"allkeys" | b"~*" => self.keys = Names::All,
            b"resetkeys" => self.keys = Names::Of(Vec::new()),
            b"allchannels" | b"&*" => self.channels = Names::All,
            b"resetchannels" => self.channels = Names::Of(Vec::new()),
            b"allcommands" | b"+@all" => self.begin_with(Sign::Plus),
            b"nocommands" | b"-@all" => self.begin_with(Sign::Minus),
            _ => match rule {
                [b'~', pattern @ ..] => self.add_keys(Some((KeyRights::all(), pattern)))?,
                [b'%', rest @ ..] => self.add_keys(key_rights(rest))?,
                [b'&', pattern @ ..] => self.add_channels(pattern)?,
                [b'+', b'@', class @ ..] => self.set_class(class, Sign::Plus)?,
                [b'-', b'@', class @ ..] => self.set_class(class, Sign::Minus)?,
                [b'+', name @ ..] => self.add_command(name)?,
                [b'-', name @ ..] => {
                    let command = self.catalog.find(name).ok_or(RuleError::Unknown)?;
                    self.set_command(command, Sign::Minus);
                }
                _ => return Err(RuleError::Syntax),
            },
        }
        Ok(())
    }

    fn begin_with(&mut self, sign: Sign) {
        self.first_sign = sign;
        self.commands = CommandBits::filled(sign, self.catalog);
        self.empty_classes.clear();
        self.first_arguments.clear();
    }

    /// Adds a pattern; `None` is text that is none.
    fn add_keys(&mut self, rule: Option<(KeyRights, &[u8])>) -> Result<(), RuleError> {
        let Names::Of(keys) = &mut self.keys else { return Err(RuleError::AllKeys) };
        let (rights, pattern) = rule.ok_or(RuleError::Syntax)?;
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        match keys.iter_mut().find(|old| old.pattern.text() == pattern) {
            Some(old) => old.rights |= rights,
            None => keys.push(KeyPattern { pattern: Pattern::new(pattern), rights }),
        }
        Ok(())
    }

    fn add_channels(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        let Names::Of(channels) = &mut self.channels else { return Err(RuleError::AllChannels) };
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        if !channels.iter().any(|old| old.text() == pattern) {
            channels.push(Pattern::new(pattern));
        }
        Ok(())
    }

    fn set_class(&mut self, name: &[u8], sign: Sign) -> Result<(), RuleError> {
        let (name, class) = categories::find(name).ok_or(RuleError::Unknown)?;
        if class.is_empty() {
            self.empty_classes.retain(|known| *known != name);
            if sign != self.first_sign {
                self.empty_classes.push(name);
            }
        }
        self.commands.set_class(class, sign, self.catalog);
        let is_of_it = |id: usize| self.catalog.all()[id].categories_all().intersects(class);
        self.first_arguments.retain(|(id, _)| !is_of_it(*id));
        Ok(())
    }

    /// A command, a subcommand, or a command with a first argument.
    fn add_command(&mut self, name: &[u8]) -> Result<(), RuleError> {
        let Some(bar) = name.iter().rposition(|byte| *byte == b'|') else {
            let command = self.catalog.find(name).ok_or(RuleError::Unknown)?;
            self.set_command(command, Sign::Plus);
            return Ok(());
        };
        let (of, argument) = (&name[..bar], &name[bar + 1..]);
        let command = self.catalog.find(of).ok_or(RuleError::Unknown)?;
        if command.name.contains('|') {
            return Err(RuleError::ArgumentOfSubcommand);
        }
        if argument.is_empty() || has_spaces(argument) {
            return Err(RuleError::Syntax);
        }
        if self.catalog.with_subcommands(command).len() == 1 {
            if !self.allows_first_argument(command, argument) {
                self.first_arguments.push((command.id, argument.into()));
            }
            return Ok(());
        }
        let command = self.catalog.find(name).ok_or(RuleError::Unknown)?;
        self.set_command(command, Sign::Plus);
        Ok(())
    }

    fn set_command(&mut self, command: &Description, sign: Sign) {
        self.commands.set(self.catalog.with_subcommands(command), sign);
        self.first_arguments.retain(|(id, _)| *id != command.id);
    }

    /// Whether a command may be called with these arguments, of which the first is its name.
    pub(crate) fn check(&self, command: &Description, args: &[&[u8]]) -> Result<(), Denied> {
        if !self.commands.has(command)
            && !command.flags.contains(Flags::NO_AUTH)
            && !args.get(1).is_some_and(|first| self.allows_first_argument(command, first))
        {
            return Err(Denied::Command);
        }
        let needs = self.catalog.needs(command);
        if let Names::Of(keys) = &self.keys {
            for at in command.key_places(args.len()).filter(|at| *at < args.len()) {
                let rights = needs.on_key(command, args, at);
                let allows =
                    |key: &KeyPattern| key.rights.contains(rights) && key.pattern.matches(args[at]);
                if !keys.iter().any(allows) {
                    return Err(Denied::Key(at));
                }
            }
        }
        if needs.channels != Channels::None {
            self.check_channels(needs.channels, args)?;
        }
        Ok(())
    }

    #[cold]
    fn allows_first_argument(&self, command: &Description, first: &[u8]) -> bool {
        let is_it = |(id, argument): &(usize, Box<[u8]>)| {
            *id == command.id && argument.eq_ignore_ascii_case(first)
        };
        self.first_arguments.iter().any(is_it)
    }

    fn check_channels(&self, channels: Channels, args: &[&[u8]]) -> Result<(), Denied> {
        let end = if channels == Channels::First { 2 } else { args.len() };
        for (at, name) in args.iter().enumerate().take(end).skip(1) {
            let allows = match channels {
                Channels::Patterns => self.allows_channels(name),
                _ => self.allows_channel(name),
            };
            if !allows {
                return Err(Denied::Channel(at));
            }
        }
        Ok(())
    }

    /// Whether messages of a channel may be sent and received.
    pub(crate) fn allows_channel(&self, channel: &[u8]) -> bool {
        match &self.channels {
            Names::All => true,
            Names::Of(allowed) => allowed.iter().any(|pattern| pattern.matches(channel)),
        }
    }

    /// Whether messages of all channels of a pattern may be received: only where the very pattern is
    /// allowed.
    pub(crate) fn allows_channels(&self, pattern: &[u8]) -> bool {
        match &self.channels {
            Names::All => true,
            Names::Of(allowed) => allowed.iter().any(|other| other.text() == pattern),
        }
    }

    /// The rules about commands, as Redis makes them: all or none, the classes that fit the bits
    /// best, and the commands that have others then.
    pub(crate) fn command_rules(&self) -> Vec<u8> {
        let (catalog, first) = (self.catalog, self.first_sign);
        let sign = first.opposite();
        let mut rules = vec![first.rule("@all")];
        let mut made = CommandBits::filled(first, catalog);
        // The commands of a class that was taken count no more.
        let mut left = self.commands.clone();
        while let Some((name, class)) = left.best_class(sign, catalog) {
            made.set_class(class, sign, catalog);
            left.set_class(class, first, catalog);
            rules.push(sign.rule(&format!("@{name}")));
        }
        rules.extend(self.empty_classes.iter().map(|name| sign.rule(&format!("@{name}"))));
        for command in catalog.all() {
            let is_allowed = self.commands.has(command);
            if is_allowed != made.has(command) {
                let sign = if is_allowed { Sign::Plus } else { Sign::Minus };
                made.set(catalog.with_subcommands(command), sign);
                rules.push(sign.rule(command.name));
            }
            let arguments = self.first_arguments.iter().filter(|(id, _)| *id == command.id);
            for (_, argument) in arguments.filter(|_| !is_allowed) {
                rules.push([&*Sign::Plus.rule(command.name), b"|", argument].concat());
            }
        }
        debug_assert_eq!(made, self.commands, "the rules make the same bits");
        joined(rules.into_iter())
    }

    /// The patterns of keys, with their marks.
    pub(crate) fn key_rules(&self) -> Vec<u8> {
        match &self.keys {
            Names::All => b"~*".to_vec(),
            Names::Of(keys) => joined(keys.iter().map(|key| {
                let mark: &[u8] = match key.rights {
                    KeyRights::READ => b"%R~",
                    KeyRights::WRITE => b"%W~",
                    _ => b"~",
                };
                [mark, key.pattern.text()].concat()
            })),
        }
    }

    /// The patterns of channels, with their marks.
    pub(crate) fn channel_rules(&self) -> Vec<u8> {
        match &self.channels {
            Names::All => b"&*".to_vec(),
            Names::Of(channels) => {
                joined(channels.iter().map(|pattern| [b"&", pattern.text()].concat()))
            }
        }
    }

    /// All rules, as they could be given to make the same selector.
    pub(crate) fn describe(&self) -> Vec<u8> {
        let mut parts = vec![self.key_rules()];
        if self.channels != Names::All {
            parts.push(b"resetchannels".to_vec());
        }
        parts.push(self.channel_rules());
        parts.push(self.command_rules());
        joined(parts.into_iter().filter(|part| !part.is_empty()))
    }
}

/// The rights behind `%`, and the pattern behind them.
fn key_rights(rest: &[u8]) -> Option<(KeyRights, &[u8])> {
    let end = rest.iter().position(|byte| *byte == b'~')?;
    let mut rights = KeyRights::empty();
    for byte in &rest[..end] {
        let right = match byte.to_ascii_uppercase() {
            b'R' => KeyRights::READ,
            b'W' => KeyRights::WRITE,
            _ => return None,
        };
        if rights.contains(right) {
            return None;
        }
        rights |= right;
    }
    (!rights.is_empty()).then_some((rights, &rest[end + 1..]))
}

/// Whether a name would not be one word in a file.
pub(crate) fn has_spaces(name: &[u8]) -> bool {
    // As C's `isspace` has it: a vertical tab is one.
    name.iter().any(|byte| byte.is_ascii_whitespace() || matches!(byte, 0 | 11))
}

/// Parts with spaces between them.
pub(crate) fn joined(parts: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    parts.collect::<Vec<_>>().join(&b' ')
}
