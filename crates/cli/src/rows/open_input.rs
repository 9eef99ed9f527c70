//! The rows of an input, opened for a command: a file is loaded into memory, a directory is opened.

use std::time::Instant;

use crate::args::rows::{EngineName, Input};
use crate::rows::kept::{self, Description, Reading};
use crate::rows::loader::{Counts, Keyless, Loaded, load_into_memory};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::ui::Ui;

/// The rows that a command is to look at: those of a file, loaded into memory, or those that a
/// directory keeps.
pub(crate) fn open_input(input: &Input, ui: &Ui) -> Outcome<Loaded> {
    open_by(input, Keyless::Refused, ui)
}

/// As [`open_input`]; rows of a file need no key.
pub(crate) fn open_any_input(input: &Input, ui: &Ui) -> Outcome<Loaded> {
    open_by(input, Keyless::ByLine, ui)
}

fn open_by(input: &Input, keyless: Keyless, ui: &Ui) -> Outcome<Loaded> {
    if !input.file.is_dir() {
        return load_into_memory(input, keyless, ui);
    }
    for (given, name) in [
        (input.key.is_some(), "--key"),
        (input.format.is_some(), "--format"),
        (input.engine == Some(EngineName::Ordered), "--engine ordered"),
        (input.kind.is_some(), "--kind"),
        (input.strict, "--strict"),
    ] {
        if given {
            return Err(Failure::Usage(format!(
                "{} is a directory, whose rows were loaded before: {name} is of `sapwood load`",
                input.file.display()
            )));
        }
    }
    let started = Instant::now();
    let (db, table, Description { columns, keys }) =
        kept::open(&input.file, &input.table, reading(input)?, ui)?;
    let counts = Counts { elapsed: started.elapsed(), ..Counts::default() };
    Ok(Loaded { db, table, columns, keys, counts })
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
