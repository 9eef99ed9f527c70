//! Commands about the connection.

use crate::catalog::{Categories, Flags};
use crate::command::acl::authenticate;
use crate::command::arguments::{database, integer, is};
use crate::command::client::{Client, Replies};
use crate::command::{Answer, Call, Command, Run, pubsub};
use crate::protocol::reply::Protocol;
use crate::refusal::Refusal;

const fn connection(name: &'static str, arity: isize, run: Run) -> Command {
    Command::new("connection", name, arity, run).categories(Categories::CONNECTION).fast()
}

/// Flags of a command that ends what the client is at.
const AT_ANY_TIME: Flags = Flags::NO_AUTH.union(Flags::NOT_QUEUED).union(Flags::WHILE_LISTENING);

pub(crate) const COMMANDS: &[Command] = &[
    connection("ping", -1, ping).flags(Flags::WHILE_LISTENING).about(
        "1.0.0",
        "[message]",
        "Returns the server's liveliness response.",
    ),
    connection("echo", 2, echo).about("1.0.0", "message", "Returns the given string."),
    connection("select", 2, select).about("1.0.0", "index", "Changes the selected database."),
    connection("quit", -1, quit).flags(AT_ANY_TIME).about("1.0.0", "", "Closes the connection."),
    connection("reset", 1, reset).flags(AT_ANY_TIME).about("6.2.0", "", "Resets the connection."),
    connection("hello", -1, hello).flags(Flags::NO_AUTH.union(Flags::SENSITIVE)).about(
        "6.0.0",
        "[protover [AUTH username password] [SETNAME clientname]]",
        "Handshakes with the server.",
    ),
];

fn ping(call: &mut Call<'_>) -> Answer {
    if call.client.is_listening() && call.args.len() <= 2 {
        // In the form of a message, since nothing else comes.
        call.reply.array(2);
        call.reply.bulk(b"pong");
        call.reply.bulk(call.args.get(1).copied().unwrap_or_default());
        return Ok(());
    }
    match call.args[1..] {
        [] => call.reply.simple("PONG"),
        [message] => call.reply.bulk(message),
        _ => return Err(Refusal::arguments("ping")),
    }
    Ok(())
}

fn echo(call: &mut Call<'_>) -> Answer {
    call.reply.bulk(call.args[1]);
    Ok(())
}

fn select(call: &mut Call<'_>) -> Answer {
    let number = database(call.args[1], call.access.databases().count())?;
    call.keys_of(number)?;
    call.client.database = number;
    call.reply.simple("OK");
    Ok(())
}

fn quit(call: &mut Call<'_>) -> Answer {
    call.client.is_closing = true;
    call.reply.simple("OK");
    Ok(())
}

fn reset(call: &mut Call<'_>) -> Answer {
    call.client.unwatch(call.service);
    call.client.transaction = None;
    call.client.end_subscriptions(call.service);
    // Messages from before come before the reply.
    pubsub::deliver(call);
    call.client.replies = Replies::On;
    call.client.database = 0;
    call.client.protocol = Protocol::Resp2;
    call.client.log_out(call.service);
    call.client.show(|seen| {
        seen.name = None;
        seen.no_evict = false;
        seen.no_touch = false;
    });
    call.reply.set_protocol(Protocol::Resp2);
    call.reply.simple("RESET");
    Ok(())
}

const HELLO_NEEDS_LOGIN: Refusal = Refusal::text(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
     <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP \
     protocol version at the same time",
);

fn hello(call: &mut Call<'_>) -> Answer {
    let mut args = call.args[1..].iter();
    let protocol = match args.next() {
        None => call.client.protocol,
        Some(version) => match integer(version) {
            Ok(2) => Protocol::Resp2,
            Ok(3) => Protocol::Resp3,
            Ok(_) => return Err(Refusal::text("NOPROTO unsupported protocol version")),
            Err(_) => {
                return Err(Refusal::text(
                    "ERR Protocol version is not an integer or out of range",
                ));
            }
        },
    };
    let mut login = None;
    let mut client_name = None;
    let mut rest = args.as_slice();
    loop {
        rest = match rest {
            [] => break,
            [option, name, password, rest @ ..] if is(option, "auth") => {
                login = Some((name, password));
                rest
            }
            [option, name, rest @ ..] if is(option, "setname") => {
                client_name = Some(Client::checked_name(name)?);
                rest
            }
            [option, ..] => {
                let option = String::from_utf8_lossy(option);
                return Err(Refusal::err(format!("Syntax error in HELLO option '{option}'")));
            }
        };
    }
    if let Some((name, password)) = login {
        authenticate(call.service, call.client, call.args[0], name, password)?;
    }
    if !call.client.login.is_authenticated() {
        return Err(HELLO_NEEDS_LOGIN);
    }
    if let Some(name) = client_name {
        call.client.set_name(name.as_bytes())?;
    }
    call.client.protocol = protocol;
    call.reply.set_protocol(protocol);
    let reply = &mut call.reply;
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(crate::REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(if protocol == Protocol::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(call.client.id as i64);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}
