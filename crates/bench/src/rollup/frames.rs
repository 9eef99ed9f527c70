//! DuckDB and DataFusion, in a program in Python over the same rows as Arrow batches. They group
//! rows into facts, and are asked for these facts in memory, as they made them, and in Parquet.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use super::engines::{FactPlace, Folded, Phase, Queried, RollupEngine, RollupJob, SetLoad};
use super::sets::{Granule, RowSet};
use super::stream::{TOP, Total};
use crate::harness::*;

pub(crate) const DUCKDB: &str = "duckdb";
pub(crate) const DATAFUSION: &str = "datafusion";
pub(crate) const NAMES: [&str; 2] = [DUCKDB, DATAFUSION];

const FLAG: &str = "--frames";

struct FramesProgram {
    process: Process,
    loaded: Option<(RowSet, usize)>,
    parquet_bytes: Option<u64>,
    folder: Option<Folder>,
}

pub(crate) struct Frame {
    pub(crate) name: &'static str,
    program: Rc<RefCell<FramesProgram>>,
}

/// Makes the environment where there is none, starts the program, and answers its engines.
pub(crate) fn start() -> Result<Vec<Frame>> {
    let process = Foreign::python("frames", FLAG).start_python()?;
    let program = FramesProgram { process, loaded: None, parquet_bytes: None, folder: None };
    let program = Rc::new(RefCell::new(program));
    Ok(NAMES.map(|name| Frame { name, program: Rc::clone(&program) }).into())
}

fn total(answer: &Value) -> Result<Total> {
    Ok(Total {
        groups: number(answer, "groups")? as usize,
        rows: number(answer, "rows")?,
        sum: number(answer, "sum")?,
    })
}

impl FramesProgram {
    /// Reads the rows of a set, and has DuckDB write its facts as Parquet.
    fn load(&mut self, load: &SetLoad) -> Result {
        let wanted = Some((load.set, load.stream.count));
        if self.loaded == wanted {
            return Ok(());
        }
        let folder = Folder::new(&load.folder, &format!("frames-{}", load.set.name()))?;
        let (rows, facts) = (folder.path().join("rows.arrow"), folder.path().join("facts.parquet"));
        load.stream.write_arrow(&rows)?;
        let shape = load.stream.shape;
        let name = |at: usize| shape.dimensions[at];
        let millis = match load.set.granule {
            Granule::All => 0,
            granule => granule.millis(),
        };
        let answer = self.process.ask(json!({
            "do": "load", "rows": rows, "facts": facts, "millis": millis,
            "dimensions": shape.dimensions, "x": shape.x, "y": shape.y,
            "one": name(shape.one), "two": shape.two.map(name), "top": name(shape.top), "first": TOP,
            "filter": [name(shape.filter.0), shape.filter.1],
        }))?;
        self.parquet_bytes = Some(number(&answer, "parquet_bytes")? as u64);
        (self.loaded, self.folder) = (wanted, Some(folder));
        Ok(())
    }
}

impl RollupEngine for Frame {
    fn title(&self) -> &'static str {
        self.name
    }

    fn takes(&self, job: &RollupJob) -> bool {
        job.phase != Phase::Json
    }

    fn begin(&mut self, load: &SetLoad) -> Result<Option<u64>> {
        let mut program = self.program.borrow_mut();
        program.load(load)?;
        // Both read the file that DuckDB has written.
        Ok(program.parquet_bytes.filter(|_| self.name == DUCKDB && load.files))
    }

    fn fold(&mut self, _load: &SetLoad, _phase: Phase, threads: usize) -> Result<Folded> {
        let command = json!({ "do": "fold", "engine": self.name, "threads": threads });
        let answer = self.program.borrow_mut().process.ask(command)?;
        let all = total(&answer)?;
        Ok(Folded {
            elapsed: elapsed_of(&answer)?,
            facts: all.groups,
            bytes: None,
            trimmed: None,
            all: Some(all),
        })
    }

    fn ask(&mut self, job: &RollupJob, least: Duration) -> Result<Queried> {
        let answer = self.program.borrow_mut().process.ask(json!({
            "do": "ask", "engine": self.name, "threads": job.threads,
            "question": job.phase.name(), "live": job.place == FactPlace::Live,
            "least_ns": least.as_nanos() as u64,
        }))?;
        let times = number(&answer, "times")? as usize;
        Ok(Queried { times, elapsed: elapsed_of(&answer)?, answer: total(&answer)? })
    }
}
