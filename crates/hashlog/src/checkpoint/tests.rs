//! Files that were sealed well, and say what cannot be.

use crate::error::{Error, Result};
use crate::files::checkpoint_number::CheckpointNumber;
use crate::files::image::ImageWriter;
use crate::files::manifest;
use crate::files::manifest::Manifest;
use crate::files::stored::FileKind;
use crate::options::{Cut, Options};
use crate::record::address::Address;
use crate::record::layout::slot;
use crate::{HashLog, Layout};
use sapwood_disk::{Disk as _, SimDisk};
use std::ops::ControlFlow;
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
    let good = manifest::read(&disk, CheckpointNumber::FIRST).expect("it was written");
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
    let good = manifest::read(&disk, CheckpointNumber::FIRST).expect("it was written");
    let end = Address::from_bytes(good.image_end);
    let write = |count: u64, address: Address| {
        let params = [count, end.units(), 0, 0, 0, 0, 0, 0];
        let mut image = ImageWriter::create(&disk, CheckpointNumber::FIRST, params)
            .expect("a disk without faults");
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

/// The files of a table as version 2 wrote them: without an identity, and with its checksums.
fn as_version_2(disk: &SimDisk) -> SimDisk {
    let older = SimDisk::new();
    for name in disk.list().expect("names") {
        let mut bytes = disk.contents(&name).expect("it was listed");
        let mut at = 0;
        while at < bytes.len() {
            let count = u64::from_le_bytes(bytes[at + 24..at + 32].try_into().expect("8 bytes"));
            let len = match &bytes[at..at + 8] {
                b"SWhlImCh" => (32 + count as usize * 8).next_multiple_of(4096),
                _ => 4096,
            };
            if bytes[at..].starts_with(b"SWhl") {
                bytes[at + 8..at + 12].copy_from_slice(&2_u32.to_le_bytes());
                let sum = sapwood_disk::checksum(&bytes[at + 16..at + len]);
                bytes[at + 12..at + 16].copy_from_slice(&sum.to_le_bytes());
            }
            at += len;
        }
        if name != crate::files::identity::NAME {
            older.plant(&name, &bytes).expect("a valid name");
        }
    }
    older
}

#[test]
fn tables_of_version_2_open_and_go_on() {
    let disk = as_version_2(&table());
    assert!(!disk.list().expect("names").iter().any(|name| name == crate::files::identity::NAME));
    let manifest =
        disk.contents(&FileKind::Manifest.file_name(CheckpointNumber::FIRST)).expect("it is there");
    assert_eq!(manifest[8], 2);
    let log = open(&disk).expect("an older version");
    assert_eq!(log.len_exact(), Ok(500));
    for index in 400..1_000_u64 {
        log.put(&index.to_le_bytes(), &[8; 8]).expect("room");
    }
    log.checkpoint(Cut::Incremental).expect("a disk without faults");
    drop(log);
    assert!(disk.list().expect("names").iter().any(|name| name == crate::files::identity::NAME));
    let log = open(&disk).expect("of both versions");
    assert_eq!(log.len_exact(), Ok(1_000));
    assert_eq!(log.get(&450_u64.to_le_bytes()), Ok(Some(vec![8; 8])));
    log.check().expect("a sound log");
}

/// Of a table of version 2 without a manifest it is told by its files whether it ever had one.
#[test]
fn tables_of_version_2_without_a_manifest() {
    let disk = as_version_2(&table());
    disk.remove(&FileKind::Manifest.file_name(CheckpointNumber::FIRST)).expect("it is there");
    let names = disk.list().expect("names");
    let refused = open(&disk).map(drop).expect_err("an image is there");
    assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
    assert_eq!(disk.list().expect("names"), names, "nothing is removed");
    // As before the first checkpoint.
    disk.remove(&FileKind::Image.file_name(CheckpointNumber::FIRST)).expect("it is there");
    assert_eq!(open(&disk).expect("it had none").len_exact(), Ok(0));
}

/// A snapshot may come when a page has been begun and no record is in it.
#[test]
fn a_page_that_is_closed_without_a_record_is_stored_and_goes() {
    let disk = table();
    let log = open(&disk).expect("a checkpoint");
    log.store.log.turn(false, 0).expect("room");
    let begun = log.stats().tail;
    let taken = log.checkpoint(Cut::Full).expect("a disk without faults");
    assert_eq!(taken.end, begun + PAGE_BYTES);
    // None is begun since.
    let again = log.checkpoint(Cut::Incremental).expect("a disk without faults");
    assert_eq!(again.end, taken.end);
    drop(log);
    let log = open(&disk).expect("a checkpoint");
    log.put(&500_u64.to_le_bytes(), &[7; 8]).expect("room");
    let garbage = log.estimate_garbage().expect("a disk without faults");
    assert!(garbage >= PAGE_BYTES, "{garbage} bytes");
    let counted = || {
        let mut count = 0;
        let _all = log.scan_log(|_, _| {
            count += 1;
            ControlFlow::<()>::Continue(())
        });
        (log.len_exact(), count)
    };
    assert_eq!(counted(), (Ok(501), 501));
    log.compact(1.0).expect("a disk without faults");
    assert_eq!(counted(), (Ok(501), 501));
    assert!(log.stats().begin >= taken.end, "the page went");
    log.check().expect("a sound log");
}
