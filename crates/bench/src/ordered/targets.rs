//! The targets, and whether a run reached them.

use std::io::{self, Write};

use super::TARGET_ENTRIES;
use super::baseline::BASELINE;
use super::contenders::{BTREE, SAPWOOD, SKIP_LIST};
use super::jvm::JDK_SKIP_LIST;
use super::measure::Figures;
use super::space::{Data, KeyShape, MIDDLE, SMALL};
use super::workload::Workload;
use crate::figures::Ratio;
use crate::report::{Targets, Verdicts};

/// Oak's keys and values.
const OAK: Data = Data::Generated { key_bytes: 100, value_bytes: 1000, shape: KeyShape::Integer };

/// One promise: ours must be `least` times `peer` in `workload`, on data of one kind.
struct Target {
    data: Data,
    peer: &'static str,
    workload: Workload,
    least: f64,
}

impl Target {
    /// The peer's workload.
    fn against(&self) -> Workload {
        match self.workload {
            // Memory is read down much more slowly than up, so that the floor of both is that of reading up.
            Workload::DescendingStream if self.peer == BASELINE => Workload::AscendingStream,
            // Others have no call for many keys.
            Workload::GetMany => Workload::GetZeroCopy,
            workload => workload,
        }
    }
}

const fn target(peer: &'static str, workload: Workload, least: f64) -> Target {
    Target { data: OAK, peer, workload, least }
}

const fn on(data: Data, peer: &'static str, workload: Workload, least: f64) -> Target {
    Target { data, peer, workload, least }
}

/// Each holds on every thread count.
const TARGETS: [Target; 33] = [
    target(SKIP_LIST, Workload::Put, 5.0),
    target(SKIP_LIST, Workload::PutIfAbsentOrUpdate, 4.5),
    target(SKIP_LIST, Workload::GetZeroCopy, 4.0),
    target(SKIP_LIST, Workload::Mixed, 3.0),
    target(SKIP_LIST, Workload::AscendingStream, 9.0),
    target(SKIP_LIST, Workload::DescendingStream, 7.0),
    target(SKIP_LIST, Workload::AscendingKeys, 15.0),
    target(SKIP_LIST, Workload::DescendingKeys, 15.0),
    target(SKIP_LIST, Workload::LoadAscending, 1.0),
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
    target(JDK_SKIP_LIST, Workload::AscendingIterator, 5.0),
    target(JDK_SKIP_LIST, Workload::AscendingKeys, 5.0),
    target(JDK_SKIP_LIST, Workload::DescendingStream, 5.0),
    target(JDK_SKIP_LIST, Workload::DescendingIterator, 5.0),
    target(JDK_SKIP_LIST, Workload::DescendingKeys, 5.0),
    target(BASELINE, Workload::GetMany, 0.55),
    target(BASELINE, Workload::AscendingStream, 0.6),
    target(BASELINE, Workload::DescendingStream, 0.6),
    on(SMALL, BTREE, Workload::AscendingStream, 2.0),
    on(SMALL, BTREE, Workload::DescendingStream, 2.0),
    on(MIDDLE, BTREE, Workload::GetZeroCopy, 1.0),
];

/// Ours on two threads is this much faster than on one, on small entries.
const SCALES: [(Workload, f64); 3] =
    [(Workload::AscendingStream, 1.8), (Workload::DescendingStream, 1.8), (Workload::Put, 1.8)];
/// Time of a look at the first entry, in nanoseconds.
const FIRST_NS_MOST: f64 = 60.0;
/// Descending scans are at most this much slower than ascending ones.
const DESCENDING_LEAST: f64 = 0.85;
/// Overhead over keys and values in percent: the target and the aim.
const OVERHEAD_PERCENT_MOST: f64 = 4.0;

/// Prints the targets of the figures' data, if it has any.
pub(crate) fn print(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let verdicts = match figures.entries < TARGET_ENTRIES {
        true => Verdicts::Withheld,
        false => Verdicts::Given,
    };
    let mut targets = Targets::new(verdicts);
    ratios(&mut targets, figures);
    match figures.data {
        OAK => {
            descending(&mut targets, figures);
            first(&mut targets, figures);
            overheads(&mut targets, figures);
        }
        SMALL => scaling(&mut targets, figures),
        _ => {}
    }
    if targets.is_empty() {
        return Ok(());
    }
    let data = figures.data.name();
    writeln!(out, "\nTargets, judged at {TARGET_ENTRIES} entries, {data}:")?;
    if verdicts == Verdicts::Withheld {
        writeln!(out, "(this run has {} entries: pass --full to judge them)", figures.entries)?;
    }
    writeln!(out, "{targets}")?;
    Ok(())
}

/// Ours against peers.
fn ratios(targets: &mut Targets, figures: &Figures) {
    let rates = &figures.rates;
    for target in TARGETS.iter().filter(|target| target.data == figures.data) {
        for threads in rates.thread_counts() {
            let ours = rates.rate(SAPWOOD, target.workload, threads);
            let theirs = rates.rate(target.peer, target.against(), threads);
            if let Some((ours, theirs)) = ours.zip(theirs) {
                let ratio = Ratio::of(&ours.rounds, &theirs.rounds);
                let title = format!("{} against {}", target.workload.name(), target.peer);
                targets.at_least(&title, threads, target.least, ratio);
            }
        }
    }
}

fn descending(targets: &mut Targets, figures: &Figures) {
    let rates = &figures.rates;
    for threads in rates.thread_counts() {
        let descending = rates.rate(SAPWOOD, Workload::DescendingStream, threads);
        let ascending = rates.rate(SAPWOOD, Workload::AscendingStream, threads);
        if let Some((descending, ascending)) = descending.zip(ascending) {
            let ratio = Ratio::of(&descending.rounds, &ascending.rounds);
            let title = "descending against ascending, ours";
            targets.at_least(title, threads, DESCENDING_LEAST, ratio);
        }
    }
}

fn scaling(targets: &mut Targets, figures: &Figures) {
    let rates = &figures.rates;
    for (workload, least) in SCALES {
        let [one, two] = [1, 2].map(|threads| rates.rate(SAPWOOD, workload, threads));
        if let Some((two, one)) = two.zip(one) {
            let ratio = Ratio::of(&two.rounds, &one.rounds);
            targets.at_least(
                &format!("{} against one thread, ours", workload.name()),
                2,
                least,
                ratio,
            );
        }
    }
}

fn first(targets: &mut Targets, figures: &Figures) {
    if let Some(rate) = figures.rates.rate(SAPWOOD, Workload::First, 1) {
        targets.at_most("first", FIRST_NS_MOST, 1e9 / rate.median(), "ns");
    }
}

fn overheads(targets: &mut Targets, figures: &Figures) {
    let Some(load) = figures.load(SAPWOOD) else { return };
    let percent =
        |bytes: u64| (bytes as f64 / figures.entries as f64 / figures.payload_bytes - 1.0) * 100.0;
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
