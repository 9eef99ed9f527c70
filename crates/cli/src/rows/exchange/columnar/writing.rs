//! Rows gathered into batches, and written as Parquet or Arrow.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float32Builder, Float64Builder, Int8Builder, Int16Builder,
    Int32Builder, Int64Builder, StringBuilder, UInt8Builder, UInt16Builder, UInt32Builder,
    UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::args::exchange::FileFormat;
use crate::rows::exchange::cell::{Cell, Column, Kind};
use crate::rows::exchange::origin::{METADATA, Origin};
use crate::rows::exchange::sink::Sink;

/// Rows of a batch, and about the bytes at which it ends before it has them.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 4 << 20;

/// Bytes of a row group of Parquet, which is in memory until it is whole, and its rows.
const GROUP_BYTES: usize = 64 << 20;
const GROUP_ROWS: usize = 1 << 20;

/// Writes rows as columns.
pub(crate) struct ColumnWriter {
    schema: SchemaRef,
    builders: Vec<Builder>,
    rows: usize,
    bytes: usize,
    to: To,
}

enum To {
    Parquet(ArrowWriter<Sink>),
    Arrow(FileWriter<Sink>),
}

impl ColumnWriter {
    pub(crate) fn new(
        format: FileFormat,
        columns: &[Column],
        origin: &Origin,
        sink: Sink,
    ) -> io::Result<Self> {
        let fields: Vec<Field> = columns
            .iter()
            .map(|column| Field::new(&column.name, type_of(column.kind), column.optional))
            .collect();
        let metadata = HashMap::from([(METADATA.to_owned(), origin.to_text())]);
        let schema = Arc::new(Schema::new(fields).with_metadata(metadata));
        let to = match format {
            FileFormat::Arrow => {
                To::Arrow(FileWriter::try_new(sink, &schema).map_err(io::Error::other)?)
            }
            _ => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::SNAPPY)
                    .set_max_row_group_row_count(Some(GROUP_ROWS))
                    .set_max_row_group_bytes(Some(GROUP_BYTES))
                    .build();
                let writer = ArrowWriter::try_new(sink, Arc::clone(&schema), Some(properties));
                To::Parquet(writer?)
            }
        };
        let builders = columns.iter().map(|column| Builder::of(column.kind)).collect();
        Ok(Self { schema, builders, rows: 0, bytes: 0, to })
    }

    pub(crate) fn write(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for (builder, cell) in self.builders.iter_mut().zip(cells) {
            self.bytes += builder.append(cell)?;
        }
        self.rows += 1;
        match self.rows == BATCH_ROWS || self.bytes >= BATCH_BYTES {
            true => self.write_batch(),
            false => Ok(()),
        }
    }

    fn write_batch(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        (self.rows, self.bytes) = (0, 0);
        let arrays = self.builders.iter_mut().map(Builder::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays);
        let batch = batch.map_err(io::Error::other)?;
        match &mut self.to {
            To::Parquet(writer) => Ok(writer.write(&batch)?),
            To::Arrow(writer) => writer.write(&batch).map_err(io::Error::other),
        }
    }

    pub(crate) fn finish(mut self) -> io::Result<Sink> {
        self.write_batch()?;
        match self.to {
            To::Parquet(writer) => Ok(writer.into_inner()?),
            To::Arrow(writer) => writer.into_inner().map_err(io::Error::other),
        }
    }
}

fn type_of(kind: Kind) -> DataType {
    match kind {
        Kind::Bool => DataType::Boolean,
        Kind::Int { bits: 8, signed: true } => DataType::Int8,
        Kind::Int { bits: 16, signed: true } => DataType::Int16,
        Kind::Int { bits: 32, signed: true } => DataType::Int32,
        Kind::Int { bits: 64, signed: true } => DataType::Int64,
        Kind::Int { bits: 8, signed: false } => DataType::UInt8,
        Kind::Int { bits: 16, signed: false } => DataType::UInt16,
        Kind::Int { bits: 32, signed: false } => DataType::UInt32,
        Kind::Int { bits: 64, signed: false } => DataType::UInt64,
        // No type of Arrow holds all numbers of 128 bits.
        Kind::Int { .. } | Kind::Text => DataType::Utf8,
        Kind::Float32 => DataType::Float32,
        Kind::Float64 => DataType::Float64,
        Kind::Bytes => DataType::Binary,
    }
}

/// The column of a batch, as far as it has come.
enum Builder {
    Bool(BooleanBuilder),
    Int8(Int8Builder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    UInt8(UInt8Builder),
    UInt16(UInt16Builder),
    UInt32(UInt32Builder),
    UInt64(UInt64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

/// Calls the same method of each builder.
macro_rules! each {
    ($self:ident, $builder:ident => $call:expr) => {
        match $self {
            Builder::Bool($builder) => $call,
            Builder::Int8($builder) => $call,
            Builder::Int16($builder) => $call,
            Builder::Int32($builder) => $call,
            Builder::Int64($builder) => $call,
            Builder::UInt8($builder) => $call,
            Builder::UInt16($builder) => $call,
            Builder::UInt32($builder) => $call,
            Builder::UInt64($builder) => $call,
            Builder::Float32($builder) => $call,
            Builder::Float64($builder) => $call,
            Builder::Text($builder) => $call,
            Builder::Bytes($builder) => $call,
        }
    };
}

impl Builder {
    fn of(kind: Kind) -> Self {
        match type_of(kind) {
            DataType::Boolean => Self::Bool(BooleanBuilder::new()),
            DataType::Int8 => Self::Int8(Int8Builder::new()),
            DataType::Int16 => Self::Int16(Int16Builder::new()),
            DataType::Int32 => Self::Int32(Int32Builder::new()),
            DataType::Int64 => Self::Int64(Int64Builder::new()),
            DataType::UInt8 => Self::UInt8(UInt8Builder::new()),
            DataType::UInt16 => Self::UInt16(UInt16Builder::new()),
            DataType::UInt32 => Self::UInt32(UInt32Builder::new()),
            DataType::UInt64 => Self::UInt64(UInt64Builder::new()),
            DataType::Float32 => Self::Float32(Float32Builder::new()),
            DataType::Float64 => Self::Float64(Float64Builder::new()),
            DataType::Binary => Self::Bytes(BinaryBuilder::new()),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    /// Appends a cell, which is of the column's kind, and answers about its bytes.
    fn append(&mut self, cell: &Cell<'_>) -> io::Result<usize> {
        macro_rules! int {
            ($builder:ident, $number:ident) => {{
                $builder.append_value((*$number).try_into().map_err(io::Error::other)?);
                size_of::<u64>()
            }};
        }
        Ok(match (self, cell) {
            (builder, Cell::Null) => {
                each!(builder, builder => builder.append_null());
                1
            }
            (Self::Bool(builder), Cell::Bool(value)) => {
                builder.append_value(*value);
                1
            }
            (Self::Int8(builder), Cell::Int(number)) => int!(builder, number),
            (Self::Int16(builder), Cell::Int(number)) => int!(builder, number),
            (Self::Int32(builder), Cell::Int(number)) => int!(builder, number),
            (Self::Int64(builder), Cell::Int(number)) => int!(builder, number),
            (Self::UInt8(builder), Cell::Int(number)) => int!(builder, number),
            (Self::UInt16(builder), Cell::Int(number)) => int!(builder, number),
            (Self::UInt32(builder), Cell::Int(number)) => int!(builder, number),
            (Self::UInt64(builder), Cell::Int(number)) => int!(builder, number),
            (Self::Float32(builder), Cell::Float32(number)) => {
                builder.append_value(*number);
                size_of::<f32>()
            }
            (Self::Float64(builder), Cell::Float64(number)) => {
                builder.append_value(*number);
                size_of::<f64>()
            }
            (Self::Text(builder), Cell::Text(text)) => {
                builder.append_value(text);
                text.len()
            }
            (Self::Text(builder), Cell::Int(number)) => {
                builder.append_value(number.to_string());
                size_of::<i128>()
            }
            (Self::Bytes(builder), Cell::Bytes(bytes)) => {
                builder.append_value(bytes);
                bytes.len()
            }
            (_, other) => {
                return Err(io::Error::other(format!(
                    "a value {} in another column",
                    other.name()
                )));
            }
        })
    }

    fn finish(&mut self) -> ArrayRef {
        each!(self, builder => Arc::new(builder.finish()))
    }
}
