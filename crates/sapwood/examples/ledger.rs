//! A ledger over three tree tables: each booking is one transaction, so that their sums always agree.
//!
//! ```sh
//! cargo run -p sapwood --example ledger
//! ```

use std::error::Error;
use std::path::Path;

use sapwood::aggregate::Aggregate;
use sapwood::record::{I64, Record, U32, record};
use sapwood::{Db, TreeKind, TreeTable, TreeTableOptions};

/// The totals of an aircraft, an airport or a route.
#[record]
#[derive(Default)]
struct Account {
    flights: U32,
    minutes_late: I64,
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
    aircraft: TreeTable,
    airports: TreeTable,
    routes: TreeTable,
}

impl Ledger {
    fn open(directory: &Path) -> sapwood::Result<Ledger> {
        let db = Db::open(directory)?;
        let open = |name, kind| {
            let options = TreeTableOptions::default().kind(kind).record::<Account>();
            db.open_or_create_tree_table(name, options)
        };
        let aircraft = open("aircraft", TreeKind::BTree)?;
        let airports = open("airports", TreeKind::CritBit)?;
        let routes = open("routes", TreeKind::RedBlack)?;
        Ok(Ledger { db, aircraft, airports, routes })
    }

    fn tables(&self) -> [&TreeTable; 3] {
        [&self.aircraft, &self.airports, &self.routes]
    }

    /// Books a flight in all tables, or in none.
    fn book(&self, (aircraft, origin, destination, minutes): Flight) -> sapwood::Result<()> {
        let first = Account { flights: 1.into(), minutes_late: minutes.into() };
        let route = format!("{origin} to {destination}");
        // It has the three tables from the beginning, and so meets no conflict with other bookings.
        let tx = self.db.begin_on(&self.tables())?;
        for (table, key) in [
            (&self.aircraft, aircraft),
            (&self.airports, origin),
            (&self.airports, destination),
            (&self.routes, &route),
        ] {
            tx.put_if_absent_or_update(table, key, first.bytes(), |value| {
                let account = Account::view_mut(value).expect("all values are accounts");
                account.flights += 1;
                account.minutes_late += minutes;
            })?;
        }
        tx.commit()?;
        Ok(())
    }
}

/// The flights and the minutes of a table, added up where they lie.
fn sums(table: &TreeTable) -> Result<(u64, i64), Box<dyn Error>> {
    let sums = Aggregate::list("sum(flights), sum(minutes_late)")?;
    let answer = table.aggregate(&table.query()?.aggregates(sums))?;
    let sum = |name| answer.value(0, name);
    Ok((sum("sum(flights)")?.try_into()?, sum("sum(minutes_late)")?.try_into()?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::temp_dir().join("sapwood-ledger");
    let ledger = Ledger::open(&directory)?;
    FLIGHTS.into_iter().try_for_each(|flight| ledger.book(flight))?;
    for table in ledger.tables() {
        let (flights, minutes) = sums(table)?;
        println!(
            "{:8} {:3} accounts, {flights} flights, {minutes} minutes late",
            table.name(),
            table.len()?
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
    let tx = ledger.db.begin_on(&ledger.tables())?;
    tx.put(&ledger.aircraft, "N99999", Account::default().bytes())?;
    tx.abort();
    // Without a checkpoint: the log has them.
    drop(ledger);

    let ledger = Ledger::open(directory.path())?;
    let (flights, minutes) = (5, 40);
    assert_eq!(sums(&ledger.aircraft)?, (flights, minutes));
    // Each flight is booked at both its ends.
    assert_eq!(sums(&ledger.airports)?, (2 * flights, 2 * minutes));
    assert_eq!(sums(&ledger.routes)?, (flights, minutes));
    let accounts = ledger.tables().map(|table| table.len());
    assert_eq!(accounts, [Ok(4), Ok(6), Ok(5)]);
    Ok(())
}
