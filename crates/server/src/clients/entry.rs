//! What others see of a client.

use std::borrow::Cow;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clients::mailbox::{Mailbox, Order};
use crate::protocol::reply::Protocol;
use crate::store::format::Millis;

/// The place that a client comes from.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// The process itself.
    Within,
    /// A TCP connection.
    Tcp { peer: SocketAddr, local: SocketAddr, descriptor: i32 },
    /// A connection to a path.
    Unix { path: Arc<Path>, descriptor: i32 },
}

impl Origin {
    pub(crate) fn is_remote(&self) -> bool {
        !matches!(self, Origin::Within)
    }

    /// Whether the client is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Origin::Within | Origin::Unix { .. } => true,
            Origin::Tcp { peer, .. } => peer.ip().to_canonical().is_loopback(),
        }
    }

    /// The client's address, as text.
    pub(crate) fn peer(&self) -> String {
        match self {
            Origin::Within => "?:0".to_owned(),
            Origin::Tcp { peer, .. } => peer.to_string(),
            Origin::Unix { path, .. } => format!("{}:0", path.display()),
        }
    }

    /// The server's address, as text.
    pub(crate) fn local(&self) -> String {
        match self {
            Origin::Tcp { local, .. } => local.to_string(),
            other => other.peer(),
        }
    }

    fn descriptor(&self) -> i32 {
        match self {
            Origin::Within => -1,
            Origin::Tcp { descriptor, .. } | Origin::Unix { descriptor, .. } => *descriptor,
        }
    }
}

/// What a session tells of its client, once per run, and what its client tells of itself.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) name: Option<Box<str>>,
    pub(crate) library: Box<str>,
    pub(crate) library_version: Box<str>,
    pub(crate) user: Cow<'static, str>,
    /// The number of the user, which no other has.
    pub(crate) user_id: u64,
    pub(crate) protocol: Protocol,
    pub(crate) database: usize,
    /// The last moment at which something came or went.
    pub(crate) at: Millis,
    pub(crate) command: &'static str,
    /// Commands that wait for `EXEC`.
    pub(crate) queued: Option<usize>,
    pub(crate) watched: usize,
    pub(crate) is_watch_broken: bool,
    pub(crate) channels: usize,
    pub(crate) patterns: usize,
    pub(crate) shard_channels: usize,
    /// Bytes that came and are not executed yet.
    pub(crate) bytes_waiting: usize,
    /// Bytes of the commands that wait for `EXEC`.
    pub(crate) bytes_queued: usize,
    /// Bytes of replies that it has not taken.
    pub(crate) bytes_kept: usize,
    /// The moment since when it has left more unread than the soft bound.
    pub(crate) full_since: Option<Millis>,
    /// Bytes of memory that a client has that does nothing.
    pub(crate) bytes_fixed: usize,
    /// Bytes of its requests, and of all that was said to it.
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Whether it waits for a job, or for the end of a pause.
    pub(crate) is_blocked: bool,
    pub(crate) is_closing: bool,
    pub(crate) no_evict: bool,
    pub(crate) no_touch: bool,
}

impl Seen {
    /// Whether it has subscribed to messages.
    pub(crate) fn is_subscriber(&self) -> bool {
        self.channels + self.patterns + self.shard_channels > 0
    }

    fn flags(&self, origin: &Origin) -> String {
        let flags = [
            (self.is_subscriber(), 'P'),
            (self.queued.is_some(), 'x'),
            (self.is_blocked, 'b'),
            (self.is_watch_broken, 'd'),
            (self.is_closing, 'c'),
            (matches!(origin, Origin::Unix { .. }), 'U'),
            (self.no_evict, 'e'),
            (self.no_touch, 'T'),
        ];
        let flags: String = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, f)| *f).collect();
        if flags.is_empty() { "N".to_owned() } else { flags }
    }
}

/// A client, as others see it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    pub(crate) origin: Origin,
    pub(crate) since: Millis,
    pub(crate) mailbox: Mailbox,
    seen: Mutex<Seen>,
}

impl Entry {
    pub(crate) fn new(id: u64, origin: Origin, now: Millis) -> Entry {
        let seen = Seen {
            name: None,
            library: Box::default(),
            library_version: Box::default(),
            user: "default".into(),
            user_id: 0,
            protocol: Protocol::default(),
            database: 0,
            at: now,
            command: "NULL",
            queued: None,
            watched: 0,
            is_watch_broken: false,
            channels: 0,
            patterns: 0,
            shard_channels: 0,
            bytes_waiting: 0,
            bytes_queued: 0,
            bytes_kept: 0,
            full_since: None,
            bytes_fixed: 0,
            bytes_in: 0,
            bytes_out: 0,
            is_blocked: false,
            is_closing: false,
            no_evict: false,
            no_touch: false,
        };
        Entry { id, origin, since: now, mailbox: Mailbox::default(), seen: Mutex::new(seen) }
    }

    /// What is seen of it. Hold it shortly: its session waits.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends its connection; nothing that it sends is executed any more.
    pub(crate) fn kill(&self) {
        self.mailbox.order(Order::End);
    }

    /// Seconds since it came.
    pub(crate) fn age(&self, now: Millis) -> u64 {
        now.saturating_sub(self.since) / 1_000
    }

    /// Whether nothing came or went for so many milliseconds, and nothing is awaited.
    pub(crate) fn is_idle(&self, now: Millis, millis: Millis) -> bool {
        let seen = self.seen();
        now.saturating_sub(seen.at) > millis && !seen.is_blocked && !seen.is_subscriber()
    }

    /// A line of `CLIENT LIST`.
    pub(crate) fn describe(&self, now: Millis) -> String {
        let seen = self.seen().clone();
        let mut line = String::new();
        // Replies and messages that it has not taken.
        let waiting = seen.bytes_kept + self.mailbox.bytes();
        let queued = seen.queued.map_or(-1, |count| count as i64);
        let protocol = if seen.protocol == Protocol::Resp3 { 3 } else { 2 };
        // A string takes whatever is written.
        let _ = write!(
            line,
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} \
             ssub={} multi={} watch={} qbuf={} qbuf-free=0 argv-mem=0 multi-mem={} rbs=0 rbp=0 \
             obl=0 oll={} omem={} tot-mem={} events=r cmd={} user={} redir=-1 resp={} lib-name={} \
             lib-ver={} tot-net-in={} tot-net-out={}",
            self.id,
            self.origin.peer(),
            self.origin.local(),
            self.origin.descriptor(),
            seen.name.as_deref().unwrap_or_default(),
            self.age(now),
            now.saturating_sub(seen.at) / 1_000,
            seen.flags(&self.origin),
            seen.database,
            seen.channels,
            seen.patterns,
            seen.shard_channels,
            queued,
            seen.watched,
            seen.bytes_waiting,
            seen.bytes_queued,
            u8::from(waiting > 0),
            waiting,
            seen.bytes_fixed + seen.bytes_waiting + seen.bytes_queued + waiting,
            seen.command,
            seen.user,
            protocol,
            seen.library,
            seen.library_version,
            seen.bytes_in,
            seen.bytes_out,
        );
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_this_machine_are_local() {
        let tcp = |peer: &str| {
            let peer = peer.parse().expect("an address");
            Origin::Tcp { peer, local: peer, descriptor: 3 }.is_local()
        };
        for address in ["127.0.0.1:7", "127.9.9.9:7", "[::1]:7", "[::ffff:127.0.0.1]:7"] {
            assert!(tcp(address), "{address}");
        }
        assert!(!tcp("192.0.2.1:7") && !tcp("[2001:db8::1]:7"));
        assert!(Origin::Unix { path: Path::new("/s").into(), descriptor: 3 }.is_local());
        assert!(Origin::Within.is_local());
    }
}
