//! The targets of the stores in memory, and whether a run reached them.

use std::io::{self, Write};

use super::TARGET_KEYS;
use super::contenders::{CONCURRENT, SAPWOOD, SAPWOOD_16};
use super::measure::Figures;
use super::workload::{Draw, Mix, Workload};
use crate::figures::{Rate, Ratio};
use crate::report::{Targets, Verdicts};

/// Operations a second of FASTER, on 1 and on 2 threads.
struct Faster {
    mix: Mix,
    rates: [f64; 2],
}

const fn faster(mix: Mix, one: f64, two: f64) -> Faster {
    Faster { mix, rates: [one * 1e6, two * 1e6] }
}

/// The C++ version of microsoft/FASTER as it comes (4 KiB pages), 50 million uniform keys of 8
/// bytes with values of 8 bytes, measured on an idle machine of the class that the targets were set
/// on (2 cores of a shared Xeon).
const FASTER: [Faster; 4] = [
    faster(Mix::Reads(100), 2.4, 6.2),
    faster(Mix::Reads(50), 2.9, 6.3),
    faster(Mix::Reads(0), 2.7, 6.3),
    faster(Mix::ReadModifyWrite, 2.7, 3.7),
];
/// FASTER's load on one thread, the faster of two measurements.
const FASTER_LOAD: f64 = 3.1e6;

/// Singles against the best concurrent peer, on reads, updates and read-modify-writes.
const SINGLES_AGAINST_PEERS: f64 = 1.3;
const SINGLES_AGAINST_FASTER: f64 = 4.0;
/// Batches of 16 against the best concurrent peer, on every mix.
const BATCHES_AGAINST_PEERS: f64 = 2.3;
const BATCHES_AGAINST_FASTER: f64 = 8.0;
const LOAD_AGAINST_FASTER: f64 = 5.0;
const BYTES_PER_ENTRY_MOST: f64 = 40.0;

/// Prints the targets that there are figures for.
pub(crate) fn print(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let verdicts = match figures.keys < TARGET_KEYS {
        true => Verdicts::Withheld,
        false => Verdicts::Given,
    };
    let mut targets = Targets::new(verdicts);
    for threads in [1, 2] {
        for mix in Mix::ALL {
            let judged = matches!(mix, Mix::Reads(0 | 100) | Mix::ReadModifyWrite);
            if judged {
                against_peers(&mut targets, figures, SAPWOOD, mix, threads, SINGLES_AGAINST_PEERS);
            }
            against_peers(&mut targets, figures, SAPWOOD_16, mix, threads, BATCHES_AGAINST_PEERS);
        }
        for Faster { mix, rates } in &FASTER {
            for (ours, least) in
                [(SAPWOOD, SINGLES_AGAINST_FASTER), (SAPWOOD_16, BATCHES_AGAINST_FASTER)]
            {
                let workload = Workload::Mixed(*mix, Draw::Uniform);
                if let Some(ours) = figures.rates.rate(ours, workload, threads) {
                    let title = format!("{}: {} against FASTER", ours.engine, mix.name());
                    let ratio = Ratio::to(&ours.rounds, rates[threads - 1]);
                    targets.at_least(&title, threads, least, ratio);
                }
            }
        }
    }
    if let Some(load) = figures.rates.rate(SAPWOOD, Workload::Load, 1) {
        let ratio = Ratio::to(&load.rounds, FASTER_LOAD);
        targets.at_least("sapwood: load against FASTER", 1, LOAD_AGAINST_FASTER, ratio);
    }
    if let Some(bytes) = figures.bytes_per_entry(SAPWOOD) {
        targets.at_most("sapwood: memory of an entry", BYTES_PER_ENTRY_MOST, bytes, "B");
    }
    if targets.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nTargets, judged at {TARGET_KEYS} uniform keys on 1 and 2 threads:")?;
    if verdicts == Verdicts::Withheld {
        writeln!(out, "(this run has {} keys: pass --full to judge them)", figures.keys)?;
    }
    writeln!(out, "{targets}")
}

/// Ours against the concurrent peer that is fastest in this very workload.
fn against_peers(
    targets: &mut Targets,
    figures: &Figures,
    ours: &str,
    mix: Mix,
    threads: usize,
    least: f64,
) {
    let workload = Workload::Mixed(mix, Draw::Uniform);
    let rate = |engine: &str| figures.rates.rate(engine, workload, threads);
    let best: Option<&Rate<Workload>> = CONCURRENT
        .into_iter()
        .filter_map(rate)
        .max_by(|left, right| left.median().total_cmp(&right.median()));
    if let Some((ours, best)) = rate(ours).zip(best) {
        let title = format!("{}: {} against {}", ours.engine, mix.name(), best.engine);
        targets.at_least(&title, threads, least, Ratio::of(&ours.rounds, &best.rounds));
    }
}
