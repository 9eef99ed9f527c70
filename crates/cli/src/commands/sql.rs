//! `sapwood sql`: statements over files and tables.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use sapwood::schema::Value;
use sapwood::sql::{Answer, Options, Outcome as Done, Statement, parameter, parse_with};

use crate::args::sql::{Mode, Sql};
use crate::rows::statements::{Access, Home, Named};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{escaped, markdown_row, plural, table};
use crate::terminal::stderr;
use crate::terminal::ui::{Answers, Ui};
use sapwood::files::{Malformed, ReadOptions, csv_text, write_json_object};

pub(crate) fn run(args: &Sql, ui: &Ui) -> Outcome {
    let text = text_of(args)?;
    let values: Vec<Value<'_>> = args.parameters.iter().map(|text| parameter(text)).collect();
    let statements =
        parse_with(&text, &values).map_err(|error| Failure::Usage(error.to_string()))?;
    if statements.is_empty() {
        return Err(Failure::Usage("there is no statement: sapwood sql 'select 1'".to_owned()));
    }
    let access = match statements.iter().any(Statement::changes_tables) {
        true => Access::Change,
        false => Access::Read,
    };
    let files = ReadOptions {
        types: args.text.said().to_vec(),
        na: args.text.na.clone(),
        delimiter: args.text.delimiter,
        malformed: if args.skip_malformed { Malformed::Skip } else { Malformed::Refuse },
        ..ReadOptions::default()
    };
    let home = args.dir.clone().map_or(Home::None, Home::Directory);
    let named = Named::new(home, access, files, ui).overwriting(args.overwrite);
    let promise = (access == Access::Change).then(|| ui.interrupt.promise());
    let mode = match (args.mode, ui.answers) {
        (Some(mode), _) => mode,
        (None, Answers::Json) => Mode::Json,
        (None, Answers::Text) => Mode::Table,
    };
    let cancel = || ui.interrupt.asked();
    let mut outcome = Ok(());
    for statement in &statements {
        let done = named.execute(statement, options(args, &cancel));
        outcome = done.and_then(|done| show(&done, mode, &cancel, ui));
        if outcome.is_err() {
            break;
        }
    }
    let skipped = named.skipped();
    if skipped > 0 {
        let records = plural(skipped as usize, "record");
        stderr::line(format_args!("warning: {records} that cannot be read left out"));
    }
    let closed = named.close();
    drop(promise);
    outcome.and(closed)
}

fn text_of(args: &Sql) -> Outcome<String> {
    match (&args.statements, &args.file) {
        (Some(text), _) if text == "-" => {
            let mut text = String::new();
            let read = io::stdin().read_to_string(&mut text);
            read.map_err(|error| {
                Failure::Failed(format!("standard input cannot be read: {error}"))
            })?;
            Ok(text)
        }
        (Some(text), _) => Ok(text.clone()),
        (None, Some(path)) => std::fs::read_to_string(path).map_err(|error| {
            Failure::Failed(format!("{} cannot be read: {error}", path.display()))
        }),
        (None, None) => unreachable!("one of the two is required"),
    }
}

fn options<'c>(args: &Sql, cancel: &'c (dyn Fn() -> bool + Sync)) -> Options<'c> {
    let mut options = Options::default();
    options.cancel = Some(cancel);
    if let Some(threads) = args.threads {
        options.threads = threads.get();
    }
    if let Some(memory) = args.memory {
        options.memory_bytes_max = usize::try_from(memory).unwrap_or(usize::MAX);
    }
    options
}

/// Writes what a statement did, until it is cancelled.
pub(crate) fn show(done: &Done, mode: Mode, is_cancelled: &dyn Fn() -> bool, ui: &Ui) -> Outcome {
    match done {
        Done::Rows(answer) => {
            let colours = ui.has_colours();
            let written =
                ui.print(|out| write(answer, mode, colours, &mut Stopped { out, is_cancelled }));
            match is_cancelled() {
                true => Err(Failure::Interrupted("the answer is not shown to its end".to_owned())),
                false => written,
            }
        }
        Done::Changed { what, rows } => match mode {
            Mode::Json => ui.print(|out| writeln!(out, "{{\"{what}\":{rows}}}")),
            _ => ui.print(|out| writeln!(out, "{} {what}", plural(*rows as usize, "row"))),
        },
        Done::Done(what) => match mode {
            Mode::Json => {
                ui.print(|out| writeln!(out, "{{\"done\":{}}}", serde_json::Value::from(&what[..])))
            }
            _ => ui.print(|out| writeln!(out, "{what}")),
        },
        other => unreachable!("no statement ends so: {other:?}"),
    }
}

/// An output that takes nothing more once the statement is cancelled.
struct Stopped<'o, W> {
    out: &'o mut W,
    is_cancelled: &'o dyn Fn() -> bool,
}

impl<W: Write> Write for Stopped<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match (self.is_cancelled)() {
            true => Err(io::Error::other("cancelled")),
            false => self.out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match (self.is_cancelled)() {
            true => Err(io::Error::other("cancelled")),
            false => self.out.flush(),
        }
    }
}

/// Writes an answer.
fn write(answer: &Answer, mode: Mode, colours: bool, out: &mut impl Write) -> io::Result<()> {
    match mode {
        Mode::Table => write_columns(answer, colours, out),
        Mode::Csv => csv(answer, out),
        Mode::Json => json_lines(answer, out),
        Mode::Markdown => write_markdown(answer, out),
    }
}

/// CSV with a header. Null is an empty field.
fn csv(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(answer.columns().iter().map(|column| &column.name))?;
    for at in 0..answer.len() {
        let values = answer.row(at).map_err(io::Error::other)?;
        writer.write_record(values.iter().map(csv_text))?;
    }
    writer.flush()
}

/// An object for each row.
fn json_lines(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    for at in 0..answer.len() {
        let values = answer.row(at).map_err(io::Error::other)?;
        let names = answer.columns().iter().map(|column| &column.name[..]);
        write_json_object(names.zip(&values), out)?;
    }
    Ok(())
}

fn cells(answer: &Answer, row: usize) -> io::Result<Vec<String>> {
    let values = answer.row(row).map_err(io::Error::other)?;
    let text = |value: &Value<'_>| match value {
        Value::Null => "null".to_owned(),
        // Not to be taken for no value.
        Value::Text(text) if text == "null" => "'null'".to_owned(),
        other => escaped(&other.to_string()).into_owned(),
    };
    Ok(values.iter().map(text).collect())
}

/// Names of columns, and what is no value, on a terminal.
const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Columns two blanks apart, row by row: an answer may have many.
fn write_columns(answer: &Answer, colours: bool, out: &mut impl Write) -> io::Result<()> {
    let names = answer.columns().iter().map(|column| escaped(&column.name).into_owned());
    let names: Vec<String> = names.collect();
    let mut widths: Vec<usize> = names.iter().map(|name| width(name)).collect();
    for row in 0..answer.len() {
        // It notices that the answer is cancelled, though no line is written yet.
        out.flush()?;
        for (widest, cell) in widths.iter_mut().zip(cells(answer, row)?) {
            *widest = width(&cell).max(*widest);
        }
    }
    let mut write = |cells: &[String], colour: &dyn Fn(&str) -> Option<&'static str>| {
        let mut line = String::new();
        for ((cell, column), widest) in cells.iter().zip(answer.columns()).zip(&widths) {
            let blanks = " ".repeat(widest - width(cell));
            let (before, behind) =
                if column.kind.is_number() { (&blanks[..], "") } else { ("", &blanks[..]) };
            let (begin, end) = match colour(cell).filter(|_| colours) {
                Some(begin) => (begin, PLAIN),
                None => ("", ""),
            };
            line.extend([before, begin, cell, end, behind, "  "]);
        }
        writeln!(out, "{}", line.trim_end())
    };
    write(&names, &|_| Some(BOLD))?;
    let dim = |cell: &str| (cell == "null").then_some(DIM);
    (0..answer.len()).try_for_each(|row| write(&cells(answer, row)?, &dim))
}

/// The places that a text takes on a terminal.
fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let mut one = table([""; 1]);
    one.add_row([text]);
    one.column_max_content_widths().first().map_or(0, |&width| usize::from(width))
}

fn write_markdown(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let names = answer.columns().iter().map(|column| escaped(&column.name));
    writeln!(out, "{}", markdown_row(names))?;
    let rules = answer.columns().iter();
    let rules = rules.map(|column| if column.kind.is_number() { "---:" } else { "---" }.into());
    writeln!(out, "{}", markdown_row(rules))?;
    (0..answer.len()).try_for_each(|row| {
        writeln!(out, "{}", markdown_row(cells(answer, row)?.into_iter().map(Cow::Owned)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_letters_take_two_places() {
        for (text, places) in [("", 0), ("abc", 3), ("\u{e9}t\u{e9}", 3), ("\u{6f22}\u{5b57}", 4)] {
            assert_eq!(width(text), places, "{text}");
        }
    }
}
