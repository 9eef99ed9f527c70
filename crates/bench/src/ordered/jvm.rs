//! Engines of a JVM. `bench-vs/jvm` loads one map and then takes a command a line
//! on its standard input, so that its runs interleave with ours.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::job::{Kind, OrderedJob};
use super::map::{OrderedContender, OrderedLoad};
use super::space::{KeyShape, Space, SpaceData};
use crate::Result;
use crate::harness::{Engine, Folder, Outcome, Percentiles, Process, Tally, jvm, number, process};

pub(crate) const JDK_SKIP_LIST: &str = "jdk-skiplist";
pub(crate) const MAPDB: &str = "mapdb-offheap";
pub(crate) const FLAG: &str = "--jvm";
pub(crate) const ENGINES: [&str; 2] = [JDK_SKIP_LIST, MAPDB];

/// Builds the program and answers its engines that are wanted, not yet started.
pub(crate) fn contenders(wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Box<dyn OrderedContender>>> {
    let folder = process::folder("jvm");
    let names: Vec<&str> = ENGINES.into_iter().filter(|name| wanted(name)).collect();
    if !names.is_empty() {
        jvm::build("mvn", &folder, FLAG)?;
    }
    let engine = |name: &str| {
        Box::new(Jvm {
            name: name.to_owned(),
            folder: folder.clone(),
            process: None,
            warm: Vec::new(),
        })
    };
    Ok(names.into_iter().map(|name| engine(name) as Box<dyn OrderedContender>).collect())
}

/// One map in a JVM of its own.
struct Jvm {
    name: String,
    folder: PathBuf,
    process: Option<Process>,
    /// Workloads that were compiled by running once, untimed.
    warm: Vec<(&'static str, usize)>,
}

fn tally(answer: &Value) -> Result<Tally> {
    // Java's sums are signed words of the same bits.
    Ok(Tally { entries: number(answer, "entries")? as u64, sum: number(answer, "sum")? as u64 })
}

fn start(folder: &Path, engine: &str, space: &Space) -> Result<Process> {
    let payload = space.payload_bytes() as u64 + 300;
    // Twice what the loaded half needs, for inserts and for the collector to breathe.
    let heap_mib = 512 + (u64::from(space.range()) * payload) * 3 / 2 / (1 << 20);
    let flags = [
        format!("-Xms{heap_mib}m"),
        format!("-Xmx{heap_mib}m"),
        format!("-XX:MaxDirectMemorySize={heap_mib}m"),
    ];
    let words = ["-jar", "target/bench-vs-jvm.jar", engine].map(str::to_owned);
    jvm::start(folder, flags.into_iter().chain(words), FLAG)
}

impl Jvm {
    fn ask(&mut self, command: &str) -> Result<Value> {
        self.process.as_mut().expect("loaded before it runs").ask(command)
    }

    fn ask_job(&mut self, verb: &str, job: &OrderedJob) -> Result<Value> {
        self.ask(&format!("{verb} {} {} {} {}", job.workload.name, job.threads, job.ops, job.seed))
    }
}

impl Engine<OrderedJob> for Jvm {
    fn name(&self) -> &str {
        &self.name
    }

    fn runs(&self, job: &OrderedJob) -> bool {
        // Its side knows Oak's scenarios.
        match job.workload.kind {
            Kind::Scan(scan) => scan.is_long(),
            Kind::Load { .. } | Kind::Queue(_) | Kind::First => false,
            Kind::GetMany | Kind::UpdateZipf => false,
            _ => true,
        }
    }

    fn run(&mut self, job: &OrderedJob) -> Result<Outcome> {
        if !self.warm.contains(&(job.workload.name, job.threads)) {
            // The first run is the compiler's: its time is not counted.
            self.ask_job("run", job)?;
            self.warm.push((job.workload.name, job.threads));
        }
        let answer = self.ask_job("run", job)?;
        let elapsed = Duration::from_nanos(number(&answer, "elapsed_ns")? as u64);
        Ok(Outcome::of(job.ops * job.threads, elapsed, tally(&answer)?))
    }

    fn latencies(&mut self, job: &OrderedJob) -> Result<Option<Percentiles>> {
        let answer = self.ask_job("latencies", job)?;
        Ok(Some(Percentiles {
            p50: number(&answer, "p50")? as u64,
            p99: number(&answer, "p99")? as u64,
            p999: number(&answer, "p999")? as u64,
            max: number(&answer, "max")? as u64,
        }))
    }
}

impl OrderedContender for Jvm {
    fn load(&mut self, space: &Arc<Space>) -> Result<OrderedLoad> {
        let mut process = start(&self.folder, &self.name, space)?;
        let folder = Folder::new(&std::env::temp_dir(), "listed")?;
        let command = match space.data() {
            SpaceData::Generated { key_bytes, value_bytes, shape } => {
                let shape = match shape {
                    KeyShape::Integer => "integer",
                    KeyShape::Prefix => "prefix",
                    KeyShape::Middle => "middle",
                };
                format!("load-generated {key_bytes} {value_bytes} {shape} {}", space.entries())
            }
            SpaceData::Flights => {
                let path = folder.path().join("listed");
                write_listed(space, &path)?;
                format!("load-listed {}", path.display())
            }
        };
        let answer = process.ask(&command)?;
        self.process = Some(process);
        self.warm.clear();
        Ok(OrderedLoad {
            elapsed: Duration::from_nanos(number(&answer, "elapsed_ns")? as u64),
            // Few entries drown in what the collector has not yet found.
            resident_bytes: u64::try_from(number(&answer, "used_bytes")?).ok(),
            accounted: None,
        })
    }

    fn everything(&mut self) -> Result<Option<Tally>> {
        let answer = self.ask("everything")?;
        tally(&answer).map(Some)
    }
}

/// Writes keys and values to a file: big-endian lengths, then bytes, in key order.
fn write_listed(space: &Space, path: &Path) -> Result {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut buffer = space.key_buffer();
    for number in 0..space.range() {
        for bytes in [space.key(number, &mut buffer), space.value(number)] {
            file.write_all(&(bytes.len() as u32).to_be_bytes())?;
            file.write_all(bytes)?;
        }
    }
    Ok(file.flush()?)
}
