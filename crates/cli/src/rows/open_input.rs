//! The rows of an input, opened for a command: a file is loaded into memory, a directory is opened.

use std::time::Instant;

use sapwood::{AnyTable, Db};

use crate::args::rows::{EngineName, Input};
use crate::rows::columns::Columns;
use crate::rows::counts::Counts;
use crate::rows::kept::{self, Description, Reading};
use crate::rows::key_columns::KeyColumns;
use crate::rows::typed_loader::{Asked, Keyless, TypedLoaded, all, load};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{count, plural, time};
use crate::terminal::ui::Ui;

/// Rows in a table: of a file in memory, or of a directory.
pub(crate) struct Loaded {
    /// Keeps the directory of a table that has one from being opened by others.
    pub(crate) db: Db,
    pub(crate) table: AnyTable,
    pub(crate) columns: Columns,
    pub(crate) keys: KeyColumns,
    pub(crate) counts: Counts,
}

impl Loaded {
    /// Says by the way what was loaded, for commands whose answer is another.
    pub(crate) fn tell(&self, input: &Input, ui: &Ui) {
        let (file, elapsed) = (input.file.display(), time(self.counts.elapsed));
        // No row is put without a look at the one that it replaces: it is counted.
        let entries = self.table.len_estimate();
        let entries = match entries {
            1 => "1 entry".to_owned(),
            many => format!("{} entries", count(many as u64)),
        };
        let keys = &self.keys;
        match self.db.directory() {
            Some(_) => ui.notice(format_args!(
                "{file}: table {}, {entries} by {keys}, opened in {elapsed}",
                input.table
            )),
            None if input.key.is_none() => ui.notice(format_args!(
                "{file}: {}, {elapsed}",
                plural(self.counts.rows as usize, "row")
            )),
            None => ui.notice(format_args!(
                "{file}: {} into {entries} by {keys}, {elapsed}",
                plural(self.counts.rows as usize, "row")
            )),
        }
    }

    /// With `--strict`, a failure if rows were refused.
    pub(crate) fn strictly(&self, input: &Input) -> Outcome {
        self.counts.strictly(input)
    }
}

/// The rows that a command is to look at: those of a file, loaded into memory, or those that a
/// directory keeps.
pub(crate) fn open_input(input: &Input, ui: &Ui) -> Outcome<Loaded> {
    open_by(input, Keyless::Refused, &all, ui)
}

/// As [`open_input`]; rows of a file need no key, and those that a directory keeps as text may have another text for
/// what is missing.
pub(crate) fn open_any_input(input: &Input, asked: &Asked<'_>, ui: &Ui) -> Outcome<Loaded> {
    open_by(input, Keyless::Numbered, asked, ui)
}

fn open_by(input: &Input, keyless: Keyless, asked: &Asked<'_>, ui: &Ui) -> Outcome<Loaded> {
    if !input.file.is_dir() {
        let TypedLoaded { db, table, schema, keys, counts } =
            load(input, keyless, None, asked, ui)?;
        let table = table.expect("memory has all rows");
        let Description { columns, .. } = Description::typed(&schema);
        return Ok(Loaded { db, table, columns, keys, counts });
    }
    for (given, name) in [
        (input.key.is_some(), "--key"),
        (input.format.is_some(), "--format"),
        (input.engine == Some(EngineName::Ordered), "--engine ordered"),
        (input.kind.is_some(), "--kind"),
        (input.strict, "--strict"),
        (input.text.types.is_some(), "--types"),
        (input.text.delimiter.is_some(), "--delimiter"),
        (input.text.na.is_some() && keyless == Keyless::Refused, "--na"),
    ] {
        if given {
            return Err(of_load(input, name));
        }
    }
    let started = Instant::now();
    let (db, table, Description { columns, keys }) =
        kept::open(&input.file, &input.table, reading(input)?, ui)?;
    if input.text.na.is_some() && matches!(columns, Columns::Typed(_)) {
        return Err(of_load(input, "--na"));
    }
    let counts = Counts { elapsed: started.elapsed(), ..Counts::default() };
    Ok(Loaded { db, table, columns, keys, counts })
}

/// The refusal of an option of the load that the rows of a directory came from.
fn of_load(input: &Input, option: &str) -> Failure {
    Failure::Usage(format!(
        "{} is a directory, whose rows were loaded before: {option} is of `sapwood load`",
        input.file.display()
    ))
}

fn reading(input: &Input) -> Outcome<Reading> {
    match (input.checkpoint, input.memory_budget) {
        (None, None) => Ok(Reading::AsIs),
        (None, Some(budget)) => Ok(Reading::Within(budget)),
        (Some(number), None) => Ok(Reading::At(number)),
        (Some(_), Some(_)) => Err(Failure::Usage(
            "--checkpoint looks at the rows within the memory budget that they were loaded with: \
             leave --memory-budget away"
                .to_owned(),
        )),
    }
}
