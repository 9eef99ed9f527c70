//! `sapwood tables`: the tables of a directory.

use comfy_table::CellAlignment;
use serde_json::json;

use super::stats::engine_name;
use crate::args;
use crate::rows::kept;
use crate::terminal::exit::Outcome;
use crate::terminal::format::{count, escaped, table, write_table};
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn run(args: &args::tables::Tables, ui: &Ui) -> Outcome {
    let db = kept::database(&args.directory, ui)?;
    let mut tables = kept::tables(&db)?;
    for table in &mut tables {
        table.kind = db.engine(&table.name).map_or("", engine_name).to_owned();
    }
    match ui.answers {
        Answers::Json => tables.iter().try_for_each(|table| {
            ui.print_json(&json!({
                "table": table.name,
                "engine": table.kind,
                "rows": table.rows,
                "columns": table.columns,
            }))
        }),
        Answers::Text if tables.is_empty() => {
            ui.notice(format_args!("{} has no tables", args.directory.display()));
            Ok(())
        }
        Answers::Text => {
            let mut listing = table(["table", "engine", "rows", "columns"]);
            for table in &tables {
                listing.add_row([
                    escaped(&table.name).into_owned(),
                    table.kind.clone(),
                    table.rows.map_or_else(|| "-".to_owned(), count),
                    escaped(&table.columns).into_owned(),
                ]);
            }
            let rows = listing.column_mut(2).expect("there are four");
            rows.set_cell_alignment(CellAlignment::Right);
            ui.print(|out| write_table(&listing, out))
        }
    }
}
