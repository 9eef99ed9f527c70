//! Figures, printed: tables for people, one JSON object a line for programs.

use std::io::{self, Write};

use comfy_table::Table;
use serde_json::json;

use super::contenders::SAPWOOD;
use super::load::Load;
use super::measure::Figures;
use crate::report::{self, Labels, latencies_table, rates_table, table};

impl Load {
    /// Bytes an entry costs: resident memory where it was measured, else the engine's account.
    pub(crate) fn bytes_per_entry(&self, entries: usize) -> Option<f64> {
        let bytes = self.resident_bytes.or(self.accounted.map(|accounted| accounted.used_bytes))?;
        Some(bytes as f64 / entries as f64)
    }
}

pub(crate) fn print_json(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let labels = Labels {
        bench: "ordered",
        entries: figures.entries,
        data: &figures.data.name(),
        bytes_per_entry: &|engine| figures.load(engine)?.bytes_per_entry(figures.entries),
    };
    for (engine, load) in &figures.loads {
        let rate = figures.entries as f64 / load.elapsed.as_secs_f64();
        let mut line = labels.line("ingest", 1, engine, "ops/s", [rate; 3], 1);
        line["payload_bytes_per_entry"] = json!(figures.payload_bytes);
        if let Some(accounted) = load.accounted {
            line["accounted_bytes_per_entry"] =
                json!(accounted.used_bytes as f64 / figures.entries as f64);
            line["overhead_bytes"] = json!(accounted.overhead_bytes);
            line["free_bytes"] = json!(accounted.free_bytes);
            line["pages"] = json!(accounted.pages);
        }
        writeln!(out, "{line}")?;
    }
    for (engine, settled) in &figures.settled {
        let scans = settled.scans as f64;
        let mut line = labels.line("settling-scans", 1, engine, "scans", [scans; 3], 1);
        let moved = settled.moved_bytes as f64 / figures.entries as f64;
        line["moved_bytes_per_entry"] = json!(moved);
        if let Some(accounted) = settled.accounted {
            line["accounted_bytes_per_entry"] =
                json!(accounted.used_bytes as f64 / figures.entries as f64);
        }
        writeln!(out, "{line}")?;
    }
    report::print_json(out, &figures.rates, &labels, &[])
}

pub(crate) fn print_tables(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    writeln!(
        out,
        "\n{}: {} entries of {:.0} bytes loaded, long scans of {} entries\n",
        figures.data.name(),
        figures.entries,
        figures.payload_bytes,
        figures.scan_entries
    )?;
    writeln!(out, "{}", loads(figures))?;
    if figures.loads.iter().any(|(_, load)| load.resident_bytes.is_none()) {
        writeln!(
            out,
            "(- : resident memory tells of a heap only in the first --data of a process)"
        )?;
    }
    for (engine, settled) in &figures.settled {
        let moved = settled.moved_bytes as f64 / figures.entries as f64;
        let after = settled.accounted.map_or(String::new(), |accounted| {
            let used = accounted.used_bytes as f64 / figures.entries as f64;
            format!(", after which one takes {used:.0} B by its stats")
        });
        writeln!(
            out,
            "{engine}: {} full scans before the timed ones moved {moved:.0} B an entry{after}",
            settled.scans
        )?;
    }
    writeln!(out, "{}", rates_table(&figures.rates, &[SAPWOOD]))?;
    for sentence in &figures.rates.wrong {
        writeln!(out, "left out: {sentence}")?;
    }
    if !figures.rates.latencies.is_empty() {
        writeln!(out, "{}", latencies_table(&figures.rates))?;
    }
    Ok(())
}

fn loads(figures: &Figures) -> Table {
    let mut table = table(
        &[
            "engine",
            "ingest, K/s",
            "B/entry resident",
            "over payload",
            "B/entry by its stats",
            "over payload",
        ],
        1,
    );
    let per_entry = |bytes: u64| bytes as f64 / figures.entries as f64;
    let over = |bytes: f64| format!("{:+.1} %", (bytes / figures.payload_bytes - 1.0) * 100.0);
    for (engine, load) in &figures.loads {
        let resident = load.resident_bytes.map(per_entry);
        let used = load.accounted.map(|accounted| per_entry(accounted.used_bytes));
        table.add_row([
            engine.clone(),
            format!("{:.0}", figures.entries as f64 / load.elapsed.as_secs_f64() / 1e3),
            resident.map_or("-".to_owned(), |bytes| format!("{bytes:.0}")),
            resident.map_or("-".to_owned(), over),
            used.map_or("-".to_owned(), |bytes| format!("{bytes:.0}")),
            used.map_or("-".to_owned(), over),
        ]);
    }
    table
}
