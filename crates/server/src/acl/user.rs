//! A user: passwords, and selectors that say what may be called.

use subtle::Choice;

use crate::acl::password::Hash;
use crate::acl::selector::{Denied, NewUsersChannels, RuleError, Selector, joined};
use crate::catalog::{Catalog, Description};

/// The name of the user that every client is at first.
pub(crate) const DEFAULT: &[u8] = b"default";

/// How a user proves to be that user.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Passwords {
    /// Any password will do, and none.
    NotNeeded,
    /// One of these.
    Of(Vec<Hash>),
}

/// A user. It is replaced as a whole when its rules change.
#[derive(Debug, Clone)]
pub(crate) struct User {
    catalog: &'static Catalog,
    /// A number that no other user has or had, of this name or another.
    pub(crate) id: u64,
    pub(crate) name: Box<[u8]>,
    pub(crate) is_on: bool,
    passwords: Passwords,
    /// A flag of Redis for `RESTORE`, which is shown as it was given.
    payload: Option<&'static str>,
    root: Selector,
    selectors: Vec<Selector>,
    /// What a `reset` allows of channels.
    new_channels: NewUsersChannels,
    /// Whether a selector allows all.
    allows_all: bool,
}

impl User {
    /// A user as Redis makes it: off, and without any right.
    pub(crate) fn new(
        catalog: &'static Catalog,
        id: u64,
        name: &[u8],
        new_channels: NewUsersChannels,
    ) -> User {
        User {
            catalog,
            id,
            name: name.into(),
            is_on: false,
            passwords: Passwords::Of(Vec::new()),
            payload: None,
            root: Selector::new(catalog, new_channels),
            selectors: Vec::new(),
            new_channels,
            allows_all: false,
        }
    }

    /// The user that every client is at first, as it is until rules say otherwise: it may do all.
    pub(crate) fn unrestricted(
        catalog: &'static Catalog,
        id: u64,
        new_channels: NewUsersChannels,
    ) -> User {
        let mut user = User::new(catalog, id, DEFAULT, new_channels);
        for rule in ["on", "nopass", "+@all", "~*", "&*"] {
            let applied = user.apply(rule.as_bytes());
            debug_assert_eq!(applied, Ok(()), "{rule} is a rule");
        }
        user
    }

    /// The same user, whose selectors to come begin with these channels.
    pub(crate) fn with_new_channels(&self, new_channels: NewUsersChannels) -> User {
        User { new_channels, ..self.clone() }
    }

    /// Whether any command may be called, with any key and any channel.
    pub(crate) fn allows_all(&self) -> bool {
        self.allows_all
    }

    /// Whether no password is needed.
    pub(crate) fn needs_no_password(&self) -> bool {
        self.passwords == Passwords::NotNeeded
    }

    /// Whether a password is one of the user's, and the user is on.
    ///
    /// The time depends on the lengths alone, of the password and of the list. It is that of
    /// [`take_none`](User::take_none), which stands for a user that there is not.
    pub(crate) fn takes(&self, password: &[u8]) -> bool {
        let hash = Hash::of(password);
        let known: &[Hash] = match &self.passwords {
            Passwords::NotNeeded => &[],
            Passwords::Of(known) => known,
        };
        let is_known =
            known.iter().fold(hash.is(&Hash::NONE), |found, known| found | hash.is(known));
        (self.needs_no_password() || bool::from(is_known)) && self.is_on
    }

    /// Takes as long as [`takes`](User::takes), and refuses.
    pub(crate) fn take_none(password: &[u8]) -> bool {
        let hash = Hash::of(password);
        bool::from(hash.is(&Hash::NONE) & Choice::from(0))
    }

    /// Applies a rule. A rule that is refused changes nothing.
    pub(crate) fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        match &*rule.to_ascii_lowercase() {
            b"" => {}
            b"on" => self.is_on = true,
            b"off" => self.is_on = false,
            b"sanitize-payload" => self.payload = Some("sanitize-payload"),
            b"skip-sanitize-payload" => self.payload = Some("skip-sanitize-payload"),
            b"nopass" => self.passwords = Passwords::NotNeeded,
            b"resetpass" => self.passwords = Passwords::Of(Vec::new()),
            b"clearselectors" => self.selectors.clear(),
            b"reset" => {
                *self = User::new(self.catalog, self.id, &self.name, self.new_channels);
                self.payload = Some("sanitize-payload");
            }
            _ => match rule {
                [b'>', password @ ..] => self.add_password(Hash::of(password)),
                [b'#', hash @ ..] => {
                    self.add_password(Hash::from_hex(hash).ok_or(RuleError::NoHash)?);
                }
                [b'<', password @ ..] => self.remove_password(&Hash::of(password))?,
                [b'!', hash @ ..] => {
                    self.remove_password(&Hash::from_hex(hash).ok_or(RuleError::NoHash)?)?;
                }
                [b'(', inside @ .., b')'] => {
                    let mut selector = Selector::new(self.catalog, self.new_channels);
                    for rule in inside.split(u8::is_ascii_whitespace).filter(|it| !it.is_empty()) {
                        selector.apply(rule)?;
                    }
                    self.selectors.push(selector);
                }
                rule => self.root.apply(rule)?,
            },
        }
        let allows_all = self.all_selectors().any(Selector::allows_all);
        self.allows_all = allows_all;
        Ok(())
    }

    fn add_password(&mut self, hash: Hash) {
        match &mut self.passwords {
            Passwords::Of(known) if known.contains(&hash) => {}
            Passwords::Of(known) => known.push(hash),
            Passwords::NotNeeded => self.passwords = Passwords::Of(vec![hash]),
        }
    }

    fn remove_password(&mut self, hash: &Hash) -> Result<(), RuleError> {
        let Passwords::Of(known) = &mut self.passwords else { return Err(RuleError::NoPassword) };
        let at = known.iter().position(|known| known == hash).ok_or(RuleError::NoPassword)?;
        known.remove(at);
        Ok(())
    }

    fn all_selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.selectors)
    }

    /// Whether a command may be called with these arguments, of which the first is its name. If no
    /// selector allows it, the one that came furthest says why.
    pub(crate) fn check(&self, command: &Description, args: &[&[u8]]) -> Result<(), Denied> {
        if self.allows_all {
            return Ok(());
        }
        let mut furthest = Denied::Command;
        for selector in self.all_selectors() {
            match selector.check(command, args) {
                Ok(()) => return Ok(()),
                Err(denied) => furthest = furthest.max(denied),
            }
        }
        Err(furthest)
    }

    /// Whether messages of a channel may be received.
    pub(crate) fn allows_channel(&self, channel: &[u8]) -> bool {
        self.all_selectors().any(|selector| selector.allows_channel(channel))
    }

    /// Whether messages of all channels of a pattern may be received.
    pub(crate) fn allows_channels(&self, pattern: &[u8]) -> bool {
        self.all_selectors().any(|selector| selector.allows_channels(pattern))
    }

    /// The words for what is not about commands, keys or channels.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.is_on { "on" } else { "off" }];
        if self.needs_no_password() {
            flags.push("nopass");
        }
        flags.extend(self.payload);
        flags
    }

    /// The hashes of the passwords, in hexadecimal digits.
    pub(crate) fn hashes(&self) -> Vec<String> {
        match &self.passwords {
            Passwords::NotNeeded => Vec::new(),
            Passwords::Of(known) => known.iter().map(|hash| hash.to_hex()).collect(),
        }
    }

    /// The selector without parentheses.
    pub(crate) fn root(&self) -> &Selector {
        &self.root
    }

    /// The selectors in parentheses.
    pub(crate) fn selectors(&self) -> &[Selector] {
        &self.selectors
    }

    /// The user as a line of a file.
    pub(crate) fn describe(&self) -> Vec<u8> {
        let mut parts = vec![b"user".to_vec(), self.name.to_vec()];
        parts.extend(self.flags().into_iter().map(|flag| flag.as_bytes().to_vec()));
        parts.extend(self.hashes().into_iter().map(|hash| format!("#{hash}").into_bytes()));
        parts.push(self.root.describe());
        parts.extend(self.selectors.iter().map(|it| [b"(", &*it.describe(), b")"].concat()));
        joined(parts.into_iter())
    }
}
