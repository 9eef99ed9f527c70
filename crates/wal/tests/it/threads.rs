//! Checkpoints while threads change tables.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;

use fastrand::Rng;
use sapwood_disk::SimDisk;
use sapwood_disk::log::Durability;
use sapwood_testkit::case;
use sapwood_wal::{Checkpoints, Contents, Error, TableId, Wal};

use crate::world::World;

#[test]
fn a_checkpoint_beside_writers_misses_nothing() {
    case!().seeds(20, |seed| {
        let disk = SimDisk::new();
        let mut world = World::create(&disk, Durability::Buffered).expect("made");
        world.make_table("t").expect("made");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|thread| {
                    let world = &world;
                    scope.spawn(move || {
                        let mut rng = Rng::with_seed(seed * 3 + thread);
                        for _ in 0..600 {
                            let key = [rng.u8(..40)];
                            match rng.u8(..4) {
                                0 => world.table("t").remove(&key),
                                1 => world.table("t").write(&key, rng.usize(..20), &[9; 3]),
                                _ => world.table("t").put(&key, &vec![rng.u8(..); rng.usize(..50)]),
                            }
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    world.wal.checkpoint().expect("written");
                }
            });
            writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
            is_over.store(true, Ordering::Relaxed);
        });
        let before = world.contents();
        world.wal.sync().expect("lasts");
        drop(world);
        let world = World::open(&disk.crash(seed), Durability::Buffered).expect("opened");
        assert_eq!(world.contents(), before);
    });
}

/// Changes that go together are there together, in whichever state of a checkpoint a crash comes.
#[test]
fn what_goes_together_is_in_no_checkpoint_by_half() {
    case!().seeds(6, |seed| {
        let disk = SimDisk::new();
        let mut world = World::create(&disk, Durability::Buffered).expect("made");
        world.make_table("a").expect("made");
        world.make_table("b").expect("made");
        let is_over = AtomicBool::new(false);
        let images = thread::scope(|scope| {
            let writers: Vec<_> = (0..2_u8)
                .map(|thread| {
                    let world = &world;
                    scope.spawn(move || {
                        let mut rng = Rng::with_seed(seed * 2 + u64::from(thread));
                        for round in 0..300_u32 {
                            // No other thread changes these.
                            let key = [thread, rng.u8(..8)];
                            world.wal.together(|| {
                                world.table("a").put(&key, &round.to_be_bytes());
                                (0..rng.u8(..30)).for_each(|_| thread::yield_now());
                                world.table("b").put(&key, &round.to_be_bytes());
                            });
                        }
                    })
                })
                .collect();
            let checkpoints = scope.spawn(|| {
                let mut images = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    world.wal.checkpoint().expect("written");
                    images.push(disk.crash(seed));
                }
                images
            });
            writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
            is_over.store(true, Ordering::Relaxed);
            checkpoints.join().expect("no panic")
        });
        for image in images {
            let contents = World::open(&image, Durability::Buffered).expect("opened").contents();
            assert_eq!(contents["a"], contents["b"]);
        }
    });
}

#[test]
fn a_checkpoint_among_changes_that_go_together_is_refused() {
    let mut world = World::create(&SimDisk::new(), Durability::Buffered).expect("made");
    world.make_table("t").expect("made");
    let refused = world.wal.together(|| {
        world.table("t").put(b"k", b"v");
        world.wal.together(|| world.wal.checkpoint())
    });
    assert!(matches!(refused, Err(sapwood_wal::Error::Table(_))), "{refused:?}");
    world.wal.checkpoint().expect("written");
}

/// Threads that wait are woken by the append that makes a checkpoint due, and by the end.
#[test]
fn a_thread_learns_that_a_checkpoint_is_due() {
    let options = crate::world::options(Durability::Buffered).checkpoint_bytes(10_000);
    let mut world = World::create_with(&SimDisk::new(), options).expect("made");
    world.make_table("t").expect("made");
    let waited = thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut waited = 0;
            while world.wal.wait_until_due(None) {
                waited += 1;
                world.wal.checkpoint().expect("written");
                if waited == 3 {
                    world.wal.end_waiting();
                }
            }
            waited
        });
        while !waiting.is_finished() {
            world.table("t").put(b"k", &[7; 100]);
        }
        waiting.join().expect("no panic")
    });
    assert_eq!(waited, 3);
    assert!(!world.wal.wait_until_due(None), "it is over");
}

/// A table whose engine writes its checkpoints, and which is dropped while it writes one.
#[derive(Debug)]
struct Ending {
    wal: Weak<Wal>,
    id: TableId,
}

impl Checkpoints for Ending {
    fn checkpoint(&self) -> sapwood_wal::Result<u64> {
        self.wal.upgrade().expect("it is open").drop_table(self.id)?;
        Err(Error::Contents { why: "its folder is gone".to_owned() })
    }
}

#[test]
fn a_table_that_ends_while_its_checkpoint_is_written_is_passed_over() {
    let disk = SimDisk::new();
    let options = crate::world::options(Durability::Buffered);
    let wal = Wal::create(Arc::new(disk.clone()), options).expect("made");
    let wal = Arc::new(wal);
    for round in 0..2 {
        let id = wal.reserve();
        let ending = Arc::new(Ending { wal: Arc::downgrade(&wal), id });
        let made = wal.create_table(id, "t", b"of t", Contents::Checkpoints(ending));
        made.expect("made");
        let number = wal.checkpoint().expect("nothing of the table is wanted").number;
        assert_eq!(number, round + 1);
    }
    drop(wal);
    let world = World::open(&disk, Durability::Buffered).expect("opened");
    assert!(world.tables.is_empty());
    // One that is there is not passed over.
    let (id, failing) = (world.wal.reserve(), Contents::Checkpoints(Arc::new(Failing)));
    world.wal.create_table(id, "t", b"of t", failing).expect("made");
    assert!(matches!(world.wal.checkpoint(), Err(Error::Contents { .. })));
}

#[derive(Debug)]
struct Failing;

impl Checkpoints for Failing {
    fn checkpoint(&self) -> sapwood_wal::Result<u64> {
        Err(Error::Contents { why: "its disk failed".to_owned() })
    }
}

/// Changes that go together do not wait for a checkpoint that waits for them.
#[test]
fn what_goes_together_lets_no_table_go_while_a_checkpoint_waits_for_it() {
    let mut world = World::create(&SimDisk::new(), Durability::Buffered).expect("made");
    world.make_table("t").expect("made");
    let (id, table) = world.tables["t"].clone();
    let contents = || sapwood_wal::Contents::Entries(table.clone());
    world.wal.together(|| world.wal.replace(id, contents()).expect("none is written"));
    thread::scope(|scope| {
        let is_refused = world.wal.together(|| {
            world.table("t").put(b"k", b"v");
            let checkpoint = scope.spawn(|| world.wal.checkpoint().expect("written"));
            loop {
                if world.wal.replace(id, contents()).is_err() {
                    break true;
                }
                if checkpoint.is_finished() {
                    break false;
                }
            }
        });
        assert!(is_refused, "a checkpoint without the record of what goes together");
    });
    world.wal.replace(id, contents()).expect("it waits for none");
}
