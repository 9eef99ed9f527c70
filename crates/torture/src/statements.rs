//! Chains of workers that execute SQL statements and are killed, or lose power, within one: after
//! each, every statement that was acknowledged is there, and the next one whole or not at all. Some
//! directories are moved away or copied while a worker has them open.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::RngExt as _;
use sapwood::sql::Outcome as Executed;
use sapwood::{Db, DbOptions};
use sapwood_shim::{Fate, PowerLoss, Since};
use sapwood_testkit::Rng;

use crate::message::Message;
use crate::report::Outcome;
use crate::runs::{DatabaseFolder, Kill, Run, copy, watched};
use model::{LINES, Model, Table, is_without_trees};
pub(crate) use worker::StatementWork;

mod model;
pub(crate) mod worker;

const THREADS: u64 = 2;
/// Statements of each thread of a worker that comes to its end.
const WORKER_STATEMENTS: u64 = 60;
/// Calls of a worker that change something, or nearly so many.
const CHANGES: u64 = 700;

/// A chain: all of it follows from the seed, but for the moment of a kill and for the order in
/// which threads get on.
#[derive(Debug, Clone)]
pub(crate) struct StatementChain {
    pub(crate) seed: u64,
    pub(crate) links: u64,
    pub(crate) within: Option<PathBuf>,
}

impl StatementChain {
    pub(crate) fn run(&self) -> Outcome {
        let repeat =
            || format!("statements --seed {} --chains 1 --links {}", self.seed, self.links);
        Outcome::of(self.within.as_deref(), repeat, |place, outcome| {
            let (oracle, rng) = (Oracle::new(self.seed), sapwood_testkit::rng(self.seed));
            let mut torture = Torture { place, oracle, rng, outcome };
            (0..self.links)
                .try_for_each(|link| torture.link().map_err(|what| format!("link {link}: {what}")))
        })
    }
}

/// A database between two links of its chain.
struct Torture<'a> {
    place: &'a DatabaseFolder,
    oracle: Oracle,
    rng: Rng,
    outcome: &'a mut Outcome,
}

impl Torture<'_> {
    /// A worker and its end, and a look at what it left.
    fn link(&mut self) -> Result<(), String> {
        match self.rng.random_range(0..6) {
            0 | 1 if is_without_trees(self.oracle.seed) => self.lose()?,
            2 => self.move_away()?,
            3 => self.copy()?,
            _ => self.kill()?,
        }
        self.oracle.look(&self.place.database, &mut self.rng, self.outcome)
    }

    /// A worker that is killed at any moment.
    fn kill(&mut self) -> Result<(), String> {
        let work = self.oracle.work(self.place, self.rng.random());
        let kill = Some(kill(&mut self.rng));
        let run = Run::of_line(&work.arguments(), &[], kill, || Ok(()))?;
        self.oracle.hear(&run)?;
        self.outcome.add("kills", u64::from(run.was_killed()));
        Ok(())
    }

    /// A worker that loses power: bytes and names that were not synced are taken back.
    fn lose(&mut self) -> Result<(), String> {
        self.place.clear_removed()?;
        let rng = &mut self.rng;
        let fate = [Fate::Lost, Fate::Some, Fate::Kept][rng.random_range(0..3)];
        let nth = rng.random_range(1..=CHANGES);
        let loss = PowerLoss { seed: rng.random(), nth, since: Since::Armed, fate };
        let mut work = self.oracle.work(self.place, true);
        (work.removed, work.lose) = (Some(self.place.removed.clone()), Some(loss));
        let run = Run::of_line(&work.arguments(), &[], None, || Ok(()))?;
        self.oracle.hear(&run)?;
        self.outcome.add("losses of power", u64::from(run.was_killed()));
        Ok(())
    }

    /// A worker whose directory is moved while it works, and another one that makes a database at
    /// the old path: each database has the statements of its own worker, and no others.
    fn move_away(&mut self) -> Result<(), String> {
        let database = &self.place.database;
        let moved = database.with_file_name("moved");
        let mut other = Oracle::new(self.rng.random());
        let (mut first_kill, second_kill) = (kill(&mut self.rng), kill(&mut self.rng));
        // The directory is open by then: a worker that opens it meanwhile takes the lock of the new
        // one for a moment.
        first_kill.lines = first_kill.lines.max(1);
        let work = self.oracle.work(self.place, false);
        let run = Run::of_line(&work.arguments(), &[], Some(first_kill), || {
            let unmoved = |e| format!("cannot move the directory: {e}");
            fs::rename(database, &moved).map_err(unmoved)?;
            fs::create_dir(database).map_err(unmoved)?;
            let work = other.work(self.place, false);
            let run = Run::of_line(&work.arguments(), &[], Some(second_kill), || Ok(()))?;
            other.hear(&run)
        })?;
        self.oracle.hear_refusals(&run)?;
        self.outcome.add("directories moved while open", 1);
        self.outcome.add("workers that noticed it", u64::from(run.count(is_refusal) > 0));
        let looked = other.look(database, &mut self.rng, self.outcome);
        looked.map_err(|what| format!("at the old path: {what}"))?;
        fs::remove_dir_all(database)
            .and_then(|()| fs::rename(&moved, database))
            .map_err(|e| format!("cannot move the directory back: {e}"))
    }

    /// A worker whose directory is copied while it works: the copy opens or is refused, and the
    /// directory is as it would be without.
    fn copy(&mut self) -> Result<(), String> {
        let database = &self.place.database;
        let copied = database.with_file_name("copied");
        let work = self.oracle.work(self.place, false);
        let kill = Some(kill(&mut self.rng));
        let run = Run::of_line(&work.arguments(), &[], kill, || {
            // Files go while it is copied.
            let _ = copy(database, &copied);
            Ok(())
        })?;
        self.oracle.hear(&run)?;
        let opened = watched(&copied, || Ok(Db::open(&copied).is_ok()))?;
        self.outcome.add("directories copied while open", 1);
        self.outcome.add("copies that opened", u64::from(opened));
        let cleared = if copied.exists() { fs::remove_dir_all(&copied) } else { Ok(()) };
        cleared.map_err(|e| format!("cannot remove the copy: {e}"))
    }
}

fn is_refusal(message: &Message) -> bool {
    matches!(message, Message::Refused(_))
}

/// By lines: at some point of the work. By time: anywhere, and while the database opens.
fn kill(rng: &mut Rng) -> Kill {
    let (lines, delay_max) = match rng.random_range(0..4) {
        0 => (0, 40_000),
        _ => (rng.random_range(0..(THREADS * WORKER_STATEMENTS) as usize), 10_000),
    };
    Kill { lines, delay: Duration::from_micros(rng.random_range(0..delay_max)) }
}

/// The contents of a database, by the statements that were acknowledged.
struct Oracle {
    seed: u64,
    threads: Vec<Acknowledged>,
}

/// The tables of one thread, after `done` statements.
struct Acknowledged {
    done: u64,
    model: Model,
}

/// The manner of opening a database to compare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    ReadOnly,
    /// To go on, and drop.
    Open,
    /// To go on, and close with a checkpoint.
    Close,
}

impl Oracle {
    fn new(seed: u64) -> Oracle {
        let thread = |thread| Acknowledged { done: 0, model: Model::new(seed, thread) };
        Oracle { seed, threads: (0..THREADS).map(thread).collect() }
    }

    /// A worker that goes on behind the statements so far.
    fn work(&self, place: &DatabaseFolder, syncs: bool) -> StatementWork {
        StatementWork {
            dir: place.database.clone(),
            seed: self.seed,
            done: self.threads.iter().map(|thread| thread.done).collect(),
            statements: WORKER_STATEMENTS,
            syncs,
            removed: None,
            lose: None,
        }
    }

    /// Takes what a worker acknowledged, which nothing refused.
    fn hear(&mut self, run: &Run) -> Result<(), String> {
        self.hear_refusals(run)?;
        match run.messages.iter().find(|message| is_refusal(message)) {
            Some(refused) => Err(format!("nothing has failed, and yet: {refused}")),
            None => Ok(()),
        }
    }

    fn hear_refusals(&mut self, run: &Run) -> Result<(), String> {
        run.expect_ended()?;
        for message in &run.messages {
            match message {
                Message::Wrong(what) => return Err(what.clone()),
                Message::Step(thread, step) => {
                    let thread = self.threads.get_mut(*thread as usize);
                    let thread = thread.ok_or("a thread of no number")?;
                    if *step != thread.done + 1 {
                        return Err(format!("statement {step} follows {}", thread.done));
                    }
                    thread.go_on();
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn look(&mut self, path: &Path, rng: &mut Rng, outcome: &mut Outcome) -> Result<(), String> {
        let way = [Way::ReadOnly, Way::Open, Way::Close][rng.random_range(0..3)];
        watched(path, || self.compare(path, way, outcome))
            .map_err(|what| format!("{way:?}: {what}"))
    }

    fn compare(&mut self, path: &Path, way: Way, outcome: &mut Outcome) -> Result<(), String> {
        let nothing_told = self.threads.iter().all(|thread| thread.done == 0);
        if nothing_told && fs::read_dir(path).is_ok_and(|mut files| files.next().is_none()) {
            return Ok(());
        }
        let db = match way {
            Way::ReadOnly => match Db::open_read_only(path) {
                Err(_) if nothing_told => return Ok(()),
                db => db,
            },
            Way::Open | Way::Close => Db::open_with(path, options()),
        };
        let db = db.map_err(|e| e.to_string())?;
        for thread in &mut self.threads {
            let found = thread.model.read(&db)?;
            if found.tables != thread.model.tables {
                let before = thread.model.difference(&found);
                let next = thread.model.next();
                thread.go_on();
                if found.tables != thread.model.tables {
                    let after = thread.model.difference(&found);
                    return Err(format!(
                        "`{}` is there in part: without it {before}, with it {after}",
                        next.text()
                    ));
                }
                outcome.add("statements there before they were acknowledged", 1);
            }
            outcome.add("tables compared", found.tables.len() as u64);
            let batches: usize = found.tables.values().map(|table| table.batches.len()).sum();
            outcome.add("rows compared", batches as u64 * LINES);
        }
        if way == Way::Close {
            db.close().map_err(|e| e.to_string())?;
        } else {
            drop(db);
        }
        let check = Db::check(path).map_err(|e| e.to_string())?;
        match check.problems.first() {
            None => Ok(()),
            Some(problem) => Err(format!("check: {problem}")),
        }
    }
}

impl Acknowledged {
    fn go_on(&mut self) {
        let next = self.model.next();
        self.model.apply(&next);
        self.done += 1;
    }
}

/// Short in memory, with frequent checkpoints.
fn options() -> DbOptions {
    DbOptions::default().checkpoint_bytes(256 << 10)
}

impl Model {
    /// The tables of this thread as the database has them.
    fn read(&self, db: &Db) -> Result<Model, String> {
        let mut found = Model::new(self.seed, self.thread);
        for name in db.table_names() {
            if !self.owns(&name) {
                continue;
            }
            let rows = db.sql(&format!("select * from {name} order by batch, line"));
            let Executed::Rows(rows) = rows.map_err(|e| format!("table {name}: {e}"))? else {
                return Err(format!("table {name}: a select without rows"));
            };
            let whole = |row: usize, column: usize| -> Result<i64, String> {
                match rows.value(row, column).map_err(|e| e.to_string())? {
                    sapwood::schema::Value::Int(number) => Ok(number as i64),
                    other => Err(format!("table {name}, row {row}: {other:?} is no whole number")),
                }
            };
            let mut table = Table { added: rows.columns().len() - 3, ..Table::default() };
            for row in 0..rows.len() {
                let (batch, line, v) = (whole(row, 0)?, whole(row, 1)?, whole(row, 2)?);
                let expected = row as i64 % LINES as i64;
                if line != expected {
                    return Err(format!(
                        "table {name}: batch {batch} has line {line} in place of {expected}"
                    ));
                }
                match table.batches.insert(batch, v) {
                    Some(other) if line == 0 => {
                        return Err(format!(
                            "table {name}: batch {batch} is there twice, with {other} and {v}"
                        ));
                    }
                    Some(other) if other != v => {
                        return Err(format!(
                            "table {name}: lines of batch {batch} have {other} and {v}: a statement is there in part"
                        ));
                    }
                    _ => {}
                }
            }
            if !rows.len().is_multiple_of(LINES as usize) {
                return Err(format!(
                    "table {name} has {} rows: a statement is there in part",
                    rows.len()
                ));
            }
            found.tables.insert(name, table);
        }
        Ok(found)
    }
}
