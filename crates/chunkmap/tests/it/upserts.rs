//! Many upserts at a time, beside those that are made one by one.

use std::collections::BTreeMap;

use sapwood_chunkmap::{ChunkMap, Error, Options};

fn small() -> ChunkMap {
    let mut options = Options::default();
    (options.chunk_entries, options.block_bytes) = (4, 4 << 10);
    ChunkMap::with_options(options).expect("memory for an empty map")
}

#[test]
fn a_batch_is_what_its_entries_are_one_by_one() {
    let mut rng = fastrand::Rng::with_seed(3);
    let (map, mut model) = (small(), BTreeMap::<Vec<u8>, Vec<u8>>::new());
    for round in 0..200 {
        let entries: Vec<(Vec<u8>, Vec<u8>)> = (0..rng.usize(0..70))
            .map(|_| (vec![rng.u8(0..40); rng.usize(1..20)], vec![1; rng.usize(0..9)]))
            .collect();
        let absent = entries.iter().filter(|(key, value)| match model.get_mut(key) {
            Some(known) => {
                known.extend_from_slice(value);
                false
            }
            None => model.insert(key.clone(), value.clone()).is_none(),
        });
        let absent = absent.count();
        let inserted = map.put_if_absent_or_update_many(&entries, |index, value| {
            value.extend_from_slice(&entries[index].1).expect("there is room");
        });
        assert_eq!(inserted, Ok(absent), "round {round}");
        assert_eq!(map.len(), model.len());
    }
    for (key, value) in &model {
        assert_eq!(map.get(key).as_ref(), Ok(&Some(value.clone())));
    }
    assert!(map.reserved_bytes() > 0 && map.reserved_bytes() == map.stats().reserved_bytes);
}

#[test]
fn a_batch_stops_at_the_first_entry_that_is_refused() {
    let map = small();
    let entries = [("a", "1"), ("b", "2"), ("", "3"), ("c", "4")];
    let stopped = map.put_if_absent_or_update_many(&entries, |_, _| {}).expect_err("no key");
    assert_eq!((stopped.done, stopped.error), (2, Error::KeyLength { len: 0 }));
    assert_eq!((map.get(b"b"), map.get(b"c")), (Ok(Some(b"2".to_vec())), Ok(None)));
}

/// A batch has found the chunks of its next keys before a closure of it runs.
#[test]
fn chunks_that_closures_replace_are_not_used_again() {
    for (round, keys_a_batch) in (0..200).map(|round| (round, 2 + round % 40)) {
        let map = small();
        let mut rng = fastrand::Rng::with_seed(round);
        let entries: Vec<([u8; 2], [u8; 1])> =
            (0..keys_a_batch).map(|at| ([1, at as u8 * 5], [0])).collect();
        assert_eq!(map.put(&entries[0].0, &[0]), Ok(false));
        let mut model: BTreeMap<[u8; 2], [u8; 1]> = BTreeMap::from([entries[0]]);
        let inserted = map.put_if_absent_or_update_many(&entries, |_, value| {
            value[0] += 1;
            // Chunks split and merge, records move, and what was retired goes.
            for _ in 0..rng.usize(0..30) {
                let key = [1, rng.u8(0..210)];
                match map.put_if_absent(&key, &[0]) {
                    Ok(true) => assert_eq!(model.insert(key, [0]), None),
                    answer => assert_eq!(answer, Ok(false)),
                }
            }
            if rng.bool() {
                map.trim();
            }
        });
        let mut absent = 0;
        for (key, value) in &entries {
            match map.get(key).expect("no closure").as_deref() {
                Some([0]) if !model.contains_key(key) => absent += 1,
                Some([1]) => assert!(model.contains_key(key) || key == &entries[0].0),
                other => panic!("{key:?}: {other:?}, not {value:?}, round {round}"),
            }
        }
        assert_eq!(inserted, Ok(absent), "round {round}");
        map.check().expect("every invariant holds");
    }
}
