//! `sapwood export`: every entry of a table of a directory, into a file of another program's format; the facts of a
//! roll-up, into a folder of them.

#[cfg(feature = "columnar")]
mod facts;
mod typed;

use std::io::{self, IsTerminal, Write, stdout};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use sapwood::{AnyTable, Db, Engine};
use serde_json::{Value, json};

use sapwood::files::Format;

use crate::args::exchange::Export;
use crate::rows::columns::Columns;
use crate::rows::exchange::file_format;
use crate::rows::exchange::form::Form;
use crate::rows::exchange::origin::Origin;
use crate::rows::exchange::survey::survey;
use crate::rows::exchange::writer::RowWriter;
use crate::rows::kept::{self, Description, Reading};
use crate::rows::rows_table;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{count, plural, rate, time};
use crate::terminal::ui::{Answers, Ui};
use sapwood::files::{Existing, FileSink, Packing};

pub(crate) fn run(args: &Export, ui: &Ui) -> Outcome {
    let db = kept::database(&args.directory, ui)?;
    if db.engine(&args.table) == Some(Engine::Rollup) {
        return export_facts(&db, args, ui);
    }
    let (to, format, packing) = target(args)?;
    let started = Instant::now();
    let (table, description) = kept::table(&db, &args.directory, &args.table, Reading::AsIs)?;
    if let (Columns::Typed(row), false) = (&description.columns, args.raw) {
        return typed::export(&table, row, args, ui);
    }
    file_format::expect_exact(format)?;
    // A file that has been begun is taken away before the command ends.
    let _promise = to.map(|_| ui.interrupt.promise());
    let survey = survey(&table, &description, format, args.raw, ui)?;
    if let Some(why) = &survey.instead {
        ui.notice(format_args!(
            "table {}: keys and values are written as bytes: {why}",
            args.table
        ));
    }
    let sink = sink(args, to, packing)?;
    let origin = Origin::new(table.engine(), &survey.form, &description, table.fields());
    let mut writer = RowWriter::new(format, &survey.form, &origin, sink)?;
    let columns = survey.form.columns().len();
    let rows = walk(&table, survey.rows, to, ui, |key, value| {
        let mut cells = Vec::with_capacity(columns);
        match survey.form.split(key, value, &mut cells) {
            Ok(()) => writer.write(&cells),
            // All were looked at, and nothing changes the directory meanwhile.
            Err(why) => Err(Failure::Failed(format!("the table changed: {why}; try again"))),
        }
    })?;
    writer.finish()?;
    let columns = match &survey.form {
        Form::Lines { .. } => Value::Null,
        form => form.columns().iter().map(|column| column.name.as_str()).collect(),
    };
    let import = import_command(args, format, &table, &survey.form, &description);
    let answer = Answer { args, format, form: survey.form.name(), columns, import };
    answer.tell(to, rows, started, ui)
}

#[cfg(feature = "columnar")]
fn export_facts(db: &Db, args: &Export, ui: &Ui) -> Outcome {
    facts::export(&db.rollup_table(&args.table)?, args, ui)
}

#[cfg(not(feature = "columnar"))]
fn export_facts(_: &Db, _: &Export, _: &Ui) -> Outcome {
    Err(file_format::not_built(Format::Parquet.name()))
}

/// The file, if it is not standard output, its format and its packing.
fn target(args: &Export) -> Outcome<(Option<&Path>, Format, Packing)> {
    let to = args.to.as_deref().filter(|path| *path != Path::new("-"));
    match to {
        Some(path) => {
            let (format, packing) = file_format::of_name(path, args.format)?;
            Ok((to, format, packing))
        }
        None => {
            let format = args.format.map_or(Format::Csv, Into::into);
            if format.is_columnar() && stdout().is_terminal() {
                return Err(Failure::Usage(format!(
                    "{} is not for a terminal: name a file with --to, or use a pipe",
                    format.name()
                )));
            }
            Ok((None, format, Packing::Plain))
        }
    }
}

fn sink(args: &Export, to: Option<&Path>, packing: Packing) -> Outcome<FileSink> {
    let existing = if args.overwrite { Existing::Replace } else { Existing::Keep };
    match to {
        Some(path) => Ok(FileSink::file(path, packing, existing)?),
        None => Ok(FileSink::writer("standard output", io::stdout())),
    }
}

/// Shows all rows, and answers how many there are; about how many are expected.
fn walk(
    table: &AnyTable,
    expected: u64,
    to: Option<&Path>,
    ui: &Ui,
    mut write: impl FnMut(&[u8], &[u8]) -> Outcome,
) -> Outcome<u64> {
    let progress = ui.progress("exporting", expected);
    let mut rows = 0;
    let end = rows_table::scan_entries(table, |key, value| {
        let written = write(key, value);
        rows += 1;
        progress.inc(1);
        match written {
            Err(failure) => ControlFlow::Break(failure),
            Ok(()) if ui.interrupt.asked() => {
                let rows = plural(rows as usize, "row");
                let left = to.map_or("", |_| "; no file is left of them");
                ControlFlow::Break(Failure::Interrupted(format!("{rows} had been written{left}")))
            }
            Ok(()) => ControlFlow::Continue(()),
        }
    })?;
    progress.finish_and_clear();
    match end {
        ControlFlow::Break(failure) => Err(failure),
        ControlFlow::Continue(()) => Ok(rows),
    }
}

/// What is said of an export that is done.
struct Answer<'a> {
    args: &'a Export,
    format: Format,
    /// How the rows were written.
    form: &'a str,
    /// The names of the columns, if all rows have the same.
    columns: Value,
    /// The command that makes a table like it of the file; `FILE` stands for standard output.
    import: String,
}

impl Answer<'_> {
    /// Prints it; beside the rows, where those are on standard output.
    fn tell(&self, to: Option<&Path>, rows: u64, started: Instant, ui: &Ui) -> Outcome {
        let elapsed = started.elapsed();
        let Answer { args, format, form, columns, import } = self;
        let file = to.map(|path| path.display().to_string());
        let bytes = to.and_then(|path| path.metadata().ok()).map(|about| about.len());
        match (ui.answers, &file) {
            (Answers::Json, _) => {
                let object = json!({
                    "dir": args.directory.display().to_string(),
                    "table": args.table,
                    "file": file,
                    "format": format.name(),
                    "form": form,
                    "columns": columns,
                    "rows": rows,
                    "bytes": bytes,
                    "import": import,
                    "seconds": elapsed.as_secs_f64(),
                });
                match file {
                    Some(_) => ui.print_json(&object),
                    None => {
                        ui.notice(object);
                        Ok(())
                    }
                }
            }
            (Answers::Text, Some(file)) => ui.print(|out| {
                writeln!(out, "rows         {}", count(rows))?;
                writeln!(out, "as           {form}")?;
                writeln!(out, "file         {file}")?;
                writeln!(out, "back by      {import}")?;
                writeln!(out, "time         {}, {}", time(elapsed), rate(rows, "rows", elapsed))
            }),
            (Answers::Text, None) => {
                ui.notice(format_args!("{} in {}", plural(rows as usize, "row"), time(elapsed)));
                Ok(())
            }
        }
    }
}

fn engine_name(table: &AnyTable) -> &'static str {
    match table.engine() {
        Engine::Hash => "hash",
        Engine::Tree => "tree",
        _ => "ordered",
    }
}

/// The file as a word of a command.
fn file_word(args: &Export) -> String {
    let to = args.to.as_deref().filter(|path| *path != Path::new("-"));
    to.map_or_else(|| "FILE".to_owned(), |path| quoted_word(&path.display().to_string()))
}

/// The command that makes a table like it of the file.
fn import_command(
    args: &Export,
    format: Format,
    table: &AnyTable,
    form: &Form,
    description: &Description,
) -> String {
    let (engine, file) = (engine_name(table), file_word(args));
    let name = quoted_word(&args.table);
    let mut command = format!("sapwood import DIR {name} {file} --engine {engine}");
    // Files of typed columns say the rest themselves.
    if !format.is_columnar() {
        let key = || quoted_word(&description.keys.to_spec());
        match form {
            Form::Entries { .. } => {}
            Form::Fields { .. } => {
                if let Some(layout) = table.fields() {
                    command += &format!(" --layout {}", quoted_word(&layout.to_string()));
                }
            }
            Form::Cells(_) if format == Format::Jsonl => {
                command += &format!(" --key {} --cells", key());
            }
            Form::Cells(_) | Form::Lines { .. } => command += &format!(" --key {}", key()),
        }
    }
    command
}

/// A word of a command, in quotes where a shell would take it apart.
fn quoted_word(word: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || "_-./:,=+@%".contains(char);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
