//! Damaged databases: what is wrong is told, and what checksums vouch for is saved.

mod rollups;

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use sapwood::{
    Cut, Db, DbOptions, Durability, HashTableOptions, OrderedTableOptions, TreeTableOptions,
};
use sapwood_testkit::case;
use tempfile::TempDir;

/// Entries before the checkpoint, and behind it.
const SAVED: u32 = 3_000;
const LOGGED: u32 = 1_000;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// A database with a table of each engine, a checkpoint, and changes behind it that the log alone has.
fn made(path: &Path) {
    let db = Db::open_with(path, DbOptions::default().durability(Durability::Sync)).expect("new");
    let ordered = db.create_ordered_table("ordered", OrderedTableOptions::default()).expect("made");
    let hash = db.create_hash_table("hash", HashTableOptions::default()).expect("made");
    let tree = db.create_tree_table("tree", TreeTableOptions::default()).expect("made");
    let entries = |range: std::ops::Range<u32>| -> Vec<_> {
        range.map(|number| (key(number), number.to_le_bytes().repeat(25))).collect()
    };
    ordered.put_many(&entries(0..SAVED)).expect("room");
    hash.put_many(&entries(0..SAVED)).expect("room");
    tree.put_many(&entries(0..SAVED)).expect("room");
    hash.checkpoint(Cut::Full).expect("written");
    let makes_again = || {
        drop(db.create_hash_table("again", HashTableOptions::default()).expect("made"));
        drop(db.create_ordered_table("too", OrderedTableOptions::default()).expect("made"));
    };
    makes_again();
    db.hash_table("again").expect("there").put(b"of the first", b"v").expect("room");
    db.ordered_table("too").expect("there").put(b"of the first", b"v").expect("room");
    db.checkpoint().expect("written");
    db.hash_table("again").expect("there").put(b"behind", b"v").expect("room");
    db.drop_table("again").expect("dropped");
    db.drop_table("too").expect("dropped");
    makes_again();
    db.hash_table("again").expect("there").put(b"of the second", b"v").expect("room");
    db.ordered_table("too").expect("there").put(b"of the second", b"v").expect("room");
    for entry in entries(SAVED..SAVED + LOGGED).chunks(50) {
        ordered.put_many(entry).expect("room");
        hash.put_many(entry).expect("room");
    }
    ordered.remove(key(0)).expect("removed");
    hash.remove(key(0)).expect("removed");
}

fn contents(path: &Path) -> BTreeMap<String, Entries> {
    let db = Db::open_read_only(path).expect("it opens");
    let tables = db.table_names().into_iter().map(|name| {
        let mut entries = Entries::new();
        let table = db.table(&name).expect("it opens");
        let walked = table.for_each(|key, value| {
            entries.insert(key.to_vec(), value.to_vec());
            ControlFlow::<()>::Continue(())
        });
        assert!(walked.expect("it can be read").is_continue());
        (name, entries)
    });
    tables.collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("a name");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("copied");
        }
    }
}

/// All files but locks, and those of the tree tables where not wanted.
fn files(of: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(of).expect("a folder") {
        let path = entry.expect("a name").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false if fs::metadata(&path).expect("there").len() > 0 => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

fn is_of_trees(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "trees")
}

#[test]
fn a_sound_database_passes_and_is_copied_whole() {
    let folder = TempDir::new().expect("a folder for the test");
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    made(&old);
    let check = Db::check(&old).expect("it can be read");
    assert_eq!(check.problems, []);
    let found: Vec<_> =
        check.tables.iter().map(|table| (table.name.as_str(), table.entries)).collect();
    let all = u64::from(SAVED + LOGGED) - 1;
    let trees = u64::from(SAVED);
    let tables = [("again", 1), ("hash", all), ("ordered", all), ("too", 1), ("tree", trees)];
    assert_eq!(found, tables);
    assert_eq!(check.trees.expect("there is one").entries, u64::from(SAVED));
    let log = check.log.expect("there is one");
    assert_eq!((log.frames.puts, log.frames.removes), (2 * u64::from(LOGGED) + 3, 2));
    let ordered = log.tables.iter().find(|table| table.name == "ordered").expect("it is there");
    assert_eq!(ordered.snapshot_entries, Some(u64::from(SAVED)));
    assert_eq!(ordered.changes, u64::from(LOGGED) + 1);

    let before = contents(&old);
    let salvage = Db::salvage(&old, &new).expect("it can be read");
    assert!(salvage.is_complete(), "{:?}", salvage.problems);
    assert_eq!(contents(&new), before);
    assert_eq!(Db::check(&new).expect("it can be read").problems, []);
    let refused = Db::salvage(&old, &new).expect_err("it is not empty").to_string();
    assert!(refused.contains("choose another"), "{refused}");
    // A database that is open to be written may change meanwhile.
    let db = Db::open(&old).expect("it opens");
    assert!(Db::check(&old).is_err());
    assert!(Db::inspect_log(&old).expect("it can be read").is_some());
    drop(db);
}

/// Any byte of any file, one at a time.
#[test]
fn a_byte_that_flips_is_found_and_costs_little() {
    let folder = TempDir::new().expect("a folder for the test");
    let sound = folder.path().join("sound");
    made(&sound);
    let whole = contents(&sound);
    case!().seeds(40, |seed| {
        let mut rng = Rng::with_seed(seed);
        let [old, new] = ["old", "new"].map(|name| folder.path().join(format!("{name}-{seed}")));
        copy(&sound, &old);
        let files: Vec<_> = files(&old).into_iter().filter(|file| !is_of_trees(file)).collect();
        let file = &files[seed as usize % files.len()];
        let mut bytes = fs::read(file).expect("there");
        let at = match rng.bool() {
            // Where most bytes mean something.
            true => rng.usize(..bytes.len().min(4 << 10)),
            false => rng.usize(..bytes.len()),
        };
        bytes[at] ^= 1 << rng.u8(..8);
        fs::write(file, bytes).expect("written");
        let what = format!("seed {seed}, byte {at} of {}", file.display());

        let check = Db::check(&old).unwrap_or_else(|error| panic!("{what}: {error}"));
        let salvage = match rng.bool() {
            true => Db::salvage(&old, &new),
            false => Db::salvage_past_damage(&old, &new),
        };
        let salvage = salvage.unwrap_or_else(|error| panic!("{what}: {error}"));
        let again = Db::check(&new).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(again.problems, [], "{what}");
        let saved = contents(&new);
        // A byte that means nothing changes nothing.
        if check.problems.is_empty() {
            assert!(saved == whole, "{what}");
            assert!(salvage.is_complete(), "{what}: {:?}", salvage.problems);
        }
        if saved != whole {
            assert!(!check.problems.is_empty() && !salvage.is_complete(), "{what}");
        }
        // One damaged file takes nothing of what others vouch for.
        let count = |name: &str| saved.get(name).map_or(0, BTreeMap::len);
        assert_eq!(count("tree"), SAVED as usize, "{what}");
        let is_in = |folder: &str| file.components().any(|part| part.as_os_str() == folder);
        if !is_in("log") {
            assert_eq!(saved["ordered"], whole["ordered"], "{what}");
        }
        if !is_in("tables") {
            assert!(count("hash") >= SAVED as usize, "{what}: {}", count("hash"));
        }
        for (name, entries) in &saved {
            for (key, value) in entries {
                if let Some(there) = whole.get(name).and_then(|table| table.get(key)) {
                    assert_eq!(value, there, "{what}: {name}/{key:?} is another");
                }
            }
        }
    });
}

/// Files that are cut, and files that are missing.
#[test]
fn what_is_cut_off_or_missing_is_told_and_the_rest_is_saved() {
    let folder = TempDir::new().expect("a folder for the test");
    let sound = folder.path().join("sound");
    made(&sound);
    let whole = contents(&sound);
    for (number, name) in files(&sound).iter().enumerate() {
        if is_of_trees(name) {
            continue;
        }
        for is_cut in [true, false] {
            let [old, new] =
                ["old", "new"].map(|name| folder.path().join(format!("{name}-{number}-{is_cut}")));
            copy(&sound, &old);
            let file = old.join(name.strip_prefix(&sound).expect("within"));
            let what = format!("{}, cut: {is_cut}", file.display());
            match is_cut {
                true => {
                    let file = fs::OpenOptions::new().write(true).open(&file).expect("there");
                    let bytes = file.metadata().expect("there").len();
                    file.set_len(bytes / 2 / 4096 * 4096).expect("cut");
                }
                false => fs::remove_file(&file).expect("removed"),
            }
            let check = Db::check(&old).unwrap_or_else(|error| panic!("{what}: {error}"));
            let salvage = Db::salvage(&old, &new).unwrap_or_else(|error| panic!("{what}: {error}"));
            let saved = contents(&new);
            assert_eq!(Db::check(&new).expect("it can be read").problems, [], "{what}");
            assert_eq!(saved["tree"], whole["tree"], "{what}");
            if saved != whole {
                let told = !check.problems.is_empty() && !salvage.is_complete();
                // A table whose options are missing is one that was being made, or dropped; and nothing
                // tells the end of the log that is cut off from one that a crash left.
                let is_end = is_cut && file.parent().is_some_and(|of| of.ends_with("log"));
                let is_known = told || is_end || file.ends_with("options");
                assert!(is_known, "{what}: {:?}", check.problems);
            }
        }
    }
}

/// The manifest of the log names the tables: without it the rest is found by what it says itself.
#[test]
fn without_a_manifest_all_is_saved_but_what_it_alone_knew() {
    let folder = TempDir::new().expect("a folder for the test");
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    let db = Db::open(&old).expect("new");
    let table = db.create_ordered_table("known", OrderedTableOptions::default()).expect("made");
    table.put(b"a", b"1").expect("room");
    db.checkpoint().expect("written");
    table.put(b"b", b"2").expect("room");
    let later = db.create_ordered_table("later", OrderedTableOptions::default()).expect("made");
    later.put(b"c", b"3").expect("room");
    drop((table, later, db));
    fs::remove_file(old.join("log/manifest")).expect("removed");
    let salvage = Db::salvage(&old, &new).expect("it can be read");
    assert!(!salvage.is_complete());
    let entries = |pairs: &[(&[u8], &[u8])]| -> Entries {
        pairs.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    };
    let saved: Vec<_> = contents(&new).into_values().collect();
    assert_eq!(saved.len(), 2, "{:?}", salvage.problems);
    assert!(saved.contains(&entries(&[(b"a", b"1"), (b"b", b"2")])), "{saved:?}");
    assert_eq!(contents(&new)["later"], entries(&[(b"c", b"3")]));
}
