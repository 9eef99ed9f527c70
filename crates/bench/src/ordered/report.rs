//! How are figures printed? Tables for people, one JSON object a line for programs.

use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};
use serde_json::json;

use super::contender::Load;
use super::engines::SAPWOOD;
use super::measure::{Figures, Rate, median};

impl Load {
    /// Bytes an entry costs: resident memory where it was measured, else the engine's account.
    pub(crate) fn bytes_per_entry(&self, entries: usize) -> Option<f64> {
        let bytes = self.resident_bytes.or(self.accounted.map(|accounted| accounted.used_bytes))?;
        Some(bytes as f64 / entries as f64)
    }
}

pub(crate) fn print_json(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let data = figures.data.name();
    for sentence in &figures.wrong {
        eprintln!("left out: {sentence}");
    }
    for (engine, load) in &figures.loads {
        let rate = figures.entries as f64 / load.elapsed.as_secs_f64();
        let mut line = json!({
            "bench": "ordered", "workload": "ingest", "threads": 1, "entries": figures.entries,
            "engine": engine, "unit": "ops/s", "median": rate, "min": rate, "max": rate, "runs": 1,
            "bytes_per_entry": load.bytes_per_entry(figures.entries), "data": data,
            "payload_bytes_per_entry": figures.payload_bytes,
        });
        if let Some(accounted) = load.accounted {
            line["accounted_bytes_per_entry"] =
                json!(accounted.used_bytes as f64 / figures.entries as f64);
            line["overhead_bytes"] = json!(accounted.overhead_bytes);
            line["free_bytes"] = json!(accounted.free_bytes);
            line["pages"] = json!(accounted.pages);
        }
        writeln!(out, "{line}")?;
    }
    for rate in &figures.rates {
        writeln!(
            out,
            "{}",
            json!({
                "bench": "ordered", "workload": rate.workload.name(), "threads": rate.threads,
                "entries": figures.entries, "engine": rate.engine, "unit": rate.workload.unit(),
                "median": rate.median(), "min": rate.min(), "max": rate.max(), "runs": rate.rounds.len(),
                "bytes_per_entry": bytes_per_entry(figures, &rate.engine), "data": data,
            })
        )?;
    }
    for latency in &figures.latencies {
        let percentiles = latency.percentiles;
        writeln!(
            out,
            "{}",
            json!({
                "bench": "ordered", "workload": latency.workload.name(), "threads": latency.threads,
                "entries": figures.entries, "engine": latency.engine, "unit": "ns",
                "median": percentiles.p50, "min": percentiles.p50, "max": percentiles.max, "runs": 1,
                "bytes_per_entry": bytes_per_entry(figures, &latency.engine), "data": data,
                "p50_ns": percentiles.p50, "p99_ns": percentiles.p99, "p999_ns": percentiles.p999,
            })
        )?;
    }
    Ok(())
}

fn bytes_per_entry(figures: &Figures, engine: &str) -> Option<f64> {
    figures.load(engine)?.bytes_per_entry(figures.entries)
}

pub(crate) fn print_tables(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    writeln!(
        out,
        "\n{}: {} entries of {:.0} bytes loaded, scans of {} entries\n",
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
    writeln!(out, "{}", rates(figures))?;
    for sentence in &figures.wrong {
        writeln!(out, "left out: {sentence}")?;
    }
    if !figures.latencies.is_empty() {
        writeln!(out, "{}", latencies(figures))?;
    }
    Ok(())
}

fn table(header: &[&str], numbers_from: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(header.to_vec());
    for (at, column) in table.column_iter_mut().enumerate() {
        if at >= numbers_from {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
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

fn rates(figures: &Figures) -> Table {
    let mut table = table(
        &["workload", "threads", "engine", "median", "min", "max", "sapwood is", "from", "to"],
        3,
    );
    let mut last = None;
    for rate in &figures.rates {
        let group = (rate.workload, rate.threads);
        let (workload, threads) = if last == Some(group) {
            (String::new(), String::new())
        } else {
            (format!("{}, {}", rate.workload.name(), unit(rate)), rate.threads.to_string())
        };
        last = Some(group);
        let mut row = vec![workload, threads, rate.engine.clone()];
        row.extend([rate.median(), rate.min(), rate.max()].map(|figure| amount(rate, figure)));
        match ratio(figures, rate) {
            Some(ratio) => {
                row.extend([ratio.median, ratio.min, ratio.max].map(|ratio| format!("{ratio:.2}x")))
            }
            None => row.extend(["-", "-", "-"].map(str::to_owned)),
        }
        table.add_row(row);
    }
    table
}

fn unit(rate: &Rate) -> &'static str {
    if rate.workload.is_scan() { "scans/s" } else { "K ops/s" }
}

fn amount(rate: &Rate, figure: f64) -> String {
    if rate.workload.is_scan() { format!("{figure:.0}") } else { format!("{:.0}", figure / 1e3) }
}

/// How many times as fast ours was: of the medians, and the least and most of single rounds.
pub(crate) struct Ratio {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// Ours against `theirs`, round by round; none for ours itself.
pub(crate) fn ratio(figures: &Figures, theirs: &Rate) -> Option<Ratio> {
    if theirs.engine == SAPWOOD {
        return None;
    }
    let ours = figures.rate(SAPWOOD, theirs.workload, theirs.threads)?;
    Some(ratio_of(&ours.rounds, &theirs.rounds))
}

pub(crate) fn ratio_of(ours: &[f64], theirs: &[f64]) -> Ratio {
    let rounds: Vec<f64> = ours.iter().zip(theirs).map(|(our, their)| our / their).collect();
    Ratio {
        median: median(ours) / median(theirs),
        min: rounds.iter().copied().fold(f64::INFINITY, f64::min),
        max: rounds.iter().copied().fold(0.0, f64::max),
    }
}

fn latencies(figures: &Figures) -> Table {
    let mut table = table(&["latency of", "threads", "engine", "p50", "p99", "p99.9", "max"], 3);
    let mut last = None;
    for latency in &figures.latencies {
        let group = (latency.workload, latency.threads);
        let (workload, threads) = if last == Some(group) {
            (String::new(), String::new())
        } else {
            (latency.workload.name().to_owned(), latency.threads.to_string())
        };
        last = Some(group);
        let percentiles = latency.percentiles;
        let mut row = vec![workload, threads, latency.engine.clone()];
        row.extend([percentiles.p50, percentiles.p99, percentiles.p999, percentiles.max].map(time));
        table.add_row(row);
    }
    table
}

fn time(nanoseconds: u64) -> String {
    match nanoseconds as f64 {
        ns if ns < 10_000.0 => format!("{ns:.0} ns"),
        ns if ns < 10_000_000.0 => format!("{:.1} us", ns / 1e3),
        ns => format!("{:.1} ms", ns / 1e6),
    }
}
