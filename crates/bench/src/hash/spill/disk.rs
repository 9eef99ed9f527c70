//! The disk's own rate: random reads of 4 KiB past the page cache, at several queue depths.
//!
//! A shared disk is faster at one time than at another. So its own reads take their turn in every
//! round, and rates are compared with those of the same round.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memmap2::MmapMut;

use super::{SpillEntrant, SpillJob};
use crate::harness::*;
use crate::hash::job::Mix;

/// Most reads in flight that are measured: the disks that this was written on gave no more with
/// more.
pub(crate) const DEPTH_MAX: usize = 128;

/// Reads that calls of so many keys can have in flight on so many threads, as far as it is
/// measured.
pub(crate) fn depth_of(call: usize, threads: usize) -> usize {
    (call * threads).min(DEPTH_MAX)
}

/// The contender that reads with so many in flight.
pub(crate) fn name_of(depth: usize) -> String {
    format!("floor-disk-{depth}")
}

const BLOCK_BYTES: usize = 4096;
const WRITTEN_TOGETHER: usize = 1 << 20;

pub(crate) struct DiskFile {
    file: File,
    blocks: u32,
    /// True if reads pass the page cache by.
    pub(crate) direct: bool,
}

impl DiskFile {
    pub(crate) fn new(dir: &Path, bytes: u64) -> Result<DiskFile> {
        let path = dir.join("random-reads");
        let explain = |error: std::io::Error| {
            format!("{}: {error}; choose a folder with --dir", path.display())
        };
        let parts = bytes.div_ceil(WRITTEN_TOGETHER as u64);
        let mut file = File::create_new(&path).map_err(explain)?;
        let mut random = Random::new(1);
        for _ in 0..parts {
            let part: Vec<u8> =
                (0..WRITTEN_TOGETHER / 8).flat_map(|_| random.next().to_le_bytes()).collect();
            file.write_all(&part).map_err(explain)?;
        }
        file.sync_all().map_err(explain)?;
        let opened = open_direct(&path);
        let direct = opened.is_ok();
        let file = opened.or_else(|_| File::open(&path)).map_err(explain)?;
        std::fs::remove_file(&path)?;
        let blocks = u32::try_from(parts * (WRITTEN_TOGETHER / BLOCK_BYTES) as u64)?;
        Ok(DiskFile { file, blocks, direct })
    }

    /// The number of reads of `depth` threads in about `time`, and the exact time.
    fn read(&self, depth: usize, time: Duration, seed: u64) -> Result<(usize, Duration)> {
        let seeds: Vec<u64> = (0..depth as u64).map(|thread| seed << 16 | thread).collect();
        let (elapsed, reads) = run_threads(&seeds, |&seed| self.read_for(time, seed));
        Ok((reads.into_iter().sum::<Result<usize>>()?, elapsed))
    }

    fn read_for(&self, time: Duration, seed: u64) -> Result<usize> {
        let mut random = Random::new(seed);
        // A map is aligned as direct reads want it.
        let mut block = MmapMut::map_anon(BLOCK_BYTES)?;
        let (begin, mut reads) = (Instant::now(), 0);
        while reads == 0 || begin.elapsed() < time {
            let offset = u64::from(random.below(self.blocks)) * BLOCK_BYTES as u64;
            self.file.read_exact_at(&mut block, offset)?;
            reads += 1;
        }
        Ok(reads)
    }
}

pub(crate) struct DiskReads {
    name: String,
    file: Arc<DiskFile>,
    depth: usize,
    time: Duration,
}

impl DiskReads {
    pub(crate) fn new(file: &Arc<DiskFile>, depth: usize, time: Duration) -> DiskReads {
        DiskReads { name: name_of(depth), file: Arc::clone(file), depth, time }
    }
}

impl SpillEntrant for DiskReads {}

impl Engine<SpillJob> for DiskReads {
    fn name(&self) -> &str {
        &self.name
    }

    fn runs(&self, job: &SpillJob) -> bool {
        // Blind updates do not read the disk.
        job.0.mix != Mix::Reads(0)
    }

    fn run(&mut self, job: &SpillJob) -> Result<Outcome> {
        let (reads, elapsed) = self.file.read(self.depth, self.time, u64::from(job.0.tag))?;
        Ok(Outcome::of(reads, elapsed, Tally::default()))
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn open_direct(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flag = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    File::options().read(true).custom_flags(flag).open(path)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn open_direct(_: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}
