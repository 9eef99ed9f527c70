//! Commands that count.

use crate::catalog::Categories;
use crate::command::arguments::{float, integer};
use crate::command::{Answer, Call, Command, Run};
use crate::protocol::request;
use crate::refusal::{NOT_A_FLOAT, NOT_AN_INTEGER, Refusal};
use crate::store::keyspace::Change;

const fn counter(name: &'static str, arity: isize, run: Run) -> Command {
    Command::new("string", name, arity, run)
        .categories(Categories::STRING)
        .keys(1, 1, 1)
        .grows()
        .fast()
}

pub(crate) const COMMANDS: &[Command] = &[
    counter("incr", 2, incr).about(
        "1.0.0",
        "key",
        "Increments the integer value of a key by one. Uses 0 as initial value if the key doesn't \
         exist.",
    ),
    counter("decr", 2, decr).about(
        "1.0.0",
        "key",
        "Decrements the integer value of a key by one. Uses 0 as initial value if the key doesn't \
         exist.",
    ),
    counter("incrby", 3, incrby).about(
        "1.0.0",
        "key increment",
        "Increments the integer value of a key by a number. Uses 0 as initial value if the key \
         doesn't exist.",
    ),
    counter("decrby", 3, decrby).about(
        "1.0.0",
        "key decrement",
        "Decrements a number from the integer value of a key. Uses 0 as initial value if the key \
         doesn't exist.",
    ),
    counter("incrbyfloat", 3, incrbyfloat).about(
        "2.6.0",
        "key increment",
        "Increment the floating point value of a key by a number. Uses 0 as initial value if the \
         key doesn't exist.",
    ),
];

fn incr(call: &mut Call<'_>) -> Answer {
    add(call, 1)
}

fn decr(call: &mut Call<'_>) -> Answer {
    add(call, -1)
}

fn incrby(call: &mut Call<'_>) -> Answer {
    add(call, integer(call.args[2])?)
}

fn decrby(call: &mut Call<'_>) -> Answer {
    let delta = integer(call.args[2])?.checked_neg();
    add(call, delta.ok_or(Refusal::text("ERR decrement would overflow"))?)
}

fn add(call: &mut Call<'_>, delta: i64) -> Answer {
    const OVERFLOW: Refusal = Refusal::text("ERR increment or decrement would overflow");
    let key = call.args[1];
    let mut outcome = Ok(0);
    call.keys()?.modify(key, |current| {
        let before = match current {
            None => Some(0),
            Some(current) => request::integer(current.value),
        };
        let sum = before.ok_or(NOT_AN_INTEGER).and_then(|it| it.checked_add(delta).ok_or(OVERFLOW));
        outcome = sum;
        match &outcome {
            Err(_) => Change::Keep,
            Ok(sum) => {
                let text = itoa::Buffer::new().format(*sum).as_bytes().to_vec();
                Change::Put(text.into(), current.and_then(|current| current.expiry))
            }
        }
    })?;
    let sum = outcome?;
    call.touch(key);
    call.reply.integer(sum);
    Ok(())
}

fn incrbyfloat(call: &mut Call<'_>) -> Answer {
    const NOT_FINITE: Refusal = Refusal::text("ERR increment would produce NaN or Infinity");
    let (key, delta) = (call.args[1], float(call.args[2])?);
    let mut outcome = Ok(String::new());
    call.keys()?.modify(key, |current| {
        let before = current.map_or(Ok(0.0), |current| float(current.value));
        let sum = before.map_err(|_| NOT_A_FLOAT).and_then(|before| {
            let sum = before + delta;
            if sum.is_finite() { Ok(text_of(sum)) } else { Err(NOT_FINITE) }
        });
        outcome = sum;
        match &outcome {
            Err(_) => Change::Keep,
            Ok(sum) => {
                let expiry = current.and_then(|current| current.expiry);
                Change::Put(sum.as_bytes().to_vec().into(), expiry)
            }
        }
    })?;
    let sum = outcome?;
    call.touch(key);
    call.reply.bulk(sum.as_bytes());
    Ok(())
}

/// A number without an exponent, as Redis stores the sum: 17 digits behind the point at most,
/// without zeros at the end.
fn text_of(number: f64) -> String {
    let shortest = number.to_string();
    let behind = shortest.split_once('.').map_or(0, |(_, behind)| behind.len());
    if behind <= 17 {
        return if shortest == "-0" { "0".to_owned() } else { shortest };
    }
    let text = format!("{number:.17}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}
