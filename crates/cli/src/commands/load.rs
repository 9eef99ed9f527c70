//! `sapwood load`: a file into a table, and figures of what it became.

use std::io::Write;

use sapwood::schema::Schema;
use sapwood::{AnyTable, TableStats};
use serde_json::json;

use crate::args::rows::Load;
use crate::rows::typed_loader::{Keep, Keyless, TypedLoaded, all, load, nothing_kept};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{bytes, count, rate, time};
use crate::terminal::ui::{Answers, Ui};

/// `sapwood load`.
pub(crate) fn run(args: &Load, ui: &Ui) -> Outcome {
    if args.input.file.is_dir() {
        return Err(Failure::Usage(format!(
            "{} is a directory: give the file to load, and the directory with --dir",
            args.input.file.display()
        )));
    }
    let Some(directory) = &args.dir else {
        let loaded = load(&args.input, Keyless::Numbered, None, &all, ui)?;
        let told = report(args, &loaded, loaded.table.as_ref(), ui);
        // The report may have no reader left; the exit code still tells.
        return loaded.counts.strictly(&args.input).and(told);
    };
    let mut keep = Keep { directory, compact_at: args.compact_at, filling: None, promise: None };
    let loaded = fill(args, &mut keep, ui);
    // With a directory a strict load keeps all of the file or nothing, like any that fails.
    match (loaded, keep.filling) {
        (Ok(loaded), _) => report(args, &loaded, loaded.table.as_ref(), ui),
        (Err(failure), None) => Err(failure),
        (Err(failure), Some(filling)) => Err(filling.undo_after(failure)),
    }
}

/// Loads into a directory and makes it last. If it fails, no handle of the table is left, and
/// `keep` has what is to be taken back.
fn fill(args: &Load, keep: &mut Keep<'_>, ui: &Ui) -> Outcome<TypedLoaded> {
    let loaded = load(&args.input, Keyless::Numbered, Some(keep), &all, ui)?;
    if let Err(failure) = loaded.counts.strictly(&args.input) {
        // The report may have no reader left; the exit code still tells.
        let _ = report(args, &loaded, None, ui);
        return Err(match failure {
            Failure::Failed(why) => {
                Failure::Failed(format!("{why}; {}", nothing_kept(keep.directory)))
            }
            other => other,
        });
    }
    let filling = keep.filling.as_mut().expect("it was loaded into the directory");
    filling.publish()?;
    Ok(loaded)
}

/// Prints the counts of rows read, and the table's figures if it stays.
fn report(args: &Load, loaded: &TypedLoaded, table: Option<&AnyTable>, ui: &Ui) -> Outcome {
    let TypedLoaded { keys, counts, schema, .. } = loaded;
    let figures = table.map(TableSizes::of);
    match ui.answers {
        Answers::Json => {
            let mut object = json!({
                "file": args.input.file.display().to_string(),
                "key": keys.to_string(),
                "schema": schema.to_string(),
                "rows": counts.rows,
                "malformed": counts.malformed,
                "duplicates": counts.duplicates,
                "seconds": counts.elapsed.as_secs_f64(),
            });
            if let Some(TableSizes { entries, named }) = figures {
                object["entries"] = json!(entries);
                for (_, name, number) in named {
                    object[name] = json!(number);
                }
                if let Some(directory) = &args.dir {
                    object["dir"] = json!(directory.display().to_string());
                    object["table"] = json!(args.input.table);
                }
            }
            ui.print_json(&object)
        }
        Answers::Text => ui.print(|out| {
            writeln!(out, "columns      {}", columns_of(schema))?;
            writeln!(out, "key          {keys}")?;
            writeln!(out, "rows         {}", count(counts.rows))?;
            writeln!(out, "  malformed  {}", count(counts.malformed))?;
            writeln!(out, "  duplicates {}", count(counts.duplicates))?;
            if let Some(TableSizes { entries, named }) = figures {
                writeln!(out, "entries      {}", count(entries))?;
                for (label, _, number) in named {
                    writeln!(out, "{label:12} {}", bytes(number))?;
                }
                match &args.dir {
                    Some(directory) => {
                        let (directory, table) = (directory.display(), &args.input.table);
                        writeln!(out, "kept in      {directory}, table {table}")?;
                    }
                    None => writeln!(out, "kept in      nothing: --dir DIRECTORY keeps the rows")?,
                }
            }
            let speed = rate(counts.rows, "rows", counts.elapsed);
            writeln!(out, "time         {}, {speed}", time(counts.elapsed))
        }),
    }
}

/// The columns with their types, as `--types` takes them.
fn columns_of(schema: &Schema) -> String {
    let text = schema.to_string();
    let end = text.rfind(", key(").unwrap_or(text.len());
    text[..end].to_owned()
}

/// The costs of a loaded table: labels for people, names for machines, bytes.
struct TableSizes {
    entries: u64,
    named: Vec<(&'static str, &'static str, u64)>,
}

impl TableSizes {
    fn of(table: &AnyTable) -> Self {
        let named = match table.stats() {
            TableStats::Hash(stats) => vec![
                ("log", "log_bytes", stats.log_bytes),
                ("memory", "reserved_bytes", stats.reserved_bytes),
                ("on disk", "file_bytes", stats.file_bytes),
            ],
            TableStats::Ordered(stats) => vec![
                ("keys", "key_bytes", stats.key_bytes),
                ("values", "value_bytes", stats.value_bytes),
                ("memory", "reserved_bytes", stats.reserved_bytes),
            ],
            TableStats::Tree(stats) => vec![("heap", "heap_bytes", stats.trees.heap_bytes)],
            other => unreachable!("no other kind of table is made: {other:?}"),
        };
        Self { entries: table.len_estimate() as u64, named }
    }
}
