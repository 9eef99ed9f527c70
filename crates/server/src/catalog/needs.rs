//! The rights that a command needs on the keys and channels among its arguments.

use bitflags::bitflags;

use crate::catalog::{Description, Flags};

bitflags! {
    /// What a command does with a key.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct KeyRights: u8 {
        /// It shows the value, or a part of it.
        const READ = 1;
        /// It changes the value, or takes it away.
        const WRITE = 1 << 1;
    }
}

/// Channels among the arguments of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channels {
    /// None.
    None,
    /// The first argument is one.
    First,
    /// All arguments are.
    All,
    /// All arguments are patterns of them.
    Patterns,
}

/// The rights that a command needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    /// Those on its first key.
    first: KeyRights,
    /// Those on its other keys.
    others: KeyRights,
    /// Its channels.
    pub(crate) channels: Channels,
}

/// Commands that tell whether a key is there, and of what kind its value is, but not the value. Any
/// right on the key will do.
const OF_NO_VALUE: &[&str] = &["exists", "touch", "type", "strlen", "watch"];

/// Commands that change a value without showing what it was.
const BLIND: &[&str] = &[
    "append",
    "del",
    "expire",
    "expireat",
    "mset",
    "msetnx",
    "persist",
    "pexpire",
    "pexpireat",
    "psetex",
    "set",
    "setex",
    "setnx",
    "setrange",
    "sw.create",
    "sw.drop",
    "sw.ingest",
    "sw.madd",
    "sw.mput",
    "sw.put",
    "sw.remove",
    "unlink",
];

impl Needs {
    /// Those of a command. A command that writes reads as well, unless it is known not to.
    pub(crate) fn of(command: &Description) -> Needs {
        let name = command.name;
        let container = name.split_once('|').map_or("", |(container, _)| container);
        let (first, others) = match name {
            // The value moves, or is copied, from the first to the second.
            "rename" | "renamenx" => (KeyRights::all(), KeyRights::WRITE),
            "copy" => (KeyRights::READ, KeyRights::WRITE),
            name if OF_NO_VALUE.contains(&name) || ["object", "memory"].contains(&container) => {
                (KeyRights::empty(), KeyRights::empty())
            }
            name if BLIND.contains(&name) => (KeyRights::WRITE, KeyRights::WRITE),
            _ if command.flags.contains(Flags::WRITE) => (KeyRights::all(), KeyRights::all()),
            _ => (KeyRights::READ, KeyRights::READ),
        };
        let channels = match name {
            "publish" | "spublish" => Channels::First,
            "subscribe" | "ssubscribe" => Channels::All,
            "psubscribe" => Channels::Patterns,
            _ => Channels::None,
        };
        Needs { first, others, channels }
    }

    /// The rights on a key, by whether it is the first.
    pub(crate) fn on_key(&self, command: &Description, args: &[&[u8]], at: usize) -> KeyRights {
        if at != command.keys.first {
            return self.others;
        }
        // The value that is replaced is shown.
        let shows_old = command.name == "set"
            && args
                .get(3..)
                .is_some_and(|rest| rest.iter().any(|o| o.eq_ignore_ascii_case(b"get")));
        if shows_old { KeyRights::all() } else { self.first }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command;

    #[test]
    fn commands_of_the_lists_are_there() {
        for name in OF_NO_VALUE.iter().chain(BLIND) {
            let command = command::find(name.as_bytes()).expect(name);
            assert!(command.keys.first > 0, "{name} has no keys");
        }
    }

    #[test]
    fn blind_commands_write_and_the_others_do_not() {
        let writes = |name: &&str| {
            command::find(name.as_bytes()).is_some_and(|it| it.flags.contains(Flags::WRITE))
        };
        assert!(BLIND.iter().all(writes));
        assert!(!OF_NO_VALUE.iter().any(writes));
    }
}
