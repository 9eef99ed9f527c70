//! Druid's incremental index, in a JVM that makes the same stream by itself. It takes rows from one thread
//! alone.

use std::time::Duration;

use super::workload::{Granule, Phase};
use crate::Error;
use crate::jvm::{self, Process, number};

pub(crate) const NAME: &str = "druid-onheap";

/// The flag that asks for it.
const FLAG: &str = "--druid";

/// The index, and what the compiler has seen of it.
pub(crate) struct Druid {
    process: Process,
    warm: Vec<(Phase, Granule)>,
}

/// What came of folding all rows.
pub(crate) struct Folded {
    pub(crate) elapsed: Duration,
    pub(crate) facts: usize,
    /// By which the used heap grew.
    pub(crate) bytes: Option<u64>,
}

impl Druid {
    /// Builds the program and starts it.
    pub(crate) fn start(rows: usize, batch: usize) -> Result<Druid, Error> {
        let folder = jvm::folder("druid");
        jvm::build("mvn", &folder, FLAG)?;
        // Rows, their lines and two indexes of a fact a row.
        let heap_mib = 1_024 + rows * 5 / 1_024;
        let words = [
            format!("-Xms{heap_mib}m"),
            format!("-Xmx{heap_mib}m"),
            "-cp".to_owned(),
            "target/bench-vs-druid.jar:target/lib/*".to_owned(),
            "sapwood.benchvs.Main".to_owned(),
            rows.to_string(),
            batch.to_string(),
        ];
        Ok(Druid { process: Process::start(&folder, words, FLAG)?, warm: Vec::new() })
    }

    /// Folds all rows into an empty index, which compares their totals with those of the rows.
    pub(crate) fn fold(&mut self, phase: Phase, granule: Granule) -> Result<Folded, Error> {
        let command = format!("{} {}", phase.name(), granule.name());
        if !self.warm.contains(&(phase, granule)) {
            // The first run is the compiler's: its time is not counted.
            self.process.ask(&command)?;
            self.warm.push((phase, granule));
        }
        let answer = self.process.ask(&command)?;
        Ok(Folded {
            elapsed: Duration::from_nanos(number(&answer, "elapsed_ns")? as u64),
            facts: number(&answer, "facts")? as usize,
            bytes: u64::try_from(number(&answer, "bytes")?).ok(),
        })
    }
}
