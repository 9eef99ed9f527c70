//! A database on a simulated disk, a stream of operations on it, and what it may have after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Duration;

use fastrand::Rng;
use sapwood::rollup::{
    Aggregation, Column, Dimension, Granularity, Metric, Query, RowBatch, Schema, Value,
};
use sapwood::{
    AnyTable, Cut, Db, DbOptions, Durability, HashTableOptions, OrderedTableOptions, RecordLayout,
    Result, RollupTableOptions, TableRef, Transaction, TreeTableOptions,
};
use sapwood_disk::SimDisk;

pub(super) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// All tables, by name.
pub(super) type Tables = BTreeMap<String, Entries>;

/// What the tables had after each change, and which of these moments is known to last.
#[derive(Debug, Clone)]
pub(super) struct History {
    states: Vec<Tables>,
    pub(super) lasting: usize,
    /// Names of tables that could not be made: a crash may leave them, empty.
    unmade: BTreeSet<String>,
}

impl History {
    pub(super) fn of(now: Tables) -> History {
        History { states: vec![now], lasting: 0, unmade: BTreeSet::new() }
    }

    pub(super) fn now(&self) -> &Tables {
        self.states.last().expect("one at least")
    }

    pub(super) fn note(&mut self, state: Tables) {
        self.states.push(state);
    }

    pub(super) fn all_lasts(&mut self) {
        self.lasting = self.states.len() - 1;
    }

    /// After a change that lasts, so that those before it do. One that changed nothing was not written, and shows nothing:
    /// a log that refuses changes is not asked.
    fn change_lasts(&mut self) {
        if let [.., before, now] = &*self.states
            && before != now
        {
            self.all_lasts();
        }
    }

    /// Whether it is one of the last two: before what failed, or after it.
    #[track_caller]
    pub(super) fn check_either(&self, found: &Tables, what: &str) {
        self.check(self.states.len().saturating_sub(2), found, what);
    }

    /// Whether what a crash left is a moment since `lasting`.
    #[track_caller]
    pub(super) fn check(&self, lasting: usize, found: &Tables, what: &str) {
        let is_found = |state: &Tables| {
            let mut found = found.clone();
            found.retain(|name, entries| {
                state.contains_key(name) || !entries.is_empty() || !self.unmade.contains(name)
            });
            *state == found
        };
        if self.states[lasting..].iter().any(is_found) {
            return;
        }
        let earlier = self.states[..lasting].iter().rposition(|state| state == found);
        let count = self.states.len();
        let near = (0..count).map(|at| (at, difference(&self.states[at], found)));
        let near = near.min_by_key(|(_, difference)| difference.len()).unwrap_or_default();
        panic!(
            "{what}: what is there is no moment from {lasting} on of {count}, but {earlier:?}; \
             the nearest has otherwise: {near:?}, and the last: {:?}",
            difference(&self.states[count - 1], found)
        );
    }
}

/// Which entries differ.
fn difference(one: &Tables, other: &Tables) -> Vec<String> {
    let mut found = Vec::new();
    for name in one.keys().chain(other.keys().filter(|name| !one.contains_key(*name))) {
        match (one.get(name), other.get(name)) {
            (Some(one), Some(other)) => {
                for key in one.keys().chain(other.keys().filter(|key| !one.contains_key(*key))) {
                    let short = |entries: &Entries| {
                        entries.get(key).map(|value| (value.len(), value.first().copied()))
                    };
                    if one.get(key) != other.get(key) {
                        found.push(format!("{name}/{key:?}: {:?} {:?}", short(one), short(other)));
                    }
                }
            }
            (one, _) => found.push(format!("{name} is in {}", one.map_or("the other", |_| "it"))),
        }
    }
    found
}

/// What tables have after some changes.
fn after(before: &Tables, ops: &[(String, Op)]) -> Tables {
    let mut after = before.clone();
    for (name, op) in ops.iter().filter(|(name, _)| name != VOLATILE) {
        model(name, op, after.get_mut(name).expect("it is there"));
    }
    after
}

/// How a database is opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) durability: Durability,
    /// Bytes of the log after which a thread writes a checkpoint.
    pub(super) checkpoint_bytes: u64,
    /// Whether ordered tables stay in their snapshots.
    pub(super) is_lazy: bool,
}

pub(super) const INTERVAL: Duration = Duration::from_millis(100);

pub(super) const SETTINGS: [Setting; 4] = [
    Setting { durability: Durability::Sync, checkpoint_bytes: 1 << 30, is_lazy: false },
    Setting {
        durability: Durability::Interval(INTERVAL),
        checkpoint_bytes: 1 << 30,
        is_lazy: true,
    },
    Setting { durability: Durability::Buffered, checkpoint_bytes: 1 << 30, is_lazy: false },
    // Checkpoints come while changes go on.
    Setting {
        durability: Durability::Interval(INTERVAL),
        checkpoint_bytes: 4 << 10,
        is_lazy: true,
    },
];

impl Setting {
    pub(super) fn open(self, disk: &SimDisk) -> Result<Db> {
        let options = DbOptions::default()
            .durability(self.durability)
            .unsynced_bytes(6 << 10)
            .checkpoint_bytes(self.checkpoint_bytes)
            .tree_memory(8 << 20);
        let options = if self.is_lazy { options.lazy() } else { options };
        Db::open_simulated(disk, options)
    }
}

/// Tables of all kinds, by name.
pub(super) const NAMES: [&str; 9] =
    ["bytes", "cold", "cold8", "fixed", "ordered", ROLLUP, "tree", "tree8", "volatile"];

const ROLLUP: &str = "rollup";

const VOLATILE: &str = "volatile";

fn is_fixed(name: &str) -> bool {
    name.ends_with('8') || name == "fixed"
}

fn model(name: &str, op: &Op, entries: &mut Entries) {
    match name {
        ROLLUP => model_rows(op, entries),
        _ => op.model(entries),
    }
}

fn is_tree(name: &str) -> bool {
    name.starts_with("tree")
}

fn create(db: &Db, name: &str) -> Result<()> {
    let layout = match is_fixed(name) {
        true => RecordLayout::Fixed8,
        false => RecordLayout::Variable,
    };
    let hash = HashTableOptions::default().layout(layout).page_bytes(4096);
    let ordered = OrderedTableOptions::default().chunk_entries(16);
    match name {
        "ordered" => db.create_ordered_table(name, ordered).map(drop),
        VOLATILE => db.create_ordered_table(name, ordered.volatile()).map(drop),
        // Most of it lies on the disk.
        "cold" | "cold8" => db.create_hash_table(name, hash.memory_budget(40 << 10)).map(drop),
        ROLLUP => {
            let schema = Schema::new("time")
                .dimension(Dimension::text("page"))
                .metric(Metric::count("rows"))
                .metric(Metric::long_sum("added", "added"));
            db.create_rollup_table(name, RollupTableOptions::new(schema)).map(drop)
        }
        "bytes" | "fixed" => db.create_hash_table(name, hash).map(drop),
        _ => db.create_tree_table(name, TreeTableOptions::default().layout(layout)).map(drop),
    }
}

/// A change of one entry.
#[derive(Debug, Clone)]
enum Op {
    Put(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    /// Writes a byte in place, where the value has it.
    Write(Vec<u8>, usize, u8),
    Set(Vec<u8>, Vec<u8>),
    Add(Vec<u8>, i64),
}

impl Op {
    fn random(rng: &mut Rng, is_fixed: bool) -> Op {
        // Keys of entries, and keys of counters.
        let key = u64::from(rng.u8(..24)).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let len = match rng.u8(..30) {
            _ if is_fixed => 8,
            0 => 3_900,
            1..4 => rng.usize(..1_500),
            _ => rng.usize(..120),
        };
        let value = vec![rng.u8(1..); len];
        let key = key.to_vec();
        match rng.u8(..20) {
            0..3 => Op::Remove(key),
            3..6 => Op::Write(key, rng.usize(..40), rng.u8(1..)),
            6..8 => Op::Set(key, value),
            8..11 => Op::Add([&[0xff; 7][..], &[rng.u8(..3)]].concat(), rng.i64(-9..99)),
            _ => Op::Put(key, value),
        }
    }

    fn model(&self, entries: &mut Entries) {
        match self {
            Op::Put(key, value) => drop(entries.insert(key.clone(), value.clone())),
            Op::Remove(key) => drop(entries.remove(key)),
            Op::Write(key, at, byte) => {
                if let Some(there) = entries.get_mut(key).and_then(|value| value.get_mut(*at)) {
                    *there = *byte;
                }
            }
            Op::Set(key, value) => {
                if let Some(there) = entries.get_mut(key) {
                    there.clone_from(value);
                }
            }
            Op::Add(key, delta) => {
                let there = entries.entry(key.clone()).or_insert_with(|| vec![0; 8]);
                let sum = i64::from_le_bytes(there[..8].try_into().expect("8 bytes"));
                *there = sum.wrapping_add(*delta).to_le_bytes().to_vec();
            }
        }
    }

    /// As [`run`](Self::run), in a transaction.
    fn run_in(&self, tx: &Transaction<'_>, table: &AnyTable) -> Result<()> {
        match self {
            Op::Put(key, value) => tx.table(table).put(key, value),
            Op::Remove(key) => tx.table(table).remove(key).map(drop),
            Op::Write(key, at, byte) => {
                let write = |value: &mut sapwood::ValueMut<'_>| {
                    if let Some(there) = value.get_mut(*at) {
                        *there = *byte;
                    }
                };
                tx.table(table).update(key, write).map(drop)
            }
            Op::Set(key, value) => {
                tx.table(table).update(key, |there| there.set(value))?.unwrap_or(Ok(()))
            }
            Op::Add(key, delta) => tx.table(table).add(key, *delta).map(drop),
        }
    }

    fn run(&self, table: &AnyTable) -> Result<()> {
        match self {
            Op::Put(key, value) => table.put(key, value),
            Op::Remove(key) => table.remove(key).map(drop),
            Op::Write(key, at, byte) => {
                let write = |value: &mut sapwood::ValueMut<'_>| {
                    if let Some(there) = value.get_mut(*at) {
                        *there = *byte;
                    }
                };
                table.update(key, write).map(drop)
            }
            Op::Set(key, value) => table.update(key, |there| there.set(value))?.unwrap_or(Ok(())),
            Op::Add(key, delta) => table.add(key, *delta).map(drop),
        }
    }
}

/// The rows that a change of an entry is taken as for the roll-up: their time, page and number, and how often they come.
fn rows(op: &Op) -> (i64, u8, i64, i64) {
    let day = 24 * 3_600_000;
    match op {
        Op::Put(key, value) | Op::Set(key, value) => {
            (i64::from(key[0] % 3) * day, key[1] % 4, value.len() as i64, 1)
        }
        Op::Remove(key) => (0, key[0] % 4, -1, 2),
        Op::Write(key, at, byte) => (i64::from(key[0] % 2) * day, *byte % 8, *at as i64, 3),
        Op::Add(_, delta) => (2 * day, 0, *delta, 1),
    }
}

/// The key of what the model has of how far rows were taken.
const OFFSET: &[u8] = b"offset";

fn number(entries: &Entries, key: &[u8], at: usize) -> i64 {
    let word = entries.get(key).map(|value| value[at..at + 8].try_into().expect("8 bytes"));
    word.map_or(0, i64::from_le_bytes)
}

/// What a batch of a change makes of the roll-up.
fn model_rows(op: &Op, entries: &mut Entries) {
    let (time, page, added, count) = rows(op);
    let key = [&time.to_be_bytes()[..], &[page]].concat();
    let (rows, sum) = (number(entries, &key, 0), number(entries, &key, 8));
    let value = [(rows + count).to_le_bytes(), (sum + count * added).to_le_bytes()].concat();
    entries.insert(key, value);
    let offset = number(entries, OFFSET, 0) + 1;
    entries.insert(OFFSET.to_vec(), offset.to_le_bytes().to_vec());
}

/// Brings the rows of a change, with the next offset.
fn ingest(db: &Db, op: &Op) -> Result<()> {
    let table = db.rollup_table(ROLLUP)?;
    let (time, page, added, count) = rows(op);
    let rows = 0..count as usize;
    let batch = RowBatch::new(rows.len())
        .column("time", Column::longs(rows.clone().map(|_| time)))
        .and_then(|batch| {
            batch.column("page", Column::texts(rows.clone().map(|_| page.to_string())))
        })
        .and_then(|batch| batch.column("added", Column::longs(rows.map(|_| added))));
    let offset = table.offsets().get("source").copied().unwrap_or(0) + 1;
    let told = table.ingest_from(&batch.expect("columns of one length"), &[("source", offset)])?;
    assert_eq!(told.processed, count as u64);
    Ok(())
}

/// What a roll-up has: for each day and page how many rows and their sum, and how far they were taken.
fn groups(db: &Db) -> Result<Entries> {
    let table = db.rollup_table(ROLLUP)?;
    let day = Granularity::parse("day").expect("known");
    let query = Query::group_by(["page"])
        .granularity(day)
        .aggregation(Aggregation::long_sum("rows", "rows"))
        .aggregation(Aggregation::long_sum("added", "added"));
    let long = |value: &Value<'_>| value.to_long().ok().flatten().expect("a number");
    let mut entries = Entries::new();
    for row in &table.query(&query)?.rows {
        let key = [&long(&row[0]).to_be_bytes()[..], &[long(&row[1]) as u8]].concat();
        let value = [long(&row[2]).to_le_bytes(), long(&row[3]).to_le_bytes()].concat();
        entries.insert(key, value);
    }
    if let Some(offset) = table.offsets().get("source") {
        entries.insert(OFFSET.to_vec(), offset.to_le_bytes().to_vec());
    }
    Ok(entries)
}

/// What the tables have.
pub(super) fn contents(db: &Db) -> Result<Tables> {
    let names = db.table_names().into_iter();
    let entries = |name: &String| match &**name {
        ROLLUP => groups(db),
        _ => entries(&db.table(name)?),
    };
    names.map(|name| entries(&name).map(|entries| (name, entries))).collect()
}

fn entries(table: &AnyTable) -> Result<Entries> {
    let mut entries = Entries::new();
    let walked = table.for_each(|key, value| {
        entries.insert(key.to_vec(), value.to_vec());
        ControlFlow::<()>::Continue(())
    });
    walked.map(|_| entries)
}

/// A database that is in use, and what should be in it.
pub(super) struct World {
    pub(super) disk: SimDisk,
    pub(super) setting: Setting,
    db: Option<Db>,
    pub(super) rng: Rng,
    pub(super) history: History,
    /// Whether time may pass: it is waited for what a thread does then.
    pub(super) has_time: bool,
    /// Whether the database may be opened again by a step.
    pub(super) may_reopen: bool,
    /// Whether the last step made or dropped a table, or one has opened the database: where that fails, a
    /// table may not open before the database is opened again.
    pub(super) is_about_tables: bool,
    has_reopened: bool,
}

impl World {
    /// Opens what is there, in which everything lasts.
    pub(super) fn open(disk: &SimDisk, setting: Setting, seed: u64) -> World {
        let db = setting.open(disk).expect("nothing fails");
        let history = History::of(contents(&db).expect("all can be read"));
        let rng = Rng::with_seed(seed);
        let (disk, db) = (disk.clone(), Some(db));
        World {
            disk,
            setting,
            db,
            rng,
            history,
            has_time: true,
            may_reopen: true,
            is_about_tables: false,
            has_reopened: false,
        }
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open")
    }

    /// What the tables have that outlive the database; none where an opening failed.
    pub(super) fn contents(&self) -> Option<Result<Tables>> {
        let mut contents = self.db.as_ref().map(contents);
        if let Some(Ok(tables)) = &mut contents {
            tables.remove(VOLATILE);
        }
        contents
    }

    /// Makes tables and fills some, so that one with a budget has entries on the disk alone.
    pub(super) fn prepare(&mut self) -> Result<()> {
        for name in NAMES {
            if self.rng.u8(..5) > 0 {
                self.create(name)?;
            }
        }
        for _ in 0..60 {
            let key = vec![self.rng.u8(..); 8];
            for (name, len) in [("cold", 1_500), ("cold8", 8), ("tree", 40)] {
                let op = Op::Put(key.clone(), vec![self.rng.u8(1..); len]);
                self.change(name, &op)?;
            }
        }
        self.db().sync()?;
        self.history.all_lasts();
        Ok(())
    }

    /// Notes what will be there if the call is done that comes next: a crash may come within.
    fn foresee(&mut self, name: &str, change: impl FnOnce(&mut Tables)) {
        if name != VOLATILE {
            let mut after = self.history.now().clone();
            change(&mut after);
            self.history.note(after);
        }
    }

    fn create(&mut self, name: &str) -> Result<()> {
        self.foresee(name, |after| drop(after.insert(name.to_owned(), Entries::new())));
        if let Err(error) = create(self.db(), name) {
            self.history.unmade.insert(name.to_owned());
            return Err(error);
        }
        self.table_changed(name);
        Ok(())
    }

    /// Ordered and hash tables are made and dropped for good, whatever the durability.
    fn table_changed(&mut self, name: &str) {
        let lasts = !is_tree(name) || self.setting.durability == Durability::Sync;
        if lasts && name != VOLATILE {
            self.history.all_lasts();
        }
    }

    fn change(&mut self, name: &str, op: &Op) -> Result<()> {
        if !self.db().table_names().iter().any(|there| there == name) {
            return Ok(());
        }
        self.foresee(name, |after| model(name, op, after.entry(name.to_owned()).or_default()));
        if name == ROLLUP {
            ingest(self.db(), op)?;
            if self.setting.durability == Durability::Sync {
                self.history.all_lasts();
            }
            return Ok(());
        }
        let mut table = self.db().table(name)?;
        let mut is_lasting = self.setting.durability == Durability::Sync;
        if !is_lasting && self.rng.u8(..8) == 0 && name != VOLATILE {
            table = table.with_durability(Durability::Sync);
            is_lasting = true;
        }
        op.run(&table)?;
        if is_lasting && name != VOLATILE {
            self.history.change_lasts();
        }
        Ok(())
    }

    /// Changes of some tables that go together: all or none.
    fn together(&mut self) -> Result<()> {
        let mut ops = Vec::new();
        let is_transaction = self.rng.bool();
        for name in self.db().table_names() {
            if name == ROLLUP && is_transaction {
                continue;
            }
            for _ in 0..self.rng.u8(..3) {
                ops.push((name.clone(), Op::random(&mut self.rng, is_fixed(&name))));
            }
        }
        let before = self.history.now().clone();
        self.history.note(after(&before, &ops));
        let db = self.db();
        // Opened before, so that nothing but changes is within.
        let open = |(name, _): &(String, Op)| match &**name {
            ROLLUP => Ok(None),
            name => db.table(name).map(Some),
        };
        let tables = ops.iter().map(open).collect::<Result<Vec<_>>>()?;
        let changes = match is_transaction {
            false => {
                let mut done = 0;
                let run = || -> Result<()> {
                    ops.iter().zip(&tables).try_for_each(|((_, op), table)| {
                        match table {
                            Some(table) => op.run(table)?,
                            None => ingest(db, op)?,
                        }
                        done += 1;
                        Ok(())
                    })
                };
                let told = db.together(run);
                if done < ops.len() {
                    self.is_done_in_part(before, &ops, done);
                }
                let (done, changes) = told?;
                done?;
                changes
            }
            true => {
                let tx = db.begin()?;
                for ((_, op), table) in ops.iter().zip(tables.iter().flatten()) {
                    op.run_in(&tx, table)?;
                }
                tx.commit()?
            }
        };
        if self.rng.bool() {
            changes.wait()?;
            self.history.all_lasts();
        }
        Ok(())
    }

    /// Of changes that go together one failed, which is made or not: those before it are made, and those behind it are not.
    fn is_done_in_part(&mut self, before: Tables, ops: &[(String, Op)], done: usize) {
        self.history.note(after(&before, &ops[..done]));
        self.history.note(after(&before, &ops[..=done]));
    }

    fn reopen(&mut self) -> Result<()> {
        let db = self.db.take().expect("open");
        match self.rng.bool() {
            true => {
                db.close()?;
                self.history.all_lasts();
            }
            false => drop(db),
        }
        self.db = Some(self.setting.open(&self.disk)?);
        // What the log refused before is not there any more.
        let found = contents(self.db())?;
        self.history.check(self.history.lasting, &found, "opened by a step");
        self.history.note(found);
        Ok(())
    }

    /// Drops the database and opens what is there.
    pub(super) fn open_again(&mut self) -> Result<()> {
        self.db = None;
        self.db = Some(self.setting.open(&self.disk)?);
        Ok(())
    }

    /// Does one thing.
    pub(super) fn step(&mut self) -> Result<()> {
        let name = NAMES[self.rng.usize(..NAMES.len())];
        let is_there = self.db().engine(name).is_some();
        let what = self.rng.u8(..100);
        self.has_reopened |= self.may_reopen && (22..25).contains(&what);
        self.is_about_tables = !is_there || (5..8).contains(&what) || self.has_reopened;
        match what {
            _ if !is_there => self.create(name)?,
            0..3 => {
                self.db().checkpoint()?;
                self.history.all_lasts();
            }
            3..5 => {
                self.db().sync()?;
                self.history.all_lasts();
            }
            5..8 => {
                self.foresee(name, |after| drop(after.remove(name)));
                self.db().drop_table(name)?;
                self.table_changed(name);
            }
            8..14 if name == ROLLUP => {
                let table = self.db().rollup_table(name)?;
                match self.rng.bool() {
                    true => drop(table.seal()?),
                    false => table.merge()?,
                }
            }
            8..14 => match self.db().table(name)?.resolve() {
                TableRef::Hash(table) if self.rng.u8(..3) == 0 => drop(table.compact(0.5)?),
                TableRef::Hash(table) => {
                    let cut = if self.rng.bool() { Cut::Full } else { Cut::Incremental };
                    table.checkpoint(cut)?;
                }
                _ => {}
            },
            14..22 => self.together()?,
            22..25 if self.may_reopen => self.reopen()?,
            25..28 if self.has_time => self.let_time_pass(),
            _ => {
                let op = Op::random(&mut self.rng, is_fixed(name));
                self.change(name, &op)?;
            }
        }
        Ok(())
    }

    /// After the interval everything lasts that was there before it.
    fn let_time_pass(&mut self) {
        let Durability::Interval(interval) = self.setting.durability else { return };
        let changes = self.db().changes();
        while !changes.are_durable() {
            // A thread may arrange its sleep only now.
            self.disk.advance(interval);
            std::thread::yield_now();
        }
        self.history.all_lasts();
    }
}
