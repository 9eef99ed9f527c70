//! Engines of a JVM. `bench-vs/jvm` loads one map and then takes a command a line
//! on its standard input, so that its runs interleave with ours.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::job::{Kind, OrderedJob};
use super::map::{OrderedContender, OrderedLoad};
use super::space::{Space, SpaceData};
use crate::harness::*;

pub(crate) const JDK_SKIP_LIST: &str = "jdk-skiplist";
pub(crate) const MAPDB: &str = "mapdb-offheap";
pub(crate) const FLAG: &str = "--jvm";
pub(crate) const ENGINES: [&str; 2] = [JDK_SKIP_LIST, MAPDB];

/// Builds the program and answers its engines that are wanted, not yet started.
pub(crate) fn contenders(wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Box<dyn OrderedContender>>> {
    let names: Vec<&str> = ENGINES.into_iter().filter(|name| wanted(name)).collect();
    if !names.is_empty() {
        Foreign::java("jvm", FLAG).build("mvn")?;
    }
    let engine = |name| -> Box<dyn OrderedContender> {
        Box::new(Jvm { name, process: None, warm: Vec::new() })
    };
    Ok(names.into_iter().map(engine).collect())
}

struct Jvm {
    name: &'static str,
    process: Option<Process>,
    /// Workloads that were compiled by running once, untimed.
    warm: Vec<(&'static str, usize)>,
}

fn tally(answer: &Value) -> Result<Tally> {
    // Java's sums are signed words of the same bits.
    Ok(Tally { entries: number(answer, "entries")? as u64, sum: number(answer, "sum")? as u64 })
}

fn start(engine: &str, space: &Space) -> Result<Process> {
    let payload = space.payload_bytes() as u64 + 300;
    // Twice what the loaded half needs, for inserts and for the collector to breathe.
    let heap_mib = 512 + (u64::from(space.range) * payload) * 3 / 2 / (1 << 20);
    let words = [
        format!("-Xms{heap_mib}m"),
        format!("-Xmx{heap_mib}m"),
        format!("-XX:MaxDirectMemorySize={heap_mib}m"),
        "-jar".to_owned(),
        "target/bench-vs-jvm.jar".to_owned(),
        engine.to_owned(),
    ];
    Foreign::java("jvm", FLAG).start("the JVM", "java", &words)
}

impl Jvm {
    fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("loaded before it runs")
    }

    fn ask(&mut self, verb: &str, job: &OrderedJob) -> Result<Value> {
        let OrderedJob { workload, threads, ops, seed, .. } = job;
        self.process().ask(format_args!("{verb} {} {threads} {ops} {seed}", workload.name))
    }
}

impl Engine<OrderedJob> for Jvm {
    fn name(&self) -> &str {
        self.name
    }

    fn runs(&self, job: &OrderedJob) -> bool {
        // Its side knows Oak's scenarios.
        match job.workload.kind {
            Kind::Scan(scan) => scan.is_long(),
            kind => [Kind::Get, Kind::GetCopy, Kind::Mixed, Kind::PutIfAbsentOrUpdate, Kind::Put]
                .contains(&kind),
        }
    }

    fn run(&mut self, job: &OrderedJob) -> Result<Outcome> {
        if !self.warm.contains(&(job.workload.name, job.threads)) {
            // The first run is the compiler's: its time is not counted.
            self.ask("run", job)?;
            self.warm.push((job.workload.name, job.threads));
        }
        let answer = self.ask("run", job)?;
        Ok(Outcome::of(job.ops * job.threads, elapsed_of(&answer)?, tally(&answer)?))
    }

    fn latencies(&mut self, job: &OrderedJob) -> Result<Option<Percentiles>> {
        let answer = self.ask("latencies", job)?;
        let of = |field| number(&answer, field).map(|nanoseconds| nanoseconds as u64);
        Ok(Some([of("p50")?, of("p99")?, of("p999")?, of("max")?]))
    }
}

impl OrderedContender for Jvm {
    fn load(&mut self, space: &Arc<Space>) -> Result<OrderedLoad> {
        let mut process = start(self.name, space)?;
        let folder = Folder::new(&std::env::temp_dir(), "listed")?;
        let command = match space.data {
            SpaceData::Generated { key_bytes, value_bytes, shape } => {
                let (shape, entries) = (shape.name(), space.entries());
                format!("load-generated {key_bytes} {value_bytes} {shape} {entries}")
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
            elapsed: elapsed_of(&answer)?,
            // Few entries drown in what the collector has not yet found.
            resident_bytes: u64::try_from(number(&answer, "used_bytes")?).ok(),
            accounted: None,
        })
    }

    fn everything(&mut self) -> Result<Option<Tally>> {
        let answer = self.process().ask("everything")?;
        tally(&answer).map(Some)
    }
}

/// Writes keys and values to a file: big-endian lengths, then bytes, in key order.
fn write_listed(space: &Space, path: &Path) -> Result {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut buffer = space.key_buffer();
    for number in 0..space.range {
        for bytes in [space.key(number, &mut buffer), space.value(number)] {
            file.write_all(&(bytes.len() as u32).to_be_bytes())?;
            file.write_all(bytes)?;
        }
    }
    Ok(file.flush()?)
}
