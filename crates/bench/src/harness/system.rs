//! The system: its name, memory, folders.

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use memmap2::MmapMut;

use crate::harness::*;

/// The flights that left New York in 2013, in a checkout.
pub(crate) const FLIGHTS_FILE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/flights-2013.csv.zst");

/// The rows of the flights, and the places of some columns.
pub(crate) fn flights<const N: usize>(
    columns: [&str; N],
) -> Result<(csv::Reader<impl io::Read>, [usize; N])> {
    let explain = |what: &dyn std::fmt::Display| {
        format!(
            "the flights at {FLIGHTS_FILE} cannot be read: {what}; run from a checkout that has \
             datasets/, or choose other rows"
        )
    };
    let file = fs::File::open(FLIGHTS_FILE).map_err(|error| explain(&error))?;
    let unpacked = zstd::Decoder::new(file).map_err(|error| explain(&error))?;
    let mut reader = csv::Reader::from_reader(unpacked);
    let headers = reader.headers().map_err(|error| explain(&error))?;
    let places = columns.map(|name| headers.iter().position(|header| header == name));
    if let Some((_, name)) = places.iter().zip(columns).find(|(place, _)| place.is_none()) {
        bail!("{}", explain(&format_args!("no column {name}")));
    }
    Ok((reader, places.map(|place| place.expect("all are there"))))
}

pub(crate) fn machine() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let cores = format!("{cores} {}", if cores == 1 { "core" } else { "cores" });
        let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = processors.lines().find_map(|line| line.strip_prefix("model name"));
        let name =
            name.map_or(std::env::consts::ARCH, |name| name.trim_start_matches([' ', '\t', ':']));
        format!("{cores} of {name}, {}", std::env::consts::OS)
    })
}

/// Bytes that a file of the system (Linux) names in a line of KiB.
fn kib_line(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

pub(crate) fn resident_bytes() -> Option<u64> {
    resident_bytes_of("self")
}

pub(crate) fn resident_bytes_of(process: &str) -> Option<u64> {
    kib_line(&format!("/proc/{process}/status"), "VmRSS:")
}

/// Bytes of this process on 2 MiB pages, where the system tells.
pub(crate) fn huge_bytes() -> Option<u64> {
    kib_line("/proc/self/smaps_rollup", "AnonHugePages:")
}

/// Bytes that the machine can still give to programs, where the system tells.
pub(crate) fn available_bytes() -> Option<u64> {
    kib_line("/proc/meminfo", "MemAvailable:")
}

/// The growth of an amount that may not be known.
pub(crate) fn growth(before: Option<u64>, now: Option<u64>) -> Option<u64> {
    before.zip(now).map(|(before, now)| now.saturating_sub(before))
}

/// Writes into so many bytes and gives them back: a virtual machine gets memory from its host when
/// it first writes there, which must not count as the time of what is loaded first. Half of what
/// the machine has left at most.
pub(crate) fn touch(bytes: usize) {
    const PAGE: usize = 4 << 10;
    let most = available_bytes().unwrap_or_default() as usize / 2;
    let bytes = bytes.min(most);
    if bytes > 0 {
        let mut map = map_huge(bytes);
        map.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    }
}

/// Zeroed memory on 2 MiB pages where the system gives them, else on 4 KiB ones.
pub(crate) fn map_huge(bytes: usize) -> MmapMut {
    let map = MmapMut::map_anon(bytes)
        .expect("the system gives memory: choose fewer entries if it does not");
    #[cfg(target_os = "linux")]
    let _refused = map.advise(memmap2::Advice::HugePage);
    map
}

/// A fresh folder, which goes with all that is in it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes it, or takes one of that name which an earlier run of this process left.
    pub(crate) fn new(parent: &Path, name: &str) -> Result<Folder> {
        let path = parent.join(format!("sapwood-bench-{}-{name}", std::process::id()));
        fs::create_dir_all(&path)
            .map_err(|error| format!("{}: {error}: choose a folder with --dir", path.display()))?;
        Ok(Folder(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Bytes that its files take of the disk; none without files.
    pub(crate) fn bytes(&self) -> Result<Option<u64>> {
        let mut bytes = 0;
        for file in files_below(&self.0)? {
            // `st_blocks` counts 512 bytes, whatever the file system's blocks are.
            bytes += fs::metadata(file)?.blocks() * 512;
        }
        Ok((bytes > 0).then_some(bytes))
    }

    /// Syncs all its files, so that what comes next finds the disk idle.
    pub(crate) fn sync(&self) -> Result {
        files_below(&self.0)?.iter().try_for_each(|file| Ok(fs::File::open(file)?.sync_data()?))
    }
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => files.extend(files_below(&path)?),
            false => files.push(path),
        }
    }
    Ok(files)
}

const PAGE_BYTES: usize = 4096;

/// Syncs a file whose room is there already, each time after a page was written, which is the least
/// that the kernel writes; how often, and the time.
pub(crate) fn sync_pages(
    dir: &Path,
    pages: usize,
    goes_on: impl Fn(usize, Duration) -> bool,
) -> Result<(usize, Duration)> {
    let file = fs::File::create(dir.join("pages"))?;
    let page = [1; PAGE_BYTES];
    for at in 0..pages {
        file.write_all_at(&page, (at * PAGE_BYTES) as u64)?;
    }
    file.sync_all()?;
    let (begin, mut count) = (Instant::now(), 0);
    while goes_on(count, begin.elapsed()) {
        file.write_all_at(&page, (count % pages * PAGE_BYTES) as u64)?;
        file.sync_data()?;
        count += 1;
    }
    Ok((count, begin.elapsed()))
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind is no reason to lose the figures.
        let _ = fs::remove_dir_all(&self.0);
    }
}
