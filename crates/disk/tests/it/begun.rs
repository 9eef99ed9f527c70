//! Reads that are begun together, by io_uring and by threads: both answer the same.

use std::fs;
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use crate::{blocks, fills};
use sapwood_disk::{
    BLOCK_BYTES, BegunRead, Blocks, Disk, DiskReads, File, FileDisk, HeldFiles, OwnedRead, ReadsBy,
    SimDisk,
};

/// The ways that the system permits.
fn ways() -> Vec<DiskReads> {
    let folder = tempfile::tempdir().expect("a folder");
    match open(folder.path(), DiskReads::IoUring) {
        Ok(_) => vec![DiskReads::IoUring, DiskReads::Threads],
        Err(cause) => {
            println!("by threads alone: {cause}");
            vec![DiskReads::Threads]
        }
    }
}

fn open(folder: &Path, reads: DiskReads) -> io::Result<FileDisk> {
    FileDisk::open(folder)?.with_reads(reads)
}

/// Calls with a disk of each way, and a file of 200 blocks there.
fn each_way(check: impl Fn(&FileDisk, Arc<dyn File>, &Path)) {
    for reads in ways() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = open(folder.path(), reads).expect("permitted");
        let file = disk.create("a").expect("made");
        file.write_at(0, &blocks(&(0..200).collect::<Vec<u8>>())).expect("written");
        check(&disk, file, &folder.path().join("a"));
    }
}

fn read(file: &Arc<dyn File>, block: u64) -> OwnedRead {
    let into = Blocks::new(BLOCK_BYTES);
    OwnedRead { file: Arc::clone(file), offset: block * BLOCK_BYTES as u64, into }
}

fn begin(
    disk: &dyn Disk,
    file: &Arc<dyn File>,
    blocks: impl Iterator<Item = u64>,
) -> Vec<BegunRead> {
    disk.begin_reads(blocks.map(|block| read(file, block)).collect())
}

fn expect_block(begun: BegunRead, fill: u64) {
    let (into, result) = begun.wait();
    result.expect("read");
    assert_eq!(into.bytes(), [fill as u8; BLOCK_BYTES]);
}

#[test]
fn reads_answer_each_for_itself() {
    each_way(|disk, file, _| {
        for count in [0, 1, 2, 7, 64, 200, 1500] {
            let wanted = move || (0..count).map(|at| at * 37 % 210);
            let begun = begin(disk, &file, wanted());
            assert_eq!(begun.len() as u64, count);
            if count % 2 == 0 {
                BegunRead::wait_for_many(begun.iter());
            }
            for (begun, block) in begun.into_iter().zip(wanted()) {
                if block < 200 {
                    expect_block(begun, block);
                    continue;
                }
                let (into, result) = begun.wait();
                let error = result.expect_err("beyond the end");
                assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
                assert_eq!(into.bytes().len(), BLOCK_BYTES, "the buffer comes back");
            }
        }
    });
}

#[test]
fn the_way_is_the_one_that_was_asked_for_and_says_so() {
    for reads in ways().into_iter().chain([DiskReads::Auto]) {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = open(folder.path(), reads).expect("permitted");
        let by_ring = match reads {
            DiskReads::Auto => ways().contains(&DiskReads::IoUring),
            reads => reads == DiskReads::IoUring,
        };
        let by = if by_ring { ReadsBy::IoUring } else { ReadsBy::Threads };
        assert_eq!((disk.reads_by(), disk.ring_reads()), (by, 0));
        assert_eq!(by.name(), if by_ring { "io_uring" } else { "threads" });
        let file = disk.create("a").expect("made");
        file.write_at(0, &blocks(&[0, 1, 2])).expect("written");
        for (begun, block) in begin(&disk, &file, 0..3).into_iter().zip(0..) {
            expect_block(begun, block);
        }
        assert_eq!(disk.ring_reads(), if by_ring { 3 } else { 0 });
        // The files of a moment are read the same way.
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let held = HeldFiles::of(Arc::clone(&disk)).expect("held");
        let file = held.open("a").expect("there");
        begin(&held, &file, 0..3)
            .into_iter()
            .zip(0..)
            .for_each(|(read, it)| expect_block(read, it));
        assert_eq!((held.reads_by(), held.ring_reads()), (by, if by_ring { 6 } else { 0 }));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let by_default = FileDisk::open(folder.path()).expect("made").reads_by();
    assert_eq!(by_default == ReadsBy::IoUring, ways().contains(&DiskReads::IoUring));
}

/// A file may end within a block, where it was cut by accident.
#[test]
fn a_short_read_answers_as_one_that_waits() {
    each_way(|disk, file, path| {
        let cut = fs::File::options().write(true).open(path).expect("there");
        for end in [0, 1, 511, 512, 4095, 4096, 5000, 3 * 4096 - 512] {
            cut.set_len(end).expect("cut");
            for blocks_read in [1, 2, 3] {
                let mut expected = Blocks::new(blocks_read * BLOCK_BYTES);
                let waited = file.read_at(0, &mut expected);
                let into = Blocks::new(blocks_read * BLOCK_BYTES);
                let begun = disk.begin_reads(vec![
                    OwnedRead { file: Arc::clone(&file), offset: 0, into },
                    read(&file, 7),
                ]);
                let answers: Vec<_> = begun.into_iter().map(BegunRead::wait).collect();
                let beyond = answers[1].1.as_ref().expect_err("beyond the end");
                assert_eq!(beyond.kind(), ErrorKind::UnexpectedEof);
                let told = |result: &io::Result<()>| {
                    let error = result.as_ref().err();
                    error.map(|error| (error.kind(), error.raw_os_error(), error.to_string()))
                };
                assert_eq!(told(&answers[0].1), told(&waited), "{end} bytes, {blocks_read} blocks");
                assert_eq!(answers[0].0.bytes(), expected.bytes());
            }
            cut.set_len(3 * 4096).expect("longer");
        }
    });
}

#[test]
fn reads_are_dropped_and_nested_and_waited_for_in_any_order() {
    each_way(|disk, file, _| {
        let outer = begin(disk, &file, 0..60);
        let mut inner = begin(disk, &file, 100..200);
        drop(begin(disk, &file, 0..200));
        for (begun, block) in inner.drain(50..).zip(150..) {
            expect_block(begun, block);
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _in_flight = begin(disk, &file, 0..50);
            panic!("with reads in flight");
        }));
        assert!(panicked.is_err());
        for (begun, block) in outer.into_iter().zip(0..) {
            expect_block(begun, block);
        }
        for (begun, block) in inner.into_iter().zip(100..) {
            expect_block(begun, block);
        }
    });
}

#[test]
fn threads_end_with_reads_in_flight() {
    each_way(|disk, file, _| {
        for round in 0..20 {
            thread::scope(|scope| {
                for thread in 0..8u64 {
                    let file = &file;
                    scope.spawn(move || {
                        let mut begun = begin(disk, file, thread..thread + 100);
                        let last = begun.pop().expect("one hundred");
                        match (round + thread) % 3 {
                            0 => drop(begun),
                            1 => std::mem::forget(begun),
                            _ => begun.into_iter().zip(thread..).for_each(|(it, block)| {
                                expect_block(it, block);
                            }),
                        }
                        if thread % 2 == 0 {
                            expect_block(last, thread + 99);
                        }
                    });
                }
            });
        }
        assert_eq!(fills(&*file), (0..200).collect::<Vec<u8>>());
    });
}

/// The disk and the names go before what is in flight has come.
#[test]
fn reads_outlive_their_disk() {
    for reads in ways() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = open(folder.path(), reads).expect("permitted");
        let file = disk.create("a").expect("made");
        file.write_at(0, &blocks(&(0..100).collect::<Vec<u8>>())).expect("written");
        let begun = begin(&disk, &file, 0..100);
        disk.remove("a").expect("removed");
        drop((file, disk));
        for (begun, block) in begun.into_iter().zip(0..) {
            expect_block(begun, block);
        }
    }
}

#[test]
fn files_of_another_disk_are_read_too() {
    each_way(|disk, file, _| {
        let foreign = SimDisk::new().create("a").expect("made");
        foreign.write_at(0, &blocks(&[7])).expect("written");
        let begun = disk.begin_reads(vec![read(&foreign, 0), read(&file, 3)]);
        for (begun, fill) in begun.into_iter().zip([7, 3]) {
            expect_block(begun, fill);
        }
    });
}

#[test]
fn the_page_cache_is_read_the_same_way() {
    each_way(|disk, file, path| {
        file.sync().expect("synced");
        let beside = FileDisk::open_unlocked(path.parent().expect("a folder")).expect("there");
        let beside = match disk.reads_by() {
            ReadsBy::IoUring => beside,
            ReadsBy::Threads => beside.with_reads(DiskReads::Threads).expect("always permitted"),
        };
        assert!(!beside.direct() && beside.reads_by() == disk.reads_by());
        let file = beside.open("a").expect("there");
        for (begun, block) in begin(&beside, &file, 0..200).into_iter().zip(0..) {
            expect_block(begun, block);
        }
    });
}

/// Names this test to a process of its own, which may open few files.
const CHILD: &str = "SAPWOOD_TEST_FEW_FILES";

/// The system refuses a ring to a process that has too many files open.
#[test]
fn a_refused_ring_leaves_threads() {
    if let Some(folder) = std::env::var_os(CHILD) {
        return with_few_files(Path::new(&folder));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let this = std::env::current_exe().expect("a program");
    let status = Command::new("sh")
        .args(["-c", "ulimit -n 40 && exec \"$0\" \"$@\""])
        .arg(this)
        .args(["--exact", "begun::a_refused_ring_leaves_threads", "--test-threads", "1"])
        .env(CHILD, folder.path())
        .output()
        .expect("a shell");
    let told = String::from_utf8_lossy(&status.stdout);
    assert!(status.status.success() && told.contains("1 passed"), "{told}");
}

fn with_few_files(folder: &Path) {
    let permitted = ways();
    let disk = open(folder, DiskReads::Auto).expect("made");
    let file = disk.create("a").expect("made");
    file.write_at(0, &blocks(&(0..100).collect::<Vec<u8>>())).expect("written");
    let mut all = Vec::new();
    let refused = loop {
        match fs::File::open("/dev/null") {
            Ok(one) => all.push(one),
            Err(cause) => break cause,
        }
    };
    let by_ring = permitted.contains(&DiskReads::IoUring);
    thread::scope(|scope| {
        // This thread has no ring yet, and gets none.
        let reads = scope.spawn(|| {
            for (begun, block) in begin(&disk, &file, 0..100).into_iter().zip(0..) {
                expect_block(begun, block);
            }
            assert_eq!(disk.ring_reads(), 0, "by threads");
        });
        reads.join().expect("no panic");
        let reads = scope.spawn(|| {
            all.pop();
            all.pop();
            all.pop();
            for (begun, block) in begin(&disk, &file, 0..100).into_iter().zip(0..) {
                expect_block(begun, block);
            }
            assert_eq!(disk.ring_reads(), if by_ring { 100 } else { 0 }, "there is room again");
        });
        // Its ring has gone with it.
        reads.join().expect("no panic");
    });
    while let Ok(one) = fs::File::open("/dev/null") {
        all.push(one);
    }
    // A disk that is opened by such a thread reads by threads, or says why not.
    let disk = thread::spawn(move || {
        let disk = disk.with_reads(DiskReads::Auto).expect("it may read by threads");
        assert_eq!(disk.reads_by(), ReadsBy::Threads);
        let error = disk.with_reads(DiskReads::IoUring).expect_err("it is demanded");
        assert_eq!(error.kind(), refused.kind());
        assert!(error.to_string().contains("io_uring"), "{error}");
    });
    disk.join().expect("no panic");
}
