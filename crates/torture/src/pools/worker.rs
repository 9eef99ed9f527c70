//! The process that works on a pool until it is killed, or done.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use sapwood_disk::{Disk, FileDisk};
use sapwood_ptree::{Durability, Error, Pool, PoolOptions, Transaction, Tree, TreeLayout};

use super::steps::{self, Change, KINDS, STEPS};
use crate::message::Message;
use crate::worker::tell;

/// What commits wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    Buffered,
    Interval,
    Sync,
}

/// The arguments of a worker, on its command line.
#[derive(Debug, Clone, Args)]
pub(crate) struct PoolWork {
    /// The folder of the pool
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Names the steps of all threads
    #[arg(long)]
    pub(crate) seed: u64,
    /// How many threads there are
    #[arg(long)]
    pub(crate) threads: u64,
    /// How many steps each does at most
    #[arg(long)]
    pub(crate) steps: u64,
    /// What commits wait for
    #[arg(long)]
    pub(crate) level: Level,
}

impl PoolWork {
    /// As arguments of the program.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let level = match self.level {
            Level::Buffered => "buffered",
            Level::Interval => "interval",
            Level::Sync => "sync",
        };
        let words = [
            "pool-worker".to_owned(),
            format!("--dir={}", self.dir.display()),
            format!("--seed={}", self.seed),
            format!("--threads={}", self.threads),
            format!("--steps={}", self.steps),
            format!("--level={level}"),
        ];
        words.into()
    }

    /// The options by which worker and oracle open the pool. Checkpoints are frequent, and memory is
    /// short.
    pub(super) fn options(&self) -> PoolOptions {
        let durability = match self.level {
            Level::Buffered => Durability::Buffered,
            Level::Interval => Durability::Interval(Duration::from_millis(1)),
            Level::Sync => Durability::Sync,
        };
        PoolOptions::default()
            .durability(durability)
            .checkpoint_bytes(1 << (16 + self.seed % 5))
            .memory_bytes(1 << (20 + self.seed % 4))
            .id(self.seed)
    }
}

/// Does all work and tells of it.
pub(crate) fn run(work: &PoolWork) -> Result<(), String> {
    if let Err(error) = work_on(work) {
        tell(&Message::Wrong(format!("nothing has failed, and yet {error}")));
    }
    tell(&Message::Ended);
    Ok(())
}

fn work_on(work: &PoolWork) -> Result<(), Error> {
    let disk: Arc<dyn Disk> = match FileDisk::open(&work.dir) {
        Ok(disk) => Arc::new(disk),
        Err(cause) => return Err(Error::Options(cause.to_string())),
    };
    let pool = match Pool::is_on(&*disk)? {
        true => Pool::open(disk, work.options())?,
        false => Pool::create(disk, work.options())?,
    };
    if pool.trees()?.is_empty() {
        pool.transaction(|tx| {
            tx.create_tree(&pool, STEPS, KINDS[0], TreeLayout::Bytes)?;
            for (kind, thread) in
                KINDS.iter().flat_map(|kind| (0..work.threads).map(move |t| (kind, t)))
            {
                tx.create_tree(&pool, &steps::tree_name(*kind, thread), *kind, TreeLayout::Bytes)?;
            }
            Ok(())
        })?;
    }
    tell(&Message::Opened);
    let at_work = AtomicUsize::new(work.threads as usize);
    let done = thread::scope(|scope| {
        let threads: Vec<_> = (0..work.threads)
            .map(|thread| {
                let (pool, at_work) = (&pool, &at_work);
                scope.spawn(move || {
                    let done = work_as(work, pool, thread);
                    at_work.fetch_sub(1, Ordering::Release);
                    done
                })
            })
            .collect();
        let mut done = Ok(());
        while at_work.load(Ordering::Acquire) > 0 && done.is_ok() {
            done = pool.checkpoint();
            thread::sleep(Duration::from_millis(work.seed % 7));
        }
        for thread in threads {
            let ended = thread.join().unwrap_or_else(|_| {
                Err(Error::Options("a thread panicked; standard error says why".to_owned()))
            });
            done = done.and(ended);
        }
        done
    });
    done?;
    // Half of those that come so far close the pool.
    if work.seed.is_multiple_of(2) { pool.close() } else { Ok(()) }
}

/// The work of a thread.
fn work_as(work: &PoolWork, pool: &Pool, thread: u64) -> Result<(), Error> {
    let trees = KINDS.map(|kind| pool.tree(&steps::tree_name(kind, thread)));
    let [b_tree, crit_bit, red_black] = trees;
    let trees = [b_tree?, crit_bit?, red_black?];
    let counts = pool.tree(STEPS)?;
    let all = [&trees[0], &trees[1], &trees[2], &counts];
    let first = steps::last_step(pool, thread)? + 1;
    for step in first..first + work.steps {
        if step % 5 == 2 {
            // What is given up leaves nothing.
            let tx = pool.begin_on(&all)?;
            do_changes(&tx, &trees, &steps::changes(work.seed, thread, step + 1_000_000))?;
            tx.abort();
        }
        let tx = pool.begin_on(&all)?;
        do_changes(&tx, &trees, &steps::changes(work.seed, thread, step))?;
        tx.put(&counts, steps::step_key(thread), step.to_le_bytes())?;
        let commit = tx.commit()?;
        if work.level == Level::Sync && !commit.is_durable() {
            return Err(Error::Options(format!("step {step} does not last")));
        }
        tell(&Message::Step(thread, step));
    }
    Ok(())
}

/// Does the same to each tree, which answer the same.
fn do_changes(tx: &Transaction<'_>, trees: &[Tree; 3], changes: &[Change]) -> Result<(), Error> {
    for change in changes {
        let mut answers = Vec::new();
        for tree in trees {
            answers.push(match change {
                Change::Put(key, value) => {
                    let old = tx.get(tree, key)?;
                    let is_new = tx.put(tree, key, value)?;
                    (old.is_none() == is_new, old)
                }
                Change::Remove(key) => (true, tx.remove(tree, key)?),
            });
        }
        if answers.iter().any(|answer| *answer != answers[0] || !answer.0) {
            return Err(Error::Options(format!("{change:?} is answered with {answers:?}")));
        }
    }
    Ok(())
}
