use super::*;
use crate::files::stored::tests::rounds;
use sapwood_disk::{Faults, FileDisk, ReadFault, SimDisk, SyncFault, WriteFault};
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

mod crashes;
mod damage;

/// The byte at `at` of page `page`.
fn byte(page: u64, at: usize) -> u8 {
    (page as usize * 31 + at * 7 + at / 251) as u8
}

fn page_of(shape: PartShape, page: u64) -> Blocks {
    let mut blocks = Blocks::new(shape.page_bytes as usize);
    for (at, place) in blocks.bytes_mut()[..shape.page_bytes as usize].iter_mut().enumerate() {
        *place = byte(page, at);
    }
    blocks
}

fn shape(page_bytes: usize, pages_per_part: u64) -> PartShape {
    PartShape::new(page_bytes, Some(pages_per_part))
}

/// Pages smaller than a block, of a block, and of several.
fn shapes() -> [PartShape; 3] {
    [shape(64, 3), shape(4096, 2), shape(16 << 10, 2)]
}

impl Parts {
    /// Writes a page and waits for it.
    fn write_page(&self, page: u64, used: usize, bytes: &Blocks) -> Result<()> {
        self.begin_write_page(PageNumber::from(page), bytes.clone(), move |_| used).wait().0
    }
}

fn write(parts: &Parts, page: u64, used: usize) -> Result<()> {
    parts.write_page(page, used, &page_of(parts.shape, page))
}

/// Checks that the page has these bytes used, every way of reading.
fn check_page(parts: &Parts, page: u64, used: usize) {
    let mut into = Blocks::default();
    assert_eq!(parts.read_page(PageNumber::from(page), &mut into), Ok(used), "page {page}");
    let (front, rest) = into.bytes().split_at(used);
    assert!(front.iter().enumerate().all(|(at, found)| *found == byte(page, at)));
    assert!(rest.iter().all(|found| *found == 0));
    assert_eq!(into.bytes().len() as u64, parts.shape.area_bytes());
    let base = page * parts.shape.page_bytes;
    let ends = [0, 1, 8, 63, 64, 4095, 4096, 4097, 8200, used / 2, used.saturating_sub(1), used];
    // Behind the last byte of a page begins another.
    let is_inside = |end: &usize| *end <= used && (*end as u64) < parts.shape.page_bytes;
    for begin in ends.into_iter().filter(is_inside) {
        for limit in ends.into_iter().filter(|end| (begin..=used).contains(end)) {
            let mut bytes = vec![0; limit - begin];
            parts.read(base + begin as u64, &mut bytes).expect("within the used bytes");
            let expected = (begin..limit).map(|at| byte(page, at));
            assert!(bytes.into_iter().eq(expected), "page {page}, {begin} to {limit}");
        }
    }
    let last = used.saturating_sub(1);
    let mut beyond = vec![0; used - last + 1];
    let refused = parts.read(base + last as u64, &mut beyond).expect_err("not used");
    assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
}

fn open(disk: Arc<dyn Disk>, shape: PartShape, pages: Range<u64>) -> Result<Parts> {
    Parts::open_shaped(disk, shape, pages.start.into(), pages.end.into())
}

fn on_every_disk(check: impl Fn(Arc<dyn Disk>, PartShape)) {
    for shape in shapes() {
        check(Arc::new(SimDisk::new()), shape);
        let folder = tempfile::tempdir().expect("a folder");
        check(Arc::new(FileDisk::open(folder.path()).expect("a disk")), shape);
    }
}

#[test]
fn pages_come_back_now_and_after_opening() {
    on_every_disk(|disk, shape| {
        let full = shape.page_bytes as usize;
        let uses = [full, 1, full - 1, 0, full, full / 2, full / 2 + 1];
        let parts = Parts::with(Arc::clone(&disk), shape);
        // The log need not begin at 0, nor at the first page of a part.
        for (page, used) in (5..).zip(uses) {
            write(&parts, page, used).expect("written");
        }
        parts.sync().expect("synced");
        for (page, used) in (5..).zip(uses) {
            check_page(&parts, page, used);
        }
        let written = parts.file_bytes();
        assert!(written >= 7 * shape.area_bytes());
        drop(parts);
        let parts = open(disk, shape, 5..12).expect("opened");
        for (page, used) in (5..).zip(uses) {
            check_page(&parts, page, used);
        }
        assert_eq!(parts.file_bytes(), written);
        for page in [0, 4, 12, 13, 1 << 30] {
            let refused = parts.read(page * shape.page_bytes, &mut [0]).expect_err("not there");
            assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
        }
    });
}

#[test]
fn a_page_may_have_more_blocks_than_one_block_of_trailer_has_checksums() {
    let shape = shape(4 << 20, 1);
    assert_eq!(shape.trailer_bytes(), 8192);
    let disk = Arc::new(SimDisk::new());
    let parts = Parts::with(disk.clone(), shape);
    for used in [1 << 20, 4 << 20] {
        write(&parts, 1, used).expect("written");
        parts.sync().expect("synced");
        let parts = open(disk.clone(), shape, 1..2).expect("opened");
        let mut into = Blocks::default();
        assert_eq!(parts.read_page(PageNumber::from(1), &mut into), Ok(used));
        let expected = page_of(shape, 1);
        assert!(into.bytes()[..used] == expected.bytes()[..used]);
        let mut last = [0; 8];
        parts.read((4 << 20) + used as u64 - 8, &mut last).expect("the last bytes");
        assert_eq!(last, expected.bytes()[used - 8..used]);
    }
    // The last block is verified like the others.
    let last = 4096 + (4 << 20) - 1;
    disk.damage("log-0000000000000001.part", last, 1).expect("in the file");
    let parts = open(disk, shape, 1..2).expect("only the newer trailer's block");
    assert_eq!(
        parts.read_page(PageNumber::from(1), &mut Blocks::default()),
        Ok(1 << 20),
        "as it was before"
    );
}

#[test]
fn a_page_may_be_written_again_with_more() {
    on_every_disk(|disk, shape| {
        let full = shape.page_bytes as usize;
        let parts = Parts::with(Arc::clone(&disk), shape);
        let steps = [0, 1, 1, full / 3, full / 2, full / 2 + 1, full, full];
        for (number, used) in steps.into_iter().enumerate() {
            write(&parts, 1, used).expect("written");
            check_page(&parts, 1, used);
            // Some steps last, and some are overtaken before they do.
            if number % 2 == 0 {
                parts.sync().expect("synced");
                let parts = open(Arc::clone(&disk), shape, 1..2).expect("opened");
                check_page(&parts, 1, used);
            }
        }
    });
}

#[test]
fn blocks_that_last_whole_are_not_written_again() {
    let disk = SimDisk::new();
    let parts = Parts::with(Arc::new(disk.clone()), shape(16 << 10, 2));
    write(&parts, 0, 10_000).expect("written");
    parts.sync().expect("synced");
    // Writing these blocks would mend them.
    disk.damage("log-0000000000000000.part", 4096 + 8191, 1).expect("in the second block");
    disk.damage("log-0000000000000000.part", 4096 + 8192, 1).expect("in the third block");
    write(&parts, 0, 12_000).expect("written");
    let mut bytes = [0; 1000];
    assert!(matches!(parts.read(5000, &mut bytes), Err(Error::Corrupt { .. })));
    parts.read(8192, &mut bytes).expect("the third block was used in part");
}

#[test]
fn other_bytes_in_place_of_written_ones_are_refused() {
    for shape in shapes() {
        let parts = Parts::with(Arc::new(SimDisk::new()), shape);
        let full = shape.page_bytes as usize;
        write(&parts, 0, full - 9).expect("written");
        for at in [0, full / 2, full - 10] {
            let mut other = page_of(shape, 0);
            other.bytes_mut()[at] ^= 1;
            let refused = parts.write_page(0, full, &other).expect_err("changed");
            assert!(refused.to_string().contains("nothing was written"), "{refused}");
        }
        assert!(write(&parts, 0, full - 10).is_err(), "fewer than before");
        let mut other = page_of(shape, 0);
        other.bytes_mut()[full - 9] ^= 1;
        parts.write_page(0, full, &other).expect("behind what was used");
        parts.sync().expect("nothing is in doubt");
    }
}

#[test]
fn many_reads_answer_each_for_itself() {
    on_every_disk(|disk, shape| {
        let full = shape.page_bytes as usize;
        let parts = Parts::with(disk, shape);
        for page in 0..5 {
            write(&parts, page, full - 3).expect("written");
        }
        let wanted = [(4, 0, 64.min(full - 3)), (0, 10, 20), (7, 0, 1), (2, full - 4, 1)];
        let wanted = [&wanted[..], &[(2, full - 4, 2), (1, 0, full - 3), (3, 5, 0)]].concat();
        let address = |page: u64, begin: usize| page * shape.page_bytes + begin as u64;
        let requests = wanted.iter().map(|(page, begin, len)| Ok((address(*page, *begin), *len)));
        let unknown = Error::NoDirectory;
        let reads = parts.begin_reads(requests.chain([Err(unknown.clone())]));
        let mut answers: Vec<_> = reads.into_iter().map(|read| read.wait(<[u8]>::len)).collect();
        assert_eq!(answers.pop(), Some(Err(unknown)), "what is wrong before it is read");
        for (number, ((page, begin, len), answer)) in wanted.iter().zip(answers).enumerate() {
            if [2, 4].contains(&number) {
                assert!(matches!(answer, Err(Error::Corrupt { .. })));
            } else {
                let expected = (*begin..begin + len).map(|at| byte(*page, at));
                assert_eq!(answer, Ok(expected.collect()));
            }
        }
        assert!(parts.begin_reads(std::iter::empty()).is_empty());
    });
}

#[test]
fn reads_that_fail_say_so_and_later_ones_do_not() {
    let disk = SimDisk::new();
    let parts = Parts::with(Arc::new(disk.clone()), shape(4096, 2));
    write(&parts, 0, 4096).expect("written");
    let fault = |fault| disk.set_faults(Faults::new().reads(0..1, fault));
    let mut bytes = [0; 8];
    fault(ReadFault::Error(ErrorKind::TimedOut));
    let failed = parts.read(0, &mut bytes).expect_err("as planned");
    assert!(matches!(failed, Error::Io { kind: ErrorKind::TimedOut, .. }), "{failed}");
    fault(ReadFault::Short);
    assert!(matches!(parts.read(0, &mut bytes), Err(Error::Corrupt { .. })));
    fault(ReadFault::Flip(4000));
    let failed = parts.read(0, &mut bytes).expect_err("a block is verified whole");
    assert!(matches!(failed, Error::Corrupt { offset: 4096, .. }), "{failed}");
    fault(ReadFault::Flip(4000));
    let begun = parts.begin_reads([Ok((0, 8))].into_iter());
    let failed: Vec<_> = begun.into_iter().map(|read| read.wait(<[u8]>::len)).collect();
    assert!(matches!(failed[..], [Err(Error::Corrupt { .. })]), "{failed:?}");
    parts.read(0, &mut bytes).expect("no fault left");
}

#[test]
fn a_failed_sync_stays_failed_until_its_pages_are_written_again() {
    for sync_fault in [SyncFault::Doubtful, SyncFault::Lost] {
        let disk = SimDisk::new();
        let shape = shape(64, 2);
        let parts = Parts::with(Arc::new(disk.clone()), shape);
        write(&parts, 0, 64).expect("written");
        write(&parts, 2, 64).expect("written");
        parts.sync().expect("synced");
        write(&parts, 1, 64).expect("written");
        write(&parts, 3, 64).expect("written");
        disk.set_faults(Faults::new().syncs(0..1, sync_fault(ErrorKind::Other)));
        let failed = parts.sync().expect_err("as planned");
        assert!(failed.to_string().contains("log-0000000000000000.part"), "{failed}");
        for _ in 0..3 {
            let failed = parts.sync().expect_err("nothing was written again");
            assert!(failed.to_string().contains("page 1"), "{failed}");
        }
        write(&parts, 0, 64).expect("another page of the part");
        write(&parts, 4, 64).expect("another part");
        assert!(parts.sync().is_err(), "page 1 is still in doubt");
        write(&parts, 1, 64).expect("written again");
        parts.sync().expect("all was written and synced");
        for image in disk.crash_images(100) {
            let parts = open(Arc::new(image), shape, 0..5).expect("all lasts");
            for page in 0..5 {
                check_page(&parts, page, 64);
            }
        }
    }
}

#[test]
fn the_first_sync_of_a_part_may_fail_too() {
    let disk = SimDisk::new();
    let shape = shape(64, 2);
    let parts = Parts::with(Arc::new(disk.clone()), shape);
    write(&parts, 0, 64).expect("written");
    disk.set_faults(Faults::new().syncs(0..1, SyncFault::Lost(ErrorKind::Other)));
    assert!(parts.sync().is_err());
    assert!(parts.sync().is_err());
    write(&parts, 0, 64).expect("written again, and the header too");
    parts.sync().expect("synced");
    let parts = open(Arc::new(disk.crash(1)), shape, 0..1).expect("opened");
    check_page(&parts, 0, 64);
}

#[test]
fn names_that_could_not_be_synced_stay_in_doubt() {
    let disk = SimDisk::new();
    let parts = Parts::with(Arc::new(disk.clone()), shape(64, 2));
    write(&parts, 0, 64).expect("written");
    disk.set_faults(Faults::new().syncs(1..2, SyncFault::Doubtful(ErrorKind::Other)));
    for _ in 0..3 {
        assert!(parts.sync().is_err());
        write(&parts, 0, 64).expect("written again, which does not help a name");
    }
}

#[test]
fn a_failed_write_keeps_sync_failing() {
    for (number, fault) in [
        (0, WriteFault::Error(ErrorKind::Other)),
        (0, WriteFault::Torn(ErrorKind::Other)),
        (1, WriteFault::Error(ErrorKind::Other)),
        (1, WriteFault::Torn(ErrorKind::Other)),
    ] {
        let disk = SimDisk::new();
        let shape = shape(16 << 10, 2);
        let parts = Parts::with(Arc::new(disk.clone()), shape);
        write(&parts, 0, 5000).expect("written");
        parts.sync().expect("synced");
        disk.set_faults(Faults::new().writes(number..=number, fault));
        assert!(write(&parts, 0, 16_000).is_err());
        check_page(&parts, 0, 5000);
        let failed = parts.sync().expect_err("what was asked for is not there");
        assert!(failed.to_string().contains("write it again"), "{failed}");
        for seed in 0..20 {
            let image = Arc::new(disk.crash(seed));
            let parts = open(image, shape, 0..1).expect("opened");
            let used =
                parts.read_page(PageNumber::ZERO, &mut Blocks::default()).expect("it is there");
            // A torn trailer is whole where only its zeros are missing.
            assert!([5000, 16_000].contains(&used));
            check_page(&parts, 0, used);
        }
        write(&parts, 0, 16_000).expect("written again");
        parts.sync().expect("synced");
        let image = Arc::new(disk.crash(0));
        check_page(&open(image, shape, 0..1).expect("opened"), 0, 16_000);
    }
}

#[test]
fn a_full_disk_refuses_a_page_and_takes_it_later() {
    let disk = SimDisk::new();
    let shape = shape(4096, 2);
    let parts = Parts::with(Arc::new(disk.clone()), shape);
    for page in 0..4 {
        write(&parts, page, 4096).expect("written");
    }
    parts.sync().expect("synced");
    let full = disk.file_bytes();
    // Not even a header; a header, and no page; a page, and no trailer.
    for spare in [0, 4096, 8192, 12288] {
        disk.set_faults(Faults::new().space(full + spare));
        let failed = write(&parts, 4, 4096).expect_err("full");
        assert!(matches!(failed, Error::Io { kind: ErrorKind::StorageFull, .. }), "{failed}");
        assert!(parts.read(4 * 4096, &mut [0]).is_err(), "it is not there");
        check_page(&parts, 3, 4096);
    }
    assert_eq!(parts.remove_below(PageNumber::from(2)), Ok(full / 2));
    write(&parts, 4, 4096).expect("there is room again");
    parts.sync().expect("synced");
    check_page(&parts, 4, 4096);
}

#[test]
fn parts_are_removed_from_the_front() {
    on_every_disk(|disk, shape| {
        let parts = Parts::with(Arc::clone(&disk), shape);
        let n = shape.pages_per_part;
        for page in 0..3 * n {
            write(&parts, page, 50).expect("written");
        }
        parts.sync().expect("synced");
        let all = parts.file_bytes();
        let before = disk.list().expect("names").len();
        // One page short of a part gives room back, and removes no file.
        let given_back = (n - 1) * shape.slot_bytes();
        for freed in [given_back, 0] {
            assert_eq!(parts.remove_below(PageNumber::from(n - 1)), Ok(freed));
        }
        assert_eq!(disk.list().expect("names").len(), before);
        check_page(&parts, n - 1, 50);
        let freed = parts.remove_below(PageNumber::from(2 * n)).expect("removed");
        assert_eq!(parts.file_bytes(), all - given_back - freed);
        assert_eq!(disk.list().expect("names").len(), before - 2);
        assert!(parts.read(0, &mut [0]).is_err());
        check_page(&parts, 2 * n, 50);
        drop(parts);
        let parts = open(disk, shape, 2 * n..3 * n).expect("opened");
        check_page(&parts, 3 * n - 1, 50);
    });
}

#[test]
fn pages_below_stay_for_those_that_read() {
    let disk = SimDisk::new();
    let shape = shape(64, 4);
    let parts = Parts::with(Arc::new(disk.clone()), shape);
    (0..4).for_each(|page| write(&parts, page, 64).expect("written"));
    let reading = disk.begin_reading().expect("a reader");
    assert_eq!(parts.remove_below(PageNumber::from(2)), Ok(0));
    check_page(&parts, 0, 64);
    drop(reading);
    assert_eq!(parts.remove_below(PageNumber::from(2)), Ok(2 * shape.slot_bytes()));
    check_page(&parts, 2, 64);
    assert!(parts.read(0, &mut [0]).is_err(), "it is damaged, not made up");
}

#[test]
fn parts_that_a_crash_brought_back_are_removed_the_next_time() {
    let disk = SimDisk::new();
    let shape = shape(64, 1);
    let parts = Parts::with(Arc::new(disk.clone()), shape);
    for page in 0..4 {
        write(&parts, page, 64).expect("written");
    }
    parts.sync().expect("synced");
    parts.remove_below(PageNumber::from(2)).expect("removed");
    let image = disk.crash_images(10).next().expect("the one in which no change of names was kept");
    assert_eq!(image.list().expect("names").len(), 4);
    let parts = open(Arc::new(image.clone()), shape, 2..4).expect("opened");
    assert_eq!(parts.remove_below(PageNumber::from(3)).expect("removed"), parts.file_bytes());
    assert_eq!(image.list().expect("names"), ["log-0000000000000003.part"]);
}

#[test]
fn a_log_takes_another_course_from_a_page_on() {
    on_every_disk(|disk, shape| {
        let full = shape.page_bytes as usize;
        for limit in [3, 4] {
            let parts = Parts::with(Arc::clone(&disk), shape);
            for used in [full / 2, full] {
                for page in 0..6 {
                    write(&parts, page, used).expect("written");
                }
                // Both trailers of each page are in use.
                parts.sync().expect("synced");
            }
            drop(parts);
            let parts = open(Arc::clone(&disk), shape, 0..limit).expect("opened");
            parts.remove_from(PageNumber::from(limit)).expect("removed");
            assert!(parts.read(limit * shape.page_bytes, &mut [0]).is_err(), "forgotten");
            // Other bytes, and fewer; the second page beyond is left as it was.
            let mut other = page_of(shape, limit);
            other.bytes_mut().fill(0xee);
            parts.write_page(limit, 40, &other).expect("written");
            parts.sync().expect("synced");
            drop(parts);
            let parts = open(Arc::clone(&disk), shape, 0..limit + 1).expect("opened");
            check_page(&parts, limit - 1, full);
            let mut into = Blocks::default();
            assert_eq!(parts.read_page(PageNumber::from(limit), &mut into), Ok(40));
            assert_eq!(into.bytes()[..40], [0xee; 40]);
            // And once more, without opening in between.
            parts.remove_from(PageNumber::from(limit)).expect("removed");
            write(&parts, limit, full).expect("written");
            check_page(&parts, limit, full);
            parts.remove_from(PageNumber::ZERO).expect("removed");
            assert!(disk.list().expect("names").is_empty());
            assert_eq!(parts.file_bytes(), 0);
        }
    });
}

#[test]
fn a_page_of_which_nothing_lasts_may_be_written_with_other_bytes_after_a_failure() {
    let disk = SimDisk::new();
    let shape = shape(16 << 10, 2);
    let mut other = page_of(shape, 0);
    other.bytes_mut()[100] ^= 1;
    let parts = Parts::with(Arc::new(disk.clone()), shape);
    write(&parts, 0, 9000).expect("written");
    assert!(parts.write_page(0, 9000, &other).is_err(), "there was no failure");
    disk.set_faults(Faults::new().syncs(0..1, SyncFault::Doubtful(ErrorKind::Other)));
    assert!(parts.sync().is_err());
    parts.write_page(0, 8000, &other).expect("written as if anew");
    parts.sync().expect("synced");
    for seed in 0..20 {
        let parts = open(Arc::new(disk.crash(seed)), shape, 0..1).expect("opened");
        let mut into = Blocks::default();
        assert_eq!(parts.read_page(PageNumber::ZERO, &mut into), Ok(8000));
        assert_eq!(into.bytes()[..8000], other.bytes()[..8000]);
    }
    // What lasts is protected, failure or not.
    disk.set_faults(Faults::new().writes(0..1, WriteFault::Error(ErrorKind::Other)));
    assert!(parts.write_page(0, 9000, &other).is_err());
    assert!(write(&parts, 0, 9000).is_err());
    parts.write_page(0, 9000, &other).expect("the same bytes");
}

#[test]
fn readers_go_on_while_pages_are_written_again_and_parts_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let disks: [Arc<dyn Disk>; 2] =
        [Arc::new(SimDisk::new()), Arc::new(FileDisk::open(folder.path()).expect("a disk"))];
    for disk in disks {
        let shape = shape(16 << 10, 2);
        let parts = Parts::with(disk, shape);
        write(&parts, 0, 16 << 10).expect("written");
        write(&parts, 8, 100).expect("written");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (parts, stop) = (&parts, &stop);
                scope.spawn(move || {
                    let mut into = Blocks::default();
                    let mut seen = 0;
                    while !stop.load(Ordering::Relaxed) {
                        // The page that grows: always what was there when asked, or more.
                        let used =
                            parts.read_page(PageNumber::from(8), &mut into).expect("it is there");
                        assert!(used >= seen && used >= 100);
                        assert!(
                            into.bytes()[..used]
                                .iter()
                                .enumerate()
                                .all(|(at, b)| *b == byte(8, at))
                        );
                        seen = used;
                        let mut bytes = [0; 50];
                        parts.read(8 * shape.page_bytes + 20, &mut bytes).expect("it is there");
                        assert!((20..70).map(|at| byte(8, at)).eq(bytes));
                        // The page that goes: whole or gone.
                        let address = 4096 * thread;
                        for read in parts.begin_reads([Ok((address, 99))].into_iter()) {
                            if let Ok(bytes) = read.wait(<[u8]>::len) {
                                let expected = (address as usize..).map(|at| byte(0, at)).take(99);
                                assert!(expected.eq(bytes));
                            }
                        }
                    }
                });
            }
            for used in (100..=16 << 10).step_by(331) {
                write(&parts, 8, used).expect("written");
                if used % 7 == 0 {
                    parts.sync().expect("synced");
                }
                if used > 8000 {
                    parts.remove_below(PageNumber::from(3)).expect("removed");
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn pages_are_written_by_several_threads_while_another_syncs() {
    let disk = SimDisk::new();
    let shape = shape(64, 4);
    let parts = Parts::with(Arc::new(disk.clone()), shape);
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let parts = &parts;
            scope.spawn(move || {
                for page in (0..60).filter(|page| page % 3 == thread) {
                    for used in [10, 64] {
                        write(parts, page, used).expect("written");
                    }
                }
            });
        }
        for _ in 0..20 {
            parts.sync().expect("synced");
        }
    });
    parts.sync().expect("synced");
    let parts = open(Arc::new(disk.crash(3)), shape, 0..60).expect("opened");
    for page in 0..60 {
        check_page(&parts, page, 64);
    }
}

#[test]
fn memory_is_four_bytes_a_block_and_a_little() {
    let disk = Arc::new(SimDisk::new());
    let parts = Parts::create(disk.clone(), 2 << 20, 0).expect("made");
    for page in 0..32 {
        write(&parts, page, 2 << 20).expect("written");
    }
    parts.sync().expect("synced");
    let parts =
        Parts::open(disk, 2 << 20, 0, PageNumber::ZERO, PageNumber::from(32)).expect("opened");
    let checksums = 4 * 32 * 512;
    assert!(
        (checksums..checksums + 16_000).contains(&parts.table_bytes()),
        "{}",
        parts.table_bytes()
    );
    assert_eq!(parts.file_bytes(), 4096 + 32 * ((2 << 20) + 8192));
    assert_eq!(parts.place(), "a simulated disk");
    // Reads of records give their buffers back.
    parts.read(77, &mut [0; 500]).expect("read");
    let before = parts.table_bytes();
    for at in 0..100 {
        parts.read(at * 5000, &mut [0; 500]).expect("read");
    }
    assert_eq!(parts.table_bytes(), before);
}
