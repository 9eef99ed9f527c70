//! Figures of many objects, computed where these lie, by the fields that the table declares.
//!
//! ```sh
//! cargo run -p sapwood --example figures
//! ```

use std::error::Error;

use sapwood::aggregate::{Aggregate, Answer, Group, OrderBy};
use sapwood::{Db, OrderedTableOptions, key};

/// In the key a carrier and a flight; in the value two numbers of two bytes, one behind the other.
/// A delay of -32768 stands for a flight that was cancelled.
const FIELDS: &str = "key(carrier:str, flight:u32), seats:u16le, delay:i16le@2?-32768";

fn main() -> Result<(), Box<dyn Error>> {
    let answer = delays()?;
    println!("{answer}");
    println!("{} of {} flights have no delay", answer.tally.missing, answer.tally.matched);
    Ok(())
}

fn delays() -> Result<Answer, Box<dyn Error>> {
    let options = OrderedTableOptions::default().fields(FIELDS.parse()?);
    let flights = Db::in_memory().create_ordered_table("flights", options)?;
    for (carrier, flight, seats, delay) in [
        ("UA", 1545_u32, 149_u16, 11_i16),
        ("UA", 1714, 149, 20),
        ("AA", 1141, 178, 33),
        ("B6", 725, 200, -18),
        ("UA", 1696, 142, 12),
        ("AA", 301, 178, i16::MIN),
    ] {
        let value = [seats.to_le_bytes(), delay.to_le_bytes()].concat();
        flights.put(key::encode(&(carrier, flight)), &value)?;
    }

    let query = flights
        .query()?
        .filter("seats >= 149".parse()?)
        .group_by(Group::list("carrier")?)
        .aggregates(Aggregate::list("count, sum(seats), mean(delay) as late")?)
        .order_by(OrderBy::list("late desc")?);
    Ok(flights.aggregate(&query)?)
}

#[test]
fn it_answers_with_figures() -> Result<(), Box<dyn Error>> {
    main()?;
    let answer = delays()?;
    let expected = "carrier  count  sum(seats)  late\n\
                    AA           2         356    33\n\
                    UA           2         298  15.5\n\
                    B6           1         200   -18";
    assert_eq!(answer.to_string(), expected);
    assert_eq!(answer.value(1, "late")?.as_f64(), Some(15.5));
    let seats: u64 = answer.value(0, "sum(seats)")?.try_into()?;
    assert_eq!((seats, answer.tally.missing), (356, 1));
    Ok(())
}
