//! What the disk does by itself: a file that grows, and syncs of a page.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Error;

pub(crate) const NAME: &str = "floor-disk";

/// What was measured in each round.
#[derive(Debug, Default)]
pub(crate) struct Floor {
    /// Bytes a second of a file that is written in order. What is synced together is what a log may have
    /// unsynced at most.
    pub(crate) bytes: Vec<f64>,
    /// Syncs a second of a file whose room is there already, each after a page was written.
    pub(crate) syncs: Vec<f64>,
}

const BLOCK_BYTES: usize = 1 << 20;
const SYNCED_BLOCKS: usize = 64;
/// What the kernel writes at least.
const PAGE_BYTES: usize = 4096;
/// Pages of the file that is synced.
const PAGES: usize = 1024;

impl Floor {
    /// Measures each for some time, in an empty folder.
    pub(crate) fn measure(&mut self, dir: &Path, time: Duration) -> Result<(), Error> {
        self.bytes.push(bytes_a_second(dir, time)?);
        self.syncs.push(syncs_a_second(dir, time)?);
        Ok(())
    }
}

fn bytes_a_second(dir: &Path, time: Duration) -> Result<f64, Error> {
    let mut file = File::create(dir.join("sequential"))?;
    let block = vec![1; BLOCK_BYTES];
    let begin = Instant::now();
    let mut blocks = 0;
    while blocks == 0 || begin.elapsed() < time {
        file.write_all(&block)?;
        blocks += 1;
        if blocks % SYNCED_BLOCKS == 0 {
            file.sync_data()?;
        }
    }
    file.sync_data()?;
    Ok((blocks * BLOCK_BYTES) as f64 / begin.elapsed().as_secs_f64())
}

fn syncs_a_second(dir: &Path, time: Duration) -> Result<f64, Error> {
    let file = File::create(dir.join("syncs"))?;
    let page = [1; PAGE_BYTES];
    for at in 0..PAGES {
        file.write_all_at(&page, (at * PAGE_BYTES) as u64)?;
    }
    file.sync_all()?;
    let begin = Instant::now();
    let mut count = 0;
    while count == 0 || begin.elapsed() < time {
        file.write_all_at(&page, (count % PAGES * PAGE_BYTES) as u64)?;
        file.sync_data()?;
        count += 1;
    }
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}
