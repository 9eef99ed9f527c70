//! Figures, printed.

use std::io::{self, Write};

use super::measure::Figures;
use super::processes::{FLOOR, SAPWOOD, URING_FLOOR};
use super::workload::Workload;
use crate::figures::{Rates, Timed};
use crate::report::{self, Labels, latencies_table, rates_table, table, tell};

const DATA: &str = "8+8 B";

pub(crate) fn print_json(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let of_memory = |engine: &str| {
        figures.memory.iter().find(|memory| memory.server == engine).map(|memory| memory.entry)
    };
    let labels = Labels {
        bench: "server",
        entries: figures.objects as usize,
        data: DATA,
        bytes_per_entry: &of_memory,
    };
    figures.missing.iter().for_each(tell);
    for memory in &figures.memory {
        for (workload, unit, bytes) in [
            ("memory", "bytes/entry", memory.entry),
            ("idle connections", "bytes/connection", memory.connection),
        ] {
            let line = labels.line(workload, 1, memory.server, unit, [bytes; 3], 1);
            writeln!(out, "{line}")?;
        }
    }
    report::print_json(out, &figures.rates, &labels, &[SAPWOOD, URING_FLOOR])
}

pub(crate) fn print_tables(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    writeln!(out, "\nOver loopback; values of 8 bytes; sums of {} objects\n", figures.objects)?;
    if !figures.memory.is_empty() {
        let mut memory = table(&["server", "B/entry of 8+8 B", "B/idle connection"], 1);
        for of in &figures.memory {
            let bytes = [of.entry, of.connection].map(|bytes| format!("{bytes:.1}"));
            memory.add_row([of.server, &bytes[0], &bytes[1]]);
        }
        writeln!(out, "{memory}\n")?;
    }
    writeln!(out, "{}", rates_table(&figures.rates, &[SAPWOOD]))?;
    print_floors(out, &figures.rates)?;
    for sentence in figures.missing.iter().chain(&figures.rates.wrong) {
        writeln!(out, "left out: {sentence}")?;
    }
    if !figures.rates.latencies.is_empty() {
        writeln!(out, "\nOf a pipeline; redis-benchmark tells no 99.9th percentile but the most")?;
        writeln!(out, "{}", latencies_table(&figures.rates))?;
    }
    Ok(())
}

/// What io_uring in place of epoll would be worth, at most.
fn print_floors(out: &mut dyn Write, rates: &Rates<Workload>) -> io::Result<()> {
    let title = format!("{URING_FLOOR} against {FLOOR}");
    let mut floors = table(&[&title, "times as fast", "from", "to"], 1);
    for epoll in rates.rates.iter().filter(|rate| rate.engine == FLOOR) {
        let Some(ratio) = rates.ratio(URING_FLOOR, epoll) else { continue };
        let ratios = [ratio.median, ratio.min, ratio.max].map(|ratio| format!("{ratio:.2}x"));
        floors.add_row([epoll.workload.name()].into_iter().chain(ratios));
    }
    if floors.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{floors}")
}
