//! The speed and size of the ordered engine beside its peers.
//!
//! Oak's evaluation: half of a range of keys is loaded in random order by one thread with
//! put_if_absent, then every workload runs on 1 to all cores. In each round the engines take turns,
//! with the same planned operations; after each run, untimed, written values are checked and the
//! map is put back, so that every run finds the same half of the range. Every byte that a
//! workload reads is summed, and sums are compared with what the keys and values must give.

mod engines;
mod floor;
mod job;
mod jvm;
mod map;
mod space;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

pub use space::KeyShape;

use crate::harness::*;
use engines::{BTREE, ENGINES, SAPWOOD, SKIP_LIST};
use floor::FLOOR;
use job::{Kind, NAMES, OrderedJob, OrderedWorkload, ScanForm};
use jvm::JDK_SKIP_LIST;
use map::OrderedContender;
use space::{Space, SpaceData};

const TARGET_ENTRIES: usize = 1_000_000;
const LEAST_MS_FULL: u64 = 500;
/// The factor by which a run is made longer, at most.
const LONGER_MOST: f64 = 1e3;

pub(crate) const BENCH: Bench = Bench {
    name: "ordered",
    workloads: &NAMES,
    extra: &[],
    engines: &[
        SAPWOOD,
        SKIP_LIST,
        BTREE,
        "masstree",
        "scc::TreeIndex",
        FLOOR,
        JDK_SKIP_LIST,
        jvm::MAPDB,
    ],
    entries: [&[2_000], &[200_000], &[TARGET_ENTRIES]],
    entries_range: [2, 1_000_000_000],
    runs: [2, 5, 5],
    threads: &[],
};

const OURS: &[&str] = &[SAPWOOD];
const JDK: &[&str] = &[JDK_SKIP_LIST];
const IN_JVM: &[&str] = &["put*", "get-*", "scan-*"];
const UP: &str = "scan-ascending-stream";
const DOWN: &str = "scan-descending-stream";

const fn target(
    peer: &'static [&'static str],
    workloads: &'static [&'static str],
    least: f64,
) -> Target {
    Target::rate(OURS, workloads, least, peer)
}

const fn beside(
    workloads: &'static [&'static str],
    least: f64,
    engine: &'static str,
    workload: &'static str,
) -> Target {
    target(&[], workloads, least).against(Against::Sample(engine, workload, 0))
}

/// Targets on keys and values of Oak's evaluation.
const TARGETS: Targets = Targets {
    judged: TARGET_ENTRIES..=usize::MAX,
    size_unit: "entries",
    hint: "pass --full to judge them",
    rows: &[
        target(&[SKIP_LIST], &["put"], 5.0),
        target(&[SKIP_LIST], &["put-if-absent-or-update"], 4.5),
        target(&[SKIP_LIST], &["get-zero-copy"], 4.0),
        target(&[SKIP_LIST], &["get-95-put-5"], 3.0),
        target(&[SKIP_LIST], &[UP], 9.0),
        target(&[SKIP_LIST], &[DOWN], 7.0),
        target(&[SKIP_LIST], &["scan-ascending-keys", "scan-descending-keys"], 15.0),
        target(&[SKIP_LIST], &["load-ascending"], 1.0),
        target(&[BTREE], &["put"], 1.4),
        target(&[BTREE], &["get-zero-copy"], 2.0),
        target(&[BTREE], &[UP], 6.0),
        target(&[BTREE], &["scan-1"], 0.8),
        target(&[BTREE], &["scan-10"], 1.0),
        target(&[BTREE], &["scan-100"], 1.5),
        target(&[BTREE], &["fifo"], 0.5),
        target(JDK, IN_JVM, 5.0),
        // Others have no call for many keys.
        beside(&["get-many"], 0.55, FLOOR, "get-zero-copy"),
        target(&[FLOOR], &[UP], 0.6),
        // Memory is read down much more slowly than up: the floor of both is that of reading up.
        beside(&[DOWN], 0.6, FLOOR, UP),
        beside(&[DOWN], 0.85, "", UP),
        target(&[], &["first"], 1.0).on(&[1]).against(Against::Time(60.0)),
        overhead(&["ingest"], &OPERATIONS, "resident_bytes_per_entry"),
        overhead(&["ingest"], &OPERATIONS, "accounted_bytes_per_entry"),
        overhead(&["settling-scans"], &SETTLING_SCANS, "accounted_bytes_per_entry"),
    ],
};

const fn overhead(
    workloads: &'static [&'static str],
    unit: &'static Unit,
    bytes: &'static str,
) -> Target {
    let over_payload = Against::Fields(bytes, "payload_bytes_per_entry");
    Target::most(OURS, workloads, unit, 1.04, over_payload)
}

/// Targets on keys and values of 8 bytes.
const TARGETS_SMALL: Targets = Targets {
    judged: TARGETS.judged,
    size_unit: "entries",
    hint: TARGETS.hint,
    rows: &[
        target(&[BTREE], &[UP, DOWN], 2.0),
        target(&[], &[UP, DOWN, "put"], 1.8).on(&[2]).against(Against::Sample("", "", 1)),
    ],
};

/// Targets on keys that are equal in their middle.
const TARGETS_MIDDLE: Targets = Targets {
    judged: TARGETS.judged,
    size_unit: "entries",
    hint: TARGETS.hint,
    rows: &[target(&[BTREE], &["get-zero-copy"], 1.0)],
};

/// Flags of `sapwood-bench ordered`.
#[derive(Debug, Clone, clap::Args)]
pub struct OrderedArgs {
    #[command(flatten)]
    flags: Flags,

    /// Leave out the pass that times single calls
    #[arg(long)]
    no_latencies: bool,

    /// Keys and values [default: generated; all in a smoke run and a full one]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "DATA")]
    data: Vec<DataChoice>,

    /// Bytes of a generated key
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    key_bytes: usize,

    /// Bytes of a generated value
    #[arg(long, default_value_t = 1000, value_name = "BYTES")]
    value_bytes: usize,

    /// The place of the number in a generated key
    #[arg(long, value_enum, default_value_t = KeyShape::Integer)]
    key_shape: KeyShape,

    /// Long scans of each thread in a run [default: 100]; scans of keys alone run 5 times as many
    #[arg(long)]
    scans: Option<usize>,

    /// Run the JVM's maps beside ours: needs a JDK 17 or later and Maven
    #[arg(long)]
    jvm: bool,

    /// Least time of a run of the first engine: more operations are planned where fewer are done
    /// earlier [default: 0; 500 with --full]
    #[arg(long, value_name = "MS")]
    least_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DataChoice {
    /// Generated keys and values of --key-bytes and --value-bytes
    Generated,
    /// Generated keys and values of 8 bytes each
    Small,
    /// Half of the 336,776 flights that left New York in 2013
    Flights,
    /// Generated keys that are equal for 72 bytes in their middle, and values of 100 bytes
    Middle,
    /// Generated keys of 1 KB that are equal but for 8 bytes in front and the last one, and values
    /// of 100 bytes
    Long,
}

impl OrderedArgs {
    fn data(&self, choice: DataChoice) -> SpaceData {
        let (key_bytes, value_bytes, shape) = match choice {
            DataChoice::Flights => return SpaceData::Flights,
            DataChoice::Generated => (self.key_bytes, self.value_bytes, self.key_shape),
            DataChoice::Small => (8, 8, KeyShape::Integer),
            DataChoice::Middle => (8 + 72 + 1, 100, KeyShape::Middle),
            DataChoice::Long => (1024, 100, KeyShape::Middle),
        };
        SpaceData::Generated { key_bytes, value_bytes, shape }
    }

    fn targets(&self, data: SpaceData) -> &'static [&'static Targets] {
        let is = |choice| data == self.data(choice);
        match data {
            SpaceData::Generated {
                key_bytes: 100,
                value_bytes: 1000,
                shape: KeyShape::Integer,
            } => &[&TARGETS],
            _ if is(DataChoice::Small) => &[&TARGETS_SMALL],
            _ if is(DataChoice::Middle) => &[&TARGETS_MIDDLE],
            _ => &[],
        }
    }
}

/// Measures and prints to `out`; progress goes to standard error.
pub fn run_to(args: &OrderedArgs, out: &mut dyn Write) -> Result {
    let plan = args.flags.plan(&BENCH, &[])?;
    args.flags.check_flag(&jvm::ENGINES, args.jvm, "runs in a JVM", jvm::FLAG)?;
    let mut sheet = args.flags.open(out)?;
    let usual = match plan.mode {
        Mode::Usual => &[DataChoice::Generated],
        _ => DataChoice::value_variants(),
    };
    for (place, choice) in or(&args.data, usual).into_iter().enumerate() {
        let data = args.data(choice);
        let space = Arc::new(Space::new(data, plan.size())?);
        let engines = contenders(args, &plan, &space)?;
        // Freed memory at hand hides the growth of engines on the heap.
        let is_fresh = place == 0;
        let report = OrderedCourse::new(args, &plan, &space, engines).run(is_fresh)?;
        sheet.print(&report, args.targets(data))?;
    }
    sheet.end()
}

fn contenders(
    args: &OrderedArgs,
    plan: &Plan,
    space: &Space,
) -> Result<Vec<Box<dyn OrderedContender>>> {
    let wanted = ENGINES.iter().filter(|(name, _)| plan.takes(name));
    let mut engines: Vec<Box<dyn OrderedContender>> = wanted.map(|(_, make)| make()).collect();
    if plan.takes(FLOOR) && matches!(space.data, SpaceData::Generated { .. }) {
        engines.push(Box::new(floor::OrderedFloor::default()));
    }
    if args.jvm {
        engines.extend(jvm::contenders(&|name| plan.takes(name))?);
    }
    Ok(engines)
}

/// One course of measurement: loads one after the other, then for each thread count and workload
/// rounds in which engines take turns, then latencies, then a full scan as a last check.
struct OrderedCourse<'a> {
    args: &'a OrderedArgs,
    plan: &'a Plan,
    space: &'a Arc<Space>,
    engines: Vec<Box<dyn OrderedContender>>,
    report: Report,
}

impl<'a> OrderedCourse<'a> {
    fn new(
        args: &'a OrderedArgs,
        plan: &'a Plan,
        space: &'a Arc<Space>,
        mut engines: Vec<Box<dyn OrderedContender>>,
    ) -> OrderedCourse<'a> {
        let (data, payload) = (space.data, space.payload_bytes());
        let mut report = Report::new("ordered", space.entries(), data.name(), OURS);
        report.title = format!(
            ", {payload:.0} bytes of payload each; long scans of {} entries",
            space.scan_entries(usize::MAX).min(10_000)
        );
        engines.retain(|engine| {
            let SpaceData::Generated { key_bytes, .. } = data else { return true };
            let most = engine.key_bytes_max();
            if key_bytes > most {
                let name = engine.name();
                report.leave_out(format!("{name} takes keys of at most {most} bytes"));
            }
            key_bytes <= most
        });
        OrderedCourse { args, plan, space, engines, report }
    }

    fn run(mut self, is_fresh: bool) -> Result<Report> {
        self.load(is_fresh)?;
        self.check_everything()?;
        let workloads: Vec<OrderedWorkload> =
            self.plan.workloads.iter().filter_map(|name| OrderedWorkload::named(name)).collect();
        let mut is_settled = false;
        for &threads in &self.plan.threads {
            for &workload in &workloads {
                let is_scan = matches!(workload.kind, Kind::Scan(_));
                if is_scan && !std::mem::replace(&mut is_settled, true) {
                    self.settle();
                }
                let ops = self.lengthened_ops(workload, threads)?;
                let (space, runs, job) = (self.space, self.plan.runs, self.job(workload, threads));
                rounds(&mut self.engines, &mut self.report, runs, |round| {
                    let job = OrderedJob { ops, ..job(round) };
                    OrderedJob { expected: space.expected(&job), ..job }
                })?;
            }
        }
        if !self.args.no_latencies {
            for &threads in &self.plan.threads {
                for &workload in &workloads {
                    let job = self.job(workload, threads)(self.plan.runs);
                    latencies(&mut self.engines, &mut self.report, &job)?;
                }
            }
        }
        self.check_everything()?;
        Ok(self.report)
    }

    fn load(&mut self, is_fresh: bool) -> Result {
        let (entries, payload) = (self.space.entries(), self.space.payload_bytes());
        if is_fresh {
            self.report.progress.set_message("touching memory");
            touch(self.space.bytes_needed() * self.engines.len());
        }
        for engine in &mut self.engines {
            self.report.progress.set_message(format!("{}: loading", engine.name()));
            let load = engine.load(self.space)?;
            let resident = load.resident_bytes.filter(|_| is_fresh || engine.maps_its_memory());
            let per_entry = |bytes: u64| bytes as f64 / entries as f64;
            let accounted = load.accounted;
            let used = accounted.map(|accounted| per_entry(accounted.used_bytes));
            let mut more = json!({
                "payload_bytes_per_entry": payload,
                "resident_bytes_per_entry": resident.map(per_entry),
            });
            if let Some(accounted) = accounted {
                more["accounted_bytes_per_entry"] = json!(used);
                more["overhead_bytes"] = json!(accounted.overhead_bytes);
                more["free_bytes"] = json!(accounted.free_bytes);
                more["pages"] = json!(accounted.pages);
            }
            let name = engine.name().to_owned();
            let rate = Figure::rate(entries, load.elapsed).with(more);
            self.report.note("ingest", 1, &name, &OPERATIONS, rate);
            if let Some(bytes) = resident.map(per_entry).or(used) {
                self.report.bytes_per_entry.insert(name, bytes);
            }
        }
        Ok(())
    }

    fn settle(&mut self) {
        let entries = self.space.entries() as f64;
        for engine in &mut self.engines {
            self.report
                .progress
                .set_message(format!("{}: scanning until nothing moves", engine.name()));
            let Some(settled) = engine.settle() else { continue };
            let figure = Figure::new(settled.scans as f64).with(json!({
                "payload_bytes_per_entry": self.space.payload_bytes(),
                "moved_bytes_per_entry": settled.moved_bytes as f64 / entries,
                "accounted_bytes_per_entry": settled.used_bytes as f64 / entries,
            }));
            self.report.note("settling-scans", 1, engine.name(), &SETTLING_SCANS, figure);
        }
    }

    fn job(
        &self,
        workload: OrderedWorkload,
        threads: usize,
    ) -> impl Fn(usize) -> OrderedJob + use<> {
        let entries = self.space.entries();
        let scans = self.args.scans.unwrap_or(self.plan.mode.pick(3, 100, 100)).max(1);
        let ops = match workload.kind {
            Kind::Load { .. } => entries.div_ceil(threads),
            // Keys alone are read so fast that as many scans are too short to time.
            Kind::Scan(scan) if scan.is_long() && scan.form == ScanForm::Keys => scans * 5,
            Kind::Scan(scan) if scan.is_long() => scans,
            _ => self.args.flags.ops.unwrap_or(self.plan.size() / 4).max(1),
        };
        move |round| OrderedJob::new(workload, threads, ops, round)
    }

    /// Operations of each thread with which a run of the first engine is long enough.
    fn lengthened_ops(&mut self, workload: OrderedWorkload, threads: usize) -> Result<usize> {
        let job = self.job(workload, threads)(self.plan.runs + 1);
        let least = self.args.least_ms.unwrap_or(self.plan.mode.pick(0, 0, LEAST_MS_FULL));
        let first = self.engines.iter_mut().find(|engine| engine.runs(&job));
        let Some(first) = first.filter(|_| least > 0 && !workload.kind.loads()) else {
            return Ok(job.ops);
        };
        let rate = first.run(&job)?.figures[0].amount;
        let took = Duration::from_secs_f64((job.ops * threads) as f64 / rate);
        Ok(lengthened(job.ops, took, Duration::from_millis(least)))
    }

    fn check_everything(&mut self) -> Result {
        let expected = self.space.everything();
        for engine in &mut self.engines {
            let found = engine.everything()?;
            if let Some(found) = found.filter(|found| *found != expected) {
                bail!(
                    "{} holds {found}, not {expected}: a bug in it or in its adapter; leave it \
                     out with --engines",
                    engine.name()
                );
            }
        }
        Ok(())
    }
}

fn lengthened(ops: usize, took: Duration, least: Duration) -> usize {
    let times = least.as_secs_f64() / took.max(Duration::from_micros(1)).as_secs_f64();
    (ops as f64 * times.clamp(1.0, LONGER_MOST)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_lengthened_within_bounds() {
        let [none, short, least] = [0, 50, 500].map(Duration::from_millis);
        assert_eq!(lengthened(100, short, least), 1_000);
        assert_eq!(lengthened(100, least, short), 100, "never shortened");
        assert_eq!(lengthened(100, none, least), 100_000);
    }
}
