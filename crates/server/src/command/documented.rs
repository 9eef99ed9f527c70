//! `COMMAND`: what commands there are.

use crate::catalog::{Categories, Flags};
use crate::command::arguments::is;
use crate::command::{self, Answer, Call, Command, Run};
use crate::protocol::glob;
use crate::protocol::reply::Reply;
use crate::refusal::{Refusal, SYNTAX};

const fn server(name: &'static str, arity: isize, run: Run) -> Command {
    Command::new("server", name, arity, run).categories(Categories::CONNECTION)
}

pub(crate) const COMMANDS: &[Command] = &[server("command", -1, all)
    .about("2.8.13", "", "Returns detailed information about all commands.")
    .tips(&["nondeterministic_output_order"])
    .subcommands(&[
        server("command|count", 2, count).about("2.8.13", "", "Returns a count of commands."),
        server("command|docs", -2, docs)
            .about(
                "7.0.0",
                "[command-name [command-name ...]]",
                "Returns documentary information about one, multiple or all commands.",
            )
            .tips(&["nondeterministic_output_order"]),
        server("command|getkeys", -3, getkeys).about(
            "2.8.13",
            "command [arg [arg ...]]",
            "Extracts the key names from an arbitrary command.",
        ),
        server("command|info", -2, info)
            .about(
                "2.8.13",
                "[command-name [command-name ...]]",
                "Returns information about one, multiple or all commands.",
            )
            .tips(&["nondeterministic_output_order"]),
        server("command|list", -2, list)
            .about(
                "7.0.0",
                "[FILTERBY MODULE module-name | ACLCAT category | PATTERN pattern]",
                "Returns a list of command names.",
            )
            .tips(&["nondeterministic_output_order"]),
        server("command|help", 2, help).about(
            "5.0.0",
            "",
            "Returns helpful text about the different subcommands.",
        ),
    ])];

/// The words of Redis for flags that clients look at.
const FLAGS: &[(Flags, &str)] = &[
    (Flags::WRITE, "write"),
    (Flags::READONLY, "readonly"),
    (Flags::DENYOOM, "denyoom"),
    (Flags::ADMIN, "admin"),
    (Flags::PUBSUB, "pubsub"),
    (Flags::FAST, "fast"),
    (Flags::NO_AUTH, "no_auth"),
    (Flags::NO_MULTI, "no_multi"),
];

fn all(call: &mut Call<'_>) -> Answer {
    call.reply.array(command::all().count());
    command::all().for_each(|command| write_info(&mut call.reply, command));
    Ok(())
}

fn write_info(reply: &mut Reply<'_>, command: &Command) {
    reply.array(10);
    reply.bulk(command.name.as_bytes());
    reply.integer(command.arity as i64);
    let flags = || FLAGS.iter().filter(|(flag, _)| command.flags.contains(*flag));
    reply.set(flags().count());
    flags().for_each(|(_, name)| reply.simple(name));
    let keys = command.keys;
    reply.integer(keys.first as i64);
    reply.integer(keys.last as i64);
    reply.integer(if keys.first == 0 { 0 } else { keys.step as i64 });
    let categories = command.categories_all();
    reply.set(categories.iter_names().count());
    for (name, _) in categories.iter_names() {
        reply.simple(&format!("@{}", name.to_lowercase()));
    }
    reply.array(command.tips.len());
    command.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    write_key_specs(reply, command);
    reply.array(command.subcommands.len());
    command.subcommands.iter().for_each(|subcommand| write_info(reply, subcommand));
}

fn write_key_specs(reply: &mut Reply<'_>, command: &Command) {
    let keys = command.keys;
    if keys.first == 0 {
        reply.array(0);
        return;
    }
    let access: &[&str] = match command.flags.contains(Flags::WRITE) {
        true => &["RW", "ACCESS", "UPDATE"],
        false => &["RO", "ACCESS"],
    };
    // Counted from the first key, as Redis does.
    let last = if keys.last < 0 { keys.last } else { keys.last - keys.first as isize };
    reply.array(1);
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(access.len());
    access.iter().for_each(|flag| reply.simple(flag));
    reply.bulk(b"begin_search");
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(b"index");
    reply.bulk(b"spec");
    reply.map(1);
    reply.bulk(b"index");
    reply.integer(keys.first as i64);
    reply.bulk(b"find_keys");
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(b"range");
    reply.bulk(b"spec");
    reply.map(3);
    reply.bulk(b"lastkey");
    reply.integer(last as i64);
    reply.bulk(b"keystep");
    reply.integer(keys.step as i64);
    reply.bulk(b"limit");
    reply.integer(0);
}

fn count(call: &mut Call<'_>) -> Answer {
    call.reply.integer(command::all().count() as i64);
    Ok(())
}

fn info(call: &mut Call<'_>) -> Answer {
    let names = &call.args[2..];
    if names.is_empty() {
        return all(call);
    }
    call.reply.array(names.len());
    for name in names {
        match command::find_with_subcommand(name) {
            Some(command) => write_info(&mut call.reply, command),
            None => call.reply.null(),
        }
    }
    Ok(())
}

fn docs(call: &mut Call<'_>) -> Answer {
    let names = &call.args[2..];
    let commands: Vec<&Command> = match names {
        [] => command::all().collect(),
        names => names.iter().filter_map(|name| command::find_with_subcommand(name)).collect(),
    };
    write_docs(&mut call.reply, &commands);
    Ok(())
}

fn write_docs(reply: &mut Reply<'_>, commands: &[&Command]) {
    reply.map(commands.len());
    for command in commands {
        reply.bulk(command.name.as_bytes());
        let has_syntax = !command.syntax.is_empty();
        let has_subcommands = !command.subcommands.is_empty();
        reply.map(3 + usize::from(has_syntax) + usize::from(has_subcommands));
        for (name, text) in
            [("summary", command.summary), ("since", command.since), ("group", command.group)]
        {
            reply.bulk(name.as_bytes());
            reply.bulk(text.as_bytes());
        }
        if has_syntax {
            // One argument whose text is all of them: shells show it as it is.
            reply.bulk(b"arguments");
            reply.array(1);
            reply.map(3);
            for (name, text) in
                [("name", "arguments"), ("type", "string"), ("display_text", command.syntax)]
            {
                reply.bulk(name.as_bytes());
                reply.bulk(text.as_bytes());
            }
        }
        if has_subcommands {
            reply.bulk(b"subcommands");
            let subcommands: Vec<_> = command.subcommands.iter().collect();
            write_docs(reply, &subcommands);
        }
    }
}

fn list(call: &mut Call<'_>) -> Answer {
    let names: Vec<&str> = match call.args[2..] {
        [] => command::all_with_subcommands().map(|command| command.name).collect(),
        [filter, by, value] if is(filter, "filterby") => {
            let all = command::all_with_subcommands();
            if is(by, "module") {
                Vec::new()
            } else if is(by, "aclcat") {
                let value = String::from_utf8_lossy(value).to_uppercase();
                let category = Categories::from_name(&value).unwrap_or(Categories::empty());
                let has = |command: &&Command| {
                    !category.is_empty() && command.categories_all().contains(category)
                };
                all.filter(has).map(|command| command.name).collect()
            } else if is(by, "pattern") {
                let pattern = value.to_ascii_lowercase();
                let fits = |name: &&str| glob::matches(&pattern, name.as_bytes());
                all.map(|command| command.name).filter(fits).collect()
            } else {
                return Err(SYNTAX);
            }
        }
        _ => return Err(SYNTAX),
    };
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name.as_bytes()));
    Ok(())
}

fn getkeys(call: &mut Call<'_>) -> Answer {
    let args = &call.args[2..];
    let command = command::resolve(args).map_err(|_| match command::find(args[0]) {
        None => Refusal::text("ERR Invalid command specified"),
        Some(_) => Refusal::text("ERR Invalid number of arguments specified for command"),
    })?;
    if command.keys.first == 0 {
        return Err(Refusal::text("ERR The command has no key arguments"));
    }
    let keys: Vec<&[u8]> = command.keys_of(args).collect();
    call.reply.array(keys.len());
    keys.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

fn help(call: &mut Call<'_>) -> Answer {
    super::server::write_help(
        call,
        "COMMAND",
        &[
            "(no subcommand)",
            "    Return details about all Redis commands.",
            "COUNT",
            "    Return the total number of commands in this Redis server.",
            "LIST",
            "    Return a list of all commands in this Redis server.",
            "INFO [<command-name> ...]",
            "    Return details about multiple Redis commands.",
            "    If no command names are given, documentation details for all",
            "    commands are returned.",
            "DOCS [<command-name> ...]",
            "    Return documentation details about multiple Redis commands.",
            "    If no command names are given, documentation details for all",
            "    commands are returned.",
            "GETKEYS <full-command>",
            "    Return the keys from a full Redis command.",
        ],
    );
    Ok(())
}
