//! The input: a file or standard input, unpacked.
//!
//! A path, or `-` for standard input. Zstandard and gzip are recognised by their first bytes,
//! not by the name.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use indicatif::ProgressBar;
use sapwood::files::{FileSource, ReadOptions, Watch, plain, unpack};

use crate::args::rows::Format;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::ui::Ui;

/// An input that was opened.
pub(crate) struct Source<F = Format> {
    /// As the user named it.
    pub(crate) name: String,
    pub(crate) format: F,
    /// Unpacked.
    pub(crate) bytes: Box<dyn Read + Send>,
    /// Follows the packed bytes as they are read.
    pub(crate) progress: ProgressBar,
}

impl<F> Source<F> {
    /// Opens `path`, or standard input for `-`, which has this format.
    pub(crate) fn of(path: &Path, format: F, ui: &Ui) -> Outcome<Self> {
        let name = path.display().to_string();
        let failed =
            |error: io::Error| Failure::Failed(format!("{name} cannot be read: {}", plain(&error)));
        let (file, progress): (Box<dyn Read + Send>, _) = if path == Path::new("-") {
            let waiting = Waiting::begin(&ui.interrupt, || io::stdin().lock());
            (Box::new(waiting), ui.progress_unknown("reading"))
        } else {
            let file = File::open(path).map_err(failed)?;
            let length = file.metadata().map_err(failed)?;
            match length.is_file() {
                true => (Box::new(file), ui.progress_bytes("reading", length.len())),
                // A pipe with a name, or a device, may keep its reader waiting.
                false => {
                    let waiting = Waiting::begin(&ui.interrupt, || file);
                    (Box::new(waiting), ui.progress_unknown("reading"))
                }
            }
        };
        let packed = progress.wrap_read(file);
        Ok(Self { bytes: unpack(packed).map_err(failed)?, name, format, progress })
    }
}

/// Input that may never come, read by a thread of its own, so that Ctrl-C ends the wait for it:
/// then reading fails.
struct Waiting {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Cursor<Vec<u8>>,
    interrupt: Interrupt,
}

impl Waiting {
    const PIECE_BYTES: usize = 64 * 1024;
    /// The interval at which the wait checks for an interrupt.
    const LOOK: Duration = Duration::from_millis(20);

    fn begin<R: Read>(
        interrupt: &Interrupt,
        input: impl FnOnce() -> R + Send + 'static,
    ) -> Waiting {
        let (send, pieces) = mpsc::sync_channel(4);
        // It ends with the input, with the other end of the channel, or with the process.
        thread::spawn(move || Self::fill(input(), &send));
        Waiting { pieces, piece: Cursor::default(), interrupt: interrupt.clone() }
    }

    fn fill(mut input: impl Read, pieces: &SyncSender<io::Result<Vec<u8>>>) {
        loop {
            let mut piece = vec![0; Self::PIECE_BYTES];
            let read = match input.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read,
            };
            let is_last = !matches!(read, Ok(1..));
            let sent = pieces.send(read.map(|length| {
                piece.truncate(length);
                piece
            }));
            if is_last || sent.is_err() {
                return;
            }
        }
    }
}

impl Read for Waiting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.position() == self.piece.get_ref().len() as u64 {
            if self.interrupt.asked() {
                return Err(io::Error::other("the wait for input was interrupted"));
            }
            match self.pieces.recv_timeout(Self::LOOK) {
                Ok(Ok(piece)) if piece.is_empty() => return Ok(0),
                Ok(piece) => self.piece = Cursor::new(piece?),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        self.piece.read(buffer)
    }
}

/// Opens a file of rows, or those of a pattern or a folder; `-` is standard input.
pub(crate) fn open(path: &Path, options: &ReadOptions, ui: &Ui) -> Outcome<FileSource> {
    let options = ReadOptions { watch: Arc::new(Bar::of(ui)), ..options.clone() };
    let about = path.metadata();
    let waits = path == Path::new("-") || about.is_ok_and(|it| !it.is_file() && !it.is_dir());
    if !waits {
        return Ok(FileSource::open(path, &options)?);
    }
    let Source { bytes, progress, .. } = Source::of(path, (), ui)?;
    let opened = FileSource::read(path, bytes, &options);
    progress.finish_and_clear();
    opened.map_err(|error| match Failure::from(error) {
        Failure::Interrupted(_) => Failure::Interrupted("nothing was read".to_owned()),
        failure => failure,
    })
}

/// A bar that follows the readers of files, which Ctrl-C ends.
#[derive(Debug)]
struct Bar {
    bar: ProgressBar,
    /// Relaxed: it says when the bar is to go, and nothing else.
    readers: AtomicUsize,
    interrupt: Interrupt,
}

impl Bar {
    fn of(ui: &Ui) -> Bar {
        let bar = ui.progress_bytes("reading", 0);
        Bar { bar, readers: AtomicUsize::new(0), interrupt: ui.interrupt.clone() }
    }
}

impl Watch for Bar {
    fn begin(&self, bytes: u64) {
        match self.readers.fetch_add(1, Ordering::Relaxed) {
            0 => {
                self.bar.reset();
                self.bar.set_length(bytes);
            }
            _ => self.bar.inc_length(bytes),
        }
    }

    fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    fn end(&self) {
        if self.readers.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.bar.finish_and_clear();
        }
    }

    fn is_cancelled(&self) -> bool {
        self.interrupt.asked()
    }
}

/// Refuses a path at which there is nothing.
pub(crate) fn exists(path: &Path) -> Outcome {
    if path == Path::new("-") {
        return Ok(());
    }
    match path.metadata() {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(Failure::Failed(format!("{} cannot be read: {}", path.display(), plain(&error))))
        }
    }
}
