//! The targets, and whether a run reached them.

use std::io::{self, Write};

use super::TARGET_ENTRIES;
use super::baseline::BASELINE;
use super::contenders::{BTREE, SAPWOOD, SKIP_LIST};
use super::jvm::JDK_SKIP_LIST;
use super::measure::Figures;
use super::space::{Data, KeyShape};
use super::workload::Workload;
use crate::figures::Ratio;
use crate::report::{Targets, Verdicts};

/// One promise: ours must be `least` times `peer` in `workload`.
struct Target {
    peer: &'static str,
    workload: Workload,
    least: f64,
}

impl Target {
    /// The peer's workload. Memory is read down much more slowly than up, so that the floor of both is that of reading up.
    fn against(&self) -> Workload {
        match self.workload {
            Workload::DescendingStream if self.peer == BASELINE => Workload::AscendingStream,
            workload => workload,
        }
    }
}

const fn target(peer: &'static str, workload: Workload, least: f64) -> Target {
    Target { peer, workload, least }
}

/// Each holds on every thread count.
const TARGETS: [Target; 25] = [
    target(SKIP_LIST, Workload::Put, 5.0),
    target(SKIP_LIST, Workload::PutIfAbsentOrUpdate, 4.5),
    target(SKIP_LIST, Workload::GetZeroCopy, 4.0),
    target(SKIP_LIST, Workload::Mixed, 3.0),
    target(SKIP_LIST, Workload::AscendingStream, 9.0),
    target(SKIP_LIST, Workload::DescendingStream, 7.0),
    target(SKIP_LIST, Workload::AscendingKeys, 15.0),
    target(SKIP_LIST, Workload::DescendingKeys, 15.0),
    target(BTREE, Workload::Put, 1.4),
    target(BTREE, Workload::GetZeroCopy, 2.0),
    target(BTREE, Workload::AscendingStream, 6.0),
    target(BTREE, Workload::Scan1, 0.8),
    target(BTREE, Workload::Scan10, 1.0),
    target(BTREE, Workload::Scan100, 1.5),
    target(BTREE, Workload::Fifo, 0.5),
    target(JDK_SKIP_LIST, Workload::Put, 5.0),
    target(JDK_SKIP_LIST, Workload::PutIfAbsentOrUpdate, 5.0),
    target(JDK_SKIP_LIST, Workload::GetZeroCopy, 5.0),
    target(JDK_SKIP_LIST, Workload::GetCopy, 5.0),
    target(JDK_SKIP_LIST, Workload::Mixed, 5.0),
    target(JDK_SKIP_LIST, Workload::AscendingStream, 5.0),
    target(JDK_SKIP_LIST, Workload::DescendingStream, 5.0),
    target(BASELINE, Workload::GetZeroCopy, 0.5),
    target(BASELINE, Workload::AscendingStream, 0.6),
    target(BASELINE, Workload::DescendingStream, 0.6),
];

/// Descending scans are at most this much slower than ascending ones.
const DESCENDING_LEAST: f64 = 0.85;
/// Overhead over keys and values in percent: the target and the aim.
const OVERHEAD_PERCENT_MOST: f64 = 4.0;

/// Prints the targets, for the data that they assume.
pub(crate) fn print(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let set_on = Data::Generated { key_bytes: 100, value_bytes: 1000, shape: KeyShape::Integer };
    if figures.data != set_on {
        return Ok(());
    }
    let verdicts = match figures.entries < TARGET_ENTRIES {
        true => Verdicts::Withheld,
        false => Verdicts::Given,
    };
    let mut targets = Targets::new(verdicts);
    let rates = &figures.rates;
    let threads = rates.thread_counts();
    for target in &TARGETS {
        for &threads in &threads {
            let ours = rates.rate(SAPWOOD, target.workload, threads);
            let theirs = rates.rate(target.peer, target.against(), threads);
            if let Some((ours, theirs)) = ours.zip(theirs) {
                let ratio = Ratio::of(&ours.rounds, &theirs.rounds);
                let title = format!("{} against {}", target.workload.name(), target.peer);
                targets.at_least(&title, threads, target.least, ratio);
            }
        }
    }
    for &threads in &threads {
        let descending = rates.rate(SAPWOOD, Workload::DescendingStream, threads);
        let ascending = rates.rate(SAPWOOD, Workload::AscendingStream, threads);
        if let Some((descending, ascending)) = descending.zip(ascending) {
            let ratio = Ratio::of(&descending.rounds, &ascending.rounds);
            targets.at_least(
                "descending against ascending, ours",
                threads,
                DESCENDING_LEAST,
                ratio,
            );
        }
    }
    if let Some(load) = figures.load(SAPWOOD) {
        let percent = |bytes: u64| {
            (bytes as f64 / figures.entries as f64 / figures.payload_bytes - 1.0) * 100.0
        };
        let by_stats = load.accounted.map(|accounted| percent(accounted.used_bytes));
        let settled = figures.settled.iter().find(|(name, _)| name == SAPWOOD);
        let after_scans = settled
            .and_then(|(_, settled)| settled.accounted)
            .map(|accounted| percent(accounted.used_bytes));
        for (title, measured) in [
            ("overhead by resident memory", load.resident_bytes.map(percent)),
            ("overhead by stats", by_stats),
            ("overhead by stats after scans", after_scans),
        ] {
            if let Some(measured) = measured {
                targets.at_most(title, OVERHEAD_PERCENT_MOST, measured, "%");
            }
        }
    }
    if targets.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nTargets, judged at {TARGET_ENTRIES} entries of 100 B + 1,000 B:")?;
    if verdicts == Verdicts::Withheld {
        writeln!(out, "(this run has {} entries: pass --full to judge them)", figures.entries)?;
    }
    writeln!(out, "{targets}")?;
    Ok(())
}
