//! What is booked of a flight, and under which keys.

use sapwood::record::{I64, U32, record};

use crate::samples::flight::Flight;

/// The value of an entry: what the flights of an aircraft, an airport or a route add up to.
#[record]
#[derive(Debug, Default, PartialEq)]
pub(super) struct Account {
    pub(super) flights: U32,
    /// Those that never left.
    pub(super) cancelled: U32,
    /// Of delay at departure; flights that leave early take some away.
    pub(super) minutes: I64,
}

impl Account {
    pub(super) fn book(&mut self, flight: &Flight) {
        self.flights += 1;
        self.cancelled += u32::from(flight.is_cancelled());
        self.minutes += i64::from(flight.details.dep_delay.unwrap_or(0));
    }
}

/// A table of the ledger: what its entries are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Book {
    Aircraft,
    /// Each flight is booked at both its ends.
    Airport,
    Route,
}

pub(super) const BOOKS: [Book; 3] = [Book::Aircraft, Book::Airport, Book::Route];

impl Book {
    /// The table's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Book::Aircraft => "aircraft",
            Book::Airport => "airport",
            Book::Route => "route",
        }
    }

    /// Calls `book` for each key that a flight is booked under. The key of an aircraft that the data
    /// does not name is empty.
    pub(super) fn keys<E>(
        self,
        flight: &Flight,
        mut book: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let details = &flight.details;
        match self {
            Book::Aircraft => book(details.tailnum.as_str().as_bytes()),
            Book::Airport => {
                book(&details.origin.0)?;
                book(&details.dest.0)
            }
            Book::Route => book(&[details.origin.0, details.dest.0].concat()),
        }
    }

    /// A key, for people.
    pub(super) fn subject(self, key: &[u8]) -> String {
        let text = String::from_utf8_lossy(key);
        match self {
            Book::Aircraft if key.is_empty() => "aircraft without a number".to_owned(),
            Book::Route if text.len() == 6 && text.is_ascii() => {
                format!("{} to {}", &text[..3], &text[3..])
            }
            _ => text.into_owned(),
        }
    }
}
