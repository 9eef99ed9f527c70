//! What is known of a client.

use std::sync::Arc;

use crate::acl::{Context, Denied, Login, Reason, User, UserHasGone};
use crate::clients::{Entry, Kind, Seen, Subscriptions};
use crate::command::Command;
use crate::protocol::reply::{Protocol, Reply};
use crate::protocol::request::Limits;
use crate::service::Service;
use crate::store::format::Millis;
use crate::watched::Watch;

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

/// Bytes that an argument of a command that waits takes beside its own, about.
pub(crate) const ARGUMENT_BYTES: usize = size_of::<Vec<u8>>() + 16;

/// Commands that wait for `EXEC`.
#[derive(Default)]
pub(crate) struct Transaction {
    pub(crate) queued: Vec<(&'static Command, Vec<Vec<u8>>)>,
    /// Memory of their arguments.
    pub(crate) bytes: usize,
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
pub(crate) struct Client {
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

impl Client {
    /// Whether its reads and writes of single keys need no look at its state.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.transaction.is_none()
            && self.replies == Replies::On
            && self.subscriptions.is_none()
            && self.login.is_free()
    }

    /// Bounds of what it may send.
    pub(crate) fn limits(&self) -> Limits {
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

    pub(crate) fn show_user(&self) {
        let user = self.login.user();
        let mut seen = self.entry.seen();
        seen.user = String::from_utf8_lossy(&user.name).into_owned().into();
        seen.user_id = user.id;
    }

    /// Sees changes of users. A client whose user has gone, or may not have its subscriptions any
    /// more, is closed.
    pub(crate) fn see_users(&mut self, service: &Service) {
        match self.login.refresh(&service.users) {
            Ok(false) => {}
            Ok(true) => {
                let subscriptions = self.subscriptions.as_ref();
                if subscriptions.is_some_and(|all| !all.are_allowed(self.login.user())) {
                    self.is_closing = true;
                }
            }
            Err(UserHasGone) => self.is_closing = true,
        }
    }

    /// Whether its user may call a command now; a refusal is noted.
    pub(crate) fn check_rights(
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
    pub(crate) fn show(&self, more: impl FnOnce(&mut Seen)) {
        let mut seen = self.entry.seen();
        if seen.protocol != self.protocol {
            seen.protocol = self.protocol;
            self.entry.mailbox.set_protocol(self.protocol);
        }
        seen.at = self.now;
        seen.command = self.last_command;
        seen.database = self.database;
        seen.queued = self.transaction.as_ref().map(|transaction| transaction.queued.len());
        seen.bytes_queued = self.transaction.as_ref().map_or(0, |transaction| transaction.bytes);
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
        let bytes_max = service.clients.limits.unread_bytes(true);
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
    pub(crate) fn is_silenced(&mut self, out: &mut Vec<u8>, before: usize) -> bool {
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
