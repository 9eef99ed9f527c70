//! The facts of a roll-up as a source of rows.

use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicUsize, Ordering};

use sapwood_sql::{Change, Request, Source, SourceResult};

use crate::RollupTable;
use crate::rollup::{FactKind, FactRow, FactRows, Interval, Value as Figure};
use crate::schema::{
    BATCH_ROWS, Batch, Data, Precision, Scan, Sink, SourceColumn, Type, Value, Vector,
};

/// A roll-up, whose rows are its facts.
pub(super) struct RollupSource {
    table: RollupTable,
    columns: Vec<SourceColumn>,
}

impl RollupSource {
    pub(super) fn new(table: RollupTable) -> RollupSource {
        let columns = table.rollup().fact_fields().into_iter().map(|field| SourceColumn {
            kind: match field.kind {
                FactKind::Time => Type::Timestamp(Precision::Millis),
                FactKind::Long => Type::Int(64),
                FactKind::Double => Type::F64,
                _ => Type::Text,
            },
            nullable: field.kind != FactKind::Time,
            name: field.name,
        });
        RollupSource { columns: columns.collect(), table }
    }

    /// The columns as schemas write them.
    pub(super) fn described(&self) -> String {
        let columns = self.columns.iter().map(|column| {
            let SourceColumn { name, kind, nullable } = column;
            format!("{name}:{kind}{}", if *nullable { "?" } else { "" })
        });
        columns.collect::<Vec<_>>().join(", ")
    }

    /// The times of the facts that are wanted, as far as that is known.
    fn interval(&self, request: &Request) -> Interval {
        let ticks = |value: &Value<'_>| match value {
            Value::Timestamp { ticks, .. } => Some(*ticks),
            _ => None,
        };
        let keys = &request.keys;
        let mut interval = Interval::ETERNITY;
        let mut from = |time: i64| interval.start = interval.start.max(time);
        match (&keys.equal[..], &keys.range) {
            ([times, ..], _) => {
                let times: Option<Vec<i64>> = times.iter().map(ticks).collect();
                match times.map(|times| (times.iter().min().copied(), times.into_iter().max())) {
                    Some((Some(first), Some(last))) => {
                        from(first);
                        interval.end = interval.end.min(last.saturating_add(1));
                    }
                    // No fact has such a time.
                    Some(_) => interval.end = interval.start,
                    None => {}
                }
            }
            ([], Some((begin, end))) => {
                if let Bound::Included(time) | Bound::Excluded(time) = begin
                    && let Some(time) = ticks(time)
                {
                    from(time);
                }
                if let Bound::Included(time) | Bound::Excluded(time) = end
                    && let Some(time) = ticks(time)
                {
                    interval.end = interval.end.min(time.saturating_add(1));
                }
            }
            ([], None) => {}
        }
        interval
    }
}

impl Source for RollupSource {
    fn columns(&self) -> &[SourceColumn] {
        &self.columns
    }

    fn key_columns(&self) -> &[usize] {
        &[0]
    }

    fn rows_estimate(&self) -> Option<u64> {
        let stats = self.table.stats();
        Some(stats.facts + stats.segment_facts)
    }

    fn explain(&self, request: &Request) -> String {
        let (name, columns) = (self.table.name(), request.columns.len());
        let columns = format!("{columns} of {} columns", self.columns.len());
        match self.interval(request) {
            Interval::ETERNITY => format!("every fact of {name} (roll-up): {columns}"),
            interval => format!("facts of {name} (roll-up) of {interval}: {columns}"),
        }
    }

    fn scan<'a>(&'a self, request: &Request) -> SourceResult<Box<dyn Scan + 'a>> {
        let names = request.columns.iter().map(|&column| &self.columns[column]);
        Ok(Box::new(RollupScan {
            columns: names.collect(),
            facts: self.table.rollup().facts(),
            interval: self.interval(request),
            next: AtomicUsize::new(0),
        }))
    }

    fn change(&self) -> SourceResult<&dyn Change> {
        Err("facts of a roll-up are not changed one by one: rows are brought by `sapwood ingest` or \
             `RollupTable::ingest`"
            .to_owned())
    }
}

/// A read of facts.
struct RollupScan<'a> {
    columns: Vec<&'a SourceColumn>,
    facts: FactRows<'a>,
    interval: Interval,
    next: AtomicUsize,
}

impl Scan for RollupScan<'_> {
    fn threads_max(&self) -> usize {
        self.facts.parts()
    }

    fn work(&self, sink: &mut Sink<'_>) -> SourceResult<()> {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        if self.interval.start >= self.interval.end {
            return Ok(());
        }
        let vectors = self.columns.iter().map(|column| Vector::of_type(&column.kind));
        let mut batch = Batch { len: 0, columns: vectors.collect(), ids: None };
        loop {
            // Relaxed: each number is taken once, and that is all it says.
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            if part >= self.facts.parts() {
                return Ok(());
            }
            let mut number = (part as u64) << 32;
            let mut flush = |batch: &mut Batch| {
                let flow = sink(number, batch);
                number += 1;
                batch.len = 0;
                batch.columns.iter_mut().for_each(Vector::clear);
                flow
            };
            let mut wrong = None;
            let read = self.facts.read(part, &names, self.interval, &mut |fact| {
                if let Err(error) = push(fact, &mut batch) {
                    wrong = Some(error);
                    return ControlFlow::Break(());
                }
                match batch.len == BATCH_ROWS {
                    true => flush(&mut batch),
                    false => ControlFlow::Continue(()),
                }
            });
            let flow = read.and_then(|flow| wrong.map_or(Ok(flow), Err));
            let flow = flow.map_err(|error| error.to_string())?;
            if flow.is_break() || (batch.len > 0 && flush(&mut batch).is_break()) {
                return Ok(());
            }
        }
    }
}

fn push(fact: &FactRow<'_>, batch: &mut Batch) -> crate::rollup::Result<()> {
    for (at, vector) in batch.columns.iter_mut().enumerate() {
        match (fact.value(at)?, &mut vector.data) {
            (Figure::Long(value), Data::Int(values)) => values.push(value),
            (Figure::Double(value), Data::Float(values)) => values.push(value),
            (Figure::Text(text), Data::Bytes(texts)) => texts.push(text.as_bytes()),
            // Several values of a dimension, as text of JSON.
            (list @ Figure::List(_), Data::Bytes(texts)) => {
                texts.push(list.to_json().as_bytes());
            }
            _ => {
                vector.push_null();
                continue;
            }
        }
        if let Some(nulls) = &mut vector.nulls {
            nulls.push(false);
        }
    }
    batch.len += 1;
    Ok(())
}
