//! Statements over batches whose texts are numbers of a dictionary.

use crate::memory::Memory;

/// Batches of one row, whose expressions are computed row by row, beside batches of many, of which every second has
/// dictionaries.
#[test]
fn answers_do_not_depend_on_dictionaries() {
    let texts = ["''", "'a'", "'Ab'", "'12'", "'7'", "'ä'", "'more than sixteen bytes'", "null"];
    let mut random = fastrand::Rng::with_seed(9);
    let rows: Vec<String> = (0..900)
        .map(|row| {
            let mut text = || texts[random.usize(..texts.len())];
            let (first, second) = (text(), text());
            format!("({row}, {first}, {second}, {})", random.u32(..9))
        })
        .collect();
    let tables = [1, 100].map(|batch| {
        let tables = Memory::default();
        let schema = "id:i64, first:text?, second:text?, number:i64, key(id)";
        tables.with_batches("t", schema, batch);
        tables.run(&format!("insert into t values {}", rows.join(", ")));
        tables
    });
    for sql in [
        "select id, first, upper(first), first || '!', length(second) from t order by id",
        "select id, first like '%a%', second in ('a', '12'), second in ('a', null) from t order by id",
        "select id, first = second, first < second, first <> 'a', first between '1' and 'b' from t order by id",
        "select id, first is null, coalesce(first, second, '?'), nullif(first, 'a') from t order by id",
        "select id, case when first = 'a' then 1 when first is null then 2 else number end from t order by id",
        "select id, case first when '12' then cast(first as bigint) end from t order by id",
        "select id, cast(second as bigint) * 2 from t where second in ('12', '7') order by id",
        "select id, first is not distinct from second, first is distinct from 'a' from t order by id",
        "select count(*), count(first), count(distinct first), min(first), max(second) from t",
        "select first, second, count(*), count(distinct second), sum(number) from t group by 1, 2 order by 1, 2",
        "select upper(first), count(distinct number) from t group by 1 order by 1",
        "select first, number, count(distinct second) from t group by 1, 2 order by 1, 2",
        "select second, count(*) filter (where first = 'a') from t where first is not null group by 1 order by 1",
        "select distinct first from t order by 1",
        "select distinct first, second from t order by 1 nulls first, 2 desc",
        "select id, first from t order by first desc, id limit 30",
        "select first, count(*) from t group by 1 having first <> 'a' order by 2, 1",
        "select first, approx_count_distinct(second) from t group by 1 order by 1",
    ] {
        let [plain, coded] = tables.each_ref().map(|tables| tables.rows(sql));
        assert_eq!(plain, coded, "{sql}");
        assert!(!plain.is_empty(), "{sql}");
    }
    for sql in ["select cast(first as bigint) from t", "select sum(cast(first as bigint)) from t"] {
        let [plain, coded] = tables.each_ref().map(|tables| tables.refused(sql).to_string());
        assert!(
            [&plain, &coded].iter().all(|it| it.contains("cannot be a bigint")),
            "{plain}, {coded}"
        );
    }
}
