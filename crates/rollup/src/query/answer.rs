//! Answers: rows, and the forms in which Druid writes them.

#[cfg(feature = "arrow")]
mod arrow;

use jiff::tz::TimeZone;
use serde_json::{Map, Value as Json, json};

use super::{Query, ScanForm};
use crate::schema::DimensionKind;
use crate::time::iso;
use crate::value::Value;

/// The answer of a query: a table.
///
/// Answers about buckets of time have the begin of the bucket, in milliseconds since 1970, as their first
/// column, `timestamp`.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, with a value for each column.
    pub rows: Vec<Vec<Value<'static>>>,
    /// What the values of each column are, whichever there are; none of a column that has what an expression
    /// makes.
    kinds: Vec<Option<DimensionKind>>,
    shape: Shape,
    zone: TimeZone,
    interval: String,
}

/// The name that facts have as a segment: they are one, wherever they lie.
pub(super) const SEGMENT: &str = "live";

/// How Druid writes the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    Timeseries,
    TopN,
    GroupBy,
    /// `begin` facts come before those that are shown.
    Scan {
        form: ScanForm,
        begin: usize,
    },
    Search,
    TimeBoundary,
    SegmentMetadata {
        facts: i64,
    },
}

impl Answer {
    pub(crate) fn new(
        columns: Vec<String>,
        kinds: Vec<Option<DimensionKind>>,
        rows: Vec<Vec<Value<'static>>>,
        shape: Shape,
        query: &Query,
    ) -> Answer {
        debug_assert_eq!(columns.len(), kinds.len());
        let interval = query.intervals.first().map(ToString::to_string).unwrap_or_default();
        Answer { columns, rows, kinds, shape, zone: query.granularity.zone(), interval }
    }

    /// A value, by its row and the name of its column.
    pub fn value(&self, row: usize, column: &str) -> Option<&Value<'static>> {
        let at = self.columns.iter().position(|known| known == column)?;
        self.rows.get(row).map(|row| &row[at])
    }

    /// As Druid writes it: a list of objects, whose form goes by the kind of the query.
    pub fn to_json(&self) -> String {
        let rows: Vec<Json> = match &self.shape {
            Shape::Timeseries => self.bucketed("result"),
            Shape::GroupBy => {
                let mut rows = self.bucketed("event");
                rows.iter_mut().for_each(|row| row["version"] = json!("v1"));
                rows
            }
            Shape::TopN => self.top(),
            Shape::Scan { form: ScanForm::Select, begin } => self.page(*begin),
            Shape::Scan { form, .. } => vec![json!({
                "segmentId": SEGMENT,
                "columns": self.columns,
                "events": self.rows.iter().map(|row| match form {
                    ScanForm::CompactedList => json!(row),
                    _ => Json::Object(self.object(row, 0)),
                }).collect::<Vec<_>>(),
            })],
            Shape::Search => vec![json!({
                "timestamp": self.interval.split('/').next(),
                "result": self.objects(),
            })],
            Shape::TimeBoundary => self.rows.iter().map(|row| {
                let mut result = Map::new();
                for (name, value) in self.columns.iter().zip(row) {
                    result.insert(name.clone(), json!(self.time(value)));
                }
                json!({ "timestamp": row.iter().find_map(|time| self.time(time)), "result": result })
            }).collect(),
            Shape::SegmentMetadata { facts } => {
                let mut columns = Map::new();
                for row in &self.rows {
                    columns.insert(row[0].to_string(), Json::Object(self.object(row, 1)));
                }
                vec![json!({
                    "id": SEGMENT, "intervals": [self.interval], "columns": columns, "numRows": facts,
                })]
            }
        };
        Json::Array(rows).to_string()
    }

    /// As CSV, with the names of the columns in the first line. Times of buckets are as ISO 8601 writes
    /// them; null is empty.
    pub fn to_csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        // Writes to memory do not fail, and all rows have the same length.
        writer.write_record(&self.columns).expect("memory takes it");
        for row in &self.rows {
            let fields = row.iter().zip(&self.columns).map(|(value, name)| match value {
                Value::Null => String::new(),
                time if self.is_time(name) => self.time(time).unwrap_or_default(),
                value => value.to_string(),
            });
            writer.write_record(fields).expect("memory takes it");
        }
        let bytes = writer.into_inner().expect("memory takes it");
        String::from_utf8(bytes).expect("texts are UTF-8")
    }

    /// Whether a column has times: where buckets begin, and the first and the last of all.
    pub fn is_time(&self, column: &str) -> bool {
        match self.shape {
            Shape::Timeseries | Shape::TopN | Shape::GroupBy => column == super::rows::TIMESTAMP,
            Shape::Scan { .. } => column == crate::schema::TIME_COLUMN,
            Shape::TimeBoundary => true,
            Shape::Search | Shape::SegmentMetadata { .. } => false,
        }
    }

    /// A time as ISO 8601 writes it, in the zone of the query.
    pub fn time(&self, value: &Value<'_>) -> Option<String> {
        match value {
            Value::Long(time) => Some(iso(*time, &self.zone)),
            _ => None,
        }
    }

    fn object(&self, row: &[Value<'static>], from: usize) -> Map<String, Json> {
        let fields = self.columns.iter().zip(row).skip(from);
        fields.map(|(name, value)| (name.clone(), json!(value))).collect()
    }

    fn objects(&self) -> Vec<Json> {
        self.rows.iter().map(|row| Json::Object(self.object(row, 0))).collect()
    }

    fn bucketed(&self, name: &str) -> Vec<Json> {
        let row = |row: &Vec<Value<'static>>| json!({ "timestamp": self.time(&row[0]), name: self.object(row, 1) });
        self.rows.iter().map(row).collect()
    }

    /// Facts of a page, each with its number among all, and the last of these numbers.
    fn page(&self, begin: usize) -> Vec<Json> {
        let time = |row: &[Value<'static>]| {
            let at = self.columns.iter().position(|name| self.is_time(name));
            at.and_then(|at| self.time(&row[at]))
        };
        let event = |(number, row): (usize, &Vec<Value<'static>>)| {
            let mut event = self.object(row, 0);
            event.remove(crate::schema::TIME_COLUMN);
            event.insert("timestamp".to_owned(), json!(time(row)));
            json!({ "segmentId": SEGMENT, "offset": begin + number, "event": event })
        };
        let Some(first) = self.rows.first() else { return Vec::new() };
        let events: Vec<Json> = self.rows.iter().enumerate().map(event).collect();
        let identifiers = json!({ SEGMENT: begin + self.rows.len() - 1 });
        let result = json!({ "pagingIdentifiers": identifiers, "events": events });
        vec![json!({ "timestamp": time(first), "result": result })]
    }

    fn top(&self) -> Vec<Json> {
        let same = |left: &Vec<Value<'_>>, right: &Vec<Value<'_>>| left[0] == right[0];
        let bucket = |rows: &[Vec<Value<'static>>]| {
            let result: Vec<_> = rows.iter().map(|row| self.object(row, 1)).collect();
            json!({ "timestamp": self.time(&rows[0][0]), "result": result })
        };
        self.rows.chunk_by(same).map(bucket).collect()
    }
}
