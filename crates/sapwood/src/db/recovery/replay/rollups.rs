//! Batches of roll-ups, which come in in the order of the log.
//!
//! Several threads read batches and fold them, each beside the others; its states are merged into the facts when those
//! of all batches before it are in. The order counts: sums of doubles differ in their last bits by the order in which they
//! are added, sketches by what they forgot, and of rows that would take a sum beyond its type the last ones
//! are refused. So the facts are those that one thread would make.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use sapwood_wal::TableId;

use crate::db_log::{DbLog, Kept};
use crate::directory::Directory;
use crate::rollup::{self, Rollup, Schema, Writer};
use crate::rollup_table::named;
use crate::{Error, RollupTable};

/// Small records go to a thread together, as many as are worth the way.
const TOGETHER_BYTES: usize = 4 << 10;
/// The thread that reads the log does records beyond this by itself: their rows take memory, and several at
/// once would take several times as much.
const LARGE_BYTES: usize = 4 << 20;

/// A roll-up that takes batches.
#[derive(Debug)]
pub(crate) struct RollupTarget {
    name: Arc<str>,
    rollup: Arc<Rollup>,
    /// Those that no thread uses at the moment.
    writers: Mutex<Vec<Writer>>,
    turns: Mutex<Turns>,
    /// Another turn is over.
    over: Condvar,
    /// The first batch that was refused, in the order of the log.
    failed: OnceLock<Error>,
}

#[derive(Debug, Default)]
struct Turns {
    /// How many there are.
    given: u64,
    /// How many of them are over, from the first on.
    over: u64,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // What they hold is whole between any two steps that can fail.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RollupTarget {
    /// Opens a roll-up table with its segments, which had so many batches when the log had a checkpoint last.
    ///
    /// # Errors
    /// Errors of the folder, and of segments.
    pub(crate) fn open(
        directory: &Directory,
        id: TableId,
        (name, schema): (&str, &str),
        sealed: Option<u64>,
    ) -> Result<Arc<RollupTarget>, Error> {
        let name: Arc<str> = name.into();
        let schema = named(&name, Schema::from_json(schema))?;
        let rollup = match directory.rollup_disk(id, sealed.unwrap_or(0))? {
            Some(disk) => Rollup::on_disk(schema, disk),
            None => Rollup::new(schema),
        };
        Ok(RollupTarget::new(Arc::clone(&name), named(&name, rollup)?))
    }

    /// Batches in segments.
    pub(crate) fn sealed_batches(&self) -> u64 {
        self.rollup.sealed_batches()
    }

    /// Refuses a table with fewer batches in segments than it had when the log had a checkpoint last.
    pub(crate) fn expect_sealed(
        &self,
        directory: &Directory,
        id: TableId,
        sealed: Option<u64>,
    ) -> Result<(), Error> {
        if self.sealed_batches() >= sealed.unwrap_or(0) {
            return Ok(());
        }
        let cause = rollup::Error::Corrupt {
            file: directory.rollup_path(id).join("manifest").display().to_string(),
            offset: 0,
            what: "it is of a moment before the log begins: put the newer one back".to_owned(),
        };
        Err(Error::Rollup { table: Arc::clone(&self.name), cause })
    }

    /// The table, whose batches go into the log from now on.
    pub(crate) fn logged(
        &self,
        log: &Arc<DbLog>,
        directory: &Directory,
        id: TableId,
    ) -> RollupTable {
        let (rollup, kept) = log.open_rollup(id, Arc::clone(&self.rollup));
        RollupTable::new(Arc::clone(&self.name), rollup, kept, Some(directory.rollup_path(id)))
    }

    /// The table, to be read.
    pub(crate) fn viewed(&self, directory: &Arc<Directory>, id: TableId) -> RollupTable {
        let (name, rollup) = (Arc::clone(&self.name), Arc::clone(&self.rollup));
        let folder = Some(directory.rollup_path(id));
        RollupTable::new(name, rollup, Kept::read_only(directory), folder)
    }

    fn new(name: Arc<str>, rollup: Rollup) -> Arc<RollupTarget> {
        Arc::new(RollupTarget {
            name,
            rollup: Arc::new(rollup),
            writers: Mutex::default(),
            turns: Mutex::default(),
            over: Condvar::new(),
            failed: OnceLock::new(),
        })
    }

    /// Fails if a batch was refused so far.
    pub(crate) fn expect_sound(&self) -> Result<(), Error> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Waits until all batches are in that were handed out, and fails if one was refused.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let given = lock(&self.turns).given;
        self.wait_for(given);
        self.expect_sound()
    }

    /// Waits until so many turns are over.
    fn wait_for(&self, turn: u64) {
        let is_to_wait = |turns: &mut Turns| turns.over < turn;
        let waited = self.over.wait_while(lock(&self.turns), is_to_wait);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Records of one roll-up, for one thread. When they are dropped, also undone, it is the turn of the next ones.
#[derive(Debug)]
pub(crate) struct Records {
    target: Arc<RollupTarget>,
    turn: u64,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Records {
    pub(crate) fn of(target: &Arc<RollupTarget>) -> Records {
        let turn = {
            let mut turns = lock(&target.turns);
            turns.given += 1;
            turns.given - 1
        };
        Records { target: Arc::clone(target), turn, bytes: Vec::new(), ends: Vec::new() }
    }

    pub(crate) fn are_of(&self, target: &Arc<RollupTarget>) -> bool {
        Arc::ptr_eq(&self.target, target)
    }

    pub(crate) fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn are_enough(&self) -> bool {
        self.bytes.len() >= TOGETHER_BYTES
    }

    pub(crate) fn are_large(&self) -> bool {
        self.bytes.len() > LARGE_BYTES
    }

    /// Takes the batches, unless one before them was refused.
    pub(crate) fn run(self) {
        let target = &*self.target;
        let writer = lock(&target.writers).pop();
        let mut writer = writer.unwrap_or_else(|| Writer::new(&target.rollup));
        let mut turn = || target.wait_for(self.turn);
        let mut begin = 0;
        for &end in &self.ends {
            if target.failed.get().is_some() {
                return;
            }
            if let Err(cause) = writer.redo_in_turn(&self.bytes[begin..end], &mut turn) {
                // One before it may be refused yet, and would be the first.
                turn();
                let table = Arc::clone(&target.name);
                target.failed.get_or_init(|| Error::Rollup { table, cause });
                return;
            }
            begin = end;
        }
        lock(&target.writers).push(writer);
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        self.target.wait_for(self.turn);
        lock(&self.target.turns).over += 1;
        self.target.over.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io;
    use std::num::NonZero;

    use fastrand::Rng;
    use sapwood_rollup::BatchLog;

    use super::super::Replay;
    use super::*;
    use crate::rollup::{
        Column, Dimension, Discovery, Granularity, Metric, Query, RowBatch, ScanOrder, Schema,
        Value,
    };

    /// A log that keeps its records.
    #[derive(Debug, Default)]
    struct Told(Mutex<Vec<Vec<u8>>>);

    impl BatchLog for Told {
        fn append(&self, record: &[u8]) -> io::Result<()> {
            lock(&self.0).push(record.to_vec());
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        fn apart(&self, work: &mut dyn FnMut()) -> io::Result<()> {
            work();
            Ok(())
        }
    }

    /// Metrics whose figures depend on the order of rows, and some that do not.
    fn schema() -> Schema {
        Schema::new("time")
            .dimension(Dimension::text("page"))
            .metric(Metric::count("rows"))
            .metric(Metric::long_sum("sum", "n"))
            .metric(Metric::double_sum("doubles", "x"))
            .metric(Metric::long_first("first", "n"))
            .metric(Metric::double_last("last", "x"))
            .metric(Metric::quantiles("quantiles", "x"))
            .metric(Metric::variance("variance", "x"))
            .metric(Metric::hll("pages", "other"))
            .query_granularity(Granularity::parse("second").expect("known"))
    }

    /// Most are small, so that they go together; a few are larger, and take longer than those behind them.
    fn batch(rng: &mut Rng, number: usize) -> RowBatch {
        let rows = [1, 1, 3, 40, 600][rng.usize(..5)];
        let mut each = |of: fn(&mut Rng) -> f64| (0..rows).map(|_| of(rng)).collect::<Vec<_>>();
        let times = each(|rng| f64::from(rng.i32(0..5_000)));
        let pages = each(|rng| rng.f64() * 20.0);
        // Sums of some facts leave their type, or come back.
        let longs = each(|rng| [1.0, -1.0, 9e18, -9e18][rng.usize(..4)]);
        let doubles = each(|rng| rng.f64() * 10_f64.powi(rng.i32(-12..12)));
        let text = |value: &f64| (*value as i64).to_string();
        RowBatch::new(rows)
            .column("time", Column::longs(times.iter().map(|time| *time as i64)))
            .and_then(|batch| batch.column("page", Column::texts(pages.iter().map(text))))
            .and_then(|batch| batch.column("n", Column::longs(longs.iter().map(|n| *n as i64))))
            .and_then(|batch| batch.column("x", Column::doubles(doubles)))
            .and_then(|batch| batch.column("other", Column::texts(times.iter().map(text))))
            .and_then(|batch| {
                let name = format!("found {}", number % 7);
                batch.column(name, Column::texts(pages.iter().map(text)))
            })
            .expect("columns of one length")
    }

    /// What one writer made of batches, and their records. Sums leave their type where rows fold.
    fn told(schema: &Schema, is_folded: bool) -> (Arc<Rollup>, Vec<Vec<u8>>) {
        let told = Arc::new(Told::default());
        let rollup = Arc::new(Rollup::new(schema.clone()).expect("it fits"));
        let rollup = rollup.with_log(Arc::clone(&told) as Arc<dyn BatchLog>);
        let mut writer = Writer::new(&rollup);
        let mut rng = Rng::with_seed(5);
        let mut overflowed = 0;
        for number in 0..80 {
            let sources = ["a".to_owned(), (number % 3).to_string()];
            let offsets = sources.each_ref().map(|source| (source.as_str(), number as u64 + 1));
            let batch = batch(&mut rng, number);
            overflowed += writer.ingest_from(&batch, &offsets).expect("room").overflowed;
        }
        assert!(overflowed > 100 || !is_folded, "{overflowed}");
        let records = std::mem::take(&mut *lock(&told.0));
        (rollup, records)
    }

    /// All facts in the order of their bytes: those of one time have no order.
    fn facts(rollup: &Arc<Rollup>) -> (Vec<String>, Vec<String>, BTreeMap<String, u64>) {
        let answer = rollup.query(&Query::scan([], ScanOrder::Ascending)).expect("an answer");
        let mut rows: Vec<String> = answer.rows.iter().map(|row| format!("{row:?}")).collect();
        rows.sort_unstable();
        (answer.columns, rows, rollup.offsets())
    }

    fn redo(schema: &Schema, records: &[Vec<u8>], threads: usize) -> Result<Arc<Rollup>, Error> {
        let target =
            RollupTarget::new("events".into(), Rollup::new(schema.clone()).expect("it fits"));
        std::thread::scope(|scope| {
            let mut replay = Replay::new(scope, NonZero::new(threads));
            records.iter().for_each(|record| replay.record(&target, record));
            replay.end();
            target.finish()
        })?;
        Ok(Arc::clone(&target.rollup))
    }

    /// Without roll-up, the numbers of rows are in their order.
    fn rows(rollup: &Arc<Rollup>) -> Vec<Vec<Value<'static>>> {
        rollup.query(&Query::scan([], ScanOrder::Ascending)).expect("an answer").rows
    }

    #[test]
    fn rows_that_are_kept_apart_have_their_numbers() {
        let schema = schema().rollup(false);
        let (rollup, records) = told(&schema, false);
        for threads in [2, 7] {
            let redone = redo(&schema, &records, threads).expect("they were taken before");
            assert!(rows(&redone) == rows(&rollup), "{threads} threads");
        }
    }

    #[test]
    fn facts_are_those_of_one_thread() {
        let found = schema().discover(Discovery::Texts, &["n", "x", "other"]);
        for schema in [schema(), found] {
            let (rollup, records) = told(&schema, true);
            let expected = facts(&rollup);
            for threads in [1, 3, 7] {
                let redone = redo(&schema, &records, threads).expect("they were taken before");
                assert!(facts(&redone) == expected, "{threads} threads");
                assert_eq!(redone.stats().processed, rollup.stats().processed);
                assert_eq!(redone.stats().overflowed, rollup.stats().overflowed);
            }
        }
    }

    #[test]
    fn the_first_batch_that_is_refused_is_told() {
        let (_, mut records) = told(&schema(), true);
        let large = records.iter().position(|record| record.len() > TOGETHER_BYTES);
        let large = large.expect("some have many rows");
        // This one is wrong at its end, those behind it at their first byte.
        records[large].push(0);
        records.iter_mut().skip(large + 1).for_each(|record| record[0] = 0xff);
        let alone = redo(&schema(), &records, 1).expect_err("it is damaged");
        assert!(matches!(alone.rollup(), Some(crate::rollup::Error::Corrupt { .. })), "{alone}");
        for threads in [2, 3, 7] {
            assert_eq!(redo(&schema(), &records, threads).expect_err("it is damaged"), alone);
        }
        records.truncate(large + 1);
        assert_eq!(redo(&schema(), &records, 3).expect_err("it is damaged"), alone);
    }

    #[test]
    fn records_that_no_thread_takes_hold_up_none() {
        let (_, records) = told(&schema(), true);
        let target = RollupTarget::new("events".into(), Rollup::new(schema()).expect("it fits"));
        let handed_out = |record: &Vec<u8>| {
            let mut records = Records::of(&target);
            records.push(record);
            records
        };
        let mut handed_out: Vec<Records> = records[..3].iter().map(handed_out).collect();
        let last = handed_out.pop().expect("three");
        std::thread::scope(|scope| {
            scope.spawn(|| last.run());
            drop(handed_out);
        });
        assert_eq!(target.finish(), Ok(()));
    }
}
