//! Another reader of the log hears everything once, in its order.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use sapwood_disk::log::Durability;
use sapwood_disk::{Disk, SimDisk};
use sapwood_testkit::case;
use sapwood_wal::{Error, Follower, LogChange, Result};

use crate::world::{Entries, Tables, World};

/// What a follower has heard.
#[derive(Debug, Default)]
struct Copy {
    tables: Tables,
    positions: Vec<u64>,
}

impl Copy {
    fn follow(&mut self, follower: &mut Follower) -> Result<()> {
        follower.read(&mut |record| {
            assert!(self.positions.last() < Some(&record.position), "once, and in order");
            self.positions.push(record.position);
            assert!(!record.changes.is_empty());
            for change in record.changes {
                self.change(change);
            }
            Ok(())
        })
    }

    fn entries(&mut self, table: &str) -> &mut Entries {
        self.tables.get_mut(table).expect("it was made")
    }

    fn change(&mut self, change: &LogChange<'_>) {
        match *change {
            LogChange::Put { table, key, value } => {
                self.entries(table).insert(key.to_vec(), value.to_vec());
            }
            LogChange::Write { table, key, offset, bytes } => {
                let value = self.entries(table).get_mut(key).expect("it was put");
                value[offset..][..bytes.len()].copy_from_slice(bytes);
            }
            LogChange::Remove { table, key } => drop(self.entries(table).remove(key)),
            LogChange::Create { table } => {
                let before = self.tables.insert(table.to_owned(), BTreeMap::new());
                assert_eq!(before, None, "made once");
            }
            LogChange::Drop { table } => {
                assert!(self.tables.remove(table).is_some(), "it was made");
            }
            _ => unreachable!("these are all"),
        }
    }
}

fn follow(disk: &SimDisk, from: Option<u64>) -> Result<Follower> {
    Follower::open(Arc::new(disk.clone()) as Arc<dyn Disk>, from)
}

/// Followers beside a log whose checkpoints take parts away, over several lives of it.
#[test]
fn a_follower_hears_everything_once() {
    case!().seeds(8, follow_a_stream);
}

fn follow_a_stream(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let disk = SimDisk::new();
    let mut world = World::create(&disk, Durability::Buffered).expect("made");
    let mut follower = follow(&disk, None).expect("opened");
    let mut copy = Copy::default();
    for step in 0..1_500 {
        let name = ["a", "b", "c"][rng.usize(..3)];
        let key = [rng.u8(..9)];
        match rng.u8(..60) {
            0 => {
                copy.follow(&mut follower).expect("read");
                world.wal.checkpoint().expect("written");
            }
            1 => world.drop_table(name).expect("dropped"),
            2 => {
                drop(world);
                world = World::open(&disk, Durability::Buffered).expect("opened");
            }
            3 => follower = follow(&disk, Some(follower.position())).expect("it is there"),
            4..12 => {
                copy.follow(&mut follower).expect("read");
                assert_eq!(copy.tables, world.contents(), "after step {step}");
            }
            _ if !world.tables.contains_key(name) => world.make_table(name).expect("made"),
            12 => world.wal.together(|| {
                for table in world.tables.keys() {
                    world.table(table).put(&key, b"together");
                    world.table(table).remove(&[key[0] ^ 1]);
                }
            }),
            13..20 => world.table(name).remove(&key),
            20..30 => world.table(name).write(&key, rng.usize(..4), &[rng.u8(..); 3]),
            _ => world.table(name).put(&key, &vec![7; rng.usize(7..3_000)]),
        }
    }
    copy.follow(&mut follower).expect("read");
    assert_eq!(copy.tables, world.contents());
    assert!(copy.positions.len() > 500);
}

#[test]
fn what_went_with_a_checkpoint_is_refused_with_where_to_begin() {
    let disk = SimDisk::new();
    let mut world = World::create(&disk, Durability::Buffered).expect("made");
    world.make_table("t").expect("made");
    let (mut late, begin) = (follow(&disk, None).expect("opened"), world.wal.position());
    world.table("t").put(b"k", b"v");
    world.wal.checkpoint().expect("written");
    let first = world.wal.position();
    world.table("t").put(b"l", b"w");
    match follow(&disk, Some(begin)).expect_err("it is gone") {
        Error::Gone { position, first: now } => {
            assert!(position == begin && (begin..=first).contains(&now), "{now}");
        }
        error => panic!("{error}"),
    }
    assert!(
        matches!(follow(&disk, Some(first + 100_000)), Err(Error::Table(_))),
        "ahead of the log"
    );
    let mut copy = Copy { tables: world.contents(), ..Copy::default() };
    copy.tables.get_mut("t").expect("it is there").remove(&b"l"[..]);
    let mut from = follow(&disk, Some(first)).expect("it is there");
    copy.follow(&mut from).expect("read");
    assert_eq!((copy.positions.len(), &copy.tables), (1, &world.contents()));

    // One that was overtaken by parts that are used again says so too.
    let long = vec![1; 1 << 20];
    for _ in 0..400 {
        world.table("t").put(b"k", &long);
        world.wal.checkpoint().expect("written");
    }
    let error = late.read(&mut |_| Ok(())).expect_err("it is gone");
    assert!(matches!(error, Error::Gone { position: 0.., .. }), "{error}");
}

/// What a reader of a record refuses is told again.
#[test]
fn a_record_that_was_refused_is_told_again() {
    let disk = SimDisk::new();
    let mut world = World::create(&disk, Durability::Buffered).expect("made");
    let mut follower = follow(&disk, None).expect("opened");
    world.make_table("t").expect("made");
    world.table("t").put(b"k", b"v");
    world.drop_table("t").expect("dropped");
    let mut heard = Vec::new();
    for refused in 0..4 {
        let mut at = 0;
        let read = follower.read(&mut |record| {
            at += 1;
            if refused < 3 && at == 2 {
                return Err(Error::Table("not now".to_owned()));
            }
            heard.push(format!("{:?}", record.changes));
            Ok(())
        });
        assert_eq!(read.is_err(), refused < 2, "{heard:?}");
    }
    assert_eq!(heard.len(), 3, "{heard:?}");
}
