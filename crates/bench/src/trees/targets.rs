//! The targets, and whether a run reached them.

use std::io::{self, Write};

use super::measure::Figures;
use super::ours::{BTREE, CRIT_BIT, RED_BLACK};
use super::pmdk;
use super::workload::{Order, Phase, Workload};
use super::{TARGET_KEYS, floor};
use crate::figures::{Rate, Ratio};
use crate::report::{Targets, Verdicts};

/// libpmemobj's tree of a kind: its engine, and what stands for it in a run without it.
///
/// Those are microseconds of an operation (PMDK 1.12) on a file system in memory with forced
/// flushes of cache lines, which outlives the process alone; 1,000,000 random keys, the best of
/// several runs, on a machine of the class that the targets were set on (2 cores of a shared Xeon).
struct Pmdk {
    ours: &'static str,
    theirs: &'static str,
    insert_each: f64,
    remove_each: f64,
    insert_together: f64,
}

const PMDK: [Pmdk; 3] = [
    Pmdk {
        ours: BTREE,
        theirs: pmdk::BTREE,
        insert_each: 2.0,
        remove_each: 2.1,
        insert_together: 1.75,
    },
    Pmdk {
        ours: CRIT_BIT,
        theirs: pmdk::CRIT_BIT,
        insert_each: 5.6,
        remove_each: 4.0,
        insert_together: 7.4,
    },
    Pmdk {
        ours: RED_BLACK,
        theirs: pmdk::RED_BLACK,
        insert_each: 4.9,
        remove_each: 4.9,
        insert_together: 8.7,
    },
];

const AGAINST_PMDK: f64 = 4.0;
/// Peers of a transaction each, of one transaction and of look-ups.
const PEERS: [&str; 2] = ["lmdb", "redb"];
const EACH_AGAINST_PEERS: f64 = 10.0;
const TOGETHER_AGAINST_PEERS: f64 = 1.5;
const GETS_AGAINST_PEERS: f64 = 2.0;
const ITERATION_AGAINST_LMDB: f64 = 1.0;
/// A commit that lasts takes 1.3 syncs at most.
const SYNC_AGAINST_DISK: f64 = 1.0 / 1.3;
const WRITERS: usize = 16;
const WRITERS_AGAINST_DISK: f64 = 5.0;
/// Ten times as many removes in one transaction take 12 times as long at most.
const TENFOLD_AGAINST_REMOVE: f64 = 10.0 / 12.0;
/// 40 MiB for 1,000,000 entries.
const BYTES_PER_ENTRY_MOST: f64 = 41.9;
/// 1 GiB a second.
const RECOVERY_LEAST: f64 = (1 << 30) as f64;

/// Prints the targets that there are figures for.
pub(crate) fn print(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let verdicts = match figures.keys < TARGET_KEYS || figures.ops < TARGET_KEYS {
        true => Verdicts::Withheld,
        false => Verdicts::Given,
    };
    let mut targets = Targets::new(verdicts);
    for pmdk in &PMDK {
        against_pmdk(&mut targets, figures, pmdk);
    }
    for ours in [BTREE, CRIT_BIT, RED_BLACK] {
        for peer in PEERS {
            for (phase, least) in [
                (Phase::InsertEach, EACH_AGAINST_PEERS),
                (Phase::RemoveEach, EACH_AGAINST_PEERS),
                (Phase::InsertTogether, TOGETHER_AGAINST_PEERS),
                (Phase::Get, GETS_AGAINST_PEERS),
            ] {
                against(&mut targets, figures, ours, phase, peer, least);
            }
        }
        against(&mut targets, figures, ours, Phase::Iterate, "lmdb", ITERATION_AGAINST_LMDB);
        against_disk(&mut targets, figures, ours);
        let removes = rate(figures, ours, Phase::RemoveTogether, 1);
        if let Some((ten, one)) = rate(figures, ours, Phase::RemoveTenfold, 1).zip(removes) {
            // There is one run of the larger tree.
            let ratio = Ratio::to(&ten.rounds, one.median());
            let title = format!("{ours}: remove of ten times as many, each");
            targets.at_least(&title, 1, TENFOLD_AGAINST_REMOVE, ratio);
        }
        let recovery = figures
            .recoveries
            .iter()
            .find(|rate| rate.engine == ours && rate.workload == random(Phase::Recover));
        if let Some(recovery) = recovery {
            let ratio = Ratio::to(&recovery.rounds, RECOVERY_LEAST);
            targets.at_least(&format!("{ours}: recovery against 1 GiB/s"), 1, 1.0, ratio);
        }
    }
    if let Some(bytes) = figures.size(BTREE, Order::Random).and_then(|size| size.entry) {
        targets.at_most(&format!("{BTREE}: bytes of an entry"), BYTES_PER_ENTRY_MOST, bytes, "B");
    }
    if targets.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nTargets, judged at {TARGET_KEYS} random keys:")?;
    if verdicts == Verdicts::Withheld {
        writeln!(
            out,
            "(this run has {} keys and {} transactions: leave --keys and --ops out to judge them)",
            figures.keys, figures.ops
        )?;
    }
    writeln!(out, "{targets}")
}

fn random(phase: Phase) -> Workload {
    Workload { phase, order: Order::Random }
}

fn rate<'f>(
    figures: &'f Figures,
    engine: &str,
    phase: Phase,
    threads: usize,
) -> Option<&'f Rate<Workload>> {
    figures.rates.rate(engine, random(phase), threads)
}

fn against_pmdk(targets: &mut Targets, figures: &Figures, pmdk: &Pmdk) {
    for (phase, title, microseconds) in [
        (Phase::InsertEach, "insert, a transaction each", pmdk.insert_each),
        (Phase::RemoveEach, "remove, a transaction each", pmdk.remove_each),
        (Phase::InsertTogether, "insert, one transaction", pmdk.insert_together),
    ] {
        let Some(ours) = rate(figures, pmdk.ours, phase, 1) else { continue };
        let (ratio, source) = match rate(figures, pmdk.theirs, phase, 1) {
            Some(theirs) => (Ratio::of(&ours.rounds, &theirs.rounds), "in this run"),
            None => (Ratio::to(&ours.rounds, 1e6 / microseconds), "as measured before"),
        };
        let title = format!("{}: {title} against PMDK {source}", pmdk.ours);
        targets.at_least(&title, 1, AGAINST_PMDK, ratio);
    }
}

fn against(
    targets: &mut Targets,
    figures: &Figures,
    ours: &str,
    phase: Phase,
    peer: &str,
    least: f64,
) {
    let rates = rate(figures, ours, phase, 1).zip(rate(figures, peer, phase, 1));
    if let Some((our, their)) = rates {
        let title = format!("{ours}: {} against {peer}", phase.name());
        targets.at_least(&title, 1, least, Ratio::of(&our.rounds, &their.rounds));
    }
}

/// Commits that last, against as many syncs of the disk by one writer.
fn against_disk(targets: &mut Targets, figures: &Figures, ours: &str) {
    let Some(disk) = rate(figures, floor::NAME, Phase::Sync, 1) else { return };
    for (writers, least) in [(1, SYNC_AGAINST_DISK), (WRITERS, WRITERS_AGAINST_DISK)] {
        if let Some(our) = rate(figures, ours, Phase::Sync, writers) {
            let title = format!("{ours}: commits that last against syncs of the disk");
            targets.at_least(&title, writers, least, Ratio::of(&our.rounds, &disk.rounds));
        }
    }
}
