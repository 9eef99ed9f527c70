//! `sapwood get`: the row with a key, or all rows that share it.

use std::io::Write;
use std::ops::{ControlFlow, RangeInclusive};

use crate::args::rows::{Duplicates, Get};
use crate::rows::open_input::open_input;
use crate::rows::rows_table;
use crate::rows::stored::Stored;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{escaped, plural, shown_list};
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn run(args: &Get, ui: &Ui) -> Outcome {
    if let Some(key) = &args.input.key {
        // The number of the row may stand behind the columns.
        let is_numbered = args.input.duplicates == Duplicates::All;
        check_count(&args.values, key.len()..=key.len() + usize::from(is_numbered))?;
    }
    let loaded = open_input(&args.input, ui)?;
    loaded.tell(&args.input, ui);
    let keys = &loaded.keys;
    check_count(&args.values, keys.len()..=keys.len_max())?;
    let key = keys.encode_values(&args.values)?;
    let stored = Stored { columns: &loaded.columns };
    let found = ui.print(|out| {
        let mut found = 0_u64;
        let end = rows_table::find(&loaded.table, &loaded.columns, &key, |value| {
            let written = match ui.answers {
                Answers::Json => stored.write_json(&key, value, out),
                Answers::Text => {
                    let apart = if found == 0 { Ok(()) } else { writeln!(out) };
                    apart.and_then(|()| write_fields(&stored.fields(&key, value), out))
                }
            };
            found += 1;
            written.map_or_else(ControlFlow::Break, ControlFlow::Continue)
        });
        match end {
            Ok(ControlFlow::Break(error)) => Err(error),
            Ok(ControlFlow::Continue(())) => Ok(Ok(found)),
            Err(error) => Ok(Err(error)),
        }
    })??;
    if found == 0 {
        let values = shown_list(&args.values);
        return Err(Failure::Failed(format!("no row has the key {values} ({keys})")));
    }
    loaded.strictly(&args.input)
}

/// Refuses values for other columns than the key has, where it can before a file is read.
pub(super) fn check_count(values: &[String], wanted: RangeInclusive<usize>) -> Outcome {
    let given = values.len();
    if wanted.contains(&given) {
        return Ok(());
    }
    let (given, wanted) = (plural(given, "value"), plural(*wanted.start(), "column"));
    Err(Failure::Usage(format!(
        "{given} given, the key has {wanted}; `sapwood scan --prefix` takes the first ones alone"
    )))
}

fn write_fields(fields: &[(String, String)], out: &mut impl Write) -> std::io::Result<()> {
    let width = fields.iter().map(|(name, _)| escaped(name).chars().count()).max().unwrap_or(0);
    for (name, text) in fields {
        writeln!(out, "{:width$}  {}", escaped(name), escaped(text))?;
    }
    Ok(())
}
