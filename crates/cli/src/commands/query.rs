//! `sapwood query`: a native query over a roll-up table, or over rows of files that are rolled up in memory.

use std::io::Write;
#[cfg(feature = "columnar")]
use std::io::{IsTerminal, stdout};
use std::path::Path;

use sapwood::rollup::{Answer, Query, Schema, Value};
use sapwood::{Db, RollupTable, RollupTableOptions};

use crate::args;
use crate::rows::events::{Told, document};
#[cfg(not(feature = "columnar"))]
use crate::rows::exchange::file_format::not_built;
use crate::rows::kept::database;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{count, escaped, plural, table, write_table};
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn run(args: &args::rows::Query, ui: &Ui) -> Outcome {
    expect_printable(args)?;
    let text = document(&args.query)?;
    let query = Query::from_json(&text)?.threads(args.threads.into());
    match (&args.files[..], &args.schema) {
        ([directory], None) if directory.is_dir() => {
            let db = database(directory, ui)?;
            let asked = opened(&db, directory, args.table.as_deref(), &text)?;
            print(&asked.query(&query)?, args, ui)
        }
        ([directory], Some(_)) if directory.is_dir() => Err(Failure::Usage(format!(
            "tables of {} have schemas of their own: leave --schema out",
            directory.display()
        ))),
        (_, None) => Err(Failure::Usage(
            "--schema is needed: it says how rows of files become facts".to_owned(),
        )),
        (_, Some(_)) if args.table.is_some() => Err(Failure::Usage(
            "--table names a table of a directory, and files have none".to_owned(),
        )),
        (files, Some(schema)) => {
            let options = RollupTableOptions::new(Schema::from_json(&document(schema)?)?);
            let rolled_up = Db::in_memory().create_rollup_table("rows", options)?;
            let mut told = Told::default();
            let mut writer = rolled_up.writer();
            for file in files {
                let mut take = |batch: &_, _| writer.ingest(batch);
                told.read(file, args.format, 0, &mut take, ui)?;
            }
            say(&rolled_up, ui);
            told.warn();
            if args.strict {
                told.strictly()?;
            }
            print(&rolled_up.query(&query)?, args, ui)
        }
    }
}

/// The table that was named, or that the query names, or the only one.
fn opened(db: &Db, directory: &Path, named: Option<&str>, query: &str) -> Outcome<RollupTable> {
    let source = || {
        let document: serde_json::Value = serde_json::from_str(query).ok()?;
        let source = document.get("dataSource")?;
        let name = source.as_str().or_else(|| source.get("name")?.as_str())?;
        Some(name.to_owned())
    };
    if let Some(name) = named.map(str::to_owned).or_else(source) {
        return Ok(db.rollup_table(&name)?);
    }
    let is_rollup = |name: &String| db.engine(name) == Some(sapwood::Engine::Rollup);
    let names: Vec<String> = db.table_names().into_iter().filter(is_rollup).collect();
    match &names[..] {
        [one] => Ok(db.rollup_table(one)?),
        [] => Err(Failure::Failed(format!(
            "{} has no roll-up table; `sapwood ingest` makes one",
            directory.display()
        ))),
        many => Err(Failure::Usage(format!(
            "--table is needed, or a `dataSource` in the query; there are: {}",
            many.join(", ")
        ))),
    }
}

/// Says by the way how far rows rolled up.
fn say(rolled_up: &RollupTable, ui: &Ui) {
    let stats = rolled_up.stats();
    ui.notice(format_args!(
        "{} rolled up into {}, in {} bytes",
        plural(stats.processed as usize, "row"),
        plural((stats.facts + stats.segment_facts) as usize, "fact"),
        count(stats.fact_bytes + stats.dictionary_bytes + stats.segment_bytes)
    ));
}

/// Fails before there is an answer where it could not be printed.
fn expect_printable(args: &args::rows::Query) -> Outcome {
    match args.arrow {
        #[cfg(not(feature = "columnar"))]
        true => Err(not_built("arrow")),
        #[cfg(feature = "columnar")]
        true if stdout().is_terminal() => {
            Err(Failure::Usage("arrow is not for a terminal: use a pipe, or `> FILE`".to_owned()))
        }
        _ => Ok(()),
    }
}

fn print(answer: &Answer, args: &args::rows::Query, ui: &Ui) -> Outcome {
    #[cfg(feature = "columnar")]
    if args.arrow {
        let stream = answer.to_arrow_stream()?;
        return ui.print(|out| out.write_all(&stream));
    }
    if args.csv {
        return ui.print(|out| write!(out, "{}", answer.to_csv()));
    }
    match ui.answers {
        Answers::Json => ui.print(|out| writeln!(out, "{}", answer.to_json())),
        Answers::Text => ui.print(|out| {
            let mut shown = table(&answer.columns);
            for row in &answer.rows {
                let cells = row.iter().zip(&answer.columns).map(|(value, column)| match value {
                    Value::Null => String::new(),
                    time if answer.is_time(column) => answer.time(time).unwrap_or_default(),
                    value => escaped(&value.to_string()).into_owned(),
                });
                shown.add_row(cells);
            }
            write_table(&shown, out)
        }),
    }
}
