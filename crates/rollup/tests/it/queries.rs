//! Queries as documents, and answers as Druid writes them.

use std::sync::Arc;

use sapwood_rollup::{Answer, Query, Rollup, RowBatch, Schema, Value, Writer};

fn rollup() -> Arc<Rollup> {
    let schema = Schema::from_json(
        r#"{
        "timestampSpec": {"column": "time"},
        "dimensionsSpec": {"dimensions": ["city", "tags", {"type": "long", "name": "size"}]},
        "metricsSpec": [
            {"type": "count", "name": "count"},
            {"type": "longSum", "name": "sum", "fieldName": "x"},
            {"type": "distinct", "name": "users", "fieldName": "user"},
            {"type": "quantiles", "name": "delays", "fieldName": "x"}
        ],
        "granularitySpec": {"queryGranularity": "hour"}
    }"#,
    );
    let rollup = Arc::new(Rollup::new(schema.expect("a schema")).expect("it fits"));
    let (batch, bad) = RowBatch::from_json_lines(
        br#"{"time": "2013-01-01T00:10Z", "city": "Bern", "tags": ["a", "b"], "size": 1, "x": 1, "user": "u"}
            {"time": "2013-01-01T00:20Z", "city": "Bern", "tags": ["b", "a"], "size": 1, "x": 2, "user": "v"}
            {"time": "2013-01-01T00:30Z", "city": "Rome", "tags": "b", "size": 2, "x": 4, "user": "u"}
            {"time": "2013-01-01T03:00Z", "city": "Rome", "size": 2, "x": 8, "user": "w"}
            {"time": "2013-01-02T00:00Z", "tags": "c", "x": 16, "user": "w"}"#,
    );
    assert!(bad.is_empty());
    Writer::new(&rollup).ingest(&batch).expect("room");
    rollup
}

fn ask(json: &str) -> Answer {
    let query = Query::from_json(json).unwrap_or_else(|error| panic!("{json}: {error}"));
    rollup().query(&query).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn expect(json: &str, answer: &str) {
    let found: serde_json::Value = serde_json::from_str(&ask(json).to_json()).expect("JSON");
    let wanted: serde_json::Value = serde_json::from_str(answer).expect("JSON");
    assert_eq!(found, wanted, "{json}: {found:#}");
}

#[test]
fn a_timeseries_shows_buckets_without_facts() {
    let query = |more: &str| {
        format!(
            r#"{{"queryType": "timeseries", "dataSource": "x", "granularity": "hour",
            "intervals": "2013-01-01/P1D", "filter": {{"type": "null", "column": "city"}}, {more}
            "aggregations": [{{"type": "longSum", "name": "s", "fieldName": "sum"}}]}}"#
        )
    };
    expect(&query(""), "[]");
    let filled = query("").replace(r#"{"type": "null", "column": "city"}"#, r#"{"type": "true"}"#);
    expect(
        &filled,
        r#"[{"timestamp": "2013-01-01T00:00:00.000Z", "result": {"s": 7}},
            {"timestamp": "2013-01-01T01:00:00.000Z", "result": {"s": null}},
            {"timestamp": "2013-01-01T02:00:00.000Z", "result": {"s": null}},
            {"timestamp": "2013-01-01T03:00:00.000Z", "result": {"s": 8}}]"#,
    );
    let skipped = filled.replace(
        "\"dataSource\"",
        "\"descending\": true, \"context\": {\"skipEmptyBuckets\": true}, \"dataSource\"",
    );
    expect(
        &skipped,
        r#"[{"timestamp": "2013-01-01T03:00:00.000Z", "result": {"s": 8}},
            {"timestamp": "2013-01-01T00:00:00.000Z", "result": {"s": 7}}]"#,
    );
}

#[test]
fn gaps_between_intervals_are_not_walked() {
    let schema = Schema::from_json(
        r#"{"timestampSpec": {"column": "t"}, "dimensionsSpec": {"dimensions": ["d"]},
        "metricsSpec": [{"type": "count", "name": "n"}]}"#,
    );
    let rollup = Arc::new(Rollup::new(schema.expect("a schema")).expect("it fits"));
    let (batch, _) =
        RowBatch::from_json_lines(b"{\"t\": \"0001-01-01T00:00:01Z\"}\n{\"t\": \"8000-01-01\"}");
    Writer::new(&rollup).ingest(&batch).expect("room");
    let ask = |intervals: &str| {
        let query = Query::from_json(&format!(
            r#"{{"queryType": "timeseries", "granularity": "second", "intervals": [{intervals}],
            "aggregations": [{{"type": "longSum", "name": "n", "fieldName": "n"}}]}}"#
        ));
        rollup.query(&query.expect("a query"))
    };
    let answer = ask(r#""0001-01-01/PT4S", "7999-12-31T23:59:58Z/PT4S""#).expect("few buckets");
    let found: Vec<String> = answer.rows.iter().map(|row| row[1].to_string()).collect();
    assert_eq!(found, ["1", "null", "null", "null", "null", "1"]);
    let error = ask(r#""0001/8001""#).expect_err("two hundred thousand million buckets");
    assert!(error.to_string().contains("skip empty buckets"), "{error}");
}

#[test]
fn group_by_has_figures_of_figures_having_and_order() {
    expect(
        r#"{"queryType": "groupBy", "granularity": {"type": "period", "period": "P1D", "timeZone": "Europe/Rome"},
        "dimensions": [{"type": "default", "dimension": "city", "outputName": "place"}],
        "aggregations": [
            {"type": "count", "name": "facts"},
            {"type": "longSum", "name": "rows", "fieldName": "count"},
            {"type": "filtered", "filter": {"type": "selector", "dimension": "size", "value": "2"},
             "aggregator": {"type": "longSum", "name": "big", "fieldName": "sum"}},
            {"type": "distinct", "name": "users", "fieldName": "users"},
            {"type": "quantile", "name": "median", "fieldName": "delays", "fraction": 0.5}],
        "postAggregations": [
            {"type": "expression", "name": "half", "expression": "rows / 2.0"},
            {"type": "arithmetic", "name": "each", "fn": "/", "fields": [
                {"type": "fieldAccess", "fieldName": "rows"}, {"type": "fieldAccess", "fieldName": "facts"}]}],
        "having": {"type": "greaterThan", "aggregation": "rows", "value": 1},
        "limitSpec": {"type": "default", "columns": [{"dimension": "place", "direction": "descending"}]},
        "intervals": ["2013-01-01/2013-01-03"]}"#,
        r#"[{"version": "v1", "timestamp": "2013-01-01T00:00:00.000+01:00", "event":
               {"place": "Rome", "facts": 2, "rows": 2, "big": 12, "users": 2, "median": 6.0, "half": 1.0, "each": 1.0}},
            {"version": "v1", "timestamp": "2013-01-01T00:00:00.000+01:00", "event":
               {"place": "Bern", "facts": 1, "rows": 2, "big": null, "users": 2, "median": 1.5, "half": 1.0, "each": 2.0}}]"#,
    );
}

#[test]
fn several_values_are_a_group_each_and_subtotals_hide_dimensions() {
    let answer = ask(
        r#"{"queryType": "groupBy", "granularity": "all", "dimensions": ["city", "tags"],
        "aggregations": [{"type": "longSum", "name": "s", "fieldName": "sum"}],
        "subtotalsSpec": [["city", "tags"], ["tags"], []], "intervals": ["2013-01-01/2013-02-01"]}"#,
    );
    let start = 1_356_998_400_000_i64;
    let row = |city: Option<&'static str>, tag: Option<&'static str>, sum: i64| {
        let text = |text: Option<&'static str>| text.map_or(Value::Null, Value::text);
        vec![Value::Long(start), text(city), text(tag), Value::Long(sum)]
    };
    let wanted = [
        row(None, Some("c"), 16),
        row(Some("Bern"), Some("a"), 3),
        row(Some("Bern"), Some("b"), 3),
        row(Some("Rome"), None, 8),
        row(Some("Rome"), Some("b"), 4),
        row(None, None, 8),
        row(None, Some("a"), 3),
        row(None, Some("b"), 7),
        row(None, Some("c"), 16),
        row(None, None, 34),
    ];
    assert_eq!(answer.rows, wanted);
}

#[test]
fn top_n_is_that_of_each_bucket() {
    expect(
        r#"{"queryType": "topN", "granularity": "day", "dimension": "city", "metric": "s", "threshold": 1,
        "aggregations": [{"type": "longSum", "name": "s", "fieldName": "sum"}], "intervals": ["2013-01-01/P2D"]}"#,
        r#"[{"timestamp": "2013-01-01T00:00:00.000Z", "result": [{"city": "Rome", "s": 12}]},
            {"timestamp": "2013-01-02T00:00:00.000Z", "result": [{"city": null, "s": 16}]}]"#,
    );
    let answer = ask(r#"{"queryType": "topN", "dimension": "city", "threshold": 2,
        "metric": {"type": "inverted", "metric": "s"},
        "aggregations": [{"type": "longSum", "name": "s", "fieldName": "sum"}]}"#);
    let cities: Vec<_> = answer.rows.iter().map(|row| row[1].to_string()).collect();
    assert_eq!(cities, ["Bern", "Rome"]);
}

#[test]
fn scans_searches_boundaries_and_metadata() {
    expect(
        r#"{"queryType": "scan", "columns": ["city", "tags", "sum", "users"], "limit": 1, "offset": 1,
        "resultFormat": "compactedList", "order": "descending", "intervals": ["2013-01-01/P1D"]}"#,
        r#"[{"segmentId": "live", "columns": ["city", "tags", "sum", "users"], "events": [["Rome", "b", 4, 1]]}]"#,
    );
    expect(
        r#"{"queryType": "search", "query": {"type": "insensitive_contains", "value": "B"},
        "intervals": ["2013-01-01/P1D"]}"#,
        r#"[{"timestamp": "2013-01-01T00:00:00.000Z", "result": [
            {"dimension": "city", "value": "Bern", "count": 1},
            {"dimension": "tags", "value": "b", "count": 2}]}]"#,
    );
    expect(
        r#"{"queryType": "timeBoundary"}"#,
        r#"[{"timestamp": "2013-01-01T00:00:00.000Z", "result":
            {"minTime": "2013-01-01T00:00:00.000Z", "maxTime": "2013-01-02T00:00:00.000Z"}}]"#,
    );
    expect(r#"{"queryType": "timeBoundary", "intervals": "1999/P1Y"}"#, "[]");
    let answer = ask(r#"{"queryType": "segmentMetadata"}"#);
    let row = |name: &str| {
        let found = answer.rows.iter().find(|row| row[0] == Value::text(name)).expect(name);
        found.iter().skip(1).map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("tags"), "STRING true true 3 a c");
    assert_eq!(row("size"), "LONG false true null 1 2");
    assert_eq!(row("sum"), "LONG false false null 3 16");
    assert!(answer.to_json().contains(r#""numRows":4"#), "{}", answer.to_json());
}

#[test]
fn answers_are_written_as_csv() {
    let answer = ask(r#"{"queryType": "groupBy", "granularity": "day", "dimensions": ["city"],
        "aggregations": [{"type": "longSum", "name": "s", "fieldName": "sum"}]}"#);
    let wanted = "timestamp,city,s\n2013-01-01T00:00:00.000Z,Bern,3\n\
                  2013-01-01T00:00:00.000Z,Rome,12\n2013-01-02T00:00:00.000Z,,16\n";
    assert_eq!(answer.to_csv(), wanted);
}

#[test]
fn what_does_not_fit_is_named() {
    for (json, named) in [
        (r#"{"queryType": "group"}"#, "`queryType` is `group`"),
        (r#"{"queryType": "scan", "colums": []}"#, "`colums` is not known here"),
        (r#"{"queryType": "scan", "intervals": "yesterday"}"#, "`intervals` cannot be"),
        (r#"{"queryType": "timeseries", "granularity": "hours"}"#, "`granularity` cannot be"),
        (
            r#"{"queryType": "groupBy", "dimensions": ["town"]}"#,
            "there is no column `town`; there are __time, city, tags, size, count, sum",
        ),
        (
            r#"{"queryType": "groupBy", "dimensions": ["city"],
            "aggregations": [{"type": "longSum", "name": "s", "fieldName": "users"}]}"#,
            "`users` is a sketch, and no number",
        ),
        (
            r#"{"queryType": "groupBy", "dimensions": ["city"],
            "aggregations": [{"type": "distinct", "name": "s", "fieldName": "delays"}]}"#,
            "`delays` keeps",
        ),
        (
            r#"{"queryType": "groupBy", "dimensions": ["city"],
            "aggregations": [{"type": "count", "name": "city"}]}"#,
            "two columns of the answer are called `city`",
        ),
        (
            r#"{"queryType": "groupBy", "dimensions": ["city"], "limitSpec": {"columns": ["town"]}}"#,
            "the answer has no column `town`",
        ),
        (
            r#"{"queryType": "groupBy", "dimensions": ["city"], "subtotalsSpec": [["town"]]}"#,
            "`town` of the subtotals",
        ),
        (
            r#"{"queryType": "groupBy", "dimensions": ["city"],
            "aggregations": [{"type": "quantile", "name": "q", "fieldName": "sum", "fraction": 2}]}"#,
            "the share is 0 to 1",
        ),
    ] {
        let answer = Query::from_json(json).and_then(|query| rollup().query(&query));
        let error = answer.expect_err(json).to_string();
        assert!(error.contains(named), "{json}: {error}");
    }
}

#[test]
fn a_figure_beyond_its_type_is_an_error() {
    let schema = Schema::from_json(
        r#"{"timestampSpec": {"column": "t"}, "dimensionsSpec": {"dimensions": ["d"]},
        "metricsSpec": [{"type": "longSum", "name": "s", "fieldName": "x"}]}"#,
    );
    let rollup = Arc::new(Rollup::new(schema.expect("a schema")).expect("it fits"));
    let (batch, _) = RowBatch::from_json_lines(
        b"{\"t\": 0, \"d\": \"a\", \"x\": 9223372036854775807}\n{\"t\": 0, \"d\": \"b\", \"x\": 1}",
    );
    assert_eq!(Writer::new(&rollup).ingest(&batch).expect("room").processed, 2);
    for threads in [1, 3] {
        let query = Query::from_json(
            r#"{"queryType": "timeseries", "granularity": "all",
            "aggregations": [{"type": "longSum", "name": "s", "fieldName": "s"}]}"#,
        );
        let error = rollup.query(&query.expect("a query").threads(threads)).expect_err("too much");
        assert!(error.to_string().contains("`s` leaves the range of its type"), "{error}");
    }
}

#[test]
fn a_select_goes_page_by_page() {
    let query = |paging: &str| {
        format!(
            r#"{{"queryType": "select", "intervals": ["2013/2014"], "granularity": "all", "dimensions": ["city"],
                "metrics": ["sum"], "pagingSpec": {{"threshold": 2, {paging}}}}}"#
        )
    };
    expect(
        &query(r#""pagingIdentifiers": {}"#),
        r#"[{"timestamp": "2013-01-01T00:00:00.000Z", "result": {"pagingIdentifiers": {"live": 1}, "events": [
            {"segmentId": "live", "offset": 0,
             "event": {"timestamp": "2013-01-01T00:00:00.000Z", "city": "Bern", "sum": 3}},
            {"segmentId": "live", "offset": 1,
             "event": {"timestamp": "2013-01-01T00:00:00.000Z", "city": "Rome", "sum": 4}}]}}]"#,
    );
    let last = r#"[{"timestamp": "2013-01-01T03:00:00.000Z", "result": {"pagingIdentifiers": {"live": 3}, "events": [
            {"segmentId": "live", "offset": 2,
             "event": {"timestamp": "2013-01-01T03:00:00.000Z", "city": "Rome", "sum": 8}},
            {"segmentId": "live", "offset": 3,
             "event": {"timestamp": "2013-01-02T00:00:00.000Z", "city": null, "sum": 16}}]}}]"#;
    expect(&query(r#""pagingIdentifiers": {"live": 1}"#), last);
    expect(&query(r#""pagingIdentifiers": {"live": 2}, "fromNext": false"#), last);
    expect(&query(r#""pagingIdentifiers": {"live": 3}"#), "[]");
    for (paging, named) in [
        (
            r#""pagingIdentifiers": {"other": 1}"#,
            "`pagingSpec.pagingIdentifiers.other` is not known",
        ),
        (r#""more": 1"#, "`pagingSpec.more` is not known"),
    ] {
        let error = Query::from_json(&query(paging)).expect_err(paging).to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn virtual_columns_are_columns_of_a_query() {
    expect(
        r#"{"queryType": "groupBy", "granularity": "all", "intervals": ["2013/2014"], "dimensions": ["letter", "even"],
            "virtualColumns": [
                {"type": "expression", "name": "letter", "expression": "substring(lower(city), 0, 1)",
                 "outputType": "STRING"},
                {"type": "expression", "name": "even", "expression": "size % 2 == 0", "outputType": "LONG"},
                {"type": "expression", "name": "half", "expression": "sum / 2.0"}],
            "filter": {"type": "in", "dimension": "letter", "values": ["b", "r"]},
            "aggregations": [{"type": "doubleSum", "name": "halves", "fieldName": "half"}]}"#,
        r#"[{"version": "v1", "timestamp": "2013-01-01T00:00:00.000Z",
             "event": {"letter": "b", "even": 0, "halves": 1.5}},
            {"version": "v1", "timestamp": "2013-01-01T00:00:00.000Z",
             "event": {"letter": "r", "even": 1, "halves": 6.0}}]"#,
    );
    for (column, named) in [
        (r#"{"type": "expression", "name": "v", "expression": "other"}"#, "no column `other`"),
        (r#"{"type": "expression", "name": "__time", "expression": "size"}"#, "`__time`"),
        (r#"{"type": "expression", "name": "v", "expression": "v"}"#, "no column `v`"),
        (
            r#"{"type": "expression", "name": "v", "expression": "size + 9223372036854775807"}"#,
            "`v`: ",
        ),
    ] {
        let query = format!(
            r#"{{"queryType": "groupBy", "granularity": "all", "dimensions": ["v"], "virtualColumns": [{column}]}}"#
        );
        let query = Query::from_json(&query).expect(column);
        let error = rollup().query(&query).expect_err(column).to_string();
        assert!(error.contains(named), "{column}: {error}");
    }
}
