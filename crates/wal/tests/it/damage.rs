//! Damaged files are told, and nothing wrong is read from them.

use sapwood_disk::log::Durability;
use sapwood_disk::{Disk, SimDisk};
use sapwood_wal::{Error, Wal};

use crate::world::{Told, World};

/// A log with a snapshot of two blocks and changes behind it, closed.
fn made() -> (SimDisk, World) {
    let disk = SimDisk::new();
    let mut world = World::create(&disk, Durability::Buffered).expect("made");
    world.make_table("t").expect("made");
    for number in 0..100_u8 {
        world.table("t").put(&[number], &[number; 4_000]);
    }
    world.wal.checkpoint().expect("written");
    for number in 0..20 {
        world.table("t").put(&[number], b"new");
    }
    world.wal.sync().expect("lasts");
    (disk, world)
}

#[test]
fn a_flipped_bit_of_a_lasting_file_is_found() {
    let (disk, world) = made();
    let right = world.contents();
    for name in disk.list().expect("names") {
        let is_part = name.starts_with("wal");
        let bytes = disk.contents(&name).expect("a file").len() as u64;
        let used = if is_part { 8_000.min(bytes) } else { bytes };
        for at in (0..used).step_by(97).chain([0, used - 1]) {
            disk.damage(&name, at, 0x10).expect("within");
            let mut told = Told::default();
            match Wal::view(&disk, &mut told) {
                // Bytes that no checksum covers, for they mean nothing.
                Ok(_) => assert_eq!(told.contents(), right, "{name} byte {at}"),
                Err(Error::CorruptFile { .. }) => {}
                // A version may be any number.
                Err(Error::Newer { .. }) if at == 6 => {}
                Err(other) => panic!("{name} byte {at}: {other}"),
            }
            disk.damage(&name, at, 0x10).expect("within");
        }
    }
}

/// Nothing is wrong with them, and no copy of them helps.
#[test]
fn files_of_a_later_version_are_told_from_damaged_ones() {
    for name in ["manifest", "snapshot-0000000000000001-0000000000000001"] {
        let (disk, _world) = made();
        let mut bytes = disk.contents(name).expect("a file");
        let known = u64::from(bytes[6]);
        bytes[6] = 9;
        disk.remove(name).expect("there");
        disk.plant(name, &bytes).expect("planted");
        let newer = Error::Newer { file: name.to_owned(), found: 9, known };
        let opened = World::open(&disk, Durability::Buffered).map(drop);
        assert_eq!(opened, Err(newer.clone()));
        assert!(newer.to_string().contains("upgrade"), "{newer}");
        assert_eq!(disk.contents(name).expect("a file"), bytes);
    }
}

#[test]
fn a_cut_off_file_is_found() {
    for name in ["manifest", "snapshot-0000000000000001-0000000000000001"] {
        let (disk, _world) = made();
        let bytes = disk.contents(name).expect("a file").len() as u64;
        for keep in [0, bytes / 2, bytes - 1] {
            let disk = disk.crash(1);
            disk.truncate(name, keep).expect("cut");
            let refused = Wal::view(&disk, &mut Told::default());
            let Err(Error::CorruptFile { file, .. }) = refused else { panic!("{refused:?}") };
            assert_eq!(file, name);
        }
    }
}

#[test]
fn a_snapshot_of_another_table_is_not_believed() {
    let disk = SimDisk::new();
    let mut world = World::create(&disk, Durability::Buffered).expect("made");
    for name in ["a", "b"] {
        world.make_table(name).expect("made");
        world.table(name).put(b"name", name.as_bytes());
    }
    world.wal.checkpoint().expect("written");
    drop(world);
    let [a, b] = [1, 2].map(|table| format!("snapshot-{:016x}-{table:016x}", 1));
    let bytes = disk.contents(&a).expect("a file");
    disk.remove(&b).expect("there");
    disk.plant(&b, &bytes).expect("planted");
    assert!(matches!(World::open(&disk, Durability::Buffered), Err(Error::CorruptFile { .. })));
}
