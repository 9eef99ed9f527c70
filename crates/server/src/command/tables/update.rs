//! A change of fields in place.

use sapwood::aggregate::{EditAction, FieldEdit, Layout, Refusal as FieldRefusal, Value};

use crate::command::{Answer, Call};
use crate::refusal::{NOT_A_FLOAT, Refusal};

use super::words::{one_of, shown};
use super::{cells, misfit, open, refused};

const ACTIONS: &[(&str, EditAction)] = &[
    ("set", EditAction::Set),
    ("add", EditAction::Add),
    ("min", EditAction::Min),
    ("max", EditAction::Max),
];

/// A change, and the name of its field.
type Edit<'a> = (&'a str, FieldEdit);

/// What the fields hold, or the one that is not changed and why.
type Edited = Result<Vec<Value<'static>>, (usize, FieldRefusal)>;

pub(super) fn update(call: &mut Call<'_>) -> Answer {
    let key = call.args[2];
    let (changes, rest) = call.args[3..].as_chunks::<3>();
    if !rest.is_empty() {
        return Err(Refusal::arguments(call.command.name));
    }
    let (table, reply) = open(call)?;
    let Some(layout) = table.fields() else {
        let name = table.name();
        return Err(Refusal::err(format!("table '{name}' has no layout: it has no fields")));
    };
    let edits = changes.iter().map(|change| edit(layout, change));
    let edits = edits.collect::<Result<Vec<_>, _>>()?;
    let mut scratch = Vec::new();
    let edited = table.update(key, |value| -> sapwood::Result<Edited> {
        scratch.clear();
        scratch.extend_from_slice(value);
        let apply =
            |(at, (_, edit)): (usize, &Edit<'_>)| edit.apply(&mut scratch).map_err(|why| (at, why));
        let edited: Edited = edits.iter().enumerate().map(apply).collect();
        if edited.is_ok() {
            value.set(&scratch)?;
        }
        Ok(edited)
    });
    match edited.map_err(refused)?.transpose().map_err(refused)? {
        None => reply.null_array(),
        Some(Ok(values)) => {
            reply.array(values.len());
            values.iter().for_each(|value| cells::value(reply, value));
        }
        Some(Err((at, why))) => {
            let field = edits[at].0;
            return Err(Refusal::err(format!("field '{field}' {why}")));
        }
    }
    Ok(())
}

fn edit<'a>(
    layout: &Layout,
    [field, action, operand]: &[&'a [u8]; 3],
) -> Result<Edit<'a>, Refusal> {
    let no_field = |_| Refusal::err(format!("there is no field '{}'", shown(field)));
    let field = std::str::from_utf8(field).map_err(no_field)?;
    let action = one_of(action, ACTIONS)?;
    let edit = FieldEdit::new(layout, field, action, number(operand)?).map_err(misfit)?;
    Ok((field, edit))
}

/// A number: a whole one of up to 128 bits exactly, or a float.
fn number(argument: &[u8]) -> Result<Value<'static>, Refusal> {
    let text = std::str::from_utf8(argument).map_err(|_| NOT_A_FLOAT)?;
    if let Ok(whole) = text.parse::<i128>() {
        return Ok(whole.into());
    }
    let float = text.parse().map_err(|_| NOT_A_FLOAT)?;
    Value::float(float).map_err(|_| NOT_A_FLOAT)
}
