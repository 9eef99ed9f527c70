//! Functions of texts, bytes, moments and angles.

use crate::memory::Memory;
use crate::selects::flights;

#[test]
fn texts_have_functions() {
    let db = Memory::default();
    for (expression, expected) in [
        ("length('h\u{e4}llo')", "5"),
        ("octet_length('h\u{e4}llo')", "6"),
        ("lower('AbC') || upper('d')", "abcD"),
        ("trim('  a ')", "a"),
        ("trim(leading 'x' from 'xxaxx')", "axx"),
        ("trim(both 'x' from 'xxaxx')", "a"),
        ("rtrim('abcc', 'c')", "ab"),
        ("substring('hello' from 2 for 3)", "ell"),
        ("substr('hello', 2)", "ello"),
        ("replace('aXbX', 'X', '--')", "a--b--"),
        ("position('l' in 'hello')", "3"),
        ("left('hello', 2) || right('hello', -3)", "helo"),
        ("reverse('abc')", "cba"),
        ("repeat('ab', 3)", "ababab"),
        ("lpad('7', 3, '0') || rpad('ab', 4, '.')", "007ab.."),
        ("split_part('a/b/c', '/', 2)", "b"),
        ("split_part('a/b/c', '/', -1)", "c"),
        ("starts_with('N14', 'N1') and not ends_with('N14', '1')", "true"),
        ("contains('abc', 'b')", "true"),
        ("'abc' like 'a_c'", "true"),
        ("'ABC' ilike '%b%'", "true"),
        ("'100%' like '100!%' escape '!'", "true"),
        ("'a' < 'b'", "true"),
        ("x'00ff'", r"\x00\xFF"),
        ("'it''s'", "it's"),
    ] {
        assert_eq!(db.value(&format!("select {expression}")), expected, "{expression}");
    }
}

/// Casts, inserts and comparisons take the form in which bytes are shown.
#[test]
fn bytes_are_read_as_they_are_shown() {
    let db = Memory::default().with("t", "id:i32, b:bytes, key(id)", r"(1, '\xFFa\\'), (2, 'b')");
    for (expression, expected) in [
        (r"'\xFFa\\'::blob", r"\xFFa\\"),
        (r"'\xFFa\\'::blob = x'ff615c'", "true"),
        (r"octet_length('\x20\x00\xFF'::blob)", "3"),
        (r"try_cast('\q' as blob)", "null"),
        (r"try_cast('\x3' as blob)", "null"),
        ("'\u{fc}'::blob = x'c3bc'", "true"),
        ("x'c3bc'::text", "\u{fc}"),
    ] {
        assert_eq!(db.value(&format!("select {expression}")), expected, "{expression}");
    }
    assert_eq!(db.value(r"select id from t where b = '\xFFa\\'"), "1");
    assert_eq!(db.value(r"select id from t where b = cast('\x62' as blob)"), "2");
    assert!(db.refused(r"select 'a\b'::blob").what().contains("cannot be a bytes"));
    db.run(r"insert into t values (3, 'c\x00'::blob)");
    assert_eq!(db.rows(r"select id, octet_length(b) from t where b in ('c\x00', 'd')"), ["3 2"]);
}

#[test]
fn times_have_parts_and_distances() {
    let db = Memory::default();
    for (expression, expected) in [
        ("date '2013-01-31' + 1", "2013-02-01"),
        ("date '2013-01-31' + interval '1 month'", "2013-02-28"),
        ("date '2013-01-31' - interval 1 day", "2013-01-30"),
        ("date '2013-01-31' - date '2013-01-01'", "30"),
        ("date '2013-01-31' + interval '36 hours'", "2013-02-01 12:00:00"),
        ("timestamp '2013-01-31 10:00:00' + interval '90 minutes'", "2013-01-31 11:30:00"),
        ("extract(year from date '2013-11-20')", "2013"),
        ("extract(dow from date '2013-11-20')", "3"),
        ("date_part('quarter', date '2013-11-20')", "4"),
        ("month(date '2013-11-20')", "11"),
        ("extract(epoch from timestamp '1970-01-01 00:00:01.5')", "1.5"),
        ("date_trunc('hour', timestamp '2013-11-20 17:45:31')", "2013-11-20 17:00:00"),
        ("date_trunc('month', date '2013-11-20')", "2013-11-01"),
        ("date_diff('day', date '2013-01-01', date '2013-02-01')", "31"),
        ("date_diff('month', date '2013-01-31', date '2013-02-01')", "1"),
        ("cast('2013-11-20 17:45:31.25' as timestamp)", "2013-11-20 17:45:31.25"),
        ("cast(timestamp '2013-11-20 17:45:31' as date)", "2013-11-20"),
        ("date '2013-11-20' < timestamp '2013-11-20 00:00:01'", "true"),
        ("date '2013-11-20' = '2013-11-20'", "true"),
    ] {
        assert_eq!(db.value(&format!("select {expression}")), expected, "{expression}");
    }
    let db = flights();
    assert_eq!(
        db.value("select count(*) from flights where day >= '2013-01-02' and day < '2013-03-01'"),
        "3"
    );
    assert_eq!(db.value("select count(*) from flights where at > '2013-03-31 23:59:59'"), "1");
    assert_eq!(
        db.value("select count(*) from flights where at between '2013-01-01' and '2013-01-02'"),
        "2"
    );
}

/// Expects the answers of DuckDB 2.0, which has fewer digits of `timestamp` in texts.
#[test]
fn moments_of_fewer_digits_are_rounded() {
    let db = Memory::default();
    for (expression, expected) in [
        ("timestamp '2020-01-01 00:00:33.846'::timestamp_s", "2020-01-01 00:00:34"),
        ("timestamp '2020-01-01 00:00:33.446'::timestamp_s", "2020-01-01 00:00:33"),
        ("timestamp '2020-01-01 00:00:33.5'::timestamp_s", "2020-01-01 00:00:34"),
        ("timestamp '2024-05-10 11:06:33.123446'::timestamp_ms", "2024-05-10 11:06:33.123"),
        ("timestamp '2024-05-10 11:06:33.123846'::timestamp_ms", "2024-05-10 11:06:33.124"),
        ("'2020-01-01 00:00:00.123456789'::timestamp_ns::timestamp", "2020-01-01 00:00:00.123457"),
        ("'2020-01-01 00:00:00.4999'::timestamp_ms::timestamp_s", "2020-01-01 00:00:01"),
        // Halves go away from 1970.
        ("timestamp '1969-12-31 23:59:59.6'::timestamp_s", "1970-01-01 00:00:00"),
        ("timestamp '1969-12-31 23:59:59.5'::timestamp_s", "1969-12-31 23:59:59"),
        ("timestamp '1969-12-31 23:59:58.4'::timestamp_s", "1969-12-31 23:59:58"),
        ("'2024-05-10 11:06:33.846'::timestamp_s", "2024-05-10 11:06:34"),
        ("'2024-05-10 11:06:33.1235'::timestamp_ms", "2024-05-10 11:06:33.124"),
        ("'2024-05-10 11:06:33.1234567'::timestamp", "2024-05-10 11:06:33.123457"),
        ("try_cast('2024-05-10 11:06:33.846' as timestamp_s)", "2024-05-10 11:06:34"),
        ("'9999-12-31 23:59:59.5'::timestamp_s", "+10000-01-01 00:00:00"),
        // A day is the one that the moment is in.
        ("timestamp '2020-01-01 23:59:59.9'::date", "2020-01-01"),
        ("'2020-01-01 23:59:59.9999999'::date", "2020-01-01"),
        ("'1969-12-31 23:59:59.999999999'::timestamp_ns::date", "1969-12-31"),
        // A comparison has the digits of both.
        ("'2020-01-01 00:00:01'::timestamp_s < '2020-01-01 00:00:01.000000001'", "true"),
    ] {
        assert_eq!(db.value(&format!("select {expression}")), expected, "{expression}");
    }
    // A row keeps what it is given, or refuses it.
    let db = db.with("t", "m:timestamp(s), key(m)", "");
    for moment in ["timestamp '2020-01-01 00:00:33.846'", "'2020-01-01 00:00:33.846'"] {
        let refused = db.refused(&format!("insert into t values ({moment})"));
        assert!(refused.what().contains("column `m`"), "{refused}");
    }
    db.run("insert into t values (timestamp '2020-01-01 00:00:33.846'::timestamp_s)");
    assert_eq!(db.value("select m from t"), "2020-01-01 00:00:34");
}

#[test]
fn functions_answer_as_others_do() {
    let db = Memory::default();
    for (expression, expected) in [
        ("timestamp '2020-01-01' + interval '5 m'", "2020-01-01 00:05:00"),
        ("timestamp '2020-01-01' + interval '5 mins'", "2020-01-01 00:05:00"),
        ("timestamp '2020-01-01' + interval '5 ms'", "2020-01-01 00:00:00.005"),
        ("timestamp '2020-01-01' + interval '5 s'", "2020-01-01 00:00:05"),
        ("timestamp '2020-01-01' + interval '5 us'", "2020-01-01 00:00:00.000005"),
        ("date_trunc('m', timestamp '2020-01-01 10:11:12.5')", "2020-01-01 10:11:00"),
        ("date_diff('m', timestamp '2020-01-01', timestamp '2020-01-01 01:00:00')", "60"),
        ("date_part('m', timestamp '2020-01-01 10:11:12')", "11"),
        ("round(2.675e0, 2)", "2.67"),
        ("round(30.65e0, 1)", "30.6"),
        ("round(cast(42.12345 as double), 4)", "42.1234"),
        ("cast(2.675e0 as decimal(10,2))", "2.67"),
        ("round(499.9, -3)", "0"),
        ("round(44.9, -1)", "40"),
        ("round(999.9, -3)", "1000"),
        ("round(cast('nan' as double), -1)", "NaN"),
        ("round(cast('inf' as double), -1)", "inf"),
        ("round(cast('-inf' as double), 1)", "-inf"),
        ("'a%' ilike 'aE%' escape 'E'", "true"),
        ("'\u{130}' ilike '_'", "true"),
        ("'\u{391}\u{3a3}' ilike '%\u{3a3}'", "true"),
        ("1_000", "1000"),
        ("1_000.5", "1000.5"),
        ("0x1F", "31"),
        ("0b101 + 0o17", "20"),
        ("0xffffffffffffffffffffffffffffffff", "340282366920938463463374607431768211455"),
        ("x'63' || x'68' = x'6368'", "true"),
        ("typeof(x'63' || x'68')", "bytes"),
    ] {
        assert_eq!(db.value(&format!("select {expression}")), expected, "{expression}");
    }
}

/// Expects the answers of DuckDB 2.0.
#[test]
fn times_and_angles_answer_as_others_do() {
    let db = Memory::default();
    for (sql, expected) in [
        (
            "round(sin(1), 12), round(cos(1), 12), round(tan(1), 12)",
            "0.841470984808 0.540302305868 1.557407724655",
        ),
        (
            "round(asin(0.5), 12), round(acos(0.5), 12), round(atan(2), 12)",
            "0.523598775598 1.047197551197 1.107148717794",
        ),
        ("round(atan2(1, -2), 12), degrees(pi()), radians(180) = pi()", "2.677945044589 180 true"),
        (
            "round(sinh(1), 12), round(cosh(1), 12), round(tanh(1), 12), cbrt(27)",
            "1.175201193644 1.543080634815 0.761594155956 3",
        ),
        (
            "last_day(date '2012-02-10'), last_day(timestamp '2013-12-31 10:00:00')",
            "2012-02-29 2013-12-31",
        ),
        (
            "strftime(timestamp '2013-01-05 17:45:01.001002', '%Y-%m-%d %H:%M:%S.%f %j %a %B %p %I %-d %y %U %W %u %w %g %G-%V')",
            "2013-01-05 17:45:01.001002 005 Sat January PM 05 5 13 00 00 6 6 001 2013-01",
        ),
        ("strftime(date '2013-01-05', '%d.%m.%Y')", "05.01.2013"),
        (
            "time_bucket(interval '15 minutes', timestamp '2013-01-05 17:44:59')",
            "2013-01-05 17:30:00",
        ),
        (
            "time_bucket(interval '7 days', date '2013-01-05'), time_bucket('3 months', date '2013-05-05')",
            "2012-12-31 2013-04-01",
        ),
        (
            "date_bin(interval 2 hour, timestamp '2013-01-05 17:44:59', timestamp '2000-01-01 01:00:00')",
            "2013-01-05 17:00:00",
        ),
        // Spans and origins with more digits than the value, or with hours beside a day.
        (
            "time_bucket(interval '1500 ms', cast('2000-01-03 00:00:01' as timestamp_s))",
            "2000-01-03 00:00:00",
        ),
        (
            "time_bucket(interval '1500 ms', cast('2000-01-03 00:00:02' as timestamp_s))",
            "2000-01-03 00:00:01.5",
        ),
        (
            "time_bucket(interval '1500 us', cast('2000-01-03 00:00:00.002' as timestamp_ms))",
            "2000-01-03 00:00:00.0015",
        ),
        (
            "time_bucket(interval '1 day', date '2020-01-02', timestamp '2020-01-01 12:00:00')",
            "2020-01-01 12:00:00",
        ),
        (
            "date_bin(interval '1 day', timestamp '2020-01-02 11:00:00', date '2020-01-01')",
            "2020-01-02 00:00:00",
        ),
        (
            "time_bucket(interval '2 seconds', cast('2020-01-01 00:00:04' as timestamp_s), timestamp '2020-01-01 00:00:00.500')",
            "2020-01-01 00:00:02.5",
        ),
        (
            "cast('2000-01-03 00:00:01' as timestamp_s) + interval '1500 ms', cast('2000-01-03 00:00:01' as timestamp_s) - interval '1 ms'",
            "2000-01-03 00:00:02.5 2000-01-03 00:00:00.999",
        ),
        (
            "typeof(current_date), now() = current_timestamp, cast(now() as date) = today()",
            "date true true",
        ),
        (
            "now() > timestamp '2020-01-01', current_date between '2020-01-01' and '2999-01-01'",
            "true true",
        ),
    ] {
        assert_eq!(db.value(&format!("select {sql}")), expected, "{sql}");
    }
    assert_eq!(db.rows("values (1, 'x'), (2.5, null)"), ["1.0 x", "2.5 null"]);
    for (sql, says) in [
        ("select asin(2)", "beyond -1 to 1"),
        ("select sin(cast('inf' as double))", "of infinity"),
        ("select strftime(now(), '%q')", "`%q` stands for no part"),
        ("select to_char(now(), 'YYYY')", "strftime"),
        ("select time_bucket(interval '0 days', now())", "have a length"),
        ("select time_bucket(interval '1 month', now(), now())", "no other origin"),
        ("select time_bucket(3, now())", "is written as"),
        ("select now(1)", "takes 0 arguments"),
        ("values (1), (2, 3)", "the first row has 1 values"),
        ("values (1), ('x')", "cannot be a bigint"),
        ("values (1) limit 1", "stand alone"),
    ] {
        let refused = db.refused(sql);
        assert!(refused.what().contains(says), "{sql}: {refused}");
    }
}
