//! Sketches of Apache DataSketches: as metrics, in rows, and in answers.

use std::collections::HashSet;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fastrand::Rng;
use sapwood_rollup::{
    Aggregation, AggregationKind, Answer, Dimension, Filter, Granularity, Metric, MetricKind,
    Query, Rollup, RowBatch, RowBatchBuilder, Schema, SketchFigure, SketchInput, ThetaSet, Utf,
    Value, Writer,
};

/// What version 4.2.0 of the library for Java makes of the texts ann, bob, the empty one, éva and ann as `char[]`, of
/// these as `String`, of 0 to 99 in 16 registers, of 0 to 199 in 32 hashes, of the first 9 multiples of 1.5, and of 0 to
/// 99 where k is 8.
const HLL_UTF16: &str = "AgEHDAMIAwBN0n4Jm0gyCCSM1QQ=";
const THETA_TEXTS: &str =
    "AgMDAAAazJMFAAAAAACAP6VUFBLntoMcXxAykJcHzCdGUHUci10uM/wIMJ4cXtNr4PSL6pmDw3w=";
const HLL_UTF8: &str = "AgEHDAMIBgD4EWAEvyBkHIyg6gjB6RcFSqkoEMvXwgQ=";
const HLL_LONGS: &str = "CgEHBAAIAgIV6x3Hh/FUQAAAAAAAAPs/AAAAAAAAAAADAAAAAAAAAAJRIUEhAxAl";
const THETA_LONGS: &str = "AwMDAAAazJM0AAAAAACAP5ujhBEG3ckb+nSzTBaxbgAKItu3HIdfAYhlVzfRCnQB+zh5iRMkjwEPXRGQ3IixA0li\
    u5BitvwD6Ke9aP4LhgTi2s+fzeq+BO0LTW1SugYFFfl9y72GoQUllnlshj6yBffOedKDf8kFaqnK3iQK7QVjMZpXKy3mB0DeLuHJ2z0IaYu5kbho\
    VwjcP59UDJlaCPpp+Vk8ooMIoP0GYXbljgjzhdEXZfbFCL4RHpOFRv4Ish6LHEUlSAthTs01Qn9vC7JvRWAXEDYMzd0xtBmKgAyDuTLM+Vt/DYuC\
    PT4Fbc4NuCHkUO5rZg5qkYsLC+csD0NbVTbu8JsPxBNQJtwVFxD+FiET+5i8EG8rvOD5a10RkZ31XPZvuhGpQe2X4T/VEWvGzjcdghESOq80JUB8\
    gRLPVVB60gaTEl9nG9hORA8T8yh3Xow4HxPncCTkptsXFL0yc3JGkcwUXhAp4Qjm3xTKA2Gq5zOfFWatbFgPltAV4bjnyDdAoxYLFxD5MnYAF+JY\
    00Ynj7UZWVRcfZVk1hnMJCEKqVzdGW77bReVOKwaDZFUyobfgBs=";
const KLL_FEW: &str = "BQEPAMgACAAJAAAAAAAAAMgAAQC/AAAAAAAAAAAA+D8AAAAAAAArQAAAAAAAACtAAAAAAAAAKEAAAAAAAAAlQAAAAAAA\
    ACJAAAAAAAAAHkAAAAAAAAAYQAAAAAAAABJAAAAAAAAACEAAAAAAAAD4Pw==";
const KLL_MANY: &str = "BQEPAAgACABkAAAAAAAAAAgABAAFAAAADwAAABAAAAAaAAAAAAAAAAAAAAAAAAAAAMBYQAAAAAAAwFhAAAAAAACAWEAA\
    AAAAAEBYQAAAAAAAAFhAAAAAAADAV0AAAAAAAIBXQAAAAAAAQFdAAAAAAAAAV0AAAAAAAMBWQAAAAAAAgFZAAAAAAACASEAAAAAAAIBJQAAAAAAA\
    gEtAAAAAAACATUAAAAAAAABPQAAAAAAAgFBAAAAAAACAUUAAAAAAAIBSQAAAAAAAgFNAAAAAAADAVEAAAAAAAMBVQAAAAAAAABRAAAAAAAAAKkAA\
    AAAAAAA3QAAAAAAAAD9AAAAAAAAAQ0AAAAAAAABHQA==";

fn joined(text: &str) -> String {
    text.split_whitespace().collect()
}

fn rollup(schema: Schema, columns: &[(&str, &[Value<'_>])]) -> Arc<Rollup> {
    let rollup = Arc::new(Rollup::new(schema).expect("it fits"));
    let told = Writer::new(&rollup).ingest(&batch(columns)).expect("room");
    assert_eq!((told.unparseable, told.processed_with_error), (0, 0), "{told:?}");
    rollup
}

fn batch(columns: &[(&str, &[Value<'_>])]) -> RowBatch {
    let mut builder = RowBatchBuilder::new();
    for row in 0..columns[0].1.len() {
        builder.push("time", Value::Long(0));
        for (name, values) in columns {
            builder.push(name, values[row].borrowed());
        }
        builder.end_row().expect("within the limits");
    }
    builder.finish()
}

/// The answer of one row that has these figures.
fn figures(rollup: &Rollup, aggregations: impl IntoIterator<Item = Aggregation>) -> Answer {
    let query = Query::timeseries(Granularity::ALL);
    let query = aggregations.into_iter().fold(query, Query::aggregation);
    rollup.query(&query).expect("an answer")
}

fn text(answer: &Answer, name: &str) -> String {
    match answer.value(0, name) {
        Some(Value::Text(text)) => text.clone().into_owned(),
        other => panic!("{name}: {other:?}"),
    }
}

fn number(answer: &Answer, name: &str) -> f64 {
    let value = answer.value(0, name).unwrap_or_else(|| panic!("no column {name}"));
    value.to_double().expect("a number").expect("no null")
}

fn with(kind: AggregationKind, name: &str, field: &str) -> Aggregation {
    Aggregation { name: name.to_owned(), field: Some(field.to_owned()), kind, filter: None }
}

fn bytes_of(name: &str, field: &str, kind: MetricKind) -> Aggregation {
    let figure = SketchFigure::Bytes;
    let kind = match kind {
        MetricKind::Hll { lg_k, texts, .. } => AggregationKind::Hll { lg_k, texts, figure },
        MetricKind::Theta { lg_k, .. } => AggregationKind::Theta { lg_k, figure },
        MetricKind::Kll { k, .. } => AggregationKind::Kll { k, figure },
        other => panic!("{other:?}"),
    };
    with(kind, name, field)
}

const VALUES: SketchInput = SketchInput::Values;
const SKETCHES: SketchInput = SketchInput::Sketches;

fn metric(name: &str, field: &str, kind: MetricKind) -> Metric {
    Metric { name: name.to_owned(), field: Some(field.to_owned()), kind, filter: None }
}

#[test]
fn bytes_are_those_of_the_library_for_java() {
    let texts: Vec<Value<'_>> = ["ann", "bob", "", "éva", "ann"].map(Value::text).to_vec();
    let mut mixed = texts.clone();
    mixed.extend([Value::Long(7), Value::Double(2.5), Value::Double(-0.0), Value::Double(0.0)]);
    let theta: Vec<Value<'_>> = mixed[..7].to_vec();
    let nine: Vec<Value<'_>> = (1..10).map(|n| Value::Double(f64::from(n) * 1.5)).collect();
    for (values, kind, bytes) in [
        (&texts, MetricKind::Hll { lg_k: 12, texts: Utf::Utf16, input: VALUES }, HLL_UTF16),
        (&mixed, MetricKind::Hll { lg_k: 12, texts: Utf::Utf8, input: VALUES }, HLL_UTF8),
        (&theta, MetricKind::Theta { lg_k: 14, input: VALUES }, THETA_TEXTS),
        (&nine, MetricKind::Kll { k: 200, input: VALUES }, KLL_FEW),
    ] {
        let schema = Schema::new("time").metric(metric("m", "x", kind));
        // A column has values of one type, or of any.
        let rollup = rollup(schema, &[("x", values)]);
        for _ in 0..2 {
            let found = text(&figures(&rollup, [bytes_of("f", "m", kind)]), "f");
            let decode = |text: &str| STANDARD.decode(text).expect("base64");
            let (mut found, mut wanted) = (decode(&found), decode(&joined(bytes)));
            if let MetricKind::Theta { .. } = kind {
                // How likely a value is sampled: what is compact need not say it, and each library leaves something.
                found[12..16].fill(0);
                wanted[12..16].fill(0);
            }
            assert_eq!(found, wanted, "{kind:?}");
            rollup.seal().expect("memory");
        }
    }
    let kind = MetricKind::Theta { lg_k: 14, input: SKETCHES };
    let rollup = rollup(
        Schema::new("time").metric(metric("m", "x", kind)),
        &[("x", &[Value::text(&joined(THETA_LONGS))])],
    );
    assert!((number(&figures(&rollup, [Aggregation::theta("f", "m")]), "f") - 200.0).abs() < 60.0);
}

#[test]
fn sketches_of_the_library_for_java_are_taken_in() {
    for (kind, sketch, figure, wanted) in [
        (
            MetricKind::Hll { lg_k: 12, texts: Utf::Utf16, input: SKETCHES },
            HLL_UTF16,
            Aggregation::hll("f", "m"),
            3.0,
        ),
        (
            MetricKind::Hll { lg_k: 4, texts: Utf::Utf16, input: SKETCHES },
            HLL_LONGS,
            Aggregation::hll("f", "m"),
            102.114_005_248_192_24,
        ),
        (
            MetricKind::Theta { lg_k: 14, input: SKETCHES },
            THETA_TEXTS,
            Aggregation::theta("f", "m"),
            5.0,
        ),
        (
            MetricKind::Kll { k: 200, input: SKETCHES },
            KLL_FEW,
            Aggregation::kll("f", "m", 0.5),
            7.5,
        ),
        (
            MetricKind::Kll { k: 200, input: SKETCHES },
            KLL_MANY,
            Aggregation::kll("f", "m", 0.5),
            49.0,
        ),
    ] {
        let sketch = joined(sketch);
        // Twice the same: a set is not changed by it, and neither is a median.
        let column = [Value::text(&sketch), Value::Null, Value::text(&sketch)];
        let rollup = rollup(Schema::new("time").metric(metric("m", "x", kind)), &[("x", &column)]);
        let found = number(&figures(&rollup, [figure]), "f");
        assert!((found - wanted).abs() < wanted * 1e-3, "{kind:?}: {found}");
    }
}

#[test]
fn what_is_no_sketch_is_told() {
    for kind in [
        MetricKind::Hll { lg_k: 12, texts: Utf::Utf16, input: SKETCHES },
        MetricKind::Theta { lg_k: 14, input: SKETCHES },
        MetricKind::Kll { k: 200, input: SKETCHES },
    ] {
        let schema = Schema::new("time").metric(metric("m", "x", kind));
        let rollup = Arc::new(Rollup::new(schema).expect("it fits"));
        let column =
            [Value::text("no base64!"), Value::text("AAAA"), Value::Long(3), Value::text("")];
        let told = Writer::new(&rollup).ingest(&batch(&[("x", &column)])).expect("room");
        assert_eq!((told.processed, told.processed_with_error), (4, 4), "{kind:?}: {told:?}");
        assert_eq!(told.samples[0].column, "x");
    }
}

/// Sketches are bytes of strangers: whatever they are, they are read or refused.
#[test]
fn damaged_sketches_do_no_harm() {
    let mut rng = Rng::with_seed(3);
    let kinds = [
        (MetricKind::Hll { lg_k: 12, texts: Utf::Utf16, input: SKETCHES }, HLL_UTF8),
        (MetricKind::Hll { lg_k: 12, texts: Utf::Utf16, input: SKETCHES }, HLL_LONGS),
        (MetricKind::Theta { lg_k: 14, input: SKETCHES }, THETA_TEXTS),
        (MetricKind::Theta { lg_k: 14, input: SKETCHES }, THETA_LONGS),
        (MetricKind::Kll { k: 200, input: SKETCHES }, KLL_FEW),
        (MetricKind::Kll { k: 200, input: SKETCHES }, KLL_MANY),
    ];
    let mut taken = 0;
    for (kind, sketch) in kinds {
        let sound = STANDARD.decode(joined(sketch)).expect("base64");
        let mut column = Vec::new();
        for _ in 0..2_000 {
            let mut bytes = sound.clone();
            for _ in 0..rng.usize(1..4) {
                let end = if rng.bool() { 24 } else { bytes.len() };
                let at = rng.usize(0..bytes.len().min(end));
                bytes[at] = if rng.bool() { rng.u8(..) } else { bytes[at] ^ (1 << rng.u8(0..8)) };
            }
            if rng.u8(0..4) == 0 {
                bytes.truncate(rng.usize(0..bytes.len()));
            }
            column.push(Value::from(STANDARD.encode(bytes)));
        }
        let schema = Schema::new("time").metric(metric("m", "x", kind));
        let rollup = Arc::new(Rollup::new(schema).expect("it fits"));
        for part in column.chunks(20) {
            let told = Writer::new(&rollup).ingest(&batch(&[("x", part)])).expect("room");
            taken += told.processed - told.processed_with_error;
        }
        let _ = rollup
            .query(&Query::timeseries(Granularity::ALL).aggregation(bytes_of("f", "m", kind)));
        rollup.seal().expect("memory");
    }
    assert!(taken > 1_000, "{taken} were sound by chance");
}

#[test]
fn estimates_are_within_their_error() {
    let mut rng = Rng::with_seed(11);
    let schema = Schema::new("time")
        .dimension(Dimension::text("d"))
        .metric(Metric::hll("hll", "x"))
        .metric(Metric::theta("theta", "x"))
        .metric(Metric::kll("kll", "x"));
    let rollup = Arc::new(Rollup::new(schema).expect("it fits"));
    let mut all = Vec::new();
    for round in 0..4 {
        let values: Vec<Value<'_>> =
            (0..20_000).map(|_| Value::Long(rng.i64(0..100_000))).collect();
        let dimensions: Vec<Value<'_>> =
            (0..20_000).map(|_| Value::text(["a", "b", "c"][rng.usize(0..3)])).collect();
        let batch = batch(&[("d", &dimensions), ("x", &values)]);
        Writer::new(&rollup).ingest(&batch).expect("room");
        all.extend(values.iter().map(|value| value.to_long().expect("long").expect("value")));
        if round == 1 {
            rollup.seal().expect("memory");
        }
    }
    let exact = all.iter().collect::<HashSet<_>>().len() as f64;
    let answer = figures(
        &rollup,
        [
            Aggregation::hll("hll", "hll"),
            Aggregation::theta("theta", "theta"),
            Aggregation::kll("low", "kll", 0.1),
            Aggregation::kll("mid", "kll", 0.5),
            // What is asked of our own sketches can be said by these.
            Aggregation::distinct("distinct", "hll"),
            Aggregation::quantile("quantile", "kll", 0.5),
            with(AggregationKind::Kll { k: 200, figure: SketchFigure::Count }, "count", "kll"),
        ],
    );
    // Four standard errors.
    let near = |name: &str, wanted: f64, error: f64| {
        let found = number(&answer, name);
        assert!((found - wanted).abs() <= wanted * error, "{name}: {found}, not {wanted}");
    };
    near("hll", exact, 4.0 * 1.04 / 64.0);
    near("distinct", exact, 4.0 * 1.04 / 64.0);
    near("theta", exact, 4.0 / 128.0);
    near("count", all.len() as f64, 0.0);
    all.sort_unstable();
    for (name, share) in [("low", 0.1), ("mid", 0.5), ("quantile", 0.5)] {
        let found = number(&answer, name) as i64;
        let rank = all.partition_point(|value| *value <= found) as f64 / all.len() as f64;
        assert!((rank - share).abs() < 0.03, "{name}: rank {rank}");
    }
}

#[test]
fn sets_are_those_of_the_groups() {
    let users =
        |page: &'static str| Aggregation::theta(page, "users").where_(Filter::equal("page", page));
    let schema = Schema::new("time")
        .dimension(Dimension::text("page"))
        .metric(Metric::theta("users", "user"));
    let (mut page, mut user) = (Vec::new(), Vec::new());
    for (name, range) in [("oak", 0..300), ("elm", 200..500), ("ash", 250..260)] {
        for number in range {
            page.push(Value::text(name));
            user.push(Value::Long(number));
        }
    }
    let rollup = rollup(schema, &[("page", &page), ("user", &user)]);
    let of = |name: &str| ThetaSet::Of(name.to_owned());
    for (set, wanted) in [
        (ThetaSet::Union(vec![of("oak"), of("elm")]), 500.0),
        (ThetaSet::Intersection(vec![of("oak"), of("elm")]), 100.0),
        (ThetaSet::Intersection(vec![of("oak"), of("elm"), of("ash")]), 10.0),
        (ThetaSet::Difference(Box::new(of("oak")), vec![of("elm")]), 200.0),
        (
            ThetaSet::Difference(
                Box::new(ThetaSet::Intersection(vec![of("oak"), of("elm")])),
                vec![of("ash"), of("none")],
            ),
            90.0,
        ),
    ] {
        let query = Query::timeseries(Granularity::ALL)
            .aggregation(users("oak"))
            .aggregation(users("elm"))
            .aggregation(users("ash"))
            .aggregation(users("none"))
            .theta_set("set", set, SketchFigure::Rounded)
            .post_aggregation("twice", "set * 2")
            .expect("an expression");
        let answer = rollup.query(&query).expect("an answer");
        assert_eq!((number(&answer, "set"), number(&answer, "twice")), (wanted, wanted * 2.0));
    }
    let query =
        Query::timeseries(Granularity::ALL).theta_set("set", of("x"), SketchFigure::Estimate);
    let error = rollup.query(&query).expect_err("there is no such aggregation").to_string();
    assert!(error.contains("no aggregation `x`"), "{error}");
    let nothing = ThetaSet::Union(Vec::new());
    let query =
        Query::timeseries(Granularity::ALL).theta_set("set", nothing, SketchFigure::Estimate);
    assert!(rollup.query(&query).expect_err("nothing").to_string().contains("no sets"));
}

#[test]
fn documents_name_them_as_druid_does() {
    let schema = Schema::from_json(
        r#"{"timestampSpec": {"column": "time"}, "dimensionsSpec": {"dimensions": ["page"]},
            "metricsSpec": [
                {"type": "HLLSketchBuild", "name": "h", "fieldName": "user", "lgK": 11, "tgtHllType": "HLL_4"},
                {"type": "HLLSketchMerge", "name": "hm", "fieldName": "s", "stringEncoding": "utf8"},
                {"type": "thetaSketch", "name": "t", "fieldName": "user", "size": 1024},
                {"type": "thetaSketch", "name": "tm", "fieldName": "s", "isInputThetaSketch": true},
                {"type": "KllDoublesSketch", "name": "k", "fieldName": "x", "k": 100, "maxStreamLength": 5},
                {"type": "KllDoublesSketchMerge", "name": "km", "fieldName": "s"}]}"#,
    )
    .expect("a schema");
    assert_eq!(
        schema.metrics()[0].kind,
        MetricKind::Hll { lg_k: 11, texts: Utf::Utf16, input: VALUES }
    );
    assert_eq!(Schema::from_json(&schema.to_json().expect("JSON")).as_ref(), Ok(&schema));
    let page = ["a", "a", "b", "b"].map(Value::text);
    let user = ["ann", "bob", "bob", "eve"].map(Value::text);
    let x = [1, 2, 3, 4].map(Value::Long);
    let rollup = rollup(schema, &[("page", &page), ("user", &user), ("x", &x)]);
    let query = Query::from_json(
        r#"{"queryType": "groupBy", "dimensions": [], "granularity": "all",
            "aggregations": [
                {"type": "HLLSketchMerge", "name": "h", "fieldName": "h", "round": true},
                {"type": "HLLSketchMerge", "name": "bytes", "fieldName": "h", "shouldFinalize": false},
                {"type": "KllDoublesSketchMerge", "name": "k", "fieldName": "k"},
                {"type": "filtered", "filter": {"type": "selector", "dimension": "page", "value": "a"},
                 "aggregator": {"type": "thetaSketch", "name": "a", "fieldName": "t"}},
                {"type": "filtered", "filter": {"type": "selector", "dimension": "page", "value": "b"},
                 "aggregator": {"type": "thetaSketch", "name": "b", "fieldName": "t"}}],
            "postAggregations": [
                {"type": "HLLSketchEstimate", "name": "he", "round": true,
                 "field": {"type": "fieldAccess", "fieldName": "bytes"}},
                {"type": "KllDoublesSketchToQuantile", "name": "median", "fraction": 0.5,
                 "field": {"type": "fieldAccess", "fieldName": "k"}},
                {"type": "thetaSketchEstimate", "name": "both", "field":
                    {"type": "thetaSketchSetOp", "name": "x", "func": "INTERSECT", "size": 1024, "fields":
                        [{"type": "fieldAccess", "fieldName": "a"}, {"type": "fieldAccess", "fieldName": "b"}]}},
                {"type": "thetaSketchEstimate", "name": "one", "field": {"type": "fieldAccess", "fieldName": "a"}}]}"#,
    )
    .expect("a query");
    let answer = rollup.query(&query).expect("an answer");
    let found = ["h", "he", "k", "median", "both", "one"].map(|name| number(&answer, name));
    assert_eq!(found, [3.0, 3.0, 4.0, 2.0, 1.0, 2.0]);
    assert!(text(&answer, "bytes").starts_with("AgEHCw"), "{}", answer.to_json());
    for (json, named) in [
        (r#"{"type": "HLLSketchBuild", "name": "x", "fieldName": "page", "lgK": 3}"#, "lg"),
        (
            r#"{"type": "HLLSketchMerge", "name": "x", "fieldName": "t"}"#,
            "`t` keeps another sketch: a theta",
        ),
        (
            r#"{"type": "HLLSketchMerge", "name": "x", "fieldName": "h", "stringEncoding": "utf8"}"#,
            "`stringEncoding`",
        ),
        (r#"{"type": "variance", "name": "x", "fieldName": "k"}"#, "`k` keeps a KLL sketch"),
    ] {
        let query = format!(
            r#"{{"queryType": "timeseries", "granularity": "all", "aggregations": [{json}]}}"#
        );
        let query = Query::from_json(&query).expect(json);
        let error = rollup.query(&query).expect_err(json).to_string();
        assert!(error.contains(named), "{json}: {error}");
    }
}

#[test]
fn sketches_whose_counts_leave_their_type_are_refused() {
    // The last level has one number, which stands for 2^46, and those below have none.
    let levels = 47_u8;
    let mut bytes = vec![5, 1, 15, 0, 200, 0, 8, 0];
    bytes.extend((1_u64 << (levels - 1)).to_le_bytes());
    bytes.extend([200, 0, levels, 0]);
    let capacity = (0..u32::from(levels)).map(|level| {
        let depth = f64::from(u32::from(levels) - level - 1);
        (200.0 * (2.0_f64 / 3.0).powf(depth)).round().max(8.0) as u32
    });
    let end = capacity.sum::<u32>();
    bytes.extend((0..levels).flat_map(|_| (end - 1).to_le_bytes()));
    bytes.extend([1.5_f64; 3].iter().flat_map(|number| number.to_le_bytes()));
    let sketch = STANDARD.encode(&bytes);
    let kind = MetricKind::Kll { k: 200, input: SKETCHES };
    let schema = Schema::new("time").metric(metric("m", "x", kind));
    let rollup = Arc::new(Rollup::new(schema).expect("it fits"));
    let mut told = (0, 0);
    for _ in 0..4 {
        let column = [Value::text(&sketch), Value::text(&sketch), Value::text(&sketch)];
        let report = Writer::new(&rollup).ingest(&batch(&[("x", &column)])).expect("room");
        assert_eq!(report.processed_with_error, 0, "{report:?}");
        told = (told.0 + report.processed, told.1 + report.overflowed);
    }
    // Four make 2^48, and there are no more.
    assert_eq!(told, (4, 8));
    let count = with(AggregationKind::Kll { k: 200, figure: SketchFigure::Count }, "n", "m");
    let found = figures(&rollup, [count, Aggregation::kll("mid", "m", 0.5)]);
    assert_eq!((number(&found, "n"), number(&found, "mid")), ((1_u64 << 48) as f64, 1.5));
}
