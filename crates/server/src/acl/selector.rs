//! A selector: a set of commands, with the keys and channels that they may be called with.
//!
//! Rules are compiled when they are given: those about commands into a bit for each, so that a check
//! of a command is a load. Their text is kept as well, in the order in which it has an effect, since
//! it is what users see and what files hold.

use crate::acl::pattern::Pattern;
use crate::catalog::needs::{Channels, KeyRights};
use crate::catalog::{Catalog, Description, Flags, categories};

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
    fn filled(word: u64, catalog: &Catalog) -> CommandBits {
        let count = catalog.all().len();
        CommandBits(vec![word; count.div_ceil(64)].into())
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

    fn has_all(&self, catalog: &Catalog) -> bool {
        catalog.all().iter().all(|command| self.has(command))
    }
}

/// Whether a rule gives or takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
}

impl Sign {
    fn mark(self) -> u8 {
        match self {
            Sign::Plus => b'+',
            Sign::Minus => b'-',
        }
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
    /// Whether the rules begin with all commands.
    begins_with_all: bool,
    /// The rules about commands behind that, such as `+get` and `-@admin`.
    rules: Vec<Vec<u8>>,
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
            commands: CommandBits::filled(0, catalog),
            begins_with_all: false,
            rules: Vec::new(),
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
                [b'~', pattern @ ..] => self.add_keys(KeyRights::all(), pattern)?,
                [b'%', rest @ ..] => {
                    let (rights, pattern) = key_rights(rest).ok_or(RuleError::Syntax)?;
                    self.add_keys(rights, pattern)?;
                }
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
        self.begins_with_all = sign == Sign::Plus;
        let word = if self.begins_with_all { u64::MAX } else { 0 };
        self.commands = CommandBits::filled(word, self.catalog);
        self.rules.clear();
        self.first_arguments.clear();
    }

    fn add_keys(&mut self, rights: KeyRights, pattern: &[u8]) -> Result<(), RuleError> {
        let Names::Of(keys) = &mut self.keys else { return Err(RuleError::AllKeys) };
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
        let class = categories::find(name).ok_or(RuleError::Unknown)?;
        for command in self.catalog.of_class(class) {
            self.set_bits(command, sign);
        }
        self.keep_rule(sign, &[b"@", name].concat());
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
            let allowed = (command.id, argument.to_ascii_lowercase().into());
            if !self.first_arguments.contains(&allowed) {
                self.first_arguments.push(allowed);
            }
            self.keep_rule(Sign::Plus, name);
            return Ok(());
        }
        let command = self.catalog.find(name).ok_or(RuleError::Unknown)?;
        self.set_command(command, Sign::Plus);
        Ok(())
    }

    fn set_command(&mut self, command: &Description, sign: Sign) {
        self.set_bits(command, sign);
        self.keep_rule(sign, command.name.as_bytes());
    }

    fn set_bits(&mut self, command: &Description, sign: Sign) {
        self.commands.set(self.catalog.with_subcommands(command), sign);
        self.first_arguments.retain(|(id, _)| *id != command.id);
    }

    /// Keeps the text of a rule behind the others, and drops those that have no effect any more: the
    /// same, and those about its subcommands or first arguments.
    fn keep_rule(&mut self, sign: Sign, name: &[u8]) {
        let name = name.to_ascii_lowercase();
        self.rules.retain(|old| {
            let behind = old[1..].strip_prefix(&*name);
            !behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(b"|"))
        });
        self.rules.push([&[sign.mark()], &*name].concat());
    }

    /// Whether a command may be called with these arguments, of which the first is its name.
    pub(crate) fn check(&self, command: &Description, args: &[&[u8]]) -> Result<(), Denied> {
        if !self.commands.has(command)
            && !command.flags.contains(Flags::NO_AUTH)
            && !self.allows_first_argument(command, args)
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
    fn allows_first_argument(&self, command: &Description, args: &[&[u8]]) -> bool {
        args.get(1).is_some_and(|first| {
            let is_it = |(id, argument): &(usize, Box<[u8]>)| {
                *id == command.id && argument.eq_ignore_ascii_case(first)
            };
            self.first_arguments.iter().any(is_it)
        })
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

    /// The rules about commands.
    pub(crate) fn command_rules(&self) -> Vec<u8> {
        let first = if self.begins_with_all { b"+@all" } else { b"-@all" }.to_vec();
        joined(std::iter::once(first).chain(self.rules.iter().cloned()))
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
