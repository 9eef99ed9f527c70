//! The bytes of a file, unpacked, from the beginning as often as wanted.
//!
//! Standard input and pipes are read into memory when they are opened.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use indicatif::ProgressBar;

#[cfg(feature = "columnar")]
use crate::rows::source::extension;
use crate::rows::source::{Source, plain, unpack};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::ui::Ui;

/// Bytes that can be read again.
#[derive(Debug, Clone)]
pub(super) struct Input {
    /// As the user named it.
    pub(super) name: String,
    pub(super) path: PathBuf,
    from: From,
    progress: ProgressBar,
    pub(super) interrupt: Interrupt,
}

#[derive(Debug, Clone)]
enum From {
    /// A file of so many bytes, maybe packed.
    File(u64),
    /// What was read of a pipe, unpacked.
    Memory(Bytes),
}

/// Unpacked bytes, one after the other.
pub(super) type Reader = Box<dyn Read + Send>;

impl Input {
    /// Opens a path, or standard input for `-`.
    pub(super) fn open(path: &Path, ui: &Ui) -> Outcome<Input> {
        let name = match path == Path::new("-") {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        let failed =
            |error: io::Error| Failure::Failed(format!("{name} cannot be read: {}", cause(&error)));
        let interrupt = ui.interrupt.clone();
        let about = match path == Path::new("-") {
            true => None,
            false => Some(path.metadata().map_err(failed)?),
        };
        if let Some(about) = about.filter(|about| about.is_file() || about.is_dir()) {
            if about.is_dir() {
                return Err(Failure::Failed(format!(
                    "{name} is a directory: name one of the files in it"
                )));
            }
            let progress = ui.progress_bytes("reading", about.len());
            let from = From::File(about.len());
            return Ok(Input { name, path: path.to_owned(), from, progress, interrupt });
        }
        let Source { mut bytes, progress, .. } = Source::of(path, (), ui)?;
        let mut whole = Vec::new();
        let read = bytes.read_to_end(&mut whole);
        progress.finish_and_clear();
        match read {
            Err(_) if interrupt.asked() => Err(Failure::Interrupted("nothing was read".to_owned())),
            Err(error) => Err(failed(error)),
            Ok(_) => {
                let progress = ui.progress_bytes("reading", whole.len() as u64);
                let from = From::Memory(whole.into());
                Ok(Input { name, path: path.to_owned(), from, progress, interrupt })
            }
        }
    }

    /// Bytes of it, as they lie there.
    pub(super) fn length(&self) -> u64 {
        match &self.from {
            From::File(length) => *length,
            From::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// The bytes from the beginning, unpacked. The bar follows them.
    pub(super) fn reader(&self) -> io::Result<Reader> {
        self.progress.reset();
        match &self.from {
            From::File(_) => unpack(self.progress.wrap_read(File::open(&self.path)?)),
            From::Memory(bytes) => {
                Ok(Box::new(self.progress.wrap_read(Cursor::new(bytes.clone()))))
            }
        }
    }

    /// The first bytes, unpacked: so many, or all.
    pub(super) fn head(&self, length: usize) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        let read = self.reader().and_then(|it| it.take(length as u64).read_to_end(&mut head));
        self.finish();
        read.map(|_| head)
    }

    /// The file itself, or bytes in memory, for readers that go to and fro.
    #[cfg(feature = "columnar")]
    pub(super) fn seekable(&self) -> io::Result<Seekable> {
        let is_packed = matches!(extension(&self.path).as_str(), "gz" | "zst");
        match &self.from {
            From::File(_) if !is_packed => Ok(Seekable::File(File::open(&self.path)?)),
            From::Memory(bytes) => Ok(Seekable::Memory(bytes.clone())),
            From::File(_) => {
                let mut whole = Vec::new();
                self.reader()?.read_to_end(&mut whole)?;
                self.finish();
                Ok(Seekable::Memory(whole.into()))
            }
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.progress.finish_and_clear();
    }

    /// An error of the bytes: what it is, and what to look at.
    pub(super) fn unread(&self, error: &io::Error) -> String {
        self.failed(cause(error))
    }

    /// An error of reading, with the name of the file.
    pub(super) fn failed(&self, what: impl std::fmt::Display) -> String {
        format!("{} cannot be read: {what}", self.name)
    }

    /// Fails if the user asked to stop.
    pub(super) fn expect_wanted(&self) -> Result<(), String> {
        match self.interrupt.asked() {
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
pub(super) enum Seekable {
    File(File),
    Memory(Bytes),
}
