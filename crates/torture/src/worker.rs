//! The process that is tortured: it opens a database and works on its tables, telling what it does,
//! until it is done or is ended from outside or by its own calls.
//!
//! Each thread compares every answer with what its model says. So wrong answers of a living process
//! are told by the worker; what lasts is judged by the process that started it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use clap::Args;
use sapwood::{Cut, Db, DbOptions, DiskReads, Error, HashTable};
use sapwood_shim::{Failure, Plan, PowerLoss};

use crate::message::Message;
use crate::stream::{Answer, Contents, Op, Stream};
use crate::tables::{self, Compactor};

/// How often an operation is tried that fails while calls do.
const TRIES: usize = 3;
/// Operations of a thread on a table between two checkpoints.
const ROUND: u64 = 24;

/// The arguments of a worker, on its command line.
#[derive(Debug, Clone, Args)]
pub(crate) struct Work {
    /// The folder of the database
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Names the operations of all tables
    #[arg(long)]
    pub(crate) seed: u64,
    /// How many threads change the lasting tables
    #[arg(long, default_value_t = 2)]
    pub(crate) threads: u64,
    /// How many checkpoints each table gets
    #[arg(long, default_value_t = 6)]
    pub(crate) rounds: u64,
    /// One thread does all, one thing after the other: every run makes the same calls
    #[arg(long)]
    pub(crate) in_order: bool,
    /// Takes the calls of this process in hand; what is removed and not synced lies here
    #[arg(long)]
    pub(crate) removed: Option<PathBuf>,
    /// A call that fails, such as fsync:37:EIO:once
    #[arg(long)]
    pub(crate) fail: Option<Failure>,
    /// A loss of power, such as 7:117:some
    #[arg(long)]
    pub(crate) lose: Option<PowerLoss>,
    /// The disk may be full: operations may be refused
    #[arg(long)]
    pub(crate) full: bool,
    /// Changes are not logged: checkpoints are all that lasts
    #[arg(long)]
    pub(crate) unlogged: bool,
}

impl Work {
    /// As arguments of the program.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut words = vec!["worker".to_owned()];
        let mut say = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                words.extend([format!("--{name}"), value]);
            }
        };
        let path = |path: &PathBuf| path.display().to_string();
        say("dir", Some(path(&self.dir)));
        say("seed", Some(self.seed.to_string()));
        say("threads", Some(self.threads.to_string()));
        say("rounds", Some(self.rounds.to_string()));
        say("removed", self.removed.as_ref().map(path));
        say("fail", self.fail.map(|failure| failure.to_string()));
        say("lose", self.lose.map(|loss| loss.to_string()));
        words.extend(self.in_order.then(|| "--in-order".to_owned()));
        words.extend(self.full.then(|| "--full".to_owned()));
        words.extend(self.unlogged.then(|| "--unlogged".to_owned()));
        words
    }
}

/// Why a worker stops early.
enum Stop {
    /// Something was refused, as it may be when calls fail.
    Refused(String),
    /// The database did something wrong.
    Wrong(String),
}

type WorkerResult<T = ()> = Result<T, Stop>;

/// Does all work and tells of it.
pub(crate) fn run(work: &Work) -> Result<(), String> {
    if let Some(removed) = &work.removed {
        let plan = Plan { failure: work.fail, power_loss: work.lose };
        sapwood_shim::arm(&work.dir, removed, plan).map_err(|cause| cause.to_string())?;
    }
    match (Worker { work }).run() {
        Ok(()) => {}
        Err(Stop::Refused(why)) => tell(&Message::Refused(why)),
        Err(Stop::Wrong(what)) => tell(&Message::Wrong(what)),
    }
    if work.removed.is_some() {
        tell(&Message::Calls(sapwood_shim::counts().to_vec()));
    }
    tell(&Message::Ended);
    Ok(())
}

pub(crate) fn tell(message: &Message) {
    let mut out = std::io::stdout().lock();
    // The other end reads until it ends this process.
    let _ = writeln!(out, "{message}").and_then(|()| out.flush());
}

struct Worker<'a> {
    work: &'a Work,
}

/// An open table and how far its threads are.
struct Open {
    table: HashTable,
    done: Vec<AtomicU64>,
}

/// A thread's work on one table.
struct Desk<'a> {
    open: &'a Open,
    stream: Stream,
    contents: Contents,
    /// The operation that comes next.
    position: u64,
    /// An operation was refused for good, and perhaps done in part: none comes after it.
    stopped: bool,
}

impl Worker<'_> {
    /// The meaning of an error: with failing calls it may be, else it may not.
    fn allowed(&self, what: &str, error: &Error) -> Stop {
        let text = format!("{what}: {error}");
        if self.work.full || sapwood_shim::has_failed() {
            Stop::Refused(text)
        } else {
            Stop::Wrong(format!("nothing has failed, and yet {text}"))
        }
    }

    fn run(&self) -> WorkerResult {
        // The shim sees the calls of threads, and none of io_uring.
        let mut options = DbOptions::default().disk_reads(DiskReads::Threads);
        if self.work.unlogged {
            options = options.without_log();
        }
        let db = Db::open_with(&self.work.dir, options).map_err(|e| self.allowed("open", &e))?;
        tell(&Message::Opened);
        let mut lasting = Vec::new();
        for name in tables::LASTING {
            lasting.push(self.open_or_make(&db, name)?);
        }
        let mut desks: Vec<Vec<Desk<'_>>> = (0..self.work.threads).map(|_| Vec::new()).collect();
        for open in &lasting {
            for desk in self.desks(open)? {
                desks[desk.stream.thread as usize].push(desk);
            }
        }
        if self.work.in_order {
            for round in 0..self.work.rounds {
                for desk in desks.iter_mut().flatten() {
                    // What is refused to one is no reason for others to stop.
                    self.soften(self.work_on(desk, ROUND))?;
                }
                self.turn(&db, &lasting, round)?;
            }
        } else {
            thread::scope(|scope| -> WorkerResult {
                let threads: Vec<_> = desks
                    .iter_mut()
                    .map(|desks| {
                        scope.spawn(|| -> WorkerResult {
                            // Until the checkpoints are done, more or less.
                            for _ in 0..self.work.rounds {
                                for desk in desks.iter_mut() {
                                    self.soften(self.work_on(desk, ROUND))?;
                                }
                            }
                            Ok(())
                        })
                    })
                    .collect();
                let mut outcome = Ok(());
                for round in 0..self.work.rounds {
                    outcome = outcome.and_then(|()| self.turn(&db, &lasting, round));
                }
                for thread in threads {
                    let ended = thread.join();
                    outcome = outcome.and(ended.unwrap_or_else(|_| {
                        Err(Stop::Wrong("a thread panicked; standard error says why".to_owned()))
                    }));
                }
                outcome
            })?;
        }
        for desk in desks.iter().flatten() {
            self.compare(desk)?;
        }
        drop(desks);
        // Half of all workers close what they opened; the others end as if they were killed.
        if self.work.seed.is_multiple_of(2) {
            let covered: Vec<_> =
                lasting.iter().map(|open| (open.table.name().to_owned(), open.done())).collect();
            drop(lasting);
            db.close().map_err(|e| self.allowed("close", &e))?;
            covered.into_iter().for_each(|(name, done)| tell(&Message::Checkpoint(name, done)));
        }
        Ok(())
    }

    /// Tells of a refusal, and goes on.
    fn soften(&self, outcome: WorkerResult) -> WorkerResult {
        match outcome {
            Err(Stop::Refused(why)) => {
                tell(&Message::Refused(why));
                Ok(())
            }
            other => other,
        }
    }

    /// The work of the main thread in a round: checkpoints, a compaction, a table made or dropped.
    fn turn(&self, db: &Db, lasting: &[Open], round: u64) -> WorkerResult {
        for (at, open) in lasting.iter().enumerate() {
            let cut =
                if (round + at as u64).is_multiple_of(3) { Cut::Full } else { Cut::Incremental };
            // As programs do: what was refused once may succeed the next time.
            if self.checkpoint(open, cut).is_err() {
                self.soften(self.checkpoint(open, cut))?;
            }
        }
        if round % 3 == 1 {
            let open = &lasting[(round / 3 % 2) as usize];
            let compacted = open.table.compact(0.4).map(drop);
            self.soften(compacted.map_err(|e| self.allowed("compact", &e)))?;
        }
        match round % 4 {
            0 => self.soften(self.make_passing(db)),
            3 => self.soften(self.drop_passing(db)),
            _ => Ok(()),
        }
    }

    fn checkpoint(&self, open: &Open, cut: Cut) -> WorkerResult {
        let covered = open.done();
        match open.table.checkpoint(cut) {
            Ok(_) => {
                tell(&Message::Checkpoint(open.table.name().to_owned(), covered));
                Ok(())
            }
            Err(e) => Err(self.allowed("checkpoint", &e)),
        }
    }

    fn open_or_make(&self, db: &Db, name: &str) -> WorkerResult<Open> {
        let compactor = if self.work.in_order { Compactor::Absent } else { Compactor::Eager };
        let options = tables::options(name, compactor);
        let table = if db.table_names().iter().any(|there| there == name) {
            db.hash_table(name).map_err(|e| self.allowed("open table", &e))?
        } else {
            tell(&Message::Making(name.to_owned()));
            let table = db.create_hash_table(name, options);
            let table = table.map_err(|e| self.allowed("make table", &e))?;
            tell(&Message::Made(name.to_owned()));
            table
        };
        let threads = tables::streams(self.work.seed, name, self.work.threads).len();
        Ok(Open { table, done: (0..threads).map(|_| AtomicU64::new(0)).collect() })
    }

    /// Reads what a table holds and hands it to the threads that own it. What the process that
    /// started this one has compared with its oracle is right to begin with.
    fn desks<'a>(&self, open: &'a Open) -> WorkerResult<Vec<Desk<'a>>> {
        let name = open.table.name();
        let streams = tables::streams(self.work.seed, name, self.work.threads);
        let mut parts: BTreeMap<u64, Contents> = BTreeMap::new();
        let walked = open.table.for_each(|key, value| {
            if let Some(owner) = Stream::owner(tables::layout(name), key) {
                parts.entry(owner).or_default().insert(key.to_vec(), value.to_vec());
            }
            ControlFlow::<()>::Continue(())
        });
        let _all = walked.map_err(|e| self.allowed("walk", &e))?;
        let mut desks = Vec::new();
        for stream in streams {
            let mut contents = parts.remove(&stream.thread).unwrap_or_default();
            // The operation of that number may be there already, in part: it is not done again.
            let position = match contents.remove(&stream.position_key()) {
                None => 0,
                Some(value) => {
                    1 + u64::from_le_bytes(value.try_into().map_err(|value| {
                        Stop::Wrong(format!("a position of {name} is {value:?}"))
                    })?)
                }
            };
            // Release: pairs with Acquire in `Open::done`.
            open.done[stream.thread as usize].store(position.saturating_sub(1), Ordering::Release);
            let mut desk = Desk { open, stream, contents, position, stopped: false };
            self.tell_position(&mut desk)?;
            desks.push(desk);
        }
        Ok(desks)
    }

    fn work_on(&self, desk: &mut Desk<'_>, operations: u64) -> WorkerResult {
        for _ in 0..operations {
            if desk.stopped {
                return Ok(());
            }
            let op = desk.stream.op(desk.position);
            let mut next = desk.contents.clone();
            let right = op.apply(&mut next);
            desk.stopped = true;
            let answer = self.perform(desk, &op)?;
            if answer != right {
                return Err(Stop::Wrong(format!(
                    "{}, operation {} of thread {}: {op:?} answered {answer:?}, not {right:?}",
                    desk.open.table.name(),
                    desk.position,
                    desk.stream.thread
                )));
            }
            desk.contents = next;
            desk.position += 1;
            self.tell_position(desk)?;
            desk.stopped = false;
        }
        Ok(())
    }

    fn tell_position(&self, desk: &mut Desk<'_>) -> WorkerResult {
        let (key, value) = (desk.stream.position_key(), desk.position.to_le_bytes());
        self.attempt("put", || desk.open.table.put(&key, value))?;
        // Release: pairs with Acquire in `Open::done`; the operation is in the table.
        desk.open.done[desk.stream.thread as usize].store(desk.position, Ordering::Release);
        Ok(())
    }

    /// Tries again what failed, since one failing call may be the only one.
    fn attempt<T>(
        &self,
        what: &str,
        mut op: impl FnMut() -> sapwood::Result<T>,
    ) -> WorkerResult<T> {
        let mut tries = 1;
        loop {
            match op() {
                Ok(answer) => return Ok(answer),
                Err(_) if tries < TRIES => tries += 1,
                Err(e) => return Err(self.allowed(what, &e)),
            }
        }
    }

    fn perform(&self, desk: &Desk<'_>, op: &Op) -> WorkerResult<Answer> {
        let table = &desk.open.table;
        Ok(match op {
            Op::Get(key) => Answer::Value(self.attempt("get", || table.get(key))?),
            Op::Put(key, value) => {
                self.attempt("put", || table.put(key, value))?;
                Answer::Done
            }
            Op::PutIfAbsent(key, value) => {
                Answer::Did(self.attempt("put_if_absent", || table.put_if_absent(key, value))?)
            }
            Op::Remove(key) => Answer::Did(self.attempt("remove", || table.remove(key))?),
            Op::Add(key, delta) => Answer::Sum(self.attempt("add", || table.add(key, *delta))?),
            Op::Update(key) => {
                let old = desk.contents.get(key);
                let turned = self.attempt("update", || {
                    table.update(key, |value| {
                        // By the model: the closure may run again.
                        old.into_iter()
                            .flatten()
                            .zip(value.iter_mut())
                            .for_each(|(old, byte)| *byte = !*old);
                    })
                })?;
                Answer::Did(turned.is_some())
            }
            Op::Swap(key, new) => {
                let expected = desk.contents.get(key).cloned().unwrap_or_else(|| new.clone());
                Answer::Did(
                    self.attempt("compare_and_put", || table.compare_and_put(key, &expected, new))?,
                )
            }
            Op::PutMany(entries) => {
                self.batch("put_many", |done| table.put_many(&entries[done..]))?;
                Answer::Done
            }
            Op::AddMany(deltas) => {
                self.batch("add_many", |done| table.add_many(&deltas[done..]))?;
                Answer::Done
            }
        })
    }

    /// Goes on behind what is in, as the error says.
    fn batch(&self, what: &str, op: impl Fn(usize) -> sapwood::Result<()>) -> WorkerResult {
        let mut done = 0;
        self.attempt(what, || {
            let result = op(done);
            if let Err(Error::HashBatch { done: more, .. }) = &result {
                done += more;
            }
            result
        })
    }

    fn make_passing(&self, db: &Db) -> WorkerResult {
        let there = db.table_names();
        let last = there.iter().filter_map(|name| tables::passing_number(name)).max();
        let open = self.open_or_make(db, &tables::passing(last.map_or(0, |last| last + 1)))?;
        let mut desks = self.desks(&open)?;
        for desk in &mut desks {
            self.work_on(desk, ROUND)?;
            self.compare(desk)?;
        }
        self.checkpoint(&open, Cut::Full)
    }

    /// Drops the oldest of the tables that pass, as soon as there are two.
    fn drop_passing(&self, db: &Db) -> WorkerResult {
        let mut there: Vec<u64> =
            db.table_names().iter().filter_map(|name| tables::passing_number(name)).collect();
        there.sort_unstable();
        let [oldest, _, ..] = there[..] else { return Ok(()) };
        let name = tables::passing(oldest);
        tell(&Message::Dropping(name.clone()));
        db.drop_table(&name).map_err(|e| self.allowed("drop", &e))?;
        tell(&Message::Dropped(name));
        Ok(())
    }

    /// Reads every key of a thread. An answer may be refused, and not be wrong.
    fn compare(&self, desk: &Desk<'_>) -> WorkerResult {
        let table = &desk.open.table;
        // Of what was refused, a part may be done.
        let next = desk.stream.op(desk.position);
        let doubtful = next.keys();
        for (key, value) in desk.contents.iter().filter(|(key, _)| !doubtful.contains(&&***key)) {
            match table.get(key) {
                Ok(Some(found)) if found == *value => {}
                Ok(found) => {
                    return Err(Stop::Wrong(format!(
                        "{}: {key:?} has {found:?}, not {value:?}",
                        table.name()
                    )));
                }
                Err(e) => match self.allowed("get", &e) {
                    Stop::Refused(_) => {}
                    wrong @ Stop::Wrong(_) => return Err(wrong),
                },
            }
        }
        Ok(())
    }
}

impl Open {
    /// Operations that each thread has done at least.
    fn done(&self) -> Vec<u64> {
        // Acquire: pairs with Release where they are counted.
        self.done.iter().map(|done| done.load(Ordering::Acquire)).collect()
    }
}
