//! One aggregate by every access path of two tables, each explained; and a total that is spread over the entries.
//!
//! ```sh
//! cargo run -p sapwood --example airports
//! ```

use std::error::Error;

use sapwood::aggregate::{
    Aggregate, Answer, Compiled, Disaggregation, Execution, Executor, Group, Layout, Selection,
};
use sapwood::{AnyTable, Db, HashTableOptions, OrderedTableOptions, key};

/// Day, flight, airport, minutes late.
const FLIGHTS: [(u8, u32, &str, i16); 7] = [
    (1, 1545, "EWR", 2),
    (1, 1141, "JFK", 2),
    (8, 725, "JFK", 31),
    (8, 461, "LGA", -6),
    (8, 1696, "EWR", 12),
    (8, 507, "EWR", 53),
    (9, 301, "LGA", 0),
];

/// The day that is asked about: its flights have a prefix of their keys in common.
const DAY: u8 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    for table in tables()? {
        let query = delays_by_airport(&table)?;
        for (answer, executor) in answers(&table, &query)? {
            println!("{} by {executor}:\n{answer}\n", table.name());
        }
        println!("a budget of 100 minutes, spread over {} flights", spread(&table, 100)?);
    }
    Ok(())
}

/// Flights in an ordered table and in a hash table, by day and number.
fn tables() -> Result<[AnyTable; 2], Box<dyn Error>> {
    let fields: Layout =
        "key(day:u8, flight:u32), delay:i16le@0, airport:text3@2, budget:i16le@5".parse()?;
    let db = Db::in_memory();
    let ordered = OrderedTableOptions::default().fields(fields.clone());
    let hash = HashTableOptions::default().fields(fields);
    let tables: [AnyTable; 2] = [
        db.create_ordered_table("ordered", ordered)?.into(),
        db.create_hash_table("hash", hash)?.into(),
    ];
    for table in &tables {
        for (day, flight, airport, minutes) in FLIGHTS {
            let value = [&minutes.to_le_bytes(), airport.as_bytes(), &[0; 2]].concat();
            table.put(key::encode(&(day, flight)), value)?;
        }
    }
    Ok(tables)
}

fn delays_by_airport(table: &AnyTable) -> Result<Compiled, Box<dyn Error>> {
    let query = table
        .query()?
        .select(Selection::prefix(key::encode(&DAY)))
        .group_by(Group::list("airport")?)
        .aggregates(Aggregate::list("count, sum(delay), max(delay)")?);
    Ok(query.compile()?)
}

/// The answer of every executor that reaches the table, the planner's choice first.
fn answers(table: &AnyTable, query: &Compiled) -> Result<Vec<(Answer, Executor)>, Box<dyn Error>> {
    let plan = table.explain(query, &Execution::new())?;
    println!("{}: {plan}", table.name());
    let mut answers = Vec::new();
    for candidate in &plan.candidates {
        let forced = Execution::new().executor(candidate.executor);
        answers.push((table.aggregate_with(query, &forced)?.answer()?, candidate.executor));
    }
    Ok(answers)
}

/// Spreads a budget over the flights of the day, in whole minutes that add up to it.
fn spread(table: &AnyTable, budget: i128) -> Result<u64, Box<dyn Error>> {
    let fields = table.fields().expect("the table has fields").clone();
    let of_day = Selection::prefix(key::encode(&DAY));
    let spread = Disaggregation::new(fields, "budget", budget).select(of_day).equally();
    Ok(table.disaggregate(&spread)?.changed)
}

#[test]
fn every_path_has_the_same_answer_and_a_total_comes_back() -> Result<(), Box<dyn Error>> {
    main()?;
    let mut executors = Vec::new();
    for table in tables()? {
        let query = delays_by_airport(&table)?;
        for (answer, executor) in answers(&table, &query)? {
            let expected = "airport  count  sum(delay)  max(delay)\n\
                            EWR          2          65          53\n\
                            JFK          1          31          31\n\
                            LGA          1          -6          -6";
            assert_eq!(answer.to_string(), expected, "{} by {executor}", table.name());
            executors.push(executor);
        }
        assert_eq!(spread(&table, 101)?, 4);
        let budget = table.query()?.aggregates(Aggregate::list("sum(budget), max(budget)")?);
        let budget = table.aggregate(&budget)?;
        assert_eq!(budget.value(0, "sum(budget)")?, &101.into());
        assert_eq!(budget.value(0, "max(budget)")?, &26.into());
    }
    executors.sort_unstable_by_key(|executor| executor.to_string());
    assert_eq!(executors, [Executor::Log, Executor::Range, Executor::Walk]);
    Ok(())
}
