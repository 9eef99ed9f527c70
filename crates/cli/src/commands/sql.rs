//! `sapwood sql`: statements over files and tables.

use std::io::{self, Read, Write};

use comfy_table::CellAlignment;
use sapwood::schema::Value;
use sapwood::sql::{Answer, ErrorKind, Options, Outcome as Done, Session, Statement, parse};

use crate::args::sql::{Mode, Sql};
use crate::rows::frames::{FrameOptions, Malformed};
use crate::rows::statements::{Access, Named, csv, json_lines};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{escaped, plural, table, write_table};
use crate::terminal::stderr;
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn run(args: &Sql, ui: &Ui) -> Outcome {
    let text = text_of(args)?;
    let statements = parse(&text).map_err(|error| Failure::Usage(error.to_string()))?;
    if statements.is_empty() {
        return Err(Failure::Usage("there is no statement: sapwood sql 'select 1'".to_owned()));
    }
    let access = match statements.iter().any(Statement::changes_tables) {
        true => Access::Change,
        false => Access::Read,
    };
    let options = FrameOptions {
        types: args.types.clone(),
        na: args.na.clone(),
        delimiter: args.delimiter,
        malformed: if args.skip_malformed { Malformed::Skip } else { Malformed::Refuse },
        ..FrameOptions::default()
    };
    let named = Named::new(args.dir.clone(), access, options, ui);
    let promise = (access == Access::Change).then(|| ui.interrupt.promise());
    let mode = match (args.mode, ui.answers) {
        (Some(mode), _) => mode,
        (None, Answers::Json) => Mode::Json,
        (None, Answers::Text) => Mode::Table,
    };
    let cancel = || ui.interrupt.asked();
    let mut outcome = Ok(());
    for statement in &statements {
        outcome = execute(&named, statement, args, &cancel).and_then(|done| show(&done, mode, ui));
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

/// Executes a statement; again, if a file turns out to have wider types than its first rows.
fn execute(
    named: &Named<'_>,
    statement: &Statement,
    args: &Sql,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Outcome<Done> {
    let mut options = Options::default();
    options.cancel = Some(cancel);
    if let Some(threads) = args.threads {
        options.threads = threads.get();
    }
    if let Some(memory) = args.memory {
        options.memory_bytes_max = usize::try_from(memory).unwrap_or(usize::MAX);
    }
    let session = Session::new(named, options);
    loop {
        let error = match session.execute(statement) {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        if error.kind() == ErrorKind::Source && named.widen()? {
            continue;
        }
        return Err(match error.kind() {
            ErrorKind::Cancelled => Failure::Interrupted(error.what().to_owned()),
            ErrorKind::Syntax | ErrorKind::Unsupported | ErrorKind::Meaning => {
                Failure::Usage(error.to_string())
            }
            _ => Failure::Failed(error.to_string()),
        });
    }
}

fn show(done: &Done, mode: Mode, ui: &Ui) -> Outcome {
    match done {
        Done::Rows(answer) => ui.print(|out| write(answer, mode, out)),
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

/// Writes an answer.
pub(crate) fn write(answer: &Answer, mode: Mode, out: &mut impl Write) -> io::Result<()> {
    match mode {
        Mode::Table => write_columns(answer, out),
        Mode::Csv => csv(answer, out),
        Mode::Json => json_lines(answer, out),
        Mode::Markdown => write_markdown(answer, out),
    }
}

fn cells(answer: &Answer, row: usize) -> io::Result<Vec<String>> {
    let values = answer.row(row).map_err(io::Error::other)?;
    let text = |value: &Value<'_>| match value {
        Value::Null => "null".to_owned(),
        other => escaped(&other.to_string()).into_owned(),
    };
    Ok(values.iter().map(text).collect())
}

fn write_columns(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let names = answer.columns().iter().map(|column| escaped(&column.name).into_owned());
    let mut listing = table(names);
    for row in 0..answer.len() {
        listing.add_row(cells(answer, row)?);
    }
    for (at, column) in answer.columns().iter().enumerate() {
        if column.kind.is_number() {
            let column = listing.column_mut(at).expect("each has one");
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    write_table(&listing, out)
}

fn write_markdown(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |", cells.join(" | "))
    };
    let names = answer.columns().iter().map(|column| escaped(&column.name).into_owned());
    writeln!(out, "{}", line(&names.collect::<Vec<_>>()))?;
    let rules = answer.columns().iter();
    let rules = rules.map(|column| if column.kind.is_number() { "---:" } else { "---" }.to_owned());
    writeln!(out, "{}", line(&rules.collect::<Vec<_>>()))?;
    for row in 0..answer.len() {
        writeln!(out, "{}", line(&cells(answer, row)?))?;
    }
    Ok(())
}
