//! How many random reads of 4 KiB does the disk give, past the page cache, with so many in flight?

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use memmap2::MmapMut;
use rustix::fs::OFlags;

use crate::Error;
use crate::random::Random;

pub(crate) const NAME: &str = "floor-disk";
/// Reads in flight that are measured.
pub(crate) const DEPTHS: [usize; 4] = [1, 2, 32, 128];

const BLOCK_BYTES: usize = 4096;
const WRITTEN_TOGETHER: usize = 1 << 20;

/// A file of random bytes, removed in the end.
pub(crate) struct DiskFloor {
    file: File,
    blocks: u32,
    /// Whether reads pass the page cache by.
    pub(crate) direct: bool,
}

impl DiskFloor {
    /// Writes a file of about `bytes` bytes into `dir`.
    pub(crate) fn new(dir: &Path, bytes: u64) -> Result<DiskFloor, Error> {
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
        let flags = i32::try_from(OFlags::DIRECT.bits()).expect("flags are few bits");
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        let direct = opened.is_ok();
        let file = opened.or_else(|_| File::open(&path)).map_err(explain)?;
        std::fs::remove_file(&path)?;
        let blocks = u32::try_from(parts * (WRITTEN_TOGETHER / BLOCK_BYTES) as u64)?;
        Ok(DiskFloor { file, blocks, direct })
    }

    /// Reads a second, with `depth` threads reading for `time`.
    pub(crate) fn measure(&self, depth: usize, time: Duration, seed: u64) -> Result<f64, Error> {
        let begin = Instant::now();
        let counts: Vec<Result<u64, std::io::Error>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..depth)
                .map(|thread| {
                    let seed = seed << 16 | thread as u64;
                    scope.spawn(move || self.read_until(begin + time, seed))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("reads do not panic")).collect()
        });
        let elapsed = begin.elapsed();
        let reads: u64 = counts.into_iter().sum::<Result<u64, std::io::Error>>()?;
        Ok(reads as f64 / elapsed.as_secs_f64())
    }

    fn read_until(&self, end: Instant, seed: u64) -> Result<u64, std::io::Error> {
        let mut random = Random::new(seed);
        // A map is aligned as direct reads want it.
        let mut block = MmapMut::map_anon(BLOCK_BYTES)?;
        let mut reads = 0;
        while Instant::now() < end {
            let offset = u64::from(random.below(self.blocks)) * BLOCK_BYTES as u64;
            self.file.read_exact_at(&mut block, offset)?;
            reads += 1;
        }
        Ok(reads)
    }
}
