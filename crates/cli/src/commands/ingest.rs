//! `sapwood ingest`: rows of files into a roll-up table of a directory, each once.

use std::io::Write;
use std::path::Path;

use sapwood::rollup::Schema;
use sapwood::{Db, DbOptions, Error, RollupTable, RollupTableOptions};
use serde_json::json;

use crate::args;
use crate::rows::events::{Told, document};
use crate::rows::kept;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{bytes, count, plural};
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn run(args: &args::rows::Ingest, ui: &Ui) -> Outcome {
    let schema = args.schema.as_deref().map(document).transpose()?;
    let schema = schema.map(|text| Schema::from_json(&text)).transpose()?;
    let db = kept::opened(ui, DbOptions::default(), |options| Db::open_with(&args.dir, options))?;
    let into = opened(&db, &args.table, schema)?;
    let mut writer = into.writer();
    let mut told = Told::default();
    let mut skipped = 0;
    let mut read = || -> Outcome {
        for file in &args.files {
            // Standard input begins anew each time: of it no line is known.
            let Some(source) = source(file) else {
                let mut take = |batch: &_, _| writer.ingest(batch);
                told.read(file, args.format, 0, &mut take, ui)?;
                continue;
            };
            let before = into.offsets().get(&source).copied().unwrap_or(0);
            skipped += before;
            let mut take = |batch: &_, lines| writer.ingest_from(batch, &[(&source, lines)]);
            told.read(file, args.format, before, &mut take, ui)?;
        }
        Ok(())
    };
    let ended = read();
    if ended.is_ok() && args.seal {
        into.seal()?;
    }
    told.warn();
    let said = report(&into, &told, skipped, ui);
    // What was taken is there, whatever ended it.
    db.sync()?;
    drop((writer, into));
    db.close()?;
    ended?;
    said
}

/// The table of a name, made with a schema where it is not there.
fn opened(db: &Db, name: &str, schema: Option<Schema>) -> Outcome<RollupTable> {
    match (db.rollup_table(name), schema) {
        (Err(Error::TableMissing { .. }), Some(schema)) => {
            Ok(db.create_rollup_table(name, RollupTableOptions::new(schema))?)
        }
        (Err(Error::TableMissing { .. }), None) => Err(Failure::Usage(format!(
            "there is no table `{name}` yet: give --schema, which says how rows become facts"
        ))),
        (Ok(table), Some(schema)) if *table.schema() != schema => Err(Failure::Failed(format!(
            "table `{name}` has another schema, which stays: leave --schema out, or give another --table"
        ))),
        (table, _) => Ok(table?),
    }
}

/// By what the table remembers how far a file was taken; none of standard input.
fn source(file: &Path) -> Option<String> {
    match file == Path::new("-") {
        true => None,
        // A file that is not there is an error when it is read.
        false => {
            let path = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
            Some(path.display().to_string())
        }
    }
}

fn report(into: &RollupTable, told: &Told, skipped: u64, ui: &Ui) -> Outcome {
    let (stats, rows) = (into.stats(), &told.rolled_up);
    let facts = stats.facts + stats.segment_facts;
    let size = stats.fact_bytes + stats.dictionary_bytes + stats.segment_bytes;
    match ui.answers {
        Answers::Json => {
            let object = json!({
                "table": into.name(),
                "processed": rows.processed,
                "processedWithError": rows.processed_with_error,
                "thrownAway": rows.thrown_away,
                "unparseable": rows.unparseable + told.bad_rows,
                "overflowed": rows.overflowed,
                "skipped": skipped,
                "facts": facts,
                "segments": stats.segments,
                "bytes": size,
            });
            ui.print(|out| writeln!(out, "{object}"))
        }
        Answers::Text => ui.print(|out| {
            let taken = plural(rows.processed as usize, "row");
            writeln!(out, "table {}: {taken} taken", into.name())?;
            if skipped > 0 {
                let lines = plural(skipped as usize, "line");
                writeln!(out, "  {lines} had been taken before, and were passed over")?;
            }
            if rows.thrown_away > 0 {
                writeln!(out, "  {} left out by the schema", count(rows.thrown_away))?;
            }
            let segments = plural(stats.segments as usize, "segment");
            writeln!(
                out,
                "  it has {} in {}, {segments}",
                plural(facts as usize, "fact"),
                bytes(size)
            )
        }),
    }
}
