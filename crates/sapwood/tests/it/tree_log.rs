//! Tree tables have their commits in the log of the database: with those of other tables, and not without it.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use sapwood::{
    AnyTable, Db, DbOptions, Durability, HashTableOptions, OrderedTableOptions, Retry, TreeKind,
    TreeTable, TreeTableOptions,
};
use sapwood_disk::SimDisk;
use sapwood_ptree::{Pool, PoolOptions, TreeLayout};

fn sum(table: &AnyTable) -> i64 {
    let mut sum = 0;
    let walked = table.for_each(|_, value| {
        sum += i64::from_le_bytes(value.try_into().expect("8 bytes"));
        ControlFlow::<()>::Continue(())
    });
    let _end = walked.expect("walked");
    sum
}

/// Puts of a tree in a pool of its own, each of which lasts.
const OWN_PUTS: u64 = 40;

/// A pool with a log of its own, as versions without a shared one made it; no checkpoint has all of it.
fn with_own_log() -> SimDisk {
    let disk = SimDisk::new();
    Db::open_simulated(&disk, DbOptions::default()).expect("made").close().expect("closed");
    let folder = disk.folders().open("trees").expect("made");
    let options = PoolOptions::default().id(7).durability(Durability::Sync);
    let pool = Pool::create(folder, options).expect("an empty folder");
    let tree = pool.create_tree("t", TreeKind::CritBit, TreeLayout::Bytes).expect("free");
    for number in 0..OWN_PUTS {
        tree.put(number.to_be_bytes(), [7]).expect("put");
        if number == OWN_PUTS / 2 {
            pool.checkpoint().expect("written");
        }
    }
    disk
}

#[test]
fn any_crash_while_a_pool_moves_to_the_log_loses_nothing() {
    let made = with_own_log();
    let disk = made.crash(1);
    disk.take_images(2, 1);
    let options = || DbOptions::default().durability(Durability::Sync);
    let is_whole = |db: &Db| db.tree_table("t").expect("there").len() == Ok(OWN_PUTS as usize);
    let db = Db::open_simulated(&disk, options()).expect("opened");
    assert!(is_whole(&db));
    db.tree_table("t").expect("there").put("later", "1").expect("put");
    drop(db);
    let images = disk.taken();
    assert!(images.len() > 20, "{}", images.len());
    for (number, image) in images.into_iter().enumerate() {
        let reader = Db::open_simulated_read_only(&image).unwrap_or_else(|error| {
            panic!("image {number}, to be read: {error}");
        });
        let found = reader.tree_table("t").expect("there").len().expect("read") as u64;
        assert!((OWN_PUTS..=OWN_PUTS + 1).contains(&found), "image {number}: {found}");
        drop(reader);
        // The power goes again on the way.
        let again = image.crash(number as u64);
        again.stop_after(number as u64 % 17);
        let _cut_off = Db::open_simulated(&again, options());
        for image in [image, again.crash(3)] {
            let db = Db::open_simulated(&image, options());
            let db = db.unwrap_or_else(|error| panic!("image {number}: {error}"));
            db.tree_table("t").expect("there").put("later", "1").expect("put");
            drop(db);
            let db = Db::open_simulated(&image.crash(4), options()).expect("opened again");
            let found = db.tree_table("t").expect("there").len().expect("read") as u64;
            assert_eq!(found, OWN_PUTS + 1, "image {number}, in another life");
        }
    }
}

/// Makes a database with a tree of so many entries, and does something in between.
fn with_tree(path: &Path, between: impl FnOnce(&Db)) {
    let db = Db::open(path).expect("opened");
    let table = db.open_or_create_tree_table("t", TreeTableOptions::default()).expect("free");
    let fill = |value: u8| (0..500_u32).try_for_each(|key| table.put(key.to_be_bytes(), [value]));
    fill(1).expect("room");
    between(&db);
    fill(2).expect("room");
    db.close().expect("closed");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for file in fs::read_dir(from).expect("a folder") {
        let file = file.expect("listed");
        fs::copy(file.path(), to.join(file.file_name())).expect("copied");
    }
}

#[test]
fn trees_without_their_log_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, kept) = (folder.path().join("db"), folder.path().join("kept"));
    with_tree(&path, |db| {
        db.sync().expect("synced");
        copy(&path.join("log"), &kept.join("log"));
        copy(&path.join("trees"), &kept.join("trees"));
    });
    let refused = |what: &str| {
        let reader = Db::open_read_only(&path).expect_err(what).to_string();
        let writer = Db::open(&path).expect_err(what).to_string();
        let check = Db::check(&path).expect("checked");
        assert!(!check.problems.is_empty(), "{what}: the check tells");
        [reader, writer]
    };
    // An older log: pages have what it has not.
    let newest = folder.path().join("newest");
    fs::rename(path.join("log"), &newest).expect("moved");
    copy(&kept.join("log"), &path.join("log"));
    for error in refused("an older log") {
        assert!(error.contains("needs what it had up to"), "{error}");
    }
    // None.
    fs::remove_dir_all(path.join("log")).expect("removed");
    for error in refused("no log") {
        assert!(error.contains("put the log back"), "{error}");
    }
    // That of another database.
    let other = folder.path().join("other");
    with_tree(&other, |_| {});
    fs::remove_dir_all(path.join("log")).expect("the writer made one");
    copy(&other.join("log"), &path.join("log"));
    for error in refused("another log") {
        assert!(error.contains("belongs to the log of number"), "{error}");
    }
    // An older heap, and none.
    fs::remove_dir_all(path.join("log")).expect("removed");
    fs::rename(&newest, path.join("log")).expect("moved");
    fs::rename(path.join("trees"), &newest).expect("moved");
    copy(&kept.join("trees"), &path.join("trees"));
    for error in refused("an older heap") {
        assert!(error.contains("there were later ones"), "{error}");
    }
    fs::remove_dir_all(path.join("trees")).expect("removed");
    for error in refused("no heap") {
        assert!(error.contains("is missing"), "{error}");
    }
    // With all that belongs to it it is sound.
    fs::rename(&newest, path.join("trees")).expect("moved");
    let check = Db::check(&path).expect("checked");
    assert!(check.problems.is_empty(), "{:?}", check.problems);
    assert_eq!(Db::open(&path).expect("opened").tree_table("t").expect("there").len(), Ok(500));
}

/// Transactions over tables of all kinds, calls that go together, single changes and checkpoints of several
/// threads: none waits for ever, money is neither made nor lost, and all of it is there afterwards.
#[test]
fn changes_of_all_kinds_go_on_beside_each_other() {
    const ACCOUNTS: u8 = 4;
    let folder = tempfile::tempdir().expect("a folder");
    let options = || DbOptions::default().checkpoint_bytes(32 << 10).tree_memory(8 << 20);
    let db = Db::open_with(folder.path(), options()).expect("an empty folder");
    let ordered = db.create_ordered_table("ordered", OrderedTableOptions::default());
    let hash = db.create_hash_table("hash", HashTableOptions::default());
    let tree = |name| db.create_tree_table(name, TreeTableOptions::default());
    let trees: [TreeTable; 2] = ["one", "two"].map(|name| tree(name).expect("free"));
    let (ordered, hash) = (ordered.expect("free"), hash.expect("free"));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..3_u64)
            .map(|thread| {
                let (db, ordered, hash, trees) = (&db, &ordered, &hash, &trees);
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(thread);
                    let patient = Retry::times(100_000);
                    for _ in 0..400 {
                        let key = [rng.u8(..ACCOUNTS)];
                        let cents = rng.i64(1..50);
                        let [from, to] = match rng.bool() {
                            true => [&trees[0], &trees[1]],
                            false => [&trees[1], &trees[0]],
                        };
                        match thread {
                            0 => db.transaction_with(patient, |tx| {
                                tx.table(ordered).add(key, cents)?;
                                tx.table(from).add(key, -2 * cents)?;
                                tx.table(hash).add(key, cents).map(drop)
                            }),
                            1 => {
                                let (done, _) = db
                                    .together(|| {
                                        to.add(key, cents)?;
                                        // A key of this thread, as must be.
                                        ordered.add([100, key[0]], -2 * cents)?;
                                        from.add(key, cents)
                                    })
                                    .expect("the disk does not refuse");
                                done.map(drop)
                            }
                            _ => db.transaction_with(patient, |tx| {
                                tx.table(to).add(key, -cents)?;
                                tx.table(from).add(key, cents)?;
                                tx.table(hash).put([200], 0_i64.to_le_bytes())
                            }),
                        }
                        .expect("committed");
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                db.checkpoint().expect("written");
            }
        });
        for writer in writers {
            writer.join().expect("no panic");
        }
        done.store(true, Ordering::Relaxed);
    });
    let names = ["ordered", "hash", "one", "two"];
    let sums = |db: &Db| names.map(|name| sum(&db.table(name).expect("there")));
    let before = sums(&db);
    assert_eq!(before.iter().sum::<i64>(), 0);
    drop((ordered, hash, trees, db));
    let db = Db::open_with(folder.path(), options()).expect("opened again");
    assert_eq!(sums(&db), before);
    assert!(db.check_trees().expect("walked").expect("there").problems.is_empty());
}
