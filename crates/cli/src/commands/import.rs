//! `sapwood import`: a file of rows into a table of a directory, as `sapwood export` writes it.

mod plan;
mod putter;

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use sapwood::{Db, DbOptions};
use serde_json::json;

use sapwood::files::Format;

use crate::args::exchange::Import;
use crate::rows::exchange::cell::Cell;
use crate::rows::exchange::file_format;
use crate::rows::exchange::form::Form;
use crate::rows::exchange::reader::RowFile;
use crate::rows::kept;
use crate::terminal::exit::{COLUMNS_TABLE, Failure, Outcome};
use crate::terminal::format::{count, quoted, rate, time};
use crate::terminal::ui::{Answers, Ui};
use plan::{Known, Plan};
use putter::Putter;

pub(crate) fn run(args: &Import, ui: &Ui) -> Outcome {
    if args.table == COLUMNS_TABLE {
        return Err(Failure::Usage(format!(
            "table `{COLUMNS_TABLE}` describes the others; choose another name"
        )));
    }
    let started = Instant::now();
    let format = format_of(args)?;
    let file = RowFile::open(&args.file, format, ui)?;
    // The database is closed before the command ends, so that what is in lasts.
    let _promise = ui.interrupt.promise();
    let (db, known) = match kept::is_database(&args.directory)? {
        true => {
            let db = open(&args.directory)?;
            let known = Known::of(&db, &args.table)?;
            (Some(db), known)
        }
        // No directory is made for a file that cannot be read.
        false => (None, Known::default()),
    };
    let plan = Plan::new(args, &file, &known)?;
    let db = match db {
        Some(db) => db,
        None => open(&args.directory)?,
    };
    let mut putter = Putter::new(plan.open_table(args, &db, &known)?, args, file.unit());
    let form = &plan.form;
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut read = file.read(form, ui, &mut |number, cells: &[Cell<'_>]| {
        form.join(cells, &mut key, &mut value).map_err(Failure::Usage)?;
        putter.put(number, &key, &value)
    });
    // What came before a row that is refused goes in all the same.
    if let Err(failure) = putter.put_batch() {
        read = read.and(Err(failure));
    }
    let Putter { table, entries, .. } = putter;
    drop(table);
    db.close()?;
    let entries_in = match entries {
        1 => "1 entry is".to_owned(),
        many => format!("{} entries are", count(many)),
    };
    let so_far = format!("{entries_in} put into table {}, and will last", quoted(&args.table));
    match read {
        Ok(()) if ui.interrupt.asked() => Err(Failure::Interrupted(so_far)),
        Ok(()) => tell(args, format, form, entries, started, ui),
        Err(Failure::Failed(why)) => Err(Failure::Failed(format!("{why}; {so_far}"))),
        Err(other) => Err(other),
    }
}

fn open(directory: &Path) -> Outcome<Db> {
    Ok(Db::open_with(directory, DbOptions::default().without_log())?)
}

fn format_of(args: &Import) -> Outcome<Format> {
    match (args.file.as_path() == Path::new("-"), args.format) {
        (true, Some(format)) => Ok(format.into()),
        (true, None) => Err(Failure::Usage(
            "standard input has no name to tell its format: add --format csv or --format jsonl"
                .to_owned(),
        )),
        (false, said) => {
            let (format, _) = file_format::of_name(&args.file, said)?;
            file_format::expect_exact(format)?;
            Ok(format)
        }
    }
}

fn tell(
    args: &Import,
    format: Format,
    form: &Form,
    entries: u64,
    started: Instant,
    ui: &Ui,
) -> Outcome {
    let elapsed = started.elapsed();
    match ui.answers {
        Answers::Json => ui.print_json(&json!({
            "file": args.file.display().to_string(),
            "format": format.name(),
            "form": form.name(),
            "dir": args.directory.display().to_string(),
            "table": args.table,
            "rows": entries,
            "seconds": elapsed.as_secs_f64(),
        })),
        Answers::Text => ui.print(|out| {
            writeln!(out, "rows         {}", count(entries))?;
            writeln!(out, "as           {}", form.name())?;
            writeln!(out, "kept in      {}, table {}", args.directory.display(), args.table)?;
            writeln!(out, "time         {}, {}", time(elapsed), rate(entries, "rows", elapsed))
        }),
    }
}
