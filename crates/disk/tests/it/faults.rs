//! Failures as planned.

use crate::{blocks, fills};
use sapwood_disk::{BLOCK_BYTES, Blocks, Disk, Faults, ReadFault, SimDisk, SyncFault, WriteFault};
use std::io::ErrorKind;

const B: u64 = BLOCK_BYTES as u64;

#[test]
fn reads_fail_by_number() {
    let disk = SimDisk::new();
    let file = disk.create("a").expect("made");
    file.write_at(0, &blocks(&[1, 1])).expect("written");
    disk.set_faults(
        Faults::new()
            .reads(1..2, ReadFault::Error(ErrorKind::TimedOut))
            .reads(2..=2, ReadFault::Short)
            .reads(3..4, ReadFault::Flip(5)),
    );
    let mut into = Blocks::new(2 * BLOCK_BYTES);
    assert!(file.read_at(0, &mut into).is_ok());
    assert_eq!(file.read_at(0, &mut into).expect_err("planned").kind(), ErrorKind::TimedOut);
    assert_eq!(file.read_at(0, &mut into).expect_err("planned").kind(), ErrorKind::UnexpectedEof);
    file.read_at(0, &mut into).expect("flipped in silence");
    let wrong: Vec<_> = (0..2 * BLOCK_BYTES).filter(|at| into.bytes()[*at] != 1).collect();
    assert_eq!(wrong, [5]);
    file.read_at(0, &mut into).expect("no fault left");
    assert!(into.bytes().iter().all(|byte| *byte == 1));
}

#[test]
fn writes_fail_by_number() {
    let disk = SimDisk::new();
    let file = disk.create("a").expect("made");
    file.write_at(0, &blocks(&[1, 1])).expect("written");
    disk.set_faults(
        Faults::new()
            .writes(0..1, WriteFault::Error(ErrorKind::PermissionDenied))
            .writes(1.., WriteFault::Torn(ErrorKind::BrokenPipe)),
    );
    let refused = file.write_at(0, &blocks(&[2, 2])).expect_err("planned");
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
    assert_eq!(fills(&*file), [1, 1]);
    let torn = file.write_at(0, &blocks(&[3, 3])).expect_err("planned");
    assert_eq!(torn.kind(), ErrorKind::BrokenPipe);
    assert_eq!(fills(&*file), [3, 1]);
}

#[test]
fn a_full_disk_refuses_to_grow() {
    let disk = SimDisk::new();
    let file = disk.create("a").expect("made");
    disk.create("b").expect("made").write_at(0, &blocks(&[9])).expect("written");
    disk.set_faults(Faults::new().space(3 * B));
    file.write_at(0, &blocks(&[1, 2])).expect("just fits");
    assert_eq!(
        file.write_at(2 * B, &blocks(&[3])).expect_err("full").kind(),
        ErrorKind::StorageFull
    );
    file.write_at(B, &blocks(&[4])).expect("no longer than before");
    assert_eq!(fills(&*file), [1, 4]);
    disk.remove("b").expect("removed");
    file.write_at(2 * B, &blocks(&[3])).expect("there is room again");
    assert_eq!(disk.file_bytes(), 3 * B);
}

#[test]
fn a_failed_sync_is_not_made_good_by_another() {
    let disk = SimDisk::new();
    let file = disk.create("a").expect("made");
    disk.sync().expect("synced");
    file.write_at(0, &blocks(&[1, 1])).expect("written");
    file.sync().expect("synced");
    file.write_at(0, &blocks(&[2, 2])).expect("written");
    disk.set_faults(Faults::new().syncs(0..1, SyncFault::Doubtful(ErrorKind::Other)));
    assert!(file.sync().is_err());
    assert_eq!(fills(&*file), [2, 2], "the page cache still has it");
    file.sync().expect("succeeds, and means nothing for the lost bytes");
    let blocks_of = |seed| {
        disk.crash(seed).contents("a").expect("there").chunks(512).map(|s| s[0]).collect::<Vec<_>>()
    };
    let seen: Vec<_> = (0..40).map(blocks_of).collect();
    assert!(seen.iter().any(|sectors| sectors.contains(&1)));
    assert!(seen.iter().any(|sectors| sectors.contains(&2)));
    // Written again and synced, the first block lasts; the second stays in doubt.
    file.write_at(0, &blocks(&[3])).expect("written");
    file.sync().expect("synced");
    let seen: Vec<_> = (0..40).map(blocks_of).collect();
    assert!(seen.iter().all(|sectors| sectors[..8] == [3; 8]));
    assert!(seen.iter().any(|sectors| sectors[8..].contains(&1)));
    assert!(seen.iter().any(|sectors| sectors[8..].contains(&2)));
}

#[test]
fn a_failed_sync_may_lose_at_once() {
    let disk = SimDisk::new();
    let file = disk.create("a").expect("made");
    file.write_at(0, &blocks(&[1])).expect("written");
    file.sync().expect("synced");
    file.write_at(0, &blocks(&[2, 2])).expect("written");
    disk.set_faults(Faults::new().syncs(0..1, SyncFault::Lost(ErrorKind::Other)));
    assert!(file.sync().is_err());
    assert_eq!(fills(&*file), [1]);
}

#[test]
fn names_of_a_failed_sync_stay_in_doubt() {
    let disk = SimDisk::new();
    disk.create("a").expect("made");
    disk.set_faults(Faults::new().syncs(0..1, SyncFault::Doubtful(ErrorKind::Other)));
    assert!(disk.sync().is_err());
    disk.create("b").expect("made");
    disk.sync().expect("synced");
    let images: Vec<_> = disk.crash_images(10).map(|image| image.list().expect("names")).collect();
    assert_eq!(images, [vec!["b"], vec!["a", "b"]]);
    // Deciding about the name again, lastingly, ends the doubt.
    disk.remove("a").expect("removed");
    disk.sync().expect("synced");
    let images: Vec<_> = disk.crash_images(10).map(|image| image.list().expect("names")).collect();
    assert_eq!(images, [vec!["b"]]);
}

#[test]
fn without_power_nothing_works() {
    let disk = SimDisk::new();
    let file = disk.create("a").expect("made");
    disk.stop_after(2);
    file.write_at(0, &blocks(&[1])).expect("the first of two");
    assert_eq!(fills(&*file), [1]);
    file.sync().expect("the second of two");
    assert_eq!(disk.operations(), 3);
    for result in [
        file.write_at(0, &blocks(&[2])),
        file.sync(),
        file.read_at(0, &mut Blocks::new(1)),
        file.bytes().map(|_| ()),
        disk.sync(),
        disk.create("b").map(|_| ()),
        disk.open("a").map(|_| ()),
        disk.rename("a", "b"),
        disk.remove("a"),
        disk.list().map(|_| ()),
    ] {
        assert!(result.is_err());
    }
    assert_eq!(disk.operations(), 3);
    // The name was never synced; whether it is there or not, there is power again.
    assert!(disk.crash(1).list().is_ok());
}
