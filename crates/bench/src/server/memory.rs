//! Memory of entries and of idle connections, by the resident memory of a server's process.

use super::processes::Server;
use super::wire::{digits, load};
use crate::harness::*;

/// Measures servers that begin empty; those without a process of their own are passed over.
pub(crate) fn measure(
    servers: Vec<Server>,
    entries: u32,
    connections: usize,
    report: &mut Report,
) -> Result {
    let connections = allowed(connections);
    for server in servers.into_iter().filter(|server| !server.is_floor()) {
        let Some(empty) = server.resident_bytes() else { continue };
        report.progress.set_message(format!("{}: memory", server.name));
        let mut wires = Vec::new();
        for _ in 0..connections {
            let mut wire = server.connect()?;
            wire.ping()?;
            wires.push(wire);
        }
        let connected = server.resident_bytes().unwrap_or(empty);
        drop(wires);
        let mut wire = server.connect()?;
        wire.ping()?;
        let before = server.resident_bytes().unwrap_or(empty);
        load(&mut wire, entries, |number, out| {
            let key = digits(number);
            server.protocol().set(&key, &key, out);
        })?;
        let after = server.resident_bytes().unwrap_or(before);
        let entry = after.saturating_sub(before) as f64 / f64::from(entries);
        let connection = connected.saturating_sub(empty) as f64 / connections as f64;
        let figures = [
            ("memory", &BYTES_OF_ENTRY, entry),
            ("idle connections", &BYTES_OF_CONNECTION, connection),
        ];
        for (workload, unit, bytes) in figures {
            report.note(workload, 1, server.name, unit, Figure::new(bytes));
        }
        report.bytes_per_entry.insert(server.name.to_owned(), entry);
    }
    Ok(())
}

/// Allows the process so many connections, or fewer, with some to spare.
fn allowed(connections: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const SPARE: u64 = 100;
    let limit = getrlimit(Resource::Nofile);
    let wanted = connections as u64 + SPARE;
    let most = limit.maximum.map_or(wanted, |most| most.min(wanted));
    let mut current = limit.current.unwrap_or(wanted);
    let raised = Rlimit { current: Some(most), ..limit };
    if current < most && setrlimit(Resource::Nofile, raised).is_ok() {
        current = most;
    }
    connections.min(current.saturating_sub(SPARE) as usize)
}
