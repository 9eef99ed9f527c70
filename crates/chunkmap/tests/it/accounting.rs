//! Statistics that are true to the byte.

use std::sync::Barrier;

use crate::adapter::{Adapter, CONFIGURATIONS, map};
use sapwood_chunkmap::ChunkMap;
use sapwood_testkit::case;
use sapwood_testkit::engine::{Edit, OrderedEngine};
use sapwood_testkit::op::Op;
use sapwood_testkit::oracle::Oracle;
use sapwood_testkit::stream::StreamSpec;
use sapwood_testkit::stress::Round;
use sapwood_testkit::values::ValueShape;
use sapwood_testkit::{Bytes, runner};

#[test]
fn after_any_stream_every_byte_is_accounted_for() {
    case!().seeds(20, |seed| {
        for configuration in CONFIGURATIONS {
            let spec = StreamSpec { values: ValueShape::Edges, ..StreamSpec::random(seed, 300) };
            let (engine, mut oracle) = (Adapter::new(configuration), Oracle::default());
            for (index, op) in spec.ops(seed).iter().enumerate() {
                oracle.judge(op, &op.run(&engine)).unwrap();
                if index % 50 == 0 {
                    assert_eq!(engine.accounting(), Some(oracle.accounting()));
                }
            }
            sums_up(&engine);
        }
    });
}

/// The parts make the whole, and none of them is out of the question.
fn sums_up(engine: &Adapter) {
    let stats = engine.0.stats();
    let parts = stats.key_bytes
        + stats.value_bytes
        + stats.free_bytes
        + stats.retired_bytes
        + stats.overhead_bytes;
    assert_eq!(parts, stats.reserved_bytes, "{stats:?}");
    assert!(stats.index_bytes > 0 && stats.index_bytes <= stats.overhead_bytes, "{stats:?}");
    assert!(stats.chunks >= 1 && stats.height >= 1, "{stats:?}");
}

#[test]
fn values_that_grow_and_shrink_in_place_are_counted_at_each_step() {
    for configuration in CONFIGURATIONS {
        let (engine, mut oracle) = (Adapter::new(configuration), Oracle::default());
        let key = |index: usize| Bytes::from(index.to_be_bytes());
        for index in 0..10 {
            let put = Op::Put(key(index), Bytes::from(vec![1; index * 100]));
            oracle.judge(&put, &put.run(&engine)).unwrap();
        }
        for (step, len) in [0, 1, 5_000, 31, 32, 33, 10_000, 9_999, 0, 70_000, 3].iter().enumerate()
        {
            for index in 0..10 {
                let op = match (index + step) % 3 {
                    0 => Op::Update(key(index), vec![Edit::Resize(*len)]),
                    1 => Op::Put(key(index), Bytes::from(vec![2; *len])),
                    _ => Op::Upsert(key(index), key(0), vec![Edit::Set(vec![3; *len].into())]),
                };
                oracle.judge(&op, &op.run(&engine)).unwrap();
                assert_eq!(engine.accounting(), Some(oracle.accounting()), "{op:?}");
            }
        }
        runner::verify(&engine, &oracle).unwrap();
        sums_up(&engine);
    }
}

/// Counters that writers of many threads share end up exact.
#[test]
fn after_concurrent_rounds_the_counters_agree_with_a_walk() {
    case!().seeds(30, |seed| {
        let engine = Adapter::new(CONFIGURATIONS[seed as usize % 3]);
        Round::few_keys(4, 200, 20).check(&engine, seed).unwrap();
        let pairs = runner::contents(&engine);
        let accounting = engine.accounting().expect("the map counts");
        let bytes = |lens: &mut dyn Iterator<Item = usize>| lens.sum::<usize>() as u64;
        assert_eq!(accounting.entries, pairs.len() as u64);
        assert_eq!(accounting.key_bytes, bytes(&mut pairs.iter().map(|(key, _)| key.len())));
        assert_eq!(accounting.value_bytes, bytes(&mut pairs.iter().map(|(_, value)| value.len())));
        engine.clear().unwrap();
        let left = engine.accounting().expect("the map counts");
        assert_eq!((left.entries, left.key_bytes, left.value_bytes), (0, 0, 0));
    });
}

/// More threads at a time than have counters of their own; those of the next wave come by the counters of these.
#[test]
fn many_threads_are_counted_exactly() {
    const THREADS: u64 = 24;
    const KEYS: u64 = 3_000;
    let map = ChunkMap::new();
    for wave in 1..=3 {
        let begin = Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (map, begin) = (&map, &begin);
                scope.spawn(move || {
                    let keys = (0..KEYS).map(|index| [wave, thread, index].map(u64::to_be_bytes));
                    for (at, key) in keys.enumerate() {
                        let key = key.concat();
                        map.put(&key, b"value").unwrap();
                        if at == 0 {
                            begin.wait();
                        }
                        if at % 3 > 0 {
                            assert!(map.remove(&key).unwrap());
                        }
                    }
                });
            }
        });
        let (stats, entries) = (map.stats(), wave * THREADS * KEYS / 3);
        let counted = (stats.entries, stats.key_bytes, stats.value_bytes);
        assert_eq!(counted, (entries, entries * 24, entries * 5), "wave {wave}");
    }
}

#[test]
fn a_dump_shows_every_chunk_and_inner_node() {
    for configuration in CONFIGURATIONS {
        let map = map(configuration);
        for index in 0..2_000u32 {
            map.put(&index.to_be_bytes(), b"value").unwrap();
        }
        let (mut text, stats) = (Vec::new(), map.stats());
        map.dump(&mut text).unwrap();
        let text = String::from_utf8(text).expect("prose");
        let lines = |of: &str| text.lines().filter(|line| line.trim().starts_with(of)).count();
        assert_eq!(lines("chunk ") as u64, stats.chunks, "{text}");
        assert_eq!(lines("inner ") as u64, stats.inner_nodes, "{text}");
        // A writer that is full says so.
        assert!(map.dump(&mut &mut [0; 10][..]).is_err());
    }
}
