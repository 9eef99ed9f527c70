//! Parquet and Arrow: columns of the types that the files say.
//!
//! Members of structures are columns with dots in their names, as those of JSON are, and lists that all have as many
//! items of a fixed width are arrays. Other lists, maps and structures within them are text, their JSON. Columns of
//! types that no column here has (unions, intervals) are left out, and a notice names them.

mod nested;
mod scan;
mod vectors;

use std::collections::HashMap;
use std::io::{BufReader, Cursor, Read, Seek};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use sapwood_schema::{BATCH_ROWS, Scan, SourceColumn, Type};

use crate::content::Detected;
use crate::guard::guarded;
use crate::input::{Input, Reader, Seekable};
use crate::names::distinct_names;
use crate::packing::plain;
use crate::words::quoted;
use nested::{Len, item_kind, len_of};
use scan::{ArrowScan, Member, ParquetScan, Slot, member_of, parquet};
use vectors::{kind_of, read_as};

/// A file of typed columns.
#[derive(Clone)]
pub(crate) struct ColumnFile {
    pub(crate) input: Input,
    pub(crate) columns: Vec<SourceColumn>,
    pub(crate) notices: Vec<String>,
    pub(crate) metadata: HashMap<String, String>,
    /// Places of the columns in the file: the column of the file, and the members on the way into
    /// it.
    places: Vec<Vec<usize>>,
    /// For each column of lists that may be arrays, the type of their items.
    items: Vec<Option<Type>>,
    layout: Layout,
    /// True once a scan met an array with other items than those before it. Relaxed: it is looked at behind the scan.
    is_too_narrow: Arc<AtomicBool>,
}

#[derive(Clone)]
enum Layout {
    Parquet(ArrowReaderMetadata),
    File,
    Stream,
}

/// Bytes at any place of a file.
trait Bytes: Read + Seek + Send {}

impl<T: Read + Seek + Send> Bytes for T {}

impl ColumnFile {
    pub(crate) fn open(input: Input, format: Detected) -> Result<ColumnFile, String> {
        let (schema, layout) = match format {
            Detected::Parquet => {
                let load = |options: ArrowReaderOptions| -> Result<_, String> {
                    Ok(match open(&input)? {
                        Seekable::File(file) => {
                            guarded(|| ArrowReaderMetadata::load(&file, options))
                        }
                        Seekable::Memory(bytes) => {
                            guarded(|| ArrowReaderMetadata::load(&bytes, options))
                        }
                    })
                };
                let metadata = match load(ArrowReaderOptions::new())? {
                    Ok(metadata) => metadata,
                    // Types of Arrow that its writer noted, and that are not known: those of
                    // Parquet are.
                    Err(what) => load(ArrowReaderOptions::new().with_skip_arrow_metadata(true))?
                        .map_err(|_| damaged(&input, "Parquet", &what))?,
                };
                (metadata.schema().clone(), Layout::Parquet(metadata))
            }
            Detected::ArrowFile => {
                let reader =
                    guarded(|| FileReader::try_new(seekable(&input)?, None).map_err(words));
                let reader = reader.map_err(|what| damaged(&input, "Arrow", &what))?;
                (reader.schema(), Layout::File)
            }
            _ => {
                let reader = guarded(|| stream(&input, None));
                let reader = reader.map_err(|what| damaged(&input, "Arrow", &what))?;
                (reader.schema(), Layout::Stream)
            }
        };
        let Columns { columns, places, items, notices } = columns_of(&schema);
        let metadata = schema.metadata().clone().into();
        let is_too_narrow = Arc::default();
        let file =
            ColumnFile { input, columns, places, notices, metadata, items, layout, is_too_narrow };
        file.with_lists(BATCH_ROWS)
    }

    /// Makes lists arrays if all of them have as many items.
    pub(crate) fn widened(&self) -> Result<ColumnFile, String> {
        ColumnFile { is_too_narrow: Arc::default(), ..self.clone() }.with_lists(usize::MAX)
    }

    /// True where a scan failed at an array with other items than those before it.
    pub(crate) fn is_too_narrow(&self) -> bool {
        self.is_too_narrow.load(Ordering::Relaxed)
    }

    /// Looks at the lists of the first rows, so many: they are arrays if all have as many items, else text.
    fn with_lists(mut self, rows_max: usize) -> Result<ColumnFile, String> {
        let lists: Vec<usize> =
            (0..self.columns.len()).filter(|column| self.items[*column].is_some()).collect();
        if lists.is_empty() {
            return Ok(self);
        }
        let wanted = self.roots(&lists);
        let mut lens: Vec<Len> = vec![Ok(None); lists.len()];
        let mut rows = 0;
        for batch in self.batches(wanted.clone())? {
            self.input.expect_wanted()?;
            let batch = batch?;
            for (column, len) in lists.iter().zip(&mut lens) {
                let (root, members) = self.places[*column].split_first().expect("a column");
                let slot = wanted.binary_search(root).expect("it is one of them");
                let Member { array, is_absent } = member_of(batch.column(slot).as_ref(), members);
                let is_absent = |at: usize| is_absent.get(at).is_some_and(|absent| *absent);
                *len = len_of(array, &is_absent, *len);
            }
            rows += batch.num_rows();
            if rows >= rows_max {
                break;
            }
        }
        for (column, len) in lists.into_iter().zip(lens) {
            let item = self.items[column].clone().expect("it is one of lists");
            self.columns[column].kind = match len {
                Ok(Some(len)) => Type::Array(Box::new(item), len),
                Ok(None) | Err(_) => Type::Text,
            };
        }
        Ok(self)
    }

    /// The columns of the file in which some columns lie.
    fn roots(&self, columns: &[usize]) -> Vec<usize> {
        let mut roots: Vec<usize> = columns.iter().map(|column| self.places[*column][0]).collect();
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    /// Batches of some columns of the file, one after the other.
    fn batches(
        &self,
        wanted: Vec<usize>,
    ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch, String>> + '_>, String> {
        let input = &self.input;
        Ok(match &self.layout {
            Layout::Parquet(metadata) => {
                each(input, "Parquet", parquet(self, metadata, wanted, None)?)
            }
            Layout::File => {
                let reader = || FileReader::try_new(seekable(input)?, Some(wanted)).map_err(words);
                let reader = guarded(reader).map_err(|what| damaged(input, "Arrow", &what))?;
                each(input, "Arrow", reader)
            }
            Layout::Stream => {
                let reader = guarded(|| stream(input, Some(wanted)));
                each(input, "Arrow", reader.map_err(|what| damaged(input, "Arrow", &what))?)
            }
        })
    }

    /// The rows, where the file says so at its end.
    pub(crate) fn rows(&self) -> Option<u64> {
        match &self.layout {
            Layout::Parquet(metadata) => {
                u64::try_from(metadata.metadata().file_metadata().num_rows()).ok()
            }
            Layout::File | Layout::Stream => None,
        }
    }

    pub(crate) fn scan<'a>(&'a self, columns: &[usize]) -> Result<Box<dyn Scan + 'a>, String> {
        let wanted = self.roots(columns);
        // For each column, where it stands among those that are read, and its type.
        let slots = columns.iter().map(|column| {
            let (root, members) = self.places[*column].split_first().expect("a column");
            let slot = wanted.binary_search(root).expect("it is one of them");
            Slot { slot, members, column: &self.columns[*column] }
        });
        let slots = slots.collect();
        let input = &self.input;
        let arrow = |what: String| damaged(input, "Arrow", &what);
        Ok(match &self.layout {
            Layout::Parquet(metadata) => Box::new(ParquetScan::new(self, metadata, wanted, slots)),
            Layout::File => {
                let reader = || FileReader::try_new(seekable(input)?, Some(wanted)).map_err(words);
                Box::new(ArrowScan::new(self, guarded(reader).map_err(arrow)?, slots))
            }
            Layout::Stream => {
                let reader = guarded(|| stream(input, Some(wanted)));
                Box::new(ArrowScan::new(self, reader.map_err(arrow)?, slots))
            }
        })
    }
}

/// The batches of a reader, guarded.
fn each<'a, E: ToString>(
    input: &'a Input,
    format: &'static str,
    mut reader: impl Iterator<Item = Result<RecordBatch, E>> + 'a,
) -> Box<dyn Iterator<Item = Result<RecordBatch, String>> + 'a> {
    Box::new(std::iter::from_fn(move || {
        let next = guarded(|| reader.next().transpose().map_err(words));
        next.map_err(|what| damaged(input, format, &what)).transpose()
    }))
}

fn open(input: &Input) -> Result<Seekable, String> {
    input.seekable().map_err(|error| input.unread(&error))
}

fn seekable(input: &Input) -> Result<Box<dyn Bytes>, String> {
    Ok(match input.seekable().map_err(|error| plain(&error))? {
        Seekable::File(file) => Box::new(BufReader::new(file)),
        Seekable::Memory(bytes) => Box::new(Cursor::new(bytes)),
    })
}

type Stream = StreamReader<BufReader<Reader>>;

fn stream(input: &Input, columns: Option<Vec<usize>>) -> Result<Stream, String> {
    let reader = input.reader().map_err(|error| plain(&error))?;
    StreamReader::try_new(BufReader::new(reader), columns).map_err(words)
}

fn words(error: impl ToString) -> String {
    error.to_string()
}

fn damaged(input: &Input, format: &str, what: &str) -> String {
    format!("{} cannot be read as {format}: {what}; is the file whole?", input.name)
}

/// The columns that can be read, their places, the types of the items of lists, and notices.
#[derive(Default)]
struct Columns {
    columns: Vec<SourceColumn>,
    places: Vec<Vec<usize>>,
    items: Vec<Option<Type>>,
    notices: Vec<String>,
}

fn columns_of(schema: &SchemaRef) -> Columns {
    let schema: &Arc<Schema> = schema;
    let mut leaves = Vec::new();
    for (at, field) in schema.fields().iter().enumerate() {
        let name = match field.name().as_str() {
            "" => format!("column{}", at + 1),
            name => name.to_owned(),
        };
        add_leaves(name, field.data_type(), vec![at], &mut leaves);
    }
    let (names, renamed) = distinct_names(leaves.iter().map(|leaf| leaf.name.clone()).collect());
    let notices = renamed.iter().map(ToString::to_string).collect();
    let mut all = Columns { notices, ..Columns::default() };
    let mut left_out = Vec::new();
    for (name, leaf) in names.into_iter().zip(leaves) {
        match kind_of(leaf.kind) {
            Some(kind) => {
                let as_read = read_as(leaf.kind);
                all.notices.extend(as_read.map(|what| format!("{} {what}", quoted(&name))));
                all.columns.push(SourceColumn { name, kind, nullable: true });
                all.places.push(leaf.place);
                all.items.push(item_kind(leaf.kind));
            }
            None => left_out.push(format!("{} ({})", quoted(&name), leaf.kind)),
        }
    }
    if !left_out.is_empty() {
        all.notices.push(format!(
            "columns of types that cannot be read are left out: {}",
            left_out.join(", ")
        ));
    }
    all
}

/// A column of a file that is no structure, or a member of one.
struct Leaf<'s> {
    name: String,
    kind: &'s DataType,
    place: Vec<usize>,
}

fn add_leaves<'s>(name: String, kind: &'s DataType, place: Vec<usize>, leaves: &mut Vec<Leaf<'s>>) {
    let DataType::Struct(members) = kind else {
        leaves.push(Leaf { name, kind, place });
        return;
    };
    for (at, member) in members.iter().enumerate() {
        let place = place.iter().copied().chain([at]).collect();
        add_leaves(format!("{name}.{}", member.name()), member.data_type(), place, leaves);
    }
}
