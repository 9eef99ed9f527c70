//! The process that executes statements until it is killed, or done.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use clap::Args;
use sapwood::{Db, Durability};
use sapwood_shim::{Plan, PowerLoss};

use super::model::Model;
use crate::message::Message;
use crate::worker::tell;

/// The arguments of a worker, on its command line.
#[derive(Debug, Clone, Args)]
pub(crate) struct StatementWork {
    /// The folder of the database
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Names the statements of all threads
    #[arg(long)]
    pub(crate) seed: u64,
    /// Statements that each thread has done before
    #[arg(long, value_delimiter = ',')]
    pub(crate) done: Vec<u64>,
    /// Statements of each thread at most
    #[arg(long)]
    pub(crate) statements: u64,
    /// Each statement waits for a sync
    #[arg(long)]
    pub(crate) syncs: bool,
    /// Takes the calls of this process in hand; what is removed and not synced lies here
    #[arg(long)]
    pub(crate) removed: Option<PathBuf>,
    /// A loss of power, such as 7:117:some
    #[arg(long)]
    pub(crate) lose: Option<PowerLoss>,
}

impl StatementWork {
    /// The command line of a worker that does it.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let done: Vec<String> = self.done.iter().map(u64::to_string).collect();
        let mut words = vec![
            "statement-worker".to_owned(),
            format!("--dir={}", self.dir.display()),
            format!("--seed={}", self.seed),
            format!("--done={}", done.join(",")),
            format!("--statements={}", self.statements),
        ];
        words.extend(self.syncs.then(|| "--syncs".to_owned()));
        words.extend(self.removed.as_ref().map(|path| format!("--removed={}", path.display())));
        words.extend(self.lose.map(|loss| format!("--lose={loss}")));
        words
    }
}

/// Does all work and tells of it.
pub(crate) fn run(work: &StatementWork) -> Result<(), String> {
    if let Some(removed) = &work.removed {
        let plan = Plan { failure: None, power_loss: work.lose };
        sapwood_shim::arm(&work.dir, removed, plan).map_err(|cause| cause.to_string())?;
    }
    if let Err(why) = work_on(work) {
        tell(&Message::Refused(why));
    }
    tell(&Message::Ended);
    Ok(())
}

fn work_on(work: &StatementWork) -> Result<(), String> {
    let durability = match work.syncs {
        true => Durability::Sync,
        false => Durability::Interval(Duration::from_millis(1)),
    };
    let db = Db::open_with(&work.dir, super::options().durability(durability));
    let db = db.map_err(|e| e.to_string())?;
    tell(&Message::Opened);
    let at_work = AtomicUsize::new(work.done.len());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..work.done.len())
            .map(|thread| {
                let (db, at_work) = (&db, &at_work);
                scope.spawn(move || {
                    let done = catch_unwind(AssertUnwindSafe(|| work_as(work, db, thread)));
                    // Relaxed: a count; it orders nothing.
                    at_work.fetch_sub(1, Ordering::Relaxed);
                    done.unwrap_or_else(|_| {
                        let what = "a thread panicked; standard error says why";
                        tell(&Message::Wrong(what.to_owned()));
                        Ok(())
                    })
                })
            })
            .collect();
        let mut done = Ok(());
        while at_work.load(Ordering::Relaxed) > 0 && done.is_ok() {
            done = db.checkpoint().map_err(|e| format!("checkpoint: {e}"));
            thread::sleep(Duration::from_millis(work.seed % 11));
        }
        for thread in threads {
            let ended = thread.join().expect("its panic was caught");
            done = done.and(ended);
        }
        done
    })
}

/// The work of a thread.
fn work_as(work: &StatementWork, db: &Db, thread: usize) -> Result<(), String> {
    let mut model = Model::new(work.seed, thread as u64);
    let first = work.done[thread] + 1;
    for _ in 1..first {
        let statement = model.next();
        model.apply(&statement);
    }
    for number in first..first + work.statements {
        let statement = model.next();
        match (db.sql(&statement.text()), statement.fails(&model)) {
            (Ok(_), false) | (Err(_), true) => {}
            (Ok(_), true) => {
                let what = format!("`{}` has no error", statement.text());
                tell(&Message::Wrong(what));
                return Ok(());
            }
            (Err(e), false) => return Err(format!("{}: {e}", statement.text())),
        }
        model.apply(&statement);
        tell(&Message::Step(thread as u64, number));
    }
    Ok(())
}
