//! The selection of rows by their keys.

use std::ops::Bound;
use std::path::Path;

use sapwood::aggregate::Selection;

use crate::args;
use crate::args::rows::{Duplicates, Format};
use crate::rows::key_columns::KeyColumns;
use crate::rows::key_range::KeyBounds;
use crate::rows::lines::{Lines, unclosed};
use crate::rows::source::{self, Source};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::plural;
use crate::terminal::ui::Ui;

/// Refuses what cannot be, before a file is read for nothing.
pub(super) fn check(args: &args::rows::Aggregate) -> Outcome {
    let range = &args.range;
    for (given, option) in [
        (args.keys.is_some(), "--keys"),
        (range.from.is_some(), "--from"),
        (range.to.is_some(), "--to"),
        (range.prefix.is_some(), "--prefix"),
        (args.input.duplicates != Duplicates::Last, "--duplicates"),
    ] {
        if given && args.input.key.is_none() && !args.input.file.is_dir() {
            source::exists(&args.input.file)?;
            return Err(Failure::Usage(format!(
                "{option} is about keys: say with --key which columns make the key of a row"
            )));
        }
    }
    let Some(keys) = &args.keys else {
        return Ok(());
    };
    let refused = if keys == Path::new("-") && args.input.file == Path::new("-") {
        "standard input cannot be the rows and --keys: put one of them into a file"
    } else if args.input.duplicates == Duplicates::All {
        "with --duplicates all rows share keys: --keys needs keys of one row each"
    } else {
        return Ok(());
    };
    Err(Failure::Usage(refused.to_owned()))
}

pub(super) fn selection(
    args: &args::rows::Aggregate,
    range: &KeyBounds,
    keys: &KeyColumns,
    ui: &Ui,
) -> Outcome<Selection> {
    if let Some(file) = &args.keys {
        return listed(file, keys, ui).map(Selection::keys);
    }
    match range.bounds(keys)? {
        (begin, None) if begin.is_empty() => Ok(Selection::EVERYTHING),
        (begin, limit) => {
            let limit = limit.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            Selection::range((Bound::Included(&begin), limit)).map_err(super::usage)
        }
    }
}

/// The keys of a file: a line each, as CSV.
fn listed(file: &Path, keys: &KeyColumns, ui: &Ui) -> Outcome<Vec<Vec<u8>>> {
    let Source { bytes, name, progress, .. } = Source::of(file, Format::Csv, ui)?;
    let lines = Lines::default();
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(lines.note(bytes));
    let mut listed = Vec::new();
    let mut record = csv::StringRecord::new();
    loop {
        let line = reader.position().line();
        let failed =
            |what: &dyn std::fmt::Display| Failure::Failed(format!("{name}, line {line}: {what}"));
        match reader.read_record(&mut record) {
            Ok(true) => {
                if let Some(line) = lines.unclosed_quote() {
                    return Err(unclosed(&name, line));
                }
            }
            Ok(false) => break,
            // Waiting for input ends so too.
            Err(_) if ui.interrupt.asked() => {}
            Err(error) => return Err(failed(&error)),
        }
        if ui.interrupt.asked() {
            progress.finish_and_clear();
            let read = plural(listed.len(), "key");
            return Err(Failure::Interrupted(format!("{read} had been read")));
        }
        let values: Vec<String> = record.iter().map(str::to_owned).collect();
        // The header that `sapwood scan` and spreadsheets write above the values.
        if listed.is_empty() && keys.are_named(&values) {
            continue;
        }
        if values.len() != keys.len() {
            let (given, wanted) = (plural(values.len(), "value"), plural(keys.len(), "column"));
            return Err(failed(&format_args!("{given}, the key has {wanted}: {keys}")));
        }
        listed.push(keys.encode_values(&values).map_err(|failure| match failure {
            Failure::Usage(what) => failed(&what),
            other => other,
        })?);
    }
    progress.finish_and_clear();
    Ok(listed)
}
