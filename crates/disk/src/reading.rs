//! The way of reads that are in flight together.

use std::io;

use crate::ring;

/// The way that a disk is asked for, when it is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum DiskReads {
    /// By io_uring where the system has it and permits it, else by threads; the default.
    #[default]
    Auto,
    /// By io_uring, or the disk is not opened.
    IoUring,
    /// By threads, whatever the system permits: where io_uring is not trusted, or to compare.
    Threads,
}

/// The way that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadsBy {
    /// One call hands all of them to the kernel, and one waits.
    IoUring,
    /// A thread waits for each.
    Threads,
}

impl ReadsBy {
    /// Its name, for figures and messages.
    pub fn name(self) -> &'static str {
        match self {
            ReadsBy::IoUring => "io_uring",
            ReadsBy::Threads => "threads",
        }
    }
}

impl DiskReads {
    /// Chooses: by trying.
    pub(crate) fn choose(self) -> io::Result<ReadsBy> {
        self.choose_by(ring::probe)
    }

    fn choose_by(self, probe: impl FnOnce() -> io::Result<()>) -> io::Result<ReadsBy> {
        if self == DiskReads::Threads {
            return Ok(ReadsBy::Threads);
        }
        match probe() {
            Ok(()) => Ok(ReadsBy::IoUring),
            Err(_) if self == DiskReads::Auto => Ok(ReadsBy::Threads),
            Err(cause) => Err(io::Error::new(
                cause.kind(),
                format!("reads by io_uring: {cause}; let the system permit it, or read by threads"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_ring_leaves_threads_unless_it_was_demanded() {
        let refused = || Err(io::Error::from(io::ErrorKind::PermissionDenied));
        for (asked, permitted, forbidden) in [
            (DiskReads::Auto, Some(ReadsBy::IoUring), Some(ReadsBy::Threads)),
            (DiskReads::IoUring, Some(ReadsBy::IoUring), None),
            (DiskReads::Threads, Some(ReadsBy::Threads), Some(ReadsBy::Threads)),
        ] {
            assert_eq!(asked.choose_by(|| Ok(())).ok(), permitted, "{asked:?}");
            assert_eq!(asked.choose_by(refused).ok(), forbidden, "{asked:?}");
        }
        let refusal = DiskReads::IoUring.choose_by(refused).expect_err("it was demanded");
        assert_eq!(refusal.kind(), io::ErrorKind::PermissionDenied);
        assert!(refusal.to_string().contains("io_uring"), "{refusal}");
    }
}
