//! Rates and latencies, printed: tables for people, one JSON object a line for programs.

use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use crate::figures::{Rate, Rates, Ratio, Timed, Unit};
use crate::machine::machine;

/// A table whose columns from `numbers_from` on are aligned right.
pub(crate) fn table(header: &[&str], numbers_from: usize) -> Table {
    let mut table = Table::new();
    // As the command line prints its other tables.
    table.load_style(presets::NOTHING);
    table.set_header(header.to_vec());
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if at >= numbers_from {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The labels of a JSON line: the bench, the number of entries, their data.
pub(crate) struct Labels<'a> {
    pub(crate) bench: &'a str,
    pub(crate) entries: usize,
    pub(crate) data: &'a str,
    /// Bytes an entry costs an engine, where it was measured.
    pub(crate) bytes_per_entry: &'a dyn Fn(&str) -> Option<f64>,
}

impl Labels<'_> {
    /// The fields that every line has; `figures` are the median, the least and the most.
    pub(crate) fn line(
        &self,
        workload: &str,
        threads: usize,
        engine: &str,
        unit: &str,
        figures: [f64; 3],
        runs: usize,
    ) -> Value {
        let [median, min, max] = figures;
        json!({
            "bench": self.bench, "workload": workload, "threads": threads,
            "entries": self.entries, "engine": engine, "unit": unit,
            "median": median, "min": min, "max": max, "runs": runs,
            "bytes_per_entry": (self.bytes_per_entry)(engine), "data": self.data, "machine": machine(),
        })
    }

    /// The line of a rate.
    pub(crate) fn rate<W: Timed>(&self, rate: &Rate<W>) -> Value {
        self.line(
            &rate.workload.name(),
            rate.threads,
            &rate.engine,
            rate.workload.unit().name(),
            [rate.median(), rate.min(), rate.max()],
            rate.rounds.len(),
        )
    }
}

/// A line for each rate, with how many times as fast the engines of `ours` were, then a line for
/// each latency.
pub(crate) fn print_json<W: Timed>(
    out: &mut dyn Write,
    rates: &Rates<W>,
    labels: &Labels<'_>,
    ours: &[&str],
) -> io::Result<()> {
    for sentence in &rates.wrong {
        tell(format_args!("left out: {sentence}"));
    }
    for rate in &rates.rates {
        let mut line = labels.rate(rate);
        for our in ours {
            if let Some(ratio) = rates.ratio(our, rate) {
                line["times_as_fast"][our] =
                    json!({ "median": ratio.median, "min": ratio.min, "max": ratio.max });
            }
        }
        writeln!(out, "{line}")?;
    }
    for latency in &rates.latencies {
        let percentiles = latency.percentiles;
        let mut line = labels.line(
            &latency.workload.name(),
            latency.threads,
            &latency.engine,
            "ns",
            [percentiles.p50, percentiles.p50, percentiles.max].map(|ns| ns as f64),
            1,
        );
        line["p50_ns"] = json!(percentiles.p50);
        line["p99_ns"] = json!(percentiles.p99);
        line["p999_ns"] = json!(percentiles.p999);
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Rates, and how many times as fast each engine of `ours` was.
pub(crate) fn rates_table<W: Timed>(rates: &Rates<W>, ours: &[&str]) -> Table {
    let titles: Vec<String> = ours.iter().map(|our| format!("{our} is")).collect();
    let mut header = vec!["workload", "threads", "engine", "median", "min", "max"];
    for title in &titles {
        header.extend([title.as_str(), "from", "to"]);
    }
    let mut table = table(&header, 3);
    let mut last = None;
    for rate in &rates.rates {
        let group = (rate.workload, rate.threads);
        let unit = rate.workload.unit();
        let (workload, threads) = if last == Some(group) {
            (String::new(), String::new())
        } else {
            let title = format!("{}, {}", rate.workload.name(), unit.table_name());
            (title, rate.threads.to_string())
        };
        last = Some(group);
        let mut row = vec![workload, threads, rate.engine.clone()];
        let ends = match unit {
            // The longest time is the lowest rate.
            Unit::Questions => [rate.max(), rate.min()],
            _ => [rate.min(), rate.max()],
        };
        row.push(table_figure(unit, rate.median()));
        row.extend(ends.map(|figure| table_figure(unit, figure)));
        for our in ours {
            match rates.ratio(our, rate) {
                Some(ratio) => row.extend(
                    [ratio.median, ratio.min, ratio.max].map(|ratio| format!("{ratio:.2}x")),
                ),
                None => row.extend(["-", "-", "-"].map(str::to_owned)),
            }
        }
        table.add_row(row);
    }
    table
}

/// A rate as tables show it, in [`Unit::table_name`].
pub(crate) fn table_figure(unit: Unit, rate: f64) -> String {
    match unit {
        Unit::Questions => time((1e9 / rate) as u64),
        _ => format!("{:.0}", rate / unit.table_scale()),
    }
}

/// Latencies of single calls.
pub(crate) fn latencies_table<W: Timed>(rates: &Rates<W>) -> Table {
    let mut table = table(&["latency of", "threads", "engine", "p50", "p99", "p99.9", "max"], 3);
    let mut last = None;
    for latency in &rates.latencies {
        let group = (latency.workload, latency.threads);
        let (workload, threads) = if last == Some(group) {
            (String::new(), String::new())
        } else {
            (latency.workload.name(), latency.threads.to_string())
        };
        last = Some(group);
        let percentiles = latency.percentiles;
        let mut row = vec![workload, threads, latency.engine.clone()];
        row.extend([percentiles.p50, percentiles.p99, percentiles.p999, percentiles.max].map(time));
        table.add_row(row);
    }
    table
}

/// A time in the unit that suits it.
pub(crate) fn time(nanoseconds: u64) -> String {
    match nanoseconds as f64 {
        ns if ns < 10_000.0 => format!("{ns:.0} ns"),
        ns if ns < 10_000_000.0 => format!("{:.1} us", ns / 1e3),
        ns => format!("{:.1} ms", ns / 1e6),
    }
}

/// Says something on standard error. A reader that is gone is no reason to end a measurement.
pub(crate) fn tell(what: impl std::fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{what}");
}

/// Whether a run is of the size at which its targets are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdicts {
    Given,
    /// Figures of another size say nothing about a target.
    Withheld,
}

/// The targets of a bench, and whether they were reached.
pub(crate) struct Targets {
    table: Table,
    verdicts: Verdicts,
}

impl Targets {
    pub(crate) fn new(verdicts: Verdicts) -> Targets {
        let header = ["target", "threads", "wanted", "measured", "rounds from .. to", ""];
        Targets { table: table(&header, header.len()), verdicts }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.row_count() == 0
    }

    /// Whether the run is of another size.
    pub(crate) fn are_withheld(&self) -> bool {
        self.verdicts == Verdicts::Withheld
    }

    /// A ratio that must be `least` at least.
    pub(crate) fn at_least(&mut self, title: &str, threads: usize, least: f64, ratio: Ratio) {
        self.add(
            title,
            threads,
            format!(">= {least:.2}x"),
            format!("{:.2}x", ratio.median),
            format!("{:.2}x .. {:.2}x", ratio.min, ratio.max),
            ratio.median >= least,
        );
    }

    /// An amount, such as of bytes, that must be `most` at most.
    pub(crate) fn at_most(&mut self, title: &str, most: f64, measured: f64, unit: &str) {
        self.add(
            title,
            1,
            format!("<= {most} {unit}"),
            format!("{measured:.2} {unit}"),
            String::new(),
            measured <= most,
        );
    }

    fn add(
        &mut self,
        title: &str,
        threads: usize,
        wanted: String,
        measured: String,
        spread: String,
        reached: bool,
    ) {
        let verdict = match (self.verdicts, reached) {
            (Verdicts::Withheld, _) => "",
            (Verdicts::Given, true) => "hit",
            (Verdicts::Given, false) => "miss",
        };
        let threads = threads.to_string();
        self.table.add_row([title, &threads, &wanted, &measured, &spread, verdict]);
    }
}

impl std::fmt::Display for Targets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.table.fmt(f)
    }
}
