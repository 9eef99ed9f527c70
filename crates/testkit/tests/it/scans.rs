//! Scans that keep the promise and scans that do not, by hand.

use sapwood_testkit::engine::{Direction, ScanForm};
use sapwood_testkit::history::{Call, Event, History};
use sapwood_testkit::linear;
use sapwood_testkit::scan_promise::ScanRecord;
use std::ops::Bound;

const ALL: (Bound<Vec<u8>>, Bound<Vec<u8>>) = (Bound::Unbounded, Bound::Unbounded);

/// Keys a, b, c and d are put at 0..8; b is removed during 20..25; c changes to "new" at 30..31
/// and back, and so on; the scan runs from 10 to 40.
fn writers() -> History {
    let mut history = History::default();
    let mut push = |key: &str, begin, end, call| {
        let thread = 0;
        history.push(key.as_bytes(), Event { thread, begin, end, call });
    };
    for (at, key) in [(0, "a"), (2, "b"), (4, "c"), (6, "d")] {
        push(key, at, at + 1, Call::Put(b"old"[..].into(), Some(false)));
    }
    push("b", 20, 25, Call::Remove(true));
    push("c", 30, 31, Call::Put(b"new"[..].into(), Some(true)));
    push("c", 50, 51, Call::Put(b"late"[..].into(), Some(true)));
    push("d", 8, 9, Call::Put(b"early"[..].into(), Some(true)));
    history
}

#[derive(Clone, Copy)]
struct Scan {
    form: ScanForm,
    direction: Direction,
    limit: usize,
}

const UP: Scan =
    Scan { form: ScanForm::Stream, direction: Direction::Ascending, limit: usize::MAX };
const DOWN: Scan = Scan { direction: Direction::Descending, ..UP };

fn outcome(
    scan: Scan,
    bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    seen: &[(&str, &str)],
) -> Result<(), String> {
    let record = ScanRecord {
        thread: 1,
        begin: 10,
        end: 40,
        form: scan.form,
        bounds,
        direction: scan.direction,
        limit: scan.limit,
        seen: seen
            .iter()
            .map(|(key, value)| (key.as_bytes().into(), value.as_bytes().into()))
            .collect(),
    };
    let universe: Vec<Vec<u8>> = ["a", "b", "c", "d"].map(|key| key.as_bytes().to_vec()).into();
    let mut history = writers();
    record.add_to(&mut history, &universe)?;
    linear::check(&history).map_err(|stuck| stuck.to_string())
}

#[track_caller]
fn keeps(scan: Scan, seen: &[(&str, &str)]) {
    assert_eq!(outcome(scan, ALL, seen), Ok(()));
}

#[track_caller]
fn breaks(scan: Scan, seen: &[(&str, &str)], why: &str) {
    let told = outcome(scan, ALL, seen).expect_err(why);
    assert!(told.contains(why), "{told}");
}

#[test]
fn a_key_that_changes_during_the_scan_may_be_seen_either_way() {
    keeps(UP, &[("a", "old"), ("b", "old"), ("c", "old"), ("d", "early")]);
    keeps(UP, &[("a", "old"), ("c", "new"), ("d", "early")]);
    keeps(DOWN, &[("d", "early"), ("c", "new"), ("a", "old")]);
}

#[test]
fn a_key_that_is_there_all_the_time_must_be_seen() {
    breaks(UP, &[("b", "old"), ("c", "old"), ("d", "early")], "key b\"a\"");
    breaks(UP, &[("a", "old"), ("c", "old")], "key b\"d\"");
    breaks(DOWN, &[("d", "early"), ("a", "old")], "key b\"c\"");
    breaks(UP, &[], "key b\"a\"");
}

#[test]
fn no_key_is_seen_twice_or_out_of_order() {
    breaks(UP, &[("a", "old"), ("a", "old")], "saw twice b\"a\"");
    breaks(UP, &[("b", "old"), ("a", "old")], "out of order b\"a\"");
    breaks(DOWN, &[("a", "old"), ("b", "old")], "out of order b\"b\"");
    breaks(UP, &[("a", "old"), ("c", "old"), ("b", "old")], "out of order b\"b\"");
    breaks(UP, &[("a", "old"), ("x", "?")], "nobody ever put: b\"x\"");
}

#[test]
fn each_value_was_current_some_time_during_the_scan() {
    breaks(UP, &[("a", "old"), ("c", "old"), ("d", "old")], "key b\"d\"");
    breaks(UP, &[("a", "old"), ("c", "late"), ("d", "early")], "key b\"c\"");
    breaks(UP, &[("a", "torn"), ("c", "old"), ("d", "early")], "key b\"a\"");
    let keys = Scan { form: ScanForm::Keys, ..UP };
    keeps(keys, &[("a", ""), ("c", ""), ("d", "")]);
    breaks(keys, &[("a", ""), ("c", "")], "key b\"d\"");
}

#[test]
fn a_scan_says_nothing_about_keys_it_did_not_come_to() {
    let two = Scan { limit: 2, ..UP };
    keeps(two, &[("a", "old"), ("b", "old")]);
    keeps(two, &[("a", "old"), ("c", "old")]);
    breaks(two, &[("b", "old"), ("c", "old")], "key b\"a\"");
    breaks(two, &[("a", "old"), ("d", "early")], "key b\"c\"");
    breaks(two, &[("a", "old"), ("b", "old"), ("c", "old")], "past its limit to b\"c\"");
    let last = Scan { limit: 1, ..DOWN };
    keeps(last, &[("d", "early")]);
    breaks(last, &[("c", "old")], "key b\"d\"");
    let from_c = (Bound::Included(b"c".to_vec()), Bound::Unbounded);
    assert_eq!(outcome(UP, from_c.clone(), &[("c", "old"), ("d", "early")]), Ok(()));
    let told = outcome(UP, from_c, &[("b", "old"), ("c", "old"), ("d", "early")]);
    assert!(told.expect_err("b is out of bounds").contains("out of bounds b\"b\""));
}
