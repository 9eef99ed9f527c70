//! A stream of rows: in batches of rows, of columns, and of JSON lines. And the right answers about
//! it.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use sapwood::rollup::{Column, RowBatch};
use serde_json::Value;

use super::engines::Phase;
use super::sets::{HOUR, RowSet, RowShape};
use crate::harness::*;

/// The values of a dimension are asked of [`Phase::TopN`].
pub(crate) const TOP: usize = 10;

#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) time: i64,
    pub(crate) dimensions: Vec<Option<String>>,
    pub(crate) x: i64,
    pub(crate) y: Option<f64>,
}

impl Row {
    pub(crate) fn parse(shape: &RowShape, object: &Value) -> Option<Row> {
        let text = |name: &&str| match &object[*name] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        Some(Row {
            time: shape.time.read(&object["time"])?,
            dimensions: shape.dimensions.iter().map(text).collect(),
            x: object[shape.x].as_i64().unwrap_or_default(),
            y: object[shape.y].as_f64(),
        })
    }
}

pub(crate) struct Stream {
    pub(crate) shape: &'static RowShape,
    pub(crate) rows: Vec<Vec<Row>>,
    pub(crate) batches: Vec<RowBatch>,
    pub(crate) json: Vec<String>,
    pub(crate) count: usize,
}

/// The total of an answer: the groups, the rows in them, and the sum of the whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) groups: usize,
    pub(crate) rows: i64,
    pub(crate) sum: i64,
}

impl Total {
    pub(crate) const NONE: Total = Total { groups: 0, rows: 0, sum: 0 };

    pub(crate) fn add(&mut self, rows: i64, sum: i64) {
        *self = Total { groups: self.groups + 1, rows: self.rows + rows, sum: self.sum + sum };
    }
}

impl std::fmt::Display for Total {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} groups of {} rows that sum to {}", self.groups, self.rows, self.sum)
    }
}

pub(crate) struct Expected {
    pub(crate) facts: usize,
    pub(crate) all: Total,
    answers: Vec<(Phase, Total)>,
}

impl Expected {
    pub(crate) fn answer(&self, phase: Phase) -> Total {
        let known = self.answers.iter().find(|(known, _)| *known == phase);
        known.expect("each question has an answer").1
    }
}

impl Stream {
    pub(crate) fn new(shape: &'static RowShape, rows: Vec<Row>, batch: usize) -> Result<Stream> {
        let count = rows.len();
        let rows: Vec<Vec<Row>> = rows.chunks(batch).map(<[Row]>::to_vec).collect();
        Ok(Stream {
            batches: rows.iter().map(|rows| columns(shape, rows)).collect::<Result<_, _>>()?,
            json: rows.iter().map(|rows| json(shape, rows)).collect(),
            shape,
            rows,
            count,
        })
    }

    pub(crate) fn with_json(self, json: Vec<String>) -> Stream {
        Stream { json, ..self }
    }

    pub(crate) fn expected(&self, set: RowSet) -> Expected {
        let rows = || self.rows.iter().flatten();
        let facts: HashSet<(i64, &[Option<String>])> =
            rows().map(|row| (set.bucket(row.time), &row.dimensions[..])).collect();
        let mut all = Total::NONE;
        rows().for_each(|row| all.add(1, row.x));
        let hour = |row: &Row| set.bucket(row.time).div_euclid(HOUR);
        let (wanted_at, wanted) = self.shape.filter;
        let [first, second] = self.shape.two;
        let mut sums: Vec<i64> = groups(rows(), |row| &row.dimensions[self.shape.top])
            .into_values()
            .map(|total| total.sum)
            .collect();
        sums.sort_unstable_by(|one, other| other.cmp(one));
        sums.truncate(TOP);
        let is_wanted = |row: &&Row| row.dimensions[wanted_at].as_deref() == Some(wanted);
        let answers = vec![
            (Phase::Timeseries, total(groups(rows(), hour))),
            (Phase::GroupByOne, total(groups(rows(), |row| &row.dimensions[self.shape.one]))),
            (
                Phase::GroupBy,
                total(groups(rows(), |row| (&row.dimensions[first], &row.dimensions[second]))),
            ),
            // Of equal sums any may be among the first, so their rows say nothing.
            (Phase::TopN, Total { groups: sums.len(), rows: 0, sum: sums.iter().sum() }),
            (Phase::Filter, total(groups(rows().filter(is_wanted), hour))),
        ];
        Expected { facts: facts.len(), all: Total { groups: facts.len(), ..all }, answers }
    }

    pub(crate) fn write_arrow(&self, path: &Path) -> Result {
        let mut writer = None;
        for rows in &self.rows {
            let batch = arrow(self.shape, rows)?;
            let writer = match &mut writer {
                Some(writer) => writer,
                none => {
                    none.insert(FileWriter::try_new_buffered(File::create(path)?, &batch.schema())?)
                }
            };
            writer.write(&batch)?;
        }
        writer.ok_or("there are no rows")?.finish()?;
        Ok(())
    }

    pub(crate) fn write_json(&self, path: &Path) -> Result {
        let mut file = BufWriter::new(File::create(path)?);
        for lines in &self.json {
            file.write_all(lines.as_bytes())?;
        }
        Ok(file.flush()?)
    }
}

fn groups<'r, K: std::hash::Hash + Eq>(
    rows: impl Iterator<Item = &'r Row>,
    key: impl Fn(&'r Row) -> K,
) -> HashMap<K, Total> {
    let mut groups = HashMap::new();
    for row in rows {
        groups.entry(key(row)).or_insert(Total::NONE).add(1, row.x);
    }
    groups
}

fn total<K>(groups: HashMap<K, Total>) -> Total {
    let mut all = Total::NONE;
    groups.into_values().for_each(|group| all.add(group.rows, group.sum));
    all
}

fn columns(shape: &RowShape, rows: &[Row]) -> Result<RowBatch> {
    let mut batch =
        RowBatch::new(rows.len()).column("time", Column::longs(rows.iter().map(|row| row.time)))?;
    for (at, &name) in shape.dimensions.iter().enumerate() {
        let texts = rows.iter().map(|row| row.dimensions[at].as_ref());
        batch = batch.column(name, Column::optional_texts(texts))?;
    }
    Ok(batch
        .column(shape.x, Column::longs(rows.iter().map(|row| row.x)))?
        .column(shape.y, Column::optional_doubles(rows.iter().map(|row| row.y)))?)
}

fn arrow(shape: &RowShape, rows: &[Row]) -> Result<RecordBatch> {
    let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
    columns.push(("time", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.time)))));
    for (at, &name) in shape.dimensions.iter().enumerate() {
        let texts: StringArray = rows.iter().map(|row| row.dimensions[at].as_deref()).collect();
        columns.push((name, Arc::new(texts)));
    }
    columns.push((shape.x, Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.x)))));
    columns.push((shape.y, Arc::new(rows.iter().map(|row| row.y).collect::<Float64Array>())));
    // Batches of one file have one schema, whether or not one of them has nulls.
    Ok(RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )?)
}

fn json(shape: &RowShape, rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        // Writing to memory does not fail.
        let _ = write!(text, "{{\"time\":{}", row.time);
        for (name, value) in shape.dimensions.iter().zip(&row.dimensions) {
            let _ = write!(text, ",\"{name}\":{}", Value::from(value.as_deref()));
        }
        let (x, y) = (row.x, Value::from(row.y));
        let _ = writeln!(text, ",\"{}\":{x},\"{}\":{y}}}", shape.x, shape.y);
    }
    text
}
