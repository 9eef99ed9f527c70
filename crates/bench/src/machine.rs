//! The machine that figures are of.

use std::sync::OnceLock;

/// The processor, how many cores of it this process may use, and the system.
pub(crate) fn machine() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let cores = format!("{cores} {}", if cores == 1 { "core" } else { "cores" });
        let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = processors.lines().find_map(|line| line.strip_prefix("model name"));
        let name =
            name.map_or(std::env::consts::ARCH, |name| name.trim_start_matches([' ', '\t', ':']));
        format!("{cores} of {name}, {}", std::env::consts::OS)
    })
}
