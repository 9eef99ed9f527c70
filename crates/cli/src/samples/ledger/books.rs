//! The tables of the ledger, and the transaction that books a flight.

use std::path::Path;

use sapwood::record::Record;
use sapwood::{Db, DbOptions, TreeKind, TreeTable, TreeTableOptions};

use crate::samples::flight::Flight;
use crate::terminal::exit::{Failure, Outcome};

use super::account::{Account, BOOKS, Book};

/// The table and the key of the number of booked flights.
const BOOKED: (&str, &[u8]) = ("booked", b"flights");

/// Far less than all transactions write, so that checkpoints are taken while flights are booked.
const CHECKPOINT_BYTES: u64 = 4 << 20;

/// A database and its tables.
pub(super) struct Books {
    /// In the order of [`BOOKS`].
    pub(super) tables: [TreeTable; BOOKS.len()],
    booked: TreeTable,
    db: Db,
}

impl Books {
    /// Opens them, and makes the tables that are not there.
    pub(super) fn open(directory: &Path) -> Outcome<Self> {
        let options = DbOptions::default().checkpoint_bytes(CHECKPOINT_BYTES);
        let db = Db::open_with(directory, options)?;
        let open = |book: Book| {
            let kind = match book {
                Book::Aircraft => TreeKind::BTree,
                Book::Airport => TreeKind::CritBit,
                Book::Route => TreeKind::RedBlack,
            };
            let options = TreeTableOptions::default().kind(kind).record::<Account>();
            db.open_or_create_tree_table(book.name(), options)
        };
        let [aircraft, airport, route] = BOOKS.map(open);
        let booked = db.open_or_create_tree_table(BOOKED.0, TreeTableOptions::default())?;
        Ok(Self { tables: [aircraft?, airport?, route?], booked, db })
    }

    /// How many flights are booked: those of the data's first rows.
    pub(super) fn booked(&self) -> Outcome<usize> {
        let booked = self.booked.get_counter(BOOKED.1)?.unwrap_or(0);
        usize::try_from(booked).map_err(|_| Failure::Failed(format!("{booked} flights are booked")))
    }

    /// Books a flight in all tables, and counts it, in one transaction.
    pub(super) fn book(&self, flight: &Flight) -> Outcome {
        let [aircraft, airport, route] = &self.tables;
        let tx = self.db.begin_on(&[aircraft, airport, route, &self.booked])?;
        for (book, table) in BOOKS.into_iter().zip(&self.tables) {
            book.keys(flight, |key| {
                let mut first = Account::default();
                first.book(flight);
                let mut refused = None;
                tx.put_if_absent_or_update(table, key, first.bytes(), |value| {
                    match Account::view_mut(value) {
                        Ok(account) => account.book(flight),
                        Err(error) => refused = Some(error),
                    }
                })?;
                match refused {
                    None => Ok(()),
                    Some(error) => {
                        Err(Failure::Failed(format!("table `{}`: {error}", book.name())))
                    }
                }
            })?;
        }
        tx.add(&self.booked, BOOKED.1, 1)?;
        tx.commit()?;
        Ok(())
    }

    /// Verifies every invariant of the trees and of their heap.
    pub(super) fn check(&self) -> Outcome {
        Ok(self.booked.check()?)
    }

    /// Bytes of the heap that all tables share.
    pub(super) fn heap_bytes(&self) -> u64 {
        self.booked.stats().trees.heap_bytes
    }

    /// Closes the database, with a checkpoint.
    pub(super) fn close(self) -> Outcome {
        let Self { tables, booked, db } = self;
        drop((tables, booked));
        Ok(db.close()?)
    }
}
