//! Folders of a directory, simulated and real.

use sapwood_disk::{Disk, FileFolders, Folders, SimDisk};
use std::io::ErrorKind;

/// Both kinds do the same.
fn check(folders: &dyn Folders) {
    assert!(!folders.is_there("tables/t") && folders.is_there(""));
    folders.open("tables/t").expect("made").create("options").expect("made");
    folders.make("tables/u").expect("made");
    let mut names = folders.list("tables").expect("it is there");
    names.sort();
    assert_eq!(names, ["t", "u"]);
    assert!(folders.has_file("tables/t", "options") && !folders.has_file("tables/u", "options"));
    assert_eq!(
        folders.open_read_only("tables/t").expect("there").list().expect("names"),
        ["options"]
    );
    assert!(folders.open("").expect("there").list().expect("names of files alone").is_empty());
    folders.remove("tables/t").expect("removed with its file");
    assert!(!folders.is_there("tables/t"));
    assert_eq!(folders.remove("tables/t").map_err(|error| error.kind()), Err(ErrorKind::NotFound));
}

#[test]
fn simulated_folders_are_as_real_ones() {
    check(&*SimDisk::new().folders());
    let directory = tempfile::tempdir().expect("a directory for the test");
    check(&FileFolders::new(directory.path()));
}

#[test]
fn names_last_folder_by_folder() {
    let disk = SimDisk::new();
    let folders = disk.folders();
    folders.make("a").expect("made");
    let inner = folders.open("a/b").expect("made");
    inner.create("file").expect("made");
    inner.sync().expect("synced");
    let images = |disk: &SimDisk| -> Vec<bool> {
        disk.crash_images(100).map(|image| image.folders().has_file("a/b", "file")).collect()
    };
    let before = images(&disk);
    assert!(
        before.contains(&true) && before.contains(&false),
        "`a` itself may be lost: {before:?}"
    );
    disk.sync().expect("synced");
    assert_eq!(images(&disk), [true]);
    // A folder that is made anew has nothing of the one before.
    folders.remove("a/b").expect("removed");
    folders.make("a/b").expect("made");
    let images: Vec<_> = disk.crash_images(100).collect();
    let has = |image: &SimDisk| image.folders().has_file("a/b", "file");
    assert!(images.iter().any(has) && images.iter().any(|image| !has(image)));
}

#[test]
fn images_are_taken_before_changes() {
    let disk = SimDisk::new();
    disk.take_images(0, 1);
    disk.create("a").expect("made");
    disk.sync().expect("synced");
    disk.remove("a").expect("removed");
    let names: Vec<_> = disk.taken().iter().map(|image| image.list().expect("names")).collect();
    // The first has all lost, the second all kept; the third is of names that last.
    assert_eq!(names, [vec![], vec!["a".to_owned()], vec!["a".to_owned()]]);
    assert!(disk.taken().is_empty());
}
