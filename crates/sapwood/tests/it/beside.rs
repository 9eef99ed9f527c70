//! Readers beside a writer: each has the state of one moment, whatever the writer does meanwhile.
//!
//! `SAPWOOD_READS` is how many openings a test does, for long runs.

mod processes;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use fastrand::Rng;
use sapwood::rollup::{Aggregation, Column, Metric, Query, RowBatch, Schema};
use sapwood::{
    AnyTable, Cut, Db, DbOptions, Error, HashTable, HashTableOptions, OrderedTableOptions,
    RecordLayout, RollupTable, RollupTableOptions, TreeKind, TreeTableOptions,
};
use tempfile::TempDir;

const KEYS: u8 = 60;
/// A table is made of each kind in turn every so many steps.
const TURN: u64 = 8;
const TABLES: [&str; 5] = ["ordered", "hash", "b-tree", "crit-bit", "red-black"];
const TURNING: &str = "turning";
const STEP: &[u8] = b"step";

fn reads(default: u64) -> u64 {
    let set = std::env::var("SAPWOOD_READS").ok();
    set.map_or(default, |reads| reads.parse().expect("SAPWOOD_READS is a number"))
}

/// Amounts by table and key: their sum is zero.
type Amounts = BTreeMap<(usize, u8), i64>;

fn hash_of(amounts: &Amounts) -> u64 {
    let mut hasher = DefaultHasher::new();
    amounts.hash(&mut hasher);
    hasher.finish()
}

/// Takes an amount from one key to another; the same for the same number of the step.
fn step(amounts: &mut Amounts, number: u64) -> Vec<((usize, u8), i64)> {
    let mut rng = Rng::with_seed(number);
    let mut changed = Vec::new();
    let amount = rng.i64(1..1000);
    for by in [amount, -amount] {
        let place = (rng.usize(..TABLES.len()), rng.u8(..KEYS));
        let now = amounts.entry(place).or_default();
        *now += by;
        changed.push((place, *now));
    }
    changed
}

/// The state after so many steps.
fn state_at(number: u64) -> Amounts {
    let mut amounts = Amounts::new();
    (1..=number).for_each(|number| drop(step(&mut amounts, number)));
    amounts
}

/// An amount, in so many bytes that the hash table does not fit into its memory.
fn value(amount: i64) -> Vec<u8> {
    let mut value = vec![7; 300];
    value[..8].copy_from_slice(&amount.to_le_bytes());
    value
}

fn number(value: &[u8]) -> i64 {
    i64::from_le_bytes(value[..8].try_into().expect("8 bytes"))
}

fn cold() -> HashTableOptions {
    let options = HashTableOptions::default().layout(RecordLayout::Variable);
    options.page_bytes(4096).memory_budget(96 << 10).checkpoints_kept(1)
}

fn events() -> RollupTableOptions {
    let schema = Schema::new("time").metric(Metric::count("rows"));
    RollupTableOptions::new(schema)
}

fn event(number: u64) -> RowBatch {
    let times = Column::longs([number as i64 * 1000]);
    RowBatch::new(1).column("time", times).expect("columns of one length")
}

/// A writer, one step after the other.
struct Writer {
    db: Db,
    tables: Vec<AnyTable>,
    events: RollupTable,
    amounts: Amounts,
    number: u64,
}

impl Writer {
    fn open(path: &Path) -> Writer {
        let db = Db::open_with(path, DbOptions::default().checkpoint_bytes(64 << 10));
        let db = db.expect("one writes");
        let ordered = db.open_or_create_ordered_table(TABLES[0], OrderedTableOptions::default());
        let mut tables: Vec<AnyTable> = vec![
            ordered.expect("made, or there").into(),
            db.open_or_create_hash_table(TABLES[1], cold()).expect("made, or there").into(),
        ];
        let kinds = [TreeKind::BTree, TreeKind::CritBit, TreeKind::RedBlack];
        tables.extend(TABLES[2..].iter().zip(kinds).map(|(name, kind)| {
            let tree = db.open_or_create_tree_table(name, TreeTableOptions::default().kind(kind));
            AnyTable::from(tree.expect("made, or there"))
        }));
        let events = db.open_or_create_rollup_table("events", events()).expect("made, or there");
        let number = tables[0].get(STEP).expect("read").map_or(0, |value| number(&value) as u64);
        Writer { db, tables, events, amounts: state_at(number), number }
    }

    fn step(&mut self) -> u64 {
        let number = self.number + 1;
        let changed = step(&mut self.amounts, number);
        let done = self.db.transaction(|tx| {
            for ((table, key), amount) in &changed {
                tx.table(&self.tables[*table]).put([*key], value(*amount))?;
            }
            let steps =
                self.tables.iter().map(|table| tx.table(table).put(STEP, value(number as i64)));
            steps.into_iter().try_for_each(|put| put.map(drop))
        });
        done.expect("no other thread changes these keys");
        self.events.ingest(&event(number)).expect("room");
        if number.is_multiple_of(TURN) {
            self.turn(number);
        }
        self.number = number;
        number
    }

    /// Drops the table of a name, and makes one of another kind.
    fn turn(&self, number: u64) {
        let db = &self.db;
        loop {
            match db.drop_table(TURNING) {
                Ok(()) | Err(Error::TableMissing { .. }) => break,
                // A checkpoint has it.
                Err(Error::TableInUse { .. }) => thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
        let put = |table: AnyTable| table.put(STEP, value(number as i64)).map(drop);
        let made = match number / TURN % 4 {
            0 => db.create_hash_table(TURNING, cold()).and_then(|table| {
                table.put(STEP, value(number as i64))?;
                table.checkpoint(Cut::Full).map(drop)
            }),
            1 => db
                .create_ordered_table(TURNING, OrderedTableOptions::default())
                .and_then(|table| put(table.into())),
            2 => db
                .create_tree_table(TURNING, TreeTableOptions::default())
                .and_then(|table| put(table.into())),
            _ => db.create_rollup_table(TURNING, events()).and_then(|table| {
                (0..number % 5).try_for_each(|row| table.ingest(&event(row)).map(drop))
            }),
        };
        made.expect("made");
    }
}

/// Ends the threads of a test when one of them panics.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// What a reader finds: the number of the step, after looking at all.
fn check(db: &Db) -> u64 {
    let mut amounts = Amounts::new();
    let mut steps = Vec::new();
    for (index, name) in TABLES.into_iter().enumerate() {
        // The first steps may not have come to it.
        let table = match db.table(name) {
            Ok(table) => table,
            Err(Error::TableMissing { .. }) => continue,
            Err(error) => panic!("{error}"),
        };
        let mut step = 0;
        let walked = table.for_each(|key, value| {
            match key {
                STEP => step = number(value) as u64,
                key => drop(amounts.insert((index, key[0]), number(value))),
            }
            ControlFlow::<()>::Continue(())
        });
        assert!(walked.expect("walked").is_continue());
        if let Ok(table) = db.hash_table(name) {
            table.check().expect("a sound table");
        }
        steps.push(step);
    }
    let step = steps.first().copied().unwrap_or(0);
    assert!(steps.iter().all(|of| *of == step), "tables are of several moments: {steps:?}");
    let expected = state_at(step);
    if step > 0 {
        assert_eq!(amounts.values().sum::<i64>(), 0, "step {step}");
        assert_eq!(hash_of(&amounts), hash_of(&expected), "step {step}: {amounts:?}");
    }
    if let Ok(events) = db.rollup_table("events") {
        let rows = rows(&events);
        assert!(rows == step || rows + 1 == step, "{rows} events behind step {step}");
    }
    if let Ok(turning) = db.table(TURNING)
        && let Some(value) = turning.get(STEP).expect("read")
    {
        let made = number(&value) as u64;
        assert!(made.is_multiple_of(TURN), "{made}");
        assert!(made <= step && step < made + 2 * TURN, "{made} at step {step}");
    }
    step
}

fn rows(table: &RollupTable) -> u64 {
    let query =
        Query::group_by(Vec::<&str>::new()).aggregation(Aggregation::long_sum("rows", "rows"));
    let answer = table.query(&query).expect("answered");
    answer.rows.first().map_or(0, |row| row[1].to_long().ok().flatten().expect("a number") as u64)
}

fn open(path: &Path) -> Db {
    Db::open_read_only(path).unwrap_or_else(|error| panic!("a reader is refused: {error}"))
}

#[test]
fn each_reader_has_a_prefix_of_all_changes_and_keeps_it() {
    let path = TempDir::new().expect("a directory for the test");
    let path = path.path();
    let mut writer = Writer::open(path);
    writer.step();
    let (acked, begun) = (AtomicU64::new(1), AtomicU64::new(1));
    let (is_ended, readers) = (AtomicBool::new(false), AtomicU64::new(2));
    let db = writer.db.clone();
    let hash = db.hash_table("hash").expect("it is there");
    let is_over = || is_ended.load(Ordering::SeqCst);
    let wait = || {
        let wanted = acked.load(Ordering::SeqCst) + 30;
        while acked.load(Ordering::SeqCst) < wanted && !is_over() {
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ending = Ending(&is_ended);
            while !is_over() {
                begun.store(writer.number + 1, Ordering::SeqCst);
                acked.store(writer.step(), Ordering::SeqCst);
            }
        });
        scope.spawn(|| {
            let _ending = Ending(&is_ended);
            let mut turn = 0;
            while !is_over() {
                turn += 1;
                match turn % 4 {
                    0 => drop(hash.checkpoint(Cut::Full).expect("written")),
                    1 => drop(hash.checkpoint(Cut::Incremental).expect("written")),
                    2 => drop(hash.compact(1.0).expect("compacted")),
                    // A table may be dropped meanwhile.
                    _ => drop(db.checkpoint()),
                }
                thread::yield_now();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                // A reader that panics ends the others.
                let ending = Ending(&is_ended);
                for round in 0..reads(60) {
                    if is_over() {
                        break;
                    }
                    let before = acked.load(Ordering::SeqCst);
                    let reader = open(path);
                    let after = begun.load(Ordering::SeqCst);
                    let position = reader.log_position();
                    assert!(position.is_some());
                    let is_long = round % 8 == 0;
                    if is_long {
                        // Tables are opened long after the directory was, and looked at twice.
                        wait();
                    }
                    let step = check(&reader);
                    assert!((before..=after).contains(&step), "{before} {step} {after}");
                    if is_long {
                        wait();
                        assert_eq!((check(&reader), reader.log_position()), (step, position));
                    }
                }
                if readers.fetch_sub(1, Ordering::SeqCst) > 1 {
                    std::mem::forget(ending);
                }
            });
        }
    });
}

#[test]
fn a_reader_outlives_the_writer_and_lets_the_next_one_in() {
    let path = TempDir::new().expect("a directory for the test");
    let path = path.path();
    let mut readers = Vec::new();
    for _ in 0..4 {
        let mut writer = Writer::open(path);
        for _ in 0..5 {
            for _ in 0..13 {
                writer.step();
            }
            readers.push((writer.number, open(path)));
            writer.db.checkpoint().expect("written");
            readers.push((writer.number, open(path)));
        }
        drop(writer);
        readers.push((readers.last().expect("some").0, open(path)));
    }
    for (number, reader) in &readers {
        assert_eq!(check(reader), *number);
    }
}

#[test]
fn a_second_writer_is_told_what_to_do() {
    let path = TempDir::new().expect("a directory for the test");
    let _writer = Writer::open(path.path());
    let _reader = open(path.path());
    let refused = Db::open(path.path()).expect_err("one writes");
    assert!(matches!(refused, Error::DirectoryInUse { .. }));
    let expected = format!(
        "{} is open already to be written, in this process or another, which holds its file .lock: stop that \
         program, or close its `Db` with the handles of its hash tables, and try again; to read beside it, use \
         `Db::open_read_only`",
        path.path().display()
    );
    assert_eq!(refused.to_string(), expected);
}

/// A reader that has opened the directory needs no file of the log; one that is opening it keeps them, and the
/// writer goes on.
#[test]
fn the_log_stays_as_long_as_a_reader_opens_the_directory() {
    let path = TempDir::new().expect("a directory for the test");
    let path = path.path();
    let mut writer = Writer::open(path);
    writer.step();
    writer.db.checkpoint().expect("written");
    let _open = open(path);
    let snapshots = || {
        let files = std::fs::read_dir(path.join("log")).expect("it is there");
        let names = files.map(|file| file.expect("listed").file_name());
        names.filter(|name| name.as_encoded_bytes().starts_with(b"snapshot-")).count()
    };
    let before = snapshots();
    // As one does that is stopped there.
    let opening = std::fs::File::open(path.join("log/.readers")).expect("the writer made it");
    opening.lock_shared().expect("readers share it");
    for round in 1..4 {
        writer.step();
        writer.db.checkpoint().expect("written");
        assert_eq!(snapshots(), before * (round + 1));
    }
    assert_eq!(check(&open(path)), writer.number);
    drop(opening);
    writer.db.checkpoint().expect("written");
    assert_eq!(snapshots(), before);
}

/// The writer goes back, and writes another course to the same places.
#[test]
fn a_table_that_goes_back_leaves_readers_what_they_have() {
    let path = TempDir::new().expect("a directory for the test");
    let path = path.path();
    let db = Db::open(path).expect("one writes");
    let options = || cold().checkpoints_kept(3).compaction(None);
    let fill = |table: &HashTable, from: u32, by: u8| {
        for key in from..from + 200 {
            table.put(key.to_be_bytes(), [by; 200]).expect("room");
        }
    };
    let table = db.create_hash_table("t", options()).expect("a free name");
    fill(&table, 0, 1);
    let first = table.checkpoint(Cut::Full).expect("written").number;
    fill(&table, 200, 2);
    table.checkpoint(Cut::Incremental).expect("written");
    fill(&table, 400, 3);
    drop(table);
    let (opened, unopened) = (open(path), open(path));
    let before = opened.hash_table("t").expect("it is there");
    let table = db.hash_table_at("t", first).expect("it is kept");
    fill(&table, 1000, 4);
    fill(&table, 1200, 5);
    table.checkpoint(Cut::Full).expect("written");
    for table in [before, unopened.hash_table("t").expect("it is there")] {
        table.check().expect("a sound table");
        assert_eq!(table.len(), Ok(600));
        for key in 0..600_u32 {
            let by = (key / 200) as u8 + 1;
            assert_eq!(table.get(key.to_be_bytes()), Ok(Some(vec![by; 200])), "{key}");
        }
    }
    let now = open(path).hash_table("t").expect("it is there");
    assert_eq!(now.len(), Ok(600));
    assert_eq!(now.get(1399_u32.to_be_bytes()), Ok(Some(vec![5; 200])));
    assert_eq!(now.get(399_u32.to_be_bytes()), Ok(None));
}

/// A load is in the log without its entries, and later changes of the table with theirs.
#[test]
fn a_table_is_loaded_before_its_later_changes() {
    const ENTRIES: u32 = 500;
    let path = TempDir::new().expect("a directory for the test");
    let path = path.path();
    let db = Db::open(path).expect("one writes");
    let writing = AtomicU64::new(2);
    let mut seen = 0;
    thread::scope(|scope| {
        for thread in 0..2 {
            let (db, writing) = (&db, &writing);
            scope.spawn(move || {
                for turn in 0..reads(12) {
                    let name = format!("t{thread}.{turn}");
                    let load = db.bulk_load(&name, OrderedTableOptions::default());
                    let mut load = load.expect("a free name");
                    for key in 0..ENTRIES {
                        load.push(key.to_be_bytes(), b"loaded").expect("in order");
                    }
                    let table = load.finish().expect("loaded");
                    table.put(ENTRIES.to_be_bytes(), b"later").expect("put");
                }
                writing.fetch_sub(1, Ordering::SeqCst);
            });
        }
        while writing.load(Ordering::SeqCst) > 0 {
            let reader = match Db::open_read_only(path) {
                Ok(reader) => reader,
                Err(error) => {
                    assert!(matches!(error, Error::Outrun { .. }), "{error}");
                    continue;
                }
            };
            for name in reader.table_names() {
                let table = reader.ordered_table(&name).expect("it is there");
                if table.contains_key(ENTRIES.to_be_bytes()).expect("read") {
                    assert_eq!(table.len().expect("read"), ENTRIES as usize + 1, "{name}");
                    seen += 1;
                }
            }
        }
    });
    println!("{seen} tables with later changes");
}

/// Names are the same before and after, though a table was made and dropped in between.
#[test]
fn tables_that_come_and_go_are_no_damage() {
    let path = TempDir::new().expect("a directory for the test");
    let path = path.path();
    let db = Db::open(path).expect("one writes");
    let (is_ended, made) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ending = Ending(&is_ended);
            for _ in 0..reads(400) {
                db.create_rollup_table("turn", events()).expect("a free name");
                db.drop_table("turn").expect("it is there");
                made.fetch_add(1, Ordering::SeqCst);
            }
        });
        while !is_ended.load(Ordering::SeqCst) {
            match Db::open_read_only(path) {
                Ok(reader) => assert!(reader.table_names().iter().all(|name| *name == "turn")),
                // It may be too slow for all of them, and says so.
                Err(error) => assert!(matches!(error, Error::Outrun { .. }), "{error}"),
            }
        }
    });
    assert_eq!(made.into_inner(), reads(400));
    assert!(open(path).table_names().is_empty());
}
