//! Values as structs: flights counted by carrier, and asked about without describing their bytes
//! again.
//!
//! ```sh
//! cargo run -p sapwood --example records
//! ```
#![forbid(unsafe_code)]

use sapwood::aggregate::{Aggregate, Answer, Query};
use sapwood::record::{I64, Record, U32, record};
use sapwood::{Db, HashTableOptions, Records, Result};

/// The flights of a carrier.
#[record]
struct Carrier {
    flights: U32,
    minutes_late: I64,
}

fn main() -> Result<()> {
    let carriers = carriers()?;
    let united = carriers.get(b"UA")?.expect("two flights were counted");
    println!("UA: {} flights, {} minutes late", united.flights, united.minutes_late);
    println!("{}", figures(&carriers)?);
    Ok(())
}

/// Each flight is one search: its carrier's record is changed in place, or put.
fn carriers() -> Result<Records<Carrier>> {
    let options = HashTableOptions::default().record::<Carrier>();
    let carriers =
        Records::<Carrier>::new(Db::in_memory().create_hash_table("carriers", options)?)?;
    for (name, minutes) in [("UA", 11), ("AA", -3), ("UA", 20), ("B6", 0)] {
        let first = Carrier { flights: 1.into(), minutes_late: minutes.into() };
        carriers.put_if_absent_or_update(name.as_bytes(), &first, |carrier| {
            carrier.flights += 1;
            carrier.minutes_late += minutes;
        })?;
    }
    Ok(carriers)
}

/// The layout that the query needs is the struct's.
fn figures(carriers: &Records<Carrier>) -> Result<Answer> {
    let figures = Aggregate::list("sum(flights), max(minutes_late)")?;
    carriers.table().aggregate(&Query::new(Carrier::layout()).aggregates(figures))
}

#[test]
fn flights_are_counted_and_asked_about() -> Result<()> {
    main()?;
    let carriers = carriers()?;
    let late = carriers.get_with(b"AA", |carrier| carrier.minutes_late.get())?;
    assert_eq!(late, Some(-3));
    let answer = figures(&carriers)?;
    assert_eq!(answer.value(0, "sum(flights)")?, &4.into());
    assert_eq!(answer.value(0, "max(minutes_late)")?, &31.into());
    Ok(())
}
