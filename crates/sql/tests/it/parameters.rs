//! Values in the places of parameters.

use crate::memory::Memory;

#[test]
fn parameters_are_values_and_nothing_else() {
    use sapwood_schema::{Precision, Value};
    let db = Memory::default().with("t", "a:i32, b:text, d:date, key(a)", "(1, 'x', '2013-01-31')");
    let evil = "'); delete from t; --";
    assert_eq!(db.try_with("select $1", &[evil.into()]).expect("a row"), [evil]);
    db.try_with("insert into t values ($1, $2, $3)", &[2.into(), evil.into(), "2013-02-01".into()])
        .expect("it is inserted");
    let found = db.try_with(
        "select a from t where b = ? and d > ? limit ?",
        &[evil.into(), Value::Date(0), 1.into()],
    );
    assert_eq!(found.expect("a row"), ["2"]);
    let moment = Value::Timestamp { ticks: 1_500_000_001, precision: Precision::Nanos };
    for (value, kind, shown) in [
        (Value::Null, "null", "null"),
        (true.into(), "boolean", "true"),
        ((-7).into(), "bigint", "-7"),
        (Value::Int(i128::MIN), "hugeint", "-170141183460469231731687303715884105728"),
        (Value::from(u128::MAX), "uhugeint", "340282366920938463463374607431768211455"),
        (0.1.into(), "double", "0.1"),
        ((-1e300).into(), "double", "-1e300"),
        (f64::NAN.into(), "double", "NaN"),
        (Value::Decimal { units: -1205, scale: 2 }, "decimal(4,2)", "-12.05"),
        (Value::Date(15_000), "date", "2011-01-26"),
        (moment, "timestamp", "1970-01-01 00:00:01.500000001"),
        (Value::Bytes(vec![0, 255].into()), "bytes", r"\x00\xFF"),
        ("7".into(), "text", "7"),
    ] {
        let rows = db.try_with("select $1, typeof($1)", std::slice::from_ref(&value));
        let rows = rows.unwrap_or_else(|error| panic!("{value:?}: {error}"));
        let (found, of) = rows[0].rsplit_once(' ').expect("two values");
        assert!(found.contains(shown), "{value:?}: {found}");
        assert!(of.contains(kind.split('(').next().expect("a name")), "{value:?}: {of}");
    }
    for (sql, values, says) in [
        ("select $2", &[1.into()][..], "`$2` is the parameter for value 2, and 1 value is given"),
        ("select ?", &[], "no value is given"),
        ("select $1", &[1.into(), 2.into()], "no statement has a place for value 2"),
        ("select $1, ?", &[1.into(), 2.into()], "and not as both"),
        ("select $a", &[1.into()], "they are numbered"),
        ("select $1", &[Value::Array(vec![])], "is an array"),
    ] {
        let refused = db.try_with(sql, values).expect_err(sql);
        assert!(refused.what().contains(says), "{sql}: {refused}");
    }
}

#[test]
fn a_parameter_is_no_number_of_a_result() {
    use sapwood_schema::Value;
    let db = Memory::default().with("t", "a:i32, b:i32, key(a)", "(1, 9), (2, 7), (3, 8)");
    let with = |sql: &str, values: &[Value<'_>]| {
        db.try_with(sql, values).unwrap_or_else(|error| panic!("{sql}: {error}"))
    };
    let decimal = |units, scale| Value::Decimal { units, scale };
    // All rows are sorted alike by it, and stay in their order.
    for value in [2.into(), 9.into(), (-1).into(), 0.5.into(), decimal(2, 0), decimal(25, 1)] {
        let values = std::slice::from_ref(&value);
        assert_eq!(with("select a, b from t order by ?", values), ["1 9", "2 7", "3 8"], "{value}");
        assert_eq!(with("select count(*) from t group by ?", values), ["3"], "{value}");
    }
    let sum = with("select a + b from t group by ?, a + b order by 1", &[1.into()]);
    assert_eq!(sum, ["9", "10", "11"]);
    // Wherever a number stands, it may be a parameter.
    let one_and_two: [Value<'_>; 2] = [1.into(), 2.into()];
    assert_eq!(with("select a from t order by b limit ? offset ?", &one_and_two), ["1"]);
    assert_eq!(with("select a from t order by b limit ?, ?", &one_and_two), ["3", "1"]);
    assert_eq!(
        with("select a from t order by a offset ? rows fetch next ? rows only", &one_and_two),
        ["2", "3"]
    );
    assert_eq!(with("select a from t where a in (?, ?) order by a", &one_and_two), ["1", "2"]);
    assert_eq!(with("select a from t where a between ? and ?", &one_and_two), ["1", "2"]);
    assert_eq!(with("values (?, 'x'), (-?, 'y')", &one_and_two), ["1 x", "-2 y"]);
    assert_eq!(
        with("select round(2.345, ?), substring('oaks' from ? for 2)", &[1.into(), 2.into()]),
        ["2.3 ak"]
    );
    for (days, expected) in [(3, "2013-01-04"), (-3, "2012-12-29")] {
        let moved = with("select date '2013-01-01' + interval ? day", &[days.into()]);
        assert_eq!(moved, [expected]);
        let back = with("select date '2013-01-01' - interval -? day", &[days.into()]);
        assert_eq!(back, [expected]);
    }
    let started = with("select date '2013-01-01' + interval ?", &["3 days".into()]);
    assert_eq!(started, ["2013-01-04"]);
}

#[test]
fn a_parameter_as_people_type_it_is_what_the_literal_is() {
    let db = Memory::default();
    for text in
        ["7", "-7", "0.1", "-0.10", ".5", "7.", "-7.", "1e3", "-1.5e-3", "12345678901234567890"]
    {
        let literal = db.rows(&format!("select {text}, typeof({text}), {text} + 0.2, {text} / 2"));
        let sql = "select $1, typeof($1), $1 + 0.2, $1 / 2";
        let placed = db.try_with(sql, &[sapwood_sql::parameter(text)]);
        assert_eq!(placed.unwrap_or_else(|error| panic!("{text}: {error}")), literal, "{text}");
    }
    let sum = db.try_with("select ? + 0.2, ? + 0.2", &["0.1", "1e-1"].map(sapwood_sql::parameter));
    assert_eq!(sum.expect("a row"), ["0.3 0.30000000000000004"]);
    for text in ["2013-01-01", "1.2.3", ".", "12 oaks"] {
        assert_eq!(sapwood_sql::parameter(text), text.into(), "{text}");
    }
}
