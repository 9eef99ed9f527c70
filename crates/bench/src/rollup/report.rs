//! Figures, printed.

use std::io::{self, Write};

use super::contenders::OURS;
use super::measure::Figures;
use crate::report::{self, Labels, rates_table, table};

const DATA: &str = "5 texts, 5 metrics";

pub(crate) fn print_json(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let nothing = |_: &str| None;
    let labels =
        Labels { bench: "rollup", entries: figures.rows, data: DATA, bytes_per_entry: &nothing };
    for size in &figures.sizes {
        if let Some(bytes) = size.per_fact() {
            let workload = format!("ingest, {}", size.granule.name());
            let line = labels.line(&workload, 1, size.engine, "bytes/fact", [bytes; 3], 1);
            writeln!(out, "{line}")?;
        }
    }
    report::print_json(out, &figures.rates, &labels, &[OURS])
}

pub(crate) fn print_tables(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    writeln!(out, "\n{} rows of {DATA}\n", figures.rows)?;
    writeln!(out, "{}", rates_table(&figures.rates, &[OURS]))?;
    let mut sizes = table(&["granularity", "engine", "facts", "B/fact"], 2);
    for size in &figures.sizes {
        let bytes = size.per_fact().map_or("-".to_owned(), |bytes| format!("{bytes:.1}"));
        let (granule, engine) = (size.granule.name().to_owned(), size.engine.to_owned());
        sizes.add_row([granule, engine, size.facts.to_string(), bytes]);
    }
    writeln!(out, "\n{sizes}")
}
