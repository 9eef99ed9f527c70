//! Commands on entries whose keys they name.

use sapwood::AnyTable;

use crate::command::arguments::{integer, is};
use crate::command::{Answer, Call};
use crate::refusal::{Refusal, SYNTAX};

use super::{open, refused};

pub(super) fn put(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let (key, value) = (args[2], args[3]);
    let (table, reply) = open(call)?;
    let is_put = match args[4..] {
        [] => table.put(key, value).map(|()| true),
        [when] if is(when, "nx") => table.put_if_absent(key, value),
        [when] if is(when, "xx") => match table.update(key, |current| current.set(value)) {
            Ok(Some(put)) => put.map(|()| true),
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        },
        _ => return Err(SYNTAX),
    };
    match is_put.map_err(refused)? {
        true => reply.simple("OK"),
        false => reply.null(),
    }
    Ok(())
}

pub(super) fn get(call: &mut Call<'_>) -> Answer {
    let key = call.args[2];
    let (table, reply) = open(call)?;
    let found = table.get_with(key, |value| reply.bulk(value)).map_err(refused)?;
    if found.is_none() {
        reply.null();
    }
    Ok(())
}

/// The arguments behind the table's name in pairs.
fn pairs<'a>(
    call: &Call<'a>,
) -> Result<impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a>, Refusal> {
    let (pairs, rest) = call.args[2..].as_chunks::<2>();
    match rest {
        [] => Ok(pairs.iter().map(|&[key, value]| (key, value))),
        _ => Err(Refusal::arguments(call.command.name)),
    }
}

pub(super) fn mput(call: &mut Call<'_>) -> Answer {
    let entries: Vec<_> = pairs(call)?.collect();
    let (table, reply) = open(call)?;
    table.put_many(&entries).map_err(refused)?;
    reply.simple("OK");
    Ok(())
}

pub(super) fn mget(call: &mut Call<'_>) -> Answer {
    let keys = &call.args[2..];
    let (table, reply) = open(call)?;
    // Values come in any order.
    let mut bytes = Vec::new();
    let mut places = vec![None; keys.len()];
    let copy = |at: usize, value: Option<&[u8]>| {
        places[at] = value.map(|value| {
            let begin = bytes.len();
            bytes.extend_from_slice(value);
            begin..bytes.len()
        });
    };
    table.get_many(keys, copy).map_err(refused)?;
    reply.array(keys.len());
    for place in places {
        match place {
            Some(place) => reply.bulk(&bytes[place]),
            None => reply.null(),
        }
    }
    Ok(())
}

fn counted(
    call: &mut Call<'_>,
    is_counted: impl Fn(&AnyTable, &[u8]) -> sapwood::Result<bool>,
) -> Answer {
    let keys = &call.args[2..];
    let (table, reply) = open(call)?;
    let mut count = 0;
    for key in keys {
        count += i64::from(is_counted(table, key).map_err(refused)?);
    }
    reply.integer(count);
    Ok(())
}

pub(super) fn remove(call: &mut Call<'_>) -> Answer {
    counted(call, |table, key| table.remove(key))
}

pub(super) fn exists(call: &mut Call<'_>) -> Answer {
    counted(call, |table, key| table.contains_key(key))
}

pub(super) fn add(call: &mut Call<'_>) -> Answer {
    let (key, delta) = (call.args[2], integer(call.args[3])?);
    let (table, reply) = open(call)?;
    let sum = table.add(key, delta).map_err(refused)?;
    reply.integer(sum);
    Ok(())
}

pub(super) fn madd(call: &mut Call<'_>) -> Answer {
    let deltas = pairs(call)?.map(|(key, delta)| Ok((key, integer(delta)?)));
    let deltas = deltas.collect::<Result<Vec<_>, Refusal>>()?;
    let (table, reply) = open(call)?;
    table.add_many(&deltas).map_err(refused)?;
    reply.simple("OK");
    Ok(())
}

pub(super) fn counter(call: &mut Call<'_>) -> Answer {
    let keys = &call.args[2..];
    let (table, reply) = open(call)?;
    reply.array(keys.len());
    for key in keys {
        match table.get_counter(key).map_err(refused)? {
            Some(counter) => reply.integer(counter),
            None => reply.null(),
        }
    }
    Ok(())
}

pub(super) fn cas(call: &mut Call<'_>) -> Answer {
    let (key, expected, new) = (call.args[2], call.args[3], call.args[4]);
    let (table, reply) = open(call)?;
    let is_put = table.compare_and_put(key, expected, new).map_err(refused)?;
    reply.integer(i64::from(is_put));
    Ok(())
}
