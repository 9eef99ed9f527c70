//! Figures, printed.

use std::io::{self, Write};

use comfy_table::Table;
use sapwood::aggregate::Executor;
use serde_json::json;

use super::baseline::{LOOK_UPS, RECORDS};
use super::contenders::{TableKind, Way};
use super::measure::Figures;
use super::references::{RAMCLOUD_CLIENT, ramcloud, ramcloud_disaggregate};
use super::workload::{Beside, Fraction, Pick, Workload};
use super::writers::{SUMMED, writer_of};
use crate::figures::{Rate, Ratio, Timed};
use crate::report::{Labels, table};

const DATA: &str = "8+8 B";

/// The context of a rate.
struct Context {
    /// The executor: for the planner, the one it chose.
    executor: Option<Executor>,
    /// As a share of the baseline in the same rounds.
    of_baseline: Option<Ratio>,
    /// Objects a ms of RAMCloud by the same executor.
    ramcloud: Option<f64>,
}

impl Figures {
    fn context(&self, rate: &Rate<Workload>) -> Context {
        let (Workload::Sum(pick) | Workload::Disaggregate(pick)) = rate.workload else {
            return Context { executor: None, of_baseline: None, ramcloud: None };
        };
        let chosen = self.chosen(&rate.engine, rate.workload, rate.threads);
        let named = Way::named(&rate.engine).and_then(|way| way.executor);
        let executor = named.or(chosen.map(|chosen| chosen.executor));
        let baseline = match (executor, pick) {
            (Some(Executor::LookUp), _) => Some(LOOK_UPS),
            (Some(Executor::Walk | Executor::Log), Pick::Everything | Pick::Range(_)) => {
                Some(RECORDS)
            }
            // It visits what is selected alone, where the loop visits everything.
            (Some(Executor::Range), _) if pick.share() == Fraction::All => Some(RECORDS),
            _ => None,
        };
        let baseline =
            baseline.and_then(|baseline| self.rates.rate(baseline, rate.workload, rate.threads));
        Context {
            executor,
            of_baseline: baseline.map(|baseline| Ratio::of(&rate.rounds, &baseline.rounds)),
            ramcloud: executor.and_then(|executor| match rate.workload {
                Workload::Disaggregate(_) => ramcloud_disaggregate(executor),
                _ => ramcloud(executor, pick.share()),
            }),
        }
    }
}

pub(crate) fn print_json(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let labels = Labels {
        bench: "aggregate",
        entries: figures.objects as usize,
        data: DATA,
        bytes_per_entry: &|engine| figures.bytes_per_object(Way::named(engine)?.kind),
    };
    for rate in &figures.rates.rates {
        let mut line = labels.rate(rate);
        let Context { executor, of_baseline, ramcloud } = figures.context(rate);
        if let Some(executor) = executor {
            line["executor"] = json!(executor.to_string());
        }
        if let Some(ratio) = of_baseline {
            line["share_of_floor"] =
                json!({ "median": ratio.median, "min": ratio.min, "max": ratio.max });
        }
        if let Some(ramcloud) = ramcloud {
            line["times_ramcloud"] = json!(rate.median() / 1e3 / ramcloud);
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}

pub(crate) fn print_tables(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    writeln!(out, "\n{} objects of {DATA}, put in a random order", figures.objects)?;
    for (kind, title) in [(TableKind::Hash, "hash"), (TableKind::Ordered, "ordered")] {
        if let Some(bytes) = figures.bytes_per_object(kind) {
            writeln!(out, "  {title} table: {bytes:.1} B an object")?;
        }
    }
    let sums = in_rounds(figures, |workload| match workload {
        Workload::Sum(pick) => Some(pick),
        _ => None,
    });
    if !sums.is_empty() {
        writeln!(
            out,
            "\nSums. A rate counts the objects that are selected; RAMCloud's, on its machine, are \
             {RAMCLOUD_CLIENT} objects/ms when a client reads them one by one\n{sums}"
        )?;
    }
    let disaggregated = in_rounds(figures, |workload| match workload {
        Workload::Disaggregate(pick) => Some(pick),
        _ => None,
    });
    if !disaggregated.is_empty() {
        writeln!(out, "\nTotals spread back over the selected objects\n{disaggregated}")?;
    }
    let beside = beside_a_writer(figures);
    if !beside.is_empty() {
        writeln!(
            out,
            "\nThe cost of being exact: all objects summed on one thread, alone and beside a \
             writer that adds to random objects in place\n{beside}"
        )?;
    }
    Ok(())
}

fn amount(rate: f64, workload: Workload) -> String {
    format!("{:.0}", rate / workload.unit().table_scale())
}

/// Figures of rounds, of those workloads that have a pick here.
fn in_rounds(figures: &Figures, pick_of: impl Fn(Workload) -> Option<Pick>) -> Table {
    let header = [
        "selected",
        "threads",
        "engine",
        "objects/ms",
        "from",
        "to",
        "of floor",
        "from",
        "to",
        "RAMCloud",
        "times that",
    ];
    let mut table = table(&header, 3);
    let mut last = None;
    for rate in &figures.rates.rates {
        let Some(pick) = pick_of(rate.workload) else { continue };
        let group = (pick, rate.threads);
        let (selected, threads) = if last == Some(group) {
            (String::new(), String::new())
        } else {
            (pick.name(), rate.threads.to_string())
        };
        last = Some(group);
        let Context { executor, of_baseline, ramcloud } = figures.context(rate);
        let engine = match (figures.chosen(&rate.engine, rate.workload, rate.threads), executor) {
            (Some(_), Some(executor)) => format!("{}: {executor}", rate.engine),
            _ => rate.engine.clone(),
        };
        let mut row = vec![selected, threads, engine];
        row.extend([rate.median(), rate.min(), rate.max()].map(|r| amount(r, rate.workload)));
        let none = || "-".to_owned();
        match of_baseline {
            Some(Ratio { median, min, max }) => {
                row.extend([median, min, max].map(|share| format!("{:.0} %", share * 100.0)));
            }
            None => row.extend([none(), none(), none()]),
        }
        match ramcloud {
            Some(theirs) => {
                let times = rate.median() / 1e3 / theirs;
                row.extend([format!("{theirs:.0}"), format!("{times:.1}x")]);
            }
            None => row.extend([none(), none()]),
        }
        table.add_row(row);
    }
    table
}

fn beside_a_writer(figures: &Figures) -> Table {
    let header = [
        "engine",
        "selected",
        "alone, objects/ms",
        "a writer beside",
        "keeps",
        "writer alone, K/s",
        "beside sums",
        "keeps",
    ];
    let mut table = table(&header, 2);
    for (way, pick) in SUMMED {
        let rate = |engine, workload| figures.rates.rate(engine, workload, 1);
        let writer = writer_of(way.kind);
        let pairs = [
            (way.name, Workload::SumsBeside(pick, Beside::Nobody)),
            (way.name, Workload::SumsBeside(pick, Beside::Writer)),
            (writer, Workload::Writes(None)),
            (writer, Workload::Writes(Some(way.deed()))),
        ];
        let rates = pairs.map(|(engine, workload)| rate(engine, workload));
        let [Some(alone), Some(beside), Some(writer), Some(writes)] = rates else { continue };
        let cells = |alone: &Rate<Workload>, beside: &Rate<Workload>| {
            let kept = Ratio::of(&beside.rounds, &alone.rounds);
            [
                amount(alone.median(), alone.workload),
                amount(beside.median(), beside.workload),
                format!("{:.0} %", kept.median * 100.0),
            ]
        };
        let mut row = vec![way.name.to_owned(), pick.name()];
        row.extend(cells(alone, beside));
        row.extend(cells(writer, writes));
        table.add_row(row);
    }
    table
}
