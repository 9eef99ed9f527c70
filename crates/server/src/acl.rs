//! Users and their rights, as Redis 7 has them.
//!
//! | module | holds |
//! |---|---|
//! | `password` | hashes of passwords |
//! | `pattern` | patterns of keys and channels |
//! | `selector` | commands, keys and channels that rules allow |
//! | `user` | a user: passwords and selectors |
//! | `log` | the latest refusals |
//! | `file` | users in a file |
//! | `login` | the user that a session is |
//!
//! A user is replaced as a whole when its rules change, and a number is raised that each session
//! compares with the one that it saw: a check of a command takes no lock. Passwords are kept as
//! hashes, and no text for debugging, no reply and no log shows them, but `ACL GETUSER` and
//! `ACL LIST`, which show the hashes.

mod file;
mod log;
mod login;
mod password;
mod pattern;
mod selector;
mod user;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crossbeam_utils::CachePadded;

use crate::catalog::Catalog;

pub use file::FileError;
pub(crate) use log::{Context, Log, Reason};
pub(crate) use login::{Login, UserHasGone};
pub use password::Secret;
pub(crate) use password::hex;
pub(crate) use selector::{Denied, Selector, has_spaces};
pub use selector::{NewUsersChannels, RuleError};
pub(crate) use user::{DEFAULT, User};

/// Whether clients of other machines are turned away while no password is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtectedMode {
    /// They are.
    #[default]
    On,
    /// They are served.
    Off,
}

/// Choices about users.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The password of the user that clients are at first; without one, none is needed.
    pub requirepass: Option<Secret>,
    /// Whether clients of other machines are turned away while no password is set.
    pub protected_mode: ProtectedMode,
    /// Channels of users that have just been made.
    pub new_users_channels: NewUsersChannels,
}

/// A refused rule, and which it was; the text shows no password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SetError {
    #[error("Unmatched parenthesis in acl selector starting at '{0}'.")]
    Parenthesis(String),
    #[error("Error in ACL SETUSER modifier '{rule}': {cause}")]
    Rule { rule: String, cause: RuleError },
}

#[derive(Debug)]
struct Known {
    catalog: &'static Catalog,
    by_name: BTreeMap<Box<[u8]>, Arc<User>>,
    last_id: u64,
    new_channels: NewUsersChannels,
}

/// All users.
#[derive(Debug)]
pub(crate) struct Users {
    /// The commands that rules name.
    catalog: &'static Catalog,
    /// Raised with every change of a user. Written under the lock.
    version: CachePadded<AtomicU64>,
    known: RwLock<Known>,
    is_protected: AtomicBool,
    file: Option<PathBuf>,
    pub(crate) log: Log,
}

impl Users {
    /// One that may do all, with the password that was chosen.
    pub(crate) fn new(options: &Options, catalog: &'static Catalog) -> Users {
        let new_channels = options.new_users_channels;
        let known = Known { catalog, by_name: BTreeMap::new(), last_id: 0, new_channels };
        let users = Users {
            catalog,
            version: CachePadded::default(),
            known: RwLock::new(known),
            is_protected: AtomicBool::new(options.protected_mode == ProtectedMode::On),
            file: None,
            log: Log::default(),
        };
        users.change(|known| {
            known.last_id += 1;
            known.insert(User::unrestricted(catalog, known.last_id, new_channels));
        });
        users.set_default_password(options.requirepass.as_ref());
        users
    }

    /// Those of a file, which `ACL LOAD` and `ACL SAVE` use as well.
    pub(crate) fn set_file(&mut self, path: PathBuf) -> Result<(), FileError> {
        self.file = Some(path);
        self.load()
    }

    /// The commands that rules name.
    pub(crate) fn catalog(&self) -> &'static Catalog {
        self.catalog
    }

    /// A number that grows whenever a user changes.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        // Acquire: pairs with the Release in `change`.
        self.version.load(Ordering::Acquire)
    }

    /// A user by name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<Arc<User>> {
        self.read(|known| known.by_name.get(name).map(Arc::clone))
    }

    /// All users, by name.
    pub(crate) fn all(&self) -> Vec<Arc<User>> {
        self.read(|known| known.by_name.values().map(Arc::clone).collect())
    }

    /// The user that clients are at first. It is always there.
    pub(crate) fn default_user(&self) -> Arc<User> {
        let powerless = || User::new(self.catalog, 0, DEFAULT, NewUsersChannels::None);
        self.get(DEFAULT).unwrap_or_else(|| Arc::new(powerless()))
    }

    /// A user, if the password is right. The time tells nothing of whether there is such a user.
    pub(crate) fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        match self.get(name) {
            Some(user) => user.takes(password).then_some(user),
            None => {
                User::take_none(password);
                None
            }
        }
    }

    /// Makes a user, or changes one: by all rules, or by none if one is refused.
    pub(crate) fn set(&self, name: &[u8], rules: &[&[u8]]) -> Result<Arc<User>, SetError> {
        let rules = merge_selectors(rules).map_err(|at| SetError::Parenthesis(text(&at)))?;
        self.change(|known| {
            let mut user = known.user_or_new(name);
            for rule in &rules {
                user.apply(rule)
                    .map_err(|cause| SetError::Rule { rule: without_password(rule), cause })?;
            }
            Ok(known.insert(user))
        })
    }

    /// Forgets users; answers those that there were. The first one stays always.
    pub(crate) fn remove(&self, names: &[&[u8]]) -> Vec<Arc<User>> {
        let is_other = |name: &&&[u8]| **name != DEFAULT;
        self.change(|known| {
            let names = names.iter().filter(is_other);
            names.filter_map(|name| known.by_name.remove(*name)).collect()
        })
    }

    /// Sets the password of the user that clients are at first, or takes it away: no password is
    /// needed then.
    pub(crate) fn set_default_password(&self, password: Option<&Secret>) {
        self.change(|known| {
            let mut user = known.user_or_new(DEFAULT);
            let rule = match password {
                Some(password) => [b">", password.bytes()].concat(),
                None => b"nopass".to_vec(),
            };
            let applied = user.apply(b"resetpass").and_then(|()| user.apply(&rule));
            debug_assert_eq!(applied, Ok(()), "these are rules");
            known.insert(user);
        });
    }

    /// Sets the channels of users that are made from here on.
    pub(crate) fn set_new_users_channels(&self, channels: NewUsersChannels) {
        self.change(|known| known.new_channels = channels);
    }

    /// Sets whether clients of other machines are turned away while no password is set.
    pub(crate) fn set_protected_mode(&self, mode: ProtectedMode) {
        // Relaxed: it tells nothing of other memory.
        self.is_protected.store(mode == ProtectedMode::On, Ordering::Relaxed);
    }

    /// The channels of users that are made from here on.
    pub(crate) fn new_users_channels(&self) -> NewUsersChannels {
        self.known.read().unwrap_or_else(PoisonError::into_inner).new_channels
    }

    /// Whether clients of other machines are turned away while no password is set.
    pub(crate) fn is_protected(&self) -> bool {
        // Relaxed: as below.
        self.is_protected.load(Ordering::Relaxed)
    }

    /// Whether clients of this machine alone are served.
    pub(crate) fn serves_this_machine_only(&self) -> bool {
        // Relaxed: as above.
        self.is_protected.load(Ordering::Relaxed) && self.default_user().needs_no_password()
    }

    /// Whether there is a file of users.
    pub(crate) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Replaces all users by those of the file, or none if it is wrong. A user of the same name
    /// stays the same one, so that its sessions go on.
    pub(crate) fn load(&self) -> Result<(), FileError> {
        let path = self.file.as_deref().ok_or(FileError::NoFile)?;
        let new_channels = self.read(|known| known.new_channels);
        let read = file::read(path, self.catalog, new_channels)?;
        self.change(|known| {
            let mut old = std::mem::take(&mut known.by_name);
            for mut user in read {
                user.id = match old.get(&user.name) {
                    Some(old) => old.id,
                    None => known.next_id(),
                };
                known.insert(user);
            }
            if !known.by_name.contains_key(DEFAULT) {
                // Its password stays as it was: a file without it opens no door.
                known.by_name.extend(old.remove_entry(DEFAULT));
            }
        });
        Ok(())
    }

    /// Writes all users to the file.
    pub(crate) fn save(&self) -> Result<(), FileError> {
        let path = self.file.as_deref().ok_or(FileError::NoFile)?;
        file::write(path, &self.all())
    }

    fn read<R>(&self, read: impl FnOnce(&Known) -> R) -> R {
        read(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<R>(&self, change: impl FnOnce(&mut Known) -> R) -> R {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let answer = change(&mut known);
        // Release: pairs with the Acquire in `version`.
        self.version.fetch_add(1, Ordering::Release);
        answer
    }
}

impl Known {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn user_or_new(&mut self, name: &[u8]) -> User {
        match self.by_name.get(name) {
            Some(user) => user.with_new_channels(self.new_channels),
            None => User::new(self.catalog, self.next_id(), name, self.new_channels),
        }
    }

    fn insert(&mut self, user: User) -> Arc<User> {
        let user = Arc::new(user);
        self.by_name.insert(user.name.clone(), Arc::clone(&user));
        user
    }
}

/// Rules of which a selector may come in several arguments, in one argument each; else the argument
/// whose parenthesis is not closed.
fn merge_selectors(rules: &[&[u8]]) -> Result<Vec<Vec<u8>>, Vec<u8>> {
    let mut merged: Vec<Vec<u8>> = Vec::with_capacity(rules.len());
    let mut open: Option<(usize, Vec<u8>)> = None;
    for (at, rule) in rules.iter().enumerate() {
        open = match open.take() {
            None if rule.starts_with(b"(") && !rule.ends_with(b")") => Some((at, rule.to_vec())),
            None => {
                merged.push(rule.to_vec());
                None
            }
            Some((begin, selector)) => {
                let selector = [&*selector, b" ", rule].concat();
                if rule.ends_with(b")") {
                    merged.push(selector);
                    None
                } else {
                    Some((begin, selector))
                }
            }
        };
    }
    match open {
        Some((begin, _)) => Err(rules[begin].to_vec()),
        None => Ok(merged),
    }
}

/// The text of a rule, of one about a password only its mark.
fn without_password(rule: &[u8]) -> String {
    match rule {
        [mark @ (b'>' | b'<' | b'#' | b'!'), ..] => format!("{}(hidden)", char::from(*mark)),
        rule => text(rule),
    }
}

/// Bytes as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
