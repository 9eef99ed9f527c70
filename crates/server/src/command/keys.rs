//! Commands about keys, whatever they hold.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::catalog::{Categories, Flags};
use crate::command::arguments::{self, integer, is};
use crate::command::{Answer, Call, Command, Run};
use crate::jobs::Job;
use crate::protocol::glob;
use crate::protocol::reply::Reply;
use crate::refusal::refuse;
use crate::refusal::{NO_DATABASE, Refusal, SYNTAX};
use crate::store::keyspace::{self, Change, Keys, Keyspace};

const fn generic(name: &'static str, arity: isize, run: Run) -> Command {
    Command::new("generic", name, arity, run).categories(Categories::KEYSPACE)
}

pub(crate) const COMMANDS: &[Command] = &[
    generic("del", -2, del).writes().keys(1, -1, 1).about(
        "1.0.0",
        "key [key ...]",
        "Deletes one or more keys.",
    ),
    generic("unlink", -2, del).writes().fast().keys(1, -1, 1).about(
        "4.0.0",
        "key [key ...]",
        "Asynchronously deletes one or more keys.",
    ),
    generic("exists", -2, exists).reads().fast().keys(1, -1, 1).about(
        "1.0.0",
        "key [key ...]",
        "Determines whether one or more keys exist.",
    ),
    generic("touch", -2, exists).reads().fast().keys(1, -1, 1).about(
        "3.2.1",
        "key [key ...]",
        "Returns the number of existing keys out of those specified after updating the time they \
         were last accessed.",
    ),
    generic("type", 2, type_of).reads().fast().keys(1, 1, 1).about(
        "1.0.0",
        "key",
        "Determines the type of value stored at a key.",
    ),
    generic("keys", 2, keys)
        .reads()
        .flags(Flags::SLOW_SCAN)
        .categories(Categories::DANGEROUS)
        .about("1.0.0", "pattern", "Returns all key names that match a pattern."),
    generic("scan", -2, scan).reads().flags(Flags::SLOW_SCAN).about(
        "2.8.0",
        "cursor [MATCH pattern] [COUNT count] [TYPE type]",
        "Iterates over the key names in the database.",
    ),
    generic("randomkey", 1, randomkey).reads().about(
        "1.0.0",
        "",
        "Returns a random key name from the database.",
    ),
    generic("rename", 3, rename).grows().alone().keys(1, 2, 1).about(
        "1.0.0",
        "key newkey",
        "Renames a key and overwrites the destination.",
    ),
    generic("renamenx", 3, renamenx).grows().fast().alone().keys(1, 2, 1).about(
        "1.0.0",
        "key newkey",
        "Renames a key only when the target key name doesn't exist.",
    ),
    generic("copy", -3, copy).grows().alone().keys(1, 2, 1).about(
        "6.2.0",
        "source destination [DB destination-db] [REPLACE]",
        "Copies the value of a key to a new key.",
    ),
    generic("dbsize", 1, dbsize).reads().fast().about(
        "1.0.0",
        "",
        "Returns the number of keys in the database.",
    ),
    generic("flushdb", -1, flushdb).writes().alone().categories(Categories::DANGEROUS).about(
        "1.0.0",
        "[ASYNC | SYNC]",
        "Removes all keys from the current database.",
    ),
    generic("flushall", -1, flushall).writes().alone().categories(Categories::DANGEROUS).about(
        "1.0.0",
        "[ASYNC | SYNC]",
        "Removes all keys from all databases.",
    ),
];

/// Several keys are one step for all other clients: they need the databases for themselves.
fn one_step(call: &Call<'_>) -> Result<(), Refusal> {
    let is_one = call.args.len() == 2 || call.is_exclusive();
    if is_one { Ok(()) } else { Err(Refusal::NeedsExclusive) }
}

fn del(call: &mut Call<'_>) -> Answer {
    one_step(call)?;
    let mut removed = 0;
    for key in &call.args[1..] {
        if call.keys()?.remove(key)? {
            call.touch(key);
            removed += 1;
        }
    }
    call.reply.integer(removed);
    Ok(())
}

fn exists(call: &mut Call<'_>) -> Answer {
    one_step(call)?;
    let mut found = 0;
    let args = &call.args[1..];
    let (keys, reply) = call.open()?;
    for key in args {
        found += i64::from(keys.contains(key)?);
    }
    reply.integer(found);
    Ok(())
}

fn type_of(call: &mut Call<'_>) -> Answer {
    let key = call.args[1];
    let (keys, reply) = call.open()?;
    reply.simple(if keys.contains(key)? { "string" } else { "none" });
    Ok(())
}

/// A job over the client's database.
fn over_database(
    call: &mut Call<'_>,
    run: impl FnOnce(&Keys<'_>, &mut Reply<'_>) -> Answer + Send + 'static,
) -> Answer {
    call.keys()?;
    let number = call.client.database;
    let space: Arc<Keyspace> = Arc::clone(call.access.databases().get(number).ok_or(NO_DATABASE)?);
    let (now, protocol) = (call.now, call.client.protocol);
    call.job = Some(Job::new(move |out| {
        let keys = Keys { space: &space, now, is_exclusive: false };
        let before = out.len();
        let mut reply = Reply::new(out, protocol);
        if let Err(refusal) = run(&keys, &mut reply) {
            reply.truncate(before);
            refuse(&mut reply, &refusal);
        }
    }));
    Ok(())
}

fn keys(call: &mut Call<'_>) -> Answer {
    let pattern = call.args[1].to_vec();
    over_database(call, move |keys, reply| {
        let mut found = Vec::new();
        let mut named = Vec::new();
        let _all = keys.space.table().for_each(|key, stored| {
            match keyspace::is_plain(key) {
                true if keys.has_ended(stored) || !glob::matches(&pattern, key) => {}
                true => found.push(key.to_vec()),
                false => named.push((key.to_vec(), stored.to_vec())),
            }
            ControlFlow::<()>::Continue(())
        })?;
        for (key, stored) in named {
            found.extend(keys.key_of(key, &stored)?.filter(|key| glob::matches(&pattern, key)));
        }
        reply.array(found.len());
        found.iter().for_each(|key| reply.bulk(key));
        Ok(())
    })
}

fn scan(call: &mut Call<'_>) -> Answer {
    let invalid = || Refusal::text("ERR invalid cursor");
    let cursor = std::str::from_utf8(call.args[1]).map_err(|_| invalid())?;
    let cursor: u64 = cursor.parse().map_err(|_| invalid())?;
    let mut pattern = None;
    let mut count = 10;
    let mut is_type = true;
    for option in call.args[2..].chunks(2) {
        let [word, argument] = *option else { return Err(SYNTAX) };
        if is(word, "match") {
            pattern = Some(argument);
        } else if is(word, "count") {
            count = usize::try_from(integer(argument)?).map_err(|_| SYNTAX)?;
            if count == 0 {
                return Err(SYNTAX);
            }
        } else if is(word, "type") {
            is_type = is(argument, "string");
        } else {
            return Err(SYNTAX);
        }
    }
    let (keys, reply) = call.open()?;
    let mut entries = Vec::new();
    let next = keys.space.table().scan_from(cursor, count, |key, stored| {
        // The stored form of a hashed key's value is small: it names parts.
        let stored = if keyspace::is_plain(key) && keys.has_ended(stored) {
            return;
        } else if keyspace::is_plain(key) {
            Vec::new()
        } else {
            stored.to_vec()
        };
        entries.push((key.to_vec(), stored));
    })?;
    let mut found = Vec::with_capacity(entries.len());
    for (key, stored) in entries {
        let key = if keyspace::is_plain(&key) { Some(key) } else { keys.key_of(key, &stored)? };
        let is_wanted =
            |key: &Vec<u8>| is_type && pattern.is_none_or(|pattern| glob::matches(pattern, key));
        found.extend(key.filter(is_wanted));
    }
    reply.array(2);
    reply.bulk(next.to_string().as_bytes());
    reply.array(found.len());
    found.iter().for_each(|key| reply.bulk(key));
    Ok(())
}

fn randomkey(call: &mut Call<'_>) -> Answer {
    // A key whose time has ended is passed over, and will go soon.
    const TRIES: usize = 100;
    let (keys, reply) = call.open()?;
    for _ in 0..TRIES {
        let Some((key, stored)) = keys.space.table().sample(fastrand::u64(..))? else { break };
        if let Some(key) = keys.key_of(key, &stored)? {
            reply.bulk(&key);
            return Ok(());
        }
    }
    reply.null();
    Ok(())
}

const NO_KEY: Refusal = Refusal::text("ERR no such key");

fn rename(call: &mut Call<'_>) -> Answer {
    move_key(call, true)?;
    call.reply.simple("OK");
    Ok(())
}

fn renamenx(call: &mut Call<'_>) -> Answer {
    let is_moved = move_key(call, false)?;
    call.reply.integer(i64::from(is_moved));
    Ok(())
}

fn move_key(call: &mut Call<'_>, replaces: bool) -> Result<bool, Refusal> {
    let (from, to) = (call.args[1], call.args[2]);
    let keys = call.keys()?;
    let owned = |value: &[u8], expiry| (value.to_vec(), expiry);
    let old = keys.get_with(from, |old| old.map(|old| owned(old.value, old.expiry)))?;
    let (value, expiry) = old.ok_or(NO_KEY)?;
    if from == to {
        return Ok(replaces);
    }
    if !replaces && keys.contains(to)? {
        return Ok(false);
    }
    keys.modify(to, |_| Change::Put((&value[..]).into(), expiry))?;
    call.touch(to);
    call.keys()?.remove(from)?;
    call.touch(from);
    Ok(true)
}

fn copy(call: &mut Call<'_>) -> Answer {
    let (from, to) = (call.args[1], call.args[2]);
    let mut database = call.client.database;
    let mut replaces = false;
    let mut at = 3;
    while let Some(option) = call.args.get(at) {
        at += 1;
        if is(option, "replace") {
            replaces = true;
        } else if let (true, Some(number)) = (is(option, "db"), call.args.get(at)) {
            at += 1;
            database = arguments::database(number, call.access.databases().count())?;
        } else {
            return Err(SYNTAX);
        }
    }
    if database == call.client.database && from == to {
        return Err(Refusal::text("ERR source and destination objects are the same"));
    }
    let owned = |value: &[u8], expiry| (value.to_vec(), expiry);
    let old = call.keys()?.get_with(from, |old| old.map(|old| owned(old.value, old.expiry)))?;
    let Some((value, expiry)) = old else {
        call.reply.integer(0);
        return Ok(());
    };
    let keys = call.keys_of(database)?;
    if !replaces && keys.contains(to)? {
        call.reply.integer(0);
        return Ok(());
    }
    keys.modify(to, |_| Change::Put((&value[..]).into(), expiry))?;
    call.service.watched.touch(database, to);
    call.reply.integer(1);
    Ok(())
}

fn dbsize(call: &mut Call<'_>) -> Answer {
    let (keys, reply) = call.open()?;
    if keys.space.counts_at_once() {
        reply.integer(keys.space.count()? as i64);
        return Ok(());
    }
    // A walk of the index.
    over_database(call, |keys, reply| {
        reply.integer(keys.space.count()? as i64);
        Ok(())
    })
}

/// `ASYNC` and `SYNC` are the same: memory goes back at once, whole pages at a time.
fn check_flush(call: &Call<'_>) -> Result<(), Refusal> {
    match call.args[1..] {
        [] => Ok(()),
        [mode] if is(mode, "async") || is(mode, "sync") => Ok(()),
        _ => Err(SYNTAX),
    }
}

fn flush(call: &mut Call<'_>, number: usize) -> Answer {
    let watched = &call.service.watched;
    match call.keys_of(number) {
        Ok(keys) => watched.touch_all(number, |key| keys.contains(key).unwrap_or(true)),
        // It has to be emptied, whether it can be read or not.
        Err(Refusal::NeedsExclusive) => return Err(Refusal::NeedsExclusive),
        Err(Refusal::Text(_)) => watched.touch_all(number, |_| true),
    }
    call.set_database(number, None);
    call.service.note_flush(number);
    // Databases that clients have chosen are there.
    call.keys_of(number)?;
    Ok(())
}

fn flushdb(call: &mut Call<'_>) -> Answer {
    check_flush(call)?;
    flush(call, call.client.database)?;
    call.service.look_at_memory(call.access.databases());
    call.reply.simple("OK");
    Ok(())
}

fn flushall(call: &mut Call<'_>) -> Answer {
    check_flush(call)?;
    let made = call.access.databases().made().map(|(number, _)| number);
    let numbers: BTreeSet<usize> = made.chain(call.service.flushing()).collect();
    // One that fails leaves the others.
    let mut outcome = Ok(());
    for number in numbers {
        outcome = outcome.and(flush(call, number));
    }
    call.service.look_at_memory(call.access.databases());
    outcome?;
    call.reply.simple("OK");
    Ok(())
}
