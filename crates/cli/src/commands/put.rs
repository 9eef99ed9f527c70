//! `sapwood put`: a row, or an entry, into a table of a directory.

use std::io::Write;

use sapwood::Rows;
use sapwood::schema::{Schema, Value};
use serde_json::json;

use crate::args::tables::Put;
use crate::rows::columns::Columns;
use crate::rows::kept::{self, Reading};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{quoted, unescaped_bytes};
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn run(args: &Put, ui: &Ui) -> Outcome {
    // The change lasts, however the command ends.
    let _promise = ui.interrupt.promise();
    let db = kept::database_to_change(&args.directory, ui)?;
    let (table, description) = kept::table(&db, &args.directory, &args.table, Reading::AsIs)?;
    let number = match (&description.columns, &args.values[..]) {
        (Columns::Typed(format), values) => {
            let row = row_of(format.schema(), values).map_err(Failure::Usage)?;
            Rows::new(table)?.put(&row)?
        }
        (Columns::Entries, [key, value]) => {
            table.put(unescaped_bytes(key), unescaped_bytes(value))?;
            None
        }
        (Columns::Entries, _) => {
            return Err(Failure::Usage(format!(
                "table {} has entries without columns: a key and a value are expected",
                quoted(&args.table)
            )));
        }
        (Columns::Csv(_) | Columns::Json, _) => {
            return Err(Failure::Failed(format!(
                "table {} keeps its rows as text, as a file had them; load it anew to change single rows",
                quoted(&args.table)
            )));
        }
    };
    db.close()?;
    match (ui.answers, number) {
        (Answers::Json, number) => ui.print_json(&json!({ "rows": 1, "number": number })),
        (Answers::Text, None) => ui.print(|out| writeln!(out, "1 row put")),
        (Answers::Text, Some(number)) => {
            ui.print(|out| writeln!(out, "1 row put, number {number}"))
        }
    }
}

/// A value for each column; those that are not named are null.
fn row_of<'v>(schema: &Schema, values: &'v [String]) -> Result<Vec<Value<'v>>, String> {
    let columns = schema.columns();
    let mut row = vec![Value::Null; columns.len()];
    let mut is_named = vec![false; columns.len()];
    for text in values {
        // A name may have `=` in it, and so may a value.
        let parted = text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let found = parted.filter_map(|(name, value)| Some((schema.find(name)?, value))).next();
        let Some((at, value)) = found else {
            let names: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
            return Err(format!(
                "{} names no column: COLUMN=VALUE is expected, of {}",
                quoted(text),
                names.join(", ")
            ));
        };
        let column = &columns[at];
        if std::mem::replace(&mut is_named[at], true) {
            return Err(format!("column {} is named twice", quoted(&column.name)));
        }
        row[at] = Value::of_text(value, &column.kind)
            .map_err(|what| format!("column {}: {what}", quoted(&column.name)))?;
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_made_of_named_values() {
        let schema: Schema = "a:text, b:i8?, \"x=y\":f64?, key(a)".parse().expect("a schema");
        let row = |values: &[&str]| {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            let row = row_of(&schema, &values)?;
            Ok::<_, String>(row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(row(&["a=k=v", "x=y=2.5"]).expect("a row"), "k=v null 2.5");
        assert_eq!(row(&["b=-1", "a="]).expect("a row"), " -1 null");
        for (values, says) in [
            (&["a"][..], "`a` names no column"),
            (&["c=1"], "`c=1` names no column"),
            (&["b=1", "b=2"], "column `b` is named twice"),
            (&["b=300"], "column `b`: 300 does not fit into i8"),
            (&["b=x"], "column `b`: `x` is no i8"),
        ] {
            let refused = row(values).expect_err("it is no row");
            assert!(refused.starts_with(says), "{refused}");
        }
    }
}
