//! Figures, printed.

use std::io::{self, Write};

use super::measure::Figures;
use super::rows::Source;
use super::systems::OURS;
use crate::figures::{least, median, most};
use crate::report::{self, Labels, rates_table, table};

const MB: f64 = 1e6;

pub(crate) fn print_json(out: &mut dyn Write, all: &[Figures]) -> io::Result<()> {
    for figures in all {
        let per_row =
            |engine: &str| figures.bytes(engine).map(|bytes| median(bytes) / figures.rows as f64);
        let labels = Labels {
            bench: "sql",
            entries: figures.rows,
            data: figures.source.name(),
            bytes_per_entry: &per_row,
        };
        for size in &figures.sizes {
            let bytes = [median, least, most].map(|of| of(&size.rounds));
            let line = labels.line("load", 1, size.engine, "bytes", bytes, size.rounds.len());
            writeln!(out, "{line}")?;
        }
        report::print_json(out, &figures.rates, &labels, &OURS)?;
    }
    Ok(())
}

pub(crate) fn print_tables(out: &mut dyn Write, all: &[Figures]) -> io::Result<()> {
    for figures in all {
        let what = match figures.source {
            Source::Flights => "flights as they are",
            Source::Generated => "rows made up",
        };
        let csv = figures.csv_bytes as f64 / MB;
        writeln!(out, "\n{} {what}, {csv:.1} MB of CSV\n", figures.rows)?;
        writeln!(out, "{}", rates_table(&figures.rates, &OURS))?;
        let mut sizes = table(&["stored by", "MB", "min", "max", "B/row"], 1);
        for size in &figures.sizes {
            let bytes = [median, least, most].map(|of| format!("{:.1}", of(&size.rounds) / MB));
            let per_row = format!("{:.1}", median(&size.rounds) / figures.rows as f64);
            sizes.add_row([size.engine.to_owned()].into_iter().chain(bytes).chain([per_row]));
        }
        writeln!(out, "\n{sizes}")?;
    }
    Ok(())
}
