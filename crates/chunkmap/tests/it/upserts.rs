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
