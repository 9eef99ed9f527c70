//! The facts of a roll-up, as a folder of Parquet files.

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use sapwood::RollupTable;
use sapwood::rollup::{self, ParquetOptions};
use serde_json::{Value, json};

use crate::args::exchange::{Export, FileFormat};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{bytes, count, plural, rate, table, time, write_table};
use crate::terminal::ui::{Answers, Ui};
use sapwood::files::extension;

pub(super) fn export(facts: &RollupTable, args: &Export, ui: &Ui) -> Outcome {
    let folder = folder(args)?;
    let started = Instant::now();
    // A file that has been begun is taken away before the command ends.
    let _promise = ui.interrupt.promise();
    let mut options = ParquetOptions::default().cancelled_by(ui.interrupt.cancel().flag());
    if !args.overwrite {
        options = options.keep_files();
    }
    let written = facts.write_parquet(folder, &options).map_err(|error| match error {
        _ if ui.interrupt.asked() => {
            Failure::Interrupted("files that were done by then stay".to_owned())
        }
        sapwood::Error::Rollup {
            cause: rollup::Error::Io { kind: io::ErrorKind::AlreadyExists, what, .. },
            ..
        } => Failure::Failed(format!(
            "cannot {what}: a file of that name is there, and stays as it is: name another folder, or give --overwrite"
        )),
        error => error.into(),
    })?;
    let elapsed = started.elapsed();
    let all: u64 = written.iter().map(|file| file.facts).sum();
    match ui.answers {
        Answers::Json => {
            let files: Vec<Value> = written
                .iter()
                .map(|file| {
                    json!({
                        "file": folder.join(&file.name).display().to_string(),
                        "interval": file.interval.to_string(),
                        "facts": file.facts,
                        "bytes": file.bytes,
                    })
                })
                .collect();
            ui.print_json(&json!({
                "dir": args.directory.display().to_string(),
                "table": args.table,
                "format": "parquet",
                "files": files,
                "facts": all,
                "seconds": elapsed.as_secs_f64(),
            }))
        }
        Answers::Text => ui.print(|out| {
            let mut shown = table(["file", "facts", "bytes"]);
            for file in &written {
                shown.add_row([file.name.clone(), count(file.facts), bytes(file.bytes)]);
            }
            if !written.is_empty() {
                write_table(&shown, out)?;
            }
            writeln!(
                out,
                "{} in {}, in {}: {}, {}",
                plural(all as usize, "fact"),
                plural(written.len(), "file"),
                folder.display(),
                time(elapsed),
                rate(all, "facts", elapsed)
            )
        }),
    }
}

/// Where the files go.
fn folder(args: &Export) -> Outcome<&Path> {
    let misfit = |why: &str| {
        Err(Failure::Usage(format!(
            "table `{}` is a roll-up, whose facts become a Parquet file for each interval: {why}; \
             `sapwood query` prints facts as CSV, JSON or Arrow",
            args.table
        )))
    };
    if args.raw {
        return misfit("--raw is for tables with keys");
    }
    if args.format.is_some_and(|format| format != FileFormat::Parquet) {
        return misfit("leave --format out");
    }
    match &args.to {
        None => misfit("name their folder with --to"),
        Some(to) if to == Path::new("-") || to.is_file() => misfit("--to is a folder"),
        Some(to) if !to.is_dir() && !extension(to).is_empty() => {
            misfit("--to is a folder, and this is the name of a file")
        }
        Some(to) => Ok(to),
    }
}
