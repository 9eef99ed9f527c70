//! Random schemas and changes of rows, beside a map of the keys' values.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use fastrand::Rng;
use sapwood::schema::{Precision, Schema, Type, Value};
use sapwood::{Db, Direction, Engine, Rows};
use sapwood_testkit::case;

use super::{ENGINES, create};

/// Rows by the bytes of their keys, so in the order of a scan.
type Oracle = BTreeMap<Vec<u8>, Vec<Value<'static>>>;

fn pick_type(rng: &mut Rng) -> Type {
    match rng.u8(..13) {
        0 => Type::Bool,
        1 => Type::Int([8, 16, 32, 64, 128][rng.usize(..5)]),
        2 => Type::UInt([8, 16, 32, 64, 128][rng.usize(..5)]),
        3 => Type::F32,
        4 => Type::F64,
        5 => Type::Decimal { digits: 9, scale: 2 },
        6 => Type::Decimal { digits: 30, scale: 10 },
        7 => Type::Date,
        8 => Type::Timestamp(Precision::Millis),
        9 => Type::Array(Box::new(Type::Int(16)), 3),
        10 => Type::Bytes,
        _ => Type::Text,
    }
}

fn pick_value(rng: &mut Rng, kind: &Type) -> Value<'static> {
    // Few values, so that keys meet.
    let small = rng.i8(-3..4);
    match kind {
        Type::Bool => Value::Bool(small > 0),
        Type::UInt(128) if small < 0 => Value::from(u128::MAX - u128::from(small.unsigned_abs())),
        Type::UInt(_) => Value::Int(small.unsigned_abs().into()),
        Type::Int(_) => Value::Int(small.into()),
        Type::F32 | Type::F64 => Value::Float(f64::from(small) / 2.0),
        Type::Decimal { scale, .. } => Value::Decimal { units: small.into(), scale: *scale },
        Type::Date => Value::Date(small.into()),
        Type::Timestamp(precision) => {
            Value::Timestamp { ticks: small.into(), precision: *precision }
        }
        Type::Array(item, len) => Value::Array((0..*len).map(|_| pick_value(rng, item)).collect()),
        Type::Bytes => Value::Bytes(vec![0; rng.usize(..4)].into()),
        _ => Value::text("oak\0 elm".chars().take(rng.usize(..8)).collect::<String>()),
    }
}

fn pick_column(rng: &mut Rng, schema: &Schema, column: usize) -> Value<'static> {
    let described = &schema.columns()[column];
    match described.nullable && rng.u8(..3) == 0 {
        true => Value::Null,
        false => pick_value(rng, &described.kind),
    }
}

fn pick_row(rng: &mut Rng, schema: &Schema) -> Vec<Value<'static>> {
    (0..schema.columns().len()).map(|column| pick_column(rng, schema, column)).collect()
}

fn pick_schema(rng: &mut Rng) -> Schema {
    let count = rng.usize(1..7);
    let mut builder = Schema::builder();
    let mut in_key = Vec::new();
    for number in 0..count {
        let (name, kind) = (format!("c {number}"), pick_type(rng));
        if !matches!(kind, Type::Array(..)) && rng.u8(..3) == 0 {
            in_key.push(name.clone());
        }
        builder = match rng.bool() {
            true => builder.nullable(name, kind),
            false => builder.column(name, kind),
        };
    }
    rng.shuffle(&mut in_key);
    if rng.u8(..4) == 0 {
        builder = builder.numbered();
    }
    builder.key(in_key).build().expect("a schema")
}

/// A column beside the key that can become wider, and the type that it becomes.
fn pick_wider(rng: &mut Rng, schema: &Schema) -> Option<(String, Type)> {
    let column = rng.usize(..schema.columns().len());
    if schema.key_columns().contains(&column) {
        return None;
    }
    let column = &schema.columns()[column];
    let wider = match column.kind {
        Type::Int(bits @ ..128) => Type::Int(bits * 2),
        Type::UInt(64) => match rng.bool() {
            true => Type::UInt(128),
            false => Type::Int(128),
        },
        Type::UInt(bits @ ..64) => match rng.bool() {
            true => Type::UInt(bits * 2),
            false => Type::Int(bits * 2),
        },
        Type::F32 => Type::F64,
        Type::Decimal { digits: digits @ ..38, scale } => {
            Type::Decimal { digits: rng.u8(digits + 1..=38), scale }
        }
        _ => return None,
    };
    Some((column.name.clone(), wider))
}

#[test]
fn rows_are_as_a_map_has_them() {
    case!().seeds(48, |seed| {
        ENGINES.iter().for_each(|engine| run(seed, *engine, true));
        // Opening a directory takes far longer than all changes.
        run(seed, ENGINES[seed as usize % 3], false);
    });
}

fn run(seed: u64, engine: Engine, in_memory: bool) {
    let mut rng = Rng::with_seed(seed);
    let directory = tempfile::tempdir().expect("a directory");
    let mut db = match in_memory {
        true => Db::in_memory(),
        false => Db::open(directory.path()).expect("opened"),
    };
    let mut schema = pick_schema(&mut rng);
    create(&db, "t", engine, Some(&schema)).expect("made");
    let mut rows = db.rows("t").expect("rows");
    let mut oracle = Oracle::new();
    for _ in 0..80 {
        match rng.u8(..24) {
            0 if schema.columns().len() < 12 => {
                let (name, kind) = (format!("new {}", schema.version()), pick_type(&mut rng));
                schema = schema.with_column(&name, kind.clone()).expect("a new column");
                db.add_column("t", &name, kind).expect("a new column");
                oracle.values_mut().for_each(|row| row.push(Value::Null));
            }
            1 if !in_memory => {
                drop(rows);
                match rng.bool() {
                    true => db.close().expect("closed"),
                    false => drop(db),
                }
                db = Db::open(directory.path()).expect("opened");
                rows = db.rows("t").expect("rows");
            }
            2 => {
                drop(rows);
                db.drop_table("t").expect("dropped");
                schema = pick_schema(&mut rng);
                create(&db, "t", engine, Some(&schema)).expect("made");
                rows = db.rows("t").expect("rows");
                oracle.clear();
            }
            3 => check(&rows, &oracle, engine),
            4 if schema.version() < 100 => {
                if let Some((name, kind)) = pick_wider(&mut rng, &schema) {
                    schema = schema.with_wider(&name, kind.clone()).expect("it is wider");
                    db.widen_column("t", &name, kind).expect("it is wider");
                }
            }
            _ => step(&mut rng, &rows, &schema, &mut oracle),
        }
    }
    assert_eq!(db.schema("t"), Ok(Some(schema)));
    check(&rows, &oracle, engine);
}

/// The key of a row as values.
fn key_of(schema: &Schema, row: &[Value<'static>], number: Option<u64>) -> Vec<Value<'static>> {
    let columns = schema.key_columns().iter().map(|&column| row[column].clone());
    columns.chain(number.map(Value::from)).collect()
}

fn bytes_of(rows: &Rows, row: &[Value<'_>], number: Option<u64>) -> Vec<u8> {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    rows.format().encode(row, number, &mut key, &mut value).expect("a row");
    key
}

fn step(rng: &mut Rng, rows: &Rows, schema: &Schema, oracle: &mut Oracle) {
    let row = pick_row(rng, schema);
    let is_numbered = schema.is_numbered();
    match rng.u8(..10) {
        0..=2 => {
            let number = rows.put(&row).expect("put");
            assert_eq!(number.is_some(), is_numbered);
            let replaced = oracle.insert(bytes_of(rows, &row, number), row);
            assert!(replaced.is_none() || !is_numbered, "numbers are of one row");
        }
        3 if !is_numbered => {
            let key = bytes_of(rows, &row, None);
            assert_eq!(rows.insert(&row), Ok(!oracle.contains_key(&key)));
            oracle.entry(key).or_insert(row);
        }
        4 if !is_numbered => {
            let many: Vec<_> = (0..rng.usize(..5)).map(|_| pick_row(rng, schema)).collect();
            rows.put_many(&many).expect("put");
            oracle.extend(many.into_iter().map(|row| (bytes_of(rows, &row, None), row)));
        }
        5 if is_numbered => {
            let number = rng.u64(..20);
            rows.put_at(number, &row).expect("put");
            oracle.insert(bytes_of(rows, &row, Some(number)), row);
        }
        // A key that is there, or perhaps another.
        what => {
            let picked = match oracle.len() {
                0 => None,
                len => oracle.iter().nth(rng.usize(..len)),
            };
            let (bytes, key) = match picked.filter(|_| rng.u8(..5) > 0) {
                Some((bytes, there)) => {
                    let number = rows.format().number_of(bytes);
                    (bytes.clone(), key_of(schema, there, number))
                }
                None => {
                    let number = is_numbered.then(|| rng.u64(..20));
                    (bytes_of(rows, &row, number), key_of(schema, &row, number))
                }
            };
            match what {
                6 => {
                    assert_eq!(rows.remove(&key), Ok(oracle.remove(&bytes).is_some()));
                }
                7 => {
                    let column = rng.usize(..row.len());
                    if schema.key_columns().contains(&column) {
                        return;
                    }
                    let value = &row[column];
                    let is_there = rows.update_column(&key, column, value).expect("changed");
                    assert_eq!(is_there, oracle.contains_key(&bytes));
                    if let Some(there) = oracle.get_mut(&bytes) {
                        there[column] = value.clone();
                    }
                }
                8 => {
                    let mut new = row;
                    for (&column, value) in schema.key_columns().iter().zip(&key) {
                        new[column] = value.clone();
                    }
                    let changed = rows.update(&key, |row| row.clone_from(&new));
                    assert_eq!(changed, Ok(oracle.contains_key(&bytes)));
                    if let Some(there) = oracle.get_mut(&bytes) {
                        *there = new;
                    }
                }
                _ => {
                    assert_eq!(rows.get(&key), Ok(oracle.get(&bytes).cloned()));
                    assert_eq!(rows.contains_key(&key), Ok(oracle.contains_key(&bytes)));
                }
            }
        }
    }
}

fn check(rows: &Rows, oracle: &Oracle, engine: Engine) {
    let mut found = Vec::new();
    let walked = rows.for_each(|row| {
        let values = row.to_values().expect("a row");
        for (column, value) in values.iter().enumerate() {
            assert_eq!(row.get(column).as_ref(), Ok(value));
        }
        found.push((row.key().to_vec(), values));
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(walked, Ok(ControlFlow::Continue(())));
    if engine == Engine::Hash {
        found.sort_by(|one, other| one.0.cmp(&other.0));
    }
    let expected: Vec<_> = oracle.iter().map(|(key, row)| (key.clone(), row.clone())).collect();
    assert_eq!(found, expected);
    if engine == Engine::Hash || rows.schema().key_columns().is_empty() {
        return;
    }
    // The rows with the first column of the key that the middle one has.
    let Some((_, middle)) = oracle.iter().nth(oracle.len() / 2) else { return };
    let column = rows.schema().key_columns()[0];
    let first = [middle[column].clone()];
    let mut with_first = Vec::new();
    let scanned = rows.scan(first.clone()..=first.clone(), Direction::Descending, |row| {
        with_first.push(row.to_values().expect("a row"));
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(scanned, Ok(ControlFlow::Continue(())));
    let expected = oracle.values().rev().filter(|row| row[column] == first[0]);
    assert_eq!(with_first, expected.cloned().collect::<Vec<_>>());
}
