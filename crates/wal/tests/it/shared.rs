//! Records of an engine that keeps them in the log.

use std::io::ErrorKind;
use std::sync::Arc;

use sapwood_disk::log::{Durability, SharedLog};
use sapwood_disk::{Faults, SimDisk, WriteFault};
use sapwood_engine::Effect;
use sapwood_wal::{
    Checkpoints, Contents, Error, Follower, LogChange, RECORDS, Recovery, Result, TableId, Wal,
};

use crate::world::{World, options};

/// An engine that has no checkpoint.
#[derive(Debug)]
struct Engine;

impl Checkpoints for Engine {
    fn checkpoint(&self) -> Result<u64> {
        Ok(0)
    }
}

fn shared(wal: &Wal) -> Arc<dyn SharedLog> {
    let id = wal.reserve();
    let contents = Contents::Checkpoints(Arc::new(Engine));
    wal.create_table(id, RECORDS, b"of the engine", contents).expect("made");
    wal.shared_log(id)
}

/// Keys of puts, and records, as opening tells them.
#[derive(Debug, Default)]
struct Told {
    of_engine: Option<TableId>,
    all: Vec<Vec<u8>>,
}

impl Recovery<Error> for Told {
    fn create(&mut self, table: TableId, name: &str, _: &[u8], own: Option<u64>) -> Result<()> {
        if name == RECORDS {
            self.of_engine = Some(table);
        }
        assert_eq!(own, None, "there was no checkpoint");
        Ok(())
    }

    fn entry(&mut self, _: TableId, _: &[u8], _: &[u8]) -> Result<()> {
        panic!("there was no checkpoint")
    }

    fn change(&mut self, table: TableId, key: &[u8], effect: Effect<'_>) -> Result<()> {
        match effect {
            Effect::Put(record) if self.of_engine == Some(table) => {
                assert_eq!(key, b"");
                self.all.push(record.to_vec());
            }
            _ => self.all.push(key.to_vec()),
        }
        Ok(())
    }
}

fn told(disk: &SimDisk) -> Vec<Vec<u8>> {
    let mut told = Told::default();
    Wal::view(disk, &mut told).expect("viewed");
    told.all
}

#[test]
fn a_record_that_ends_a_group_is_one_with_it() {
    let disk = SimDisk::new();
    let mut world = World::create(&disk, Durability::Buffered).expect("made");
    world.make_table("t").expect("made");
    let shared = shared(&world.wal);
    assert_eq!(shared.id(), world.wal.id());
    let end = world.wal.together(|| {
        world.table("t").put(b"a", b"1");
        shared.append(b"alone", false).expect("room");
        world.table("t").put(b"b", b"1");
        let end = shared.append(b"last", true).expect("room");
        world.table("t").put(b"c", b"1");
        end
    });
    shared.append(b"after", true).expect("room");
    assert_eq!(told(&disk), [&b"alone"[..], b"a", b"b", b"last", b"c", b"after"]);
    // A follower hears of entries alone: of two in one record, up to the end of the group.
    let mut records = Vec::new();
    let mut follower = Follower::open(Arc::new(disk.clone()), None).expect("opened");
    let mut take = |record: sapwood_wal::LogRecord<'_>| {
        let keys = record.changes.iter().filter_map(|change| match change {
            LogChange::Put { key, .. } => Some(key[0]),
            _ => None,
        });
        records.push((record.position, keys.collect::<Vec<_>>()));
        Ok(())
    };
    follower.read(&mut take).expect("read");
    let of_entries: Vec<_> = records.iter().filter(|(_, keys)| !keys.is_empty()).collect();
    assert_eq!(of_entries.len(), 2, "{records:?}");
    assert_eq!((of_entries[0].0, &of_entries[0].1[..]), (end, &b"ab"[..]));
    assert_eq!(of_entries[1].1, b"c");
}

#[test]
fn a_full_disk_refuses_a_record_and_the_log_goes_on() {
    let disk = SimDisk::new();
    let mut world = World::create_with(&disk, options(Durability::Buffered)).expect("made");
    world.make_table("t").expect("made");
    let shared = shared(&world.wal);
    let record = vec![7; 300 << 10];
    let full = || Faults::new().writes(0.., WriteFault::Error(ErrorKind::StorageFull));
    let fill = || {
        let mut appended = 0;
        let refused = loop {
            match shared.append(&record, false) {
                Ok(_) => appended += 1,
                Err(cause) => break cause,
            }
        };
        (appended, refused)
    };
    disk.set_faults(full());
    let (appended, refused) = fill();
    assert_eq!(refused.kind(), ErrorKind::StorageFull);
    assert!((1..8).contains(&appended), "{appended}");
    world.wal.check().expect("nothing has happened");
    disk.set_faults(Faults::new());
    shared.append(b"later", false).expect("room");
    assert_eq!(told(&disk).len(), appended + 1);
    // What goes with it is there, and has its room.
    let refused = world.wal.together(|| {
        world.table("t").put(b"a", b"1");
        disk.set_faults(full());
        fill();
        shared.append(&record, true).expect_err("full")
    });
    assert_eq!(refused.kind(), ErrorKind::StorageFull);
    world.wal.check().expect("nothing is lost");
    disk.set_faults(Faults::new());
    shared.append(b"more", false).expect("room");
}

#[test]
fn bytes_that_do_not_last_are_bounded() {
    let disk = SimDisk::new();
    let interval = Durability::Interval(std::time::Duration::from_secs(60));
    let world = World::create_with(&disk, options(interval).unsynced_bytes(10_000)).expect("made");
    let shared = shared(&world.wal);
    for _ in 0..100 {
        let end = shared.append(&[7; 1_000], false).expect("room");
        shared.bound_unsynced().expect("synced");
        assert!(end - shared.log().durable() <= 10_000);
    }
}
