//! The bundled file through `load`, `get` and `scan`, against plain work on its rows.

use crate::{flight_rows, flights_path, sapwood, stdout_of};

fn line(row: &csv::StringRecord) -> String {
    row.iter().collect::<Vec<_>>().join(",")
}

fn typed(field: &str) -> String {
    match field {
        "NA" => String::new(),
        moment if moment.ends_with(":00Z") => moment.trim_end_matches('Z').replace('T', " "),
        field => field.to_owned(),
    }
}

#[test]
fn a_scan_is_the_sorted_file() {
    let path = flights_path();
    let path = path.to_str().expect("UTF-8");
    let (header, mut rows) = flight_rows();
    let column = |name: &str| header.iter().position(|column| column == name).expect("a column");
    let (month, day, carrier) = (column("month"), column("day"), column("carrier"));
    let (flight, time) = (column("flight"), column("sched_dep_time"));
    let number =
        |row: &csv::StringRecord, index: usize| row[index].parse::<i64>().expect("a number");
    rows.sort_by_cached_key(|row| {
        let carrier = row[carrier].to_owned();
        (carrier, number(row, flight), number(row, month), number(row, day), number(row, time))
    });
    let key = "carrier,flight,month,day,sched_dep_time";
    let scanned = stdout_of(&["scan", path, "--key", key]);
    let mut lines = scanned.lines();
    assert_eq!(lines.next().map(str::to_owned), Some(line(&header)));
    // Missing values are empty, and moments are written as those of typed columns.
    let typed = |row: &csv::StringRecord| line(&row.iter().map(typed).collect());
    for (found, row) in lines.by_ref().zip(&rows) {
        assert_eq!(found, typed(row));
    }
    assert_eq!(lines.next(), None);
    assert_eq!(scanned.lines().count(), rows.len() + 1);
}

#[test]
fn a_key_that_is_not_unique_is_told() {
    let path = flights_path();
    let path = path.to_str().expect("UTF-8");
    let output =
        sapwood(&["load", path, "--key", "carrier,flight,month,day", "--json"]).assert().success();
    let output = output.get_output();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["rows"], &report["duplicates"]), (&336_776.into(), &24.into()));
    assert_eq!(report["entries"], 336_752);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("line 229232: repeated: key WN,2269,6,8 came before"), "{stderr}");
    assert!(stderr.contains("warning: 24 rows dropped: a later row has the same key"), "{stderr}");
    assert_eq!(stderr.matches("repeated:").count(), 10, "{stderr}");
}
