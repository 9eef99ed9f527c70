//! Every operation of the hash engine is reachable through a hash table, with its meaning kept.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sapwood::{Db, Error, HashEngineError, HashTable, HashTableOptions, RecordLayout, Upsert};

fn table_of(keys: &[&str]) -> HashTable {
    let db = Db::in_memory();
    let table = db.create_hash_table("t", HashTableOptions::default()).expect("a free name");
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
    let grown = table.update(b"k", |value| value.extend_from_slice(b"2"));
    assert_eq!(grown, Ok(Some(Ok(()))));
    assert_eq!(table.get(b"k"), Ok(Some(b"22".to_vec())));
    assert_eq!(table.update(b"m", |_| ()), Ok(None));
    assert_eq!(table.put_if_absent_or_update(b"m", b"new", |_| ()), Ok(Upsert::Inserted));
    let updated = table.put_if_absent_or_update(b"m", b"new", |value| value.len());
    assert_eq!(updated, Ok(Upsert::Updated(3)));
    assert_eq!(table.compare_and_put(b"m", b"old", b"newer"), Ok(false));
    assert_eq!(table.compare_and_put(b"m", b"new", b"newer"), Ok(true));
    assert_eq!(table.compare_and_put(b"x", b"", b"newer"), Ok(false));
    assert_eq!(table.get(b"m"), Ok(Some(b"newer".to_vec())));
    assert_eq!(table.remove(b"l"), Ok(true));
    assert_eq!(table.remove(b"l"), Ok(false));
    assert_eq!((table.len(), table.len(), table.len_estimate()), (Ok(2), Ok(2), 2));
    table.clear().expect("clear");
    assert_eq!((table.is_empty(), table.len()), (Ok(true), Ok(0)));
    table.check().expect("a sound table");
}

#[test]
fn counters_add_and_refuse_what_is_none() {
    let table = table_of(&["name"]);
    assert_eq!(table.add(b"c", i64::MAX - 1), Ok(i64::MAX - 1));
    assert_eq!(table.add(b"c", 1), Ok(i64::MAX));
    let error = table.add(b"c", 1).expect_err("beyond i64");
    assert_eq!(error.hash_engine(), Some(&HashEngineError::Overflow { value: i64::MAX, delta: 1 }));
    assert_eq!(table.add(b"c", i64::MIN), Ok(-1));
    let error = table.add(b"name", 1).expect_err("no counter");
    assert_eq!(error.hash_engine(), Some(&HashEngineError::NotACounter { len: 4 }));
    assert!(error.to_string().starts_with("table `t`: "), "{error}");
    assert_eq!(error.ordered_engine(), None);
}

#[test]
fn reading_a_counter_makes_none() {
    let options = HashTableOptions::default();
    for options in [options.clone(), options.layout(RecordLayout::Fixed8)] {
        let table = Db::in_memory().create_hash_table("t", options).expect("a free name");
        let [here, nowhere] = [b"counter1", b"counter2"];
        table.add(here, -3).expect("add");
        assert_eq!(table.get_counter(here), Ok(Some(-3)));
        assert_eq!(table.get_counter(nowhere), Ok(None));
        assert_eq!((table.contains_key(nowhere), table.len()), (Ok(false), Ok(1)));
    }
    let error = table_of(&["name"]).get_counter(b"name").expect_err("no counter");
    assert_eq!(error.hash_engine(), Some(&HashEngineError::NotACounter { len: 4 }));
    assert!(error.to_string().starts_with("table `t`: "), "{error}");
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
    let updated = table.update_many(&["a", "x", "b"], |index, value| {
        value[0] += u8::try_from(index).expect("three keys");
    });
    assert_eq!(updated, Ok(2));
    assert_eq!(table.get(b"b"), Ok(Some(b"5".to_vec())));
    table.add_many(&[("n", 1), ("m", 10), ("n", -3)]).expect("counters");
    assert_eq!(table.add(b"n", 0), Ok(-2));
    let error = table.put_many(&[("c", "1"), ("", "2"), ("d", "3")]).expect_err("an empty key");
    assert!(matches!(
        &error,
        Error::HashBatch { done: 1, cause: HashEngineError::KeyLength { len: 0, .. }, .. }
    ));
    assert!(error.to_string().contains("after 1 entries"), "{error}");
    assert_eq!(table.contains_key(b"c"), Ok(true));
    assert_eq!(table.contains_key(b"d"), Ok(false));
}

fn walked(end: sapwood::Result<ControlFlow<()>>) {
    assert_eq!(end, Ok(ControlFlow::Continue(())));
}

#[test]
fn walks_see_every_entry_once() {
    let keys: Vec<String> = (0..1000).map(|number| format!("k{number}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let table = table_of(&keys);
    let expected: BTreeMap<Vec<u8>, Vec<u8>> =
        keys.iter().map(|key| (key.as_bytes().to_vec(), key.to_uppercase().into_bytes())).collect();
    type Visit<'v> = &'v mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;
    let snapshot = table.snapshot().expect("a moment");
    table.put(b"later", b"").expect("put");
    table.remove(b"later").expect("remove");
    let walks: [(&str, &dyn Fn(Visit<'_>)); 5] = [
        ("for_each", &|visit| walked(table.for_each(visit))),
        ("for_each_part", &|visit| {
            (0..3).for_each(|part| walked(table.for_each_part(part, 3, &mut *visit)));
        }),
        ("scan_log", &|visit| walked(table.scan_log(visit))),
        ("snapshot", &|visit| walked(snapshot.scan(visit))),
        ("snapshot parts", &|visit| {
            (0..3).for_each(|part| walked(snapshot.scan_part(part, 3, &mut *visit)));
        }),
    ];
    for (name, walk) in walks {
        let mut found = BTreeMap::new();
        let mut visited = 0;
        walk(&mut |key, value| {
            visited += 1;
            found.insert(key.to_vec(), value.to_vec());
            ControlFlow::Continue(())
        });
        assert_eq!((visited, &found), (expected.len(), &expected), "{name}");
    }
    let mut visited = 0;
    let end = table.for_each(|_, _| {
        visited += 1;
        ControlFlow::Break("enough")
    });
    assert_eq!((end, visited), (Ok(ControlFlow::Break("enough")), 1));
}

#[test]
fn eight_byte_tables_refuse_other_lengths() {
    let options = HashTableOptions::default().layout(RecordLayout::Fixed8);
    let table = Db::in_memory().create_hash_table("t", options).expect("a free name");
    let key = 7_u64.to_le_bytes();
    table.put(key, 1_u64.to_le_bytes()).expect("eight bytes");
    assert_eq!(table.add(key, 1), Ok(2));
    let error = table.put(b"short", key).expect_err("five bytes");
    assert_eq!(error.hash_engine(), Some(&HashEngineError::KeyLength { len: 5, min: 8, max: 8 }));
    let error = table.put(key, b"short").expect_err("five bytes");
    assert!(matches!(error.hash_engine(), Some(HashEngineError::ValueLength { len: 5, .. })));
    assert_eq!(table.add(key, 0), Ok(2));
}

#[test]
fn a_budget_that_is_reached_says_so_and_loses_nothing() {
    let options = HashTableOptions::default().memory_budget(1 << 20).page_bytes(64 << 10);
    let table = Db::in_memory().create_hash_table("small", options).expect("a free name");
    let value = [7_u8; 1000];
    let mut entries = 0_u32;
    let error = loop {
        match table.put(entries.to_be_bytes(), value) {
            Ok(()) => entries += 1,
            Err(error) => break error,
        }
        assert!(entries < 2000, "a budget of 1 MiB holds two");
    };
    assert!(matches!(error.hash_engine(), Some(HashEngineError::OutOfMemory { .. })), "{error}");
    let message = error.to_string();
    assert!(message.starts_with("table `small`: "), "{message}");
    assert!(message.contains("HashTableOptions::memory_budget"), "{message}");
    assert_eq!(table.len(), Ok(entries as usize));
    for entry in 0..entries {
        assert_eq!(table.get_with(entry.to_be_bytes(), |bytes| *bytes == value), Ok(Some(true)));
    }
}

#[test]
fn values_beyond_a_page_name_the_option() {
    let options = HashTableOptions::default().page_bytes(4096);
    let table = Db::in_memory().create_hash_table("t", options).expect("a free name");
    let error = table.put(b"k", [0; 5000]).expect_err("more than a page");
    assert!(error.to_string().contains("HashTableOptions::page_bytes"), "{error}");
}

#[test]
fn handles_are_shared_between_threads() {
    fn is_shared<T: Send + Sync + Clone + 'static>() {}
    is_shared::<HashTable>();
    let table = table_of(&[]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let table = table.clone();
            scope.spawn(move || {
                for _ in 0..1000 {
                    table.add_many(&[("sum", 1), ("twice", 2)]).expect("counters");
                }
            });
        }
    });
    assert_eq!(table.add(b"sum", 0), Ok(4000));
    assert_eq!(table.add(b"twice", 0), Ok(8000));
}

#[test]
fn compaction_keeps_what_is_in_use() {
    let options = HashTableOptions::default().page_bytes(4096);
    let table = Db::in_memory().create_hash_table("t", options).expect("a free name");
    table.put(b"b", b"B").expect("put");
    for round in 0..1000_u32 {
        table.put(b"a", vec![b'x'; round as usize]).expect("put");
    }
    // In memory writers compact too when most of the log is garbage.
    table.compact(1.0).expect("compact");
    let stats = table.stats();
    assert!(stats.tail > 64 << 10 && stats.tail - stats.begin < 32 << 10, "{stats:?}");
    assert_eq!(table.get_with(b"a", <[u8]>::len), Ok(Some(999)));
    assert_eq!(table.get(b"b"), Ok(Some(b"B".to_vec())));
    assert_eq!(table.len(), Ok(2));
    table.check().expect("a sound table");
}

#[test]
fn debug_forms_name_the_table() {
    let table = table_of(&["a"]);
    assert_eq!(
        format!("{table:?}"),
        "HashTable { name: \"t\", entries_estimate: 1, directory: None, .. }"
    );
    let snapshot = table.snapshot().expect("a moment");
    assert_eq!(format!("{snapshot:?}"), "HashSnapshot { table: \"t\", .. }");
}

#[test]
fn steps_of_a_walk_and_samples_reach_every_entry() {
    let directory = tempfile::tempdir().expect("a directory");
    let fill = |table: &HashTable| {
        for index in 0..500_u64 {
            table.put(index.to_be_bytes(), index.to_le_bytes()).expect("put");
        }
    };
    for db in [Db::in_memory(), Db::open(directory.path()).expect("a database")] {
        let table = db.create_hash_table("t", HashTableOptions::default()).expect("a free name");
        assert_eq!(table.scan_from(0, 10, |_, _| panic!("an entry")), Ok(0));
        assert_eq!(table.sample(7), Ok(None));
        fill(&table);
        let (mut cursor, mut seen, mut steps) = (0, Vec::new(), 0);
        loop {
            let visit = |key: &[u8], value: &[u8]| seen.push((key.to_vec(), value.to_vec()));
            cursor = table.scan_from(cursor, 10, visit).expect("a step");
            steps += 1;
            if cursor == 0 {
                break;
            }
        }
        seen.sort();
        let right: Vec<_> = (0..500_u64)
            .map(|index| (index.to_be_bytes().to_vec(), index.to_le_bytes().to_vec()))
            .collect();
        assert_eq!(seen, right);
        assert!((10..=51).contains(&steps), "{steps} steps");
        let (key, value) = table.sample(7).expect("a sample").expect("an entry");
        assert!(right.contains(&(key, value)));
    }
}
