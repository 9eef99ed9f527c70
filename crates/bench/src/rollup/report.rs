//! Figures, printed.

use std::io::{self, Write};

use super::measure::Figures;
use super::ours::OURS;
use super::workload::Place;
use crate::figures::{least, median, most};
use crate::report::{self, Labels, rates_table, table};

pub(crate) fn print_json(out: &mut dyn Write, all: &[Figures]) -> io::Result<()> {
    for figures in all {
        let nothing = |_: &str| None;
        let data = data(figures);
        let (entries, data) = (figures.rows, data.as_str());
        let labels = Labels { bench: "rollup", entries, data, bytes_per_entry: &nothing };
        for size in &figures.sizes {
            let workload = match size.place {
                Place::Live => format!("ingest, {}", size.set.name()),
                place => format!("{}, {}", place.name(), size.set.name()),
            };
            let (bytes, runs) = (spread(&size.rounds), size.rounds.len());
            let line = labels.line(&workload, 1, size.engine, "bytes/fact", bytes, runs);
            writeln!(out, "{line}")?;
        }
        report::print_json(out, &figures.rates, &labels, &[OURS])?;
    }
    Ok(())
}

/// The median, the least and the most.
fn spread(figures: &[f64]) -> [f64; 3] {
    [median(figures), least(figures), most(figures)]
}

fn data(figures: &Figures) -> String {
    let dimensions = figures.source.shape().dimensions.len();
    format!("{}: {dimensions} texts, 5 metrics", figures.source.name())
}

pub(crate) fn print_tables(out: &mut dyn Write, all: &[Figures]) -> io::Result<()> {
    for figures in all {
        writeln!(out, "\n{} rows of {}\n", figures.rows, data(figures))?;
        writeln!(out, "{}", rates_table(&figures.rates, &[OURS]))?;
        let header = ["set", "facts", "engine", "number", "B/fact", "min", "max"];
        let mut sizes = table(&header, 3);
        for size in &figures.sizes {
            let bytes = spread(&size.rounds).map(|bytes| format!("{bytes:.1}"));
            let words = [size.set.name(), size.place.name(), size.engine].map(str::to_owned);
            sizes.add_row(words.into_iter().chain([size.facts.to_string()]).chain(bytes));
        }
        writeln!(out, "\n{sizes}")?;
    }
    Ok(())
}
