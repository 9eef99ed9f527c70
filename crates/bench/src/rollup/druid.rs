//! Druid's incremental index, in a JVM that reads the same rows from a file. It takes rows from one
//! thread alone.

use std::time::Duration;

use super::engines::{Folded, Phase, Queried, RollupEngine, RollupJob, SetLoad};
use super::sets::{RowSet, RowSource};
use crate::harness::*;

pub(crate) const DRUID: &str = "druid-onheap";

const FLAG: &str = "--druid";

pub(crate) struct Druid {
    process: Process,
    loaded: Option<(RowSource, usize)>,
    warm: Vec<(Phase, RowSet)>,
}

impl Druid {
    /// Builds the program and starts it, with room for so many rows.
    pub(crate) fn start(rows: usize) -> Result<Druid> {
        let druid = Foreign::java("druid", FLAG);
        druid.build("mvn")?;
        // Rows, their lines and two indexes of a fact a row.
        let heap_mib = 1_024 + rows * 5 / 1_024;
        let words = [
            format!("-Xms{heap_mib}m"),
            format!("-Xmx{heap_mib}m"),
            "-cp".to_owned(),
            "target/bench-vs-druid.jar:target/lib/*".to_owned(),
            "sapwood.benchvs.Main".to_owned(),
        ];
        let process = druid.start("the JVM", "java", &words)?;
        Ok(Druid { process, loaded: None, warm: Vec::new() })
    }
}

impl RollupEngine for Druid {
    fn title(&self) -> &'static str {
        DRUID
    }

    fn takes(&self, job: &RollupJob) -> bool {
        job.threads == 1 && !job.phase.is_question()
    }

    fn begin(&mut self, load: &SetLoad) -> Result<Option<u64>> {
        let wanted = Some((load.set.source, load.stream.count));
        if self.loaded != wanted {
            let folder = Folder::new(&load.folder, "druid")?;
            let file = folder.path().join("rows.json");
            load.stream.write_json(&file)?;
            let shape = load.stream.shape;
            // The file comes last: a path may have spaces.
            let (time, x, y) = (shape.time.name(), shape.x, shape.y);
            let (dimensions, file) = (shape.dimensions.join(","), file.display());
            self.process
                .ask(format_args!("load {time} {} {x} {y} {dimensions} {file}", load.batch))?;
            self.loaded = wanted;
        }
        Ok(None)
    }

    /// The program compares the totals of the facts with those of the rows.
    fn fold(&mut self, load: &SetLoad, phase: Phase, _threads: usize) -> Result<Folded> {
        let command = format!("{} {}", phase.name(), load.set.granule.name());
        if !self.warm.contains(&(phase, load.set)) {
            // The first run is the compiler's: its time is not counted.
            self.process.ask(&command)?;
            self.warm.push((phase, load.set));
        }
        let answer = self.process.ask(&command)?;
        Ok(Folded {
            elapsed: elapsed_of(&answer)?,
            facts: number(&answer, "facts")? as usize,
            bytes: u64::try_from(number(&answer, "bytes")?).ok(),
            trimmed: None,
            all: None,
        })
    }

    fn ask(&mut self, job: &RollupJob, _least: Duration) -> Result<Queried> {
        Err(format!("{DRUID} is not asked {}", job.phase.name()).into())
    }
}
