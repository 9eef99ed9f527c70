//! Tables in their snapshots whose log has changes since, and those that are changed there.

use std::sync::atomic::{AtomicBool, Ordering};

use sapwood::{Compute, DbOptions, Durability};

use super::*;

/// Makes a table with random entries, in a few blocks, and a checkpoint of it.
fn stored_table(path: &TempDir, rng: &mut Rng) -> Entries {
    let db = Db::open(path.path()).expect("new");
    let table = db.create_ordered_table("t", OrderedTableOptions::default()).expect("made");
    let mut all = Entries::new();
    let long = rng.usize(2..20);
    for _ in 0..rng.usize(1..40_000) {
        let value = vec![rng.u8(..); rng.usize(..60)];
        all.insert(some_key(rng, long), value);
    }
    let entries: Vec<_> = all.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    table.put_many(&entries).expect("room");
    drop(table);
    db.close().expect("closed");
    all
}

fn some_key(rng: &mut Rng, long: usize) -> Vec<u8> {
    (0..rng.usize(1..=long)).map(|_| rng.u8(..)).collect()
}

/// A key that is there, or one beside it.
fn near_key(all: &Entries, rng: &mut Rng) -> Vec<u8> {
    let key = some_key(rng, 3);
    let mut key = all.range(key.clone()..).next().map_or(key, |(key, _)| key.clone());
    if rng.u8(..4) == 0 {
        key.push(rng.u8(..));
    }
    key
}

/// Changes one thing or another of the table, and of what it should have.
fn change_some(db: &Db, table: &OrderedTable, all: &mut Entries, rng: &mut Rng) {
    let key = near_key(all, rng);
    let value = vec![rng.u8(..); rng.usize(..30)];
    match rng.u8(..12) {
        0..=2 => {
            table.put(&key, &value).expect("room");
            all.insert(key, value);
        }
        3 | 4 => {
            let was_there = table.remove(&key).expect("removed");
            assert_eq!(was_there, all.remove(&key).is_some());
        }
        5 | 6 => {
            let byte = rng.u8(..);
            let change = |value: &mut [u8]| {
                value.iter_mut().rev().take(2).for_each(|there| *there = byte);
            };
            let updated = table.update(&key, |value| change(value)).expect("updated");
            assert_eq!(updated.is_some(), all.contains_key(&key));
            all.entry(key).and_modify(|value| change(value));
        }
        7 => {
            let computed = table.compute(&key, |known| match known {
                Some(_) => Compute::Remove,
                None => Compute::Replace(value.clone()),
            });
            computed.expect("room");
            if all.remove(&key).is_none() {
                all.insert(key, value);
            }
        }
        8 => {
            let entries: Vec<_> =
                (0..rng.usize(..20)).map(|_| (near_key(all, rng), value.clone())).collect();
            table.put_many(&entries).expect("room");
            all.extend(entries);
        }
        9 => {
            let other = near_key(all, rng);
            db.transaction(|transaction| {
                let there = transaction.table(table).get(&key)?;
                assert_eq!(there.as_ref(), all.get(&key));
                transaction.table(table).put(&other, &value)?;
                transaction.table(table).remove(&key)
            })
            .expect("it commits");
            if other != key {
                all.insert(other, value);
            }
            all.remove(&key);
        }
        10 => {
            let put = table.put_if_absent(&key, &value).expect("room");
            assert_eq!(put, !all.contains_key(&key));
            all.entry(key).or_insert(value);
        }
        _ => {
            let replaced = match all.get(&key) {
                Some(known) => table.compare_and_put(&key, known, &value).expect("room"),
                None => table.compare_and_put(&key, b"", &value).expect("room"),
            };
            assert_eq!(replaced, all.contains_key(&key));
            all.entry(key).and_modify(|known| *known = value);
        }
    }
}

fn expect_all(table: &OrderedTable, all: &Entries) {
    assert_eq!(table.len(), Ok(all.len()));
    let stats = table.stats();
    let bytes = all.iter().fold((0, 0), |(keys, values), (key, value)| {
        (keys + key.len() as u64, values + value.len() as u64)
    });
    let told = (stats.entries, stats.key_bytes, stats.value_bytes);
    assert_eq!(told, (all.len() as u64, bytes.0, bytes.1));
    let up = scanned(table, (Bound::Unbounded, Bound::Unbounded), Direction::Ascending, usize::MAX);
    assert!(up.into_iter().eq(all.clone()));
    let down =
        scanned(table, (Bound::Unbounded, Bound::Unbounded), Direction::Descending, usize::MAX);
    assert!(down.into_iter().rev().eq(all.clone()));
}

#[test]
fn changes_of_the_log_are_read_over_the_snapshot() {
    case!().seeds(12, |seed| {
        let (mut rng, path) = (Rng::with_seed(seed), directory());
        let mut all = stored_table(&path, &mut rng);
        let db = Db::open(path.path()).expect("it opens");
        let table = ordered(&db);
        for _ in 0..rng.usize(..300) {
            change_some(&db, &table, &mut all, &mut rng);
        }
        // Beside the writer, and behind it.
        let check = |rng: &mut Rng| {
            let reader = Db::open_read_only(path.path()).expect("it opens");
            let table = ordered(&reader);
            expect_some(&table, &all, rng);
            // Where the log has more of a table than its snapshot has, all is in memory at once.
            if all.len() > 5_000 {
                assert_eq!(table.stats().reserved_bytes, 0, "nothing is in memory yet");
            }
            (0..12).for_each(|_| expect_some(&table, &all, rng));
            expect_all(&table, &all);
            table.first().expect("read");
            expect_all(&table, &all);
            table.check().expect("a sound table");
        };
        db.sync().expect("synced");
        check(&mut rng);
        drop((table, db));
        check(&mut rng);
    });
}

#[test]
fn a_lazy_writer_changes_what_it_needs() {
    case!().seeds(12, |seed| {
        let (mut rng, path) = (Rng::with_seed(seed), directory());
        let mut all = stored_table(&path, &mut rng);
        for _ in 0..rng.usize(1..6) {
            let lazy = rng.u8(..4) > 0;
            let options = if lazy { DbOptions::default().lazy() } else { DbOptions::default() };
            let db = Db::open_with(path.path(), options).expect("it opens");
            let table = ordered(&db);
            expect_all(&table, &all);
            for _ in 0..rng.usize(..60) {
                match rng.u8(..20) {
                    0 => db.checkpoint().expect("written"),
                    1 => expect_all(&table, &all),
                    2 => {
                        let least = table.pop_first().expect("removed");
                        assert_eq!(least, all.pop_first());
                    }
                    3 => {
                        let last = table.last().expect("read").map(|entry| entry.into_pair());
                        assert_eq!(
                            last.as_ref().map(|(key, value)| (key, value)),
                            all.last_key_value()
                        );
                    }
                    4..12 => change_some(&db, &table, &mut all, &mut rng),
                    _ => expect_some(&table, &all, &mut rng),
                }
            }
            table.check().expect("a sound table");
            drop(table);
            if rng.bool() { db.close().expect("closed") } else { db.sync().expect("synced") }
        }
        expect_all(&ordered(&Db::open_read_only(path.path()).expect("it opens")), &all);
        expect_all(&ordered(&Db::open(path.path()).expect("it opens")), &all);
    });
}

/// What comes out of the snapshot into memory is no change, and the log does not get it.
#[test]
fn the_log_hears_of_changes_alone() {
    let (mut rng, path) = (Rng::with_seed(1), directory());
    let mut all = stored_table(&path, &mut rng);
    // No sync comes meanwhile, which would end a sector of the log.
    let options = DbOptions::default().lazy().durability(Durability::Buffered);
    let db = Db::open_with(path.path(), options).expect("it opens");
    let table = ordered(&db);
    let unsaved = || db.stats().log.expect("it has a log").unsaved_bytes;
    let before = unsaved();
    table.put([1, 2, 3], [4; 5]).expect("room");
    all.insert(vec![1, 2, 3], vec![4; 5]);
    let stats = table.stats();
    assert!(stats.reserved_bytes > 0, "the neighbours are in memory");
    table.first().expect("read");
    expect_all(&table, &all);
    let heard = unsaved() - before;
    assert!((8..100).contains(&heard), "{heard}");
}

/// Each thread has keys of its own, and finds them as it left them, whatever others bring into memory meanwhile.
#[test]
fn threads_change_a_table_that_comes_into_memory() {
    const THREADS: u32 = 4;
    let key = |number: u32| number.to_be_bytes();
    case!().seeds(3, |seed| {
        let path = directory();
        let db = Db::open(path.path()).expect("new");
        let table = db.create_ordered_table("t", OrderedTableOptions::default()).expect("made");
        for number in 0..60_000_u32 {
            table.put(key(number), [0; 8]).expect("room");
        }
        drop(table);
        db.close().expect("closed");
        let db = Db::open_with(path.path(), DbOptions::default().lazy()).expect("it opens");
        let (table, is_over) = (ordered(&db), AtomicBool::new(false));
        let work = |thread: u32| {
            let mut rng = Rng::with_seed(seed * 100 + u64::from(thread));
            let mine = |number: u32| number % THREADS == thread;
            let mut all: BTreeMap<u32, u64> =
                (0..60_000).filter(|number| mine(*number)).map(|number| (number, 0)).collect();
            for turn in 1..200_u64 {
                let number = rng.u32(..60_000 / THREADS) * THREADS + thread;
                match rng.u8(..4) {
                    0 => {
                        let was_there = table.remove(key(number)).expect("removed");
                        assert_eq!(was_there, all.remove(&number).is_some());
                    }
                    1 => {
                        let there = table.get(key(number)).expect("read");
                        let should = all.get(&number).map(|turn| turn.to_le_bytes().to_vec());
                        assert_eq!(there, should);
                    }
                    2 => {
                        table.put(key(number), turn.to_le_bytes()).expect("room");
                        all.insert(number, turn);
                    }
                    _ => {
                        let to = number.saturating_add(rng.u32(..20_000));
                        let range =
                            (Bound::Included(&key(number)[..]), Bound::Excluded(&key(to)[..]));
                        let direction = match rng.bool() {
                            true => Direction::Ascending,
                            false => Direction::Descending,
                        };
                        let mut seen = scanned(&table, range, direction, usize::MAX);
                        if direction == Direction::Descending {
                            seen.reverse();
                        }
                        assert!(seen.is_sorted_by(|one, other| one.0 < other.0));
                        let entry = |(key, value): (Vec<u8>, Vec<u8>)| {
                            let number = u32::from_be_bytes(key.try_into().expect("4 bytes"));
                            (number, u64::from_le_bytes(value.try_into().expect("8 bytes")))
                        };
                        let seen = seen.into_iter().map(entry).filter(|(number, _)| mine(*number));
                        let should = all.range(number..to).map(|(number, turn)| (*number, *turn));
                        assert!(seen.eq(should));
                    }
                }
            }
            all
        };
        let mut all = BTreeMap::new();
        thread::scope(|scope| {
            let workers: Vec<_> =
                (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
            let checkpoints = scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    db.checkpoint().expect("written");
                }
            });
            for worker in workers {
                all.extend(worker.join().expect("its asserts hold"));
            }
            is_over.store(true, Ordering::Relaxed);
            checkpoints.join().expect("written");
        });
        let all: Entries = all
            .into_iter()
            .map(|(number, turn)| (key(number).to_vec(), turn.to_le_bytes().to_vec()))
            .collect();
        expect_all(&table, &all);
        db.sync().expect("synced");
        expect_all(&ordered(&Db::open_read_only(path.path()).expect("it opens")), &all);
    });
}

/// A few changes need no checkpoint at the end; many, and those of hash tables, have one.
#[test]
fn a_lazy_writer_leaves_few_changes_in_the_log() {
    let (mut rng, path) = (Rng::with_seed(1), directory());
    let mut all = stored_table(&path, &mut rng);
    let snapshot = || {
        let files = std::fs::read_dir(path.path().join("log")).expect("listed");
        let names = files.map(|file| file.expect("listed").file_name());
        names.filter(|name| name.to_string_lossy().starts_with("snapshot-")).max()
    };
    let first = snapshot();
    let mut change = |changes: u32, hash: bool| {
        let db = Db::open_with(path.path(), DbOptions::default().lazy()).expect("it opens");
        let table = ordered(&db);
        for number in 0..changes {
            table.put(number.to_be_bytes(), [1; 40]).expect("room");
            all.insert(number.to_be_bytes().to_vec(), vec![1; 40]);
        }
        if hash {
            let table = db.open_or_create_hash_table("hash", Default::default()).expect("made");
            table.put("k", "v").expect("room");
        }
        drop(table);
        db.close().expect("closed");
        expect_all(&ordered(&Db::open_read_only(path.path()).expect("it opens")), &all);
        snapshot()
    };
    assert_eq!(change(100, false), first);
    let second = change(10, true);
    assert_ne!(second, first);
    assert_eq!(change(10, false), second);
    assert_ne!(change(20_000, false), second);
}
