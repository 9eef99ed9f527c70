//! Ordered tables that are open to be read, and lie in their snapshots: they answer as those in memory do.

mod changed;

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::thread;

use fastrand::Rng;
use sapwood::schema::{Precision, Type, Value};
use sapwood::{Db, DbOptions, Direction, Error, OrderedTable, OrderedTableOptions};
use sapwood_testkit::case;
use tempfile::TempDir;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn directory() -> TempDir {
    TempDir::new().expect("a directory for the test")
}

fn ordered(db: &Db) -> OrderedTable {
    db.ordered_table("t").expect("it is there")
}

fn scanned(
    table: &OrderedTable,
    range: (Bound<&[u8]>, Bound<&[u8]>),
    direction: Direction,
    most: usize,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut seen = Vec::new();
    let _ended = table
        .scan(range, direction, |key, value| {
            seen.push((key.to_vec(), value.to_vec()));
            if seen.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .expect("read");
    seen
}

/// Reads one thing or another of the table, and compares.
fn expect_some(table: &OrderedTable, all: &Entries, rng: &mut Rng) {
    let keys: Vec<&Vec<u8>> = all.keys().collect();
    let mut key = match keys.is_empty() {
        true => vec![7],
        false => keys[rng.usize(..keys.len())].clone(),
    };
    match rng.u8(..4) {
        0 => key.push(0),
        1 => key.truncate(1),
        2 => *key.last_mut().expect("keys are not empty") ^= 1,
        _ => {}
    }
    assert_eq!(table.get(&key).expect("read").as_ref(), all.get(&key));
    assert_eq!(table.contains_key(&key), Ok(all.contains_key(&key)));
    let mut bound = |key: &[u8]| match rng.u8(..3) {
        0 => Bound::Included(key.to_vec()),
        1 => Bound::Excluded(key.to_vec()),
        _ => Bound::Unbounded,
    };
    let other = keys.first().map_or(vec![1], |key| (*key).clone());
    let (low, high) = if other <= key { (&other, &key) } else { (&key, &other) };
    let (begin, end) = (bound(low), bound(high));
    if let (Bound::Excluded(begin), Bound::Excluded(end)) = (&begin, &end)
        && begin == end
    {
        return; // No range of a map, and empty here.
    }
    let most = rng.usize(1..20_000);
    let bytes = |bound: &Bound<Vec<u8>>| match bound {
        Bound::Included(key) => Bound::Included(key.clone()),
        Bound::Excluded(key) => Bound::Excluded(key.clone()),
        Bound::Unbounded => Bound::Unbounded,
    };
    let range = (bytes(&begin), bytes(&end));
    let there = all.range::<Vec<u8>, _>(range).map(|(key, value)| (key.clone(), value.clone()));
    let range = (begin.as_ref().map(|key| &key[..]), end.as_ref().map(|key| &key[..]));
    let up: Vec<_> = there.clone().take(most).collect();
    assert!(scanned(table, range, Direction::Ascending, most) == up);
    let down: Vec<_> = there.rev().take(most).collect();
    assert!(scanned(table, range, Direction::Descending, most) == down);
}

/// `SEEDS=n` tries n times as many.
#[test]
fn entries_are_found_in_their_snapshot() {
    case!().seeds(12, |seed| {
        let mut rng = Rng::with_seed(seed);
        let path = directory();
        let db = Db::open(path.path()).expect("new");
        let options = OrderedTableOptions::default();
        let table = db.create_ordered_table("t", options).expect("made");
        let mut all = Entries::new();
        let (count, long) = (rng.usize(..30_000), rng.usize(1..40));
        let width = rng.bool().then_some(8);
        for _ in 0..count {
            let key: Vec<u8> =
                (0..width.unwrap_or(rng.usize(1..long + 1))).map(|_| rng.u8(..)).collect();
            let value = match rng.u8(..10) {
                0 => vec![rng.u8(..); rng.usize(..2_000)],
                _ => vec![rng.u8(..); width.unwrap_or(rng.usize(..40))],
            };
            all.insert(key, value);
        }
        let entries: Vec<_> = all.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        table.put_many(&entries).expect("room");
        drop(table);
        db.close().expect("closed");
        let open = || Db::open_read_only(path.path()).expect("it opens");
        // Each has nothing in memory yet.
        for _ in 0..12 {
            expect_some(&ordered(&open()), &all, &mut rng);
        }
        let reader = open();
        let table = ordered(&reader);
        assert_eq!(table.get([0; 9]), Ok(all.get(&[0; 9][..]).cloned()));
        assert_eq!(table.len(), Ok(all.len()));
        let stats = table.stats();
        let bytes = all.keys().map(Vec::len).sum::<usize>() as u64;
        assert_eq!((stats.entries, stats.key_bytes), (all.len() as u64, bytes));
        assert!(all.is_empty() || stats.reserved_bytes == 0, "nothing is in memory yet");
        // Neighbours want all of it in memory; several threads ask at once.
        thread::scope(|scope| {
            for _ in 0..4 {
                let seed = rng.u64(..);
                let (table, all) = (&table, &all);
                scope.spawn(move || {
                    let first = table.first().expect("read").map(|entry| entry.into_pair());
                    assert_eq!(
                        first.as_ref().map(|(key, value)| (key, value)),
                        all.first_key_value()
                    );
                    (0..4).for_each(|_| expect_some(table, all, &mut Rng::with_seed(seed)));
                });
            }
        });
        let owned: Vec<_> = table.range(..).owned().collect::<Result<_, _>>().expect("read");
        assert!(owned.into_iter().eq(all.clone()));
        table.check().expect("a sound table");
        assert!(matches!(table.put("k", "v"), Err(Error::ReadOnly { .. })));
    });
}

/// Rows of every version, and entries that are no rows, in blocks that have their columns apart and in others.
#[test]
fn statements_have_the_same_answers_in_memory_and_in_place() {
    let path = directory();
    let db = Db::open(path.path()).expect("new");
    let schema = "day:date, name:text?, n:i16?, price:decimal(9,2)?, note:text, code:bytes?, town:text, \
         key(day, name, town)";
    let schema = schema.parse().expect("a schema");
    let options = OrderedTableOptions::default().schema(schema);
    db.create_ordered_table("t", options).expect("made");
    let mut rng = Rng::with_seed(3);
    let mut put = |from: i32, to: i32, wide: bool| {
        let rows = db.rows("t").expect("rows");
        for number in from..to {
            let name = match number % 7 {
                0 => Value::Null,
                1 => "a\0b".into(),
                _ => format!("name {}", number % 100).into(),
            };
            let mut row = vec![
                Value::Date(number / 3),
                name,
                if rng.u8(..5) == 0 { Value::Null } else { rng.i16(..).into() },
                Value::Decimal { units: rng.i32(-999_999_999..999_999_999).into(), scale: 2 },
                "x".repeat(rng.usize(..9)).into(),
                Value::Null,
                // Blocks of the first rows have nothing but what lies in their pieces as it is.
                if number > 20_000 && number % 501 == 0 {
                    "a\0"
                } else {
                    ["", "Rome"][number as usize % 2]
                }
                .into(),
            ];
            if rng.bool() {
                row[5] = Value::Bytes(number.to_le_bytes().to_vec().into());
            }
            if wide {
                row[2] = (i64::from(number) << 20).into();
                row.push(f64::from(number).into());
            }
            rows.put(&row).expect("room");
        }
    };
    put(0, 30_000, false);
    db.add_column("t", "late", Type::F64).expect("a column");
    db.widen_column("t", "n", Type::Int(64)).expect("wider");
    put(29_000, 50_000, true);
    let questions = [
        "select count(*), count(name), sum(n), sum(price), min(note), max(code), sum(late) from t",
        "select name, count(*), sum(n), max(day) from t group by name order by name",
        "select * from t where day between date '1978-03-20' and date '1978-03-30' order by day, name, n",
        "select day, name, note from t where day = date '1970-01-13' order by name",
        "select count(*) from t where n is null and late is null",
        "select town, count(*), max(octet_length(town)) from t where note <> '' group by town order by town",
        "select town, name, n from t where octet_length(town) = 2 and n > 0 order by day, name",
        "select max(day), min(name) from t where day >= date '1997-05-01'",
        "select note, count(*) from t where code is not null group by note order by 2 desc, 1 limit 3",
    ];
    let answers = |db: &Db| -> Vec<String> {
        let ask = |question: &&str| format!("{:?}", db.sql(question).expect("an answer"));
        questions.iter().map(ask).collect()
    };
    let in_memory = answers(&db);
    db.close().expect("closed");
    let expect_answers = |in_memory: &[String]| {
        let reader = Db::open_read_only(path.path()).expect("it opens");
        let table = ordered(&reader);
        assert!(answers(&reader) == in_memory);
        assert_eq!(table.stats().reserved_bytes, 0, "no statement needs all in memory");
        table.first().expect("read");
        assert!(table.stats().reserved_bytes > 0);
        assert!(answers(&reader) == in_memory);
    };
    expect_answers(&in_memory);
    // Some rows of some blocks are others by now, and some are of another version.
    let db = Db::open_with(path.path(), DbOptions::default().lazy()).expect("it opens");
    for statement in [
        "update t set note = 'new', late = 1.5 where day = date '1978-03-21'",
        "delete from t where day = date '1970-01-13'",
        "update t set price = 0.01 where day > date '2014-01-01'",
        "insert into t (day, name, note, town) values (date '1978-03-22', 'inserted', '', 'Rome'), \
         (date '1900-01-01', null, 'first', '')",
    ] {
        db.sql(statement).expect("done");
    }
    db.add_column("t", "last", Type::Bool).expect("a column");
    db.sql("update t set last = true where day = date '1978-03-23'").expect("done");
    let changed = answers(&db);
    assert_eq!((0..4).filter(|at| changed[*at] == in_memory[*at]).count(), 0);
    assert!(ordered(&db).stats().reserved_bytes > 0, "what was changed is in memory");
    db.sync().expect("synced");
    expect_answers(&changed);
    drop(db);
    expect_answers(&changed);
    assert!(answers(&Db::open(path.path()).expect("it opens")) == changed);
}

/// Columns of each type with few values, null ones among them, in more columns than a byte has bits.
#[test]
fn columns_of_few_values_are_the_same_in_memory_and_in_place() {
    let path = directory();
    let db = Db::open(path.path()).expect("new");
    let types = [
        "bool",
        "i8",
        "u16",
        "i32",
        "i64",
        "u64",
        "i128",
        "u128",
        "f32",
        "f64",
        "decimal(9,2)",
        "decimal(30,2)",
        "date",
        "timestamp(us)",
        "text",
        "bytes",
    ];
    let columns = types.iter().enumerate().map(|(at, kind)| format!("c{at}:{kind}?, "));
    let columns: String = columns.collect();
    let schema = format!("id:i32, group:text, part:i16, {columns}key(group, part, id)");
    let schema = schema.parse().expect("a schema");
    let options = OrderedTableOptions::default().schema(schema);
    db.create_ordered_table("t", options).expect("made");
    let mut rng = Rng::with_seed(7);
    let rows = db.rows("t").expect("rows");
    for id in 0..20_000 {
        let group = ["a", "b", "a\0"][rng.usize(..3)];
        let mut row: Vec<Value<'_>> = vec![id.into(), group.into(), i64::from(rng.u8(..5)).into()];
        // Few combinations of nulls, too.
        let nulls = rng.u8(..20);
        for at in 0..types.len() as u8 {
            let pick = rng.u8(..5);
            let number = i128::from(pick) - 2;
            row.push(match at {
                _ if nulls == at => Value::Null,
                0 => (pick == 0).into(),
                2 | 5 | 7 => Value::Int(pick.into()),
                1 | 3 | 4 | 6 => Value::Int(number),
                8 | 9 => Value::Float(number as f64 / 4.0),
                10 | 11 => Value::Decimal { units: number, scale: 2 },
                12 => Value::Date(pick.into()),
                13 => Value::Timestamp { ticks: pick.into(), precision: Precision::Micros },
                14 => {
                    "a text of more than sixteen bytes"[..usize::from(pick) * 8].to_owned().into()
                }
                _ => Value::Bytes(vec![pick; pick.into()].into()),
            });
        }
        rows.put(&row).expect("room");
    }
    drop(rows);
    let list = |form: &str| {
        let columns = (0..types.len()).map(|at| form.replace("{}", &format!("c{at}")));
        columns.collect::<Vec<_>>().join(", ")
    };
    let questions = [
        format!("select {} from t", list("count({}), count(distinct {}), min({}), max({})")),
        format!("select id, {} from t where id % 97 = 0 order by id", list("{}")),
        "select \"group\", part, c14, count(*), sum(c1), sum(c5), sum(c6), sum(c7), sum(c9), sum(c11) \
         from t group by 1, 2, 3 order by 1, 2, 3"
            .to_owned(),
        "select c0, c12, c15, count(*), sum(c10), max(c13) from t group by 1, 2, 3 order by 1, 2, 3"
            .to_owned(),
        "select count(*), sum(id) from t where c14 like '%more%' and c0 is not null and c3 > 0"
            .to_owned(),
    ];
    let answers = |db: &Db| -> Vec<String> {
        let ask = |question: &String| format!("{:?}", db.sql(question).expect("an answer"));
        questions.iter().map(ask).collect()
    };
    let in_memory = answers(&db);
    db.close().expect("closed");
    let reader = Db::open_read_only(path.path()).expect("it opens");
    for (in_memory, in_place) in in_memory.iter().zip(answers(&reader)) {
        assert_eq!(in_memory, &in_place);
    }
    assert_eq!(ordered(&reader).stats().reserved_bytes, 0, "no statement needs all in memory");
}

/// A program that reads and reads has the entries in memory soon.
#[test]
fn many_reads_bring_the_entries_into_memory() {
    let path = directory();
    let db = Db::open(path.path()).expect("new");
    let table = db.create_ordered_table("t", OrderedTableOptions::default()).expect("made");
    let key = |number: u32| number.wrapping_mul(0x9E37_79B9).to_be_bytes();
    for number in 0..40_000_u32 {
        table.put(key(number), number.to_le_bytes()).expect("room");
    }
    drop(table);
    db.close().expect("closed");
    let reader = Db::open_read_only(path.path()).expect("it opens");
    let table = ordered(&reader);
    let get = |number: u32| {
        assert_eq!(table.get(key(number)), Ok(Some(number.to_le_bytes().to_vec())));
    };
    // Whatever lies where, keys that no table has are refused.
    let refused = || {
        for len in [0, sapwood::KEY_BYTES_MAX + 1] {
            let error = table.get(vec![1; len]).expect_err("no key is so long");
            assert!(matches!(error, Error::OrderedEngine { .. }), "{len}: {error:?}");
            assert_eq!(table.contains_key(vec![1; len]).err(), Some(error));
        }
    };
    (0..5).for_each(get);
    refused();
    assert_eq!(table.stats().reserved_bytes, 0);
    (0..1_000).for_each(get);
    refused();
    assert!(table.stats().reserved_bytes > 0);
}

/// Each table in place has a file open.
#[test]
fn a_directory_has_more_tables_than_a_process_may_have_files() {
    let path = directory();
    let db = Db::open(path.path()).expect("new");
    let name = |number: usize| format!("t{number}");
    for number in 0..300 {
        let options = OrderedTableOptions::default();
        let table = db.create_ordered_table(&name(number), options).expect("made");
        table.put([1], number.to_le_bytes()).expect("room");
    }
    db.close().expect("closed");
    let reader = Db::open_read_only(path.path()).expect("it opens");
    let mut in_place = 0;
    for number in 0..300 {
        let table = reader.ordered_table(&name(number)).expect("it is there");
        assert_eq!(table.get([1]), Ok(Some(number.to_le_bytes().to_vec())));
        in_place += u32::from(table.stats().pages == "none");
    }
    assert_eq!(in_place, 128);
}

/// What a file has wrong is told when it is read, and names it.
#[test]
fn damage_is_told_by_what_reads_it() {
    let path = directory();
    let db = Db::open(path.path()).expect("new");
    let table = db.create_ordered_table("t", OrderedTableOptions::default()).expect("made");
    let mut rng = Rng::with_seed(5);
    let values: Vec<Vec<u8>> = (0..20_000).map(|_| (0..40).map(|_| rng.u8(..)).collect()).collect();
    for (number, value) in values.iter().enumerate() {
        table.put((number as u32).to_be_bytes(), value).expect("room");
    }
    drop(table);
    db.close().expect("closed");
    let log = path.path().join("log");
    let mut names =
        std::fs::read_dir(&log).expect("listed").map(|file| file.expect("listed").path());
    let is_snapshot = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).expect("read");
        path.to_string_lossy().contains("snapshot-") && bytes.len() > 20_000
    };
    let file = names.find(is_snapshot).expect("there is one");
    let good = std::fs::read(&file).expect("read");
    let mut refused = 0;
    for at in (0..good.len()).step_by(good.len() / 50) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        std::fs::write(&file, &bad).expect("written");
        let told = |error: Error| {
            assert!(matches!(error, Error::Log { .. }), "{error:?}");
            assert!(error.to_string().contains("bring it back from a copy"), "{error}");
        };
        match Db::open_read_only(path.path()) {
            Err(error) => told(error),
            Ok(reader) => {
                let table = ordered(&reader);
                let mut wrong = 0;
                for number in (0..20_000).step_by(500) {
                    match table.get((number as u32).to_be_bytes()) {
                        Ok(value) => assert_eq!(value.as_ref(), Some(&values[number])),
                        Err(error) => {
                            told(error);
                            wrong += 1;
                        }
                    }
                }
                // One block of three, or none that is read.
                assert!(wrong < 20, "{wrong} of 40");
                refused += u32::from(wrong > 0);
                let all = table.range(..).collect::<Result<Vec<_>, _>>().map(|all| all.len());
                match all {
                    Ok(all) => assert_eq!((all, wrong), (20_000, 0)),
                    Err(error) => told(error),
                }
            }
        }
    }
    assert!(refused > 20, "{refused}");
}
