//! Files that are damaged, left behind by a crash, or of another version.

use std::fs;
use std::path::Path;

use sapwood::{Cut, Db, Error, TreeTableOptions};

use super::{counter, directory, files_of, open, plain};

#[test]
fn what_a_crash_left_of_a_table_is_cleared() {
    let path = directory();
    let folder = path.path().join("tables/t");
    fs::create_dir_all(&folder).expect("a folder for the test");
    fs::write(folder.join("left-over"), "bytes").expect("a file for the test");
    let db = open(&path);
    assert_eq!(db.table_names(), Vec::<String>::new());
    let table = db.create_hash_table("t", plain()).expect("a free name");
    assert_eq!(table.len(), Ok(0));
    assert!(!folder.join("left-over").exists());
}

#[test]
fn damaged_options_are_named_with_file_and_offset() {
    let path = directory();
    drop(open(&path).create_hash_table("t", plain()).expect("a free name"));
    let file = path.path().join("tables/t/options");
    damage(&file, 30);
    let db = open(&path);
    let error = db.hash_table("t").expect_err("a damaged file");
    let Error::StoredOptions { path: named, offset, .. } = &error else { panic!("{error}") };
    assert_eq!((named, *offset), (&file, 28));
    assert!(error.to_string().contains("drop the table"), "{error}");
    db.drop_table("t").expect("what the error says");
    db.create_hash_table("t", plain()).expect("the name is free again");
}

/// A copy would be of the same version, and the table is whole.
#[test]
fn what_a_later_version_has_written_is_not_called_damaged() {
    let path = directory();
    drop(open(&path).create_hash_table("t", plain()).expect("a free name"));
    let file = path.path().join("tables/t/options");
    let mut bytes = fs::read(&file).expect("it is there");
    let at = bytes.iter().position(u8::is_ascii_digit).expect("a version");
    bytes[at] = b'9';
    fs::write(&file, &bytes).expect("written");
    let error = open(&path).hash_table("t").expect_err("another format");
    assert_eq!(error, Error::NewerFormat { path: file.clone(), found: 9, known: 4 });
    let manifest = path.path().join("log/manifest");
    let mut log = fs::read(&manifest).expect("it is there");
    log[6] = 9;
    fs::write(&manifest, log).expect("written");
    for told in [error, Db::open(path.path()).expect_err("another format")] {
        let told = told.to_string();
        assert!(told.contains("written by format 9") && told.contains("upgrade"), "{told}");
        assert!(!told.contains("drop") && !told.contains("copy"), "{told}");
    }
    assert_eq!(fs::read(&file).expect("it is there"), bytes);
}

/// One file of each engine at a time. None is taken for a leftover and removed, and no older state is opened.
#[test]
fn files_of_a_later_version_are_refused_and_stay() {
    let path = directory();
    let db = open(&path);
    let hash = db.create_hash_table("hash", plain()).expect("a free name");
    hash.put("k", "v").expect("room");
    hash.checkpoint(Cut::Full).expect("written");
    drop(hash);
    db.create_tree_table("tree", TreeTableOptions::default()).expect("a free name");
    db.close().expect("written");
    let files = files_of(path.path());
    // A magic of 8 bytes, and the version: of parts of the log, the heap of trees, and files of hash tables.
    let is_versioned = |bytes: &[u8]| {
        bytes.starts_with(b"SW") && bytes.len() > 16 && bytes[8] < 9 && bytes[9..12] == [0; 3]
    };
    let mut kinds = std::collections::BTreeSet::new();
    // An index of an older checkpoint is not read.
    let is_image = |file: &Path| file.extension().is_some_and(|kind| kind == "image");
    let versioned =
        files.iter().filter(|(file, (bytes, _))| is_versioned(bytes) && !is_image(file));
    for (file, (bytes, _)) in versioned {
        let mut later = bytes.clone();
        later[8] = 9;
        fs::write(file, &later).expect("written");
        let opened = Db::open(path.path()).and_then(|db| db.hash_table("hash").map(drop));
        let name = file.file_name().expect("a file").to_string_lossy().into_owned();
        let told = opened.expect_err(&name).to_string();
        assert!(told.contains("written by format 9") && told.contains("upgrade"), "{name}: {told}");
        assert!(!told.contains("drop") && !told.contains("copy"), "{told}");
        assert_eq!(fs::read(file).expect("it is there"), later, "{name}");
        fs::write(file, bytes).expect("written");
        kinds.insert(name.split(['-', '.']).next().map(str::to_owned));
    }
    assert!(kinds.len() >= 4, "{kinds:?} of {:?}", files.keys());
}

#[test]
fn options_that_are_cut_off_are_named_with_file_and_offset() {
    let path = directory();
    drop(open(&path).create_hash_table("t", plain()).expect("a free name"));
    let file = path.path().join("tables/t/options");
    for len in [0, 30, 4095] {
        let cut = fs::File::options().write(true).open(&file).expect("it is there");
        cut.set_len(len).expect("it can be cut");
        let error = open(&path).hash_table("t").expect_err("a cut file");
        let Error::StoredOptions { path: named, offset, .. } = &error else { panic!("{error}") };
        assert_eq!((named, *offset), (&file, len));
        let told = error.to_string();
        assert!(told.contains("cut off") && told.contains("drop the table"), "{told}");
    }
}

/// The newest checkpoint is damaged: the error says which one opens and how, and it does.
#[test]
fn a_damaged_checkpoint_leads_to_the_one_before() {
    let path = directory();
    let db = open(&path);
    let hits = db.create_hash_table("hits", plain()).expect("a free name");
    let mut numbers = Vec::new();
    for _ in 0..2 {
        hits.add(b"/", 1).expect("add");
        numbers.push(hits.checkpoint(Cut::Full).expect("checkpoint").number);
    }
    let error = db.hash_table_view("hits", numbers[0]).expect_err("it is open");
    assert!(matches!(&error, Error::TableOpen { name } if name == "hits"), "{error}");
    let listed = db.checkpoints("hits").expect("of an open table");
    assert_eq!(listed.iter().map(|one| one.number).collect::<Vec<_>>(), numbers);
    assert!(listed.iter().all(|one| one.taken.is_some() && one.state.is_ok()), "{listed:?}");
    drop((hits, db));

    let image = format!("tables/hits/index-{:016x}.image", numbers[1]);
    damage(&path.path().join(image), 20);
    let db = open(&path);
    let told = db.hash_table("hits").expect_err("a damaged image").to_string();
    for part in [&*format!("index-{:016x}.image", numbers[1]), "checkpoint 1", "hash_table_at"] {
        assert!(told.contains(part), "{told}");
    }
    let listed = db.checkpoints("hits").expect("of a table that does not open");
    assert!(listed[0].state.is_ok() && listed[1].state.is_err(), "{listed:?}");
    assert_eq!(listed[0].state.as_ref().map(|info| info.entries), Ok(1));
    let view = db.hash_table_view("hits", numbers[0]).expect("a whole one");
    assert_eq!(counter(&view, "/"), Some(1));
    assert!(view.checkpoint(Cut::Full).is_err(), "of a view");
    drop(view);
    assert!(db.hash_table("hits").is_err(), "looking changes nothing");
    let hits = db.hash_table_at("hits", numbers[0]).expect("a whole one");
    assert_eq!(counter(&hits, "/"), Some(1));
    hits.checkpoint(Cut::Full).expect("it goes on");
    drop((hits, db));
    assert_eq!(counter(&open(&path).hash_table("hits").expect("it opens again"), "/"), Some(1));

    let error = Db::in_memory().checkpoints("t").expect_err("no table");
    assert!(matches!(error, Error::TableMissing { .. }), "{error}");
    let db = Db::in_memory();
    db.create_hash_table("t", plain()).expect("a free name");
    assert_eq!(db.checkpoints("t").expect_err("in memory"), Error::NoDirectory);
    assert_eq!(db.hash_table_view("t", 1).expect_err("in memory"), Error::NoDirectory);
}

#[test]
fn a_table_without_its_manifests_is_not_an_empty_one() {
    let path = directory();
    let db = open(&path);
    let hits = db.create_hash_table("hits", plain()).expect("a free name");
    hits.add(b"/", 1).expect("add");
    drop(hits);
    db.close().expect("a checkpoint");
    let folder = path.path().join("tables/hits");
    let manifest = folder.join("checkpoint-0000000000000001.manifest");
    let kept = fs::read(&manifest).expect("it is there");
    fs::remove_file(&manifest).expect("it is there");
    let count = || fs::read_dir(&folder).expect("a folder").count();
    let before = count();
    let db = open(&path);
    let told = db.hash_table("hits").expect_err("no manifest").to_string();
    assert!(told.contains("bring the file back") && told.contains("drop the table"), "{told}");
    assert_eq!(count(), before, "nothing is removed");
    fs::write(&manifest, kept).expect("brought back");
    assert_eq!(counter(&db.hash_table("hits").expect("it opens"), "/"), Some(1));
}

fn damage(file: &Path, offset: usize) {
    let mut bytes = fs::read(file).expect("it is there");
    bytes[offset] ^= 1;
    fs::write(file, bytes).expect("it can be written");
}
