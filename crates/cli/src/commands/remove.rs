//! `sapwood remove`: the rows of a key, out of a table of a directory.

use std::io::Write;
use std::ops::ControlFlow;

use serde_json::json;

use super::get::check_count;
use crate::args::tables::Remove;
use crate::rows::kept::{self, Reading};
use crate::rows::rows_table;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{plural, shown_list};
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn run(args: &Remove, ui: &Ui) -> Outcome {
    let _promise = ui.interrupt.promise();
    let db = kept::database_to_change(&args.directory, ui)?;
    let (table, description) = kept::table(&db, &args.directory, &args.table, Reading::AsIs)?;
    let keys = &description.keys;
    check_count(&args.values, keys.len()..=keys.len_max())?;
    let key = keys.encode_values(&args.values)?;
    let mut found = Vec::new();
    let _ = rows_table::find_entries(&table, &description.columns, &key, |key, _| {
        found.push(key.to_vec());
        ControlFlow::<()>::Continue(())
    })?;
    let mut removed = 0_usize;
    for key in &found {
        removed += usize::from(table.remove(key)?);
    }
    drop(table);
    db.close()?;
    if removed == 0 {
        let values = shown_list(&args.values);
        return Err(Failure::Failed(format!("no row has the key {values} ({keys})")));
    }
    match ui.answers {
        Answers::Json => ui.print_json(&json!({ "rows": removed })),
        Answers::Text => ui.print(|out| writeln!(out, "{} removed", plural(removed, "row"))),
    }
}
