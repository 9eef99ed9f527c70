//! Commands about the ends of keys' times.

use crate::catalog::Categories;
use crate::command::arguments::{integer, is};
use crate::command::{Answer, Call, Command, Run};
use crate::refusal::Refusal;
use crate::store::format::Millis;

const fn expiry(name: &'static str, arity: isize, run: Run) -> Command {
    Command::new("generic", name, arity, run).categories(Categories::KEYSPACE).keys(1, 1, 1).fast()
}

pub(crate) const COMMANDS: &[Command] = &[
    expiry("expire", -3, expire).writes().about(
        "1.0.0",
        "key seconds [NX | XX | GT | LT]",
        "Sets the expiration time of a key in seconds.",
    ),
    expiry("pexpire", -3, pexpire).writes().about(
        "2.6.0",
        "key milliseconds [NX | XX | GT | LT]",
        "Sets the expiration time of a key in milliseconds.",
    ),
    expiry("expireat", -3, expireat).writes().about(
        "1.2.0",
        "key unix-time-seconds [NX | XX | GT | LT]",
        "Sets the expiration time of a key to a Unix timestamp.",
    ),
    expiry("pexpireat", -3, pexpireat).writes().about(
        "2.6.0",
        "key unix-time-milliseconds [NX | XX | GT | LT]",
        "Sets the expiration time of a key to a Unix milliseconds timestamp.",
    ),
    expiry("ttl", 2, ttl).reads().about(
        "1.0.0",
        "key",
        "Returns the expiration time in seconds of a key.",
    ),
    expiry("pttl", 2, pttl).reads().about(
        "2.6.0",
        "key",
        "Returns the expiration time in milliseconds of a key.",
    ),
    expiry("expiretime", 2, expiretime).reads().about(
        "7.0.0",
        "key",
        "Returns the expiration time of a key as a Unix timestamp.",
    ),
    expiry("pexpiretime", 2, pexpiretime).reads().about(
        "7.0.0",
        "key",
        "Returns the expiration time of a key as a Unix milliseconds timestamp.",
    ),
    expiry("persist", 2, persist).writes().about(
        "2.2.0",
        "key",
        "Removes the expiration time of a key.",
    ),
];

fn expire(call: &mut Call<'_>) -> Answer {
    set(call, 1000, call.now)
}

fn pexpire(call: &mut Call<'_>) -> Answer {
    set(call, 1, call.now)
}

fn expireat(call: &mut Call<'_>) -> Answer {
    set(call, 1000, 0)
}

fn pexpireat(call: &mut Call<'_>) -> Answer {
    set(call, 1, 0)
}

#[derive(Default)]
struct Conditions {
    without: bool,
    with: bool,
    later: bool,
    sooner: bool,
}

impl Conditions {
    fn of(args: &[&[u8]]) -> Result<Conditions, Refusal> {
        let mut conditions = Conditions::default();
        for option in args {
            let flag = match option {
                option if is(option, "nx") => &mut conditions.without,
                option if is(option, "xx") => &mut conditions.with,
                option if is(option, "gt") => &mut conditions.later,
                option if is(option, "lt") => &mut conditions.sooner,
                option => {
                    let option = String::from_utf8_lossy(option);
                    return Err(Refusal::err(format!("Unsupported option {option}")));
                }
            };
            *flag = true;
        }
        if conditions.without && (conditions.with || conditions.later || conditions.sooner) {
            const NX: &str = "ERR NX and XX, GT or LT options at the same time are not compatible";
            return Err(Refusal::text(NX));
        }
        if conditions.later && conditions.sooner {
            const GT: &str = "ERR GT and LT options at the same time are not compatible";
            return Err(Refusal::text(GT));
        }
        Ok(conditions)
    }

    fn hold(&self, before: Option<Millis>, end: i64) -> bool {
        // A key without an end ends later than any other.
        let is_later = before.is_some_and(|before| i128::from(end) > i128::from(before));
        let is_sooner = before.is_none_or(|before| i128::from(end) < i128::from(before));
        !(self.without && before.is_some()
            || self.with && before.is_none()
            || self.later && !is_later
            || self.sooner && !is_sooner)
    }
}

fn set(call: &mut Call<'_>, unit: i64, base: Millis) -> Answer {
    let name = call.command.name;
    let invalid = || Refusal::err(format!("invalid expire time in '{name}' command"));
    let key = call.args[1];
    let conditions = Conditions::of(&call.args[3..])?;
    let time = integer(call.args[2])?;
    let base = i64::try_from(base).map_err(|_| invalid())?;
    let end = time.checked_mul(unit).and_then(|time| time.checked_add(base)).ok_or_else(invalid)?;
    let now = call.now;
    let keys = call.keys()?;
    let is_set = if i128::from(end) <= i128::from(now) {
        // The time has ended: the key goes.
        let mut is_removed = false;
        keys.modify(key, |current| {
            is_removed = current.is_some_and(|current| conditions.hold(current.expiry, end));
            match is_removed {
                true => crate::store::keyspace::Change::Remove,
                false => crate::store::keyspace::Change::Keep,
            }
        })?;
        is_removed
    } else {
        let end_millis = Millis::try_from(end).map_err(|_| invalid())?;
        keys.set_expiry(key, |before| conditions.hold(before, end).then_some(Some(end_millis)))?
    };
    if is_set {
        call.touch(key);
    }
    call.reply.integer(i64::from(is_set));
    Ok(())
}

/// What a command answers about a time: -2 without the key, -1 without an end.
fn answer(call: &mut Call<'_>, of_end: impl Fn(Millis) -> u64) -> Answer {
    let key = call.args[1];
    let (keys, reply) = call.open()?;
    reply.integer(match keys.facts(key)? {
        None => -2,
        Some(facts) => facts.expiry.map_or(-1, |end| of_end(end) as i64),
    });
    Ok(())
}

fn ttl(call: &mut Call<'_>) -> Answer {
    let now = call.now;
    answer(call, |end| (end.saturating_sub(now) + 500) / 1000)
}

fn pttl(call: &mut Call<'_>) -> Answer {
    let now = call.now;
    answer(call, |end| end.saturating_sub(now))
}

fn expiretime(call: &mut Call<'_>) -> Answer {
    answer(call, |end| end.saturating_add(500) / 1000)
}

fn pexpiretime(call: &mut Call<'_>) -> Answer {
    answer(call, |end| end)
}

fn persist(call: &mut Call<'_>) -> Answer {
    let key = call.args[1];
    let is_set = call.keys()?.set_expiry(key, |before| before.map(|_| None))?;
    if is_set {
        call.touch(key);
    }
    call.reply.integer(i64::from(is_set));
    Ok(())
}
