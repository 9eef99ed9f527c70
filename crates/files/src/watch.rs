//! A watch over readers: how far they have come, and when they are to stop.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

/// Follows the reading of files, and may end it.
pub trait Watch: fmt::Debug + Send + Sync {
    /// Notes that a file of so many bytes, as they lie on the disk, is read from its beginning.
    fn begin(&self, bytes: u64) {
        let _ = bytes;
    }

    /// Notes that so many bytes were read.
    fn advance(&self, bytes: u64) {
        let _ = bytes;
    }

    /// Notes that the file is read no further.
    fn end(&self) {}

    /// Answers whether readers are to stop: they fail then.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// No watch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unwatched;

impl Watch for Unwatched {}

/// Bytes that are read under a watch.
pub(crate) struct Watched<R> {
    inner: R,
    watch: Arc<dyn Watch>,
}

impl<R> Watched<R> {
    pub(crate) fn new(inner: R, bytes: u64, watch: &Arc<dyn Watch>) -> Watched<R> {
        watch.begin(bytes);
        Watched { inner, watch: Arc::clone(watch) }
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.watch.advance(read as u64);
        Ok(read)
    }
}

impl<R> Drop for Watched<R> {
    fn drop(&mut self) {
        self.watch.end();
    }
}
