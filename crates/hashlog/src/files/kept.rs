//! The checkpoints of a log that are on the disk.

use std::sync::atomic::{AtomicU64, Ordering};

use sapwood_mem::sync::held::Mutex;

use crate::files::Directory;
use crate::files::checkpoint_number::CheckpointNumber;
use crate::files::identity::Identity;
use crate::files::manifest::Manifest;
use crate::lock::lock;
use crate::stats::CheckpointInfo;

/// The checkpoints of a log.
pub(crate) struct Checkpoints {
    /// Held while files come and go, before `state`: see `HashLog::hold_files`.
    pub(crate) files: Mutex<()>,
    pub(crate) disk: Directory,
    pub(crate) state: Mutex<CheckpointList>,
    /// First byte of the log that the oldest needs: `u64::MAX` without any.
    pub(crate) oldest_begin: AtomicU64,
}

/// The part of [`Checkpoints`] that changes, under its lock.
pub(crate) struct CheckpointList {
    /// Those that are kept, oldest first.
    pub(crate) kept: Vec<Manifest>,
    /// Those that failed, and whose manifests may be there nonetheless.
    pub(crate) doubtful: Vec<Manifest>,
    /// The number of the next: higher than that of any file.
    pub(crate) next: CheckpointNumber,
    pub(crate) identity: Identity,
}

impl CheckpointList {
    /// Manifests that are or may be on the disk.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Manifest> + Clone {
        self.kept.iter().chain(&self.doubtful)
    }
}

impl Checkpoints {
    pub(crate) fn new(
        disk: Directory,
        kept: Vec<Manifest>,
        next: CheckpointNumber,
        identity: Identity,
    ) -> Checkpoints {
        let oldest_begin = AtomicU64::new(oldest_begin(kept.iter()));
        let state = Mutex::new(CheckpointList { kept, doubtful: Vec::new(), next, identity });
        Checkpoints { files: Mutex::default(), disk, state, oldest_begin }
    }

    /// First byte of the log that a checkpoint needs. Waits for no checkpoint to be done.
    pub(crate) fn oldest_begin(&self) -> Option<u64> {
        let begin = self.oldest_begin.load(Ordering::SeqCst);
        (begin != u64::MAX).then_some(begin)
    }

    pub(crate) fn infos(&self) -> Vec<CheckpointInfo> {
        lock(&self.state).kept.iter().map(info).collect()
    }
}

/// First byte of the log that any of these manifests needs.
pub(crate) fn oldest_begin<'a>(named: impl Iterator<Item = &'a Manifest>) -> u64 {
    named.map(|manifest| manifest.begin).min().unwrap_or(u64::MAX)
}

pub(crate) fn info(manifest: &Manifest) -> CheckpointInfo {
    CheckpointInfo {
        number: manifest.number.get(),
        full: manifest.full,
        begin: manifest.begin,
        end: manifest.end,
        entries: manifest.entries,
        written_bytes: manifest.written_bytes,
    }
}
