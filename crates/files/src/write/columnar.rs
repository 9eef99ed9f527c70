//! Rows as batches of Arrow. Every column has the type of Arrow that is its own, so that a file that is read again
//! has the same ones; whole numbers of 128 bits with a sign are decimals of 38 digits, and those without one decimals of 39.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Decimal256Array, FixedSizeListArray,
    PrimitiveArray, RecordBatch, StringArray,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use sapwood_schema::{DECIMAL_DIGITS_MAX, Precision, Type, Value};

use super::sink::FileSink;
use crate::format::Format;

/// The units of decimals of more than 38 digits.
type Wide = <Decimal256Type as ArrowPrimitiveType>::Native;

/// Rows of a batch, and about the bytes at which it ends before it has them.
const BATCH_ROWS: usize = 8_192;
const BATCH_BYTES: usize = 4 << 20;

/// Bytes of a row group of Parquet, which is in memory until it is whole, and its rows.
const GROUP_BYTES: usize = 64 << 20;
const GROUP_ROWS: usize = 1 << 20;

/// A file of typed columns that is being written.
pub(super) struct ColumnWriter {
    schema: Arc<Schema>,
    kinds: Vec<Type>,
    /// The rows that are not yet written, by column.
    pending: Vec<Vec<Value<'static>>>,
    /// Bytes of their texts, about.
    pending_bytes: usize,
    to: To,
}

enum To {
    Arrow(Box<FileWriter<FileSink>>),
    Parquet(Box<ArrowWriter<FileSink>>),
}

impl ColumnWriter {
    pub(super) fn new<'c>(
        format: Format,
        columns: impl Iterator<Item = (&'c str, &'c Type)>,
        metadata: HashMap<String, String>,
        sink: FileSink,
    ) -> io::Result<ColumnWriter> {
        let (names, kinds): (Vec<&str>, Vec<Type>) =
            columns.map(|(name, kind)| (name, kind.clone())).unzip();
        let names = distinct(&names).into_iter();
        let fields = names.zip(&kinds).map(|(name, kind)| Field::new(name, data_type(kind), true));
        let schema = Schema::new(fields.collect::<Vec<_>>()).with_metadata(metadata);
        let schema = Arc::new(schema);
        let to = match format {
            Format::Arrow => {
                let writer = FileWriter::try_new(sink, &schema).map_err(io::Error::other)?;
                To::Arrow(Box::new(writer))
            }
            _ => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::SNAPPY)
                    .set_max_row_group_row_count(Some(GROUP_ROWS))
                    .set_max_row_group_bytes(Some(GROUP_BYTES))
                    .build();
                let writer = ArrowWriter::try_new(sink, Arc::clone(&schema), Some(properties))?;
                To::Parquet(Box::new(writer))
            }
        };
        let pending = kinds.iter().map(|_| Vec::with_capacity(BATCH_ROWS)).collect();
        Ok(ColumnWriter { schema, kinds, pending, pending_bytes: 0, to })
    }

    pub(super) fn write(&mut self, row: &[Value<'_>]) -> io::Result<()> {
        for (column, value) in self.pending.iter_mut().zip(row) {
            self.pending_bytes += match value {
                Value::Text(text) => text.len(),
                Value::Bytes(bytes) => bytes.len(),
                _ => 0,
            };
            column.push(value.clone().into_owned());
        }
        let is_full = self.pending.first().is_some_and(|column| column.len() == BATCH_ROWS);
        match is_full || self.pending_bytes >= BATCH_BYTES {
            true => self.write_batch(),
            false => Ok(()),
        }
    }

    fn write_batch(&mut self) -> io::Result<()> {
        let columns = self.pending.iter().zip(&self.kinds);
        let columns = columns.map(|(values, kind)| array(&values.iter().collect::<Vec<_>>(), kind));
        let columns = columns.collect::<io::Result<Vec<_>>>()?;
        let batch =
            RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(io::Error::other)?;
        self.pending.iter_mut().for_each(Vec::clear);
        self.pending_bytes = 0;
        match &mut self.to {
            To::Arrow(writer) => writer.write(&batch).map_err(io::Error::other),
            To::Parquet(writer) => Ok(writer.write(&batch)?),
        }
    }

    pub(super) fn finish(mut self) -> io::Result<FileSink> {
        if self.pending.first().is_some_and(|column| !column.is_empty()) {
            self.write_batch()?;
        }
        match self.to {
            To::Arrow(mut writer) => {
                writer.finish().map_err(io::Error::other)?;
                writer.into_inner().map_err(io::Error::other)
            }
            To::Parquet(writer) => Ok(writer.into_inner()?),
        }
    }
}

/// Names are made different, as readers need them.
fn distinct(names: &[&str]) -> Vec<String> {
    let mut taken = HashSet::new();
    let distinct = names.iter().map(|&first| {
        let mut name = first.to_owned();
        for number in 2.. {
            if taken.insert(name.clone()) {
                break;
            }
            name = format!("{first}_{number}");
        }
        name
    });
    distinct.collect()
}

fn data_type(kind: &Type) -> DataType {
    match kind {
        Type::Bool => DataType::Boolean,
        Type::Int(8) => DataType::Int8,
        Type::Int(16) => DataType::Int16,
        Type::Int(32) => DataType::Int32,
        Type::Int(128) => DataType::Decimal128(DECIMAL_DIGITS_MAX, 0),
        Type::Int(_) => DataType::Int64,
        Type::UInt(8) => DataType::UInt8,
        Type::UInt(16) => DataType::UInt16,
        Type::UInt(32) => DataType::UInt32,
        Type::UInt(128) => DataType::Decimal256(39, 0),
        Type::UInt(_) => DataType::UInt64,
        Type::F32 => DataType::Float32,
        Type::F64 => DataType::Float64,
        Type::Decimal { digits, scale } => DataType::Decimal128(*digits, *scale as i8),
        Type::Date => DataType::Date32,
        Type::Timestamp(precision) => DataType::Timestamp(
            match precision {
                Precision::Seconds => TimeUnit::Second,
                Precision::Millis => TimeUnit::Millisecond,
                Precision::Micros => TimeUnit::Microsecond,
                Precision::Nanos => TimeUnit::Nanosecond,
            },
            None,
        ),
        Type::Bytes => DataType::Binary,
        Type::Array(item, len) => {
            let item = Field::new("item", data_type(item), true);
            DataType::FixedSizeList(Arc::new(item), i32::from(*len))
        }
        _ => DataType::Utf8,
    }
}

fn array(values: &[&Value<'_>], kind: &Type) -> io::Result<ArrayRef> {
    Ok(match kind {
        Type::Bool => Arc::new(BooleanArray::from_iter(values.iter().map(|value| match value {
            Value::Bool(value) => Some(*value),
            _ => None,
        }))),
        Type::Int(8) => whole::<Int8Type>(values)?,
        Type::Int(16) => whole::<Int16Type>(values)?,
        Type::Int(32) => whole::<Int32Type>(values)?,
        Type::Int(64) => whole::<Int64Type>(values)?,
        Type::UInt(8) => whole::<UInt8Type>(values)?,
        Type::UInt(16) => whole::<UInt16Type>(values)?,
        Type::UInt(32) => whole::<UInt32Type>(values)?,
        Type::UInt(64) => whole::<UInt64Type>(values)?,
        Type::UInt(128) => {
            let units = |value: &&Value<'_>| match value {
                Value::Int(number) => Some(Wide::from_i128(*number)),
                Value::Huge(number) => Some(Wide::from_parts(*number, 0)),
                _ => None,
            };
            let array = Decimal256Array::from_iter(values.iter().map(units));
            Arc::new(array.with_precision_and_scale(39, 0).map_err(io::Error::other)?)
        }
        Type::Int(_) | Type::UInt(_) | Type::Decimal { .. } => decimals(values, kind)?,
        Type::F32 => primitive::<Float32Type>(values, |value| match value {
            Value::Float(value) => Some(*value as f32),
            _ => None,
        }),
        Type::F64 => primitive::<Float64Type>(values, |value| match value {
            Value::Float(value) => Some(*value),
            _ => None,
        }),
        Type::Date => primitive::<Date32Type>(values, |value| match value {
            Value::Date(days) => Some(*days),
            _ => None,
        }),
        Type::Timestamp(Precision::Seconds) => primitive::<TimestampSecondType>(values, ticks),
        Type::Timestamp(Precision::Millis) => primitive::<TimestampMillisecondType>(values, ticks),
        Type::Timestamp(Precision::Micros) => primitive::<TimestampMicrosecondType>(values, ticks),
        Type::Timestamp(Precision::Nanos) => primitive::<TimestampNanosecondType>(values, ticks),
        Type::Bytes => Arc::new(BinaryArray::from_iter(values.iter().map(|value| match value {
            Value::Bytes(bytes) => Some(&bytes[..]),
            _ => None,
        }))),
        Type::Array(item, len) => {
            let items = values.iter().flat_map(|value| match value {
                Value::Array(items) => items.iter().collect(),
                _ => vec![&Value::Null; usize::from(*len)],
            });
            let items = array(&items.collect::<Vec<_>>(), item)?;
            let valid: Vec<bool> = values.iter().map(|value| !value.is_null()).collect();
            let field = Arc::new(Field::new("item", data_type(item), true));
            let list =
                FixedSizeListArray::try_new(field, i32::from(*len), items, Some(valid.into()));
            Arc::new(list.map_err(io::Error::other)?)
        }
        _ => Arc::new(StringArray::from_iter(values.iter().map(|value| match value {
            Value::Text(text) => Some(&text[..]),
            _ => None,
        }))),
    })
}

fn decimals(values: &[&Value<'_>], kind: &Type) -> io::Result<ArrayRef> {
    let DataType::Decimal128(digits, scale) = data_type(kind) else {
        unreachable!("it is a decimal")
    };
    let units = |value: &&Value<'_>| match value {
        Value::Int(units) | Value::Decimal { units, .. } => Some(*units),
        _ => None,
    };
    let limit = 10_i128.pow(digits.into());
    if let Some(value) = values.iter().filter_map(units).find(|it| it.abs() >= limit) {
        return Err(io::Error::other(format!("{value} has more than {digits} digits")));
    }
    let array = Decimal128Array::from_iter(values.iter().map(units));
    Ok(Arc::new(array.with_precision_and_scale(digits, scale).map_err(io::Error::other)?))
}

fn primitive<T: ArrowPrimitiveType>(
    values: &[&Value<'_>],
    native: impl Fn(&Value<'_>) -> Option<T::Native>,
) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter(values.iter().map(|value| native(value))))
}

/// Whole numbers; an answer's may be wider than its type says.
fn whole<T: ArrowPrimitiveType>(values: &[&Value<'_>]) -> io::Result<ArrayRef>
where
    T::Native: TryFrom<i128>,
{
    let native = |value: &&Value<'_>| match value {
        Value::Int(number) => T::Native::try_from(*number)
            .map(Some)
            .map_err(|_| io::Error::other(format!("{number} does not fit into {}", T::DATA_TYPE))),
        _ => Ok(None),
    };
    let values = values.iter().map(native).collect::<io::Result<Vec<_>>>()?;
    Ok(Arc::new(PrimitiveArray::<T>::from_iter(values)))
}

fn ticks(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Timestamp { ticks, .. } => Some(*ticks),
        _ => None,
    }
}
