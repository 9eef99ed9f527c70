//! Redis's own load generator.

use std::net::SocketAddr;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use super::job::{Requests, Verb};
use super::load_generator::Done;
use super::processes::installed;
use crate::harness::*;

const PROGRAM: &str = "redis-benchmark";

pub(crate) fn is_installed() -> bool {
    installed(PROGRAM).is_ok()
}

/// Runs so many requests with values of 8 bytes.
pub(crate) fn run(address: SocketAddr, of: Requests, keys: u32, requests: usize) -> Result<Done> {
    let command = if of.command == Verb::Set { "set" } else { "get" };
    let numbers: [(&str, usize); 6] = [
        ("-p", usize::from(address.port())),
        ("-c", of.connections),
        ("-P", of.pipeline),
        ("-n", requests),
        ("-r", keys as usize),
        ("-d", 8),
    ];
    let mut process = Process::new(PROGRAM);
    process.args(["-h", &address.ip().to_string(), "-t", command, "--csv"]);
    for (flag, number) in numbers {
        process.args([flag, &number.to_string()]);
    }
    let output = process.stderr(Stdio::null()).output()?;
    let text = String::from_utf8(output.stdout)?;
    parse(&text, requests).ok_or_else(|| {
        format!("{PROGRAM} printed no figures but:\n{text}\ninstall version 7 or later").into()
    })
}

/// A header, and a line with the rate and latencies in milliseconds.
fn parse(text: &str, requests: usize) -> Option<Done> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("\"test\""));
    let names: Vec<&str> = lines.next()?.split(',').map(|name| name.trim_matches('"')).collect();
    let cells: Vec<&str> = lines.next()?.split(',').map(|cell| cell.trim_matches('"')).collect();
    let figure = |name: &str| -> Option<f64> {
        cells.get(names.iter().position(|known| *known == name)?)?.parse().ok()
    };
    let nanoseconds = |name: &str| Some((figure(name)? * 1e6) as u64);
    let max = nanoseconds("max_latency_ms")?;
    Some(Done {
        requests,
        elapsed: Duration::from_secs_f64(requests as f64 / figure("rps")?),
        // It does not tell the 99.9th.
        latencies: [nanoseconds("p50_latency_ms")?, nanoseconds("p99_latency_ms")?, max, max],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_their_names() {
        let text = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                    \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                    \"SET\",\"100000.00\",\"0.3\",\"0.1\",\"0.303\",\"0.5\",\"0.607\",\"1.2\"\n";
        let done = parse(text, 50_000).expect("figures");
        assert_eq!(done.elapsed, Duration::from_millis(500));
        assert_eq!(done.latencies[1], 607_000);
        assert!(parse("no server", 1).is_none());
    }
}
