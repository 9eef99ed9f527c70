//! Figures of the stores in memory, printed.

use std::io::{self, Write};

use comfy_table::Table;
use serde_json::json;

use super::contenders::{SAPWOOD, SAPWOOD_16};
use super::measure::Figures;
use super::workload::Workload;
use crate::report::{self, Labels, latencies_table, rates_table, table};

/// The engines of which ratios are shown.
const OURS: [&str; 2] = [SAPWOOD, SAPWOOD_16];
const DATA: &str = "8+8 B";

pub(crate) fn print_json(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let labels = Labels {
        bench: "hash",
        entries: figures.keys as usize,
        data: DATA,
        bytes_per_entry: &|engine| figures.bytes_per_entry(engine),
    };
    for (engine, load) in &figures.loads {
        if let Some(bytes) = figures.bytes_per_entry(engine) {
            let mut line = labels.line("memory", 1, engine, "bytes/entry", [bytes; 3], 1);
            line["accounted_bytes_per_entry"] =
                json!(load.accounted_bytes.map(|bytes| bytes as f64 / f64::from(figures.keys)));
            line["share_on_huge_pages"] = json!(Figures::huge_share(load));
            writeln!(out, "{line}")?;
        }
    }
    report::print_json(out, &figures.rates, &labels, &OURS)
}

pub(crate) fn print_tables(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    writeln!(
        out,
        "\n{} entries of {DATA}; peers in Rust hash with foldhash, have room for all entries, and live on \
         the system's allocator\n",
        figures.keys
    )?;
    writeln!(out, "{}", memory(figures))?;
    writeln!(out, "{}", rates_table(&figures.rates, &OURS))?;
    for sentence in &figures.rates.wrong {
        writeln!(out, "left out: {sentence}")?;
    }
    if !figures.rates.latencies.is_empty() {
        writeln!(out, "\nOf a call: of 16 or 32 operations where they are batches")?;
        writeln!(out, "{}", latencies_table(&figures.rates))?;
    }
    Ok(())
}

fn memory(figures: &Figures) -> Table {
    let header =
        ["engine", "load, K/s", "B/entry resident", "on 2 MiB pages", "B/entry by its stats"];
    let mut table = table(&header, 1);
    let per_entry = |bytes: Option<u64>| {
        bytes.map_or("-".to_owned(), |bytes| {
            format!("{:.1}", bytes as f64 / f64::from(figures.keys))
        })
    };
    for (engine, load) in &figures.loads {
        let rate = figures.rates.rate(engine, Workload::Load, 1);
        table.add_row([
            engine.clone(),
            rate.map_or("-".to_owned(), |rate| format!("{:.0}", rate.median() / 1e3)),
            per_entry(load.resident_bytes),
            Figures::huge_share(load)
                .map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0)),
            per_entry(load.accounted_bytes),
        ]);
    }
    table
}
