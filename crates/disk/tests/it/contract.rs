//! The promises of `Disk` and `File`, on each kind of disk.

use crate::{blocks, fills};
use sapwood_disk::{BLOCK_BYTES, Blocks, Disk, FileDisk, Read, SimDisk};
use std::io::ErrorKind;

fn on_every_disk(check: fn(&dyn Disk)) {
    check(&SimDisk::new());
    let folder = tempfile::tempdir().expect("a folder");
    check(&FileDisk::open(folder.path()).expect("a disk"));
}

#[test]
fn what_is_written_is_read() {
    on_every_disk(|disk| {
        let file = disk.create("a").expect("made");
        assert_eq!(file.bytes().expect("a length"), 0);
        file.write_at(0, &blocks(&[1, 2, 3])).expect("written");
        file.write_at(BLOCK_BYTES as u64, &blocks(&[4])).expect("written");
        // Beyond the end: zeros between.
        file.write_at(4 * BLOCK_BYTES as u64, &blocks(&[5])).expect("written");
        assert_eq!(fills(&*file), [1, 4, 3, 0, 5]);
        file.write_some_at(2 * BLOCK_BYTES as u64, &blocks(&[9, 6, 7, 9]), 1..3).expect("written");
        file.write_some_at(0, &blocks(&[9]), 1..1).expect("nothing to write");
        file.sync().expect("synced");
        disk.sync().expect("synced");
        assert_eq!(fills(&*file), [1, 4, 6, 7, 5]);
        assert_eq!(fills(&*disk.open("a").expect("opened")), [1, 4, 6, 7, 5]);
    });
}

#[test]
fn a_file_that_is_cut_ends_there_and_grows_again() {
    on_every_disk(|disk| {
        let file = disk.create("a").expect("made");
        file.write_at(0, &blocks(&[1, 2, 3])).expect("written");
        file.cut(5 * BLOCK_BYTES as u64).expect("shorter already");
        assert_eq!(fills(&*file), [1, 2, 3]);
        file.cut(BLOCK_BYTES as u64).expect("cut");
        assert_eq!(fills(&*file), [1]);
        file.write_at(2 * BLOCK_BYTES as u64, &blocks(&[4])).expect("written");
        assert_eq!(fills(&*file), [1, 0, 4], "nothing of what was cut off");
        file.sync().expect("synced");
        assert_eq!(fills(&*disk.open("a").expect("opened")), [1, 0, 4]);
    });
}

#[test]
fn room_that_is_given_back_leaves_the_rest() {
    on_every_disk(|disk| {
        let file = disk.create("a").expect("made");
        file.write_at(0, &blocks(&[1, 2, 3, 4])).expect("written");
        let block = BLOCK_BYTES as u64;
        file.discard(block..3 * block).expect("given back");
        assert_eq!(file.bytes().expect("a length"), 4 * block);
        let left = fills(&*file);
        assert_eq!((left[0], left[3]), (1, 4));
        file.write_at(2 * block, &blocks(&[5])).expect("written again");
        file.discard(3 * block..9 * block).expect("up to the end");
        file.sync().expect("synced");
        let left = fills(&*disk.open("a").expect("opened"));
        assert_eq!((left.len(), left[0], left[2]), (4, 1, 5));
    });
}

#[test]
fn reads_beyond_the_end_say_so() {
    on_every_disk(|disk| {
        let file = disk.create("a").expect("made");
        file.write_at(0, &blocks(&[1, 2])).expect("written");
        for (offset, count) in [(0, 3), (1, 2), (2, 1), (9, 1)] {
            let mut into = Blocks::new(count * BLOCK_BYTES);
            let result = file.read_at(offset * BLOCK_BYTES as u64, &mut into);
            assert_eq!(result.expect_err("beyond").kind(), ErrorKind::UnexpectedEof);
        }
    });
}

#[test]
fn names_are_created_renamed_replaced_and_removed() {
    on_every_disk(|disk| {
        for (name, fill) in [("b", 1), ("a", 2), ("c", 3)] {
            disk.create(name).expect("made").write_at(0, &blocks(&[fill])).expect("written");
        }
        assert_eq!(disk.list().expect("names"), ["a", "b", "c"]);
        assert_eq!(disk.create("a").expect_err("there").kind(), ErrorKind::AlreadyExists);
        let replaced = disk.open("c").expect("opened");
        disk.rename("b", "c").expect("renamed");
        assert_eq!(disk.list().expect("names"), ["a", "c"]);
        assert_eq!(fills(&*disk.open("c").expect("opened")), [1]);
        assert_eq!(fills(&*replaced), [3], "an open handle keeps its file");
        let removed = disk.open("a").expect("opened");
        disk.remove("a").expect("removed");
        assert_eq!(fills(&*removed), [2], "an open handle keeps its file");
        assert_eq!(disk.list().expect("names"), ["c"]);
        for result in [disk.remove("a"), disk.rename("a", "d"), disk.open("a").map(|_| ())] {
            assert_eq!(result.expect_err("gone").kind(), ErrorKind::NotFound);
        }
    });
}

#[test]
fn names_that_leave_the_folder_are_refused() {
    on_every_disk(|disk| {
        disk.create("a").expect("made");
        for name in ["", "..", "../a", "/tmp/a", ".lock", "a/b"] {
            for result in [
                disk.create(name).map(|_| ()),
                disk.open(name).map(|_| ()),
                disk.rename("a", name),
                disk.rename(name, "b"),
                disk.remove(name),
            ] {
                assert_eq!(result.expect_err(name).kind(), ErrorKind::InvalidInput, "{name}");
            }
        }
        assert_eq!(disk.list().expect("names"), ["a"]);
    });
}

#[test]
fn reads_of_a_batch_answer_each_for_itself() {
    on_every_disk(|disk| {
        let file = disk.create("a").expect("made");
        let content: Vec<u8> = (0..200).collect();
        file.write_at(0, &blocks(&content)).expect("written");
        for count in [0, 1, 2, 7, 200] {
            let mut buffers = vec![Blocks::new(BLOCK_BYTES); count];
            let mut reads: Vec<_> = buffers
                .iter_mut()
                .enumerate()
                .map(|(at, into)| {
                    let offset = (at * 37 % 210 * BLOCK_BYTES) as u64;
                    Read { file: &*file, offset, into, result: Ok(()) }
                })
                .collect();
            disk.read_many(&mut reads);
            for (at, read) in reads.iter().enumerate() {
                let block = at * 37 % 210;
                match content.get(block) {
                    Some(fill) => {
                        assert!(read.result.is_ok());
                        assert_eq!(read.into.bytes(), [*fill; BLOCK_BYTES]);
                    }
                    None => {
                        let error = read.result.as_ref().expect_err("beyond the end");
                        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
                        assert_eq!(read.into.bytes().len(), BLOCK_BYTES);
                    }
                }
            }
        }
    });
}

#[test]
fn threads_share_a_disk() {
    on_every_disk(|disk| {
        let file = disk.create("a").expect("made");
        let content: Vec<u8> = (0..64).collect();
        file.write_at(0, &blocks(&content)).expect("written");
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                let (file, content) = (&file, &content);
                scope.spawn(move || {
                    for round in 0..50 {
                        let mut buffers = vec![Blocks::new(BLOCK_BYTES); 16];
                        let block = |at: usize| (thread * 13 + round * 7 + at * 5) % 64;
                        let mut reads = Vec::new();
                        for (at, into) in buffers.iter_mut().enumerate() {
                            let offset = (block(at) * BLOCK_BYTES) as u64;
                            reads.push(Read { file: &**file, offset, into, result: Ok(()) });
                        }
                        disk.read_many(&mut reads);
                        for (at, read) in reads.iter().enumerate() {
                            assert!(read.result.is_ok());
                            assert_eq!(read.into.bytes(), [content[block(at)]; BLOCK_BYTES]);
                        }
                    }
                });
            }
        });
    });
}
