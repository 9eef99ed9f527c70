//! Files that were sealed well, and say what cannot be.

use super::*;
use crate::{HashLog, Layout};
use sapwood_disk::SimDisk;
use std::sync::Arc;

const PAGE_BYTES: u64 = 4096;
const MEMORY: u64 = 1 << 20;

fn open(disk: &SimDisk) -> Result<HashLog> {
    let options = Options {
        layout: Layout::Fixed8,
        page_bytes: PAGE_BYTES as usize,
        memory_budget: Some(MEMORY),
        ..Options::default()
    };
    HashLog::open(Arc::new(disk.clone()), options)
}

/// A table of some pages with a checkpoint.
fn table() -> SimDisk {
    let disk = SimDisk::new();
    let log = open(&disk).expect("an empty folder");
    for index in 0..500_u64 {
        log.put(&index.to_le_bytes(), &[7; 8]).expect("room");
    }
    log.checkpoint(Cut::Full).expect("a disk without faults");
    disk
}

#[test]
fn manifests_with_impossible_numbers_are_refused() {
    let disk = table();
    let good = manifest::read(&disk, 1).expect("it was written");
    assert!(open(&disk).is_ok());
    let end = |end| Manifest { end, image_end: end, begin: good.begin.min(end), ..good.clone() };
    let beyond = 1 << 60;
    for lie in [
        end(0),
        end(good.end + 8),
        end(good.end - 8),
        Manifest { begin: good.begin + 8, ..good.clone() },
        Manifest { image_end: good.image_end - 8, ..good.clone() },
        Manifest { begin: beyond, ..end(beyond) },
        Manifest { begin: u64::MAX - 4095, ..end(u64::MAX - 4095) },
        // Found by fuzzing: the counter ran over.
        Manifest { entries: u64::MAX, ..good.clone() },
        Manifest { entries: slot::ADDRESS_MASK + 1, ..good.clone() },
    ] {
        manifest::write(&disk, &lie).expect("a disk without faults");
        let refused = open(&disk).map(drop).expect_err("a number that cannot be");
        let file = "checkpoint-0000000000000001.manifest";
        assert!(
            matches!(&refused, Error::Corrupt { file: named, .. } if named == file),
            "{lie:?}: {refused}"
        );
    }
}

#[test]
fn images_with_impossible_slots_are_refused() {
    let disk = table();
    let good = manifest::read(&disk, 1).expect("it was written");
    let end = Address::from_bytes(good.image_end);
    let write = |count: u64, address: Address| {
        let params = [count, end.units(), 0, 0, 0, 0, 0, 0];
        let mut image = ImageWriter::create(&disk, 1, params).expect("a disk without faults");
        image.push(0).expect("a disk without faults");
        image.push(slot::word(1, 5, slot::TAG_BITS, address)).expect("a disk without faults");
        image.finish().expect("a disk without faults");
        open(&disk).map(drop)
    };
    assert_eq!(write(2, Address::from_bytes(good.begin)), Ok(()));
    let refused = write(2, end).expect_err("no record lies there");
    assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
    // More than there is memory for: of the process, and of any machine.
    for count in [MEMORY / 64 * 2, 1 << 40] {
        let refused = write(count, Address::from_bytes(good.begin)).expect_err("too many");
        assert!(matches!(refused, Error::OutOfMemory { .. }), "{refused}");
    }
}
