//! Figures, printed.

use std::io::{self, Write};

use comfy_table::Table;

use super::measure::{Figures, Size};
use super::ours::{BTREE, CRIT_BIT, RED_BLACK};
use super::workload::{Order, Phase, Workload};
use crate::figures::Timed;
use crate::report::{self, Labels, rates_table, table};

const OURS: [&str; 3] = [BTREE, CRIT_BIT, RED_BLACK];
const DATA: &str = "8+8 B";
const MIB: f64 = (1 << 20) as f64;

pub(crate) fn print_json(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let per_entry = |engine: &str| {
        let size = |order| figures.size(engine, order).and_then(|size| size.entry);
        size(Order::Random).or_else(|| size(Order::Sequential))
    };
    let labels =
        Labels { bench: "trees", entries: figures.keys, data: DATA, bytes_per_entry: &per_entry };
    for size in &figures.sizes {
        for (phase, bytes) in logs(size) {
            if let Some(bytes) = bytes {
                let workload = Workload { phase, order: size.order }.name();
                let unit = "log bytes/op";
                writeln!(out, "{}", labels.line(&workload, 1, &size.engine, unit, [bytes; 3], 1))?;
            }
        }
    }
    for rate in &figures.recoveries {
        let line = labels.line(
            &rate.workload.name(),
            rate.threads,
            &rate.engine,
            "log bytes/s",
            [rate.median(), rate.min(), rate.max()],
            rate.rounds.len(),
        );
        writeln!(out, "{line}")?;
    }
    report::print_json(out, &figures.rates, &labels, &OURS)
}

fn logs(size: &Size) -> [(Phase, Option<f64>); 3] {
    [
        (Phase::InsertEach, size.log_each),
        (Phase::RemoveEach, size.log_remove),
        (Phase::InsertTogether, size.log_together),
    ]
}

pub(crate) fn print_tables(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    writeln!(
        out,
        "\n{} entries of {DATA}, {} of them where each has a transaction; commits outlive the \
         process, and power loss in `sync`\n",
        figures.keys, figures.ops
    )?;
    writeln!(out, "{}", rates_table(&figures.rates, &OURS))?;
    for sentence in &figures.rates.wrong {
        writeln!(out, "left out: {sentence}")?;
    }
    if figures.sizes.iter().any(|size| size.entry.is_some() || size.log_each.is_some()) {
        writeln!(out, "\n{}", sizes(figures))?;
    }
    Ok(())
}

fn sizes(figures: &Figures) -> Table {
    let header = [
        "bytes",
        "engine",
        "B/entry",
        "log B/insert each",
        "log B/remove each",
        "log B/insert together",
        "recovery, MiB/s",
    ];
    let mut table = table(&header, 2);
    for size in &figures.sizes {
        let workload = Workload { phase: Phase::Recover, order: size.order };
        let recovery = figures
            .recoveries
            .iter()
            .find(|rate| rate.engine == size.engine && rate.workload == workload)
            .map(|rate| rate.median() / MIB);
        let shown = |figure: Option<f64>| figure.map_or("-".to_owned(), |it| format!("{it:.1}"));
        let mut row = vec![size.order.name().to_owned(), size.engine.clone()];
        let [each, remove, together] = logs(size).map(|(_, bytes)| bytes);
        row.extend([size.entry, each, remove, together, recovery].map(shown));
        table.add_row(row);
    }
    table
}
