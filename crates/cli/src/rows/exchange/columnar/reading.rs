//! Rows of Parquet and Arrow files, as cells.
//!
//! Files of other programs may have larger and smaller types of text and bytes, and any order of
//! columns; dates, decimals, lists and dictionaries are refused by their names.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, LargeBinaryArray,
    LargeStringArray, PrimitiveArray, RecordBatch, StringArray, StringViewArray,
};
use arrow_ipc::reader::FileReader;
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::args::exchange::FileFormat;
use crate::rows::exchange::cell::{Cell, Column, Kind};
use crate::rows::exchange::columnar::guard::guarded;
use crate::rows::exchange::form::Form;
use crate::rows::exchange::origin::{METADATA, Origin};
use crate::rows::exchange::reader::{Visit, bad_row};
use crate::rows::source::plain;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::quoted;
use crate::terminal::ui::Ui;

/// Rows of a batch of Parquet, which is in memory.
const BATCH_ROWS: usize = 8192;

/// A file of typed columns.
pub(crate) struct ColumnFile {
    name: String,
    schema: SchemaRef,
    batches: Batches,
    /// Rows, where the file says so at its end.
    rows: Option<u64>,
    pub(crate) names: Vec<String>,
}

enum Batches {
    Parquet(ParquetRecordBatchReader),
    Arrow(FileReader<BufReader<File>>),
}

impl Batches {
    fn next(&mut self) -> Result<Option<RecordBatch>, String> {
        guarded(|| match self {
            Self::Parquet(reader) => reader.next().transpose(),
            Self::Arrow(reader) => reader.next().transpose(),
        })
    }
}

impl ColumnFile {
    pub(crate) fn open(path: &Path, format: FileFormat) -> Outcome<Self> {
        let name = path.display().to_string();
        if path == Path::new("-") {
            return Err(Failure::Usage(format!(
                "{} files are read from their end on: give a file, not standard input",
                format.name()
            )));
        }
        let unread = |what: &str| Failure::Failed(format!("{name} cannot be read: {what}"));
        let file = File::open(path).map_err(|error| unread(&plain(&error)))?;
        if !file.metadata().is_ok_and(|about| about.is_file()) {
            return Err(unread("it is no file that can be read from its end on"));
        }
        let damaged = |what: String| damaged(&name, format, &what);
        let (schema, batches, rows) = match format {
            FileFormat::Arrow => {
                let reader = guarded(|| FileReader::try_new(BufReader::new(file), None));
                let reader = reader.map_err(damaged)?;
                (reader.schema(), Batches::Arrow(reader), None)
            }
            _ => {
                let reader = guarded(|| ParquetRecordBatchReaderBuilder::try_new(file));
                let reader = reader.map_err(damaged)?.with_batch_size(BATCH_ROWS);
                let rows = reader.metadata().file_metadata().num_rows();
                let schema = reader.schema().clone();
                let reader = guarded(|| reader.build()).map_err(damaged)?;
                (schema, Batches::Parquet(reader), u64::try_from(rows).ok())
            }
        };
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        for (index, own) in names.iter().enumerate() {
            if names[..index].contains(own) {
                let own = quoted(own);
                return Err(unread(&format!("two columns are called {own}; rename one of them")));
            }
        }
        Ok(Self { name, schema, batches, rows, names })
    }

    /// What the file says of the table that it came from, if it came from one.
    pub(crate) fn origin(&self) -> Outcome<Option<Origin>> {
        let Some(text) = self.schema.metadata().get(METADATA) else { return Ok(None) };
        match Origin::parse(text) {
            Some(origin) => Ok(Some(origin)),
            None => Err(Failure::Failed(format!(
                "{}: what it says of its table (metadata {}) cannot be read; a newer sapwood may \
                 read it",
                self.name,
                quoted(METADATA)
            ))),
        }
    }

    /// Calls `visit` with the cells of each row.
    pub(crate) fn read(self, form: &Form, ui: &Ui, visit: &mut Visit<'_>) -> Outcome {
        let format = match &self.batches {
            Batches::Parquet(_) => FileFormat::Parquet,
            Batches::Arrow(_) => FileFormat::Arrow,
        };
        let columns = form.columns();
        let place = |column: &Column| self.names.iter().position(|name| *name == column.name);
        let places: Vec<usize> =
            columns.iter().map(|column| place(column).expect("the names were compared")).collect();
        let progress = match self.rows {
            Some(rows) => ui.progress("importing", rows),
            None => ui.progress_unknown("importing"),
        };
        let mut number = 0;
        let mut batches = self.batches;
        loop {
            let batch = batches.next().map_err(|what| {
                progress.finish_and_clear();
                damaged(&self.name, format, &what)
            })?;
            let Some(batch) = batch else { break };
            let arrays = columns.iter().zip(&places);
            let arrays = arrays.map(|(column, place)| Values::of(batch.column(*place), column));
            let arrays: Vec<Values<'_>> = arrays
                .collect::<Result<_, _>>()
                .map_err(|what| Failure::Failed(format!("{}: {what}", self.name)))?;
            for row in 0..batch.num_rows() {
                if ui.interrupt.asked() {
                    return Ok(());
                }
                number += 1;
                let bad = |what: &str| {
                    progress.finish_and_clear();
                    bad_row(&self.name, "row", number, what)
                };
                let cells = arrays.iter().zip(columns);
                let cells = cells.map(|(values, column)| values.cell(row, column));
                let cells: Vec<Cell<'_>> =
                    cells.collect::<Result<_, _>>().map_err(|what: String| bad(&what))?;
                visit(number, &cells).map_err(|failure| match failure {
                    Failure::Usage(what) => bad(&what),
                    other => other,
                })?;
            }
            progress.inc(batch.num_rows() as u64);
        }
        progress.finish_and_clear();
        Ok(())
    }
}

fn damaged(name: &str, format: FileFormat, what: &str) -> Failure {
    Failure::Failed(format!(
        "{name} cannot be read as {}: {what}; is the file whole?",
        format.name()
    ))
}

/// The values of a column in a batch.
enum Values<'b> {
    Bool(&'b BooleanArray),
    Int8(&'b PrimitiveArray<Int8Type>),
    Int16(&'b PrimitiveArray<Int16Type>),
    Int32(&'b PrimitiveArray<Int32Type>),
    Int64(&'b PrimitiveArray<Int64Type>),
    UInt8(&'b PrimitiveArray<UInt8Type>),
    UInt16(&'b PrimitiveArray<UInt16Type>),
    UInt32(&'b PrimitiveArray<UInt32Type>),
    UInt64(&'b PrimitiveArray<UInt64Type>),
    Float32(&'b PrimitiveArray<Float32Type>),
    Float64(&'b PrimitiveArray<Float64Type>),
    Text(&'b StringArray),
    LargeText(&'b LargeStringArray),
    TextView(&'b StringViewArray),
    Bytes(&'b BinaryArray),
    LargeBytes(&'b LargeBinaryArray),
    BytesView(&'b BinaryViewArray),
    FixedBytes(&'b FixedSizeBinaryArray),
}

impl<'b> Values<'b> {
    fn of(array: &'b dyn Array, column: &Column) -> Result<Self, String> {
        Ok(match array.data_type() {
            DataType::Boolean => Self::Bool(array.as_boolean()),
            DataType::Int8 => Self::Int8(array.as_primitive()),
            DataType::Int16 => Self::Int16(array.as_primitive()),
            DataType::Int32 => Self::Int32(array.as_primitive()),
            DataType::Int64 => Self::Int64(array.as_primitive()),
            DataType::UInt8 => Self::UInt8(array.as_primitive()),
            DataType::UInt16 => Self::UInt16(array.as_primitive()),
            DataType::UInt32 => Self::UInt32(array.as_primitive()),
            DataType::UInt64 => Self::UInt64(array.as_primitive()),
            DataType::Float32 => Self::Float32(array.as_primitive()),
            DataType::Float64 => Self::Float64(array.as_primitive()),
            DataType::Utf8 => Self::Text(array.as_string()),
            DataType::LargeUtf8 => Self::LargeText(array.as_string()),
            DataType::Utf8View => Self::TextView(array.as_string_view()),
            DataType::Binary => Self::Bytes(array.as_binary()),
            DataType::LargeBinary => Self::LargeBytes(array.as_binary()),
            DataType::BinaryView => Self::BytesView(array.as_binary_view()),
            DataType::FixedSizeBinary(_) => Self::FixedBytes(array.as_fixed_size_binary()),
            other => {
                return Err(format!(
                    "column {} is {other}; cast it to a number, text or bytes first",
                    quoted(&column.name)
                ));
            }
        })
    }

    fn array(&self) -> &dyn Array {
        match self {
            Self::Bool(array) => array,
            Self::Int8(array) => array,
            Self::Int16(array) => array,
            Self::Int32(array) => array,
            Self::Int64(array) => array,
            Self::UInt8(array) => array,
            Self::UInt16(array) => array,
            Self::UInt32(array) => array,
            Self::UInt64(array) => array,
            Self::Float32(array) => array,
            Self::Float64(array) => array,
            Self::Text(array) => array,
            Self::LargeText(array) => array,
            Self::TextView(array) => array,
            Self::Bytes(array) => array,
            Self::LargeBytes(array) => array,
            Self::BytesView(array) => array,
            Self::FixedBytes(array) => array,
        }
    }

    fn cell(&self, row: usize, column: &Column) -> Result<Cell<'b>, String> {
        if self.array().is_null(row) {
            return Ok(Cell::Null);
        }
        Ok(match self {
            Self::Bool(array) => Cell::Bool(array.value(row)),
            Self::Int8(array) => Cell::Int(array.value(row).into()),
            Self::Int16(array) => Cell::Int(array.value(row).into()),
            Self::Int32(array) => Cell::Int(array.value(row).into()),
            Self::Int64(array) => Cell::Int(array.value(row).into()),
            Self::UInt8(array) => Cell::Int(array.value(row).into()),
            Self::UInt16(array) => Cell::Int(array.value(row).into()),
            Self::UInt32(array) => Cell::Int(array.value(row).into()),
            Self::UInt64(array) => Cell::Int(array.value(row).into()),
            Self::Float32(array) => Cell::Float32(array.value(row)),
            Self::Float64(array) => Cell::Float64(array.value(row)),
            Self::Text(array) => return text(array.value(row), column),
            Self::LargeText(array) => return text(array.value(row), column),
            Self::TextView(array) => return text(array.value(row), column),
            Self::Bytes(array) => Cell::bytes(array.value(row)),
            Self::LargeBytes(array) => Cell::bytes(array.value(row)),
            Self::BytesView(array) => Cell::bytes(array.value(row)),
            Self::FixedBytes(array) => Cell::bytes(array.value(row)),
        })
    }
}

/// Text; of a column of whole numbers of 128 bits, its digits.
fn text<'b>(text: &'b str, column: &Column) -> Result<Cell<'b>, String> {
    match column.kind {
        Kind::Int { bits: 128, .. } => column.parse(text),
        _ => Ok(Cell::text(text)),
    }
}
