//! Rows that a `select` answers, and how they are reached.

use crate::memory::Memory;

/// Some flights.
pub(crate) fn flights() -> Memory {
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
