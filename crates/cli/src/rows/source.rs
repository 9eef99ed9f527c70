//! The input: a file or standard input, unpacked.
//!
//! A path, or `-` for standard input. Zstandard and gzip are recognised by their first bytes,
//! not by the name.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use indicatif::ProgressBar;

use crate::args::rows::Format;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::ui::Ui;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];

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

/// The error's words without the number that the operating system has for it.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// The ending of a name, but for that of the packing.
pub(crate) fn ending(path: &Path) -> String {
    match extension(path).as_str() {
        "zst" | "gz" => extension(&path.with_extension("")),
        _ => extension(path),
    }
}

pub(crate) fn extension(path: &Path) -> String {
    path.extension()
        .map(|extension| extension.to_string_lossy().to_ascii_lowercase())
        .unwrap_or_default()
}

pub(crate) fn unpack(mut packed: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut head = Vec::with_capacity(ZSTD_MAGIC.len());
    packed.by_ref().take(ZSTD_MAGIC.len() as u64).read_to_end(&mut head)?;
    let is_zstd = head.starts_with(&ZSTD_MAGIC);
    let is_gzip = head.starts_with(&GZIP_MAGIC);
    let whole = Cursor::new(head).chain(packed);
    Ok(if is_zstd {
        Box::new(zstd::stream::read::Decoder::new(whole)?)
    } else if is_gzip {
        Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(whole)))
    } else {
        Box::new(whole)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn unpacked(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        unpack(Cursor::new(bytes))?.read_to_end(&mut out)?;
        Ok(out)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("a vector takes everything");
        encoder.finish().expect("a vector takes everything")
    }

    fn zstandard(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).expect("a vector takes everything")
    }

    #[test]
    fn packing_is_told_by_the_first_bytes() {
        for plain in [&b""[..], b"a", b"a,b\n1,2\n"] {
            assert_eq!(unpacked(plain.to_vec()).expect("plain"), plain);
            assert_eq!(unpacked(zstandard(plain)).expect("zstd"), plain);
            assert_eq!(unpacked(gzip(plain)).expect("gzip"), plain);
        }
    }

    #[test]
    fn several_frames_are_one_file() {
        let (first, second) = (&b"a,b\n"[..], &b"1,2\n"[..]);
        assert_eq!(
            unpacked([zstandard(first), zstandard(second)].concat()).expect("zstd"),
            b"a,b\n1,2\n"
        );
        assert_eq!(unpacked([gzip(first), gzip(second)].concat()).expect("gzip"), b"a,b\n1,2\n");
    }

    #[test]
    fn a_cut_file_is_an_error() {
        let bytes: Vec<u8> = (0..10_000_u32).flat_map(u32::to_le_bytes).collect();
        for packed in [zstandard(&bytes), gzip(&bytes)] {
            for end in [6, packed.len() / 2, packed.len() - 1] {
                assert!(unpacked(packed[..end].to_vec()).is_err(), "cut at {end}");
            }
        }
    }
}
