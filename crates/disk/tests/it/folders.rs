//! Folders of a directory, simulated and real.

use sapwood_disk::{Disk, FileFolders, Folders, SimDisk};
use std::io::ErrorKind;

/// Both kinds do the same.
fn check(folders: &dyn Folders) {
    let is_there = |path| folders.is_there(path).expect("looked at");
    let has_file = |path, file| folders.has_file(path, file).expect("looked at");
    assert!(!is_there("tables/t") && is_there(""));
    folders.open("tables/t").expect("made").create("options").expect("made");
    folders.make("tables/u").expect("made");
    let mut names = folders.list("tables").expect("it is there");
    names.sort();
    assert_eq!(names, ["t", "u"]);
    assert!(has_file("tables/t", "options") && !has_file("tables/u", "options"));
    assert!(!is_there("tables/t/options") && !has_file("tables", "t"), "each is of its kind");
    assert!(!has_file("tables/t/options", "inside"), "a file has no files");
    assert_eq!(
        folders.open_read_only("tables/t").expect("there").list().expect("names"),
        ["options"]
    );
    assert!(folders.open("").expect("there").list().expect("names of files alone").is_empty());
    folders.remove("tables/t").expect("removed with its file");
    assert!(!is_there("tables/t"));
    assert_eq!(folders.remove("tables/t").map_err(|error| error.kind()), Err(ErrorKind::NotFound));
}

#[test]
fn simulated_folders_are_as_real_ones() {
    check(&*SimDisk::new().folders());
    let directory = tempfile::tempdir().expect("a directory for the test");
    check(&FileFolders::new(directory.path()));
}

/// A loop of links and a link to nowhere: a system that cannot tell what a name leads to does not say that nothing is
/// there, whatever the rights of the user.
#[test]
fn what_cannot_be_looked_at_is_not_absent() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let folders = FileFolders::new(directory.path());
    folders.make("tables").expect("made");
    for (name, target) in [("loop", "loop"), ("lost", "nowhere")] {
        let link = directory.path().join("tables").join(name);
        std::os::unix::fs::symlink(target, &link).expect("a link");
        let path = format!("tables/{name}");
        let errors = [
            folders.is_there(&path).map(drop),
            folders.has_file("tables", name).map(drop),
            folders.list("tables").map(drop),
        ];
        for error in errors {
            let error = error.expect_err(name);
            assert_ne!(error.kind(), ErrorKind::NotFound, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
        std::fs::remove_file(&link).expect("removed");
    }
    assert!(folders.list("tables").expect("listed").is_empty());
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
        let has = |image: SimDisk| image.folders().has_file("a/b", "file").expect("looked at");
        disk.crash_images(100).map(has).collect()
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
    let has = |image: &SimDisk| image.folders().has_file("a/b", "file").expect("looked at");
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
