//! The resident memory of a process, and what the machine has left.

/// Resident bytes of this process, where the system tells (Linux).
pub(crate) fn resident_bytes() -> Option<u64> {
    resident_bytes_of("self")
}

/// Bytes of this process on 2 MiB pages, where the system tells (Linux).
pub(crate) fn huge_bytes() -> Option<u64> {
    let maps = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = maps.lines().find(|line| line.starts_with("AnonHugePages:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Resident bytes of a process by its number.
pub(crate) fn resident_bytes_of(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Bytes that the machine can still give to programs, where the system tells (Linux).
pub(crate) fn available_bytes() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
