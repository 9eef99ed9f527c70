//! Answers as Arrow.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMillisecondType};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, TimeUnit};
use sapwood_rollup::{
    Aggregation, Answer, Dimension, Granularity, Interval, Metric, Query, Rollup, RowBatch,
    ScanOrder, Schema, SketchFigure, ThetaSet, TopNMetric, Value, Writer,
};

fn rollup() -> Arc<Rollup> {
    let schema = Schema::new("time")
        .dimension(Dimension::text("city"))
        .dimension(Dimension::text("tags"))
        .dimension(Dimension::long("size"))
        .dimension(Dimension::double("score"))
        .metric(Metric::count("count"))
        .metric(Metric::long_sum("sum", "x"))
        .metric(Metric::double_last("last", "x"))
        .metric(Metric::quantiles("delays", "x"))
        .metric(Metric::theta("users", "user"))
        .query_granularity(Granularity::parse("hour").expect("known"));
    let rollup = Arc::new(Rollup::new(schema).expect("it fits"));
    let (batch, bad) = RowBatch::from_json_lines(
        br#"{"time": "2013-01-01T00:10Z", "city": "Bern", "tags": ["a", "b"], "size": 1, "score": 0.5, "x": 1, "user": "u"}
            {"time": "2013-01-01T00:20Z", "city": "Bern", "tags": ["a", "b"], "size": 1, "score": 0.5, "x": 2, "user": "v"}
            {"time": "2013-01-01T00:30Z", "city": "Rome", "tags": "b", "size": 2, "x": 4, "user": "u"}
            {"time": "2013-01-01T03:00Z", "city": "", "user": "w"}
            {"time": "2013-01-02T00:00Z", "tags": "c", "x": 16, "user": "w"}"#,
    );
    assert!(bad.is_empty());
    Writer::new(&rollup).ingest(&batch).expect("room");
    rollup
}

/// An answer in Arrow, its columns as `name type` in one line.
fn ask(query: &Query) -> (Answer, RecordBatch, String) {
    let answer = rollup().query(query).expect("it fits the schema");
    let batch = answer.to_arrow().expect("it is small");
    let columns = batch.schema_ref().fields().iter().map(|field| {
        assert!(field.is_nullable());
        format!("{} {}", field.name(), field.data_type())
    });
    let columns = columns.collect::<Vec<_>>().join(", ");
    (answer, batch, columns)
}

fn cell(array: &dyn Array, row: usize) -> Value<'static> {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Int64 => Value::Long(array.as_primitive::<Int64Type>().value(row)),
        DataType::Timestamp(TimeUnit::Millisecond, Some(_)) => {
            Value::Long(array.as_primitive::<TimestampMillisecondType>().value(row))
        }
        DataType::Float64 => Value::Double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned().into(),
        DataType::List(_) => {
            let values = array.as_list::<i32>().value(row);
            Value::List((0..values.len()).map(|at| cell(values.as_ref(), at)).collect())
        }
        other => panic!("{other}"),
    }
}

/// That a batch has what its answer has, and a stream of it, too.
fn expect_same(answer: &Answer, batch: &RecordBatch) {
    let found: Vec<Vec<Value<'_>>> = (0..batch.num_rows())
        .map(|row| batch.columns().iter().map(|column| cell(column.as_ref(), row)).collect())
        .collect();
    assert_eq!(found, answer.rows);
    let stream = answer.to_arrow_stream().expect("it is small");
    let reader = StreamReader::try_new(Cursor::new(&stream), None).expect("a stream");
    let read = reader.collect::<Result<Vec<_>, _>>().expect("it was written");
    assert_eq!(read, std::slice::from_ref(batch));
}

#[test]
fn columns_have_types_whether_they_have_values_or_not() {
    let hours = Granularity::parse("PT1H").expect("known").in_zone("Europe/Zurich").expect("known");
    let query = Query::group_by(["city", "size", "score"])
        .granularity(hours)
        .aggregation(Aggregation::count("facts"))
        .aggregation(Aggregation::long_sum("sum", "sum"))
        .aggregation(Aggregation::double_sum("total", "sum"))
        .aggregation(Aggregation::double_last("last", "last"))
        .aggregation(Aggregation::quantile("median", "delays", 0.5))
        .aggregation(Aggregation::distinct("cities", "city"))
        .aggregation(Aggregation::theta("users", "users"))
        .theta_set("all", ThetaSet::Of("users".to_owned()), SketchFigure::Rounded)
        .post_aggregation("twice", "sum * 2")
        .expect("it can be read");
    let typed = "timestamp Timestamp(ms, \"Europe/Zurich\"), city Utf8, size Int64, score Float64, \
                 facts Int64, sum Int64, total Float64, last Float64, median Float64, cities Int64, \
                 users Float64, all Int64, twice ";
    let (answer, batch, columns) = ask(&query);
    assert_eq!((answer.rows.len(), columns), (4, format!("{typed}Int64")));
    expect_same(&answer, &batch);
    let later = Interval::parse("2020-01-01/P1D").expect("an interval");
    let (answer, batch, columns) = ask(&query.interval(later));
    assert_eq!((answer.rows.len(), columns), (0, format!("{typed}Null")));
    expect_same(&answer, &batch);
}

#[test]
fn facts_have_lists_where_one_has_several_texts() {
    let facts =
        |columns: &[&'static str]| Query::scan(columns.iter().copied(), ScanOrder::Ascending);
    let (answer, batch, columns) = ask(&facts(&[]));
    assert_eq!(
        columns,
        "__time Timestamp(ms, \"UTC\"), city Utf8, tags List(Utf8), size Int64, score Float64, \
         count Int64, sum Int64, last Float64, delays Float64, users Utf8"
    );
    let mut expected = answer.clone();
    // Facts with one text have a list of it among lists.
    for row in &mut expected.rows {
        if let Value::Text(tag) = &row[2] {
            row[2] = Value::List(vec![Value::Text(tag.clone())]);
        }
    }
    expect_same(&expected, &batch);
    let second = Interval::parse("2013-01-02/P1D").expect("an interval");
    let (answer, batch, columns) = ask(&facts(&["tags", "__time"]).interval(second));
    assert_eq!(columns, "tags Utf8, __time Timestamp(ms, \"UTC\")");
    expect_same(&answer, &batch);
}

#[test]
fn other_queries_have_their_columns_in_arrow() {
    for (query, expected) in [
        (Query::time_boundary(), "minTime Timestamp(ms, \"UTC\"), maxTime Timestamp(ms, \"UTC\")"),
        (Query::search([], "n"), "dimension Utf8, value Utf8, count Int64"),
        (Query::search(["size"], "1"), "dimension Utf8, value Int64, count Int64"),
        (
            Query::segment_metadata(),
            "column Utf8, type Utf8, hasMultipleValues Utf8, hasNulls Utf8, cardinality Int64, \
             minValue Utf8, maxValue Utf8",
        ),
        (
            Query::top_n("city", TopNMetric::Greatest("n".to_owned()), 2)
                .aggregation(Aggregation::long_sum("n", "count")),
            "timestamp Timestamp(ms, \"UTC\"), city Utf8, n Int64",
        ),
    ] {
        let (answer, batch, columns) = ask(&query);
        assert_eq!(columns, expected);
        assert_eq!(batch.num_rows(), answer.rows.len());
        assert!(batch.num_rows() > 0, "{columns}");
    }
}

#[test]
fn expressions_of_several_types_have_one() {
    let of = |text: &str| {
        let query = Query::group_by(["city"]).aggregation(Aggregation::long_sum("n", "count"));
        let (_, batch, columns) =
            ask(&query.post_aggregation("made", text).expect("it can be read"));
        let made = batch.column_by_name("made").expect("it was asked for");
        let values = (0..made.len()).map(|row| cell(made.as_ref(), row).to_string());
        (
            columns.rsplit(' ').next().expect("a type").to_owned(),
            values.collect::<Vec<_>>().join(" "),
        )
    };
    let pair = |kind: &str, values: &str| (kind.to_owned(), values.to_owned());
    assert_eq!(of("if(n > 1, n, n / 2.0)"), pair("Float64", "0.5 0.5 2.0 0.5"));
    assert_eq!(of("if(n > 1, n, 'one')"), pair("Utf8", "one one 2 one"));
    assert_eq!(of("if(n > 1, n, null)"), pair("Int64", "null null 2 null"));
}
