//! The user that a session is.

use std::sync::Arc;

use crate::acl::Users;
use crate::acl::user::User;

/// The user that a session is, and whether it has shown that it is.
#[derive(Debug)]
pub(crate) struct Login {
    user: Arc<User>,
    /// The number of changes of users that it has seen.
    version: u64,
    is_authenticated: bool,
    /// Whether any command may be called: it has said its password, and its user may do all.
    is_free: bool,
}

/// A session whose user is there no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UserHasGone;

impl Login {
    /// That of a client that has just come: the user of all, which may need a password.
    pub(crate) fn new(users: &Users) -> Login {
        // Before the user is looked up: a change in between is seen by the next comparison.
        let version = users.version();
        let user = users.default_user();
        let is_authenticated = user.needs_no_password() && user.is_on;
        let mut login = Login { user, version, is_authenticated, is_free: false };
        login.set_free();
        login
    }

    fn set_free(&mut self) {
        self.is_free = self.is_authenticated && self.user.allows_all();
    }

    /// Whether any command may be called.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.is_free
    }

    pub(crate) fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// Whether the client has said its password, or need not.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.is_authenticated
    }

    /// Becomes a user, for a password that was right.
    pub(crate) fn become_user(&mut self, user: Arc<User>) {
        self.user = user;
        self.is_authenticated = true;
        self.set_free();
    }

    /// Sees changes of users since the last call; true if there were any.
    ///
    /// # Errors
    /// When the user is not there any more: the session must end.
    #[inline]
    pub(crate) fn refresh(&mut self, users: &Users) -> Result<bool, UserHasGone> {
        if users.version() == self.version { Ok(false) } else { self.refresh_slow(users) }
    }

    #[cold]
    fn refresh_slow(&mut self, users: &Users) -> Result<bool, UserHasGone> {
        self.version = users.version();
        match users.get(&self.user.name) {
            // One of the same name may have been made anew.
            Some(user) if user.id == self.user.id => self.user = user,
            _ => {
                self.is_authenticated = false;
                self.is_free = false;
                return Err(UserHasGone);
            }
        }
        // A client that had to say a password need not any more.
        let is_open = self.user.needs_no_password() && self.user.is_on;
        self.is_authenticated |= is_open && &*self.user.name == crate::acl::DEFAULT;
        self.set_free();
        Ok(true)
    }
}
