//! Ingestion: a batch of rows becomes keys and states, which merge into the facts.
//!
//! A batch goes column by column: times, transforms and filters say which rows count; each dimension
//! becomes numbers; numbers become keys; rows of one key fold into one state; and the states go into the
//! map in the order of their keys, with the searches of several under way at once.

mod metrics;
mod rows;

use std::cmp::Ordering;
use std::sync::Arc;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::input::batch::{Column, RowBatch, Values, is_null, text};
use crate::live::dictionary::{Cache, NULL, number_of};
use crate::live::facts::{DimensionColumn, Facts, Reserved};
use crate::live::history::Batch;
use crate::live::key;
use crate::log;
use crate::report::Ingested;
use crate::rollup::{Rollup, Taking};
use crate::schema::{Dimension, DimensionKind, Discovery, TIME_COLUMN};
use crate::time::granularity::Buckets;
use crate::value::canonical;
use metrics::{Inputs, States};
use rows::Rows;

/// Brings rows of one thread into a [`Rollup`].
///
/// It remembers the numbers of texts that it has met, so that it need not ask for them: keep it for
/// batch after batch.
#[derive(Debug)]
pub struct Writer {
    rollup: Arc<Rollup>,
    /// The facts whose dictionaries the caches know.
    facts: Arc<Facts>,
    /// By dimension.
    caches: Vec<Cache>,
    buckets: Buckets,
    now: Option<i64>,
}

/// The values of a dimension in the rows of a batch.
enum Coded {
    Ids(Vec<u32>),
    Longs(Vec<Option<i64>>),
    Doubles(Vec<Option<f64>>),
    /// The batch has no such column.
    Absent,
}

/// The keys of the rows of a batch that count, each once.
struct Keys {
    bytes: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
    /// The first bytes of each key: most keys are no longer, and numbers compare faster than bytes.
    heads: Vec<u128>,
    /// Each row that counts, and the number of its key.
    rows: Vec<(u32, u32)>,
    /// Whether each key is above the one before.
    ascending: bool,
}

/// Bytes of a head.
const HEAD_BYTES: usize = 16;

/// The first bytes of a key, zeros behind its end. Heads have the order of keys, but that of different
/// keys may be equal.
#[inline]
fn head(key: &[u8]) -> u128 {
    match key.first_chunk::<HEAD_BYTES>() {
        Some(head) => u128::from_be_bytes(*head),
        None => {
            let mut head = [0; HEAD_BYTES];
            head[..key.len()].copy_from_slice(key);
            u128::from_be_bytes(head)
        }
    }
}

/// The hash of a key with a head.
#[inline]
fn hash(key: &[u8], head: u128) -> u64 {
    if key.len() > HEAD_BYTES {
        return xxh3_64(key);
    }
    // Both halves of a product, as in wyhash.
    let (high, low) = ((head >> 64) as u64, head as u64);
    let product =
        u128::from(high ^ 0x9E37_79B9_7F4A_7C15) * u128::from(low ^ 0xE703_7ED1_A0B4_28DB);
    (product >> 64) as u64 ^ product as u64
}

/// How the keys of a batch are found again.
enum Found {
    /// Each is another, without a look.
    Never,
    /// So far each was above the one before, or equal to it: rows mostly come in the order of their
    /// times.
    Ascending,
    /// By the hash of a key: its number.
    Table(HashTable<(u64, u32)>),
}

impl Found {
    fn new(rollup: bool) -> Found {
        if rollup { Found::Ascending } else { Found::Never }
    }

    /// The number of the key whose bytes begin at `start`, if it is not new.
    #[inline]
    fn find(&mut self, keys: &Keys, start: usize, head: u128) -> Option<u32> {
        let this = &keys.bytes[start..];
        if let Found::Ascending = self {
            let last = keys.ends.len().checked_sub(1)?;
            match keys.heads[last].cmp(&head).then_with(|| keys.get(last).cmp(this)) {
                Ordering::Less => return None,
                Ordering::Equal => return Some(last as u32),
                Ordering::Greater => *self = Found::Table(keys.table()),
            }
        }
        let Found::Table(table) = self else { return None };
        let hash = hash(this, head);
        let is_same = |number: usize| {
            let begin = if number == 0 { 0 } else { keys.ends[number - 1] };
            let len = keys.ends[number] - begin;
            let is_short = len <= HEAD_BYTES;
            keys.heads[number] == head
                && len == this.len()
                && (is_short || &keys.bytes[begin..begin + len] == this)
        };
        let found = table.find(hash, |&(known, number)| known == hash && is_same(number as usize));
        if let Some(&(_, number)) = found {
            return Some(number);
        }
        table.insert_unique(hash, (hash, keys.ends.len() as u32), |&(hash, _)| hash);
        None
    }
}

impl Keys {
    fn get(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[start..self.ends[number]]
    }

    /// The numbers of the keys, by their hashes.
    #[cold]
    fn table(&self) -> HashTable<(u64, u32)> {
        let mut table = HashTable::with_capacity(self.rows.capacity());
        for (number, &head) in self.heads.iter().enumerate() {
            let hash = hash(self.get(number), head);
            table.insert_unique(hash, (hash, number as u32), |&(hash, _)| hash);
        }
        table
    }

    /// The numbers of the keys, in their order.
    fn sorted(&self) -> Vec<u32> {
        if self.ascending {
            return (0..self.ends.len() as u32).collect();
        }
        let mut heads: Vec<(u128, u32)> = self.heads.iter().copied().zip(0..).collect();
        heads.sort_unstable_by(|left, right| {
            let by_bytes = || self.get(left.1 as usize).cmp(self.get(right.1 as usize));
            left.0.cmp(&right.0).then_with(by_bytes)
        });
        heads.into_iter().map(|(_, number)| number).collect()
    }
}

/// Most rows that are folded at a time.
const ROWS_MAX: usize = u32::MAX as usize;

impl Writer {
    /// A writer that has met nothing yet.
    pub fn new(rollup: &Arc<Rollup>) -> Writer {
        let schema = rollup.schema();
        // Facts of one time in all have that of their segment.
        let granularity = match schema.query_granularity.is_all() {
            true => schema.segment_granularity.clone(),
            false => schema.query_granularity.clone(),
        };
        Writer {
            rollup: Arc::clone(rollup),
            facts: rollup.live(),
            caches: Vec::new(),
            buckets: Buckets::new(granularity),
            now: None,
        }
    }

    /// Takes this for the present, in milliseconds, when it judges whether rows are late or early; else
    /// the system's clock says it.
    pub fn at(&mut self, now: i64) -> &mut Writer {
        self.now = Some(now);
        self
    }

    /// Folds rows into the facts, and tells what became of each. Queries see all of the batch or
    /// nothing of it.
    ///
    /// # Errors
    /// [`Error::Full`] if the facts would pass their limits though all others were sealed: no row of the batch is
    /// in. [`Error::Input`] if it has more than 2^32 rows or would make too many dimensions. [`Error::Io`] if the
    /// log refuses it, or facts cannot be sealed; no row is in. [`Error::Facts`] if the system has no memory; then
    /// some rows may be in, and an index with a log takes no more ([`Error::Failed`]).
    pub fn ingest(&mut self, batch: &RowBatch) -> Result<Ingested> {
        self.ingest_from(batch, &[])
    }

    /// As [`ingest`](Self::ingest), with the offset that each source has behind these rows: they are in together
    /// or not at all, also after a crash. A batch whose offsets were taken before is not taken again, so that
    /// after an error, or a crash, its rows can be brought once more.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use sapwood::rollup::{Metric, Rollup, RowBatch, Schema, Writer};
    ///
    /// let rollup = Arc::new(Rollup::new(Schema::new("time").metric(Metric::count("events")))?);
    /// let (batch, _) = RowBatch::from_json_lines(br#"{"time": "2013-01-01"}"#);
    /// let mut writer = Writer::new(&rollup);
    /// assert_eq!(writer.ingest_from(&batch, &[("partition 0", 1)])?.processed, 1);
    /// assert_eq!(writer.ingest_from(&batch, &[("partition 0", 1)])?.repeated, 1);
    /// assert_eq!(rollup.offsets()["partition 0"], 1);
    /// # Ok::<(), sapwood::rollup::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`ingest`](Self::ingest); [`Error::Input`] if some of its offsets were taken before and others not.
    pub fn ingest_from(&mut self, batch: &RowBatch, offsets: &[(&str, u64)]) -> Result<Ingested> {
        self.rollup.expect_sound()?;
        let now = self.now.unwrap_or_else(crate::time::clock);
        if !offsets.is_empty() && self.rollup.is_taken(offsets)? {
            return Ok(repeated(batch));
        }
        let record = || match self.rollup.is_logged() {
            true => log::encode(batch, now, offsets).map(Some),
            false => Ok(None),
        };
        let mut record = record()?;
        let taking = Taking::New { record: record.as_mut(), offsets };
        match self.take(batch, now, taking, Limits::Held) {
            Err(Error::Full { .. }) => {
                self.rollup.make_room(&self.facts)?;
                let taking = Taking::New { record: record.as_mut(), offsets };
                self.take(batch, now, taking, Limits::Held)
            }
            taken => taken,
        }
    }

    /// Takes a batch again that the log of an earlier life tells, unless it is in a segment already. Records are told
    /// in their order, by one thread, before the index has its log; limits of live facts do not hold.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; [`Error::Facts`] if the system has no memory.
    pub fn redo(&mut self, record: &[u8]) -> Result<()> {
        self.redo_in_turn(record, &mut || ())
    }

    /// As [`redo`](Self::redo), by several threads with a writer each, which read batches and fold them beside each
    /// other. `turn` waits until all records before this one are in; it is called, maybe more than once, before
    /// the first step that depends on them. So the facts are those of one thread, bit for bit.
    ///
    /// # Errors
    /// As of [`redo`](Self::redo); `turn` may not have been called.
    pub fn redo_in_turn(&mut self, record: &[u8], turn: &mut dyn FnMut()) -> Result<()> {
        let record = log::decode(record).map_err(|error| error.in_file("a record of the log"))?;
        let log::Record { number, now, offsets, rows } = record;
        if self.rollup.has_sealed(number) {
            return Ok(());
        }
        let taking = Taking::Again { number, offsets: &offsets, turn };
        self.take(&rows, now, taking, Limits::Passed).map(drop)
    }

    fn take(
        &mut self,
        batch: &RowBatch,
        now: i64,
        mut taking: Taking<'_>,
        limits: Limits,
    ) -> Result<Ingested> {
        if batch.rows() > ROWS_MAX {
            let why = format!("a batch of {} rows: split it into smaller ones", batch.rows());
            return Err(Error::Input(why));
        }
        let rollup = Arc::clone(&self.rollup);
        loop {
            let facts = rollup.live();
            if !Arc::ptr_eq(&facts, &self.facts) {
                self.facts = Arc::clone(&facts);
                self.caches.clear();
            }
            let mut told = Ingested::default();
            let rows = Rows::new(&rollup, batch, now, &mut told);
            // The numbers of rows and the order of dimensions that were found are in keys.
            if !rollup.schema().rollup || rollup.schema().discovery != Discovery::Off {
                taking.wait_for_turn();
            }
            let columns = self.columns(&rows)?;
            let coded = self.code(&columns, &rows, &mut told)?;
            let keys = self.keys(&coded, &rows);
            let inputs = Inputs::new(&rollup, &rows, &mut told);
            let mut states = inputs.fold(&keys.rows, keys.ends.len());
            states.encode(rollup.layout());
            let folded = Folded { keys: &keys, inputs: &inputs, states: &states };
            // Sums of doubles, sketches, and which rows leave the range of a sum: all depend on what came before.
            taking.wait_for_turn();
            // No batch comes once the facts are closed: this one then goes to those after them.
            let Some(within) = facts.batch() else { continue };
            let room = match limits {
                Limits::Held => self.expect_room(&facts, &folded)?,
                Limits::Passed => None,
            };
            if !rollup.take_down(taking)? {
                return Ok(repeated(batch));
            }
            let applied = self.apply(&within, &folded, &mut told);
            drop(room);
            applied.inspect_err(|error| rollup.fail(error))?;
            rollup.count(&told);
            return Ok(told);
        }
    }

    /// The dimensions, with those that the batch is the first to have.
    fn columns(&mut self, rows: &Rows<'_>) -> Result<Arc<Vec<DimensionColumn>>> {
        let schema = self.rollup.schema();
        let mut columns = self.facts.columns();
        if schema.discovery != Discovery::Off {
            let is_known = |name: &str| {
                name == schema.timestamp.column
                    || name == TIME_COLUMN
                    || schema.exclusions.iter().any(|known| known == name)
                    || columns.iter().any(|known| known.name == name)
                    || schema
                        .metrics
                        .iter()
                        .any(|metric| metric.name == name || metric.field.as_deref() == Some(name))
            };
            let found: Vec<Dimension> = rows
                .columns()
                .filter(|(name, column)| !name.is_empty() && !is_known(name) && has_values(column))
                .map(|(name, column)| Dimension {
                    name: name.to_owned(),
                    kind: match (&column.0, schema.discovery) {
                        (Values::Longs { .. }, Discovery::Typed) => DimensionKind::Long,
                        (Values::Doubles { .. }, Discovery::Typed) => DimensionKind::Double,
                        _ => DimensionKind::Text,
                    },
                })
                .collect();
            if !found.is_empty() {
                self.facts.discover(&found)?;
                columns = self.facts.columns();
            }
        }
        self.caches.resize_with(columns.len(), Cache::default);
        Ok(columns)
    }

    /// The values of each dimension, those of texts as their numbers.
    fn code(
        &mut self,
        columns: &[DimensionColumn],
        rows: &Rows<'_>,
        told: &mut Ingested,
    ) -> Result<Vec<Coded>> {
        let mut coded = Vec::with_capacity(columns.len());
        for (dimension, cache) in columns.iter().zip(&mut self.caches) {
            let Some(column) = rows.find(&dimension.name) else {
                coded.push(Coded::Absent);
                continue;
            };
            let dictionary = &dimension.dictionary;
            coded.push(match (dimension.kind, &column.0) {
                (DimensionKind::Text, Values::Texts { bytes, ends, nulls }) => {
                    let mut ids = vec![NULL; ends.len()];
                    for &row in rows.kept() {
                        let row = row as usize;
                        if !is_null(nulls, row) {
                            let text = text(bytes, ends, row).as_bytes();
                            ids[row] = cache.intern(dictionary, text)?;
                        }
                    }
                    Coded::Ids(ids)
                }
                (DimensionKind::Text, _) => {
                    let mut ids = vec![NULL; column.len()];
                    for &row in rows.kept() {
                        let mut intern = |text: &[u8]| cache.intern(dictionary, text);
                        ids[row as usize] = number_of(&column.value(row as usize), &mut intern)?;
                    }
                    Coded::Ids(ids)
                }
                (DimensionKind::Long, _) => Coded::Longs(rows.numbers(
                    &dimension.name,
                    column,
                    |value| value.to_long(),
                    told,
                )),
                (DimensionKind::Double, _) => Coded::Doubles(rows.numbers(
                    &dimension.name,
                    column,
                    |value| value.to_double(),
                    told,
                )),
            });
        }
        Ok(coded)
    }

    /// The keys of the rows that count. With roll-up, rows that agree have one.
    fn keys(&mut self, coded: &[Coded], rows: &Rows<'_>) -> Keys {
        let kept = rows.kept();
        let rollup = self.rollup.schema().rollup;
        let mut number = if rollup { 0 } else { self.facts.take_numbers(kept.len()) };
        let mut keys = Keys {
            bytes: Vec::with_capacity(kept.len() * 16),
            ends: Vec::with_capacity(if rollup { kept.len() / 4 } else { kept.len() }),
            heads: Vec::with_capacity(if rollup { kept.len() / 4 } else { kept.len() }),
            rows: Vec::with_capacity(kept.len()),
            ascending: false,
        };
        let mut found = Found::new(rollup);
        for &row in kept {
            let start = keys.bytes.len();
            key::push_time(&mut keys.bytes, self.buckets.start(rows.time(row as usize)));
            if !rollup {
                key::push_long(&mut keys.bytes, number);
                number += 1;
            }
            let mut end = keys.bytes.len();
            for coded in coded {
                if push_part(&mut keys.bytes, coded, row as usize) {
                    end = keys.bytes.len();
                }
            }
            // Nulls at the end are left out.
            keys.bytes.truncate(end);
            let head = head(&keys.bytes[start..]);
            match found.find(&keys, start, head) {
                Some(number) => {
                    keys.bytes.truncate(start);
                    keys.rows.push((row, number));
                }
                None => {
                    keys.rows.push((row, keys.ends.len() as u32));
                    keys.ends.push(keys.bytes.len());
                    keys.heads.push(head);
                }
            }
        }
        keys.ascending = matches!(found, Found::Ascending);
        keys
    }

    /// Room for the facts that a batch may add.
    fn expect_room<'f>(
        &self,
        facts: &'f Facts,
        folded: &Folded<'_>,
    ) -> Result<Option<Reserved<'f>>> {
        let Folded { keys, states, .. } = *folded;
        let limits = &self.rollup.schema().limits;
        let numbers = || 0..keys.ends.len();
        if limits.bytes_max.is_some() {
            let bytes = numbers()
                .map(|number| keys.get(number).len() + states.get(number).len() + RECORD_BYTES);
            self.rollup.expect_room(facts, bytes.sum::<usize>() as u64)?;
        }
        let Some(max) = limits.facts_max else { return Ok(None) };
        let all: Vec<&[u8]> = numbers().map(|number| keys.get(number)).collect();
        facts.reserve(&all, max).map(Some)
    }

    /// Merges the states of the batch into the facts.
    fn apply(&self, batch: &Batch<'_>, folded: &Folded<'_>, told: &mut Ingested) -> Result<()> {
        let (rollup, facts) = (&*self.rollup, &*self.facts);
        let layout = &**rollup.layout();
        let Folded { keys, inputs, states } = *folded;
        // Facts of one batch lie mostly in few chunks: neighbours find theirs in the cache.
        let order = keys.sorted();
        let entries: Vec<(&[u8], &[u8])> = order
            .iter()
            .filter(|&&number| !states.is_overflowed(number))
            .map(|&number| (keys.get(number as usize), states.get(number as usize)))
            .collect();
        let numbers: Vec<u32> = match states.any_overflowed() {
            false => order,
            true => order.into_iter().filter(|&number| !states.is_overflowed(number)).collect(),
        };
        let mut refused: Vec<u32> = states.overflowed().collect();
        let new = facts.merge(batch, layout, &entries, |index, _| refused.push(numbers[index]))?;
        told.new_facts += new as u64;
        told.processed = keys.rows.len() as u64;
        if refused.is_empty() {
            return Ok(());
        }
        // Not all rows of these facts fit: as many are taken as do, one by one.
        refused.sort_unstable();
        for &(row, number) in &keys.rows {
            if refused.binary_search(&number).is_err() {
                continue;
            }
            let mut state = inputs.fold(&[(row, 0)], 1);
            state.encode(layout);
            let key = keys.get(number as usize);
            match facts.merge_one(batch, layout, key, state.get(0))? {
                Ok(upsert) => {
                    told.new_facts += u64::from(upsert == sapwood_engine::Upsert::Inserted);
                }
                Err(overflow) => {
                    told.processed -= 1;
                    told.processed_with_error -= u64::from(inputs.has_error(row));
                    told.overflowed += 1;
                    let metric = &rollup.schema().metrics[overflow.metric].name;
                    told.sample(row as usize, metric, || {
                        "the figure of its fact would leave the range of its type".to_owned()
                    });
                }
            }
        }
        Ok(())
    }
}

/// A batch that is folded, and in no fact yet.
struct Folded<'f> {
    keys: &'f Keys,
    inputs: &'f Inputs<'f>,
    states: &'f States,
}

/// Whether a batch has to fit the limits of live facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limits {
    Held,
    Passed,
}

/// What became of a batch that was taken before.
fn repeated(batch: &RowBatch) -> Ingested {
    Ingested { repeated: batch.rows() as u64, ..Ingested::default() }
}

/// About what a fact takes in the map beside its key and its state.
const RECORD_BYTES: usize = 48;

/// Appends a part of a key; false if it is null.
#[inline]
fn push_part(key: &mut Vec<u8>, coded: &Coded, row: usize) -> bool {
    match coded {
        Coded::Ids(ids) => {
            key::push_id(key, ids[row]);
            return ids[row] != NULL;
        }
        Coded::Longs(longs) => {
            if let Some(value) = longs[row] {
                key::push_long(key, value);
                return true;
            }
        }
        Coded::Doubles(doubles) => {
            if let Some(value) = doubles[row] {
                key::push_double(key, canonical(value));
                return true;
            }
        }
        Coded::Absent => {}
    }
    key::push_null(key);
    false
}

fn has_values(column: &Column) -> bool {
    (0..column.len()).any(|row| !column.value(row).is_null())
}
