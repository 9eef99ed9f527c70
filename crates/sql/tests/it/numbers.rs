//! Numbers of all kinds: exact, rounded, or refused.

use crate::memory::Memory;

#[test]
fn numbers_are_exact_or_refused() {
    let db = Memory::default();
    for (expression, expected) in [
        ("7 / 2", "3"),
        ("-7 / 2", "-3"),
        ("-7 % 2", "-1"),
        ("7.0 / 2", "3.5"),
        ("1.10 + 2.2", "3.30"),
        ("1.5 * 1.5", "2.25"),
        ("0.1 + 0.2 = 0.3", "true"),
        ("0.1e0 + 0.2e0 = 0.3e0", "false"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775808 + 1", "9223372036854775809"),
        ("cast(2.5 as int)", "3"),
        ("cast(2.5e0 as int)", "2"),
        ("cast(-2.5 as int)", "-3"),
        ("cast('12' as smallint) + 1", "13"),
        ("try_cast('x' as int)", "null"),
        ("try_cast(300 as tinyint)", "null"),
        ("round(2.345, 2)", "2.35"),
        ("round(-2.5)", "-3"),
        ("round(1250, -2)", "1300"),
        ("floor(-1.5)", "-2"),
        ("ceil(-1.5)", "-1"),
        ("trunc(-1.5)", "-1"),
        ("abs(-3)", "3"),
        ("sign(-0.5)", "-1"),
        ("power(2, 10)", "1024"),
        ("sqrt(16)", "4"),
        ("cast('nan' as double) = cast('nan' as double)", "true"),
        ("cast('nan' as double) > 1e300", "true"),
        ("1 = 1.0", "true"),
        ("typeof(1.5)", "decimal(38,1)"),
        ("-(-3)", "3"),
        ("- - 3", "3"),
        ("cast(1 as text) || 'x'", "1x"),
        ("cast(1.0e0 as text)", "1.0"),
        ("12::decimal(4,1)", "12.0"),
        ("true::int", "1"),
    ] {
        assert_eq!(db.value(&format!("select {expression}")), expected, "{expression}");
    }
    for (expression, says) in [
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("1.5 / 0", "division by zero"),
        ("1e0 / 0", "division by zero"),
        ("9223372036854775807 + 1", "too large for bigint"),
        ("-9223372036854775808 - 1", "too large for bigint"),
        ("abs(-9223372036854775808)", "too large for bigint"),
        ("1e308 * 10", "too large for double"),
        ("170141183460469231731687303715884105727 + 1", "too large for hugeint"),
        ("99999999999999999999999999999999999999 * 10.0", "too large for decimal"),
        ("cast(300 as tinyint)", "300 does not fit into i8"),
        ("cast('x' as int)", "text 'x' cannot be a bigint"),
        ("cast(1e30 as bigint)", "cannot be a bigint"),
        ("cast(12345.6 as decimal(4,1))", "does not fit into decimal(4,1)"),
        ("sqrt(-1)", "no square root of a negative number"),
        ("ln(0)", "no logarithm"),
    ] {
        let error = db.refused(&format!("select {expression}"));
        assert!(error.what().contains(says), "{expression}: {error}");
    }
}

#[test]
fn reals_have_the_digits_that_they_show() {
    let db = Memory::default();
    for (expression, expected) in [
        ("1.023::real", "1.023"),
        ("-1.023::real", "-1.023"),
        ("'1.023'::real", "1.023"),
        ("1.023::real::text", "1.023"),
        ("1.023::real || ''", "1.023"),
        ("concat(0.1::real, 7::real)", "0.17.0"),
        ("3.4028235e38::real", "3.4028235e38"),
        ("1e-45::real", "1e-45"),
        ("'inf'::real", "inf"),
        ("typeof(1::real)", "real"),
        ("abs(-0.1::real)", "0.1"),
        ("coalesce(null, 0.1::real, 0)", "0.1"),
        ("case when true then 0.1::real else 0 end", "0.1"),
        ("greatest(0.1::real, 0, 0.05)", "0.1"),
        ("1.023::real::decimal(10,3)", "1.023"),
        ("2.5::real::integer", "2"),
        ("true::real", "1"),
        // Doubles have all of it.
        ("1.023::real::double", "1.0230000019073486"),
        ("1.023::real * 1", "1.0230000019073486"),
        ("round(1.0237::real, 3)", "1.024"),
        ("typeof(sqrt(2::real))", "double"),
        // Decimals become what a real can be; whole numbers stay as they are.
        ("1.023::real = 1.023", "true"),
        ("1.023::real < 1.023", "false"),
        ("1.023::real in (1, 1.023)", "true"),
        ("1.023::real between 1.023 and 1.023", "true"),
        ("1.023::real = '1.023'", "true"),
        ("1.023::real = 1.023::double", "false"),
        ("16777216::real = 16777217", "false"),
        ("16777216::real in (16777217)", "false"),
        ("16777216::real in (16777216)", "true"),
        ("16777217 in (16777216::real)", "false"),
        ("16777217 in (1.5, 16777216::real)", "false"),
        ("1.023::real in (340282366920938463463374607431768211455, 1.023)", "true"),
        ("'inf'::real in (170141183460469231731687303715884105727)", "false"),
        ("2147483648::real::bigint", "2147483648"),
        ("0.1::real::decimal(20,10)", "0.1000000000"),
        ("try_cast(1e39 as real)", "null"),
        ("try_cast('1e39' as real)", "null"),
    ] {
        assert_eq!(db.value(&format!("select {expression}")), expected, "{expression}");
    }
    assert!(db.refused("select 1e39::real").what().contains("1e39 cannot be a real"));
    let db = db.with(
        "t",
        "id:i32, r:f32?, v:[f32; 2]?, key(id)",
        "(1, 1.023, '[0.1, 2.5]'), (2, 0.1, null), (3, null, null)",
    );
    assert_eq!(
        db.rows("select r, v, v[1] from t order by r desc nulls first"),
        ["null null null", "1.023 [0.1, 2.5] 0.1", "0.1 null null"]
    );
    assert_eq!(db.value("select v::text from t where id = 1"), "[0.1, 2.5]");
    assert_eq!(
        db.value("select max(r), min(r), any_value(r), quantile_disc(r, 0.5) from t where id = 1"),
        "1.023 1.023 1.023 1.023"
    );
    // Sums are doubles.
    assert_eq!(
        db.value("select sum(r), avg(r), typeof(sum(r)) from t"),
        "1.1230000033974648 0.5615000016987324 double"
    );
    assert_eq!(db.rows("select r, count(*) from t group by r order by r limit 1"), ["0.1 1"]);
    assert_eq!(db.value("select id from t where r = 1.023"), "1");
    assert_eq!(db.rows("summarize t")[1].split(' ').nth(3), Some("1.023"));
    for sql in ["insert into t values (4, 1e39, null)", "update t set r = r * 1e39"] {
        assert!(db.refused(sql).what().contains("does not fit into f32"), "{sql}");
    }
    // A double takes all of it, others what is shown: as rows are found, and sorted.
    let db = db.with("u", "id:i32, d:f64?, s:text?, n:decimal(10,3)?, r:f32?, key(id)", "");
    db.run("insert into u select id, r, r, r, r from t where id = 1");
    db.run("insert into u select id, r, r, r, r from t where id = 2 order by id");
    db.run("insert into u values (4, 0.2::real, 0.2::real, 0.2::real, 0.2::real)");
    db.run("insert into u select id + 4, d, s, n, d from u where id = 1");
    assert_eq!(
        db.rows("select * from u"),
        [
            "1 1.0230000019073486 1.023 1.023 1.023",
            "2 0.10000000149011612 0.1 0.100 0.1",
            "4 0.20000000298023224 0.2 0.200 0.2",
            "5 1.0230000019073486 1.023 1.023 1.023"
        ]
    );
    // A whole number is that of the float, and not of the digits that it shows.
    let db = db.with("w", "id:i64, n:decimal(20,10)?, key(id)", "");
    db.run("insert into w select 2147483648::real, 0.1::real");
    db.run("insert into w values (123456789::real, null)");
    assert_eq!(db.rows("select * from w"), ["123456792 null", "2147483648 0.1000000000"]);
    assert_eq!(db.rows("select id from w where id in (123456792::real)"), ["123456792"]);
}

const HUGE_MAX: &str = "340282366920938463463374607431768211455";

/// Whole numbers of 128 bits without a sign, below and above those with one.
fn hashes() -> Memory {
    Memory::default().with(
        "t",
        "k:u128, a:u128?, b:i8, key(k)",
        "(0, 5, 1), (170141183460469231731687303715884105727, 7, -1),
         (170141183460469231731687303715884105728, null, 1),
         (340282366920938463463374607431768211455, 340282366920938463463374607431768211454, 2)",
    )
}

#[test]
fn numbers_without_a_sign_are_compared_and_sorted() {
    let db = hashes();
    for (condition, expected) in [
        ("k = 340282366920938463463374607431768211455", &["2"][..]),
        ("k > 170141183460469231731687303715884105727", &["1", "2"]),
        ("k >= 170141183460469231731687303715884105728", &["1", "2"]),
        ("k < 1", &["1"]),
        ("k > -1", &["1", "-1", "1", "2"]),
        ("k = -1", &[]),
        ("-1 < k and k < 3", &["1"]),
        ("k > b", &["-1", "1", "2"]),
        ("b >= k", &["1"]),
        ("b = 340282366920938463463374607431768211455", &[]),
        ("k in (-1, 0, 340282366920938463463374607431768211455)", &["1", "2"]),
        ("k not in (-1, 0)", &["-1", "1", "2"]),
        ("b in (340282366920938463463374607431768211455, 2)", &["2"]),
        ("k between -5 and 5", &["1"]),
        ("a is distinct from 5", &["-1", "1", "2"]),
        ("k > 1e38", &["-1", "1", "2"]),
        ("k = '170141183460469231731687303715884105728'", &["1"]),
    ] {
        let found = db.rows(&format!("select b from t where {condition} order by k"));
        assert_eq!(found, expected, "{condition}");
        // Where the key does not help.
        let found = db.rows(&format!("select b from t where ({condition}) is true order by k"));
        assert_eq!(found, expected, "{condition}");
    }
    assert_eq!(
        db.rows("select b from t order by a desc nulls last, k desc"),
        ["2", "-1", "1", "1"]
    );
    assert_eq!(db.value("select max(k) from t"), HUGE_MAX);
    assert_eq!(
        db.rows("select a, count(*) from t where a is not null group by 1 order by 1").len(),
        3
    );
    assert_eq!(db.value("select count(distinct k) from t"), "4");
}

#[test]
fn numbers_without_a_sign_are_computed_exactly_or_refused() {
    let db = hashes();
    for (expression, expected) in [
        ("sum(a)", Err("a sum is too large for uhugeint")),
        ("typeof(340282366920938463463374607431768211455)", Ok("uhugeint")),
        ("typeof(170141183460469231731687303715884105727)", Ok("hugeint")),
        (
            "-170141183460469231731687303715884105728",
            Ok("-170141183460469231731687303715884105728"),
        ),
        ("-340282366920938463463374607431768211455", Err("cannot be a hugeint")),
        ("340282366920938463463374607431768211455", Ok(HUGE_MAX)),
        ("340282366920938463463374607431768211456", Err("more than 38 digits")),
        ("170141183460469231731687303715884105728 + 0", Err("cannot be a hugeint")),
        ("cast(7 as uhugeint) - 9", Ok("-2")),
        ("cast(7 as uhugeint) * 2.5", Ok("17.5")),
        ("cast(-1 as uhugeint)", Err("-1 cannot be a uhugeint")),
        ("try_cast('340282366920938463463374607431768211456' as uhugeint)", Ok("null")),
        ("cast('340282366920938463463374607431768211455' as uint128)", Ok(HUGE_MAX)),
        (
            "cast('170141183460469231731687303715884105727' as hugeint)",
            Ok("170141183460469231731687303715884105727"),
        ),
        ("340282366920938463463374607431768211455::double", Ok("3.402823669209385e38")),
        ("1e38::uhugeint", Ok("99999999999999997748809823456034029568")),
        ("340282366920938463463374607431768211455::text", Ok(HUGE_MAX)),
        ("340282366920938463463374607431768211455::bigint", Err("cannot be a bigint")),
        ("abs(340282366920938463463374607431768211455)", Ok(HUGE_MAX)),
        ("sign(340282366920938463463374607431768211455)", Ok("1")),
        (
            "round(340282366920938463463374607431768211455, -37)",
            Ok("340000000000000000000000000000000000000"),
        ),
        ("greatest(1, 340282366920938463463374607431768211455)", Ok(HUGE_MAX)),
        ("coalesce(null, 340282366920938463463374607431768211455)", Ok(HUGE_MAX)),
    ] {
        let sql = match expression.starts_with("sum") {
            true => format!("select {expression} from t, (select 1)").replace(", (select 1)", ""),
            false => format!("select {expression}"),
        };
        match (db.try_run(&sql), expected) {
            (Ok(_), Ok(expected)) => assert_eq!(db.value(&sql), expected, "{expression}"),
            (Err(error), Err(says)) => {
                assert!(error.to_string().contains(says), "{expression}: {error}");
            }
            (found, expected) => panic!("{expression}: {found:?}, not {expected:?}"),
        }
    }
    assert_eq!(db.rows("select sum(a), avg(a) from t where a < 10"), ["12 6"]);
    assert_eq!(
        db.value("select sum(a) from t where k > 0 and a > 7"),
        "340282366920938463463374607431768211454"
    );
    db.run("update t set a = a * 2 where a < 10");
    assert_eq!(db.rows("select a from t order by a nulls first limit 3"), ["null", "10", "14"]);
    let error = db.try_run("update t set a = b").expect_err("one is below zero");
    assert!(error.to_string().contains("-1 does not fit into u128"), "{error}");
}

/// Numbers of 38 digits, and of 128 bits.
#[test]
fn numbers_that_are_too_large_once_they_are_rounded_are_refused() {
    let db = Memory::default();
    let nines = format!("'{}'::decimal(38,0)", "9".repeat(38));
    for number in [&nines[..], "170141183460469231731687303715884105727", "9223372036854775807"] {
        let digits = if number.len() < 20 { -19 } else { -38 };
        let sql = format!("select round({number}, {digits})");
        assert!(db.refused(&sql).what().contains("a value is too large"), "{sql}");
    }
}
