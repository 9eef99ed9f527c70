//! The limit on the page cache of this process, which its control group may set.

use std::path::{Path, PathBuf};

/// Above this a limit is none: version 1 writes "no limit" as a number near 2^63.
const ENDLESS: u64 = 1 << 60;

/// The least memory limit of this process's control group and those around it.
pub fn page_cache_limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        if controllers.is_empty() {
            least("/sys/fs/cgroup", path, "memory.max")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            least("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes")
        } else {
            None
        }
    });
    limits.min()
}

fn least(root: &str, path: &str, file: &str) -> Option<u64> {
    let group: PathBuf = Path::new(root).join(path.trim_start_matches('/'));
    group
        .ancestors()
        .take_while(|folder| folder.starts_with(root))
        .filter_map(|folder| std::fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok())
        .filter(|&bytes: &u64| bytes < ENDLESS)
        .min()
}
