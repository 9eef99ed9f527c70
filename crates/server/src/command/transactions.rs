//! `MULTI`, `EXEC` and `WATCH`.
//!
//! `EXEC` has the databases for itself, and so has `WATCH`: a change is made before a watch begins,
//! or breaks it.

use std::sync::Arc;

use crate::catalog::{Categories, Flags};
use crate::command::client::WatchedKey;
use crate::command::execution::execute_queued;
use crate::command::{Answer, Call, Command, Run, pubsub};
use crate::refusal::Refusal;
use crate::watched::Watch;

const fn transaction(name: &'static str, arity: isize, run: Run) -> Command {
    Command::new("transactions", name, arity, run)
        .categories(Categories::TRANSACTION)
        .flags(Flags::NOT_QUEUED)
}

pub(crate) const COMMANDS: &[Command] = &[
    transaction("multi", 1, multi).fast().about("1.2.0", "", "Starts a transaction."),
    transaction("exec", 1, exec).alone().about(
        "1.2.0",
        "",
        "Executes all commands in a transaction.",
    ),
    transaction("discard", 1, discard).fast().about("2.0.0", "", "Discards a transaction."),
    transaction("watch", -2, watch).fast().alone().keys(1, -1, 1).about(
        "2.2.0",
        "key [key ...]",
        "Monitors changes to keys to determine the execution of a transaction.",
    ),
    Command::new("transactions", "unwatch", 1, unwatch)
        .categories(Categories::TRANSACTION)
        .fast()
        .about("2.2.0", "", "Forgets about watched keys of a transaction."),
];

fn multi(call: &mut Call<'_>) -> Answer {
    if call.client.transaction.is_some() {
        return Err(Refusal::text("ERR MULTI calls can not be nested"));
    }
    call.client.transaction = Some(Box::default());
    call.reply.simple("OK");
    Ok(())
}

fn discard(call: &mut Call<'_>) -> Answer {
    if call.client.transaction.take().is_none() {
        return Err(Refusal::text("ERR DISCARD without MULTI"));
    }
    call.client.unwatch(call.service);
    call.reply.simple("OK");
    Ok(())
}

fn exec(call: &mut Call<'_>) -> Answer {
    let Some(transaction) = call.client.transaction.take() else {
        return Err(Refusal::text("ERR EXEC without MULTI"));
    };
    let is_changed = is_watch_broken(call);
    call.client.unwatch(call.service);
    let grows = |(command, _): &(&Command, _)| command.flags.contains(Flags::DENYOOM);
    if transaction.queued.iter().any(grows) && call.service.is_full(call.access.databases()) {
        return Err(Refusal::text(
            "EXECABORT Transaction discarded because of: OOM command not allowed when used memory \
             > 'maxmemory'.",
        ));
    }
    if transaction.is_broken {
        return Err(Refusal::text("EXECABORT Transaction discarded because of previous errors."));
    }
    if is_changed {
        call.reply.null_array();
        return Ok(());
    }
    // None come until the end of the transaction: a message is sent beside no exclusive command.
    pubsub::deliver(call);
    call.reply.array(transaction.queued.len());
    let writes = |(command, _): &(&Command, _)| command.flags.contains(Flags::WRITE);
    let db = &call.service.db;
    if db.directory().is_none() || !transaction.queued.iter().any(writes) {
        execute_all(call, &transaction.queued);
        return Ok(());
    }
    // What it changes is there after a crash, or none of it.
    let together = db.together(|| execute_all(call, &transaction.queued));
    together.map(drop).map_err(Refusal::from)
}

fn execute_all(call: &mut Call<'_>, queued: &[(&'static Command, Vec<Vec<u8>>)]) {
    for (command, args) in queued {
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        execute_queued(call, command, &args);
    }
}

/// Whether a key that is watched has changed; one whose time has ended since has.
fn is_watch_broken(call: &Call<'_>) -> bool {
    let has_ended = call.client.watched_keys.iter().any(|watched| watched.ends_by(call.now));
    has_ended || call.client.watch.as_ref().is_some_and(|watch| watch.is_broken())
}

fn watch(call: &mut Call<'_>) -> Answer {
    if call.client.transaction.is_some() {
        return Err(Refusal::text("ERR WATCH inside MULTI is not allowed"));
    }
    let database = call.client.database;
    let watch = Arc::clone(call.client.watch.get_or_insert_with(|| Arc::new(Watch::default())));
    for key in &call.args[1..] {
        // A key whose time has ended is not there: its removal, later on, changes nothing.
        let end = call.keys()?.facts(key)?.and_then(|facts| facts.expiry);
        let is_watched = |known: &WatchedKey| known.database == database && known.key == **key;
        if !call.client.watched_keys.iter().any(is_watched) {
            if end.is_none() {
                call.keys()?.remove_ended(key)?;
            }
            call.service.watched.add(database, key, &watch);
            call.client.watched_keys.push(WatchedKey { database, key: key.to_vec(), end });
        }
    }
    call.reply.simple("OK");
    Ok(())
}

fn unwatch(call: &mut Call<'_>) -> Answer {
    call.client.unwatch(call.service);
    call.reply.simple("OK");
    Ok(())
}
