//! Checkpoints while threads change tables.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fastrand::Rng;
use sapwood_disk::SimDisk;
use sapwood_disk::log::Durability;
use sapwood_testkit::case;

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
