//! Commands that read or change values.

use crate::catalog::Categories;
use crate::command::arguments::{integer, is};
use crate::command::{Answer, Call, Command};
use crate::protocol::request;
use crate::refusal::{Refusal, SYNTAX};
use crate::store::format::Millis;
use crate::store::keyspace::{Change, Current, Written};

const fn string(name: &'static str, arity: isize, run: crate::command::Run) -> Command {
    Command::new("string", name, arity, run).categories(Categories::STRING).keys(1, 1, 1)
}

pub(crate) const COMMANDS: &[Command] = &[
    string("get", 2, get).reads().fast().about("1.0.0", "key", "Returns the string value of a key."),
    string("set", -3, set).grows().about(
        "1.0.0",
        "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | \
         PXAT unix-time-milliseconds | KEEPTTL]",
        "Sets the string value of a key, ignoring its type. The key is created if it doesn't exist.",
    ),
    string("getset", 3, getset).grows().fast().about(
        "1.0.0",
        "key value",
        "Returns the previous string value of a key after setting it to a new value.",
    ),
    string("getdel", 2, getdel).writes().fast().about(
        "6.2.0",
        "key",
        "Returns the string value of a key after deleting the key.",
    ),
    string("getex", -2, getex).writes().fast().about(
        "6.2.0",
        "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | \
         PXAT unix-time-milliseconds | PERSIST]",
        "Returns the string value of a key after setting its expiration time.",
    ),
    string("setnx", 3, setnx).grows().fast().about(
        "1.0.0",
        "key value",
        "Set the string value of a key only when the key doesn't exist.",
    ),
    string("setex", 4, setex).grows().about(
        "2.0.0",
        "key seconds value",
        "Sets the string value and expiration time of a key. Creates the key if it doesn't exist.",
    ),
    string("psetex", 4, psetex).grows().about(
        "2.6.0",
        "key milliseconds value",
        "Sets both string value and expiration time in milliseconds of a key. The key is created \
         if it doesn't exist.",
    ),
    string("mget", -2, mget).reads().fast().alone().keys(1, -1, 1).about(
        "1.0.0",
        "key [key ...]",
        "Atomically returns the string values of one or more keys.",
    ),
    string("mset", -3, mset).grows().alone().keys(1, -1, 2).about(
        "1.0.1",
        "key value [key value ...]",
        "Atomically creates or modifies the string values of one or more keys.",
    ),
    string("msetnx", -3, msetnx).grows().alone().keys(1, -1, 2).about(
        "1.0.1",
        "key value [key value ...]",
        "Atomically modifies the string values of one or more keys only when all keys don't exist.",
    ),
    string("append", 3, append).grows().fast().about(
        "2.0.0",
        "key value",
        "Appends a string to the value of a key. Creates the key if it doesn't exist.",
    ),
    string("strlen", 2, strlen).reads().fast().about(
        "2.2.0",
        "key",
        "Returns the length of a string value.",
    ),
    string("getrange", 4, getrange).reads().about(
        "2.4.0",
        "key start end",
        "Returns a substring of the string stored at a key.",
    ),
    string("substr", 4, getrange).reads().about(
        "1.0.0",
        "key start end",
        "Returns a substring from a string value.",
    ),
    string("setrange", 4, setrange).grows().about(
        "2.2.0",
        "key offset value",
        "Overwrites a part of a string value with another by an offset. Creates the key if it \
         doesn't exist.",
    ),
];

/// When a value that is set ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expiry {
    /// Never.
    Never,
    /// When the value before would have.
    Kept,
    /// Then.
    At(Millis),
}

/// When a value ends, as an option says it that is not looked at yet.
#[derive(Debug, Clone, Copy)]
enum Asked<'a> {
    /// `KEEPTTL` of `SET`, `PERSIST` of `GETEX`.
    Word,
    /// A time, its unit in ms, and whether it counts since 1970.
    Time(&'a [u8], i64, bool),
}

impl<'a> Asked<'a> {
    /// An option with its time. One may stand behind its like, and takes its place.
    fn time(option: &[u8], time: Option<&&'a [u8]>, before: Option<Asked<'_>>) -> Option<Self> {
        let (unit, is_absolute) = time_option(option)?;
        let is_like = match before {
            None => true,
            Some(Asked::Word) => false,
            Some(Asked::Time(_, before, was_absolute)) => {
                (before, was_absolute) == (unit, is_absolute)
            }
        };
        is_like.then_some(Asked::Time(time?, unit, is_absolute))
    }
}

/// The end of a time that a client gave, in units of so many milliseconds, from now on or since
/// 1970.
fn end_of_time(
    call: &Call<'_>,
    argument: &[u8],
    unit: i64,
    is_absolute: bool,
) -> Result<Millis, Refusal> {
    let name = call.command.name;
    let invalid = || Refusal::err(format!("invalid expire time in '{name}' command"));
    let time = integer(argument)?;
    if time <= 0 {
        return Err(invalid());
    }
    let base = if is_absolute { 0 } else { i64::try_from(call.now).map_err(|_| invalid())? };
    let end = time.checked_mul(unit).and_then(|time| time.checked_add(base));
    end.and_then(|end| Millis::try_from(end).ok()).ok_or_else(invalid)
}

/// `EX`, `PX`, `EXAT` or `PXAT`: its unit in ms, and whether it counts since 1970.
fn time_option(option: &[u8]) -> Option<(i64, bool)> {
    [("ex", 1000, false), ("px", 1, false), ("exat", 1000, true), ("pxat", 1, true)]
        .into_iter()
        .find(|(word, ..)| is(option, word))
        .map(|(_, unit, is_absolute)| (unit, is_absolute))
}

fn get(call: &mut Call<'_>) -> Answer {
    let key = call.args[1];
    let (keys, reply) = call.open()?;
    let is_hit = keys.get_with(key, |current| {
        match current {
            Some(current) => reply.bulk(current.value),
            None => reply.null(),
        }
        current.is_some()
    })?;
    let tally = &call.service.admin.tally;
    if is_hit {
        tally.hits.add(1)
    } else {
        tally.misses.add(1)
    }
    Ok(())
}

fn set(call: &mut Call<'_>) -> Answer {
    let (key, value) = (call.args[1], call.args[2]);
    let mut only_if_there = None;
    let mut wants_old = false;
    let mut expiry = None;
    let mut at = 3;
    while let Some(option) = call.args.get(at) {
        at += 1;
        if is(option, "nx") && only_if_there != Some(true) {
            only_if_there = Some(false);
        } else if is(option, "xx") && only_if_there != Some(false) {
            only_if_there = Some(true);
        } else if is(option, "get") {
            wants_old = true;
        } else if is(option, "keepttl") && matches!(expiry, None | Some(Asked::Word)) {
            expiry = Some(Asked::Word);
        } else if let Some(time) = Asked::time(option, call.args.get(at), expiry) {
            at += 1;
            expiry = Some(time);
        } else {
            return Err(SYNTAX);
        }
    }
    let expiry = match expiry {
        None => Expiry::Never,
        Some(Asked::Word) => Expiry::Kept,
        Some(Asked::Time(time, unit, is_absolute)) => {
            Expiry::At(end_of_time(call, time, unit, is_absolute)?)
        }
    };
    put(
        call,
        key,
        value,
        expiry,
        only_if_there,
        match wants_old {
            true => Outcome::Old,
            false => Outcome::Ok,
        },
    )
}

/// What a command answers that sets a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// `OK`, or null if it was not set.
    Ok,
    /// The value before, or null if there was none.
    Old,
    /// 1, or 0 if it was not set.
    Number,
}

fn put(
    call: &mut Call<'_>,
    key: &[u8],
    value: &[u8],
    expiry: Expiry,
    only_if_there: Option<bool>,
    outcome: Outcome,
) -> Answer {
    let mut old = None;
    let mut is_set = false;
    let now = call.now;
    call.keys()?.modify(key, |current| {
        if outcome == Outcome::Old {
            old = current.map(|current| current.value.to_vec());
        }
        is_set = only_if_there.is_none_or(|wanted| wanted == current.is_some());
        if !is_set {
            return Change::Keep;
        }
        match expiry {
            Expiry::Never => Change::Put(value.into(), None),
            Expiry::Kept => Change::Put(value.into(), current.and_then(|current| current.expiry)),
            // It has ended already.
            Expiry::At(end) if end <= now => Change::Remove,
            Expiry::At(end) => Change::Put(value.into(), Some(end)),
        }
    })?;
    if is_set {
        call.touch(key);
    }
    match (outcome, old) {
        (Outcome::Ok, _) if is_set => call.reply.simple("OK"),
        (Outcome::Old, Some(old)) => call.reply.bulk(&old),
        (Outcome::Ok | Outcome::Old, _) => call.reply.null(),
        (Outcome::Number, _) => call.reply.integer(i64::from(is_set)),
    }
    Ok(())
}

fn getset(call: &mut Call<'_>) -> Answer {
    put(call, call.args[1], call.args[2], Expiry::Never, None, Outcome::Old)
}

fn setnx(call: &mut Call<'_>) -> Answer {
    put(call, call.args[1], call.args[2], Expiry::Never, Some(false), Outcome::Number)
}

fn setex(call: &mut Call<'_>) -> Answer {
    let end = end_of_time(call, call.args[2], 1000, false)?;
    put(call, call.args[1], call.args[3], Expiry::At(end), None, Outcome::Ok)
}

fn psetex(call: &mut Call<'_>) -> Answer {
    let end = end_of_time(call, call.args[2], 1, false)?;
    put(call, call.args[1], call.args[3], Expiry::At(end), None, Outcome::Ok)
}

fn getdel(call: &mut Call<'_>) -> Answer {
    let key = call.args[1];
    let mut old = None;
    call.keys()?.modify(key, |current| {
        old = current.map(|current| current.value.to_vec());
        Change::Remove
    })?;
    match old {
        Some(old) => {
            call.touch(key);
            call.reply.bulk(&old);
        }
        None => call.reply.null(),
    }
    Ok(())
}

fn getex(call: &mut Call<'_>) -> Answer {
    let key = call.args[1];
    let mut asked = None;
    let mut at = 2;
    while let Some(option) = call.args.get(at) {
        at += 1;
        if is(option, "persist") && matches!(asked, None | Some(Asked::Word)) {
            asked = Some(Asked::Word);
        } else if let Some(time) = Asked::time(option, call.args.get(at), asked) {
            at += 1;
            asked = Some(time);
        } else {
            return Err(SYNTAX);
        }
    }
    let end = match asked {
        None => return get(call),
        Some(Asked::Word) => None,
        Some(Asked::Time(time, unit, is_absolute)) => {
            // Of a key that is not there the time is not looked at.
            if !call.keys()?.contains(key)? {
                call.reply.null();
                return Ok(());
            }
            Some(end_of_time(call, time, unit, is_absolute)?)
        }
    };
    let mut old = None;
    let mut is_changed = false;
    let now = call.now;
    call.keys()?.modify(key, |current| {
        let Some(Current { value, expiry }) = current else {
            (old, is_changed) = (None, false);
            return Change::Keep;
        };
        old = Some(value.to_vec());
        // Redis: a time that is set again is a change, though it is the same.
        is_changed = end.is_some() || expiry.is_some();
        match end {
            _ if !is_changed => Change::Keep,
            Some(end) if end <= now => Change::Remove,
            end => Change::Put(value.to_vec().into(), end),
        }
    })?;
    if is_changed {
        call.touch(key);
    }
    match old {
        Some(old) => call.reply.bulk(&old),
        None => call.reply.null(),
    }
    Ok(())
}

fn mget(call: &mut Call<'_>) -> Answer {
    let args = &call.args[1..];
    let (keys, reply) = call.open()?;
    reply.array(args.len());
    let mut show = |value: Option<&[u8]>| match value {
        Some(value) => reply.bulk(value),
        None => reply.null(),
    };
    if args.iter().all(|key| crate::store::keyspace::is_plain(key)) {
        keys.get_many(args, show)?;
    } else {
        for key in args {
            keys.get_with(key, |current| show(current.map(|current| current.value)))?;
        }
    }
    Ok(())
}

fn pairs<'a>(
    call: &Call<'a>,
) -> Result<impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a>, Refusal> {
    let args = &call.args[1..];
    if !args.len().is_multiple_of(2) {
        return Err(Refusal::arguments(call.command.name));
    }
    Ok(args.chunks_exact(2).map(|pair| (pair[0], pair[1])))
}

fn mset(call: &mut Call<'_>) -> Answer {
    for (key, value) in pairs(call)? {
        call.keys()?.modify(key, |_| Change::Put(value.into(), None))?;
        call.touch(key);
    }
    call.reply.simple("OK");
    Ok(())
}

fn msetnx(call: &mut Call<'_>) -> Answer {
    for (key, _) in pairs(call)? {
        if call.keys()?.contains(key)? {
            call.reply.integer(0);
            return Ok(());
        }
    }
    for (key, value) in pairs(call)? {
        call.keys()?.modify(key, |_| Change::Put(value.into(), None))?;
        call.touch(key);
    }
    call.reply.integer(1);
    Ok(())
}

const TOO_LONG: Refusal =
    Refusal::text("ERR string exceeds maximum allowed size (proto-max-bulk-len)");

fn append(call: &mut Call<'_>) -> Answer {
    let (key, more) = (call.args[1], call.args[2]);
    let Written::Len(len) = call.keys()?.write(key, more, |len| len)? else {
        return Err(TOO_LONG);
    };
    call.touch(key);
    call.reply.integer(len as i64);
    Ok(())
}

fn strlen(call: &mut Call<'_>) -> Answer {
    let key = call.args[1];
    let (keys, reply) = call.open()?;
    reply.integer(keys.facts(key)?.map_or(0, |facts| facts.len as i64));
    Ok(())
}

/// Bytes `start..=end` of a value of so many bytes, where numbers below 0 count from its end.
fn byte_range(start: i64, end: i64, len: usize) -> std::ops::Range<usize> {
    let len = len as i64;
    if start < 0 && end < 0 && start > end {
        return 0..0;
    }
    let from_end = |at: i64| if at < 0 { at.saturating_add(len).max(0) } else { at };
    let (start, end) = (from_end(start), from_end(end).min(len - 1));
    if start > end { 0..0 } else { start as usize..end as usize + 1 }
}

fn getrange(call: &mut Call<'_>) -> Answer {
    let (key, start, end) = (call.args[1], integer(call.args[2])?, integer(call.args[3])?);
    let (keys, reply) = call.open()?;
    keys.get_range(key, |len| byte_range(start, end, len), |bytes| reply.bulk(bytes))?;
    Ok(())
}

fn setrange(call: &mut Call<'_>) -> Answer {
    let (key, offset, piece) = (call.args[1], integer(call.args[2])?, call.args[3]);
    let offset =
        usize::try_from(offset).map_err(|_| Refusal::text("ERR offset is out of range"))?;
    if piece.is_empty() {
        return strlen(call);
    }
    let Written::Len(len) = call.keys()?.write(key, piece, |_| offset)? else {
        return Err(TOO_LONG);
    };
    call.touch(key);
    call.reply.integer(len as i64);
    Ok(())
}

/// Whether a value is an integer as Redis writes it.
pub(crate) fn is_integer(value: &[u8]) -> bool {
    value.len() <= 20 && request::integer(value).is_some()
}
