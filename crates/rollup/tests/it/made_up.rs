//! Documents, expressions and rows that are damaged: refused with an error, never with a panic.

use std::sync::Arc;

use fastrand::Rng;
use sapwood_rollup::{
    Expression, Filter, Granularity, Interval, Query, Rollup, RowBatch, Schema, Value, Writer,
};

const SCHEMA: &str = r#"{"timestampSpec": {"column": "t", "format": "auto", "missingValue": "2013-01-01"},
    "dimensionsSpec": {"dimensions": ["a", {"type": "long", "name": "b"}], "useSchemaDiscovery": true},
    "metricsSpec": [{"type": "count", "name": "n"}, {"type": "longSum", "name": "s", "fieldName": "x"},
        {"type": "filtered", "filter": {"type": "like", "dimension": "a", "pattern": "x%"},
         "aggregator": {"type": "distinct", "name": "u", "fieldName": "a", "precision": 8}},
        {"type": "quantiles", "name": "q", "fieldName": "x", "accuracy": 0.01}],
    "granularitySpec": {"segmentGranularity": "day", "rollup": true,
        "queryGranularity": {"type": "period", "period": "PT2H", "timeZone": "America/New_York"}},
    "transformSpec": {"transforms": [{"type": "expression", "name": "c", "expression": "if(x > 2, 'p', b / x)"}],
        "filter": {"type": "not", "field": {"type": "null", "column": "zz"}}},
    "limits": {"maxRowsInMemory": 1000, "earlyMessageRejectionPeriod": "PT10M"}}"#;

const QUERIES: [&str; 4] = [
    r#"{"queryType": "groupBy", "dimensions": ["a", {"type": "default", "dimension": "b", "outputName": "c"}],
        "granularity": {"type": "duration", "duration": 3600000, "origin": "2013-01-01"},
        "aggregations": [{"type": "quantile", "name": "m", "fieldName": "q", "fraction": 0.5},
            {"type": "longSum", "name": "s", "fieldName": "s"}],
        "postAggregations": [{"type": "arithmetic", "name": "d", "fn": "/", "fields": [
            {"type": "fieldAccess", "fieldName": "s"}, {"type": "constant", "value": 2}]}],
        "having": {"type": "greaterThan", "aggregation": "s", "value": 1},
        "limitSpec": {"type": "default", "limit": 5, "columns": ["a", {"dimension": "s", "direction": "descending"}]},
        "subtotalsSpec": [["a"], []], "intervals": ["2013-01-01/P1D", "2012/2013"]}"#,
    r#"{"queryType": "timeseries", "granularity": "minute", "descending": true,
        "filter": {"type": "or", "fields": [{"type": "in", "dimension": "a", "values": ["x", null, 5]},
            {"type": "bound", "dimension": "b", "lower": "1", "ordering": "numeric"},
            {"type": "regex", "dimension": "a", "pattern": "^(x|y)+$"}]},
        "aggregations": [{"type": "stddev", "name": "v", "fieldName": "b"}]}"#,
    r#"{"queryType": "scan", "columns": ["__time", "a"], "limit": 3, "order": "descending"}"#,
    r#"{"queryType": "search", "query": {"type": "insensitive_contains", "value": "x"}}"#,
];

const ROWS: &str = "{\"t\": 1356998400000, \"a\": [\"x\", \"y\"], \"b\": 5, \"x\": 1.5}\n\
    {\"t\": \"2013-01-01T05:00-05:00\", \"a\": \"x\", \"b\": \"7\", \"x\": -3, \"more\": {\"y\": [1, null]}}\n\
    {\"t\": \"2013-01-01\", \"a\": null, \"b\": 1e300, \"x\": \"9\"}\n";

const EXPRESSIONS: [&str; 3] = [
    "if(x > 2 && !(y == 'a'), concat(lower(y), '-', x % 3), nvl(null, timestamp_floor(t, 'P1D', 'Asia/Tokyo')))",
    "-9223372036854775808 + substring(\"a b\", 1, 2) * pow(2, 0.5) / greatest(1, x)",
    "replace(trim(' x '), 'x', cast(1.5, 'STRING')) != contains(y, 'ö') || isnull(z)",
];

/// The same with some bytes changed, left out, put in, or twice.
fn damaged(rng: &mut Rng, text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..rng.usize(1..5) {
        let at = rng.usize(0..bytes.len());
        let signs = b"{}[]\",:0159-.eE+/*'\\nultrfasPTZ% \xc3\xb6\n";
        match rng.u8(0..4) {
            0 => bytes[at] = signs[rng.usize(0..signs.len())],
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, signs[rng.usize(0..signs.len())]),
            _ => {
                let end = rng.usize(at..bytes.len().min(at + 30));
                let piece = bytes[at..end].to_vec();
                let to = rng.usize(0..bytes.len());
                bytes.splice(to..to, piece);
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn damaged_documents_and_rows_do_no_harm() {
    let mut rng = Rng::with_seed(7);
    let sound = Schema::from_json(SCHEMA).expect("it is sound");
    let mut answered = 0;
    for round in 0..4_000 {
        let schema = match rng.bool() {
            true => Schema::from_json(&damaged(&mut rng, SCHEMA)).unwrap_or_else(|_| sound.clone()),
            false => sound.clone(),
        };
        let rollup = Arc::new(Rollup::new(schema).expect("a schema that was read fits"));
        let rows = if rng.bool() { damaged(&mut rng, ROWS) } else { ROWS.to_owned() };
        let (batch, bad) = RowBatch::from_json_lines(rows.as_bytes());
        assert!(batch.rows() + bad.len() <= rows.lines().count(), "round {round}");
        let told = Writer::new(&rollup).at(1_357_000_000_000).ingest(&batch);
        if let Ok(told) = told {
            let all = told.processed + told.thrown_away + told.unparseable + told.overflowed;
            assert_eq!(all, batch.rows() as u64, "round {round}");
        }
        let query = QUERIES[rng.usize(0..QUERIES.len())];
        let query = if rng.bool() { damaged(&mut rng, query) } else { query.to_owned() };
        if let Ok(answer) = Query::from_json(&query).and_then(|query| rollup.query(&query)) {
            answered += 1;
            serde_json::from_str::<serde_json::Value>(&answer.to_json())
                .expect("an answer is JSON");
            let _ = answer.to_csv();
        }
        let csv = damaged(&mut rng, "t,a,x\n2013-01-01,\"x, y\",5\n1,,\"a\"\"b\"\n");
        let _ = RowBatch::from_csv(csv.as_bytes());
    }
    assert!(answered > 1_000, "{answered}: are the documents still sound?");
}

#[test]
fn damaged_texts_do_no_harm() {
    let mut rng = Rng::with_seed(8);
    let row = |name: &str| match name {
        "x" => Value::Long(i64::MIN),
        "y" => Value::text("aö"),
        "t" => Value::Long(i64::MAX),
        _ => Value::Null,
    };
    for _ in 0..40_000 {
        let sound = EXPRESSIONS[rng.usize(0..EXPRESSIONS.len())];
        let text = damaged(&mut rng, sound);
        if let Ok(expression) = Expression::parse(&text) {
            let _ = expression.evaluate(&row);
        }
        let _ = Interval::parse(&damaged(&mut rng, "2013-01-01T00:00:00.000Z/P1DT2H"));
        let period = damaged(&mut rng, "P1M");
        if let Ok(granularity) = Granularity::parse(&period) {
            for time in [i64::MIN, -1, 0, 1_356_998_400_000, i64::MAX] {
                let (start, end) = granularity.bucket(time);
                assert!(start < end, "{period} {time}");
            }
        }
        let filter =
            damaged(&mut rng, r#"{"type": "regex", "dimension": "y", "pattern": "(a|ö)*$"}"#);
        if let Ok(filter) = Filter::from_json(&filter).and_then(|filter| filter.compile()) {
            let _ = filter.matches(&row);
        }
    }
}
