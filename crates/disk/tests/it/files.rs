//! Behaviour that only real folders have.

use crate::{blocks, fills};
use sapwood_disk::{
    BLOCK_BYTES, Blocks, Disk, FileDisk, FileFolders, Folders, Presence, Read, SimDisk,
};
use std::io::ErrorKind;

#[test]
fn a_folder_is_made_and_opened_once_at_a_time() {
    let parent = tempfile::tempdir().expect("a folder");
    let path = parent.path().join("new/deep");
    let disk = FileDisk::open(&path).expect("made");
    let file = disk.create("a").expect("made");
    let refused = FileDisk::open(&path).expect_err("open already");
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    assert!(refused.to_string().contains("new/deep"), "{refused}");
    // A handle that is still open may still write.
    drop(disk);
    assert!(FileDisk::open(&path).is_err());
    drop(file);
    assert_eq!(FileDisk::open(&path).expect("free again").list().expect("names"), ["a"]);
}

/// Another folder has the path by then, and has files of the same names.
#[test]
fn a_folder_that_was_moved_leaves_its_path_alone() {
    let parent = tempfile::tempdir().expect("a folder");
    let (path, moved) = (parent.path().join("folder"), parent.path().join("moved"));
    let folders = FileFolders::new(&path);
    let disk = folders.open("").expect("made");
    let inner = folders.open("in").expect("made");
    let file = disk.cached("a", Presence::New).expect("made");
    file.write_at(0, b"old").expect("written");
    assert_eq!(disk.path().expect("there"), Some(path.canonicalize().expect("there")));

    std::fs::rename(&path, &moved).expect("moved");
    for has_other in [false, true] {
        if has_other {
            let other = FileDisk::open(&path).expect("another");
            other.cached("a", Presence::New).and_then(|file| file.write_at(0, b"new")).expect("a");
            std::fs::create_dir(path.join("in")).expect("another");
        }
        let refused = [
            disk.path().map(drop),
            disk.create("b").map(drop),
            disk.cached("b", Presence::New).map(drop),
            disk.cached("a", Presence::There).map(drop),
            disk.open("a").map(drop),
            disk.view("a").map(drop),
            disk.list().map(drop),
            disk.rename("a", "b"),
            disk.remove("a"),
            disk.sync(),
            file.sync(),
            inner.create("b").map(drop),
            folders.open("in").map(drop),
            folders.open("new").map(drop),
            folders.make("new"),
            folders.is_there("in").map(drop),
            folders.has_file("", "a").map(drop),
            folders.list("").map(drop),
            folders.remove("in"),
        ];
        for (number, refused) in refused.into_iter().enumerate() {
            let refused = refused.expect_err("the path leads elsewhere");
            assert_eq!(refused.kind(), ErrorKind::StaleNetworkFileHandle, "call {number}");
            assert!(refused.to_string().contains("was moved or removed"), "{refused}");
        }
    }
    assert_eq!(std::fs::read(path.join("a")).expect("there"), b"new");
    assert!(path.join("in").exists() && !path.join("b").exists() && !path.join("new").exists());
    assert_eq!(std::fs::read(moved.join("a")).expect("there"), b"old");

    // Back in its place it is as before.
    std::fs::remove_dir_all(&path).expect("removed");
    std::fs::rename(&moved, &path).expect("moved back");
    file.sync().expect("synced");
    assert_eq!(disk.list().expect("names"), ["a"]);
    inner.create("b").expect("made");
}

#[test]
fn readers_share_a_folder_and_change_nothing() {
    let parent = tempfile::tempdir().expect("a folder");
    let path = parent.path().join("folder");
    assert_eq!(
        FileDisk::open_read_only(&path).expect_err("it is not made").kind(),
        ErrorKind::NotFound
    );
    let disk = FileDisk::open(&path).expect("made");
    let direct = disk.direct();
    let refused = FileDisk::open_read_only(&path).expect_err("it is being written");
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    disk.create("a").and_then(|file| file.write_at(0, &blocks(&[7, 8]))).expect("written");
    assert!(!disk.is_read_only());
    drop(disk);

    let changed = || std::fs::metadata(&path).and_then(|it| it.modified()).expect("a time");
    let before = changed();
    let readers = [(); 2].map(|()| FileDisk::open_read_only(&path).expect("shared"));
    for disk in &readers {
        assert!(disk.is_read_only() && disk.direct() == direct);
        assert_eq!(disk.list().expect("names"), ["a"]);
        let file = disk.open("a").expect("there");
        assert_eq!(fills(&*file), [7, 8]);
        file.write_at(0, &blocks(&[9])).expect_err("it is not written");
        assert_eq!(fills(&*file), [7, 8]);
        let refusals = [disk.create("b").map(drop), disk.rename("a", "b"), disk.remove("a")];
        for refused in refusals {
            let refused = refused.expect_err("nothing changes");
            assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem);
            assert!(refused.to_string().contains("folder"), "{refused}");
        }
    }
    let beside = FileDisk::open_unlocked(&path).expect("it is there");
    assert!(beside.is_read_only() && !beside.direct(), "it shares the page cache");
    assert!(beside.place().ends_with("folder"), "{}", beside.place());
    assert_eq!(fills(&*beside.open("a").expect("there")), [7, 8]);
    drop(beside);
    assert_eq!(FileDisk::open(&path).expect_err("it is being read").kind(), ErrorKind::WouldBlock);
    assert_eq!(changed(), before);
    drop(readers);
    // A copy without the lock file.
    std::fs::remove_file(path.join(".lock")).expect("it was there");
    assert_eq!(
        FileDisk::open_read_only(&path).expect("no process locks it").list().expect("names"),
        ["a"]
    );
    assert!(!path.join(".lock").exists());
}

#[test]
fn a_file_is_not_a_folder() {
    let parent = tempfile::tempdir().expect("a folder");
    let path = parent.path().join("file");
    std::fs::write(&path, "x").expect("written");
    let refused = FileDisk::open(&path).expect_err("no folder");
    assert!(refused.to_string().contains("file"), "{refused}");
}

#[test]
fn foreign_files_and_folders_are_not_listed() {
    let parent = tempfile::tempdir().expect("a folder");
    let disk = FileDisk::open(parent.path()).expect("opened");
    std::fs::create_dir(parent.path().join("folder")).expect("made");
    std::fs::write(parent.path().join("with blank"), "x").expect("written");
    disk.create("ours").expect("made");
    assert_eq!(disk.list().expect("names"), ["ours"]);
    assert!(disk.place().starts_with(&*parent.path().canonicalize().unwrap().to_string_lossy()));
    assert_eq!(disk.place().contains("page cache"), !disk.direct());
}

#[test]
fn files_outlive_the_disk_that_wrote_them() {
    let parent = tempfile::tempdir().expect("a folder");
    for round in 0..3u8 {
        let disk = FileDisk::open(parent.path()).expect("opened");
        let file = match round {
            0 => disk.create("a").expect("made"),
            _ => disk.open("a").expect("there"),
        };
        file.write_at(u64::from(round) * BLOCK_BYTES as u64, &blocks(&[round + 1]))
            .expect("written");
        file.sync().expect("synced");
        assert_eq!(fills(&*file), (1..=round + 1).collect::<Vec<_>>());
    }
}

#[test]
fn a_batch_may_name_files_of_another_disk() {
    let parent = tempfile::tempdir().expect("a folder");
    let disk = FileDisk::open(parent.path()).expect("opened");
    let foreign = SimDisk::new().create("a").expect("made");
    foreign.write_at(0, &blocks(&[1])).expect("written");
    let own = disk.create("a").expect("made");
    own.write_at(0, &blocks(&[2])).expect("written");
    let (mut first, mut second) = (Blocks::new(1), Blocks::new(1));
    let mut reads = [
        Read { file: &*foreign, offset: 0, into: &mut first, result: Ok(()) },
        Read { file: &*own, offset: 0, into: &mut second, result: Ok(()) },
    ];
    disk.read_many(&mut reads);
    assert!(reads.iter().all(|read| read.result.is_ok()));
    assert_eq!((first.bytes()[0], second.bytes()[0]), (1, 2));
}

/// A filesystem without room opens: there is something to read direct I/O by.
#[test]
fn a_full_filesystem_opens() {
    let parent = tempfile::tempdir().expect("a folder");
    let Some(mounted) = Mounted::new(parent.path(), 256 << 10) else {
        println!("skipped: this process may mount nothing");
        return;
    };
    let path = parent.path().join("folder");
    let disk = FileDisk::open(&path).expect("made");
    let file = disk.create("a").expect("made");
    file.write_at(0, &blocks(&[7])).expect("written");
    let mut count = 1;
    let full = loop {
        match file.write_at(count * BLOCK_BYTES as u64, &blocks(&[8])) {
            Ok(()) => count += 1,
            Err(cause) => break cause.kind(),
        }
    };
    assert_eq!(full, ErrorKind::StorageFull);
    drop((file, disk));
    let disk = FileDisk::open(&path).expect("to read");
    assert_eq!(fills(&*disk.open("a").expect("there"))[0], 7);
    drop(disk);
    // Nothing to read either.
    std::fs::create_dir(parent.path().join("empty")).expect("a name");
    let empty = FileDisk::open(parent.path().join("empty")).expect("nothing is written");
    assert!(empty.list().expect("names").is_empty());
    drop(empty);
    drop(mounted);
}

/// A small filesystem in memory, as long as it lives.
struct Mounted(std::path::PathBuf);

impl Mounted {
    /// None where it is not permitted.
    fn new(path: &std::path::Path, bytes: u64) -> Option<Mounted> {
        let status = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(path)
            .stderr(std::process::Stdio::null())
            .status();
        status.is_ok_and(|status| status.success()).then(|| Mounted(path.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = std::process::Command::new("umount").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "it was mounted");
    }
}

#[test]
fn opening_again_writes_nothing() {
    let parent = tempfile::tempdir().expect("a folder");
    let disk = FileDisk::open(parent.path()).expect("opened");
    disk.create("a").expect("made").write_at(0, &blocks(&[1])).expect("written");
    let direct = disk.direct();
    drop(disk);
    let changed = || std::fs::metadata(parent.path()).and_then(|folder| folder.modified());
    let before = changed().expect("a time");
    std::thread::sleep(std::time::Duration::from_millis(20));
    let disk = FileDisk::open(parent.path()).expect("opened");
    assert_eq!(disk.direct(), direct, "found out by a read");
    assert_eq!(changed().expect("a time"), before, "no file came or went");
}

/// A crash between making a probe and removing it, in a folder that had nothing else.
#[test]
fn a_probe_that_was_cut_off_goes_when_the_folder_is_opened() {
    for holds_a_file in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(".probe"), [0; BLOCK_BYTES]).expect("a file");
        if holds_a_file {
            std::fs::write(folder.path().join("file"), [1; BLOCK_BYTES]).expect("a file");
        }
        drop(FileDisk::open(folder.path()).expect("a folder that is free"));
        assert!(!folder.path().join(".probe").exists(), "beside a file: {holds_a_file}");
    }
}
