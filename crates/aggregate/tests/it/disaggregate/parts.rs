//! The parts that objects get.

use sapwood_aggregate::{Disaggregation, QueryError, Selection};

use super::{described, parts_of, shares};

#[test]
fn ties_go_to_lesser_keys_and_negative_totals_mirror() {
    for total in [11_i128, -11] {
        let layout = "n:i64le, w:u8@8";
        let value = |weight: u8| [&0_i64.to_le_bytes()[..], &[weight]].concat();
        let values = [2, 2, 0, 2, 1].map(value);
        let values: Vec<_> = values.iter().map(|value| &value[..]).collect();
        let parts = |asked: Disaggregation| {
            let parts = parts_of(&shares(&asked, &values).expect("it fits"));
            parts.into_values().map(|part| part * total.signum()).collect::<Vec<_>>()
        };
        // 11 / 5 is 2 and 1 of 5 left.
        assert_eq!(parts(described(layout, total)), [3, 2, 2, 2, 2]);
        // 22 / 7 is 3 and 1 of 7 left, 11 / 7 is 1 and 4 of 7: one unit is to be given.
        assert_eq!(parts(described(layout, total).in_proportion_to("w")), [3, 3, 0, 3, 2]);
    }
}

#[test]
fn nothing_to_spread_over_is_an_error_that_says_so() {
    let error = shares(&described("n:i64le", 5), &[]).expect_err("no objects");
    assert_eq!(error, QueryError::NoObjects { total: 5 });
    assert!(error.to_string().contains("nothing is selected"), "{error}");
    let nothing = shares(&described("n:i64le", 0), &[]).expect("nothing to do");
    let report = nothing.report(&nothing.progress());
    assert_eq!((report.changed, report.given, report.pending), (0, 0, 0));
    assert_eq!(nothing.batch_count(), 0);
    let nothing = nothing.pending(&nothing.progress()).expect("nothing twice");
    assert_eq!(nothing.count(), 0);

    let weighed = described("n:u8, w:u8@1", 5).in_proportion_to("w");
    let error = shares(&weighed, &[&[1, 0], &[2, 0]]).expect_err("no weights");
    assert_eq!(error, QueryError::NoWeights { total: 5, count: 2 });
    let weighed = described("n:u8, w:u8@1", 0).in_proportion_to("w");
    let zeros = shares(&weighed, &[&[1, 0], &[2, 0]]).expect("zeros");
    assert_eq!(parts_of(&zeros).into_values().collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn an_object_that_comes_twice_is_found_where_parts_would_not_add_up() {
    let by = described("n:i64le, w:u8@8", 5).compile().expect("it can be changed");
    let mut collector = by.collector();
    for key in [b"a", b"b", b"b"] {
        collector.push(key, &[0; 9]);
    }
    let error = by.shares([collector.into_collected()]).expect_err("b came twice");
    assert_eq!(error, QueryError::Twice { key: "b".into() });
    let weighed = described("n:i64le, w:u8@8", 4).in_proportion_to("w").compile().expect("one");
    let collect = |objects: &[(&[u8], u8)]| {
        let mut collector = weighed.collector();
        for &(key, weight) in objects {
            collector.push(key, &[weight; 9]);
        }
        weighed.shares([collector.into_collected()])
    };
    // One unit is left and goes to `a`; the others need not be told apart.
    assert!(collect(&[(b"a", 1), (b"b", 1), (b"b", 1)]).is_ok());
    let error = collect(&[(b"a", 1), (b"a", 1), (b"b", 1)]).expect_err("a came twice");
    assert_eq!(error, QueryError::Twice { key: "a".into() });
    let found = collect(&[(b"a", 2), (b"b", 1), (b"b", 1)]).expect("nothing is left");
    let twice = found.pending(&found.progress()).map(drop);
    assert_eq!(twice, Err(QueryError::Twice { key: "b".into() }));
}

#[test]
fn weights_select_their_keys() {
    let by = described("n:u8", 10)
        .weights([(b"a", 1), (b"b", 3), (b"z", 9)])
        .select(
            Selection::range((std::ops::Bound::Unbounded, std::ops::Bound::Excluded(b"x")))
                .expect("a range"),
        )
        .compile()
        .expect("weights");
    assert_eq!(by.selection(), &Selection::keys([b"a", b"b"]));
    let mut collector = by.collector();
    for key in [b"a", b"b", b"c", b"z"] {
        collector.push(key, &[0]);
    }
    // One that has no weight is not selected.
    collector.push_selected(b"c", &[0], None);
    collector.add_absent(1);
    let found = by.shares([collector.into_collected()]).expect("it fits");
    assert_eq!(parts_of(&found).into_values().collect::<Vec<_>>(), [3, 7]);
    assert_eq!((found.tally().selected, found.tally().absent), (2, 1));
}
