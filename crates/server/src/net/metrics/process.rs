//! Figures of the process, by the names that clients of Prometheus give them.

use std::fmt::Error;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::command::info;

/// Figures of the process as they are when they are asked for. Those that the system does not tell
/// are left out.
#[derive(Debug)]
pub(super) struct Process;

/// Ticks of a second in figures of the system, wherever Linux runs.
const TICKS: f64 = 100.0;

/// The moment at which the process began, in seconds since 1970.
fn start_seconds() -> Option<f64> {
    let own = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, behind_name) = own.rsplit_once(')')?;
    let ticks: f64 = behind_name.split_whitespace().nth(19)?.parse().ok()?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(boot.trim().parse::<f64>().ok()? + ticks / TICKS)
}

/// Descriptors that are open.
fn descriptors() -> Option<u64> {
    // One of them is that of the folder which is read.
    Some((fs::read_dir("/proc/self/fd").ok()?.count() as u64).saturating_sub(1))
}

/// Descriptors that may be open.
fn descriptors_max() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A line of `/proc/self/status`, as a number.
fn status(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let (system, user) = info::processor_seconds();
        let help = "Time of processors in the process and in the system for it";
        let metric =
            encoder.encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?;
        ConstCounter::new(system + user).encode(metric)?;
        let kib = |name: &str| status(name).map(|kib| kib as f64 * 1_024.0);
        let gauges = [
            ("process_resident_memory_bytes", "Memory of the process", kib("VmRSS")),
            ("process_virtual_memory_bytes", "Address space of the process", kib("VmSize")),
            ("process_start_time_seconds", "The start of the process", start_seconds()),
            ("process_open_fds", "Descriptors that are open", descriptors().map(|it| it as f64)),
            (
                "process_max_fds",
                "Descriptors that may be open",
                descriptors_max().map(|it| it as f64),
            ),
            ("process_threads", "Threads", status("Threads").map(|it| it as f64)),
        ];
        for (name, help, value) in gauges {
            let Some(value) = value else { continue };
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
        Ok(())
    }
}
