//! Answers as files: CSV, JSON lines, Parquet and Arrow.

use std::io::{self, Write};
use std::path::Path;

use sapwood::schema::Value;
use sapwood::sql::Answer;

use crate::args::exchange::FileFormat;
use crate::rows::exchange::file_format::of_name;
use crate::rows::exchange::sink::Sink;
use crate::terminal::exit::Outcome;

/// Writes an answer to a file, whose name tells the format. The file is there whole or not at all.
pub(super) fn write(answer: &Answer, path: &Path) -> Outcome {
    let (format, packing) = of_name(path, None)?;
    let mut sink = Sink::file(path, packing)?;
    let trouble = sink.trouble();
    let failed = |error: io::Error| trouble.failure(&error);
    match format {
        FileFormat::Csv => csv(answer, &mut sink).map_err(failed)?,
        FileFormat::Jsonl => json_lines(answer, &mut sink).map_err(failed)?,
        #[cfg(feature = "columnar")]
        FileFormat::Parquet | FileFormat::Arrow => {
            return columnar::write(answer, format, sink).map_err(failed)?.finish();
        }
        #[cfg(not(feature = "columnar"))]
        FileFormat::Parquet | FileFormat::Arrow => {
            return Err(crate::rows::exchange::file_format::not_built(format.name()));
        }
    }
    sink.finish()
}

fn row(answer: &Answer, row: usize) -> io::Result<Vec<Value<'_>>> {
    answer.row(row).map_err(io::Error::other)
}

/// CSV with a header. Null is an empty field.
pub(crate) fn csv(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(answer.columns().iter().map(|column| &column.name))?;
    for at in 0..answer.len() {
        let values = row(answer, at)?;
        let texts = values.iter().map(|value| match value {
            Value::Null => String::new(),
            other => other.to_string(),
        });
        writer.write_record(texts)?;
    }
    writer.flush()
}

/// An object for each row. Whole numbers have all their digits, and so have decimals.
pub(crate) fn json_lines(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let names = answer.columns().iter().map(|column| json_text(&column.name));
    let names: Vec<String> = names.collect();
    for at in 0..answer.len() {
        out.write_all(b"{")?;
        for (column, (name, value)) in names.iter().zip(row(answer, at)?).enumerate() {
            let comma = if column == 0 { "" } else { "," };
            write!(out, "{comma}{name}:{}", json_value(&value))?;
        }
        out.write_all(b"}\n")?;
    }
    Ok(())
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn json_value(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Int(_) | Value::Decimal { .. } => value.to_string(),
        // JSON has no other floats.
        Value::Float(number) if number.is_finite() => serde_json::Value::from(*number).to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(json_value).collect();
            format!("[{}]", items.join(","))
        }
        other => json_text(&other.to_string()),
    }
}

#[cfg(feature = "columnar")]
mod columnar {
    //! Answers as batches of Arrow.

    use std::io;
    use std::sync::Arc;

    use arrow_array::builder::FixedSizeListBuilder;
    use arrow_array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array,
        Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, TimestampMillisecondArray,
        TimestampNanosecondArray, TimestampSecondArray,
    };
    use arrow_ipc::writer::FileWriter;
    use arrow_schema::{DataType, Field, Schema};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::properties::WriterProperties;
    use sapwood::schema::{Precision, Type, Value};
    use sapwood::sql::Answer;

    use crate::args::exchange::FileFormat;
    use crate::rows::exchange::sink::Sink;

    /// Rows of a batch.
    const BATCH_ROWS: usize = 8_192;

    /// Digits of a whole number of 128 bits that a decimal of Arrow has.
    const BIG_DIGITS: u8 = 38;

    pub(super) fn write(answer: &Answer, format: FileFormat, sink: Sink) -> io::Result<Sink> {
        let schema = Arc::new(Schema::new(fields(answer)));
        let batches = (0..answer.len()).step_by(BATCH_ROWS).map(|begin| {
            let end = answer.len().min(begin + BATCH_ROWS);
            let columns =
                (0..answer.columns().len()).map(|column| array(answer, column, begin, end));
            let columns = columns.collect::<io::Result<Vec<_>>>()?;
            RecordBatch::try_new(Arc::clone(&schema), columns).map_err(io::Error::other)
        });
        match format {
            FileFormat::Arrow => {
                let mut writer = FileWriter::try_new(sink, &schema).map_err(io::Error::other)?;
                for batch in batches {
                    writer.write(&batch?).map_err(io::Error::other)?;
                }
                writer.finish().map_err(io::Error::other)?;
                writer.into_inner().map_err(io::Error::other)
            }
            _ => {
                let properties =
                    WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                let mut writer = ArrowWriter::try_new(sink, Arc::clone(&schema), Some(properties))?;
                for batch in batches {
                    writer.write(&batch?)?;
                }
                Ok(writer.into_inner()?)
            }
        }
    }

    /// Names are made different, as readers need them.
    fn fields(answer: &Answer) -> Vec<Field> {
        let mut names = std::collections::HashSet::new();
        let columns = answer.columns().iter();
        columns
            .map(|column| {
                let mut name = column.name.clone();
                for number in 2.. {
                    if names.insert(name.clone()) {
                        break;
                    }
                    name = format!("{}_{number}", column.name);
                }
                Field::new(name, data_type(&column.kind), true)
            })
            .collect()
    }

    fn data_type(kind: &Type) -> DataType {
        use arrow_schema::TimeUnit;
        match kind {
            Type::Bool => DataType::Boolean,
            Type::Int(128) | Type::UInt(64) => DataType::Decimal128(BIG_DIGITS, 0),
            Type::Int(_) | Type::UInt(_) => DataType::Int64,
            Type::F32 | Type::F64 => DataType::Float64,
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
            Type::Array(..) => {
                let item = Field::new("item", DataType::Float64, true);
                match kind {
                    Type::Array(_, len) => DataType::FixedSizeList(Arc::new(item), i32::from(*len)),
                    _ => unreachable!("it is an array"),
                }
            }
            _ => DataType::Utf8,
        }
    }

    fn array(answer: &Answer, column: usize, begin: usize, end: usize) -> io::Result<ArrayRef> {
        let values = (begin..end).map(|row| answer.value(row, column));
        let values = values.collect::<Result<Vec<Value<'_>>, _>>().map_err(io::Error::other)?;
        let whole = |value: &Value<'_>| match value {
            Value::Int(number) => Some(*number),
            Value::Decimal { units, .. } => Some(*units),
            _ => None,
        };
        let ticks = |value: &Value<'_>| match value {
            Value::Timestamp { ticks, .. } => Some(*ticks),
            _ => None,
        };
        Ok(match &answer.columns()[column].kind {
            Type::Bool => {
                Arc::new(BooleanArray::from_iter(values.iter().map(|value| match value {
                    Value::Bool(value) => Some(*value),
                    _ => None,
                })))
            }
            kind @ (Type::Int(128) | Type::UInt(64) | Type::Decimal { .. }) => {
                let DataType::Decimal128(digits, scale) = data_type(kind) else {
                    unreachable!("it is a decimal")
                };
                let limit = 10_i128.pow(digits.into());
                if let Some(value) = values.iter().filter_map(whole).find(|it| it.abs() >= limit) {
                    return Err(io::Error::other(format!("{value} has more than {digits} digits")));
                }
                let array = Decimal128Array::from_iter(values.iter().map(whole));
                Arc::new(array.with_precision_and_scale(digits, scale).map_err(io::Error::other)?)
            }
            Type::Int(_) | Type::UInt(_) => Arc::new(Int64Array::from_iter(
                values.iter().map(|value| whole(value).map(|number| number as i64)),
            )),
            Type::F32 | Type::F64 => Arc::new(Float64Array::from_iter(values.iter().map(float))),
            Type::Date => {
                Arc::new(Date32Array::from_iter(values.iter().map(|value| match value {
                    Value::Date(days) => Some(*days),
                    _ => None,
                })))
            }
            Type::Timestamp(precision) => {
                let ticks = values.iter().map(ticks);
                match precision {
                    Precision::Seconds => Arc::new(TimestampSecondArray::from_iter(ticks)),
                    Precision::Millis => Arc::new(TimestampMillisecondArray::from_iter(ticks)),
                    Precision::Micros => Arc::new(TimestampMicrosecondArray::from_iter(ticks)),
                    Precision::Nanos => Arc::new(TimestampNanosecondArray::from_iter(ticks)),
                }
            }
            Type::Bytes => {
                Arc::new(BinaryArray::from_iter(values.iter().map(|value| match value {
                    Value::Bytes(bytes) => Some(bytes.to_vec()),
                    _ => None,
                })))
            }
            Type::Array(_, len) => {
                let mut builder = FixedSizeListBuilder::new(
                    arrow_array::builder::Float64Builder::new(),
                    i32::from(*len),
                );
                for value in &values {
                    match value {
                        Value::Array(items) => {
                            items.iter().for_each(|item| {
                                let item = match item {
                                    Value::Int(number) => Some(*number as f64),
                                    item => float(item),
                                };
                                builder.values().append_option(item);
                            });
                            builder.append(true);
                        }
                        _ => {
                            (0..*len).for_each(|_| builder.values().append_null());
                            builder.append(false);
                        }
                    }
                }
                Arc::new(builder.finish())
            }
            _ => Arc::new(StringArray::from_iter(values.iter().map(|value| match value {
                Value::Text(text) => Some(text.to_string()),
                _ => None,
            }))),
        })
    }

    fn float(value: &Value<'_>) -> Option<f64> {
        match value {
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }
}
