//! One sync of the disk: what a commit that lasts costs at least, if it shares it with none.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use crate::Error;

pub(crate) const NAME: &str = "floor-fdatasync";

/// Bytes of a write: a page, which is what the kernel writes.
const WRITE_BYTES: usize = 4096;

/// Syncs a second of a file whose room is there already, each after a page was written.
pub(crate) fn syncs_a_second(dir: &Path, count: usize) -> Result<f64, Error> {
    let file = File::create(dir.join("floor"))?;
    let page = [1; WRITE_BYTES];
    for at in 0..count {
        file.write_all_at(&page, (at * WRITE_BYTES) as u64)?;
    }
    file.sync_all()?;
    let begin = Instant::now();
    for at in 0..count {
        file.write_all_at(&page, (at * WRITE_BYTES) as u64)?;
        file.sync_data()?;
    }
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}
