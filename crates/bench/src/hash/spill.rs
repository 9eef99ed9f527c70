//! The speed of a store whose data is larger than its memory.
//!
//! FASTER's workloads on keys of 8 bytes and values of 100, of which a quarter fits into the
//! memory budget: reads, blind updates, both, and read-modify-writes, one key a call and in
//! batches. Nothing is synced while a run is timed. Every byte that is read is compared, written
//! values are looked at after each run. The disk's own random reads take their turns in the same
//! rounds, and each rate is set against what they allow at the miss rate that was seen. A run does
//! as many operations as fit into a second, so that a run on a slow disk ends.
//!
//! Engines outside this workspace run the same workloads through [`SpillStore`] and [`run_to`].
//!
//! | module | holds |
//! |---|---|
//! | `store` | the interface of an engine |
//! | `form` | a job on a store, one key a call or many |
//! | `ours` | the hash log as a contender |
//! | `disk_baseline` | the disk's own random reads |
//! | `measure` | the order of measurements |
//! | `report` | figures, printed, and the targets |

mod disk_baseline;
mod form;
mod measure;
mod ours;
mod report;
mod store;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

pub use ours::engines as our_engines;
pub use store::{Engine, Key, Place, SpillStore, VALUE_BYTES, Value};

use super::flags::{RoundFlags, Rounds};
use super::workload::Mix;
use crate::Error;
use crate::command::check_engines;
use crate::sheet::Sheet;

/// The number of keys at which the targets are judged.
const TARGET_KEYS: u32 = 10_000_000;
/// The budget that goes with them: over a quarter of keys and values.
const TARGET_BUDGET: u64 = 300_000_000;
/// Bytes of a key and a value.
const ENTRY_BYTES: u64 = 8 + VALUE_BYTES as u64;

/// Flags of the part whose data is larger than memory.
#[derive(Debug, Clone, clap::Args)]
pub struct SpillFlags {
    /// Keys with values of 100 bytes, where data is larger than memory [default: 10000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..1 << 30))]
    spill_keys: Option<u32>,

    /// Bytes of memory for them [default: a quarter of keys and values, and a tenth]
    #[arg(long, value_name = "BYTES")]
    budget: Option<u64>,

    /// A folder on the disk to measure: a fresh one inside it is used and removed [default: the
    /// system's temporary folder]
    #[arg(long)]
    dir: Option<PathBuf>,

    /// Seconds that a run takes, as many operations as fit; --ops fixes the operations instead
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    run_time: f64,
}

/// The measurements of a run, with every default filled in.
struct Plan {
    keys: u32,
    budget_bytes: u64,
    dir: PathBuf,
    engines: Vec<String>,
    rounds: Rounds,
    /// Operations of each thread that are planned: where each may read the disk, and where none
    /// does.
    ops: [usize; 2],
    /// Whether each store does only as many of them as take about `run_time`.
    paced: bool,
    run_time: Duration,
}

/// Mixes of a full run, in the order of a run; what adds comes last.
const MIXES: [Mix; 4] = Mix::FOUR;

/// Measures the wanted ones of `engines` (all, if none is named) and prints to `out`.
///
/// # Errors
///
/// A flag names what does not exist, the folder cannot be used, our engine answered wrongly, or
/// `out` refuses what is written.
pub fn run_to(
    rounds: &RoundFlags,
    spill: &SpillFlags,
    wanted: &[String],
    engines: &[Engine],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut sheet = rounds.sheet.open(out)?;
    run_on(rounds, spill, wanted, engines, &mut sheet)?;
    sheet.end(|_| Ok(()))
}

/// As [`run_to`], on a sheet on which more may follow.
pub(super) fn run_on(
    rounds: &RoundFlags,
    spill: &SpillFlags,
    wanted: &[String],
    engines: &[Engine],
    sheet: &mut Sheet<'_>,
) -> Result<(), Error> {
    let known: Vec<&str> = engines.iter().map(|engine| engine.name).collect();
    check_engines(wanted, &known)?;
    let keys = spill.spill_keys.unwrap_or(if rounds.smoke { 20_000 } else { TARGET_KEYS });
    let quarter = u64::from(keys) * ENTRY_BYTES * 11 / 40;
    let ops = match (rounds.ops, rounds.smoke) {
        (Some(ops), _) => [ops; 2],
        (None, true) => [200, 1_000],
        (None, false) => [500_000, 2_000_000],
    };
    if !(0.001..=3600.0).contains(&spill.run_time) {
        return Err("--run-time is 0.001 to 3600 seconds".into());
    }
    let run_time = if rounds.smoke { 0.02 } else { spill.run_time };
    let plan = Plan {
        keys,
        budget_bytes: spill.budget.unwrap_or(if keys == TARGET_KEYS {
            TARGET_BUDGET
        } else {
            quarter
        }),
        dir: spill.dir.clone().unwrap_or_else(std::env::temp_dir),
        engines: wanted.to_vec(),
        rounds: rounds.rounds(&MIXES)?,
        ops,
        paced: rounds.ops.is_none() && !rounds.smoke,
        run_time: Duration::from_secs_f64(run_time),
    };
    let figures = measure::measure(&plan, engines)?;
    sheet.print(
        |out| report::print_json(out, &figures),
        |out| report::print_tables(out, &figures),
    )?;
    Ok(())
}
