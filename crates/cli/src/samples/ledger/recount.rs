//! The same accounts by plain addition in memory: what the tables must equal.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use sapwood::TreeTable;
use sapwood::record::Record;

use crate::samples::flight::Flight;
use crate::terminal::exit::Outcome;

use super::account::{Account, BOOKS};
use super::books::Books;

/// The accounts of a book.
pub(super) type Accounts = BTreeMap<Vec<u8>, Account>;

/// The accounts of the first flights.
#[derive(Default)]
pub(super) struct Recount {
    /// In the order of [`BOOKS`].
    pub(super) accounts: [Accounts; BOOKS.len()],
}

/// A comparison of all entries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Entries of the tables, and of the recount where the tables have none.
    pub(super) compared: u64,
    /// Those that are on one side alone, or differ.
    pub(super) different: u64,
    /// The first of these, for people.
    pub(super) first: Option<String>,
}

impl Recount {
    pub(super) fn of(flights: &[Flight]) -> Self {
        let mut recount = Self::default();
        for flight in flights {
            for (book, accounts) in BOOKS.into_iter().zip(&mut recount.accounts) {
                let Ok(()) = book.keys(flight, |key| {
                    accounts.entry(key.to_vec()).or_default().book(flight);
                    Ok::<(), Infallible>(())
                });
            }
        }
        recount
    }

    /// Compares every entry of the three tables, both ways.
    pub(super) fn compare(&self, books: &Books) -> Outcome<Comparison> {
        let mut comparison = Comparison::default();
        for (accounts, table) in self.accounts.iter().zip(&books.tables) {
            comparison.add(accounts, table)?;
        }
        Ok(comparison)
    }
}

impl Comparison {
    fn add(&mut self, accounts: &Accounts, table: &TreeTable) -> Outcome {
        let mut found = 0;
        let _all = table.for_each(|key, value| {
            let expected = accounts.get(key);
            found += u64::from(expected.is_some());
            if expected.map(Record::bytes) != Some(value) {
                let value = Account::view(value);
                self.differ(format!("{} {key:?}: {value:?}, not {expected:?}", table.name()));
            }
            self.compared += 1;
            ControlFlow::<()>::Continue(())
        })?;
        for _ in found..accounts.len() as u64 {
            self.compared += 1;
            self.differ(format!("{} has not all keys of the recount", table.name()));
        }
        Ok(())
    }

    fn differ(&mut self, what: String) {
        self.different += 1;
        self.first.get_or_insert(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::unpack;

    fn flights(count: usize) -> Vec<Flight> {
        let mut reader = unpack::reader().expect("bundled");
        let rows = reader.records().take(count);
        rows.map(|row| Flight::parse(&row.expect("good CSV")).expect("a flight")).collect()
    }

    #[test]
    fn what_was_booked_equals_a_recount_and_nothing_else_does() {
        let directory = tempfile::TempDir::new().expect("a directory for the test");
        let books = Books::open(directory.path()).expect("new");
        let flights = flights(1000);
        for flight in &flights[..999] {
            books.book(flight).expect("room");
        }
        assert_eq!(books.booked().expect("a counter"), 999);

        let same = Recount::of(&flights[..999]).compare(&books).expect("sound");
        assert_eq!((same.different, same.first), (0, None));
        assert!(same.compared > 500, "{}", same.compared);

        // One flight more or less is seen in an aircraft, two airports and a route.
        for other in [&flights[..998], &flights[..]] {
            let other = Recount::of(other).compare(&books).expect("sound");
            assert_eq!(other.different, 4, "{other:?}");
        }

        // As is an entry that one side alone has.
        let mut recount = Recount::of(&flights[..999]);
        let (key, account) = recount.accounts[2].pop_first().expect("routes");
        assert_eq!(recount.compare(&books).expect("sound").different, 1);
        recount.accounts[2].insert(key, account);
        recount.accounts[1].insert(b"???".to_vec(), account);
        let more = recount.compare(&books).expect("sound");
        assert_eq!((more.different, more.compared), (1, same.compared + 1));
    }
}
