//! What was told is there when a log is opened again.

use std::io::ErrorKind;
use std::sync::Arc;

use sapwood_disk::log::Durability;
use sapwood_disk::{Disk, Faults, SimDisk, SyncFault};
use sapwood_wal::{Contents, Error, Wal};

use crate::world::{Told, World, options};

fn reopened(disk: &SimDisk, world: World) -> World {
    let before = world.contents();
    drop(world);
    let world = World::open(disk, Durability::Buffered).expect("opened");
    assert_eq!(world.contents(), before);
    world
}

#[test]
fn tables_are_told_with_their_entries() {
    let disk = SimDisk::new();
    assert_eq!(Wal::is_on(&disk), Ok(false));
    let mut world = World::create(&disk, Durability::Buffered).expect("made");
    assert_eq!(Wal::is_on(&disk), Ok(true));
    world.make_table("a").expect("made");
    world.make_table("b").expect("made");
    for number in 0..3_000_u32 {
        let value = vec![number as u8; number as usize % 700];
        world.table("a").put(&number.to_be_bytes(), &value);
        world.table("a").remove(&(number / 2).to_be_bytes());
        world.table("b").put(b"", &number.to_be_bytes());
        world.table("b").write(b"", 1, &[7]);
    }
    let world = reopened(&disk, world);
    let long = vec![3; 3 << 20];
    world.table("a").put(b"long", &long);
    let written = world.wal.checkpoint().expect("written");
    assert_eq!((written.number, written.entries), (1, 1_502));
    let mut world = reopened(&disk, world);
    world.drop_table("b").expect("dropped");
    world.make_table("b").expect("made anew");
    world.table("b").put(b"new", b"");
    let world = reopened(&disk, world);
    assert_eq!(world.table("b").entries().len(), 1);

    let mut told = Told::default();
    let before = disk.list().expect("names");
    Wal::view(&disk, &mut told).expect("read");
    assert_eq!(told.contents(), world.contents());
    assert_eq!(disk.list().expect("names"), before, "looking changes nothing");
}

#[test]
fn checkpoints_give_files_back() {
    let disk = SimDisk::new();
    let mut world = World::create(&disk, Durability::Buffered).expect("made");
    world.make_table("t").expect("made");
    for round in 0..40_u32 {
        for number in 0..500_u32 {
            world.table("t").put(&(number % 100).to_be_bytes(), &[round as u8; 4_000]);
        }
        world.wal.checkpoint().expect("written");
        let names = disk.list().expect("names");
        let files = |prefix| names.iter().filter(|name| name.starts_with(prefix)).count();
        assert_eq!(files("snapshot"), 1);
        // The part that is appended to, and spares.
        assert!(files("wal") <= 3, "{names:?}");
    }
    assert!(world.wal.bytes_since_checkpoint() < 1 << 20);
    reopened(&disk, world);
}

#[test]
fn after_a_failed_sync_no_change_is_taken() {
    let disk = SimDisk::new();
    let mut world = World::create(&disk, Durability::Sync).expect("made");
    world.make_table("t").expect("made");
    world.table("t").put(b"a", b"1");
    world.wal.settle().expect("lasts");
    disk.set_faults(Faults::new().syncs(..1, SyncFault::Doubtful(ErrorKind::Other)));
    world.table("t").put(b"b", b"1");
    assert!(matches!(world.wal.settle(), Err(Error::Io { .. })));
    disk.set_faults(Faults::new());
    for _ in 0..2 {
        assert!(matches!(world.wal.check(), Err(Error::Io { .. })));
        assert!(!world.table("t").may_put(b"c", b"1"));
        assert!(matches!(world.wal.settle(), Err(Error::Io { .. })));
        assert!(matches!(world.wal.checkpoint(), Err(Error::Io { .. })));
    }
    drop(world);
    let world = World::open(&disk, Durability::Sync).expect("opened");
    let keys: Vec<_> = world.table("t").entries().keys().cloned().collect();
    assert!(keys == [b"a"] || keys == [b"a", b"b"], "{keys:?}");
}

#[test]
fn a_table_of_long_names_is_refused() {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
    let wal = Wal::create(disk, options(Durability::Buffered)).expect("made");
    #[derive(Debug)]
    struct Empty;
    impl sapwood_wal::Entries for Empty {
        fn for_each(
            &self,
            _: &mut dyn FnMut(&[u8], &[u8]) -> sapwood_wal::Result<()>,
        ) -> sapwood_wal::Result<()> {
            Ok(())
        }
    }
    let refused = wal.create_table(
        wal.reserve(),
        &"n".repeat(2 << 20),
        b"",
        Contents::Entries(Arc::new(Empty)),
    );
    assert!(matches!(refused, Err(Error::Table(_))));
}

/// A manifest that is missing does not make an empty log of what is there.
#[test]
fn without_its_manifest_a_log_is_refused() {
    for is_saved in [false, true] {
        let disk = SimDisk::new();
        let mut world = World::create(&disk, Durability::Sync).expect("made");
        let begun = disk.crash(1);
        begun.remove("manifest").expect("removed");
        assert_eq!(Wal::is_on(&begun), Ok(false), "it was not finished, for all that can be told");
        world.make_table("t").expect("made");
        if is_saved {
            world.wal.checkpoint().expect("written");
        }
        drop(world);
        disk.remove("manifest").expect("removed");
        let refused = Wal::is_on(&disk).expect_err("there is a table");
        assert!(matches!(&refused, Error::CorruptFile { file, .. } if file == "manifest"));
    }
}
