//! `sapwood describe`: the columns of a table.

use serde_json::json;

use crate::args::tables::Describe;
use crate::rows::columns::Columns;
use crate::rows::kept::{self, Reading};
use crate::terminal::exit::Outcome;
use crate::terminal::format::{escaped, table, write_table};
use crate::terminal::ui::{Answers, Ui};

/// A column, as it is shown.
struct Shown {
    name: String,
    kind: String,
    is_nullable: bool,
    /// The place among the columns of the key, from one.
    key: Option<usize>,
}

pub(crate) fn run(args: &Describe, ui: &Ui) -> Outcome {
    let db = kept::database(&args.directory, ui)?;
    let (_, description) = kept::table(&db, &args.directory, &args.table, Reading::AsIs)?;
    let text = |name: &String| Shown {
        name: name.clone(),
        kind: "text".to_owned(),
        is_nullable: false,
        key: description.keys.place_of(name),
    };
    let shown: Vec<Shown> = match &description.columns {
        Columns::Typed(format) => {
            let schema = format.schema();
            let columns = schema.columns().iter().enumerate();
            let key = |at: usize| schema.key_columns().iter().position(|column| *column == at);
            let columns = columns.map(|(at, column)| Shown {
                name: column.name.clone(),
                kind: column.kind.to_string(),
                is_nullable: column.nullable,
                key: key(at).map(|place| place + 1),
            });
            let number = schema.is_numbered().then(|| Shown {
                name: "#".to_owned(),
                kind: "u64".to_owned(),
                is_nullable: false,
                key: Some(schema.key_columns().len() + 1),
            });
            columns.chain(number).collect()
        }
        Columns::Csv(names) => names.iter().map(text).collect(),
        Columns::Json => vec![text(&"row".to_owned())],
        Columns::Entries => {
            let bytes = |name: &str, key| Shown {
                name: name.to_owned(),
                kind: "bytes".to_owned(),
                is_nullable: false,
                key,
            };
            vec![bytes("key", Some(1)), bytes("value", None)]
        }
    };
    match ui.answers {
        Answers::Json => shown.iter().try_for_each(|column| {
            ui.print_json(&json!({
                "column": column.name,
                "type": column.kind,
                "nullable": column.is_nullable,
                "key": column.key,
            }))
        }),
        Answers::Text => {
            let mut listing = table(["column", "type", "null", "key"]);
            for column in &shown {
                listing.add_row([
                    escaped(&column.name).into_owned(),
                    column.kind.clone(),
                    if column.is_nullable { "yes" } else { "no" }.to_owned(),
                    column.key.map(|place| place.to_string()).unwrap_or_default(),
                ]);
            }
            ui.print(|out| write_table(&listing, out))
        }
    }
}
