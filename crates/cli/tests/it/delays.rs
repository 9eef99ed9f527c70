//! The sample checks itself; this checks that it did, and some of its figures against the rows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{flight_rows, stdout_of};

#[test]
fn every_question_is_answered_and_its_figures_are_those_of_the_rows() {
    let out = stdout_of(&["sample", "delays", "--json", "-q", "--threads", "2"]);
    let mut answers = BTreeMap::new();
    for line in out.lines() {
        let answer: Value = serde_json::from_str(line).expect("an object a line");
        assert_eq!(answer["sample"], "delays");
        assert!(answer["verified"].is_string());
        let name = answer["question"].as_str().expect("a name").to_owned();
        answers.insert(name, answer["answer"].clone());
    }
    let (header, rows) = flight_rows();
    let index = |name: &str| header.iter().position(|column| column == name).expect("a column");
    let keys = ["time_hour", "carrier", "origin", "dest"].map(index);
    let facts: BTreeSet<[&str; 4]> =
        rows.iter().map(|row| keys.map(|index| row[index].as_ref())).collect();
    assert_eq!(answers["load"]["flights"], rows.len());
    assert_eq!(answers["load"]["facts"], facts.len());

    let (month, delay) = (index("month"), index("dep_delay"));
    let months = answers["year"].as_array().expect("a list");
    assert_eq!(months.len(), 12);
    for (at, found) in months.iter().enumerate() {
        let of_month = rows.iter().filter(|row| row[month] == (at + 1).to_string());
        let delays: Vec<f64> = of_month.clone().filter_map(|row| row[delay].parse().ok()).collect();
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        assert_eq!(found["flights"], of_month.count());
        assert!((found["mean"].as_f64().expect("a mean") - mean).abs() < 1e-9, "{found}");
    }
    assert_eq!(answers["worst_days"][0]["day"], "2013-03-08");
    assert_eq!(answers["carriers"].as_array().map(Vec::len), Some(16));
    assert_eq!(answers["destinations"][0]["dest"], "LAX");
    assert_eq!(answers["planes"].as_array().map(Vec::len), Some(3));
}

#[test]
fn people_see_a_chart() {
    let out = stdout_of(&["sample", "delays", "-q"]);
    assert!(out.contains("████") && out.contains("2013-07-01"), "{out}");
}
