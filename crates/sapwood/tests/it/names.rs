//! Names that a program sees when it takes all of them.

/// No name of the crate is another thing in its module of queries: each of these would not compile
/// if it were.
#[test]
fn globs_of_the_crate_and_of_its_queries_go_together() {
    use sapwood::aggregate::*;
    use sapwood::*;

    fn query(layout: Result<Layout, SyntaxError>) -> Result<Compiled> {
        let order = OrderBy { column: "n".to_owned(), direction: SortDirection::Descending };
        let query = Query::new(layout?).group_by(Group::list("n")?).order_by(vec![order]);
        Ok(query.aggregates(vec![Aggregate::count()]).compile()?)
    }

    let run = || -> Result<Answer> {
        let options = HashTableOptions::default().layout(RecordLayout::Fixed8);
        let table = Db::in_memory().create_hash_table("t", options)?;
        table.put_many(&[(1_u64.to_le_bytes(), 7_u64.to_le_bytes())])?;
        let told = |_: Progress| {};
        let query = query("n:u64le".parse())?;
        table.aggregate_with(&query, &Execution::new().progress(&told))?.answer()
    };
    assert_eq!(run().expect("an answer").value(0, "count"), Ok(&1.into()));
    let refused: Result<Compiled> = query("n".parse());
    assert!(matches!(refused, Err(Error::Syntax(_))), "{refused:?}");
    let query_error: QueryError = Value::float(f64::NAN).expect_err("it compares with nothing");
    assert_eq!(Error::from(query_error.clone()), Error::Query(query_error));
    assert_ne!(Direction::Ascending, Direction::Descending);
}

/// Under a glob, `Result` of another error type is still a `Result`.
#[test]
fn a_result_may_have_another_error() {
    use sapwood::*;

    fn numbers(text: &str) -> Result<Vec<u32>, std::num::ParseIntError> {
        text.split(' ').map(str::parse).collect()
    }
    assert_eq!(numbers("1 2"), Ok(vec![1, 2]));
    let first = |table: &OrderedTable| -> Result<Option<Vec<u8>>> { table.get(b"k") };
    let table = Db::in_memory()
        .create_ordered_table("t", OrderedTableOptions::default())
        .expect("a free name");
    assert_eq!(first(&table), Ok(None));
}
