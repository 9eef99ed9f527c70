//! Are there bytes that a reader of rows or documents takes badly? What the fuzz targets in `fuzz` call,
//! and a test.
//!
//! Each takes any bytes and panics where a promise is broken. The first byte says what the others are.

use std::sync::Arc;

use crate::live::state::StateLayout;
use crate::log;
use crate::segment::Segment;
use crate::store::Manifest;
use crate::{
    Error, Expression, Filter, Query, Rollup, RowBatch, Schema, TimestampFormat, Value, Writer,
};

/// Rows as JSON lines, CSV, MessagePack, or a stored batch: they are refused, or can be stored, read again
/// as they were, and folded.
pub fn rows(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let batch = match kind % 4 {
        0 => RowBatch::from_json_lines(bytes).0,
        1 => match RowBatch::from_csv(bytes) {
            Ok((batch, _)) => batch,
            Err(error) => return assert!(matches!(error, Error::Input(_)), "{error}"),
        },
        2 => {
            let (batch, bad) = RowBatch::from_message_pack(bytes);
            let offsets = bad.iter().map(|bad| bad.offset);
            assert!(offsets.clone().is_sorted() && offsets.max() <= Some(bytes.len()), "{bad:?}");
            batch
        }
        _ => match RowBatch::decode(bytes) {
            Ok(batch) => batch,
            Err(error) => return refused(error),
        },
    };
    let stored = |batch: &RowBatch| {
        let mut out = Vec::new();
        batch.encode(&mut out).map(|()| out)
    };
    let written = stored(&batch).expect("lists have a bound, and the bytes are few");
    let read = RowBatch::decode(&written).expect("it was written");
    // To the bit: NaN is not equal to itself.
    assert_eq!(stored(&read).as_ref(), Ok(&written));
    // More rows than a batch of so few bytes has by itself take their time.
    if batch.rows() <= ROWS_MAX {
        let told = Writer::new(&rollup()).at(0).ingest(&batch).expect("there is room");
        let all = told.processed + told.thrown_away + told.unparseable + told.overflowed;
        assert_eq!(all, batch.rows() as u64);
    }
}

const ROWS_MAX: usize = 10_000;

/// A segment, a manifest of segments, or a record of the log: refused, or read to the end. For a fuzzer
/// checksums always fit.
pub fn files(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 3 {
        0 => {
            let layout = StateLayout::new(rollup().schema().metrics());
            match Segment::open("segment", Arc::new(bytes.to_vec()), &layout) {
                Ok(segment) => segment.check(&layout).unwrap_or_else(refused),
                Err(error) => refused(error),
            }
        }
        1 => match Manifest::decode(bytes) {
            Ok(manifest) => assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest)),
            Err(error) => refused(error),
        },
        _ => {
            log::decode(bytes).map(drop).unwrap_or_else(refused);
        }
    }
}

/// Bytes that are damaged, or of a later format.
fn refused(error: Error) {
    let is_told = matches!(
        error,
        Error::Corrupt { .. } | Error::Newer { .. } | Error::Sketch(_) | Error::Datasketch(_)
    );
    assert!(is_told, "{error}");
}

/// Facts of whatever columns there are.
fn rollup() -> Arc<Rollup> {
    let schema = Schema::from_json(SCHEMA).expect("it is sound");
    Arc::new(Rollup::new(schema).expect("it is sound"))
}

const SCHEMA: &str = r#"{"timestampSpec": {"column": "t", "format": "auto", "missingValue": "2013-01-01"},
    "dimensionsSpec": {"dimensions": ["a", {"type": "long", "name": "b"}], "useSchemaDiscovery": true},
    "metricsSpec": [{"type": "count", "name": "n"}, {"type": "longSum", "name": "s", "fieldName": "x"},
        {"type": "doubleSum", "name": "d", "fieldName": "x"}, {"type": "longMax", "name": "m", "fieldName": "y"}],
    "granularitySpec": {"segmentGranularity": "day", "rollup": true, "queryGranularity": "hour"}}"#;

/// A schema, a query, an expression or a filter: they are refused, or can be used.
pub fn documents(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let row = |name: &str| match name {
        "t" => Value::Long(1_356_998_400_000),
        "b" => Value::Long(i64::MIN),
        "x" => Value::Double(1.5),
        "a" => Value::text("Ölm"),
        "tags" => Value::List(vec![Value::text("p"), Value::Null]),
        _ => Value::Null,
    };
    match kind % 4 {
        0 => {
            if let Ok(schema) = Schema::from_json(text) {
                Rollup::new(schema).expect("a schema that was read fits");
            }
        }
        1 => {
            if let Ok(query) = Query::from_json(text) {
                // A query of names that are not there is refused here.
                let _answer = rollup().query(&query);
            }
        }
        2 => {
            if let Ok(expression) = Expression::parse(text) {
                let _value = expression.evaluate(&row);
            }
        }
        _ => {
            if let Ok(filter) = Filter::from_json(text).and_then(|filter| filter.compile()) {
                let _matches = filter.matches(&row);
            }
        }
    }
    let _time = TimestampFormat::Auto.read(&Value::text(text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;
    use fastrand::Rng;
    use sapwood_disk::Disk;

    const ROWS: &str = "{\"t\": 1356998400000, \"a\": [\"x\", \"y\"], \"b\": 5, \"x\": 1.5}\n\
        {\"t\": \"2013-01-01T05:00-05:00\", \"a\": \"x\", \"b\": \"7\", \"more\": {\"y\": [1, null]}}\n";

    /// Bytes that mean something.
    fn seeds() -> [(&'static str, Vec<u8>); 12] {
        let stored = |kind: u8, batch: &RowBatch| {
            let mut out = vec![kind];
            batch.encode(&mut out).expect("it is small");
            out
        };
        let (mixed, _) = RowBatch::from_json_lines(ROWS.as_bytes());
        let columns = RowBatch::new(40)
            .column("t", Column::longs((0..40).map(|row| row * 500)))
            .and_then(|batch| {
                batch.column("a", Column::texts((0..40).map(|row| "ab".repeat(row % 3))))
            })
            .and_then(|batch| {
                let some = (0..40).map(|row| (row % 3 > 0).then_some(f64::from(row)));
                batch.column("x", Column::optional_doubles(some))
            })
            .expect("of one length");
        let packed =
            b"2\x84\xa1t\xd6\xff\x50\xe2\x29\x80\xa1a\x92\xa1x\xc0\xa1x\xcb\x3f\xf8\0\0\0\0\0\0\
            \xa4more\x81\xa1y\x07\x92\x81\xa1b\xd1\x80\0\x05";
        let text = |kind: &str, text: &str| format!("{kind}{text}").into_bytes();
        let (segment, manifest) = sealed(&[&mixed, &columns]);
        let record = log::encode(&mixed, 7, &[("topic", 5)]).expect("it is small");
        [
            ("rollup_rows/json", text("0", ROWS)),
            ("rollup_rows/csv", text("1", "t,a,x\n2013-01-01,\"x, y\",5\n1,,\"a\"\"b\"\n")),
            ("rollup_rows/message_pack", packed.to_vec()),
            ("rollup_rows/stored", stored(b'3', &mixed)),
            ("rollup_rows/stored_columns", stored(b'3', &columns)),
            ("rollup_files/segment", [b"0", &segment[..]].concat()),
            ("rollup_files/manifest", [b"1", &manifest[..]].concat()),
            ("rollup_files/record", [b"2", &record[..]].concat()),
            ("rollup_documents/schema", text("0", SCHEMA)),
            (
                "rollup_documents/query",
                text(
                    "1",
                    r#"{"queryType": "groupBy", "dimensions": ["a"], "granularity": "hour",
                    "aggregations": [{"type": "longSum", "name": "s", "fieldName": "s"}],
                    "having": {"type": "greaterThan", "aggregation": "s", "value": 1},
                    "limitSpec": {"type": "default", "limit": 5, "columns": ["a"]}, "intervals": ["2013/P1Y"]}"#,
                ),
            ),
            (
                "rollup_documents/expression",
                text("2", "if(x > 2 && !(a == 'b'), concat(lower(a), '-', b % 3), nvl(c, t / 0))"),
            ),
            (
                "rollup_documents/filter",
                text(
                    "3",
                    r#"{"type": "or", "fields": [{"type": "in", "dimension": "a", "values": ["x", null, 5]},
                    {"type": "regex", "dimension": "tags", "pattern": "^(p|q)+$"}]}"#,
                ),
            ),
        ]
    }

    /// The files of a roll-up of some rows, all of one day: a segment and the manifest.
    fn sealed(batches: &[&RowBatch]) -> (Vec<u8>, Vec<u8>) {
        let disk = Arc::new(sapwood_disk::SimDisk::new());
        let schema = Schema::from_json(SCHEMA).expect("it is sound");
        let rollup = Arc::new(Rollup::on_disk(schema, disk.clone()).expect("an empty folder"));
        for batch in batches {
            Writer::new(&rollup).at(0).ingest(batch).expect("there is room");
        }
        rollup.seal().expect("a disk that works");
        let read = |name: &str| disk.view(name).expect("it is there").bytes().to_vec();
        let names = disk.list().expect("a folder");
        let name = names.iter().find(|name| name.starts_with("segment")).expect("a segment");
        (read(name), read("manifest"))
    }

    #[test]
    fn random_and_changed_bytes_are_read_or_refused() {
        let mut rng = Rng::with_seed(14);
        for _ in 0..400 {
            for (_, mut bytes) in seeds() {
                for _ in 0..rng.usize(..4) {
                    let at = rng.usize(1..bytes.len());
                    match rng.u8(..4) {
                        0 => bytes.truncate(at.max(2)),
                        1 => bytes.insert(at, rng.u8(..)),
                        2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.usize(..5)],
                        _ => bytes[at] ^= 1 << rng.u8(..8),
                    }
                }
                rows(&bytes);
                documents(&bytes);
                files(&bytes);
            }
            let random: Vec<u8> = (0..rng.usize(..200)).map(|_| rng.u8(..)).collect();
            rows(&random);
            documents(&random);
            files(&random);
        }
    }

    /// Seeds of the fuzz targets are what this version writes. `BLESS=1` writes those that are missing.
    #[test]
    fn seeds_are_what_is_written() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
        for (seed, bytes) in seeds() {
            let path = format!("{folder}/{seed}");
            if std::env::var_os("BLESS").is_some() && !std::path::Path::new(&path).exists() {
                std::fs::write(&path, &bytes).expect("the seed can be written");
            }
            assert_eq!(std::fs::read(&path).expect("the seed is there"), bytes, "{seed}");
        }
    }
}
