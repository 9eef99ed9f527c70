//! The speed of aggregation and disaggregation over many objects, by each executor.
//!
//! RAMCloud's tables ("Data Operations"): a table of one integer an object, of which all, a tenth
//! or a two-hundredth are summed. Keys and integers have 8 bytes and were put in a random order.
//! Every executor of a hash table and of an ordered one answers, forced and chosen by the planner,
//! and the floor, a plain loop over the same bytes, takes its turns in the same rounds. A rate
//! counts the objects that were selected. Every answer of every round is compared with the right
//! one; that holds beside a writer too, whose cost is measured.

mod disaggregate;
mod engines;
mod floor;
mod job;
mod objects;
mod writers;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sapwood::aggregate::Executor;
use serde_json::json;

use crate::harness::*;
use disaggregate::SpreadTotal;
use engines::{AggregateWay, LoadedTable, WAYS};
use floor::{AggregateFloor, COLUMN, LOOK_UPS, RECORDS, RecordMemory};
use job::{AggregateJob, Fraction, Pick, Picked};
use objects::Objects;
use writers::WrittenTable;

const TARGET_OBJECTS: usize = 10_000_000;
/// Most bytes that tables and the floor together may take.
const BYTES_MAX: u64 = 15 << 30;
const LISTED_OBJECTS_MAX: usize = 10_000_000;
/// Above this many objects ordered tables are left out, unless they are all that is asked for:
/// beside a hash table they would not fit.
const ORDERED_OBJECTS_MAX: usize = 50_000_000;
/// Objects that ordered and hash table, floor, objects and lists cost, in bytes each.
const FLOOR_BYTES: u64 = 24 + 8 + 20;

pub(crate) const BENCH: Bench = Bench {
    name: "aggregate",
    workloads: &[
        "everything",
        "range of 100 %",
        "list of 100 %",
        "range of 10 %",
        "list of 10 %",
        "range of 0.5 %",
        "list of 0.5 %",
    ],
    extra: &[],
    engines: &[
        LOOK_UP,
        WALK,
        LOG,
        PLANNER,
        ORDERED_LOOK_UP,
        ORDERED_RANGE,
        ORDERED_PLANNER,
        RECORDS,
        COLUMN,
        LOOK_UPS,
    ],
    entries: [
        &[2_000, 20_000],
        &[10_000, 100_000, 1_000_000, TARGET_OBJECTS],
        &[10_000, 100_000, 1_000_000, TARGET_OBJECTS, 100_000_000],
    ],
    entries_range: [1_000, 1_000_000_000],
    runs: [2, 5, 9],
    threads: &[],
};

const LOOK_UP: &str = "sapwood-look-up";
const WALK: &str = "sapwood-walk";
const LOG: &str = "sapwood-log";
const PLANNER: &str = "sapwood-planner";
const ORDERED_LOOK_UP: &str = "sapwood-ordered-look-up";
const ORDERED_RANGE: &str = "sapwood-ordered-range";
const ORDERED_PLANNER: &str = "sapwood-ordered-planner";

const ONE: &[usize] = &[1];
const RANGES: &[&str] = &["range of * %"];
const LISTS: &[&str] = &["list of * %"];
const PARTS: &[&str] = &["range of 10 %", "list of 10 %", "range of 0.5 %", "list of 0.5 %"];
const ALL: &[&str] = &["everything"];
const LISTED: &[&str] = &["list of 10 %"];
const SPREAD: &[&str] = &["disaggregate over everything"];
const SPREAD_LIST: &[&str] = &["disaggregate over list of 10 %"];

const fn scales(ours: &'static [&'static str], workloads: &'static [&'static str]) -> Target {
    Target::rate(ours, workloads, 1.7, &[]).on(&[2]).against(Against::Sample("", "", 1))
}

const TARGETS: Targets = Targets {
    judged: TARGET_OBJECTS..=TARGET_OBJECTS,
    size_unit: "entries",
    hint: "pass --objects 10000000 to judge them",
    rows: &[
        Target::rate(&[LOG], ALL, 0.8, &[RECORDS]).on(ONE),
        Target::rate(&[WALK], ALL, 5.0, &[]).on(ONE).against(Against::Sample(
            LOOK_UPS,
            "list of 10 %",
            0,
        )),
        Target::rate(&[LOOK_UP], LISTED, 0.8, &[LOOK_UPS]).on(ONE),
        Target::rate(&[LOG], SPREAD, 0.4, &[RECORDS]).on(ONE),
        // A range of an ordered table visits what is selected alone, so that it is compared with
        // the loop over everything.
        Target::rate(&[ORDERED_RANGE], RANGES, 0.1, &[]).on(ONE).against(Against::Sample(
            RECORDS,
            "everything",
            0,
        )),
        Target::rate(&[ORDERED_LOOK_UP], LISTS, 0.4, &[LOOK_UPS]).on(ONE),
        Target::rate(&[LOOK_UP], SPREAD_LIST, 0.7, &[LOOK_UPS]).on(ONE),
        scales(&[LOG, WALK], ALL),
        scales(&[LOOK_UP], LISTED),
        scales(&[ORDERED_RANGE], RANGES),
        scales(&[ORDERED_LOOK_UP], LISTS),
        scales(&[LOG], SPREAD),
        scales(&[LOOK_UP], SPREAD_LIST),
        // Where a part is selected, an object costs at most 1.3 times a look-up.
        Target::rate(&[PLANNER], PARTS, 1.0 / 1.3, &[LOOK_UP]),
        // The planner's choice takes at most 15 % longer than the best executor.
        Target::rate(&[PLANNER], BENCH.workloads, 1.0 / 1.15, &[LOOK_UP, WALK, LOG]),
        Target::rate(
            &[ORDERED_PLANNER],
            BENCH.workloads,
            1.0 / 1.15,
            &[ORDERED_LOOK_UP, ORDERED_RANGE],
        ),
    ],
};

/// Flags of `sapwood-bench aggregate`.
#[derive(Debug, Clone, clap::Args)]
pub struct AggregateArgs {
    #[command(flatten)]
    flags: Flags,

    /// Parts to run [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<AggregatePart>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum AggregatePart {
    /// Sums of all, of ranges and of lists of keys, by each executor
    Sums,
    /// Totals that are spread back over the objects
    Disaggregate,
    /// Sums beside a writer
    Writers,
}

/// Measures and prints to `out`; progress goes to standard error.
pub fn run_to(args: &AggregateArgs, out: &mut dyn Write) -> Result {
    let plan = args.flags.plan(&BENCH, &[])?;
    for &count in &plan.entries {
        check_memory(&plan, count)?;
    }
    let mut sheet = args.flags.open(out)?;
    let last = plan.entries.len() - 1;
    let judged = plan.entries.iter().position(|&count| count == TARGET_OBJECTS).unwrap_or(last);
    for (at, &count) in plan.entries.iter().enumerate() {
        let report = AggregateCourse::load(&plan, count)?.run(&args.part)?;
        sheet.print(&report, if at == judged { &[&TARGETS] } else { &[] })?;
    }
    sheet.end()
}

fn takes(plan: &Plan, kind: TableKind, count: usize) -> bool {
    let is_wanted = |kind| WAYS.iter().any(|way| way.kind == kind && plan.takes(way.name));
    let fits =
        kind == TableKind::Hash || count <= ORDERED_OBJECTS_MAX || !is_wanted(TableKind::Hash);
    is_wanted(kind) && fits
}

fn check_memory(plan: &Plan, count: usize) -> Result {
    let tables =
        [TableKind::Hash, TableKind::Ordered].into_iter().filter(|kind| takes(plan, *kind, count));
    let has_floor = [RECORDS, COLUMN, LOOK_UPS].iter().any(|name| plan.takes(name));
    let lists = if count <= LISTED_OBJECTS_MAX { job::BYTES_EXPECTED } else { job::BYTES_OF_PARTS };
    let bytes_expected = |kind| if kind == TableKind::Hash { 50 } else { 60 };
    let each = tables.map(bytes_expected).sum::<u64>()
        + if has_floor { FLOOR_BYTES } else { 0 }
        + objects::BYTES_EXPECTED
        + lists;
    let bytes = each * count as u64;
    if bytes > BYTES_MAX {
        bail!(
            "{count} objects would take about {} MB: choose fewer with --objects, or fewer \
             tables with --engines",
            bytes / 1_000_000
        );
    }
    Ok(())
}

/// One course of measurement. Tables are loaded; then, for each number of threads and each
/// selection, all ways to answer and the floor run in rounds; then all ways to spread a total do;
/// then sums run beside a writer.
struct AggregateCourse<'a> {
    plan: &'a Plan,
    objects: Arc<Objects>,
    picks: Vec<Arc<Picked>>,
    stores: Vec<LoadedTable>,
    report: Report,
}

impl AggregateCourse<'_> {
    fn load(plan: &Plan, count: usize) -> Result<AggregateCourse<'_>> {
        let objects = Arc::new(Objects::new(u32::try_from(count)?));
        let are_listed = count <= LISTED_OBJECTS_MAX;
        let picks = Pick::ALL.iter().filter(|pick| are_listed || **pick != Pick::EVERY_KEY);
        let picks: Result<Vec<_>> =
            picks.map(|pick| Ok(Arc::new(Picked::new(*pick, &objects)?))).collect();
        let mut report = Report::new("aggregate", count, "8+8 B", &[]);
        report.title =
            ", put in a random order; a rate counts the objects that are selected".into();
        let mut stores = Vec::new();
        for kind in [TableKind::Hash, TableKind::Ordered]
            .into_iter()
            .filter(|kind| takes(plan, *kind, count))
        {
            report.progress.set_message("loading a table");
            let store = LoadedTable::load(kind, &objects)?;
            let bytes = store.bytes() as f64 / count as f64;
            let ways = WAYS.iter().filter(|way| way.kind == kind);
            report.bytes_per_entry.extend(ways.map(|way| (way.name.to_owned(), bytes)));
            report.title += &format!("; {} table: {bytes:.1} B an object", kind.name());
            stores.push(store);
        }
        Ok(AggregateCourse { plan, objects, picks: picks?, stores, report })
    }

    fn run(mut self, parts: &[AggregatePart]) -> Result<Report> {
        let has = |part| parts.is_empty() || parts.contains(&part);
        let mut engines = self.engines();
        for (part, picks) in [
            (AggregatePart::Sums, &Pick::ALL[..]),
            (AggregatePart::Disaggregate, &disaggregate::PICKS),
        ] {
            let (runs, times) = (self.plan.runs, self.times());
            let is_sum = part == AggregatePart::Sums;
            for &threads in self.plan.threads.iter().filter(|_| has(part)) {
                for picked in self.picks.iter().filter(|picked| picks.contains(&picked.pick)) {
                    if is_sum && !self.plan.runs(picked.pick.name()) {
                        continue;
                    }
                    let total = if is_sum { None } else { Some(SpreadTotal::new(picked)?.into()) };
                    let job = AggregateJob { picked: Arc::clone(picked), total, threads, times };
                    rounds(&mut engines, &mut self.report, runs, |_| job.clone())?;
                }
            }
        }
        // Writers move amounts between objects, so that they come last.
        if has(AggregatePart::Writers) {
            self.writers()?;
        }
        context(&mut self.report);
        Ok(self.report)
    }

    /// The ways of the tables that are there, and the floor, if they are wanted.
    fn engines(&self) -> Vec<Box<dyn Engine<AggregateJob>>> {
        let mut engines: Vec<Box<dyn Engine<AggregateJob>>> = Vec::new();
        for way in WAYS.into_iter().filter(|way| self.plan.takes(way.name)) {
            for store in self.stores.iter().filter(|store| store.kind() == way.kind) {
                let store = store.clone();
                engines.push(Box::new(AggregateWay { way, store, tired_of: None }));
            }
        }
        let floors = [RECORDS, COLUMN, LOOK_UPS].into_iter().filter(|name| self.plan.takes(name));
        let mut memory = None;
        for name in floors {
            let load = || Arc::new(Mutex::new(RecordMemory::load(&self.objects)));
            let memory = Arc::clone(memory.get_or_insert_with(load));
            engines.push(Box::new(AggregateFloor { name, memory }));
        }
        engines
    }

    fn times(&self) -> usize {
        let looked_at = self.plan.mode.pick(20_000, 1_000_000, 1_000_000_u32);
        looked_at.div_ceil(self.objects.count()) as usize
    }

    fn picked(&self, pick: Pick) -> &Arc<Picked> {
        self.picks.iter().find(|picked| picked.pick == pick).expect("all picks are there")
    }

    fn writers(&mut self) -> Result {
        let window =
            self.plan.mode.pick(Duration::from_millis(2), writers::WINDOW, writers::WINDOW);
        for store in &self.stores {
            let summed: Vec<_> = writers::SUMMED
                .into_iter()
                .filter(|(way, _)| way.kind == store.kind() && self.plan.takes(way.name))
                .map(|(way, pick)| (way, Arc::clone(self.picked(pick))))
                .collect();
            if !summed.is_empty() {
                let written = WrittenTable { store, objects: self.objects.count(), summed, window };
                written.measure(self.plan.runs, &mut self.report)?;
            }
        }
        Ok(())
    }
}

/// Adds to rates what they mean: the executor, the share of the floor in the same rounds, and the
/// multiple of the rate that was published for RAMCloud, on its machine. None of these is a bar.
fn context(report: &mut Report) {
    let context = |sample: &Sample| -> Option<serde_json::Value> {
        let way = WAYS.into_iter().find(|way| way.name == sample.engine && is_ours(way.name))?;
        let chosen =
            sample.fields.get("executor").and_then(|it| it.as_str()?.parse::<Executor>().ok());
        let executor = way.executor.or(chosen)?;
        let spread = sample.workload.strip_prefix("disaggregate over ");
        let pick = Pick::named(spread.unwrap_or(&sample.workload))?;
        let floor = match (executor, pick) {
            (Executor::LookUp, _) => LOOK_UPS,
            (Executor::Walk | Executor::Log, Pick::Everything | Pick::Range(_)) => RECORDS,
            // It visits what is selected alone, where the loop visits everything.
            (Executor::Range, _) if pick.share() == Fraction::All => RECORDS,
            _ => "none",
        };
        let floor = report.rate(floor, &sample.workload, sample.threads);
        let share = floor.map(|floor| Ratio::of(&sample.rounds, &floor.rounds).json());
        let published = match spread {
            Some(_) => (executor == Executor::LookUp).then_some(2_000.0),
            None => ramcloud(executor, pick.share()),
        };
        let times = published.map(|theirs| sample.median() / 1e3 / theirs);
        let mut context = json!({ "executor": executor.to_string() });
        if let Some(share) = share {
            context["share_of_floor"] = share;
        }
        if let Some(times) = times {
            context["times_ramcloud"] = json!(times);
        }
        Some(context)
    };
    let contexts: Vec<_> = report.samples.iter().map(context).collect();
    for (sample, context) in report.samples.iter_mut().zip(contexts) {
        sample.fields.extend(context.map(crate::harness::fields).unwrap_or_default());
    }
}

/// Objects a ms that RAMCloud reached on one server, as its wiki page "Data Operations" gives them,
/// the most of all table sizes. A walk is its `forEach`; its tables have no order.
fn ramcloud(executor: Executor, share: Fraction) -> Option<f64> {
    let [look_up, walk, log] = match share {
        Fraction::All => [5_036.0, 16_012.0, 70_323.0],
        Fraction::Tenth => [4_030.0, 1_322.0, 6_825.0],
        Fraction::TwoHundredth => [3_650.0, 63.0, 345.0],
    };
    match executor {
        Executor::LookUp => Some(look_up),
        Executor::Walk => Some(walk),
        Executor::Log => Some(log),
        Executor::Range => None,
    }
}
