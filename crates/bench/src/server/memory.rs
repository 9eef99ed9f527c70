//! What entries and idle connections take, by the resident memory of a server's process.

use super::processes::start;
use super::wire::{digits, load};
use crate::Error;

/// What was measured of a server, in bytes.
pub(crate) struct Memory {
    pub(crate) server: &'static str,
    /// An entry of a key and a value of 8 bytes.
    pub(crate) entry: f64,
    /// A connection that waits.
    pub(crate) connection: f64,
}

/// Measures servers that begin empty; none for one without a process of its own.
pub(crate) fn measure(
    names: &[String],
    entries: u32,
    connections: usize,
) -> Result<Vec<Memory>, Error> {
    let connections = allowed(connections);
    let mut measured = Vec::new();
    let (servers, _) = start(names)?;
    for server in servers.into_iter().filter(|server| !server.is_floor()) {
        let Some(empty) = server.resident_bytes() else { continue };
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
        measured.push(Memory {
            server: server.name,
            entry: after.saturating_sub(before) as f64 / f64::from(entries),
            connection: connected.saturating_sub(empty) as f64 / connections as f64,
        });
    }
    Ok(measured)
}

/// As many connections as the process may have, with some to spare.
fn allowed(connections: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const SPARE: u64 = 100;
    let limit = getrlimit(Resource::Nofile);
    let wanted = connections as u64 + SPARE;
    let raised =
        Rlimit { current: limit.maximum.map_or(Some(wanted), |it| Some(it.min(wanted))), ..limit };
    let current = limit.current.unwrap_or(wanted);
    if current < wanted && setrlimit(Resource::Nofile, raised).is_ok() {
        let current = raised.current.unwrap_or(wanted);
        return connections.min(current.saturating_sub(SPARE) as usize);
    }
    connections.min(current.saturating_sub(SPARE) as usize)
}
