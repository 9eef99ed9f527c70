//! Departures in the order of time: typed keys, ranges of them, and what is over goes.
//!
//! ```sh
//! cargo run -p sapwood --example departures
//! ```

use std::ops::ControlFlow;

use sapwood::{Db, Direction, OrderedTable, OrderedTableOptions, Result, key};

/// A minute of the day.
const fn at(hour: u16, minute: u16) -> u16 {
    hour * 60 + minute
}

fn main() -> Result<()> {
    let departures = departures()?;
    println!("the next three from Museum at 8:10:");
    for (minute, line) in next(&departures, "Museum", at(8, 10), 3)? {
        println!("  {:2}:{:02}  {line}", minute / 60, minute % 60);
    }
    if let Some((minute, line)) = last(&departures, "Museum")? {
        println!("the last: {:2}:{:02}  {line}", minute / 60, minute % 60);
    }
    Ok(())
}

/// Keys are a stop, a minute and a line. They sort as these do: by stop, then by minute.
fn departures() -> Result<OrderedTable> {
    let departures =
        Db::in_memory().create_ordered_table("departures", OrderedTableOptions::default())?;
    for (stop, minute, line) in [
        ("Museum", at(8, 5), "U6"),
        ("Museum", at(8, 12), "U6"),
        ("Harbour", at(8, 10), "U6"),
        ("Museum", at(8, 12), "U7"),
        ("Museum", at(8, 30), "U7"),
        ("Museum", at(23, 50), "N1"),
        ("Harbour", at(8, 31), "U6"),
    ] {
        departures.put(key::encode(&(stop, minute, line)), b"on time")?;
    }
    Ok(departures)
}

/// The first departures of a stop from a minute on. The scan ends itself when there are enough.
fn next(table: &OrderedTable, stop: &str, from: u16, count: usize) -> Result<Vec<(u16, String)>> {
    let begin = key::encode(&(stop, from));
    let mut found = Vec::new();
    let _ = table.scan_keys(&begin[..].., Direction::Ascending, |bytes| {
        match key::decode::<(String, u16, String)>(bytes) {
            Ok((of, minute, line)) if of == stop && found.len() < count => {
                found.push((minute, line));
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        }
    })?;
    Ok(found)
}

/// The last departure of a stop: the keys that begin with it, from behind.
fn last(table: &OrderedTable, stop: &str) -> Result<Option<(u16, String)>> {
    let of_stop = key::prefix_range(key::encode(&stop));
    let Some(entry) = table.range(of_stop).next_back() else { return Ok(None) };
    let decoded = key::decode::<(String, u16, String)>(entry?.key());
    Ok(decoded.ok().map(|(_, minute, line)| (minute, line)))
}

#[test]
fn it_finds_what_departs_in_order() -> Result<()> {
    main()?;
    let departures = departures()?;
    let next = next(&departures, "Museum", at(8, 10), 3)?;
    let expected = [(at(8, 12), "U6"), (at(8, 12), "U7"), (at(8, 30), "U7")];
    assert_eq!(next, expected.map(|(minute, line)| (minute, line.to_owned())));
    assert_eq!(last(&departures, "Harbour")?, Some((at(8, 31), "U6".to_owned())));
    assert_eq!(last(&departures, "Airport")?, None);
    Ok(())
}
