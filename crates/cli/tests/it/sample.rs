//! The sample's answers, against computations over the CSV with the standard collections alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{flight_rows, sapwood};

/// The columns that questions ask about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    carrier: String,
    flight: u32,
    month: u32,
    day: u32,
    scheduled: u32,
    dep_delay: Option<i64>,
    arr_delay: Option<i64>,
    dest: String,
    distance: u64,
}

fn rows() -> Vec<Row> {
    let (header, rows) = flight_rows();
    let index = |name: &str| header.iter().position(|column| column == name).expect("a column");
    let (carrier, flight, month, day) =
        (index("carrier"), index("flight"), index("month"), index("day"));
    let (scheduled, dest, distance) = (index("sched_dep_time"), index("dest"), index("distance"));
    let (dep_delay, arr_delay) = (index("dep_delay"), index("arr_delay"));
    rows.iter()
        .map(|row| Row {
            carrier: row[carrier].to_owned(),
            flight: row[flight].parse().expect("a number"),
            month: row[month].parse().expect("a number"),
            day: row[day].parse().expect("a number"),
            scheduled: row[scheduled].parse().expect("a number"),
            dep_delay: row[dep_delay].parse().ok(),
            arr_delay: row[arr_delay].parse().ok(),
            dest: row[dest].to_owned(),
            distance: row[distance].parse().expect("a number"),
        })
        .collect()
}

/// Minutes from the beginning of the year to the departure, from a table of month ends.
fn departed(row: &Row) -> Option<i64> {
    const DAYS_BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let days = DAYS_BEFORE[row.month as usize - 1] + i64::from(row.day) - 1;
    let minute = i64::from(row.scheduled / 100 * 60 + row.scheduled % 100);
    Some(days * 1440 + minute + row.dep_delay?)
}

fn describe(row: &Row) -> String {
    let Row { carrier, flight, month, day, scheduled, .. } = row;
    format!(
        "{carrier} {flight} 2013-{month:02}-{day:02} {:02}:{:02}",
        scheduled / 100,
        scheduled % 100
    )
}

#[test]
fn every_answer_is_right() {
    let output = sapwood(&["sample", "flights", "--json", "--threads", "4"]).assert().success();
    let output = String::from_utf8(output.get_output().stdout.clone()).expect("UTF-8");
    let mut answers = BTreeMap::new();
    for line in output.lines() {
        let answer: Value = serde_json::from_str(line).expect("an object a line");
        assert_eq!(answer["sample"], "flights");
        assert!(
            answer["seconds"].as_f64() > Some(0.0) && answer["per_second"].as_f64() > Some(0.0)
        );
        assert!(answer["verified"].is_string());
        answers.insert(
            answer["question"].as_str().expect("a name").to_owned(),
            answer["answer"].clone(),
        );
    }
    let rows = rows();

    // No row is lost.
    let load = &answers["load"];
    assert_eq!(rows.len(), 336_776);
    assert_eq!(load["rows"], rows.len());
    assert_eq!(load["entries"], rows.len());
    let key = |row: &Row| (row.carrier.clone(), row.flight, row.month, row.day, row.scheduled);
    let keys: BTreeSet<_> = rows.iter().map(key).collect();
    assert_eq!(load["distinct_keys"], keys.len());
    let days: BTreeSet<_> = keys.iter().map(|key| (&key.0, key.1, key.2, key.3)).collect();
    assert_eq!(load["distinct_keys_without_time"], days.len());
    let left = rows.iter().filter(|row| row.dep_delay.is_some()).count();
    assert_eq!(load["departures"], left);

    // One flight, as line 2 of the file has it.
    let one = &answers["one_flight"];
    assert_eq!(
        one.to_string(),
        r#"{"carrier":"UA","flight":1545,"scheduled":"2013-01-01 05:15","origin":"EWR","dest":"IAH","tailnum":"N14228","dep_time":517,"dep_delay":2,"arr_time":830,"arr_delay":11,"air_time":227,"distance":1400}"#
    );
    assert_eq!(answers["every_flight"]["miles"], rows.iter().map(|row| row.distance).sum::<u64>());

    // A carrier's March, ascending.
    let march = &answers["carrier_march"];
    let mut expected: Vec<&Row> =
        rows.iter().filter(|row| row.carrier == "UA" && row.month == 3).collect();
    expected.sort();
    assert_eq!(march["flights"], expected.len());
    assert_eq!(march["first"], describe(expected[0]));
    assert_eq!(march["last"], describe(expected[expected.len() - 1]));

    // The latest departures, descending.
    let mut departures: Vec<(i64, &Row)> =
        rows.iter().filter_map(|row| Some((departed(row)?, row))).collect();
    departures.sort();
    let expected: Vec<String> =
        departures.iter().rev().take(10).map(|(_, row)| describe(row)).collect();
    let latest = answers["latest_departures"].as_array().expect("a list");
    let found: Vec<String> = latest
        .iter()
        .map(|flight| {
            let text = |name: &str| flight[name].as_str().expect("text").to_owned();
            format!("{} {}", text("flight"), text("scheduled"))
        })
        .collect();
    assert_eq!(found, expected);
    assert_eq!(latest[0]["left"], "2014-01-01 00:26");

    // Delays by carrier and destination: flights, early, on the minute, late, minutes.
    let mut expected: BTreeMap<(&str, &str), [i64; 6]> = BTreeMap::new();
    for row in &rows {
        let Some(delay) = row.dep_delay else { continue };
        let totals = expected.entry((&row.carrier, &row.dest)).or_default();
        totals[0] += 1;
        totals[match delay.signum() {
            -1 => 1,
            0 => 2,
            _ => 3,
        }] += 1;
        totals[4] += delay;
        totals[5] += row.arr_delay.unwrap_or(0);
    }
    let delays = &answers["delay_totals"];
    assert_eq!(delays["threads"], 4);
    assert_eq!(delays["reader_torn"], 0);
    let totals = delays["totals"].as_array().expect("a list");
    assert_eq!(totals.len(), expected.len());
    for (found, ((carrier, dest), totals)) in totals.iter().zip(expected) {
        assert_eq!(
            (&found["carrier"], &found["dest"]),
            (&Value::from(carrier), &Value::from(dest))
        );
        let names =
            ["flights", "early", "on_the_minute", "late", "departure_minutes", "arrival_minutes"];
        for (name, total) in names.iter().zip(totals) {
            assert_eq!(found[name], total, "{carrier} to {dest}, {name}");
        }
    }

    // Memory: 12 bytes of key and 28 of value a flight, and every byte accounted for.
    let memory = &answers["memory"];
    let bytes = |name: &str| memory[name].as_u64().expect("a number");
    assert_eq!(bytes("value_bytes"), rows.len() as u64 * 28);
    assert_eq!(bytes("key_bytes"), rows.len() as u64 * 12);
    let parts = ["key_bytes", "value_bytes", "overhead_bytes", "retired_bytes", "free_bytes"];
    assert_eq!(parts.map(bytes).iter().sum::<u64>(), bytes("reserved_bytes"));
    let (header, records) = flight_rows();
    let line = |record: &csv::StringRecord| record.as_slice().len() + record.len();
    let csv_bytes: usize = records.iter().map(line).sum();
    assert_eq!(bytes("csv_bytes"), csv_bytes as u64);
    assert_eq!(csv_bytes + line(&header), 31_053_850);

    // Removal.
    let cancelled = &answers["cancelled"];
    let removed = rows.len() - left;
    assert_eq!(cancelled["removed"], removed);
    assert_eq!(cancelled["entries_before"], rows.len());
    assert_eq!(cancelled["entries_after"], left);
    let data = |name: &str| cancelled[name].as_u64().expect("a number");
    assert_eq!(data("data_bytes_before") - data("data_bytes_after"), removed as u64 * 40);
}

#[test]
fn people_are_told_that_answers_were_verified() {
    let output = sapwood(&["sample", "flights", "--quiet", "-t1"]).assert().success();
    let output = String::from_utf8(output.get_output().stdout.clone()).expect("UTF-8");
    assert_eq!(output.matches("verified: ").count(), 8, "{output}");
    assert!(output.contains("336,776 distinct keys"), "{output}");
    assert!(output.contains("8,255 were cancelled"), "{output}");
    assert!(!output.contains('\u{1b}'), "no colours when nobody looks");
}
