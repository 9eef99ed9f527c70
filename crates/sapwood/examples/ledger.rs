//! A ledger over three tree tables: each booking is one transaction, so that their sums always agree.
//!
//! ```sh
//! cargo run -p sapwood --example ledger
//! ```

use std::error::Error;
use std::path::Path;

use sapwood::row::Row;
use sapwood::{Db, Rows, TreeKind, TreeTableOptions};

/// The totals of an aircraft, an airport or a route.
#[derive(Row)]
struct Account {
    #[row(key)]
    name: String,
    flights: u32,
    minutes_late: i64,
}

/// Aircraft, origin, destination, minutes late.
type Flight = (&'static str, &'static str, &'static str, i64);

const FLIGHTS: [Flight; 5] = [
    ("N14228", "EWR", "IAH", 2),
    ("N24211", "LGA", "IAH", 4),
    ("N619AA", "JFK", "MIA", 2),
    ("N804JB", "JFK", "BQN", -1),
    ("N14228", "EWR", "MIA", 33),
];

struct Ledger {
    db: Db,
    aircraft: Rows<Account>,
    airports: Rows<Account>,
    routes: Rows<Account>,
}

impl Ledger {
    fn open(directory: &Path) -> sapwood::Result<Ledger> {
        let db = Db::open(directory)?;
        let open = |name, kind| {
            let options = TreeTableOptions::default().kind(kind).schema(Account::schema());
            db.open_or_create_tree_table(name, options)?;
            db.rows(name)?.typed()
        };
        let aircraft = open("aircraft", TreeKind::BTree)?;
        let airports = open("airports", TreeKind::CritBit)?;
        let routes = open("routes", TreeKind::RedBlack)?;
        Ok(Ledger { db, aircraft, airports, routes })
    }

    fn tables(&self) -> [&Rows<Account>; 3] {
        [&self.aircraft, &self.airports, &self.routes]
    }

    /// Books a flight in all tables, or in none.
    fn book(&self, (aircraft, origin, destination, minutes): Flight) -> sapwood::Result<()> {
        let route = format!("{origin} to {destination}");
        self.db.transaction(|tx| {
            for (table, name) in [
                (&self.aircraft, aircraft),
                (&self.airports, origin),
                (&self.airports, destination),
                (&self.routes, &route),
            ] {
                let first = Account { name: name.to_owned(), flights: 1, minutes_late: minutes };
                tx.rows(table).put_if_absent_or_update(&first, |account| {
                    account.flights += 1;
                    account.minutes_late += minutes;
                })?;
            }
            Ok(())
        })
    }
}

/// The flights and the minutes of all accounts of a table.
fn sums(accounts: &Rows<Account>) -> sapwood::Result<(u32, i64)> {
    accounts.iter().try_fold((0, 0), |(flights, minutes), account| {
        let account = account?;
        Ok((flights + account.flights, minutes + account.minutes_late))
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::temp_dir().join("sapwood-ledger");
    let ledger = Ledger::open(&directory)?;
    FLIGHTS.into_iter().try_for_each(|flight| ledger.book(flight))?;
    for table in ledger.tables() {
        let (flights, minutes) = sums(table)?;
        println!(
            "{:8} {:3} accounts, {flights} flights, {minutes} minutes late",
            table.table().name(),
            table.table().len()?
        );
    }
    println!("remove {} to begin anew", directory.display());
    Ok(())
}

#[test]
fn the_sums_of_all_tables_agree_when_they_are_opened_again() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let ledger = Ledger::open(directory.path())?;
    FLIGHTS.into_iter().try_for_each(|flight| ledger.book(flight))?;
    // A booking that is given up leaves nothing.
    let tx = ledger.db.begin()?;
    let account = Account { name: "N99999".to_owned(), flights: 1, minutes_late: 0 };
    tx.rows(&ledger.aircraft).put(&account)?;
    tx.abort();
    // Without a checkpoint: the log has them.
    drop(ledger);

    let ledger = Ledger::open(directory.path())?;
    let (flights, minutes) = (5, 40);
    assert_eq!(sums(&ledger.aircraft)?, (flights, minutes));
    // Each flight is booked at both its ends.
    assert_eq!(sums(&ledger.airports)?, (2 * flights, 2 * minutes));
    assert_eq!(sums(&ledger.routes)?, (flights, minutes));
    let accounts = ledger.tables().map(|accounts| accounts.table().len());
    assert_eq!(accounts, [Ok(4), Ok(6), Ok(5)]);
    Ok(())
}
