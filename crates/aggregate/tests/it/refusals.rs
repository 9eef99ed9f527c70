//! What has no answer has an error that says why.

use sapwood_aggregate::{
    Aggregate, Answer, Group, Mismatches, Missing, OrderBy, Query, QueryError, Selection,
    SyntaxError, Value,
};

fn query(layout: &str, figures: &str) -> Query {
    Query::new(layout.parse().expect("a layout"))
        .aggregates(Aggregate::list(figures).expect("figures"))
}

fn ask(query: &Query, values: &[&[u8]]) -> Result<Answer, QueryError> {
    let query = query.compile()?;
    let mut fold = query.fold();
    for (at, value) in values.iter().enumerate() {
        fold.push(format!("{at:02}").as_bytes(), value)?;
    }
    query.finish(fold.into_partial())
}

#[test]
fn overflow_is_an_error_and_does_not_depend_on_the_order() {
    let values = [i128::MAX, 1, -1, i128::MIN].map(i128::to_le_bytes);
    let values: Vec<&[u8]> = values.iter().map(|value| &value[..]).collect();
    let sum = query("n:i128le", "sum(n)");
    let answer = ask(&sum, &values[..3]).expect("the sum is in range");
    assert_eq!(answer.value(0, "sum(n)"), Ok(&Value::Int(i128::MAX)));
    let error = ask(&sum, &values[..2]).expect_err("overflow");
    assert!(matches!(error, QueryError::Overflow { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "`sum(n)` is about 2^127, beyond the range of its type: select fewer objects, or group them"
    );

    let large = [f64::MAX.to_le_bytes(); 2];
    let values: Vec<&[u8]> = large.iter().map(|value| &value[..]).collect();
    for (figures, overflows) in [
        ("sum(x)", true),
        ("variance(x)", false),
        ("mean(x)", false),
        ("variance_pop(x), sum(x)", true),
    ] {
        let error = ask(&query("x:f64le", figures), &values);
        assert_eq!(
            matches!(error, Err(QueryError::Overflow { .. })),
            overflows,
            "{figures}: {error:?}"
        );
    }
}

#[test]
fn what_cannot_be_read_is_counted_and_shown() {
    let one = 1.0_f64.to_le_bytes();
    let nan = f64::NAN.to_le_bytes();
    let infinite = f64::INFINITY.to_le_bytes();
    for (figures, values, says) in [
        (
            "sum(x)",
            [&one[..], &nan[..]],
            "1 of 2 selected objects do not have what the query reads; the first by key: key 01: field `x` is NaN. Correct",
        ),
        ("min(x)", [&nan[..], &nan], "2 of 2"),
        ("sum(x)", [&one[..], &one[..7]], "key 01: field `x` needs 8 bytes, there are 7"),
        ("mean(x)", [&one[..], &infinite], "field `x` is infinite, and cannot be added up"),
        ("stddev(x)", [&one[..], &infinite], "infinite"),
        ("median(x)", [&one[..], &infinite], "infinite"),
    ] {
        let error = ask(&query("x:f64le", figures), &values).expect_err("a mismatch");
        assert!(matches!(error, QueryError::Mismatched { .. }), "{error:?}");
        assert!(error.to_string().contains(says), "{error}");

        let skipping = query("x:f64le", figures).mismatches(Mismatches::Skip);
        let answer = ask(&skipping, &values).expect("an answer without them");
        assert_eq!(answer.tally.mismatched + answer.tally.matched, 2);
        assert!(answer.tally.first_mismatch.is_some());
    }
    // Infinities compare, and are the extremes.
    let answer = ask(&query("x:f64le", "max(x)"), &[&one, &infinite]).expect("an answer");
    assert_eq!(answer.value(0, "max(x)").cloned(), Value::float(f64::INFINITY));
}

#[test]
fn an_object_is_in_all_figures_or_in_none() {
    // `b` does not fit into the second value, `a` does.
    let query = query("a:u8, b:u8@1", "count, sum(a), sum(b)").mismatches(Mismatches::Skip);
    let answer = ask(&query, &[&[1, 2], &[10], &[100, 3]]).expect("an answer");
    assert_eq!(answer.value(0, "count"), Ok(&2.into()));
    assert_eq!(answer.value(0, "sum(a)"), Ok(&101.into()));
    // What the filter excludes is no mismatch, though it is short.
    let filtered = query.mismatches(Mismatches::Refuse).filter("a != 10".parse().expect("one"));
    let answer = ask(&filtered, &[&[1, 2], &[10], &[100, 3]]).expect("an answer");
    assert_eq!(answer.tally.matched, 2);
}

#[test]
fn missing_values_are_passed_over_or_refused() {
    let query = query("a:u8?0, b:u8@1", "count, sum(a), mean(b)");
    let values: [&[u8]; 3] = [&[0, 4], &[5, 6], &[0, 8]];
    let answer = ask(&query, &values).expect("an answer");
    assert_eq!(answer.value(0, "count"), Ok(&3.into()));
    assert_eq!(answer.value(0, "sum(a)"), Ok(&5.into()));
    assert_eq!(answer.value(0, "mean(b)"), Ok(&6.into()));
    assert_eq!(answer.tally.missing, 2);

    let strict = query.clone().missing(Missing::Refuse);
    let error = ask(&strict, &values).expect_err("missing").to_string();
    assert!(error.starts_with("2 of 3") && error.contains("field `a` is missing"), "{error}");
    // Asking whether it is missing is allowed, and guards what comes behind.
    let guarded = strict.filter("a is not missing and a > 1".parse().expect("a condition"));
    assert_eq!(ask(&guarded, &values).expect("an answer").tally.matched, 1);
    let compared = query.missing(Missing::Refuse).filter("a > 1".parse().expect("a condition"));
    assert!(matches!(ask(&compared, &values), Err(QueryError::Mismatched { count: 2, .. })));
}

#[test]
fn vanished_objects_are_counted() {
    let query = query("a:u8", "count").select(Selection::keys(["a", "b", "c"]));
    let query = query.compile().expect("a query");
    let mut fold = query.fold();
    fold.push_selected(b"a", &[1]).expect("no groups");
    fold.add_absent(2);
    fold.push(b"z", &[1]).expect("no groups");
    let answer = query.finish(fold.into_partial()).expect("an answer");
    assert_eq!((answer.tally.selected, answer.tally.absent), (1, 2));
}

#[test]
fn more_groups_than_allowed_are_refused_in_folds_and_merges() {
    let query = query("a:u8", "count")
        .group_by(Group::list("a").expect("groups"))
        .groups_max(2)
        .compile()
        .expect("a query");
    let fold = |values: &[u8]| {
        let mut fold = query.fold();
        for value in values {
            fold.push(b"key", &[*value])?;
        }
        Ok(fold.into_partial())
    };
    let refused = QueryError::TooManyGroups { max: 2 };
    let rows = |partial| query.finish(partial).map(|answer| answer.rows.len());
    assert_eq!(fold(&[1, 2, 1, 2]).and_then(rows), Ok(2));
    assert_eq!(fold(&[1, 2, 3]).and_then(rows), Err(refused.clone()));
    let merged = query.merge(fold(&[1, 2]).expect("two"), fold(&[3]).expect("one"));
    assert_eq!(merged.map(drop), Err(refused.clone()));
    // What a fold could not refuse goes nowhere either.
    let three = fold(&[1, 2, 3]).expect("refused at the end");
    assert_eq!(query.decode(&three.encode()).map(drop), Err(refused));
}

#[test]
fn parts_that_do_not_fit_are_refused_with_a_next_step() {
    let base = || query("n:i64le, x:f64le@8, t:text@16", "count");
    let figures = |text: &str| base().aggregates(Aggregate::list(text).expect("figures"));
    let filter = |text: &str| base().filter(text.parse().expect("a condition"));
    let groups = |text: &str| base().group_by(Group::list(text).expect("groups"));
    for (query, says) in [
        (figures("sum(m)"), "there is no field `m`; the layout has n, x, t, key"),
        (figures("sum(t)"), "`sum(t)` needs a number, and `t` is a text"),
        (figures("variance(key)"), "`variance(key)` needs a number, and `key` is a text"),
        (figures("first(n by m)"), "there is no field `m`"),
        (figures("count, count"), "two columns are called `count`: name one with `as`"),
        (figures("quantile(n, 2)"), "the share is 0 to 1"),
        (base().aggregates(Vec::new()), "asks for nothing"),
        (filter("m = 1"), "there is no field `m`"),
        (filter("n = 'x'"), "n is a number and cannot be compared with a text"),
        (filter("key > 1"), "key is a text and cannot be compared with a number"),
        (filter("t = n"), "cannot be compared"),
        (groups("m"), "there is no field `m`"),
        (groups("bucket(t, 5)"), "needs a number"),
        (groups("bucket(n, 0)"), "0 wide"),
        (groups("classes(n, 2, 1)"), "that ascend"),
        (groups("n, n"), "two columns are called `n`"),
        (
            base().having("sum(n) > 1".parse().expect("a condition")),
            "there is no column `sum(n)`; the answer has count",
        ),
        (base().having("count > 'x'".parse().expect("a condition")), "cannot be compared"),
        (base().order_by(OrderBy::list("key").expect("an order")), "there is no column `key`"),
        (figures("top(n, 2)").order_by(OrderBy::list("top(n, 2)").expect("an order")), "is a list"),
    ] {
        let error = query.compile().expect_err(says).to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn having_that_meets_another_kind_says_which() {
    let query = query("v:json($)", "max(v)").having("max(v) > 1".parse().expect("a condition"));
    let error = ask(&query, &[b"\"text\""]).expect_err("kinds differ").to_string();
    assert_eq!(error, "in having, `max(v)` is a text, and a number is needed");
}

#[test]
fn a_value_of_another_kind_is_a_mismatch() {
    let values: [&[u8]; 3] = [br#"{"n":1}"#, br#"{"n":"1"}"#, br#"{"n":[1]}"#];
    for (figures, filter) in [("sum(n)", "n is not missing"), ("count", "n > 0")] {
        let asked = query("n:json($.n)", figures).filter(filter.parse().expect("a condition"));
        let error = ask(&asked, &values).expect_err("a text, and an array").to_string();
        assert!(error.starts_with("2 of 3 selected objects"), "{error}");
        assert!(error.contains("key 01: field `n` is a text, and a number is needed"), "{error}");
        let answer = ask(&asked.mismatches(Mismatches::Skip), &values).expect("the other");
        assert_eq!((answer.tally.matched, answer.tally.mismatched), (1, 2));
    }
}

#[test]
fn cells_that_are_not_there_are_named() {
    let answer = ask(&query("n:u8", "count, top(n, 2)"), &[&[1]]).expect("an answer");
    let error = answer.cell(0, "sum").expect_err("no such column").to_string();
    assert_eq!(error, "there is no `sum` in row 0; the answer has 1 row of count, top(n, 2)");
    assert!(answer.cell(1, "count").is_err());
    assert!(answer.value(0, "top(n, 2)").is_err());
}

#[test]
fn mistakes_in_texts_show_the_place() {
    let error: SyntaxError = OrderBy::list("count up").expect_err("refused");
    assert_eq!(
        error.to_string(),
        "this list of columns to sort by cannot be read at character 7: nothing more is expected here\n  count up\n        ^"
    );
    assert!(OrderBy::list("").is_err());
}
