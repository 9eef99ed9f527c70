//! A Parquet file of a folder: under another name until it is whole, synced, then renamed.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use sapwood_disk::{CachedFile, Disk, Presence};

use super::columns::Shape;
use crate::error::{Error, Result};

/// What a name has at its end until the file is whole.
const PART: &str = ".part";

/// The begin of the names of what the metadata of a file says.
const METADATA: &str = "sapwood.rollup.";

/// Rows of a group, and about the bytes at which it ends before it has them: so much is in memory.
const GROUP_ROWS: usize = 1 << 17;
const GROUP_BYTES: usize = 32 << 20;

/// A file that is being written. One that is not finished is removed.
pub(super) struct ParquetWriter<'d> {
    disk: &'d dyn Disk,
    name: String,
    /// None once it is finished.
    writer: Option<ArrowWriter<Sink>>,
}

/// Writes one byte after the other into a file.
struct Sink {
    file: Arc<dyn CachedFile>,
    at: u64,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(self.at, bytes)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'d> ParquetWriter<'d> {
    /// Begins a file; one that a crash has left half written gives way.
    pub(super) fn create(
        disk: &'d dyn Disk,
        name: &str,
        shape: &Shape<'_>,
        about: impl Iterator<Item = (&'static str, String)>,
    ) -> Result<ParquetWriter<'d>> {
        let part = format!("{name}{PART}");
        let create = || {
            if disk.list()?.contains(&part) {
                disk.remove(&part)?;
            }
            disk.cached(&part, Presence::New)
        };
        let file = create().map_err(|cause| refused(name, &cause))?;
        let about = about.map(|(key, value)| KeyValue::new(format!("{METADATA}{key}"), value));
        let properties = WriterProperties::builder()
            .set_created_by(concat!("sapwood ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_key_value_metadata(Some(about.collect()))
            .build();
        let options = ArrowWriterOptions::new().with_properties(properties);
        let schema = Arc::clone(&shape.schema);
        let writer = ArrowWriter::try_new_with_options(Sink { file, at: 0 }, schema, options);
        let mut begun = ParquetWriter { disk, name: name.to_owned(), writer: None };
        begun.writer = Some(writer.map_err(|error| begun.refused(error))?);
        Ok(begun)
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let writer = self.writer.as_mut().expect("it is not finished");
        let written = writer.write(batch).and_then(|()| match writer.memory_size() {
            bytes if bytes >= GROUP_BYTES => writer.flush(),
            _ => Ok(()),
        });
        written.map_err(|error| self.refused(error))
    }

    /// Ends the file, lets it last, and gives it its name: how long it is. The name lasts with the next sync of the disk.
    pub(super) fn finish(mut self) -> Result<u64> {
        let writer = self.writer.as_mut().expect("it is not finished");
        let ended = writer.finish().map(drop);
        let (file, bytes) = (Arc::clone(&writer.inner().file), writer.inner().at);
        ended.map_err(|error| self.refused(error))?;
        let part = format!("{}{PART}", self.name);
        let named = file.sync().and_then(|()| self.disk.rename(&part, &self.name));
        named.map_err(|cause| refused(&self.name, &cause))?;
        self.writer = None;
        Ok(bytes)
    }

    #[cold]
    fn refused(&self, error: ParquetError) -> Error {
        match &error {
            ParquetError::External(cause) => match cause.downcast_ref::<io::Error>() {
                Some(cause) => refused(&self.name, cause),
                None => refused(&self.name, &io::Error::other(error)),
            },
            _ => refused(&self.name, &io::Error::other(error)),
        }
    }
}

#[cold]
fn refused(name: &str, cause: &io::Error) -> Error {
    Error::io(format!("write {name}"), cause)
}

impl Drop for ParquetWriter<'_> {
    fn drop(&mut self) {
        if self.writer.take().is_some() {
            // What cannot go now gives way to the next file of that name.
            let _left = self.disk.remove(&format!("{}{PART}", self.name));
        }
    }
}
