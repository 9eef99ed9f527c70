//! The sample checks itself; this checks that it did, and its figures against the rows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{flight_rows, sapwood, stdout_of};

/// What the questions read of a row.
struct Row {
    carrier: String,
    plane: String,
    origin: String,
    dest: String,
    month: u64,
    day: u64,
    hour: u64,
    miles: i64,
    delay: Option<i64>,
}

fn rows() -> Vec<Row> {
    let (header, rows) = flight_rows();
    let index = |name: &str| header.iter().position(|column| column == name).expect("a column");
    let texts = ["carrier", "tailnum", "origin", "dest"].map(index);
    let numbers = ["month", "day", "hour"].map(index);
    let (miles, delay) = (index("distance"), index("dep_delay"));
    rows.iter()
        .map(|row| {
            let [carrier, plane, origin, dest] = texts.map(|index| row[index].to_owned());
            let [month, day, hour] = numbers.map(|index| row[index].parse().expect("a number"));
            let miles = row[miles].parse().expect("a number");
            let delay = row[delay].parse().ok();
            Row { carrier, plane, origin, dest, month, day, hour, miles, delay }
        })
        .collect()
}

/// Flights, departures, minutes of delay, the greatest of them, and destinations, of each group.
fn groups<'a>(
    rows: impl Iterator<Item = &'a Row>,
    by: impl Fn(&Row) -> Value,
) -> BTreeMap<String, (u64, u64, i64, Option<i64>, BTreeSet<&'a str>)> {
    let mut groups = BTreeMap::new();
    for row in rows {
        let group: &mut (u64, u64, i64, Option<i64>, BTreeSet<&str>) =
            groups.entry(by(row).to_string()).or_default();
        group.0 += 1;
        group.1 += u64::from(row.delay.is_some());
        group.2 += row.delay.unwrap_or(0);
        group.3 = group.3.max(row.delay);
        group.4.insert(&row.dest);
    }
    groups
}

#[test]
fn every_figure_is_that_of_the_rows_and_every_way_was_taken() {
    let out = stdout_of(&["sample", "airports", "--json", "-q", "--threads", "2"]);
    let mut answers = BTreeMap::new();
    for line in out.lines() {
        let answer: Value = serde_json::from_str(line).expect("an object a line");
        assert_eq!(answer["sample"], "airports");
        assert!(answer["verified"].is_string());
        let name = answer["question"].as_str().expect("a name").to_owned();
        answers.insert(name, answer["answer"].clone());
    }
    let rows = rows();
    assert_eq!(answers["load"]["flights"], rows.len());

    let class = |row: &Row| match row.delay {
        None => Value::Null,
        Some(..1) => "below".into(),
        Some(1..15) => 1.into(),
        Some(15..60) => 15.into(),
        Some(60..180) => 60.into(),
        Some(_) => 180.into(),
    };
    let plane = |row: &&Row| row.plane == "N14228";
    let day = |row: &&Row| (row.month, row.day) == (3, 8);
    for (name, expected, is_all, ways) in [
        ("carriers", groups(rows.iter(), |row| row.carrier.as_str().into()), false, 3),
        (
            "airports",
            groups(rows.iter().filter(|row| row.month == 7), |row| row.origin.as_str().into()),
            true,
            3,
        ),
        ("hours", groups(rows.iter().filter(day), |row| row.hour.into()), true, 3),
        ("delay_classes", groups(rows.iter().filter(plane), class), true, 5),
    ] {
        let answer = &answers[name];
        let found = answer["rows"].as_array().expect("rows");
        assert!(!found.is_empty() && (!is_all || found.len() == expected.len()), "{name}");
        for row in found {
            let (flights, left, minutes, worst, airports) = &expected[&row["group"].to_string()];
            assert_eq!(
                (&row["flights"], &row["left"], &row["airports"]),
                (&(*flights).into(), &(*left).into(), &airports.len().into()),
                "{name}: {row}"
            );
            assert_eq!(row["worst"].as_i64(), *worst, "{name}: {row}");
            match row["mean"].as_f64() {
                None => assert_eq!(*left, 0, "{name}: {row}"),
                // serde_json does not read the last bit of a float.
                Some(mean) => {
                    let expected = *minutes as f64 / *left as f64;
                    assert!((mean - expected).abs() <= expected.abs() * 1e-15, "{name}: {row}");
                }
            }
        }

        let taken = answer["ways"].as_array().expect("ways");
        assert_eq!(taken.len(), ways, "{name}");
        let chosen = taken.iter().filter(|way| way["chosen"] == true);
        assert_eq!(chosen.count(), 2, "{name}: one of each table");
        for way in taken {
            assert_eq!(way["forced"], true);
            assert_eq!(way["measured"]["selected"], answer["selected"], "{name}: {way}");
        }
    }
    let selected = |name: &str| answers[name]["selected"].as_u64().expect("a number");
    assert_eq!((selected("carriers"), selected("hours")), (336_776, 979));

    // The way back: minutes of delay over the flights that left that day.
    let left: Vec<&Row> = rows.iter().filter(day).filter(|row| row.delay.is_some()).collect();
    let minutes: i64 = left.iter().filter_map(|row| row.delay).sum();
    let budget = &answers["budget"];
    assert_eq!((&budget["minutes"], &budget["flights"]), (&minutes.into(), &left.len().into()));
    let miles: i64 = left.iter().map(|row| row.miles).sum();
    let farthest = left.iter().map(|row| row.miles).max().expect("flights");
    let spreads = budget["spreads"].as_array().expect("spreads");
    assert_eq!(spreads.len(), 4, "two ways in two tables");
    for (at, spread) in spreads.iter().enumerate() {
        let is_equal = spread["how"] == "equally";
        let most = spread["most"].as_i64().expect("a number");
        // Rounded down, or a minute more.
        let share = if is_equal { minutes / left.len() as i64 } else { minutes * farthest / miles };
        assert!((share..=share + 1).contains(&most), "{spread}");
        assert_eq!((&spread["changed"], &spread["given"]), (&left.len().into(), &minutes.into()));
        let before = if at < 2 { "0".to_owned() } else { minutes.to_string() };
        assert_eq!(
            (&spread["sum_before"], &spread["sum_after"]),
            (&before.into(), &minutes.to_string().into())
        );
    }
}

#[test]
fn people_see_each_way_with_its_estimate_and_its_time() {
    let output = sapwood(&["sample", "airports", "-t1"]).assert().success();
    let output = output.get_output();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(out.matches("verified: ").count(), 6, "{out}");
    for (word, times) in [(" range ", 6), (" walk ", 4), (" log ", 6), (" look-up ", 2)] {
        assert_eq!(out.matches(word).count(), times, "{word}: {out}");
    }
    assert!(out.contains("336,776 flights by 1 thread, all:"), "{out}");
    assert!(out.contains("taken back: every record is as it was loaded"), "{out}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("every figure was compared"), "{stderr}");
}

