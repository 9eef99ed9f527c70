//! Figures of many rows.

use crate::memory::Memory;

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
