//! Parquet and Arrow: columns of the types that the files say.
//!
//! Members of structures are columns with dots in their names, as those of JSON are. Columns of
//! lists, maps and other types that no column here has are left out, and a notice names them.

mod scan;
mod vectors;

use std::collections::HashMap;
use std::io::{BufReader, Cursor, Read, Seek};
use std::sync::Arc;

use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use sapwood_schema::{Scan, SourceColumn};

use crate::content::Detected;
use crate::guard::guarded;
use crate::input::{Input, Reader, Seekable};
use crate::names::distinct_names;
use crate::packing::plain;
use crate::words::quoted;
use scan::{ArrowScan, ParquetScan, Slot};
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
    layout: Layout,
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
        let (columns, places, notices) = columns_of(&schema);
        let metadata = schema.metadata().clone().into();
        Ok(ColumnFile { input, columns, places, notices, metadata, layout })
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
        let mut wanted: Vec<usize> = columns.iter().map(|column| self.places[*column][0]).collect();
        wanted.sort_unstable();
        wanted.dedup();
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
            Layout::Parquet(metadata) => Box::new(ParquetScan::new(input, metadata, wanted, slots)),
            Layout::File => {
                let reader = || FileReader::try_new(seekable(input)?, Some(wanted)).map_err(words);
                Box::new(ArrowScan::new(input, guarded(reader).map_err(arrow)?, slots))
            }
            Layout::Stream => {
                let reader = guarded(|| stream(input, Some(wanted)));
                Box::new(ArrowScan::new(input, reader.map_err(arrow)?, slots))
            }
        })
    }
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

/// The columns that can be read, where they stand, and what is to be said of the others.
fn columns_of(schema: &SchemaRef) -> (Vec<SourceColumn>, Vec<Vec<usize>>, Vec<String>) {
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
    let mut notices: Vec<String> = renamed.iter().map(ToString::to_string).collect();
    let (mut columns, mut places, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for (name, leaf) in names.into_iter().zip(leaves) {
        match kind_of(leaf.kind) {
            Some(kind) => {
                let as_read = read_as(leaf.kind);
                notices.extend(as_read.map(|what| format!("{} {what}", quoted(&name))));
                columns.push(SourceColumn { name, kind, nullable: true });
                places.push(leaf.place);
            }
            None => left_out.push(format!("{} ({})", quoted(&name), leaf.kind)),
        }
    }
    if !left_out.is_empty() {
        notices.push(format!(
            "columns of types that cannot be read are left out: {}",
            left_out.join(", ")
        ));
    }
    (columns, places, notices)
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
