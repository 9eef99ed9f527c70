//! Figures of the spilling stores, printed, and the targets.

use std::io::{self, Write};

use serde_json::json;

use super::disk_baseline::depth_of;
use super::measure::Figures;
use super::{ENTRY_BYTES, TARGET_KEYS};
use crate::figures::{Rate, Ratio, Timed, least, median, most};
use crate::hash::workload::{Draw, Mix, Workload};
use crate::report::{self, Labels, Targets, Verdicts, latencies_table, rates_table, table};

const SAPWOOD: &str = "sapwood";
const DATA: &str = "8+100 B, larger than memory";

/// Blind updates against peers, where they take part in the run: engines that the peer projects
/// `faster` and `spill` bring.
const UPDATES_AGAINST: [(&str, f64); 2] = [("faster", 1.0), ("rocksdb", 10.0)];
/// Uniform reads and read-modify-writes, of what the disk allows.
const SHARE_OF_DISK: f64 = 0.9;

pub(crate) fn print_json(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let labels = Labels {
        bench: "hash",
        entries: figures.keys as usize,
        data: DATA,
        bytes_per_entry: &|engine| {
            let of = figures.memory.iter().find(|(name, _)| name == engine)?;
            Some(of.1 as f64 / f64::from(figures.keys))
        },
    };
    for misses in &figures.misses {
        let rounds = &misses.rounds;
        let line = labels.line(
            &misses.workload.name(),
            misses.threads,
            &misses.engine,
            "misses/op",
            [median(rounds), least(rounds), most(rounds)],
            rounds.len(),
        );
        writeln!(out, "{line}")?;
    }
    for rate in &figures.rates.rates {
        if let Some((share, depth)) = share_of_disk(figures, rate) {
            let mut line = labels.line(
                &rate.workload.name(),
                rate.threads,
                &rate.engine,
                "share of disk",
                [share.median, share.min, share.max],
                rate.rounds.len(),
            );
            line["reads_in_flight"] = json!(depth);
            writeln!(out, "{line}")?;
        }
    }
    report::print_json(out, &figures.rates, &labels, &[SAPWOOD])
}

/// A rate as a share of what the disk's random reads in the same rounds allow at its miss rate, and
/// with how many of them in flight: as many as the calls of all threads ask for.
fn share_of_disk(figures: &Figures, rate: &Rate<Workload>) -> Option<(Ratio, usize)> {
    let misses = &figures.misses(rate)?.rounds;
    if median(misses) < 0.01 {
        // Hardly anything was read: the disk sets no limit.
        return None;
    }
    let depth = depth_of(call_of(&rate.engine), rate.threads);
    let disk = figures.disk(depth, rate.workload, rate.threads)?;
    let reads = rate.rounds.iter().zip(misses).map(|(rate, miss)| rate * miss);
    let shares: Vec<f64> = reads.zip(&disk.rounds).map(|(reads, disk)| reads / disk).collect();
    Some((Ratio::to(&shares, 1.0), depth))
}

/// Operations of a call, as the name of a form says.
fn call_of(engine: &str) -> usize {
    engine.rsplit_once("-batch-").and_then(|(_, call)| call.parse().ok()).unwrap_or(1)
}

pub(crate) fn print_tables(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let mb = |bytes: u64| bytes as f64 / 1e6;
    writeln!(
        out,
        "\n{} entries of {DATA}: {:.0} MB, a budget of {:.0} MB, files in {}{}\n",
        figures.keys,
        mb(u64::from(figures.keys) * ENTRY_BYTES),
        mb(figures.budget_bytes),
        figures.place.display(),
        if figures.direct { "" } else { " (the disk's own reads went through the page cache)" }
    )?;
    writeln!(out, "{}", rates_table(&figures.rates, &[SAPWOOD]))?;
    for sentence in &figures.rates.wrong {
        writeln!(out, "left out: {sentence}")?;
    }
    if !figures.misses.is_empty() {
        writeln!(out, "{}", misses(figures))?;
    }
    for (name, bytes) in &figures.memory {
        writeln!(out, "{name} uses {:.1} MB of memory by its stats", mb(*bytes))?;
    }
    if !figures.rates.latencies.is_empty() {
        writeln!(out, "\nOf a call: of many operations where they are batches")?;
        writeln!(out, "{}", latencies_table(&figures.rates))?;
    }
    targets(out, figures)
}

fn misses(figures: &Figures) -> comfy_table::Table {
    let header =
        ["workload", "threads", "engine", "read from disk", "of what the disk allows", "in flight"];
    let mut table = table(&header, 3);
    for misses in &figures.misses {
        let rate = figures.rates.rate(&misses.engine, misses.workload, misses.threads);
        let share = rate.and_then(|rate| share_of_disk(figures, rate));
        table.add_row([
            misses.workload.name(),
            misses.threads.to_string(),
            misses.engine.clone(),
            format!("{:.1} %", median(&misses.rounds) * 100.0),
            share.map_or("-".to_owned(), |(share, _)| format!("{:.2}x", share.median)),
            share.map_or("-".to_owned(), |(_, depth)| depth.to_string()),
        ]);
    }
    table
}

fn targets(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let verdicts = match figures.keys < TARGET_KEYS {
        true => Verdicts::Withheld,
        false => Verdicts::Given,
    };
    let mut targets = Targets::new(verdicts);
    for threads in [1, 2] {
        let updates = Workload::Mixed(Mix::Reads(0), Draw::Uniform);
        if let Some(ours) = figures.rates.rate(SAPWOOD, updates, threads) {
            for (peer, least) in UPDATES_AGAINST {
                let Some(theirs) = figures.rates.rate(peer, updates, threads) else { continue };
                let title = format!("{SAPWOOD}: update against {peer}");
                let ratio = Ratio::of(&ours.rounds, &theirs.rounds);
                targets.at_least(&title, threads, least, ratio);
            }
        }
        for mix in [Mix::Reads(100), Mix::ReadModifyWrite] {
            let workload = Workload::Mixed(mix, Draw::Uniform);
            for ours in [SAPWOOD, "sapwood-batch-64", "sapwood-batch-1024"] {
                let rate = figures.rates.rate(ours, workload, threads);
                if let Some((share, depth)) = rate.and_then(|rate| share_of_disk(figures, rate)) {
                    let title =
                        format!("{ours}: {} against the disk, {depth} in flight", mix.name());
                    targets.at_least(&title, threads, SHARE_OF_DISK, share);
                }
            }
        }
    }
    if targets.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nTargets, judged at {TARGET_KEYS} uniform keys on 1 and 2 threads:")?;
    if verdicts == Verdicts::Withheld {
        writeln!(
            out,
            "(this run has {} keys: leave --spill-keys out to judge them)",
            figures.keys
        )?;
    }
    writeln!(out, "{targets}")
}
