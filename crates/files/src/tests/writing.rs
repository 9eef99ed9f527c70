//! Rows that are written, and read again.

use sapwood_schema::{Precision, Schema, Type, Value};

use super::{Files, open, rows};
use crate::{Error, Existing, FileSink, FileWriter, Format, Packing, ReadOptions};

/// A row of every type, and one of nulls.
fn all_types() -> (Schema, Vec<Vec<Value<'static>>>) {
    let schema: Schema = "a:bool?, b:i8?, c:i16?, d:i32?, e:i64?, f:u8?, g:u16?, h:u32?, i:u64?, j:f32?, k:f64?, \
                          l:decimal(10,2)?, m:date?, n:timestamp(ms)?, o:text?, p:i128?, q:[f64; 2]?"
        .parse()
        .expect("a schema");
    let row = vec![
        Value::Bool(true),
        Value::Int(-8),
        Value::Int(300),
        Value::Int(-70_000),
        Value::Int(i64::MIN.into()),
        Value::Int(200),
        Value::Int(65_000),
        Value::Int(4_000_000_000),
        Value::Int(u64::MAX.into()),
        Value::Float(0.5),
        Value::Float(-1.25e300),
        Value::Decimal { units: 12_345, scale: 2 },
        Value::Date(15_706),
        Value::Timestamp { ticks: 1_357_000_000_123, precision: Precision::Millis },
        Value::text("a \"b\", c"),
        Value::Int(10_i128.pow(30)),
        Value::Array(vec![Value::Float(1.5), Value::Float(-2.0)]),
    ];
    let nulls = vec![Value::Null; row.len()];
    (schema, vec![row.clone(), nulls, row])
}

fn formats() -> Vec<Format> {
    let mut formats = vec![Format::Csv, Format::Jsonl, Format::MessagePack];
    if cfg!(feature = "columnar") {
        formats.extend([Format::Parquet, Format::Arrow]);
    }
    formats
}

#[test]
fn rows_come_back_from_every_format() {
    let files = Files::new();
    let (schema, all) = all_types();
    let columns = || schema.columns().iter().map(|column| (&column.name[..], &column.kind));
    for format in formats() {
        let path = files.path(&format!("a.{}", format.name()));
        let sink = FileSink::file(&path, Packing::Plain, Existing::Keep).expect("a place");
        let mut writer = FileWriter::new(format, columns(), sink).expect("begun");
        all.iter().for_each(|row| writer.write(row).expect("written"));
        writer.finish().expect("ended");
        // Formats without types are told them.
        let types: Vec<(String, Type)> = match format.is_columnar() {
            true => Vec::new(),
            false => columns().map(|(name, kind)| (name.to_owned(), kind.clone())).collect(),
        };
        let source = open(&path, &ReadOptions { types, ..ReadOptions::default() }).expect("rows");
        let kinds: Vec<&Type> = source.columns().iter().map(|column| &column.kind).collect();
        let shown = |kind: &Type| match (kind, format.is_columnar()) {
            (Type::Int(128), true) => Type::Decimal { digits: 38, scale: 0 },
            (kind, _) => kind.clone(),
        };
        let expected: Vec<Type> = columns().map(|(_, kind)| shown(kind)).collect();
        assert_eq!(kinds, expected.iter().collect::<Vec<_>>(), "{format:?}");
        let line = |row: &Vec<Value<'_>>| {
            row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|")
        };
        let expected: Vec<String> = all.iter().map(line).collect();
        assert_eq!(rows(&source).expect("rows"), expected, "{format:?}");
    }
}

#[test]
fn files_are_there_whole_or_not_at_all() {
    let files = Files::new();
    let path = files.path("a.csv");
    let begin = |existing| FileSink::file(&path, Packing::Plain, existing);
    let columns = [("a", &Type::Int(64))];
    let sink = begin(Existing::Keep).expect("a place");
    let mut writer = FileWriter::new(Format::Csv, columns.into_iter(), sink).expect("begun");
    writer.write(&[Value::Int(1)]).expect("written");
    assert!(matches!(begin(Existing::Keep), Err(Error::Write { .. })), "another one writes it");
    drop(writer);
    assert_eq!(std::fs::read_dir(files.path("")).expect("a folder").count(), 0);
    files.write("a.csv", "a\n");
    assert!(matches!(begin(Existing::Keep), Err(Error::Exists { path: there }) if there == path));
    assert!(begin(Existing::Replace).is_ok());
}
