//! `sapwood aggregate`: figures of rows, computed where the rows lie.
//!
//! | module | holds |
//! |---|---|
//! | `request` | the text forms of the arguments |
//! | `fields` | columns as fields |
//! | `selected` | the keys that count |
//! | `rows` | the rows of the answer, printed |
//! | `explained` | the plan and the execution, printed |

mod explained;
mod fields;
mod request;
mod rows;
mod selected;

use std::io::Write;
use std::sync::Arc;
use std::thread;

use sapwood::aggregate::{
    self, Answer, Execution, Group, Layout, Plan, Progress, QueryError, Tally,
};
use sapwood::schema::{RowFormat, Schema, Type};
use sapwood::{AnyTable, Error};

use crate::args;
use crate::rows::columns::Columns;
use crate::rows::key_columns::KeyColumns;
use crate::rows::key_range::KeyBounds;
use crate::rows::open_input::{Loaded, open_any_input};
use crate::rows::source;
use crate::terminal::exit::{Failure, Outcome, words};
use crate::terminal::format::{
    count, escaped, plural, quoted, shown, shown_list, time, write_table,
};
use crate::terminal::stderr;
use crate::terminal::ui::{Answers, Ui};
use sapwood::files::FileSource;

use explained::Explained;
use fields::{Fields, Mixed};
use request::Request;

pub(crate) fn run(args: &args::rows::Aggregate, ui: &Ui) -> Outcome {
    let request = Request::parse(args)?;
    let range = KeyBounds::parse(&args.range, args.input.key.as_ref())?;
    selected::check(args)?;
    if args.layout.is_some() && !args.input.file.is_dir() {
        source::exists(&args.input.file)?;
        return Err(Failure::Usage(
            "--layout reads the bytes of rows in a directory: the columns of a file have types, and --types \
             'delay:f64' gives one another"
                .to_owned(),
        ));
    }
    let is_explained = args.explain || args.dry_run;
    let asked = |file: &FileSource| columns_of_file(&request, args, file);
    let loaded = open_any_input(&args.input, &asked, ui)?;
    loaded.tell(&args.input, ui);
    let Fields { fields, mixed, keeps_na } =
        fields::of_rows(&loaded, args.input.text.na.as_deref(), &request.fields)?;
    if fields.is_empty() {
        return Err(Failure::Usage(format!(
            "{} has a table {}, which was not made by `sapwood load` and declares no fields: say \
             with --layout how its objects are read, such as 'hits:i64le'",
            args.input.file.display(),
            quoted(&args.input.table)
        )));
    }
    let layout = Layout::new(fields).map_err(usage)?;
    let explained = is_explained.then_some(Explained { layout: &layout });
    if let Some(explained) = &explained {
        explained.columns(ui)?;
    }
    let selection = selected::selection(args, &range, &loaded.keys, ui)?;
    let query = request.query(layout.clone(), args).select(selection);
    // What does not fit the rows is told apart from what does not fit the answer.
    let ground = Ground::of(&loaded);
    query.compile().map_err(|error| usage_of_columns(&error, &mixed, &loaded, is_explained))?;
    let groups = request.groups.clone();
    let query = request.arranged(query).compile().map_err(usage)?;
    for mixed in mixed.iter().filter(|mixed| mixed.is_read_by(&query, &layout)) {
        stderr::line(format_args!("warning: {mixed}"));
    }
    let mut kept = keeps_na;
    kept.retain(|name| query.reads_field(name));

    let threads = args.threads.map_or_else(cores, usize::from);
    let mut execution = Execution::new().threads(threads);
    if let Some(executor) = args.executor {
        execution = execution.executor(executor);
    }
    let plan = loaded.table.explain(&query, &execution).map_err(usage)?;
    if let Some(explained) = &explained {
        if args.dry_run {
            return explained.dry(&plan, ui);
        }
        explained.plan(&plan, ui)?;
    }
    let (answer, plan) = answer(&loaded.table, &loaded.keys, ground, &query, execution, &plan, ui)?;
    print(&answer, &groups, &kept, ui)?;
    if let Some(explained) = &explained {
        explained.after(&plan, &answer, ui)?;
    }
    tell(&answer.tally, &plan, &loaded, ui);
    loaded.strictly(&args.input)
}

/// The columns of a file that a request reads, or none if it may read any. A name that no column
/// has is refused before the rows are read.
fn columns_of_file(
    request: &Request,
    args: &args::rows::Aggregate,
    file: &FileSource,
) -> Outcome<Option<Vec<String>>> {
    // Members of JSON may come late, and a plan shows all columns.
    if !file.has_all_columns() || args.explain || args.dry_run {
        return Ok(None);
    }
    let columns = file.columns().iter().filter(|column| !column.name.is_empty());
    let schema = columns.fold(Schema::builder(), |schema, column| {
        schema.nullable(&column.name, column.kind.clone())
    });
    // What is wrong with them is told when they are loaded.
    let Ok(schema) = schema.build() else { return Ok(None) };
    let layout = Layout::of_rows(&Arc::new(RowFormat::new(schema)));
    let query = match request.query(layout, args).compile() {
        Ok(query) => query,
        Err(error @ QueryError::NoField { .. }) => {
            return Err(Failure::Usage(format!("{error}\n--dry-run shows how columns are read")));
        }
        // Types are those of all rows.
        Err(_) => return Ok(None),
    };
    let is_said = |name: &str| args.input.text.said().iter().any(|(said, _)| said == name);
    let names = file.columns().iter().map(|column| &column.name);
    let read = names.clone().filter(|name| query.reads_field(name) || is_said(name));
    let read: Vec<String> = read.cloned().collect();
    Ok(Some(match read.is_empty() {
        // Rows are counted by one of them.
        true => names.take(1).cloned().collect(),
        false => read,
    }))
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, |cores| cores.get().min(256))
}

/// The usage error of parts that do not fit each other or the rows.
fn usage(error: impl Into<Error>) -> Failure {
    Failure::Usage(words(&error.into()))
}

/// What rows are, by which their columns are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ground {
    /// Of a file, whose columns have the types that are said.
    File,
    /// Of a directory, whose columns have types.
    Typed,
    /// Text, or what a program made.
    Bytes,
}

impl Ground {
    fn of(loaded: &Loaded) -> Ground {
        match (&loaded.columns, loaded.db.directory()) {
            (Columns::Typed(_), None) => Ground::File,
            (Columns::Typed(_), Some(_)) => Ground::Typed,
            _ => Ground::Bytes,
        }
    }
}

fn usage_of_columns(
    error: &aggregate::QueryError,
    mixed: &[Mixed],
    loaded: &Loaded,
    is_explained: bool,
) -> Failure {
    let error = error.to_string();
    let is_named = |name: &str| error.contains(&format!("`{name}`"));
    let of_text = match (&loaded.columns, Ground::of(loaded)) {
        (Columns::Typed(format), Ground::File) => {
            let mut columns = format.schema().columns().iter();
            columns.find(|column| column.kind == Type::Text && is_named(&column.name))
        }
        _ => None,
    };
    if let Some(column) = of_text {
        let name = shown(&column.name);
        return Failure::Usage(format!(
            "{error}\n--types '{name}:f64' reads numbers, and leaves rows with others out"
        ));
    }
    if let Some(Mixed { field, other, .. }) = mixed.iter().find(|it| is_named(&it.field.name)) {
        return Failure::Usage(format!(
            "{error}\nit has {} beside numbers; --layout '{field}' reads \
             numbers, and --na or --mismatches skip passes over what is none",
            quoted(other)
        ));
    }
    let layout = "--layout 'delay:cell(4).decimal' changes";
    Failure::Usage(match (is_explained, Ground::of(loaded)) {
        (false, Ground::Bytes) => {
            format!("{error}\n--dry-run shows how columns are read, {layout} it")
        }
        (false, Ground::File | Ground::Typed) => {
            format!("{error}\n--dry-run shows how columns are read")
        }
        // How they are read stands above.
        (true, Ground::Bytes) => format!("{error}\n{layout} how columns are read"),
        (true, Ground::File | Ground::Typed) => error,
    })
}

/// Runs the query, with a bar, until the user stops it.
fn answer(
    table: &AnyTable,
    keys: &KeyColumns,
    ground: Ground,
    query: &aggregate::Compiled,
    execution: Execution<'_>,
    plan: &Plan,
    ui: &Ui,
) -> Outcome<(Answer, Plan)> {
    let bar = ui.progress("aggregating", plan.expected().visits);
    let tell = |Progress { done, total }| {
        bar.set_length(total);
        // Threads tell in any order.
        if done > bar.position() {
            bar.set_position(done);
        }
    };
    let execution = execution.progress(&tell).cancel(ui.interrupt.cancel());
    let run = table.aggregate_with(query, &execution);
    bar.finish_and_clear();
    let answered = run.and_then(|run| {
        let plan = run.plan.clone();
        run.answer().map(|answer| (answer, plan))
    });
    answered.map_err(|error| match error {
        Error::Cancelled { visited, .. } => Failure::Interrupted(format!(
            "{} of about {} had been visited; nothing was changed",
            count(visited),
            count(plan.expected().visits)
        )),
        Error::Query(aggregate::QueryError::Mismatched { count: mismatched, selected, first }) => {
            let other = match ground {
                Ground::File => "say with --types or --na how the column is read, or ",
                Ground::Typed => "",
                Ground::Bytes => "say with --layout or --na how the column is read, or ",
            };
            Failure::Failed(format!(
                "{} of {} without what is read; the first by key, {}; {other}leave such rows out with \
                 --mismatches skip",
                count(mismatched),
                plural(selected as usize, "selected row"),
                example(&first, keys)
            ))
        }
        error => error.into(),
    })
}

/// A row that does not fit, by its key as a user would type it.
fn example(first: &aggregate::Example, keys: &KeyColumns) -> String {
    match keys.decode(&first.key) {
        Ok(values) if keys.is_row_number() => {
            format!("row {}: {}", shown_list(&values), escaped(&first.what))
        }
        Ok(values) if !values.is_empty() => {
            format!("{}: {}", shown_list(&values), escaped(&first.what))
        }
        _ => escaped(&first.to_string()).into_owned(),
    }
}

/// `keeps_na` are columns that the query reads and of which more is to be known.
fn print(answer: &Answer, groups: &[Group], keeps_na: &[String], ui: &Ui) -> Outcome {
    match ui.answers {
        Answers::Json => ui.print(|out| rows::write_json(answer, out))?,
        Answers::Text => {
            let table = rows::as_table(answer, groups);
            ui.print(|out| write_table(&table, out))?;
        }
    }
    let mut notes = rows::notes(answer);
    notes.extend(keeps_na.iter().map(|name| {
        format!(
            "{} is missing where it is empty, and NA is a value of it: --na NA changes that",
            escaped(name)
        )
    }));
    match ui.answers {
        // Objects alone on standard output; --explain has the bounds as one.
        Answers::Json => notes.iter().for_each(|note| ui.notice(note)),
        Answers::Text if notes.is_empty() => {}
        Answers::Text => ui.print(|out| {
            writeln!(out)?;
            notes.iter().try_for_each(|note| writeln!(out, "{note}"))
        })?,
    }
    Ok(())
}

/// Says by the way how many rows went which way, and how fast; warns of those that are in no
/// figure.
fn tell(tally: &Tally, plan: &Plan, loaded: &Loaded, ui: &Ui) {
    let Tally { selected, matched, mismatched, missing, absent, .. } = *tally;
    let mut what = plural(selected as usize, "row");
    if matched + mismatched != selected {
        what = format!("{what}, {} of them as --where says", count(matched));
    }
    if missing > 0 {
        what = format!("{what}, {} without a value that is read", count(missing));
    }
    if let Some(measured) = plan.measured {
        let elapsed = time(measured.elapsed);
        let per_ms = selected as f64 / (measured.elapsed.as_secs_f64() * 1e3).max(1e-6);
        what = format!("{what}; by {} in {elapsed}, {per_ms:.0} rows/ms", plan.executor);
    }
    ui.notice(what);
    if absent > 0 {
        let keys = plural(absent as usize, "key");
        stderr::line(format_args!("warning: {keys} of --keys without a row"));
    }
    if mismatched > 0 {
        let first = tally.first_mismatch.as_ref();
        let first = first.map_or_else(String::new, |first| {
            format!("; the first by key, {}", example(first, &loaded.keys))
        });
        let rows = plural(mismatched as usize, "row");
        stderr::line(format_args!("warning: {rows} left out, without what is read{first}"));
    }
}

#[cfg(test)]
mod tests {
    use sapwood::aggregate::{Aggregate, Cancel, Query};
    use sapwood::{Db, HashTableOptions, OrderedTableOptions};

    use super::*;
    use crate::terminal::interrupt::Interrupt;

    #[test]
    fn ctrl_c_ends_a_run_and_says_that_nothing_was_changed() {
        let db = Db::in_memory();
        let ordered =
            db.create_ordered_table("ordered", OrderedTableOptions::default()).expect("a table");
        let hash = db.create_hash_table("hash", HashTableOptions::default()).expect("a table");
        for number in 0..10_000_u32 {
            let bytes = number.to_be_bytes();
            ordered.put(bytes, bytes).expect("room");
            hash.put(bytes, bytes).expect("room");
        }
        let query = Query::new("n:u32be".parse().expect("a layout"))
            .aggregates(vec![Aggregate::sum("n")])
            .compile()
            .expect("a query");
        for table in [AnyTable::from(ordered), AnyTable::from(hash)] {
            let answer_until = |interrupt: Cancel| {
                let ui = Ui::quiet(Interrupt::of(interrupt));
                let execution = Execution::new().threads(2);
                let plan = table.explain(&query, &execution).expect("a plan");
                answer(&table, &KeyColumns::bytes(), Ground::Bytes, &query, execution, &plan, &ui)
            };
            let (answered, _) = answer_until(Cancel::new()).expect("no request to stop");
            assert_eq!(answered.value(0, "sum(n)"), Ok(&(9_999 * 10_000 / 2).into()));
            let cancel = Cancel::new();
            cancel.cancel();
            match answer_until(cancel) {
                Err(Failure::Interrupted(done)) => {
                    assert!(done.ends_with("had been visited; nothing was changed"), "{done}");
                }
                other => panic!("it went on: {other:?}"),
            }
            assert_eq!(table.len(), Ok(10_000));
        }
    }
}
