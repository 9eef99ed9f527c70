//! What a journal hears, done again, leads to what the map has.

use std::sync::Arc;
use std::thread;

use fastrand::Rng;
use sapwood_chunkmap::{ChunkMap, Compute};
use sapwood_testkit::case;
use sapwood_testkit::heard::{Done, Entries, Heard, replay};

use crate::adapter::{CONFIGURATIONS, NASTIEST, contents, map};

fn map_of(configuration: (usize, usize)) -> (ChunkMap, Arc<Heard>) {
    let (heard, journal) = Heard::journal();
    (map(configuration).with_journal(journal), heard)
}

/// One change of any kind to one of few keys.
fn change(map: &ChunkMap, rng: &mut Rng) {
    let key = [b'k', rng.u8(..12)];
    let value = vec![rng.u8(..); rng.usize(..40)];
    match rng.u8(..14) {
        0 | 1 => drop(map.put(&key, &value).expect("memory")),
        2 => drop(map.put_if_absent(&key, &value).expect("memory")),
        3 | 4 => drop(map.remove(&key).expect("a fine key")),
        5 => drop(map.remove_with(&key, <[u8]>::len).expect("a fine key")),
        6 => drop(map.update(&key, |now| now.iter_mut().for_each(|byte| *byte ^= 5))),
        7 => drop(map.update(&key, |now| {
            if now.len() > 2 {
                now.write(1, &[7]);
            }
        })),
        8 => drop(map.update(&key, |now| now.resize(value.len()))),
        9 => drop(map.put_if_absent_or_update(&key, &value, |now| now.set(&[1, 2, 3]))),
        10 => drop(map.add(b"counter", 3)),
        11 => drop(map.compute(&key, |now| match now {
            None => Compute::Replace(value.clone()),
            Some([]) => Compute::Remove,
            Some(now) => Compute::Replace(now[1..].to_vec()),
        })),
        12 => drop(map.pop_first()),
        _ => drop(map.put_many(&[(&key[..], &value[..]), (b"kz", b"z")])),
    }
}

#[test]
fn what_is_heard_leads_to_what_is_there() {
    case!().seeds(60, |seed| {
        let mut rng = Rng::with_seed(seed);
        let (map, heard) = map_of(CONFIGURATIONS[seed as usize % CONFIGURATIONS.len()]);
        (0..400).for_each(|_| change(&map, &mut rng));
        let all = heard.take();
        let mut entries = Entries::new();
        replay(&mut entries, &all);
        assert_eq!(Vec::from_iter(entries.clone()), contents(&map));
        assert!(all.iter().any(|(_, done)| matches!(done, Done::Write(1, bytes) if bytes == &[7])));

        // Done again over entries that have some of them.
        let until = rng.usize(..all.len());
        let mut again = Entries::new();
        replay(&mut again, &all[..until]);
        replay(&mut again, &all[rng.usize(..=until)..]);
        assert_eq!(again, entries);
    });
}

#[test]
fn threads_change_the_same_keys_and_are_heard_in_their_order() {
    case!().seeds(30, |seed| {
        let (map, heard) = map_of(NASTIEST);
        thread::scope(|scope| {
            for thread in 0..4 {
                let map = &map;
                scope.spawn(move || {
                    let mut rng = Rng::with_seed(seed * 4 + thread);
                    (0..500).for_each(|_| change(map, &mut rng));
                });
            }
        });
        let mut entries = Entries::new();
        replay(&mut entries, &heard.take());
        assert_eq!(Vec::from_iter(entries.clone()), contents(&map));
    });
}

/// A reader that has seen a value has seen one that the journal has.
#[test]
fn no_value_is_read_before_it_is_heard() {
    case!().seeds(10, |seed| {
        let (map, heard) = map_of(NASTIEST);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut rng = Rng::with_seed(seed);
                for number in 0..2_000_u32 {
                    match rng.u8(..3) {
                        0 => drop(map.remove(b"k").expect("a fine key")),
                        _ => drop(map.put(b"k", &number.to_le_bytes()).expect("memory")),
                    }
                }
            });
            for _ in 0..500 {
                if let Some(value) = map.get(b"k").expect("a fine key") {
                    let heard = heard.all();
                    let is_heard =
                        heard.iter().rev().any(|(_, done)| *done == Done::Put(value.clone()));
                    assert!(is_heard, "{value:?}");
                }
            }
        });
    });
}

/// What a map is loaded with is no change; what is changed behind it is heard, of loaded keys as of others.
#[test]
fn nothing_is_heard_of_what_is_loaded() {
    case!().seeds(30, |seed| {
        let mut rng = Rng::with_seed(seed);
        let (map, heard) = map_of(CONFIGURATIONS[seed as usize % CONFIGURATIONS.len()]);
        let mut entries = Entries::new();
        for _ in 0..rng.usize(1..5) {
            // A change or two where the next entries go in, and one of them stays as it is.
            (0..rng.usize(..3)).for_each(|_| change(&map, &mut rng));
            replay(&mut entries, &heard.take());
            let first = rng.u16(..);
            let keys = (0..rng.u16(..200)).map(|at| first.wrapping_add(at).to_be_bytes());
            let mut loaded: Entries =
                keys.map(|key| (key.to_vec(), vec![1; rng.usize(..9)])).collect();
            let pairs: Vec<_> = loaded.iter().map(|(key, value)| (&key[..], &value[..])).collect();
            map.load_many(&pairs).expect("memory");
            assert!(heard.take().is_empty());
            loaded.append(&mut entries);
            entries = loaded;
            assert_eq!(Vec::from_iter(entries.clone()), contents(&map));
        }
        (0..50).for_each(|_| change(&map, &mut rng));
        replay(&mut entries, &heard.take());
        assert_eq!(Vec::from_iter(entries), contents(&map));
        map.check().expect("a sound map");
    });
}
