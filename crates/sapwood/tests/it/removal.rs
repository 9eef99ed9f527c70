//! Removing many entries of an ordered table, against a `BTreeMap` and beside writers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};
use std::sync::mpsc;

use rand::RngExt;
use sapwood::{Db, OrderedEngineError, OrderedTable, OrderedTableOptions};
use sapwood_testkit::{Rng, case, rng};

type Oracle = BTreeMap<Vec<u8>, Vec<u8>>;

/// From the least chunks to such as hold all.
const CHUNKS: [usize; 3] = [2, 16, 512];

fn table_of(chunk_entries: usize, entries: &Oracle) -> OrderedTable {
    let options = OrderedTableOptions::default().chunk_entries(chunk_entries);
    let table = Db::in_memory().create_ordered_table("t", options).expect("a free name");
    for (key, value) in entries {
        table.put(key, value).expect("room");
    }
    table
}

fn contents(table: &OrderedTable) -> Oracle {
    table.range(..).owned().collect::<sapwood::Result<_>>().expect("a walk")
}

fn key(rng: &mut Rng) -> Vec<u8> {
    rng.random_range(0..500_u16).to_be_bytes().to_vec()
}

fn entries(rng: &mut Rng) -> Oracle {
    (0..300).map(|_| (key(rng), vec![rng.random_range(0..4)])).collect()
}

fn bound(rng: &mut Rng) -> Bound<Vec<u8>> {
    match rng.random_range(0..5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key(rng)),
        _ => Bound::Excluded(key(rng)),
    }
}

#[test]
fn a_range_is_removed_and_nothing_else() {
    case!().seeds(30, |seed| {
        let rng = &mut rng(seed);
        for chunk_entries in CHUNKS {
            let before = entries(rng);
            let table = table_of(chunk_entries, &before);
            let (low, high) = (bound(rng), bound(rng));
            let bounds = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
            let inside = |key: &[u8]| RangeBounds::<&[u8]>::contains(&bounds, &key);
            let mut after = before.clone();
            after.retain(|key, _| !inside(key));
            let removed = table.remove_range(bounds).expect("removed");
            assert_eq!(removed as usize, before.len() - after.len(), "{bounds:?}");
            assert_eq!(contents(&table), after, "{bounds:?}");
            table.check().expect("a sound table");
        }
    });
}

#[test]
fn what_is_retained_is_what_the_closure_wants() {
    case!().seeds(30, |seed| {
        let rng = &mut rng(seed);
        for chunk_entries in CHUNKS {
            let before = entries(rng);
            let table = table_of(chunk_entries, &before);
            let unwanted = rng.random_range(0..5);
            let mut after = before.clone();
            after.retain(|_, value| value[0] != unwanted);
            let removed = table.retain(|_, value| value[0] != unwanted).expect("removed");
            assert_eq!(removed as usize, before.len() - after.len());
            assert_eq!(contents(&table), after);
            table.check().expect("a sound table");
        }
    });
}

#[test]
fn what_is_changed_meanwhile_is_asked_about_again() {
    let expired: Oracle = (0..300_u32).map(|n| (n.to_be_bytes().to_vec(), vec![0])).collect();
    let is_renewed = |key: &[u8]| key[3].is_multiple_of(2);
    for chunk_entries in CHUNKS {
        let table = table_of(chunk_entries, &expired);
        std::thread::scope(|scope| {
            let (ask, asked) = mpsc::channel::<Vec<u8>>();
            let (tell, told) = mpsc::channel();
            let writer = &table;
            scope.spawn(move || {
                for key in asked {
                    tell.send(writer.update(&key, |value| value[0] = 1)).expect("it is awaited");
                }
            });
            // The writer changes the entry between what the walk shows and its removal.
            let mut shown = BTreeSet::new();
            let removed = table.retain(|key, value| {
                if is_renewed(key) && shown.insert(key.to_vec()) {
                    ask.send(key.to_vec()).expect("the writer is there");
                    assert_eq!(told.recv(), Ok(Ok(Some(()))));
                }
                value[0] == 1
            });
            assert_eq!(removed, Ok(150));
        });
        let mut after = expired.clone();
        after.retain(|key, value| {
            value[0] = 1;
            is_renewed(key)
        });
        assert_eq!(contents(&table), after);
        table.check().expect("a sound table");
    }
}

#[test]
fn a_closure_that_panics_or_calls_back_leaves_a_table() {
    let three: Oracle = ["a", "b", "c"].map(|key| (key.into(), key.into())).into();
    let table = table_of(2, &three);
    let panics = std::panic::AssertUnwindSafe(|| {
        table.retain(|key, _| if key == b"b" { panic!("as told") } else { false })
    });
    std::panic::catch_unwind(panics).expect_err("it panicked");
    assert_eq!(contents(&table).into_keys().collect::<Vec<_>>(), [b"b", b"c"]);

    // What the scan shows may be changed; what is about to go may not.
    let mut answers = Vec::new();
    let removed = table.retain(|key, _| {
        answers.push(table.put(key, b"new").map_err(|error| error.ordered_engine().cloned()));
        false
    });
    assert_eq!(removed, Ok(2));
    let (put, refused) = (Ok(()), Err(Some(OrderedEngineError::Reentrant)));
    assert_eq!(answers, [put.clone(), refused.clone(), put, refused]);
    assert_eq!(table.is_empty(), Ok(true));
    table.check().expect("a sound table");
}
