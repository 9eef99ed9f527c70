//! The bytes of a file, unpacked, from the beginning as often as wanted.
//!
//! Pipes are read into memory when they are opened.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::message_pack;
#[cfg(feature = "columnar")]
use crate::packing::extension;
use crate::packing::{plain, unpack};
use crate::watch::{Watch, Watched};

/// Bytes that can be read again.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    /// The name that messages have.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    from: From,
    /// Maps of MessagePack are read as lines of JSON.
    is_message_pack: bool,
    pub(crate) watch: Arc<dyn Watch>,
}

#[derive(Debug, Clone)]
enum From {
    /// A file of so many bytes, maybe packed.
    File(u64),
    /// The bytes of a pipe, unpacked.
    Memory(Bytes),
}

/// Unpacked bytes, one after the other.
pub(crate) type Reader = Box<dyn Read + Send>;

impl Input {
    /// Opens a file or a pipe.
    pub(crate) fn open(path: &Path, watch: Arc<dyn Watch>) -> Result<Input, String> {
        let name = path.display().to_string();
        let failed = |error: io::Error| format!("{name} cannot be read: {}", cause(&error));
        let about = path.metadata().map_err(failed)?;
        if about.is_dir() {
            return Err(format!("{name} is a directory: name one of the files in it"));
        }
        if !about.is_file() {
            return Input::of(path, File::open(path).map_err(failed)?, watch);
        }
        let from = From::File(about.len());
        Ok(Input { name, path: path.to_owned(), from, is_message_pack: false, watch })
    }

    /// All bytes of a reader, which are packed or not.
    pub(crate) fn of(
        path: &Path,
        bytes: impl Read + Send + 'static,
        watch: Arc<dyn Watch>,
    ) -> Result<Input, String> {
        let name = match path == Path::new("-") {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        let mut whole = Vec::new();
        unpack(bytes)
            .and_then(|mut bytes| bytes.read_to_end(&mut whole))
            .map_err(|error| format!("{name} cannot be read: {}", cause(&error)))?;
        let from = From::Memory(whole.into());
        Ok(Input { name, path: path.to_owned(), from, is_message_pack: false, watch })
    }

    /// Reads the maps of MessagePack as lines of JSON.
    pub(crate) fn into_json_lines(self) -> Input {
        Input { is_message_pack: true, ..self }
    }

    /// The number of bytes, as they lie on the disk.
    pub(crate) fn length(&self) -> u64 {
        match &self.from {
            From::File(length) => *length,
            From::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// The bytes from the beginning, unpacked. The watch follows them.
    pub(crate) fn reader(&self) -> io::Result<Reader> {
        let (length, watch) = (self.length(), &self.watch);
        let reader: Reader = match &self.from {
            From::File(_) => unpack(Watched::new(File::open(&self.path)?, length, watch))?,
            From::Memory(bytes) => {
                Box::new(Watched::new(Cursor::new(bytes.clone()), length, watch))
            }
        };
        Ok(match self.is_message_pack {
            true => Box::new(message_pack::JsonLines::of(reader)),
            false => reader,
        })
    }

    /// The first bytes, unpacked: so many, or all.
    pub(crate) fn head(&self, length: usize) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        self.reader()?.take(length as u64).read_to_end(&mut head)?;
        Ok(head)
    }

    /// The file itself, or bytes in memory, for readers that go to and fro.
    #[cfg(feature = "columnar")]
    pub(crate) fn seekable(&self) -> io::Result<Seekable> {
        let is_packed = matches!(extension(&self.path).as_str(), "gz" | "zst");
        match &self.from {
            From::File(_) if !is_packed => Ok(Seekable::File(File::open(&self.path)?)),
            From::Memory(bytes) => Ok(Seekable::Memory(bytes.clone())),
            From::File(_) => {
                let mut whole = Vec::new();
                self.reader()?.read_to_end(&mut whole)?;
                Ok(Seekable::Memory(whole.into()))
            }
        }
    }

    /// An error of the bytes: what it is, and what to look at.
    pub(crate) fn unread(&self, error: &io::Error) -> String {
        self.failed(cause(error))
    }

    /// An error of reading, with the name of the file.
    pub(crate) fn failed(&self, what: impl std::fmt::Display) -> String {
        format!("{} cannot be read: {what}", self.name)
    }

    /// Fails if readers are to stop.
    pub(crate) fn expect_wanted(&self) -> Result<(), String> {
        match self.watch.is_cancelled() {
            true => Err(format!("{} was not read to its end: interrupted", self.name)),
            false => Ok(()),
        }
    }
}

/// The words of an error of reading. Bytes that are not what their packing says may have been cut.
fn cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => plain(error),
        _ => format!("{}; is the file whole?", plain(error)),
    }
}

/// Bytes that are read at any place.
#[cfg(feature = "columnar")]
pub(crate) enum Seekable {
    File(File),
    Memory(Bytes),
}
