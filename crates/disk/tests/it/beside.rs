//! Readers beside the writer of a folder.

use std::sync::Arc;

use sapwood_disk::{BLOCK_BYTES, Blocks, Disk, FileDisk, HeldFiles, Read, SimDisk};

use crate::{blocks, fills};

#[test]
fn a_writer_knows_of_readers_that_have_not_ended() {
    let parent = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(parent.path().join("copy")).expect("made");
    let copy = FileDisk::open_unlocked(parent.path().join("copy")).expect("there");
    assert!(copy.begin_reading().expect("there").is_none(), "it never had a writer");
    let real = FileDisk::open(parent.path()).expect("free");
    let beside = FileDisk::open_unlocked(parent.path()).expect("not locked");
    let sim = SimDisk::new();
    let pairs: [(&dyn Disk, &dyn Disk); 2] = [(&real, &beside), (&sim, &sim)];
    for (writer, reader) in pairs {
        assert!(!writer.is_being_read());
        let one = reader.begin_reading().expect("shared");
        let other = reader.begin_reading().expect("shared");
        assert!(one.is_some() && writer.is_being_read() && writer.is_being_read());
        drop(one);
        assert!(writer.is_being_read());
        drop(other);
        assert!(!writer.is_being_read());
    }
}

#[test]
fn files_that_are_held_are_those_of_one_moment() {
    let parent = tempfile::tempdir().expect("a folder");
    let real = FileDisk::open(parent.path()).expect("free");
    let sim = SimDisk::new();
    let disks: [(&dyn Disk, Arc<dyn Disk>); 2] = [
        (&real, Arc::new(FileDisk::open_unlocked(parent.path()).expect("not locked"))),
        (&sim, Arc::new(sim.clone())),
    ];
    for (writer, reader) in disks {
        let write = |name: &str, fill: &[u8]| {
            let file = writer.create(name).expect("made");
            file.write_at(0, &blocks(fill)).expect("written");
            file
        };
        let short = write("short", &[1, 2]);
        let long = write("long", &[3, 4, 5]);
        drop(write("gone", &[6]));
        let held = HeldFiles::of(reader).expect("held");
        assert!(writer.is_being_read());
        short.write_at(0, &blocks(&[7, 8])).expect("written");
        long.write_at(3 * BLOCK_BYTES as u64, &blocks(&[9])).expect("written");
        writer.remove("gone").expect("removed");
        writer.rename("long", "other").expect("renamed");
        drop(write("new", &[10]));

        assert_eq!(held.list().expect("names"), ["gone", "long", "short"]);
        assert!(held.has("gone") && !held.has("new"));
        let fills_of = |name: &str| fills(&*held.open(name).expect("held"));
        assert_eq!((fills_of("short"), fills_of("gone")), (vec![1, 2], vec![6]));
        assert_eq!(fills_of("long"), [3, 4, 5, 9], "it is written in place");
        assert!(held.is_read_only() && held.open("new").is_err() && held.create("x").is_err());
        assert!(held.remove("gone").is_err() && held.rename("gone", "x").is_err());
        let (short, long) = (held.open("short").expect("held"), held.open("long").expect("held"));
        let (mut one, mut two) = (Blocks::new(BLOCK_BYTES), Blocks::new(BLOCK_BYTES));
        let offset = BLOCK_BYTES as u64;
        let mut reads = [
            Read { file: &*short, offset, into: &mut one, result: Ok(()) },
            Read { file: &*long, offset, into: &mut two, result: Ok(()) },
        ];
        held.read_many(&mut reads);
        assert!(reads.iter().all(|read| read.result.is_ok()));
        assert_eq!((one.bytes()[0], two.bytes()[0]), (2, 4));
        assert!(short.read_at(2 * offset, &mut one).is_err(), "behind its end");
        drop(held);
        assert!(!writer.is_being_read());
    }
}
