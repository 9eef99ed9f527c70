//! Answers as batches of Arrow.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, NullArray, RecordBatch, RecordBatchOptions,
    StringArray, TimestampMillisecondArray,
};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Field, Schema};

use super::Answer;
use crate::error::{Error, Result};
use crate::schema::DimensionKind;
use crate::value::Value;

/// A batch has the place of each text in 32 bits.
const TEXT_BYTES_MAX: usize = i32::MAX as usize;

/// What a column of an answer is in Arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Without a value, and nothing says of which type one would be.
    Null,
    Time,
    Long,
    Double,
    Text,
    Texts,
}

impl Kind {
    fn declared(kind: Option<DimensionKind>, is_time: bool) -> Kind {
        match kind {
            _ if is_time => Kind::Time,
            None => Kind::Null,
            Some(DimensionKind::Long) => Kind::Long,
            Some(DimensionKind::Double) => Kind::Double,
            Some(DimensionKind::Text) => Kind::Text,
        }
    }

    /// What has both: the values so far, and one more.
    fn with(self, value: &Value<'_>) -> Kind {
        match (self, value) {
            (known, Value::Null) => known,
            (Kind::Texts, _) | (_, Value::List(_)) => Kind::Texts,
            (Kind::Text, _) | (_, Value::Text(_)) | (Kind::Time, Value::Double(_)) => Kind::Text,
            (Kind::Time, Value::Long(_)) => Kind::Time,
            (Kind::Null | Kind::Long, Value::Long(_)) => Kind::Long,
            (Kind::Double, Value::Long(_))
            | (Kind::Null | Kind::Long | Kind::Double, Value::Double(_)) => Kind::Double,
        }
    }
}

impl Answer {
    /// As a batch of Arrow, whose columns are called as those of the answer.
    ///
    /// | column | in Arrow |
    /// |---|---|
    /// | times ([`is_time`](Self::is_time)) | `Timestamp(Millisecond)` in the zone of the query, UTC where it has no name |
    /// | longs: counts, sums of longs, dimensions of this type | `Int64` |
    /// | doubles: sums of doubles, quantiles, estimates | `Float64` |
    /// | texts | `Utf8` |
    /// | texts of which a fact may have several, if one does | `List(Utf8)` |
    /// | what an expression makes | as its values are: `Int64`, `Float64`, `Utf8`; `Null` without any |
    ///
    /// Each column may have nulls. An expression that makes longs and doubles has a column of doubles, one that
    /// makes numbers and texts one of texts.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use arrow_array::cast::AsArray;
    /// use arrow_array::types::Int64Type;
    /// use sapwood::rollup::{Aggregation, Query};
    /// # use sapwood::rollup::{Dimension, Metric, Rollup, RowBatch, Schema, Writer};
    ///
    /// # let schema = Schema::new("time").dimension(Dimension::text("page")).metric(Metric::count("edits"));
    /// # let rollup = Arc::new(Rollup::new(schema)?);
    /// # let (batch, _) = RowBatch::from_csv(b"time,page\n2013-01-01,Oak\n2013-01-01,Elm\n2013-01-01,Oak\n")?;
    /// # Writer::new(&rollup).ingest(&batch)?;
    /// let query = Query::group_by(["page"]).aggregation(Aggregation::long_sum("edits", "edits"));
    /// let batch = rollup.query(&query)?.to_arrow()?;
    /// let edits = batch.column_by_name("edits").expect("it was asked for").as_primitive::<Int64Type>();
    /// assert_eq!(edits.values(), &[1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Query`] if a column has more than 2 GiB of texts.
    pub fn to_arrow(&self) -> Result<RecordBatch> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (at, name) in self.columns.iter().enumerate() {
            let values = || self.rows.iter().map(|row| &row[at]);
            let declared = Kind::declared(self.kinds[at], self.is_time(name));
            let kind = values().fold(declared, Kind::with);
            let bytes: usize = match kind {
                Kind::Text | Kind::Texts => values().map(text_bytes).sum(),
                Kind::Null | Kind::Time | Kind::Long | Kind::Double => 0,
            };
            if bytes > TEXT_BYTES_MAX {
                return Err(Error::Query(format!(
                    "`{name}` may have {bytes} bytes of texts, and Arrow takes {TEXT_BYTES_MAX}: ask for fewer rows"
                )));
            }
            let array = self.array(kind, values());
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        let batch =
            RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options);
        Ok(batch.expect("each column has a value a row"))
    }

    /// As a stream of Arrow (the IPC streaming format) of one batch, that of [`to_arrow`](Self::to_arrow).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use sapwood::rollup::{Query, RowBatch, ScanOrder};
    /// # use sapwood::rollup::{Dimension, Rollup, Schema, Writer};
    ///
    /// # let rollup = Arc::new(Rollup::new(Schema::new("time").dimension(Dimension::text("page")))?);
    /// # let (batch, _) = RowBatch::from_csv(b"time,page\n2013-01-01,Oak\n2013-01-02,Elm\n")?;
    /// # Writer::new(&rollup).ingest(&batch)?;
    /// let stream = rollup.query(&Query::scan(["page"], ScanOrder::Ascending))?.to_arrow_stream()?;
    /// assert_eq!(RowBatch::from_arrow_stream(&stream)?[0].rows(), 2);
    /// # Ok::<(), sapwood::rollup::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`to_arrow`](Self::to_arrow).
    pub fn to_arrow_stream(&self) -> Result<Vec<u8>> {
        const WRITTEN: &str = "memory takes a batch of these types";
        let batch = self.to_arrow()?;
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect(WRITTEN);
        writer.write(&batch).expect(WRITTEN);
        Ok(writer.into_inner().expect(WRITTEN))
    }

    fn array<'v>(
        &self,
        kind: Kind,
        values: impl ExactSizeIterator<Item = &'v Value<'static>>,
    ) -> ArrayRef {
        let long = |value: &Value<'_>| match value {
            Value::Long(long) => Some(*long),
            _ => None,
        };
        let double = |value: &Value<'_>| match value {
            Value::Long(long) => Some(*long as f64),
            Value::Double(double) => Some(*double),
            _ => None,
        };
        match kind {
            Kind::Null => Arc::new(NullArray::new(values.len())),
            Kind::Time => {
                let zone = self.zone.iana_name().unwrap_or("UTC");
                let times = values.map(long).collect::<TimestampMillisecondArray>();
                Arc::new(times.with_timezone(zone))
            }
            Kind::Long => Arc::new(values.map(long).collect::<Int64Array>()),
            Kind::Double => Arc::new(values.map(double).collect::<Float64Array>()),
            Kind::Text => Arc::new(values.map(Value::to_text).collect::<StringArray>()),
            Kind::Texts => {
                let mut lists = ListBuilder::new(StringBuilder::new());
                for value in values {
                    match value {
                        Value::Null => lists.append_null(),
                        Value::List(values) => {
                            lists.append_value(values.iter().map(Value::to_text))
                        }
                        one => lists.append_value([one.to_text()]),
                    }
                }
                Arc::new(lists.finish())
            }
        }
    }
}

/// How many bytes it takes as texts, at most.
fn text_bytes(value: &Value<'_>) -> usize {
    /// Of the longest number.
    const NUMBER_BYTES: usize = 32;
    match value {
        Value::Null => 0,
        Value::Long(_) | Value::Double(_) => NUMBER_BYTES,
        Value::Text(text) => text.len(),
        // A list has a place for each value.
        Value::List(values) => values.iter().map(|value| text_bytes(value).max(1)).sum(),
    }
}
