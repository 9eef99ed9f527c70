//! Statements that are refused, with their words and places.

use crate::memory::Memory;
use sapwood_sql::ErrorKind;

#[test]
fn refusals_say_what_where_and_what_next() {
    let db = Memory::default().with("t", "carrier:text, delay:i16?, day:date, key(carrier)", "");
    for (sql, kind, marks, says) in [
        ("select delai from t", ErrorKind::Meaning, "delai", "did you mean `delay`?"),
        ("select x.delay from t", ErrorKind::Meaning, "x.delay", "no table is called `x`"),
        ("select \"abc\" from t", ErrorKind::Meaning, "\"abc\"", "a text stands in single quotes"),
        ("select lenght(carrier) from t", ErrorKind::Meaning, "lenght", "did you mean `length`?"),
        ("select delay from t group by carrier", ErrorKind::Meaning, "delay", "min(delay)"),
        ("select carrier, count(*) from t", ErrorKind::Meaning, "carrier", "group by it"),
        ("select * from t where count(*) > 1", ErrorKind::Meaning, "count", "`having`"),
        (
            "select * from t where carrier > 1",
            ErrorKind::Meaning,
            "carrier > 1",
            "a text and a bigint",
        ),
        ("select * from t where day = 'x'", ErrorKind::Value, "'x'", "cannot be a date"),
        ("select * from t where delay", ErrorKind::Meaning, "delay", "true or false"),
        ("select carrier + 1 from t", ErrorKind::Meaning, "carrier", "needs a number"),
        (
            "select * from t join u on true",
            ErrorKind::Unsupported,
            "",
            "joins are not supported yet",
        ),
        ("select * from t, u", ErrorKind::Unsupported, "u", "joins are not supported yet"),
        ("select * from (select 1) s", ErrorKind::Unsupported, "", "subqueries"),
        ("select * from t where delay in (select 1)", ErrorKind::Unsupported, "", "subqueries"),
        ("select row_number() over () from t", ErrorKind::Unsupported, "", "window functions"),
        ("select 1 union select 2", ErrorKind::Unsupported, "", "`union` is not supported"),
        ("with x as (select 1) select * from x", ErrorKind::Unsupported, "", "`with`"),
        ("select * from t order by 9", ErrorKind::Meaning, "9", "results 1 to 3"),
        (
            "select distinct carrier from t order by delay",
            ErrorKind::Meaning,
            "delay",
            "add this to the select",
        ),
        ("select * from nowhere", ErrorKind::Source, "nowhere", "no table is called `nowhere`"),
        ("select array_agg(carrier) from t", ErrorKind::Unsupported, "", "array_agg"),
        ("select date_trunc('moon', day) from t", ErrorKind::Meaning, "'moon'", "no unit of time"),
        ("select cast(delay as money) from t", ErrorKind::Meaning, "", "no type is called `money`"),
        ("select median(carrier) from t", ErrorKind::Meaning, "carrier", "needs numbers"),
        (
            "select qantile_cont(delay, 2) from t",
            ErrorKind::Meaning,
            "",
            "did you mean `quantile_cont`?",
        ),
        ("select quantile_cont(delay, 2) from t", ErrorKind::Meaning, "2", "from 0 to 1"),
        ("vacuum", ErrorKind::Unsupported, "", "there are select, values, insert"),
        // No part of a statement is passed over.
        ("select ceil(100.1234, 1)", ErrorKind::Unsupported, "", "ceil takes one argument"),
        ("select floor(100.1267e0, 2)", ErrorKind::Unsupported, "", "floor takes one argument"),
        ("select ceil(100.12 to year)", ErrorKind::Unsupported, "", "date_trunc"),
        ("select abs(distinct delay) from t", ErrorKind::Meaning, "", "is no aggregate"),
        ("select abs(delay order by delay) from t", ErrorKind::Meaning, "", "is no aggregate"),
        ("select any_value(delay) ignore nulls from t", ErrorKind::Unsupported, "", "nulls"),
        (
            "select count(*) within group (order by delay) from t",
            ErrorKind::Meaning,
            "",
            "has no order",
        ),
        (
            "select day + interval '1-2' year to month from t",
            ErrorKind::Unsupported,
            "",
            "has one unit",
        ),
        ("show tables like 'x%'", ErrorKind::Unsupported, "", "shows all of them"),
        (
            "insert into t values ('a', 1, '2020-01-01') limit 0",
            ErrorKind::Unsupported,
            "",
            "stand alone",
        ),
        (
            "update t set delay = 1 order by delay limit 1",
            ErrorKind::Unsupported,
            "",
            "update is written as",
        ),
        ("select 0x1_0000_0000_0000_0000_0000_0000_0000_0000", ErrorKind::Value, "", "uhugeint"),
        ("select 1__0", ErrorKind::Syntax, "", "_"),
        ("select 1 +", ErrorKind::Syntax, "", "expected"),
        ("select 'a", ErrorKind::Syntax, "", "nterminated"),
    ] {
        let error = db.refused(sql);
        assert_eq!(error.kind(), kind, "{sql}: {error}");
        assert!(error.what().contains(says), "{sql}: {error}");
        if !marks.is_empty() {
            let text = error.to_string();
            let lines: Vec<&str> = text.lines().collect();
            let [.., line, below] = &lines[..] else { panic!("{sql}: no place: {text}") };
            let begin = below.find('^').expect("marks");
            assert_eq!(&line[begin..begin + below.trim().len()], marks, "{text}");
        }
    }
}

#[test]
fn any_text_is_answered() {
    let db = Memory::default().with(
        "t",
        "a:i64, b:text?, c:f64?, d:date?, key(a)",
        "(1, 'x', 0.5, '2013-01-01')",
    );
    let words = [
        "select",
        "from",
        "where",
        "group",
        "by",
        "order",
        "limit",
        "t",
        "a",
        "b",
        "c",
        "d",
        "*",
        ",",
        "(",
        ")",
        "+",
        "-",
        "/",
        "=",
        "<",
        "and",
        "or",
        "not",
        "null",
        "1",
        "'x'",
        "1.5",
        "count(*)",
        "sum(a)",
        "case",
        "when",
        "then",
        "end",
        "in",
        "between",
        "like",
        "is",
        "as",
        "having",
        "distinct",
        "cast(",
        "date",
        "interval",
        "'2013-01-01'",
        "insert",
        "into",
        "values",
        "update",
        "set",
        "delete",
        "explain",
        "summarize",
        ";",
        "::int",
        "extract(",
        "min(",
        "filter",
        "||",
        "[",
        "]",
        "desc",
        "nulls",
        "first",
    ];
    let mut random = fastrand::Rng::with_seed(7);
    let mut answered = 0;
    for _ in 0..20_000 {
        let mut sql = String::from(if random.bool() { "select " } else { "" });
        for _ in 0..random.usize(1..14) {
            sql.push_str(words[random.usize(..words.len())]);
            sql.push(' ');
        }
        if random.bool() {
            sql.push_str(" from t");
        }
        // Two semicolons leave nothing to be run.
        if let Ok(statements) = sapwood_sql::parse(&sql) {
            for statement in statements {
                let session = sapwood_sql::Session::new(&db, sapwood_sql::Options::default());
                answered += u32::from(session.execute(&statement).is_ok());
            }
        }
    }
    assert!(answered > 100, "only {answered} statements had an answer");
}
