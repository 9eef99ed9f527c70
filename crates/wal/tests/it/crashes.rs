//! After any crash there is some prefix of what happened, with all that was said to last.

use std::io::ErrorKind;

use fastrand::Rng;
use sapwood_disk::log::Durability;
use sapwood_disk::{Disk, Faults, SimDisk, SyncFault};
use sapwood_testkit::case;
use sapwood_wal::{Error, Result};

use crate::world::{Tables, World};

/// What tables had after each step, and which step is known to last.
#[derive(Debug)]
struct History {
    states: Vec<Tables>,
    lasting: usize,
}

impl History {
    fn of(world: &World) -> History {
        History { states: vec![world.contents()], lasting: 0 }
    }

    fn note(&mut self, world: &World) {
        self.states.push(world.contents());
    }

    #[track_caller]
    fn check(&self, world: &World) {
        let now = world.contents();
        let found = self.states[self.lasting..].contains(&now);
        let earlier = self.states[..self.lasting].contains(&now);
        assert!(
            found,
            "what is there was never there, or (as here: {earlier}) is older than what lasts: {now:?}"
        );
    }
}

/// Does one thing, and notes it before it is known whether it lasts: a crash may come between.
fn step(world: &mut World, rng: &mut Rng, history: &mut History) -> Result<()> {
    let name = ["a", "b", "c"][rng.usize(..3)];
    let key = [rng.u8(..6)];
    match rng.u8(..24) {
        0 => {
            world.wal.checkpoint()?;
            history.lasting = history.states.len() - 1;
        }
        1 => {
            world.wal.sync()?;
            history.lasting = history.states.len() - 1;
        }
        2 if world.tables.contains_key(name) => {
            // The step may be done, though the answer is that it is not.
            let mut after = world.contents();
            after.remove(name);
            history.states.push(after);
            world.drop_table(name)?;
            history.lasting = history.states.len() - 1;
        }
        _ if !world.tables.contains_key(name) => {
            let mut after = world.contents();
            after.insert(name.to_owned(), Default::default());
            history.states.push(after);
            world.make_table(name)?;
            history.lasting = history.states.len() - 1;
        }
        what => {
            let value =
                vec![rng.u8(..); if rng.u8(..40) == 0 { 300_000 } else { rng.usize(..600) }];
            match what {
                // All of them are one step.
                23 => world.wal.together(|| {
                    for table in world.tables.keys() {
                        world.table(table).put(&key, &value);
                        world.table(table).remove(&[key[0] ^ 1]);
                    }
                }),
                3..6 => world.table(name).remove(&key),
                6..12 => world.table(name).write(&key, rng.usize(..300), &[rng.u8(..); 9]),
                _ => world.table(name).put(&key, &value),
            }
            history.note(world);
            world.wal.settle()?;
        }
    }
    Ok(())
}

#[test]
fn any_crash_leaves_a_prefix() {
    case!().seeds(150, |seed| {
        let mut rng = Rng::with_seed(seed);
        let durability = [Durability::Buffered, Durability::Sync][seed as usize % 2];
        let mut disk = SimDisk::new();
        let mut world = World::create(&disk, durability).expect("made");
        let mut history = History::of(&world);
        for life in 0..5 {
            disk.stop_after(rng.u64(1..160));
            for _ in 0..200 {
                if step(&mut world, &mut rng, &mut history).is_err() {
                    break;
                }
                if durability == Durability::Sync {
                    history.lasting = history.states.len() - 1;
                }
            }
            drop(world);
            disk = disk.crash(seed * 16 + life);
            world = World::open(&disk, durability).expect("opened");
            history.check(&world);
            history = History::of(&world);
        }
    });
}

/// A log that is being made, or a checkpoint that is being written, is cut off at every step.
#[test]
fn every_step_of_a_checkpoint_may_be_the_last() {
    let run = |stop: u64, image: u64| -> bool {
        let disk = SimDisk::new();
        let mut world = World::create(&disk, Durability::Buffered).expect("made");
        world.make_table("a").expect("made");
        world.table("a").put(b"1", b"one");
        world.wal.checkpoint().expect("written");
        world.table("a").put(b"2", &vec![2; 300_000]);
        world.wal.sync().expect("lasts");
        let lasting = world.contents();
        world.table("a").put(b"3", b"three");
        let then = world.contents();
        disk.stop_after(stop);
        let is_done = world.wal.checkpoint().is_ok();
        drop(world);
        let disk = disk.crash(image);
        let world = World::open(&disk, Durability::Buffered).expect("opened");
        let now = world.contents();
        assert!(now == then || (!is_done && now == lasting), "stopped after {stop}");
        // It goes on from there.
        world.table("a").put(b"4", b"four");
        world.wal.checkpoint().expect("written");
        let then = world.contents();
        drop(world);
        let world = World::open(&disk, Durability::Buffered).expect("opened");
        assert_eq!(world.contents(), then);
        is_done
    };
    let mut stops = 0;
    while !(0..12).fold(true, |all, image| all & run(stops, image)) {
        stops += 1;
    }
    assert!(stops > 10, "{stops} steps");
}

/// A snapshot that has a change needs the changes before it, which only the log has.
#[test]
fn what_changes_within_a_snapshot_lasts_with_it() {
    for image in 0..40 {
        let disk = SimDisk::new();
        let mut world = World::create(&disk, Durability::Buffered).expect("made");
        world.make_table("a").expect("made");
        for key in [b"1", b"2", b"3"] {
            world.table("a").put(key, b"old");
        }
        *world.table("a").within_snapshot.lock().expect("no panic") = Some(|table| {
            table.put(b"1", b"new: told already");
            table.put(b"3", b"new: still to be told");
        });
        world.wal.checkpoint().expect("written");
        let then = world.contents();
        drop(world);
        let world = World::open(&disk.crash(image), Durability::Buffered).expect("opened");
        assert_eq!(world.contents(), then);
    }
}

/// Each sync of a checkpoint fails; then the process ends, another opens the log, and the power goes.
#[test]
fn a_checkpoint_that_failed_is_no_trap_for_the_next_process() {
    for failing in 0..12 {
        for image in 0..12 {
            let disk = SimDisk::new();
            let mut world = World::create(&disk, Durability::Buffered).expect("made");
            world.make_table("a").expect("made");
            world.table("a").put(b"1", b"one");
            world.wal.checkpoint().expect("written");
            world.table("a").put(b"2", b"two");
            world.wal.sync().expect("lasts");
            let then = world.contents();
            let fault = SyncFault::Doubtful(ErrorKind::Other);
            disk.set_faults(Faults::new().syncs(failing..=failing, fault));
            let failed = world.wal.checkpoint();
            disk.set_faults(Faults::new());
            drop(world);
            let world = World::open(&disk, Durability::Buffered).expect("opened");
            assert_eq!(world.contents(), then);
            let disk = disk.crash(image);
            drop(world);
            let world = World::open(&disk, Durability::Buffered).expect("opened after a crash");
            assert_eq!(world.contents(), then, "sync {failing} failed: {failed:?}");
        }
    }
}

/// A number that a file may have is given to no other checkpoint.
#[test]
fn numbers_of_failed_checkpoints_are_not_used_again() {
    let disk = SimDisk::new();
    let mut world = World::create(&disk, Durability::Buffered).expect("made");
    world.make_table("a").expect("made");
    disk.set_faults(Faults::new().syncs(..1, SyncFault::Doubtful(ErrorKind::Other)));
    world.wal.checkpoint().expect_err("the snapshot is not synced");
    drop(world);
    let left = disk.list().expect("names");
    assert!(left.iter().any(|name| name.starts_with("snapshot-0000000000000001-")), "{left:?}");
    let world = World::open(&disk, Durability::Buffered).expect("opened");
    assert_eq!(world.wal.checkpoint().expect("written").number, 2);
}

/// Neither of the table that is loaded nor of those beside it; the checkpoint before stays, and numbers go on.
#[test]
fn a_load_that_fails_leaves_no_snapshot() {
    let disk = SimDisk::new();
    let mut world = World::create(&disk, Durability::Buffered).expect("made");
    world.make_table("a").expect("made");
    world.table("a").put(b"1", b"one");
    world.make_table("loaded").expect("made");
    world.make_table("z").expect("made");
    let id = world.tables["loaded"].0;
    assert_eq!(world.wal.checkpoint().expect("written").number, 1);
    let snapshots = |disk: &SimDisk| {
        let mut names = disk.list().expect("names");
        names.retain(|name| name.starts_with("snapshot-"));
        names.sort();
        names
    };
    let as_it_was = snapshots(&disk);
    assert_eq!(as_it_was.len(), 3, "{as_it_was:?}");
    let all = [(); 100].map(|()| vec![7; 10_000]);
    let given_up = |entry: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>| {
        (0_u8..).zip(&all).try_for_each(|(key, value)| entry(&[key], value))?;
        Err(Error::Contents { why: "given up".to_owned() })
    };
    let loaded = world.wal.load(id, given_up, |_| panic!("it was not loaded"));
    assert!(matches!(loaded, Err(Error::Contents { .. })));
    assert_eq!(snapshots(&disk), as_it_was, "given up");
    // Full at every block: of a snapshot, or of the manifest.
    let (mut failed, before) = (0, disk.file_bytes());
    loop {
        disk.set_faults(Faults::new().space(before + 4096 * failed));
        let tell = |entry: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>| entry(b"k", &[7; 10_000]);
        let loaded = world.wal.load(id, tell, drop);
        disk.set_faults(Faults::new());
        if loaded.is_ok() {
            break;
        }
        assert!(matches!(loaded, Err(Error::Io { .. })), "{loaded:?}");
        assert_eq!(snapshots(&disk), as_it_was, "{failed} blocks");
        failed += 1;
    }
    assert!(failed > 3, "{failed}");
    assert_eq!(snapshots(&disk).len(), 3);
    assert_eq!(world.wal.checkpoint().expect("written").number, 4 + failed);
}

/// Behind a change that the log could not take there is none.
#[test]
fn after_a_full_disk_nothing_is_taken_though_there_is_room_again() {
    let disk = SimDisk::new();
    let mut world = World::create(&disk, Durability::Buffered).expect("made");
    world.make_table("a").expect("made");
    world.table("a").put(b"1", b"one");
    let then = world.contents();
    disk.set_faults(Faults::new().space(disk.file_bytes() + 4096));
    world.table("a").put(b"2", &vec![2; 3 << 20]);
    assert!(world.wal.settle().is_err(), "the next part does not fit");
    disk.set_faults(Faults::new());
    world.table("a").put(b"3", b"three");
    assert!(world.wal.settle().is_err() && world.wal.check().is_err());
    drop(world);
    let world = World::open(&disk, Durability::Buffered).expect("opened");
    assert_eq!(world.contents(), then);
}
