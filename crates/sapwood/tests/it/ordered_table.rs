//! Every operation of the engine is reachable through a table, with its meaning kept.

use std::ops::ControlFlow;

use sapwood::{
    Compute, Computed, Db, Direction, Error, OrderedEngineError, OrderedTable, OrderedTableOptions,
    Upsert, VALUE_BYTES_MAX,
};

fn table_of(keys: &[&str]) -> OrderedTable {
    let table = Db::in_memory()
        .create_ordered_table("t", OrderedTableOptions::default())
        .expect("a free name");
    for key in keys {
        table.put(key.as_bytes(), key.to_uppercase().as_bytes()).expect("put");
    }
    table
}

#[test]
fn changes_of_one_key_answer_what_they_did() {
    let table = table_of(&[]);
    assert_eq!(table.put(b"k", b"1"), Ok(()));
    assert_eq!(table.put(b"k", b"2"), Ok(()));
    assert_eq!(table.put_if_absent(b"k", b"3"), Ok(false));
    assert_eq!(table.put_if_absent(b"l", b"3"), Ok(true));
    assert_eq!(table.get(b"k"), Ok(Some(b"2".to_vec())));
    assert_eq!(table.get_with(b"l", <[u8]>::len), Ok(Some(1)));
    assert_eq!(table.contains_key(b"m"), Ok(false));
    assert_eq!(table.update(b"k", |value| value.extend_from_slice(b"2")), Ok(Some(Ok(()))));
    assert_eq!(table.get(b"k"), Ok(Some(b"22".to_vec())));
    assert_eq!(table.update(b"m", |_| ()), Ok(None));
    assert_eq!(table.put_if_absent_or_update(b"m", b"new", |_| ()), Ok(Upsert::Inserted));
    assert_eq!(
        table.put_if_absent_or_update(b"m", b"new", |value| value.len()),
        Ok(Upsert::Updated(3))
    );
    assert_eq!(
        table.compute(b"m", |value| {
            assert_eq!(value, Some(&b"new"[..]));
            Compute::Replace(b"newer".to_vec())
        }),
        Ok(Computed::Replaced)
    );
    assert_eq!(table.remove_with(b"m", <[u8]>::to_vec), Ok(Some(b"newer".to_vec())));
    assert_eq!(table.compute(b"m", |_| Compute::Remove), Ok(Computed::Absent));
    assert_eq!(table.remove(b"l"), Ok(true));
    assert_eq!(table.remove(b"l"), Ok(false));
    assert_eq!(table.len(), Ok(1));
    table.check().expect("a sound table");
}

#[test]
fn neighbours() {
    let table = table_of(&["b", "d", "f"]);
    let key = |entry: sapwood::Result<Option<sapwood::Entry<'_>>>| {
        entry.expect("no error").map(|entry| String::from_utf8_lossy(entry.key()).into_owned())
    };
    assert_eq!(key(table.first()).as_deref(), Some("b"));
    assert_eq!(key(table.last()).as_deref(), Some("f"));
    assert_eq!(key(table.floor(b"d")).as_deref(), Some("d"));
    assert_eq!(key(table.lower(b"d")).as_deref(), Some("b"));
    assert_eq!(key(table.ceiling(b"d")).as_deref(), Some("d"));
    assert_eq!(key(table.higher(b"d")).as_deref(), Some("f"));
    assert_eq!(key(table.lower(b"b")), None);
    assert_eq!(key(table.higher(b"f")), None);
    assert_eq!(table.pop_first(), Ok(Some((b"b".to_vec(), b"B".to_vec()))));
    assert_eq!(table.pop_last(), Ok(Some((b"f".to_vec(), b"F".to_vec()))));
    table.clear().expect("clear");
    assert_eq!(table.pop_last(), Ok(None));
    assert_eq!(table.is_empty(), Ok(true));
}

#[test]
fn ranges_and_scans_agree_both_ways() {
    let table = table_of(&["a", "b", "c", "d"]);
    let bounds = &b"b"[..]..&b"d"[..];
    let pairs = |keys: &[&str]| -> Vec<(Vec<u8>, Vec<u8>)> {
        keys.iter().map(|key| (key.as_bytes().to_vec(), key.to_uppercase().into_bytes())).collect()
    };
    for (direction, expected) in
        [(Direction::Ascending, pairs(&["b", "c"])), (Direction::Descending, pairs(&["c", "b"]))]
    {
        let mut scanned = Vec::new();
        let end = table.scan(bounds.clone(), direction, |key, value| {
            scanned.push((key.to_vec(), value.to_vec()));
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(end, Ok(ControlFlow::Continue(())));
        assert_eq!(scanned, expected);
        let range = table.range(bounds.clone()).owned();
        let ranged: sapwood::Result<Vec<_>> = match direction {
            Direction::Ascending => range.collect(),
            Direction::Descending => range.rev().collect(),
        };
        assert_eq!(ranged, Ok(expected));
    }
    let mut keys = 0;
    let end = table.scan_keys(.., Direction::Ascending, |key| {
        keys += 1;
        if key == b"b" { ControlFlow::Break("found") } else { ControlFlow::Continue(()) }
    });
    assert_eq!((end, keys), (Ok(ControlFlow::Break("found")), 2));
}

#[test]
fn batches() {
    let table = table_of(&["a"]);
    assert_eq!(table.put_many(&[("a", "1"), ("b", "2"), ("b", "3")]), Ok(()));
    let mut values = vec![None; 3];
    table
        .get_many(&["b", "x", "a"], |index, value| values[index] = value.map(<[u8]>::to_vec))
        .expect("good keys");
    assert_eq!(values, [Some(b"3".to_vec()), None, Some(b"1".to_vec())]);
    let error = table.put_many(&[("c", "1"), ("", "2"), ("d", "3")]).expect_err("an empty key");
    assert!(matches!(
        &error,
        Error::OrderedBatch { done: 1, cause: OrderedEngineError::KeyLength { len: 0 }, .. }
    ));
    assert!(error.to_string().contains("after 1 entries"), "{error}");
    assert_eq!(table.contains_key(b"c"), Ok(true));
    assert_eq!(table.contains_key(b"d"), Ok(false));
}

#[test]
fn lengths_beyond_the_limits_are_refused_and_change_nothing() {
    let table = table_of(&["a"]);
    let long_key = vec![b'k'; sapwood::KEY_BYTES_MAX + 1];
    for result in [
        table.put(&long_key, b"").map(drop),
        table.get(&long_key).map(drop),
        table.remove(&long_key).map(drop),
        table.update(&long_key, |_| ()).map(drop),
    ] {
        let error = result.expect_err("a key beyond the limit");
        assert_eq!(error.ordered_engine(), Some(&OrderedEngineError::KeyLength { len: 65_537 }));
        assert!(error.to_string().starts_with("table `t`: "), "{error}");
    }
    // Untouched zero pages: the length is refused before a byte is read.
    let long_value = vec![0; VALUE_BYTES_MAX + 1];
    let error = table.put(b"a", &long_value).expect_err("a value beyond the limit");
    assert!(matches!(error.ordered_engine(), Some(OrderedEngineError::ValueLength { .. })));
    assert_eq!(table.get(b"a"), Ok(Some(b"A".to_vec())));
    assert_eq!(table.put(&long_key[1..], b""), Ok(()));
}

#[test]
fn handles_are_shared_between_threads() {
    fn is_shared<T: Send + Sync + Clone + 'static>() {}
    is_shared::<Db>();
    is_shared::<OrderedTable>();
    let table = table_of(&[]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let table = table.clone();
            scope.spawn(move || {
                for _ in 0..1000 {
                    table
                        .put_if_absent_or_update(b"sum", 1_u64.to_le_bytes(), |value| {
                            let sum = u64::from_le_bytes((**value).try_into().expect("8 bytes"));
                            value.copy_from_slice(&(sum + 1).to_le_bytes());
                        })
                        .expect("an update waits for others of its key");
                }
            });
        }
    });
    assert_eq!(table.get(b"sum"), Ok(Some(4000_u64.to_le_bytes().to_vec())));
}

#[test]
fn debug_forms_name_the_table() {
    let table = table_of(&["a"]);
    assert_eq!(format!("{table:?}"), "OrderedTable { name: \"t\", entries: 1, .. }");
    assert_eq!(format!("{:?}", table.range(..)), "Range { table: \"t\", .. }");
    let mut dump = Vec::new();
    table.dump(&mut dump).expect("a vector takes everything");
    assert!(!dump.is_empty());
}
