//! The same counters by plain addition in memory: what the table must equal.

use std::collections::HashMap;
use std::ops::ControlFlow;

use sapwood::HashTable;

use crate::samples::answer::equal;
use crate::samples::flight::Flight;
use crate::terminal::exit::{Failure, Outcome};

use super::counting::{batch, batch_of_thread, decode};
use super::events::{self, Kind};

pub(super) struct Recount {
    sums: HashMap<Vec<u8>, i64>,
    flights: u64,
}

impl Recount {
    pub(super) fn of_all(rows: &[Flight]) -> Self {
        let mut recount = Self { sums: HashMap::new(), flights: 0 };
        recount.add(rows);
        recount
    }

    /// Of what the threads have counted at these positions.
    pub(super) fn of_prefixes(rows: &[Flight], positions: &[u64]) -> Self {
        let threads = positions.len() as u16;
        let mut recount = Self { sums: HashMap::new(), flights: 0 };
        for (thread, position) in (0..threads).zip(positions) {
            for index in 0..*position {
                recount.add(batch(rows, batch_of_thread(thread, index, threads)));
            }
        }
        recount
    }

    fn add(&mut self, flights: &[Flight]) {
        let mut deltas = Vec::new();
        for flight in flights {
            events::append(flight, &mut deltas);
            for (key, delta) in deltas.drain(..) {
                *self.sums.entry(key).or_default() += delta;
            }
        }
        self.flights += flights.len() as u64;
    }

    pub(super) fn flights(&self) -> u64 {
        self.flights
    }

    /// The counters of a kind.
    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (&[u8], i64)> {
        let prefix = kind.prefix();
        let sums = self.sums.iter().map(|(key, sum)| (&key[..], *sum));
        sums.filter(move |(key, _)| key.starts_with(&prefix))
    }

    /// Compares every counter of the table, the positions aside; answers how many there are.
    pub(super) fn compare(&self, table: &HashTable) -> Outcome<u64> {
        let position = Kind::Position.prefix();
        let mut found = 0;
        let end = table.scan_log(|key, value| {
            if key.starts_with(&position) {
                return ControlFlow::Continue(());
            }
            found += 1;
            let (sum, expected) = (decode(value), self.sums.get(key).copied());
            match equal(&format!("the counter {key:?}"), sum, expected) {
                Ok(()) => ControlFlow::Continue(()),
                Err(failure) => ControlFlow::Break::<Failure>(failure),
            }
        })?;
        if let ControlFlow::Break(failure) = end {
            return Err(failure);
        }
        equal("counters", found, self.sums.len() as u64)?;
        Ok(found)
    }
}
