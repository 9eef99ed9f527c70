//! Answers of statements.

use crate::memory::Memory;

/// Some flights.
fn flights() -> Memory {
    Memory::default().with(
        "flights",
        "id:i32, carrier:text, dest:text?, delay:i16?, day:date, at:timestamp, fare:decimal(8,2)?, \
         speed:f64?, late:bool?, key(id)",
        "(1, 'UA', 'IAH', 11, '2013-01-01', '2013-01-01 05:15:00', 99.50, 500.5, false),
         (2, 'UA', 'MIA', 20, '2013-01-01', '2013-01-01 05:29:00', 10, 480.25, true),
         (3, 'AA', 'MIA', 33, '2013-01-02', '2013-01-02 05:40:00', 1.25, null, true),
         (4, 'B6', 'BQN', -18, '2013-02-01', '2013-02-01 05:45:00', null, 1.5, false),
         (5, 'DL', null, null, '2013-02-03', '2013-02-03 06:00:00', 7.00, 'nan', null),
         (6, 'UA', 'ORD', 12, '2013-03-31', '2013-03-31 23:59:59.5', 0, 0, true)",
    )
}

#[test]
fn rows_are_projected_filtered_sorted_and_cut() {
    let db = flights();
    assert_eq!(
        db.rows("select carrier, delay from flights where delay > 11 order by 2 desc"),
        ["AA 33", "UA 20", "UA 12"]
    );
    assert_eq!(db.rows("select id from flights order by delay limit 2"), ["4", "1"]);
    assert_eq!(
        db.rows("select id from flights order by delay desc nulls first limit 2"),
        ["5", "3"]
    );
    assert_eq!(
        db.rows("select id from flights order by carrier, id desc limit 3 offset 3"),
        ["6", "2", "1"]
    );
    assert_eq!(
        db.rows("select distinct carrier from flights order by carrier desc"),
        ["UA", "DL", "B6", "AA"]
    );
    assert_eq!(
        db.rows(
            "select f.id as number from flights f where f.dest in ('MIA', 'X') order by number"
        ),
        ["2", "3"]
    );
    assert_eq!(
        db.rows("select * exclude (at, day, fare, speed, late, dest) from flights limit 1"),
        ["1 UA 11"]
    );
    assert_eq!(db.rows("select id from flights offset 5"), ["6"]);
    assert_eq!(db.rows("select id from flights fetch first 2 rows only"), ["1", "2"]);
    assert_eq!(db.rows("select id from flights limit 0"), Vec::<String>::new());
}

#[test]
fn groups_have_aggregates() {
    let db = flights();
    assert_eq!(
        db.rows("select carrier, count(*), avg(delay) as late from flights where dest in ('MIA','ORD','IAH') \
             group by 1 having count(*) > 0 order by late desc limit 5"),
        ["AA 1 33", "UA 3 14.333333333333334"]
    );
    assert_eq!(
        db.rows("select count(*), count(delay), sum(delay), min(delay), max(delay) from flights"),
        ["6 5 58 -18 33"]
    );
    assert_eq!(
        db.rows("select count(*), sum(delay), max(carrier) from flights where id > 100"),
        ["0 null null"]
    );
    assert_eq!(
        db.rows("select carrier from flights where id > 100 group by carrier"),
        Vec::<String>::new()
    );
    assert_eq!(
        db.rows("select count(*) filter (where late), count(distinct carrier), sum(distinct delay / 10) from flights"),
        ["3 4 5"]
    );
    assert_eq!(db.value("select sum(fare) from flights"), "117.75");
    assert_eq!(db.value("select avg(fare) from flights"), "23.55");
    assert_eq!(db.value("select median(delay) from flights"), "12");
    assert_eq!(db.value("select quantile_cont(delay, 0.25) from flights"), "11");
    assert_eq!(
        db.value("select percentile_disc(0.5) within group (order by carrier) from flights"),
        "DL"
    );
    assert_eq!(db.value("select approx_quantile(delay, 0.5) from flights"), "12");
    assert_eq!(db.value("select approx_count_distinct(carrier) from flights"), "4");
    assert_eq!(db.value("select stddev_pop(id), from flights").split('.').next(), Some("1"));
    assert_eq!(db.value("select var_samp(id) from flights"), "3.5");
    assert_eq!(
        db.value("select bool_and(late), bool_or(late) from flights").as_str(),
        "false true"
    );
    assert_eq!(db.value("select max(speed) from flights"), "NaN");
    assert_eq!(
        db.value("select min(day), max(at) from flights").as_str(),
        "2013-01-01 2013-03-31 23:59:59.5"
    );
    // Expressions of groups and of aggregates.
    assert_eq!(
        db.rows(
            "select date_trunc('month', day) as month, sum(delay) * 2 + count(*) from flights \
             group by month order by month"
        ),
        ["2013-01-01 131", "2013-02-01 -34", "2013-03-01 25"]
    );
    assert_eq!(db.rows("select upper(carrier) || '!', count(*) from flights group by carrier order by 2 desc, 1 limit 1"),
        ["UA! 3"]);
    assert_eq!(
        db.rows("select id % 2, count(*) from flights group by id % 2 order by 1"),
        ["0 3", "1 3"]
    );
    assert_eq!(
        db.rows("select distinct count(*) from flights group by carrier order by 1"),
        ["1", "3"]
    );
    assert_eq!(
        db.rows("select late, count(*) from flights group by all order by late nulls first"),
        ["null 1", "false 2", "true 3"]
    );
}

#[test]
fn nulls_are_neither_true_nor_false() {
    let db = flights();
    assert_eq!(db.value("select count(*) from flights where delay > 0 or delay <= 0"), "5");
    assert_eq!(db.value("select count(*) from flights where not (delay > 0)"), "1");
    assert_eq!(db.value("select count(*) from flights where dest is null and delay is null"), "1");
    assert_eq!(db.value("select count(*) from flights where dest not in ('MIA', null)"), "0");
    assert_eq!(db.value("select count(*) from flights where dest in ('MIA', null)"), "2");
    assert_eq!(db.value("select count(*) from flights where dest is distinct from 'MIA'"), "4");
    assert_eq!(db.value("select count(*) from flights where late is not true"), "3");
    for (expression, expected) in [
        ("null and false", "false"),
        ("null and true", "null"),
        ("null or true", "true"),
        ("null or false", "null"),
        ("not null", "null"),
        ("null = null", "null"),
        ("null is not distinct from null", "true"),
        ("1 in (2, null)", "null"),
        ("1 in (1, null)", "true"),
        ("1 not in (2, null)", "null"),
        ("null between 1 and 2", "null"),
        ("3 between null and 2", "false"),
        ("coalesce(null, null, 3)", "3"),
        ("nullif(1, 1)", "null"),
        ("nullif(1, 2)", "1"),
        ("null || 'a'", "null"),
        ("concat(null, 'a')", "a"),
        ("greatest(1, null, 3)", "3"),
        ("case when null then 1 else 2 end", "2"),
        ("null + 1", "null"),
        ("null like 'a'", "null"),
    ] {
        assert_eq!(db.value(&format!("select {expression}")), expected, "{expression}");
    }
}

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
fn what_is_not_asked_for_is_not_computed() {
    let db = flights();
    assert_eq!(
        db.rows("select case when delay <> 12 then 100 / (delay - 12) end from flights where carrier = 'UA' order by id"),
        ["-100", "12", "null"]
    );
    assert_eq!(
        db.value("select count(*) from flights where delay <> 12 and 100 / (delay - 12) > 0"),
        "2"
    );
    assert_eq!(
        db.value("select count(*) from flights where delay = 12 or 100 / (delay - 12) > 0"),
        "3"
    );
    assert_eq!(db.value("select coalesce(id, 1 / 0) from flights where id = 1"), "1");
    assert_eq!(db.value("select sum(1 / (id - 1)) filter (where id > 1) from flights"), "1");
    assert!(
        db.refused("select 100 / (delay - 12) from flights").what().contains("division by zero")
    );
}

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

#[test]
fn conditions_of_keys_reach_the_source() {
    let db = Memory::default().with(
        "t",
        "a:text, b:i16, c:i64?, key(a, b)",
        "('x', 1, 10), ('x', 2, 20), ('x', 3, null), ('y', 1, 40), ('z', 7, 50)",
    );
    let plan = |sql: &str| db.rows(&format!("explain {sql}"))[0].clone();
    assert_eq!(db.rows("select c from t where a = 'x' and b = 2"), ["20"]);
    let explained = plan("select c from t where a = 'x' and b = 2");
    assert!(explained.contains(r#"equal: [[Text("x")], [Int(2)]]"#), "{explained}");
    assert_eq!(db.rows("select b from t where a in ('x', 'z') and b >= 2 and b < 7"), ["2", "3"]);
    let explained = plan("select c from t where a in ('x', 'z') and b >= 2 and 7 > b and b > 1");
    assert!(explained.contains("range: Some((Included(Int(2)), Excluded(Int(7))))"), "{explained}");
    let explained = plan("select c from t where a like 'N14%'");
    assert!(explained.contains(r#"Included(Text("N14")), Excluded(Text("N15"))"#), "{explained}");
    // What the column cannot have, no row has.
    assert_eq!(db.rows("select c from t where a = 'x' and b = 100000"), Vec::<String>::new());
    assert_eq!(db.rows("select b from t where a = 'x' and b < 100000 and b > 2.5"), ["3"]);
    assert_eq!(db.value("select count(*) from t where a = 'x' or b = 7"), "4");
    let explained = plan("select c from t where a = 'x' or b = 7");
    assert!(explained.contains("equal: [], range: None"), "{explained}");
    // Between a double and the nearest float there may be rows.
    let floats = Memory::default().with("t", "x:f32, key(x)", "(0.1), (0.5)");
    assert_eq!(floats.value("select count(*) from t where x > 0.1::double"), "2");
    assert_eq!(floats.value("select count(*) from t where x > 0.25 and x <= 0.5::double"), "1");
    let plan = |sql: &str| floats.rows(&format!("explain {sql}"))[0].clone();
    let explained = plan("select x from t where x > 0.1::double");
    assert!(explained.contains("range: None"), "{explained}");
    let explained = plan("select x from t where x > 0.5::double");
    assert!(explained.contains("Excluded(Float(0.5))"), "{explained}");
    // Moments are compared in the finer units.
    let rows = "(timestamp '2013-01-01 00:00:01'), (timestamp '2013-01-01 00:00:02')";
    let db = Memory::default().with("t", "m:timestamp(ms), key(m)", rows);
    let plan = |sql: &str| db.rows(&format!("explain {sql}"))[0].clone();
    let later = "select m from t where m > timestamp '2013-01-01 00:00:01'";
    assert_eq!(db.rows(later), ["2013-01-01 00:00:02"]);
    let explained = plan(later);
    assert!(
        explained.contains("range: Some((Excluded(Timestamp { ticks: 1356998401000"),
        "{explained}"
    );
    let same = "select m from t where m = timestamp '2013-01-01 00:00:02'";
    assert_eq!(db.rows(same), ["2013-01-01 00:00:02"]);
    assert!(plan(same).contains("equal: [[Timestamp { ticks: 1356998402000"), "{}", plan(same));
    let never = "select m from t where m = timestamp '2013-01-01 00:00:02.000001'";
    assert_eq!(db.rows(never), Vec::<String>::new());
    let between = "select m from t where m < timestamp '2013-01-01 00:00:01.000001'";
    assert_eq!(db.rows(between), ["2013-01-01 00:00:01"]);
}

#[test]
fn plans_tables_and_columns_are_described() {
    let db = flights();
    let plan = db.rows("explain analyze select carrier, count(*) from flights where delay > 0 group by carrier order by 2 limit 3");
    assert!(plan.iter().any(|line| line.starts_with("filter: delay > 0 [4 rows, ")), "{plan:?}");
    assert!(plan.iter().any(|line| line.contains("group by: carrier [2 groups, ")), "{plan:?}");
    let timed = plan.iter().filter(|line| line.contains(" ms]")).count();
    assert_eq!(timed, 4, "reading, filter, groups and order: {plan:?}");
    assert_eq!(db.rows("describe flights")[0], "id i32 false 1");
    assert_eq!(db.rows("show tables").len(), 1);
    let summary = db.rows("summarize flights");
    assert_eq!(summary.len(), 9);
    assert!(summary[3].starts_with("delay i16 -18 33 5 11.6 "), "{}", summary[3]);
    assert!(summary[3].ends_with(" 6 1"), "{}", summary[3]);
    assert_eq!(db.rows("summarize select id from flights where id > 2").len(), 1);
}

#[test]
fn arrays_have_items() {
    let db = Memory::default().with(
        "t",
        "a:i8, v:[f32; 3], key(a)",
        "(1, '[1, 2.5, 3]'), (2, '[4,5,6]')",
    );
    assert_eq!(
        db.rows("select v, v[2], v[4] from t order by a"),
        ["[1, 2.5, 3] 2.5 null", "[4, 5, 6] 5 null"]
    );
    assert_eq!(db.value("select sum(v[1]) from t"), "5");
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

#[test]
fn figures_are_of_the_rows_and_not_of_their_order() {
    let mut rows = ["1e308", "1e308", "-1e308", "1e-300", "3.5e0"];
    for _ in 0..rows.len() {
        rows.rotate_left(1);
        let values: Vec<_> =
            rows.iter().enumerate().map(|(id, value)| format!("({id}, {value})")).collect();
        let db = Memory::default().with("t", "id:i64, v:f64, key(id)", &values.join(", "));
        assert_eq!(db.value("select sum(v), avg(v), median(v) from t"), "1e308 2e307 3.5");
        assert_eq!(db.value("select stddev_pop(v / 1e308) from t"), "0.7483314773547883");
        assert_eq!(db.value("select quantile_cont(v, 0.875) from t"), "1e308");
        let error = db.refused("select var_pop(v) from t");
        assert!(error.to_string().contains("a variance is too large for double"), "{error}");
        let error = db.refused("select sum(v) from t where v > 0");
        assert!(error.to_string().contains("a sum is too large for double"), "{error}");
        assert_eq!(db.value("select avg(v) from t where v > 1e0"), "6.666666666666666e307");
    }
    // The difference of neighbours is beyond the range of floats.
    let db = Memory::default().with("t", "id:i64, v:f64, key(id)", "(1, -1.5e308), (2, 1.5e308)");
    assert_eq!(db.value("select median(v), quantile_cont(v, 0.75) from t"), "0 7.5e307");
    // Values that are not finite make figures that are not.
    let odd = "(1, 'inf'), (2, 1), (3, 'nan'), (4, '-inf')";
    let db = Memory::default().with("t", "id:i64, v:f64, key(id)", odd);
    assert_eq!(db.value("select sum(v), avg(v) from t where id < 3"), "inf inf");
    assert_eq!(db.value("select var_pop(v), stddev(v) from t where id < 3"), "NaN NaN");
    assert_eq!(db.value("select sum(v) from t"), "NaN");
    assert_eq!(db.value("select sum(v), var_pop(v) from t where id = 2"), "1 0");
}

#[test]
fn sums_of_many_digits_overflow_at_the_end_and_not_on_the_way() {
    let most = "9".repeat(38);
    let huge = u128::MAX;
    let big = i128::MAX;
    for rows in [[1, 1, -1], [1, -1, 1], [-1, 1, 1]] {
        let of = |value: &str| -> String {
            let signed = |(id, sign): (usize, &i32)| match sign {
                1 => format!("({id}, {value})"),
                _ => format!("({id}, -{value})"),
            };
            rows.iter().enumerate().map(signed).collect::<Vec<_>>().join(", ")
        };
        let db = Memory::default().with("d", "id:i64, v:decimal(38,0), key(id)", &of(&most)).with(
            "i",
            "id:i64, v:i128, key(id)",
            &of(&big.to_string()),
        );
        assert_eq!(db.value("select sum(v) from d"), most);
        assert_eq!(db.value("select sum(v) from i"), big.to_string());
        assert_eq!(db.value("select avg(v) from d where v > 0"), "1e38");
        assert_eq!(db.value("select avg(v) from i where v > 0"), "1.7014118346046923e38");
        for table in ["d", "i"] {
            let error = db.refused(&format!("select sum(v) from {table} where v > 0"));
            assert!(error.to_string().contains("a sum is too large"), "{error}");
        }
    }
    let rows = format!("(1, {huge}), (2, {huge}), (3, 1)");
    let db = Memory::default().with("h", "id:i64, v:u128, key(id)", &rows);
    assert_eq!(db.value("select avg(v) from h where id < 3"), "3.402823669209385e38");
    assert_eq!(db.value("select sum(v) from h where id <> 2 and id <> 3"), huge.to_string());
    assert!(db.refused("select sum(v) from h").to_string().contains("a sum is too large"));
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

#[test]
fn names_with_dots_are_columns() {
    let db = Memory::default();
    db.run("create table t (id int, \"geo.lat\" double, \"geo.at.day\" int)");
    db.run("insert into t values (1, 2.5, 3)");
    assert_eq!(db.value("select geo.lat from t where geo.lat > 2"), "2.5");
    assert_eq!(db.value("select t.geo.lat + geo.at.day from t"), "5.5");
    assert_eq!(db.value("select sum(\"geo.lat\") from t group by t.id"), "2.5");
    assert!(db.refused("select geo.lon from t").what().contains("no table is called `geo`"));
    let quoted = db.refused("select * from t where id = \"UA\"");
    assert!(quoted.what().contains("single quotes: 'UA'"), "{quoted}");
}

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

/// Expects the answers of DuckDB 2.0.
#[test]
fn aggregates_of_two_values_answer_as_others_do() {
    let db = Memory::default().with(
        "t",
        "id:i32, g:text, x:f64?, y:f64, w:text?, key(id)",
        "(1, 'a', 1, 2, 'p'), (2, 'a', 2, 3.5, 'q'), (3, 'a', 4, 7, 'q'), (4, 'b', 1e8, 1, 'r'),
         (5, 'b', 100000001, 2, 's'), (6, 'b', null, 5, 'r'), (7, 'c', 3, 3, null)",
    );
    let by_group = |what: &str| db.rows(&format!("select g, {what} from t group by g order by g"));
    assert_eq!(
        by_group("covar_pop(x, y), covar_samp(x, y)"),
        ["a 2.611111111111111 3.9166666666666665", "b 0.25 0.5", "c 0 null"]
    );
    let correlations = by_group("round(corr(x, y), 12)");
    assert_eq!(correlations, ["a 0.999321650572", "b 1", "c null"]);
    assert_eq!(
        by_group("arg_max(w, y), arg_min(w, y), max_by(id, x), min_by(x, id)"),
        ["a q p 3 1", "b r r 5 100000000", "c null null 7 3"]
    );
    assert_eq!(by_group("mode(w)"), ["a q", "b r", "c null"]);
    assert_eq!(
        by_group(
            "string_agg(w, '-' order by w), string_agg(distinct w, '+' order by w desc), string_agg(w order by id desc)"
        ),
        ["a p-q-q q+p q,q,p", "b r-r-s s+r r,s,r", "c null null null"]
    );
    // Whatever the order of the rows: equal ones are the least.
    assert_eq!(db.value("select arg_max(w, g) filter (where g < 'c'), mode(g) from t"), "r a");
    assert_eq!(db.value("select string_agg(w, '') from t"), "pqqrrs");
    for (sql, says) in [
        ("select corr(w, x) from t", "needs numbers"),
        ("select corr(x) from t", "takes 2 arguments"),
        ("select string_agg(x, ',') from t", "joins texts"),
        ("select string_agg(w, w) from t", "is a text"),
        ("select string_agg(distinct w, ',' order by id) from t", "sorted by the values"),
        ("select sum(x order by id) from t", "not supported within a call"),
    ] {
        let refused = db.refused(sql);
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

#[test]
fn texts_that_are_sorted_by_a_null_are_joined() {
    let db = Memory::default().with(
        "t",
        "id:i32, g:text, n:text?, k:i32?, key(id)",
        "(1, 'x', 'b', null), (2, 'x', 'a', 1), (3, 'x', 'c', 0), (4, 'x', null, 5), (5, 'x', 'd', null), (6, 'y', 'e', null)",
    );
    for (order, expected) in [
        ("k", ["x c,a,b,d", "y e"]),
        ("k desc", ["x a,c,b,d", "y e"]),
        ("k nulls last", ["x c,a,b,d", "y e"]),
        ("k nulls first", ["x b,d,c,a", "y e"]),
        ("k desc nulls first", ["x b,d,a,c", "y e"]),
    ] {
        let sql =
            format!("select g, string_agg(n, ',' order by {order}) from t group by g order by g");
        assert_eq!(db.rows(&sql), expected, "{order}");
    }
    // Other aggregates of two values pass over rows with a null.
    assert_eq!(
        db.value("select arg_max(n, k), arg_min(n, k), corr(k, id) from t where id < 4"),
        "a c -1"
    );
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
