//! The targets of the stores in memory, and whether a run reached them.

use std::io::{self, Write};

use super::TARGET_KEYS;
use super::contenders::{CONCURRENT, FASTER, SAPWOOD, SAPWOOD_16, SAPWOOD_32};
use super::measure::Figures;
use super::workload::{Draw, Mix, Workload};
use crate::figures::{Rate, Ratio};
use crate::report::{Targets, Verdicts};

/// Singles against the best concurrent peer, on reads, updates and read-modify-writes.
const SINGLES_AGAINST_PEERS: f64 = 1.3;
/// Batches of 16 and of 32 against the best concurrent peer, on every mix.
const BATCHES_AGAINST_PEERS: [(&str, f64); 2] = [(SAPWOOD_16, 2.4), (SAPWOOD_32, 3.0)];
const BYTES_PER_ENTRY_MOST: f64 = 40.0;

/// The least number of keys at which targets against FASTER are judged.
const FASTER_KEYS_LEAST: u32 = 2_500_000;
/// Against FASTER, which takes one key a call.
const SINGLES_AGAINST_FASTER: f64 = 3.0;
const BATCHES_AGAINST_FASTER: f64 = 9.0;
const LOAD_AGAINST_FASTER: f64 = 5.0;

/// Prints the targets that there are figures for.
pub(crate) fn print(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let verdicts = verdicts(figures, TARGET_KEYS);
    let mut targets = Targets::new(verdicts);
    for threads in [1, 2] {
        for mix in Mix::ALL {
            let judged = matches!(mix, Mix::Reads(0 | 100) | Mix::ReadModifyWrite);
            if judged {
                against_peers(&mut targets, figures, SAPWOOD, mix, threads, SINGLES_AGAINST_PEERS);
            }
            for (ours, least) in BATCHES_AGAINST_PEERS {
                against_peers(&mut targets, figures, ours, mix, threads, least);
            }
        }
    }
    memory(&mut targets, figures);
    if !targets.is_empty() {
        writeln!(out, "\nTargets, judged at {TARGET_KEYS} uniform keys on 1 and 2 threads:")?;
        if verdicts == Verdicts::Withheld {
            writeln!(out, "(this run has {} keys: pass --full to judge them)", figures.keys)?;
        }
        writeln!(out, "{targets}")?;
    }
    print_against_faster(out, figures)
}

fn verdicts(figures: &Figures, least: u32) -> Verdicts {
    match figures.keys < least {
        true => Verdicts::Withheld,
        false => Verdicts::Given,
    }
}

fn memory(targets: &mut Targets, figures: &Figures) {
    if let Some(bytes) = figures.bytes_per_entry(SAPWOOD) {
        targets.at_most("sapwood: memory of an entry", BYTES_PER_ENTRY_MOST, bytes, "B");
    }
}

/// Prints the targets against FASTER, where it took part in the run: figures of another run say
/// nothing, as they come from another machine or another hour.
fn print_against_faster(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let verdicts = verdicts(figures, FASTER_KEYS_LEAST);
    let mut targets = Targets::new(verdicts);
    for threads in [1, 2] {
        for mix in Mix::FOUR {
            let workload = Workload::Mixed(mix, Draw::Uniform);
            for (ours, least) in
                [(SAPWOOD, SINGLES_AGAINST_FASTER), (SAPWOOD_32, BATCHES_AGAINST_FASTER)]
            {
                against_best(&mut targets, figures, ours, &FASTER, workload, threads, least);
            }
        }
    }
    against_best(&mut targets, figures, SAPWOOD, &FASTER, Workload::Load, 1, LOAD_AGAINST_FASTER);
    if targets.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nTargets against FASTER, judged from {FASTER_KEYS_LEAST} uniform keys on, on 1 and 2 \
         threads:"
    )?;
    if verdicts == Verdicts::Withheld {
        writeln!(out, "(this run has {} keys: leave --smoke out to judge them)", figures.keys)?;
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
    against_best(targets, figures, ours, &CONCURRENT, workload, threads, least);
}

/// Ours against the one of `theirs` that is fastest in this very workload.
fn against_best(
    targets: &mut Targets,
    figures: &Figures,
    ours: &str,
    theirs: &[&str],
    workload: Workload,
    threads: usize,
    least: f64,
) {
    let rate = |engine: &str| figures.rates.rate(engine, workload, threads);
    let best: Option<&Rate<Workload>> = theirs
        .iter()
        .filter_map(|engine| rate(engine))
        .max_by(|left, right| left.median().total_cmp(&right.median()));
    if let Some((ours, best)) = rate(ours).zip(best) {
        let what = match workload {
            Workload::Load => "load".to_owned(),
            Workload::Mixed(mix, _) => mix.name(),
        };
        let title = format!("{}: {what} against {}", ours.engine, best.engine);
        targets.at_least(&title, threads, least, Ratio::of(&ours.rounds, &best.rounds));
    }
}
