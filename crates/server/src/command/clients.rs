//! `CLIENT`: what clients are and do, and orders for them.

use std::sync::Arc;

use crate::catalog::{Categories, Flags};
use crate::clients::{Entry, Paused};
use crate::command::arguments::{help, integer, is, subcommand_arguments};
use crate::command::client::{Client, Replies};
use crate::command::{Answer, Call, Command, Run};
use crate::refusal::{Refusal, SYNTAX};

const fn client(name: &'static str, arity: isize, run: Run) -> Command {
    Command::new("connection", name, arity, run).categories(Categories::CONNECTION)
}

const fn admin(name: &'static str, arity: isize, run: Run) -> Command {
    client(name, arity, run).flags(Flags::ADMIN)
}

pub(crate) const COMMANDS: &[Command] =
    &[Command::new("connection", "client", -2, |_| Err(Refusal::arguments("client")))
        .about("2.4.0", "", "A container for client connection commands.")
        .subcommands(CLIENT)];

const CLIENT: &[Command] = &[
    client("client|id", 2, id).about(
        "5.0.0",
        "",
        "Returns the unique client ID of the connection.",
    ),
    client("client|getname", 2, getname).about("2.6.9", "", "Returns the name of the connection."),
    client("client|setname", 3, setname).about(
        "2.6.9",
        "connection-name",
        "Sets the connection name.",
    ),
    client("client|setinfo", 4, setinfo).about(
        "7.2.0",
        "<LIB-NAME libname | LIB-VER libver>",
        "Sets information specific to the client or connection.",
    ),
    client("client|info", 2, info).about("6.2.0", "", "Returns information about the connection."),
    admin("client|list", -2, list).about(
        "2.4.0",
        "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]",
        "Lists open connections.",
    ),
    admin("client|kill", -3, kill).about(
        "2.4.0",
        "<ip:port | <[ID client-id] | [TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] | [USER \
         username] | [ADDR ip:port] | [LADDR ip:port] | [SKIPME <YES | NO>] | [MAXAGE maxage] \
         [...]>>",
        "Terminates open connections.",
    ),
    admin("client|no-evict", 3, no_evict).about(
        "7.0.0",
        "<ON | OFF>",
        "Sets the client eviction mode of the connection.",
    ),
    client("client|no-touch", 3, no_touch).about(
        "7.2.0",
        "<ON | OFF>",
        "Controls whether commands sent by the client affect the LRU/LFU of accessed keys.",
    ),
    client("client|reply", 3, reply).about(
        "3.2.0",
        "<ON | OFF | SKIP>",
        "Instructs the server whether to reply to commands.",
    ),
    admin("client|pause", -3, pause).alone().about(
        "3.0.0",
        "timeout [WRITE | ALL]",
        "Suspends commands processing.",
    ),
    admin("client|unpause", 2, unpause).about(
        "6.2.0",
        "",
        "Resumes processing commands from paused clients.",
    ),
    admin("client|unblock", -3, unblock).about(
        "5.0.0",
        "client-id [TIMEOUT | ERROR]",
        "Unblocks a client blocked by a blocking command from a different connection.",
    ),
    client("client|tracking", -3, tracking).about(
        "6.0.0",
        "<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] \
         [OPTOUT] [NOLOOP]",
        "Controls server-assisted client-side caching for the connection.",
    ),
    client("client|trackinginfo", 2, trackinginfo).about(
        "6.2.0",
        "",
        "Returns information about server-assisted client-side caching for the connection.",
    ),
    client("client|getredir", 2, getredir).about(
        "6.0.0",
        "",
        "Returns the client ID to which the connection's tracking notifications are redirected.",
    ),
    client("client|caching", 3, caching).about(
        "6.0.0",
        "<YES | NO>",
        "Instructs the server whether to track the keys in the next request.",
    ),
    client("client|help", 2, print_help).about(
        "5.0.0",
        "",
        "Returns helpful text about the different subcommands.",
    ),
];

fn id(call: &mut Call<'_>) -> Answer {
    call.reply.integer(call.client.id as i64);
    Ok(())
}

fn getname(call: &mut Call<'_>) -> Answer {
    match &call.client.entry.seen().name {
        Some(name) => call.reply.bulk(name.as_bytes()),
        None => call.reply.null(),
    }
    Ok(())
}

/// A text without spaces and special characters, as a line of `CLIENT LIST` can hold it.
fn plain<'a>(what: &str, text: &'a [u8]) -> Result<&'a str, Refusal> {
    match std::str::from_utf8(text) {
        Ok(text) if text.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(text),
        _ => Err(Refusal::err(format!(
            "{what} cannot contain spaces, newlines or special characters."
        ))),
    }
}

fn setname(call: &mut Call<'_>) -> Answer {
    call.client.set_name(call.args[2])?;
    call.reply.simple("OK");
    Ok(())
}

impl Client {
    /// A name that a connection may have.
    pub(crate) fn checked_name(name: &[u8]) -> Result<&str, Refusal> {
        plain("Client names", name)
    }

    /// Sets the name of the connection; an empty one takes it back.
    pub(crate) fn set_name(&self, name: &[u8]) -> Answer {
        let name = Self::checked_name(name)?;
        self.entry.seen().name = if name.is_empty() { None } else { Some(name.into()) };
        Ok(())
    }
}

fn setinfo(call: &mut Call<'_>) -> Answer {
    let (attribute, value) = (call.args[2], call.args[3]);
    let shown = String::from_utf8_lossy(attribute);
    let mut seen = call.client.entry.seen();
    if is(attribute, "lib-name") {
        seen.library = plain(&shown, value)?.into();
    } else if is(attribute, "lib-ver") {
        seen.library_version = plain(&shown, value)?.into();
    } else {
        return Err(Refusal::err(format!("Unrecognized option '{shown}'")));
    }
    drop(seen);
    call.reply.simple("OK");
    Ok(())
}

fn info(call: &mut Call<'_>) -> Answer {
    call.client.show(|_| {});
    let line = call.client.entry.describe(call.now) + "\n";
    call.reply.verbatim(&line);
    Ok(())
}

/// The types of clients that filters name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Normal,
    Pubsub,
    /// There is no replication: no client is of this type.
    Replication,
}

impl Type {
    fn of_name(name: &[u8]) -> Result<Type, Refusal> {
        if is(name, "normal") {
            Ok(Type::Normal)
        } else if is(name, "pubsub") {
            Ok(Type::Pubsub)
        } else if is(name, "slave") || is(name, "replica") || is(name, "master") {
            Ok(Type::Replication)
        } else {
            let name = String::from_utf8_lossy(name);
            Err(Refusal::err(format!("Unknown client type '{name}'")))
        }
    }

    fn is_of(self, entry: &Entry) -> bool {
        match self {
            Type::Normal => !entry.seen().is_subscriber(),
            Type::Pubsub => entry.seen().is_subscriber(),
            Type::Replication => false,
        }
    }
}

fn list(call: &mut Call<'_>) -> Answer {
    call.client.show(|_| {});
    let clients = &call.service.clients;
    let listed: Vec<Arc<Entry>> = match &call.args[2..] {
        [] => clients.all(),
        [by, name] if is(by, "type") => {
            let r#type = Type::of_name(name)?;
            clients.all().into_iter().filter(|entry| r#type.is_of(entry)).collect()
        }
        [by, ids @ ..] if is(by, "id") && !ids.is_empty() => {
            let mut listed = Vec::new();
            for id in ids {
                let id = integer(id).map_err(|_| Refusal::text("ERR Invalid client ID"))?;
                listed.extend(u64::try_from(id).ok().and_then(|id| clients.get(id)));
            }
            listed
        }
        _ => return Err(SYNTAX),
    };
    let mut lines = String::new();
    for entry in listed {
        lines += &entry.describe(call.now);
        lines.push('\n');
    }
    call.reply.verbatim(&lines);
    Ok(())
}

/// The clients that `CLIENT KILL` means.
#[derive(Debug)]
struct Filter<'a> {
    id: Option<u64>,
    peer: Option<&'a [u8]>,
    local: Option<&'a [u8]>,
    r#type: Option<Type>,
    user: Option<&'a [u8]>,
    age_seconds: u64,
    skips_caller: bool,
}

impl<'a> Filter<'a> {
    fn of(options: &[&'a [u8]]) -> Result<Filter<'a>, Refusal> {
        let mut filter = Filter {
            id: None,
            peer: None,
            local: None,
            r#type: None,
            user: None,
            age_seconds: 0,
            skips_caller: true,
        };
        if let [address] = options {
            filter.peer = Some(address);
            filter.skips_caller = false;
            return Ok(filter);
        }
        let above_zero = |value: &[u8], not_a_number: &'static str, small: &'static str| {
            let number = integer(value).map_err(|_| Refusal::text(not_a_number))?;
            let number = u64::try_from(number).unwrap_or(0);
            if number == 0 { Err(Refusal::text(small)) } else { Ok(number) }
        };
        for option in options.chunks(2) {
            let [name, value] = option else { return Err(SYNTAX) };
            if is(name, "id") {
                const SMALL: &str = "ERR client-id should be greater than 0";
                filter.id = Some(above_zero(value, SMALL, SMALL)?);
            } else if is(name, "addr") {
                filter.peer = Some(value);
            } else if is(name, "laddr") {
                filter.local = Some(value);
            } else if is(name, "type") {
                filter.r#type = Some(Type::of_name(value)?);
            } else if is(name, "user") {
                filter.user = Some(value);
            } else if is(name, "maxage") {
                filter.age_seconds = above_zero(
                    value,
                    "ERR maxage is not an integer or out of range",
                    "ERR maxage should be greater than 0",
                )?;
            } else if is(name, "skipme") && (is(value, "yes") || is(value, "no")) {
                filter.skips_caller = is(value, "yes");
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(filter)
    }

    fn means(&self, entry: &Entry, now: u64) -> bool {
        self.id.is_none_or(|id| id == entry.id)
            && self.peer.is_none_or(|peer| peer == entry.origin.peer().as_bytes())
            && self.local.is_none_or(|local| local == entry.origin.local().as_bytes())
            && self.r#type.is_none_or(|r#type| r#type.is_of(entry))
            && self.user.is_none_or(|user| user == entry.seen().user.as_bytes())
            && entry.age(now) >= self.age_seconds
    }
}

fn kill(call: &mut Call<'_>) -> Answer {
    call.client.show(|_| {});
    let filter = Filter::of(&call.args[2..])?;
    let all = call.service.clients.all();
    if let Some(user) = filter.user
        && call.service.users.get(user).is_none()
    {
        let user = String::from_utf8_lossy(user);
        return Err(Refusal::err(format!("No such user '{user}'")));
    }
    let mut killed = 0;
    for entry in all.iter().filter(|entry| filter.means(entry, call.now)) {
        if entry.id != call.client.id {
            entry.kill();
        } else if filter.skips_caller {
            continue;
        } else {
            // It gets its reply first.
            call.client.is_closing = true;
        }
        killed += 1;
    }
    match call.args.len() {
        3 if killed == 0 => return Err(Refusal::text("ERR No such client")),
        3 => call.reply.simple("OK"),
        _ => call.reply.integer(killed),
    }
    Ok(())
}

fn is_on(argument: &[u8]) -> Result<bool, Refusal> {
    match () {
        () if is(argument, "on") => Ok(true),
        () if is(argument, "off") => Ok(false),
        () => Err(SYNTAX),
    }
}

fn no_evict(call: &mut Call<'_>) -> Answer {
    let is_on = is_on(call.args[2])?;
    call.client.entry.seen().no_evict = is_on;
    call.reply.simple("OK");
    Ok(())
}

fn no_touch(call: &mut Call<'_>) -> Answer {
    let is_on = is_on(call.args[2])?;
    call.client.entry.seen().no_touch = is_on;
    call.reply.simple("OK");
    Ok(())
}

fn reply(call: &mut Call<'_>) -> Answer {
    let mode = call.args[2];
    if is(mode, "on") {
        call.client.replies = Replies::On;
        call.reply.simple("OK");
    } else if is(mode, "off") {
        call.client.replies = Replies::Off;
    } else if !is(mode, "skip") {
        return Err(SYNTAX);
    } else if call.client.replies != Replies::Off {
        call.client.replies = Replies::SkipNext;
    }
    Ok(())
}

fn pause(call: &mut Call<'_>) -> Answer {
    let what = match call.args[3..] {
        [] => Paused::All,
        [mode] if is(mode, "all") => Paused::All,
        [mode] if is(mode, "write") => Paused::Writes,
        [_] => return Err(Refusal::text("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => return Err(subcommand_arguments(call.args)),
    };
    let millis = integer(call.args[2])
        .map_err(|_| Refusal::text("ERR timeout is not an integer or out of range"))?;
    let millis = u64::try_from(millis).map_err(|_| Refusal::text("ERR timeout is negative"))?;
    call.service.clients.pause.begin(what, call.now.saturating_add(millis), call.now);
    call.reply.simple("OK");
    Ok(())
}

fn unpause(call: &mut Call<'_>) -> Answer {
    call.service.clients.unpause();
    call.reply.simple("OK");
    Ok(())
}

/// No command blocks, so there is no client to unblock.
fn unblock(call: &mut Call<'_>) -> Answer {
    match call.args[3..] {
        [] => {}
        [reason] if is(reason, "timeout") || is(reason, "error") => {}
        [_] => {
            return Err(Refusal::text("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        }
        _ => return Err(subcommand_arguments(call.args)),
    }
    integer(call.args[2])?;
    call.reply.integer(0);
    Ok(())
}

fn tracking(call: &mut Call<'_>) -> Answer {
    if is_on(call.args[2])? {
        return Err(Refusal::text(
            "ERR CLIENT TRACKING is not supported: this server sends no invalidations, so \
             client-side caches must rely on expiry",
        ));
    }
    call.reply.simple("OK");
    Ok(())
}

fn trackinginfo(call: &mut Call<'_>) -> Answer {
    let reply = &mut call.reply;
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(1);
    reply.bulk(b"off");
    reply.bulk(b"redirect");
    reply.integer(-1);
    reply.bulk(b"prefixes");
    reply.array(0);
    Ok(())
}

fn getredir(call: &mut Call<'_>) -> Answer {
    call.reply.integer(-1);
    Ok(())
}

fn caching(_: &mut Call<'_>) -> Answer {
    Err(Refusal::text(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or \
         OPTOUT mode enabled",
    ))
}

fn print_help(call: &mut Call<'_>) -> Answer {
    help(
        &mut call.reply,
        "CLIENT",
        &[
            "CACHING (YES|NO)",
            "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
            "GETREDIR",
            "    Return the client ID we are redirecting to when tracking is enabled.",
            "GETNAME",
            "    Return the name of the current connection.",
            "ID",
            "    Return the ID of the current connection.",
            "INFO",
            "    Return information about the current client connection.",
            "KILL <ip:port>",
            "    Kill connection made from <ip:port>.",
            "KILL <option> <value> [<option> <value> [...]]",
            "    Kill connections. Options are:",
            "    * ADDR (<ip:port>|<unixsocket>:0)",
            "      Kill connections made from the specified address",
            "    * LADDR (<ip:port>|<unixsocket>:0)",
            "      Kill connections made to specified local address",
            "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
            "      Kill connections by type.",
            "    * USER <username>",
            "      Kill connections authenticated by <username>.",
            "    * SKIPME (YES|NO)",
            "      Skip killing current connection (default: yes).",
            "    * ID <client-id>",
            "      Kill connections by client id.",
            "    * MAXAGE <maxage>",
            "      Kill connections older than the specified age.",
            "LIST [options ...]",
            "    Return information about client connections. Options:",
            "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
            "      Return clients of specified type.",
            "UNPAUSE",
            "    Stop the current client pause, resuming traffic.",
            "PAUSE <timeout> [WRITE|ALL]",
            "    Suspend all, or just write, clients for <timeout> milliseconds.",
            "REPLY (ON|OFF|SKIP)",
            "    Control the replies sent to the current connection.",
            "SETNAME <name>",
            "    Assign the name <name> to the current connection.",
            "SETINFO <option> <value>",
            "    Set client meta attr. Options are:",
            "    * LIB-NAME: the client lib name.",
            "    * LIB-VER: the client lib version.",
            "UNBLOCK <clientid> [TIMEOUT|ERROR]",
            "    Unblock the specified blocked client.",
            "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
            "         [OPTIN] [OPTOUT] [NOLOOP]",
            "    Control server assisted client side caching.",
            "TRACKINGINFO",
            "    Report tracking status for the current connection.",
            "NO-EVICT (ON|OFF)",
            "    Protect current client connection from eviction.",
            "NO-TOUCH (ON|OFF)",
            "    Will not touch LRU/LFU stats when this mode is on.",
        ],
    );
    Ok(())
}
