//! `sapwood compact`: disk space of a directory, given back.

use std::io::{self, Write};
use std::path::Path;

use sapwood::{Cut, Db, DbOptions, Engine, HashTable};
use serde_json::json;

use crate::args::tables::Compact;
use crate::rows::kept;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::bytes;
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn run(args: &Compact, ui: &Ui) -> Outcome {
    let _promise = ui.interrupt.promise();
    kept::expect_database(&args.directory)?;
    let open = |options| Db::open_with(&args.directory, options);
    let db = kept::opened(ui, DbOptions::default(), open)?;
    let before = size(&args.directory)?;
    let names = db.table_names();
    let progress = ui.progress("compacting", names.len() as u64);
    for name in &names {
        if db.engine(name) == Some(Engine::Hash) {
            compact(&db.hash_table(name)?)?;
        }
        progress.inc(1);
        if ui.interrupt.asked() {
            break;
        }
    }
    progress.finish_and_clear();
    // A checkpoint of all tables, behind which the log is not needed.
    db.close()?;
    let after = size(&args.directory)?;
    if ui.interrupt.asked() {
        return Err(Failure::Interrupted("what was compacted stays so".to_owned()));
    }
    match ui.answers {
        Answers::Json => ui.print_json(&json!({
            "dir": args.directory.display().to_string(),
            "bytes_before": before,
            "bytes": after,
        })),
        Answers::Text => ui.print(|out| {
            writeln!(out, "before       {}", bytes(before))?;
            writeln!(out, "now          {}", bytes(after))
        }),
    }
}

/// Garbage of a log, as a share of it, for which the rest is not moved: as much would be written.
const GARBAGE_LEFT: f64 = 0.05;

/// Moves what is live to the end of a table's log, and lets the files before it go: checkpoints that need them go
/// first, behind as many new ones.
fn compact(table: &HashTable) -> Outcome<()> {
    let garbage = table.estimate_garbage()? as f64;
    let stats = table.stats();
    if garbage <= GARBAGE_LEFT * (stats.tail - stats.begin) as f64 {
        return Ok(());
    }
    let before = table.checkpoints()?.len();
    table.compact(1.0)?;
    for _ in 0..before {
        table.checkpoint(Cut::Incremental)?;
    }
    Ok(())
}

/// Bytes that the files of a directory take on the disk.
fn size(directory: &Path) -> Outcome<u64> {
    fn within(folder: &Path) -> io::Result<u64> {
        let mut all = 0;
        for entry in folder.read_dir()? {
            let entry = entry?;
            let about = entry.metadata()?;
            all += match about.is_dir() {
                true => within(&entry.path())?,
                false => on_disk(&about),
            };
        }
        Ok(all)
    }
    within(directory).map_err(|error| {
        Failure::Failed(format!("{} cannot be read: {error}", directory.display()))
    })
}

/// Files have holes where space was given back.
#[cfg(unix)]
fn on_disk(about: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    about.blocks() * 512
}

#[cfg(not(unix))]
fn on_disk(about: &std::fs::Metadata) -> u64 {
    about.len()
}
