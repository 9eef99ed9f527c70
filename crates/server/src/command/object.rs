//! `OBJECT`: how a value is stored, in the words of Redis.

use crate::catalog::Categories;
use crate::command::strings::is_integer;
use crate::command::{Answer, Call, Command, Run};
use crate::refusal::Refusal;

/// Bytes of the longest value that Redis keeps in one piece with its head.
const EMBEDDED_BYTES_MAX: usize = 44;

const fn object(name: &'static str, run: Run) -> Command {
    Command::new("generic", name, 3, run).categories(Categories::KEYSPACE).reads().keys(2, 2, 1)
}

pub(crate) const COMMANDS: &[Command] = &[Command::new("generic", "object", -2, help)
    .about("2.2.3", "subcommand", "A container for object introspection commands.")
    .subcommands(&[
        object("object|encoding", encoding).about(
            "2.2.3",
            "key",
            "Returns the internal encoding of a Redis object.",
        ),
        object("object|freq", freq).about(
            "4.0.0",
            "key",
            "Returns the logarithmic access frequency counter of a Redis object.",
        ),
        object("object|idletime", idletime).about(
            "2.2.3",
            "key",
            "Returns the time since the last access to a Redis object.",
        ),
        object("object|refcount", refcount).about(
            "2.2.3",
            "key",
            "Returns the reference count of a value of a key.",
        ),
        Command::new("generic", "object|help", 2, help).categories(Categories::KEYSPACE).about(
            "6.2.0",
            "",
            "Returns helpful text about the different subcommands.",
        ),
    ])];

fn encoding(call: &mut Call<'_>) -> Answer {
    let key = call.args[2];
    let (keys, reply) = call.open()?;
    keys.get_with(key, |current| match current.map(|current| current.value) {
        None => reply.null(),
        Some(value) if is_integer(value) => reply.bulk(b"int"),
        Some(value) if value.len() <= EMBEDDED_BYTES_MAX => reply.bulk(b"embstr"),
        Some(_) => reply.bulk(b"raw"),
    })?;
    Ok(())
}

fn number(call: &mut Call<'_>, number: i64) -> Answer {
    let key = call.args[2];
    let (keys, reply) = call.open()?;
    match keys.contains(key)? {
        true => reply.integer(number),
        false => reply.null(),
    }
    Ok(())
}

fn refcount(call: &mut Call<'_>) -> Answer {
    number(call, 1)
}

/// Times of access are not kept: they would be a write for each read.
fn idletime(call: &mut Call<'_>) -> Answer {
    number(call, 0)
}

fn freq(call: &mut Call<'_>) -> Answer {
    let key = call.args[2];
    if !call.keys()?.contains(key)? {
        call.reply.null();
        return Ok(());
    }
    Err(Refusal::text(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note \
         that when switching between policies at runtime LRU and LFU data will take some time to \
         adjust.",
    ))
}

fn help(call: &mut Call<'_>) -> Answer {
    super::server::write_help(
        call,
        "OBJECT",
        &[
            "ENCODING <key>",
            "    Return the kind of internal representation used in order to store the value",
            "    associated with a <key>.",
            "FREQ <key>",
            "    Return the access frequency index of the <key>. The returned integer is",
            "    proportional to the logarithm of the real access frequency.",
            "IDLETIME <key>",
            "    Return the idle time of the <key>, that is the approximated number of",
            "    seconds elapsed since the last access to the key.",
            "REFCOUNT <key>",
            "    Return the number of references of the value associated with the specified",
            "    <key>.",
        ],
    );
    Ok(())
}
