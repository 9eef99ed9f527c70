//! The rows of a table, in batches, for any number of threads.

use std::ops::{Bound, ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sapwood_hashlog::Sweep;
use sapwood_sql::{Request, SourceResult};
use sapwood_wal::{Block, ReadAhead};

use super::blocks::{BlockColumns, LastTexts};
use super::ranges::Keys;
use super::table::{Form, TableSource};
use super::words::said;
use crate::ordered_table::{Place, Run, runs};
use crate::schema::{BATCH_ROWS, Batch, Cell, Projection, RowFormat, Scan, Sink, Strings, Vector};
use crate::{AnyTable, Direction, Error, OrderedTable, Result, TableRef};

/// Parts that a walk is cut into: more than threads, so that no thread waits long for the last.
const PARTS: usize = 32;

/// Keys that are looked up together.
const KEYS_A_PART: usize = 1_024;

/// A read of a table.
pub(super) struct TableScan<'a> {
    source: &'a TableSource<'a>,
    columns: Columns,
    with_ids: bool,
    parts: Vec<Part>,
    /// Of a hash table whose rows are all wanted.
    sweep: Option<Sweep<'a>>,
    /// Of a table that is read in its snapshot.
    ahead: Option<ReadAhead<'a>>,
    next: AtomicUsize,
}

/// Which columns are wanted, and how an entry has them.
enum Columns {
    Rows(Wanted),
    /// 0 is the key, 1 the value.
    Bytes(Vec<usize>),
}

/// Columns of rows.
pub(super) struct Wanted {
    pub(super) format: Arc<RowFormat>,
    pub(super) columns: Vec<usize>,
    projection: Projection,
}

/// What one thread does at a time.
enum Part {
    Range(Vec<u8>, Option<Vec<u8>>),
    Keys(Vec<Vec<u8>>),
    /// Of the snapshot that has the table.
    Block(usize),
    /// Of the log of a hash table.
    Log(usize, usize),
}

impl<'a> TableScan<'a> {
    pub(super) fn new(source: &'a TableSource<'a>, request: &Request, keys: Keys) -> Result<Self> {
        let columns = match &source.form {
            Form::Rows(format) => {
                let (format, columns) = (Arc::clone(format), request.columns.clone());
                let projection = format.project(&columns);
                Columns::Rows(Wanted { format, columns, projection })
            }
            Form::Bytes => Columns::Bytes(request.columns.clone()),
        };
        let mut sweep = None;
        let parts = match keys {
            Keys::Every => match source.table.resolve() {
                TableRef::Hash(table) => {
                    sweep = Some(table.named(table.log().sweep())?);
                    (0..PARTS).map(|part| Part::Log(part, PARTS)).collect()
                }
                _ => in_parts(&source.table, Vec::new(), None)?,
            },
            Keys::Listed(keys) => {
                let parts = keys.chunks(KEYS_A_PART);
                parts.map(|keys| Part::Keys(keys.to_vec())).collect()
            }
            Keys::Ranges(ranges) => match &ranges[..] {
                [(begin, limit)] => in_parts(&source.table, begin.clone(), limit.clone())?,
                _ => ranges.into_iter().map(|(begin, limit)| Part::Range(begin, limit)).collect(),
            },
        };
        let with_ids = request.with_ids;
        let ahead = match (&parts[..], source.table.resolve()) {
            ([Part::Block(first), .., Part::Block(last)], TableRef::Ordered(table)) => {
                let stored = table.stored_entries().expect("it has blocks");
                Some(stored.read_ahead(*first..*last + 1)?)
            }
            _ => None,
        };
        let next = AtomicUsize::new(0);
        Ok(TableScan { source, columns, with_ids, parts, sweep, ahead, next })
    }
}

/// A range of an ordered or a tree table, cut at keys that part it evenly.
fn in_parts(table: &AnyTable, begin: Vec<u8>, limit: Option<Vec<u8>>) -> Result<Vec<Part>> {
    let bounds = (Bound::Included(&begin[..]), upper(limit.as_deref()));
    let points = match table.resolve() {
        TableRef::Ordered(table) => match table.in_place() {
            Some(stored) => {
                let blocks = stored.blocks(bounds.0, bounds.1)?;
                return Ok(blocks.map(Part::Block).collect());
            }
            None => table.map()?.split_points(bounds, PARTS).keys,
        },
        TableRef::Tree(table) => table.named(table.tree().split_points(bounds, PARTS))?.keys,
        TableRef::Hash(_) => unreachable!("a hash table has no ranges"),
    };
    let begins = std::iter::once(begin).chain(points.iter().cloned());
    let limits = points.iter().cloned().map(Some).chain([limit]);
    Ok(begins.zip(limits).map(|(begin, limit)| Part::Range(begin, limit)).collect())
}

fn upper(limit: Option<&[u8]>) -> Bound<&[u8]> {
    limit.map_or(Bound::Unbounded, Bound::Excluded)
}

impl Scan for TableScan<'_> {
    fn threads_max(&self) -> usize {
        self.parts.len()
    }

    fn work(&self, sink: &mut Sink<'_>) -> SourceResult<()> {
        self.work_through(sink).map_err(said)
    }
}

impl TableScan<'_> {
    fn work_through(&self, sink: &mut Sink<'_>) -> Result<()> {
        let mut last_texts = LastTexts::new();
        loop {
            // Relaxed: each number is taken once, and that is all it says.
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = self.parts.get(number) else { return Ok(()) };
            let mut batches = Batches::of(self, (number as u64) << 32);
            let table = &self.source.table;
            let flow = match part {
                Part::Range(begin, limit) => {
                    let range = (Bound::Included(&begin[..]), upper(limit.as_deref()));
                    table.scan(range, Direction::Ascending, |key, value| {
                        batches.push(key, value, sink)
                    })?
                }
                Part::Keys(keys) => {
                    let mut flow = ControlFlow::Continue(());
                    for key in keys {
                        let found = table.get_with(key, |value| batches.push(key, value, sink))?;
                        flow = found.unwrap_or(ControlFlow::Continue(()));
                        if flow.is_break() {
                            break;
                        }
                    }
                    flow
                }
                Part::Block(block) => {
                    let TableRef::Ordered(ordered) = table.resolve() else {
                        unreachable!("it has a snapshot")
                    };
                    self.ahead.iter().for_each(|ahead| ahead.begin(*block));
                    batches.push_block(ordered, *block, &mut last_texts, sink)?
                }
                Part::Log(part, parts) => {
                    let TableRef::Hash(hash) = table.resolve() else {
                        unreachable!("it has a log")
                    };
                    let sweep = self.sweep.as_ref().expect("it was begun");
                    hash.named(
                        sweep.scan_part(*part, *parts, |key, value| batches.push(key, value, sink)),
                    )?
                }
            };
            if let ControlFlow::Break(Ended::Error(error)) = flow {
                return Err(*error);
            }
            if flow.is_break() || batches.flush(sink).is_break() {
                return Ok(());
            }
        }
    }
}

/// Why a walk ends early.
enum Ended {
    /// No more is wanted.
    Enough,
    Error(Box<Error>),
}

/// Entries that become batches.
struct Batches<'a> {
    scan: &'a TableScan<'a>,
    number: u64,
    batch: Batch,
}

impl<'a> Batches<'a> {
    fn of(scan: &'a TableScan<'a>, number: u64) -> Self {
        let columns = match &scan.columns {
            Columns::Rows(Wanted { format, columns, .. }) => {
                let kind = |column: usize| &format.schema().columns()[column].kind;
                columns.iter().map(|&column| Vector::of_type(kind(column))).collect()
            }
            Columns::Bytes(columns) => {
                let vector = |_| Vector::of_type(&crate::schema::Type::Bytes);
                columns.iter().map(vector).collect()
            }
        };
        let ids = scan.with_ids.then(Strings::new);
        Batches { scan, number, batch: Batch { len: 0, columns, ids } }
    }

    fn push(&mut self, key: &[u8], value: &[u8], sink: &mut Sink<'_>) -> ControlFlow<Ended> {
        let columns = &mut self.batch.columns;
        match &self.scan.columns {
            Columns::Rows(wanted) => {
                let read = wanted
                    .projection
                    .read(key, value, &mut |at, cell| columns[at].push_cell(&cell));
                if let Err(cause) = read {
                    let table = self.scan.source.table.name().into();
                    let error = Error::Schema { table, cause };
                    return ControlFlow::Break(Ended::Error(Box::new(error)));
                }
            }
            Columns::Bytes(wanted) => {
                for (vector, &column) in columns.iter_mut().zip(wanted) {
                    let bytes = if column == 0 { key } else { value };
                    vector.push_cell(&Cell::Bytes(bytes.into()));
                }
            }
        }
        if let Some(ids) = &mut self.batch.ids {
            ids.push(key);
        }
        self.batch.len += 1;
        if self.batch.len == BATCH_ROWS && self.flush(sink).is_break() {
            return ControlFlow::Break(Ended::Enough);
        }
        ControlFlow::Continue(())
    }

    /// Pushes the entries of a block of the table's snapshot.
    fn push_block(
        &mut self,
        table: &OrderedTable,
        number: usize,
        last_texts: &mut LastTexts,
        sink: &mut Sink<'_>,
    ) -> Result<ControlFlow<Ended>> {
        let stored = table.stored_entries().expect("it had a snapshot when the scan began");
        let all = (Bound::Unbounded, Bound::Unbounded);
        let (block, changes) = match stored.place_to_scan(number)? {
            Place::InPlace(block, changes) => (block, changes),
            Place::InMemory => {
                let visit = |key: &[u8], value: &[u8]| self.push(key, value, sink);
                return stored.scan_loaded(number, all, Direction::Ascending, visit);
            }
        };
        let by_column = match &self.scan.columns {
            Columns::Rows(wanted) => BlockColumns::of(wanted, table, &block, last_texts)?,
            Columns::Bytes(_) => None,
        };
        let mut refused = Ok(());
        let flow =
            runs(&block, changes, all, Direction::Ascending, |run| match (run, &by_column) {
                (Run::Changed(key, value), _) => Ok(self.push(key, value, sink)),
                (Run::Unchanged(rows), None) => self.push_entries(&block, rows, sink),
                (Run::Unchanged(rows), Some(by_column)) => {
                    self.push_columns((&block, by_column), rows, sink).or_else(|error| {
                        refused = Err(error);
                        Ok(ControlFlow::Break(Ended::Enough))
                    })
                }
            });
        let flow = stored.named(flow)?;
        refused.map(|()| flow)
    }

    /// Pushes entries of a block, one by one.
    fn push_entries(
        &mut self,
        block: &Block,
        entries: Range<usize>,
        sink: &mut Sink<'_>,
    ) -> sapwood_wal::Result<ControlFlow<Ended>> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for entry in entries {
            block.key(entry, &mut key)?;
            block.value(entry, &mut value)?;
            if let ControlFlow::Break(ended) = self.push(&key, &value, sink) {
                return Ok(ControlFlow::Break(ended));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Pushes rows of a block by their columns.
    fn push_columns(
        &mut self,
        (block, by_column): (&Block, &BlockColumns<'_>),
        all: Range<usize>,
        sink: &mut Sink<'_>,
    ) -> Result<ControlFlow<Ended>> {
        let mut key = Vec::new();
        let mut from = all.start;
        while from < all.end {
            let rows = from..all.end.min(from + BATCH_ROWS - self.batch.len);
            by_column.push(rows.clone(), &mut self.batch.columns)?;
            if let Some(ids) = &mut self.batch.ids {
                for entry in rows.clone() {
                    by_column.named(block.key(entry, &mut key))?;
                    ids.push(&key);
                }
            }
            self.batch.len += rows.len();
            if self.batch.len == BATCH_ROWS && self.flush(sink).is_break() {
                return Ok(ControlFlow::Break(Ended::Enough));
            }
            from = rows.end;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Shows what there is.
    fn flush(&mut self, sink: &mut Sink<'_>) -> ControlFlow<()> {
        if self.batch.len == 0 {
            return ControlFlow::Continue(());
        }
        let flow = sink(self.number, &self.batch);
        self.number += 1;
        self.batch.len = 0;
        self.batch.columns.iter_mut().for_each(Vector::clear);
        if let Some(ids) = &mut self.batch.ids {
            ids.clear();
        }
        flow
    }
}
