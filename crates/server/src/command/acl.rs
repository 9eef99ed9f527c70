//! `AUTH`, and `ACL`: users and their rights.

use crate::acl::{
    self, Context, DEFAULT, Denied, FileError, Reason, Selector, Users, has_spaces, text,
};
use crate::catalog::{Categories, Flags, categories};
use crate::command::arguments::{help, integer, is};
use crate::command::client::Client;
use crate::command::{self, Answer, Call, Command, Run, resolve};
use crate::jobs::Job;
use crate::protocol::reply::Reply;
use crate::refusal::refuse;
use crate::refusal::{Refusal, SYNTAX};
use crate::service::Service;

const fn subcommand(name: &'static str, arity: isize, run: Run) -> Command {
    Command::new("server", name, arity, run)
}

const fn admin(name: &'static str, arity: isize, run: Run) -> Command {
    subcommand(name, arity, run).flags(Flags::ADMIN.union(Flags::SENSITIVE))
}

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("connection", "auth", -2, auth)
        .categories(Categories::CONNECTION)
        .flags(Flags::NO_AUTH.union(Flags::SENSITIVE))
        .fast()
        .about("1.0.0", "[username] password", "Authenticates the connection."),
    Command::new("server", "acl", -2, |_| Err(Refusal::arguments("acl")))
        .about("6.0.0", "", "A container for Access List Control commands.")
        .subcommands(ACL),
];

const ACL: &[Command] = &[
    subcommand("acl|cat", -2, cat).about(
        "6.0.0",
        "[category]",
        "Lists the ACL categories, or the commands inside a category.",
    ),
    admin("acl|deluser", -3, deluser).about(
        "6.0.0",
        "username [username ...]",
        "Deletes ACL users, and terminates their connections.",
    ),
    admin("acl|dryrun", -4, dryrun).about(
        "7.0.0",
        "username command [arg [arg ...]]",
        "Simulates the execution of a command by a user, without executing the command.",
    ),
    subcommand("acl|genpass", -2, genpass).about(
        "6.0.0",
        "[bits]",
        "Generates a pseudorandom, secure password that can be used to identify ACL users.",
    ),
    admin("acl|getuser", 3, getuser).about("6.0.0", "username", "Lists the ACL rules of a user."),
    admin("acl|list", 2, list).about("6.0.0", "", "Dumps the effective rules in ACL file format."),
    admin("acl|load", 2, load).about(
        "6.0.0",
        "",
        "Reloads the rules from the configured ACL file.",
    ),
    admin("acl|log", -2, log).about(
        "6.0.0",
        "[count | RESET]",
        "Lists recent security events generated due to ACL rules.",
    ),
    admin("acl|save", 2, save).about(
        "6.0.0",
        "",
        "Saves the effective ACL rules in the configured ACL file.",
    ),
    admin("acl|setuser", -3, setuser).about(
        "6.0.0",
        "username [rule [rule ...]]",
        "Creates and modifies an ACL user and its rules.",
    ),
    admin("acl|users", 2, users).about("6.0.0", "", "Lists all ACL users."),
    subcommand("acl|whoami", 2, whoami).about(
        "6.0.0",
        "",
        "Returns the authenticated username of the current connection.",
    ),
    subcommand("acl|help", 2, print_help).about(
        "6.0.0",
        "",
        "Returns helpful text about the different subcommands.",
    ),
];

const WRONG_PASSWORD: Refusal =
    Refusal::text("WRONGPASS invalid username-password pair or user is disabled.");

/// Lets a client be a user, if the password is right. A refusal is noted under the command that the
/// client said it with.
pub(crate) fn authenticate(
    service: &Service,
    client: &mut Client,
    command: &[u8],
    name: &[u8],
    password: &[u8],
) -> Answer {
    match service.users.authenticate(name, password) {
        Some(user) => {
            client.log_in(user);
            Ok(())
        }
        None => {
            let context = match client.transaction {
                Some(_) => Context::Multi,
                None => Context::TopLevel,
            };
            client.note_refusal(service, (Reason::Auth, context), command, name);
            Err(WRONG_PASSWORD)
        }
    }
}

fn auth(call: &mut Call<'_>) -> Answer {
    let (name, password) = match call.args[1..] {
        [password] => {
            if call.service.users.default_user().needs_no_password() {
                return Err(Refusal::text(
                    "ERR AUTH <password> called without any password configured for the default \
                     user. Are you sure your configuration is correct?",
                ));
            }
            (DEFAULT, password)
        }
        [name, password] => (name, password),
        _ => return Err(SYNTAX),
    };
    authenticate(call.service, call.client, call.args[0], name, password)?;
    call.reply.simple("OK");
    Ok(())
}

/// A number of arguments that a subcommand does not take.
fn wrong_use(call: &Call<'_>) -> Refusal {
    let name = String::from_utf8_lossy(call.args[1]);
    Refusal::err(format!(
        "unknown subcommand or wrong number of arguments for '{name}'. Try ACL HELP."
    ))
}

fn cat(call: &mut Call<'_>) -> Answer {
    match call.args[2..] {
        [] => {
            let classes = categories::all();
            call.reply.array(classes.len());
            classes.for_each(|(name, _)| call.reply.bulk(name.as_bytes()));
        }
        [class] => {
            let (_, found) = categories::find(class).ok_or_else(|| {
                let class = text(&class[..class.len().min(128)]);
                Refusal::err(format!("Unknown category '{class}'"))
            })?;
            let commands: Vec<_> = command::catalog().of_class(found).collect();
            call.reply.array(commands.len());
            commands.iter().for_each(|command| call.reply.bulk(command.name.as_bytes()));
        }
        _ => return Err(wrong_use(call)),
    }
    Ok(())
}

fn deluser(call: &mut Call<'_>) -> Answer {
    let names = &call.args[2..];
    if names.contains(&DEFAULT) {
        return Err(Refusal::text("ERR The 'default' user cannot be removed"));
    }
    let removed = call.service.users.remove(names);
    for entry in call.service.clients.all() {
        let user = entry.seen().user_id;
        // The caller's own session sees it by itself, behind the reply.
        if entry.id != call.client.id && removed.iter().any(|removed| removed.id == user) {
            entry.kill();
        }
    }
    call.reply.integer(removed.len() as i64);
    Ok(())
}

fn setuser(call: &mut Call<'_>) -> Answer {
    let name = call.args[2];
    if has_spaces(name) {
        return Err(Refusal::text("ERR Usernames can't contain spaces or null characters"));
    }
    call.service.users.set(name, &call.args[3..]).map_err(Refusal::err)?;
    end_forbidden(call);
    call.reply.simple("OK");
    Ok(())
}

/// Ends the connections of users that are there no more, and of subscribers to channels that their
/// users may not use any more. The caller's own session sees it by itself, behind the reply.
fn end_forbidden(call: &Call<'_>) {
    let all = call.service.users.all();
    for entry in call.service.clients.all().iter().filter(|entry| entry.id != call.client.id) {
        let (id, is_subscriber) = {
            let seen = entry.seen();
            (seen.user_id, seen.is_subscriber())
        };
        let may_stay = all.iter().find(|user| user.id == id).is_some_and(|user| {
            !is_subscriber || call.service.clients.channels.of_client(entry.id).are_allowed(user)
        });
        if !may_stay {
            entry.kill();
        }
    }
}

fn getuser(call: &mut Call<'_>) -> Answer {
    let Some(user) = call.service.users.get(call.args[2]) else {
        call.reply.null();
        return Ok(());
    };
    let reply = &mut call.reply;
    reply.map(6);
    reply.bulk(b"flags");
    let flags = user.flags();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    let hashes = user.hashes();
    reply.array(hashes.len());
    hashes.iter().for_each(|hash| reply.bulk(hash.as_bytes()));
    show_selector(reply, user.root());
    reply.bulk(b"selectors");
    reply.array(user.selectors().len());
    for selector in user.selectors() {
        reply.map(3);
        show_selector(reply, selector);
    }
    Ok(())
}

fn show_selector(reply: &mut Reply<'_>, selector: &Selector) {
    reply.bulk(b"commands");
    reply.bulk(&selector.command_rules());
    reply.bulk(b"keys");
    reply.bulk(&selector.key_rules());
    reply.bulk(b"channels");
    reply.bulk(&selector.channel_rules());
}

fn list(call: &mut Call<'_>) -> Answer {
    let all = call.service.users.all();
    call.reply.array(all.len());
    all.iter().for_each(|user| call.reply.bulk(&user.describe()));
    Ok(())
}

fn users(call: &mut Call<'_>) -> Answer {
    let all = call.service.users.all();
    call.reply.array(all.len());
    all.iter().for_each(|user| call.reply.bulk(&user.name));
    Ok(())
}

fn whoami(call: &mut Call<'_>) -> Answer {
    call.reply.bulk(&call.client.login.user().name);
    Ok(())
}

fn dryrun(call: &mut Call<'_>) -> Answer {
    let (name, args) = (call.args[2], &call.args[3..]);
    let user = call
        .service
        .users
        .get(name)
        .ok_or_else(|| Refusal::err(format!("User '{}' not found", text(name))))?;
    let is_known = match command::find(args[0]) {
        None => false,
        Some(container) if container.subcommands.is_empty() || args.len() < 2 => true,
        Some(container) => {
            let full = [container.name.as_bytes(), b"|", args[1]].concat();
            command::find_with_subcommand(&full).is_some()
        }
    };
    if !is_known {
        return Err(Refusal::err(format!("Command '{}' not found", text(args[0]))));
    }
    let command = resolve(args)?;
    let (before, refused, behind) = match user.check(command, args) {
        Ok(()) => {
            call.reply.simple("OK");
            return Ok(());
        }
        Err(Denied::Command) => ("run the '", command.name.as_bytes(), "' command"),
        Err(Denied::Key(at)) => ("access the '", args[at], "' key"),
        Err(Denied::Channel(at)) => ("access the '", args[at], "' channel"),
    };
    let before = format!("This user has no permissions to {before}");
    call.reply.bulk(&[before.as_bytes(), refused, behind.as_bytes()].concat());
    Ok(())
}

fn genpass(call: &mut Call<'_>) -> Answer {
    const BITS_MAX: usize = 4096;
    let bits = match call.args[2..] {
        [] => 256,
        [bits] => integer(bits)?,
        _ => return Err(wrong_use(call)),
    };
    let bits = usize::try_from(bits).ok().filter(|bits| (1..=BITS_MAX).contains(bits));
    let bits = bits.ok_or(Refusal::text(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive \
         number up to 4096",
    ))?;
    // A digit for each four bits.
    let digits = bits.div_ceil(4);
    let mut random = vec![0; digits.div_ceil(2)];
    getrandom::fill(&mut random)
        .map_err(|error| Refusal::err(format!("the system has no random numbers: {error}")))?;
    call.reply.bulk(&acl::hex(&random).as_bytes()[..digits]);
    Ok(())
}

const NO_FILE: Refusal = Refusal::text(
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users \
     via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis \
     configuration file set) in order to store users in the Redis configuration.",
);

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Refusal {
        match error {
            FileError::NoFile => NO_FILE,
            FileError::Write { .. } => Refusal::text(
                "ERR There was an error trying to save the ACLs. Please check the server logs for \
                 more information",
            ),
            error => Refusal::err(error),
        }
    }
}

fn load(call: &mut Call<'_>) -> Answer {
    call.service.users.load()?;
    end_forbidden(call);
    call.reply.simple("OK");
    Ok(())
}

fn save(call: &mut Call<'_>) -> Answer {
    let users: std::sync::Arc<Users> = std::sync::Arc::clone(&call.service.users);
    if !users.has_file() {
        return Err(NO_FILE);
    }
    let protocol = call.client.protocol;
    // It waits for a disk.
    call.job = Some(Job::new(move |out| {
        let mut reply = Reply::new(out, protocol);
        match users.save() {
            Ok(()) => reply.simple("OK"),
            Err(error) => refuse(&mut reply, &error.into()),
        }
    }));
    Ok(())
}

fn log(call: &mut Call<'_>) -> Answer {
    let log = &call.service.users.log;
    let count = match call.args[2..] {
        [] => 10,
        [word] if is(word, "reset") => {
            log.clear();
            call.reply.simple("OK");
            return Ok(());
        }
        [count] => usize::try_from(integer(count)?).unwrap_or(0),
        _ => return Err(wrong_use(call)),
    };
    let entries = log.latest(count);
    call.reply.array(entries.len());
    for entry in &entries {
        let reply = &mut call.reply;
        reply.map(7);
        reply.bulk(b"count");
        reply.integer(entry.count as i64);
        reply.bulk(b"reason");
        reply.bulk(entry.reason.name().as_bytes());
        reply.bulk(b"context");
        reply.bulk(entry.context.name().as_bytes());
        reply.bulk(b"object");
        reply.bulk(&entry.object);
        reply.bulk(b"username");
        reply.bulk(&entry.user);
        reply.bulk(b"age-seconds");
        reply.double(call.now.saturating_sub(entry.updated) as f64 / 1_000.0);
        reply.bulk(b"client-info");
        reply.bulk(entry.client.as_bytes());
    }
    Ok(())
}

fn print_help(call: &mut Call<'_>) -> Answer {
    help(
        &mut call.reply,
        "ACL",
        &[
            "CAT [<category>]",
            "    List all commands that belong to <category>, or all command categories",
            "    when no category is specified.",
            "DELUSER <username> [<username> ...]",
            "    Delete a list of users.",
            "DRYRUN <username> <command> [<arg> ...]",
            "    Returns whether the user can execute the given command without executing the \
             command.",
            "GETUSER <username>",
            "    Get the user's details.",
            "GENPASS [<bits>]",
            "    Generate a secure 256-bit user password. The optional `bits` argument can",
            "    be used to specify a different size.",
            "LIST",
            "    Show users details in config file format.",
            "LOAD",
            "    Reload users from the ACL file.",
            "LOG [<count> | RESET]",
            "    Show the ACL log entries.",
            "SAVE",
            "    Save the current config to the ACL file.",
            "SETUSER <username> <attribute> [<attribute> ...]",
            "    Create or modify a user with the specified attributes.",
            "USERS",
            "    List all the registered usernames.",
            "WHOAMI",
            "    Return the current connection username.",
        ],
    );
    Ok(())
}
