//! A place for the bytes of rows: any writer, or a file that is there whole or not at all.
//!
//! A file is written under a name that ends in `.part`, and gets its own when all of it is written
//! and synced; one that is given up is removed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::write::GzEncoder;

use crate::error::{Error, Result};
use crate::packing::{Packing, plain};

const BUFFER_BYTES: usize = 256 * 1024;

/// The fate of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the command is refused.
    Keep,
    /// The new one takes its place.
    Replace,
}

/// A place for bytes, with their packing.
///
/// ```
/// use std::io::Write;
/// use sapwood::files::{Existing, FileSink, Packing};
///
/// # let folder = tempfile::tempdir().expect("a directory for the example");
/// let path = folder.path().join("a.csv");
/// let mut sink = FileSink::file(&path, Packing::Plain, Existing::Keep)?;
/// sink.write_all(b"a\n1\n").expect("room");
/// assert!(!path.exists());
/// sink.finish()?;
/// assert!(path.exists());
/// # Ok::<(), sapwood::files::Error>(())
/// ```
pub struct FileSink {
    bytes: Packed,
    file: Option<Part>,
    trouble: Trouble,
}

enum Packed {
    Plain(BufWriter<Target>),
    Gzip(GzEncoder<BufWriter<Target>>),
    Zstd(zstd::Encoder<'static, BufWriter<Target>>),
}

/// A writer or a file, with a note of the first error: layers between hide it.
struct Target {
    to: To,
    trouble: Trouble,
}

enum To {
    /// With the name that messages have.
    Writer(&'static str, Box<dyn Write + Send>),
    File(File),
}

/// The first error of writing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trouble(Arc<Mutex<Option<Error>>>);

impl Trouble {
    /// The error behind one that a layer answered.
    pub(crate) fn of(&self, error: &io::Error) -> Error {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.unwrap_or_else(|| Error::write(format!("the rows cannot be written: {error}"), error))
    }
}

/// A file under its name for the time being; removed unless it is kept.
struct Part {
    path: PathBuf,
    whole: PathBuf,
    existing: Existing,
    is_kept: bool,
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl FileSink {
    /// A writer, by the name that messages have.
    pub fn writer(name: &'static str, to: impl Write + Send + 'static) -> Self {
        let trouble = Trouble::default();
        let target = Target { to: To::Writer(name, Box::new(to)), trouble: trouble.clone() };
        let bytes = Packed::Plain(BufWriter::with_capacity(BUFFER_BYTES, target));
        Self { bytes, file: None, trouble }
    }

    /// A file, which gets its name when it is whole.
    ///
    /// # Errors
    /// The file is there and is not to be replaced, or its folder takes none.
    pub fn file(path: &Path, packing: Packing, existing: Existing) -> Result<Self> {
        if path.is_dir() {
            let what = format!("{} is a directory: give the name of a file in it", path.display());
            return Err(Error::write(what, &io::ErrorKind::IsADirectory.into()));
        }
        expect_absent(path, existing)?;
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let part = PathBuf::from(name);
        let failed = |error: io::Error| cannot_write(&part, &error);
        let file = match existing {
            Existing::Keep => File::create_new(&part),
            Existing::Replace => File::create(&part),
        };
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                let what = format!(
                    "{} is there: another command writes it, or one was killed; remove it then",
                    part.display()
                );
                Error::write(what, &error)
            }
            _ => failed(error),
        })?;
        let kept = Part { path: part.clone(), whole: path.to_owned(), existing, is_kept: false };
        let trouble = Trouble::default();
        let target = Target { to: To::File(file), trouble: trouble.clone() };
        let buffered = BufWriter::with_capacity(BUFFER_BYTES, target);
        let bytes = match packing {
            Packing::Plain => Packed::Plain(buffered),
            Packing::Gzip => Packed::Gzip(GzEncoder::new(buffered, flate2::Compression::default())),
            Packing::Zstd => {
                let mut encoder = zstd::Encoder::new(buffered, 0).map_err(failed)?;
                encoder.include_checksum(true).map_err(failed)?;
                Packed::Zstd(encoder)
            }
        };
        Ok(Self { bytes, file: Some(kept), trouble })
    }

    /// The error behind one that a write answered.
    pub fn failure(&self, error: &io::Error) -> Error {
        self.trouble.of(error)
    }

    /// The place that has the first error.
    pub(crate) fn trouble(&self) -> Trouble {
        self.trouble.clone()
    }

    /// Writes what is left, and gives the file its name.
    ///
    /// # Errors
    /// An error of writing; a file that stands under the name by now, and is not to be replaced.
    pub fn finish(self) -> Result<()> {
        let Self { bytes, file, trouble } = self;
        let failed = |error: io::Error| trouble.of(&error);
        let mut buffered = match bytes {
            Packed::Plain(bytes) => bytes,
            Packed::Gzip(bytes) => bytes.finish().map_err(failed)?,
            Packed::Zstd(bytes) => bytes.finish().map_err(failed)?,
        };
        buffered.flush().map_err(failed)?;
        let (Some(mut part), To::File(written)) = (file, &buffered.get_ref().to) else {
            return Ok(());
        };
        let failed = |error: io::Error| cannot_write(&part.whole, &error);
        written.sync_all().map_err(failed)?;
        expect_absent(&part.whole, part.existing)?;
        fs::rename(&part.path, &part.whole).map_err(failed)?;
        part.is_kept = true;
        Ok(())
    }
}

/// Refuses to write over a file.
fn expect_absent(path: &Path, existing: Existing) -> Result<()> {
    // A link that leads nowhere is there, too.
    match (existing, path.symlink_metadata()) {
        (Existing::Replace, _) => Ok(()),
        (Existing::Keep, Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        (Existing::Keep, Err(error)) => Err(cannot_write(path, &error)),
        (Existing::Keep, Ok(_)) => Err(Error::Exists { path: path.to_owned() }),
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Error {
    Error::write(format!("{} cannot be written: {}", path.display(), plain(error)), error)
}

impl Write for FileSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.bytes {
            Packed::Plain(to) => to.write(bytes),
            Packed::Gzip(to) => to.write(bytes),
            Packed::Zstd(to) => to.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // Writers flush as they go; what is left goes out with `finish`.
        Ok(())
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.to {
            To::Writer(_, out) => out.write(bytes),
            To::File(file) => file.write(bytes),
        };
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = match &mut self.to {
            To::Writer(_, out) => out.flush(),
            To::File(file) => file.flush(),
        };
        self.note(flushed)
    }
}

impl Target {
    fn note<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        let error = match outcome {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => error,
            other => return other,
        };
        let copy = match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::from(error.kind()),
        };
        let what = match self.to {
            To::Writer(name, _) => format!("{name} cannot be written: {copy}"),
            To::File(_) => format!("the file cannot be written: {}", plain(&copy)),
        };
        let failure = Error::write(what, &copy);
        self.trouble.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        Err(error)
    }
}
