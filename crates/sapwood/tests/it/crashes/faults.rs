//! Calls of the disk fail, each in turn: the caller is told, reads go on, and what lasts lasts.

use std::cell::Cell;
use std::io::ErrorKind;

use sapwood::Db;
use sapwood_disk::{Faults, ReadFault, SimDisk, SyncFault, WriteFault};
use sapwood_testkit::case;

use super::images;
use super::world::{SETTINGS, Tables, World, contents};

/// Steps of a stream before the last fault, and after it.
const STEPS: usize = 40;
const STEPS_AFTER: usize = 8;

/// Which calls fail, as [`SimDisk::calls`] counts them, and how the one of a number fails.
type Kind = (usize, fn(u64) -> Faults);

const KINDS: [Kind; 11] = [
    (0, |n| Faults::new().reads(n..=n, ReadFault::Error(ErrorKind::Other))),
    (0, |n| Faults::new().reads(n..=n, ReadFault::Short)),
    (1, |n| Faults::new().writes(n..=n, WriteFault::Error(ErrorKind::Other))),
    (1, |n| Faults::new().writes(n..=n, WriteFault::Torn(ErrorKind::Other))),
    (1, |n| Faults::new().writes(n.., WriteFault::Torn(ErrorKind::StorageFull))),
    (2, |n| Faults::new().syncs(n..=n, SyncFault::Doubtful(ErrorKind::Other))),
    (2, |n| Faults::new().syncs(n.., SyncFault::Lost(ErrorKind::Other))),
    (3, |n| Faults::new().names(n..=n, ErrorKind::Other)),
    (3, |n| Faults::new().names(n.., ErrorKind::StorageFull)),
    (4, |n| Faults::new().looks(n..=n, ErrorKind::PermissionDenied)),
    (4, |n| Faults::new().looks(n..=n, ErrorKind::Other)),
];

#[test]
fn any_call_that_fails_is_told_and_loses_nothing() {
    // One of so many calls fails in turn: with CRASHES for the full size, each.
    let least = (images() / 500).max(1);
    let (told, seeds) = (Cell::new(0), Cell::new(0));
    case!().seeds(4, |seed| {
        seeds.set(seeds.get() + 1);
        let calls = run(seed, Faults::new(), false).calls;
        for (number, (counted, faults)) in KINDS.iter().enumerate() {
            let count = calls[*counted];
            let step = (count / least).max(1) as usize;
            for n in (seed % step as u64..count).step_by(step) {
                println!("seed {seed}, kind {number}, call {n} of {count}");
                for restarts in [false, true] {
                    let ran = run(seed, faults(n), restarts);
                    told.set(told.get() + usize::from(ran.was_told));
                }
            }
        }
    });
    assert!(told.get() > 5 * seeds.get(), "only {} were told", told.get());
}

/// The table had been closed then, and opened again as its newest checkpoint had left it.
#[test]
fn a_drop_that_fails_takes_no_change_back() {
    let (disk, setting) = (SimDisk::new(), SETTINGS[1]);
    let db = setting.open(&disk).expect("nothing fails");
    let table = db.create_hash_table("t", sapwood::HashTableOptions::default()).expect("made");
    table.put(b"saved", b"1").expect("put");
    table.checkpoint(sapwood::Cut::Full).expect("saved");
    table.put(b"logged", b"2").expect("put");
    drop(table);
    disk.set_faults(Faults::new().names(.., ErrorKind::StorageFull));
    db.drop_table("t").expect_err("no name goes");
    disk.set_faults(Faults::new());
    assert!(db.hash_table("t").is_err(), "its files have less than there was");
    assert!(db.checkpoint().is_err(), "the log still has the change");
    drop(db);
    let db = setting.open(&disk).expect("opened again");
    let table = db.hash_table("t").expect("it was not dropped");
    assert_eq!(table.get(b"logged").expect("read"), Some(b"2".to_vec()));
    assert_eq!(table.get(b"saved").expect("read"), Some(b"1".to_vec()));
    drop(table);
    db.drop_table("t").expect("dropped");
}

/// The log may have the table where the sync of its record fails, and opening it needs the folder.
#[test]
fn a_roll_up_table_that_the_log_may_have_keeps_its_folder() {
    for (n, restarts) in (0..12).flat_map(|n| [(n, false), (n, true)]) {
        let (disk, setting) = (SimDisk::new(), SETTINGS[0]);
        let db = setting.open(&disk).expect("nothing fails");
        disk.set_faults(Faults::new().syncs(n..=n, SyncFault::Doubtful(ErrorKind::Other)));
        let schema = sapwood::rollup::Schema::new("time");
        let options = sapwood::RollupTableOptions::new(schema);
        let made = db.create_rollup_table("t", options).map(drop);
        disk.set_faults(Faults::new());
        drop(db);
        let disk = if restarts { disk.crash(n) } else { disk };
        let db = setting.open(&disk).unwrap_or_else(|error| panic!("{n}, {made:?}: {error}"));
        assert!(made.is_err() || db.rollup_table("t").is_ok(), "{n}");
    }
}

/// A sync of names that failed leaves them in doubt whatever later ones say.
#[test]
fn a_hash_table_is_there_or_not_whatever_sync_of_names_failed() {
    let setting = SETTINGS[0];
    let options = sapwood::HashTableOptions::default;
    let mut found = [0; 2];
    for (n, is_drop) in (0..12).flat_map(|n| [(n, false), (n, true)]) {
        let disk = SimDisk::new();
        let db = setting.open(&disk).expect("nothing fails");
        let other = db.create_hash_table("other", options()).expect("made");
        if is_drop {
            db.create_hash_table("t", options()).expect("made").put("before", "1").expect("put");
        }
        disk.set_faults(Faults::new().syncs(n..=n, SyncFault::Doubtful(ErrorKind::Other)));
        let _told = match is_drop {
            true => db.drop_table("t"),
            false => db.create_hash_table("t", options()).map(drop),
        };
        disk.set_faults(Faults::new());
        drop((other, db));
        let db = setting.open(&disk).expect("opened again");
        let table = db.hash_table("t");
        let is_there = table.is_ok();
        found[usize::from(is_there)] += 1;
        if let Ok(table) = &table {
            table.put("behind", "2").expect("put");
        }
        db.hash_table("other").expect("there").put("behind", "2").expect("put");
        for seed in 0..24 {
            let what = format!("sync {n}, dropped: {is_drop}, image {seed}");
            let crashed =
                setting.open(&disk.crash(seed)).unwrap_or_else(|it| panic!("{what}: {it}"));
            assert_eq!(crashed.hash_table("t").is_ok(), is_there, "{what}");
            if is_there {
                let table = crashed.hash_table("t").expect("there");
                assert_eq!(table.get("behind").expect("read"), Some(b"2".to_vec()), "{what}");
            }
        }
    }
    assert!(found.iter().all(|count| *count > 2), "{found:?}");
}

/// Files that cannot be looked at for a moment are there: an opening that goes through has all tables, and one that is refused
/// has dropped none.
#[test]
fn an_opening_that_cannot_look_at_something_drops_no_table() {
    let mut refused = 0;
    for (number, setting) in (0..).zip(SETTINGS) {
        let disk = SimDisk::new();
        let mut world = World::open(&disk, setting, 1);
        world.prepare().expect("nothing fails");
        for _ in 0..STEPS {
            world.step().expect("nothing fails");
        }
        let expected = world.contents().expect("open").expect("read");
        drop(world);
        let open_all = |disk: &SimDisk| {
            let db = setting.open(disk)?;
            contents(&db)
        };
        let read_all = |disk: &SimDisk| contents(&Db::open_simulated_read_only(disk)?);
        let image = disk.crash_images(2).last().expect("all was kept");
        let counted = |open: &dyn Fn(&SimDisk) -> sapwood::Result<Tables>| {
            let disk = image.crash(0);
            disk.set_faults(Faults::new());
            assert!(open(&disk).expect("nothing fails") == expected);
            disk.calls()[4]
        };
        for open in [&open_all as &dyn Fn(&SimDisk) -> _, &read_all] {
            // Each look once, with one of the settings.
            for n in (number..counted(open)).step_by(SETTINGS.len()) {
                let disk = image.crash(0);
                disk.set_faults(Faults::new().looks(n..=n, ErrorKind::PermissionDenied));
                match open(&disk) {
                    Ok(found) => assert!(found == expected, "{setting:?}, look {n}"),
                    Err(_) => refused += 1,
                }
                disk.set_faults(Faults::new());
                let found = open_all(&disk).unwrap_or_else(|error| panic!("look {n}: {error}"));
                assert!(found == expected, "{setting:?}, look {n}, opened again");
            }
        }
    }
    assert!(refused > 20, "only {refused} were refused");
}

struct Ran {
    calls: [u64; 5],
    was_told: bool,
}

/// The directory is opened again with what the page cache has, some of which a sync that failed has left out of
/// the disk, or once the machine has been started anew.
fn run(seed: u64, faults: Faults, restarts: bool) -> Ran {
    let disk = SimDisk::new();
    let mut world = World::open(&disk, SETTINGS[seed as usize % SETTINGS.len()], seed);
    world.prepare().expect("nothing fails");
    world.has_time = false;
    world.may_reopen = !restarts;
    disk.set_faults(faults);
    let failed = (0..STEPS).find_map(|_| world.step().err());
    let calls = disk.calls();
    disk.set_faults(Faults::new());
    if let Some(failed) = &failed {
        let failed = failed.to_string();
        go_on(&mut world, &failed);
        for _ in 0..STEPS_AFTER {
            if let Err(next) = world.step() {
                go_on(&mut world, &format!("{next}; before: {failed}"));
            }
        }
    }
    let what = format!("seed {seed}, failed: {failed:?}");
    assert_lasts(&world, &disk.crash(seed), &format!("{what}, after a crash"));
    if restarts {
        world.disk = disk.crash(seed);
        world.may_reopen = true;
    }
    world.open_again().unwrap_or_else(|error| panic!("{what}: {error}"));
    let disk = world.disk.clone();
    let now = world.contents().expect("open").expect("read");
    world.history.check(world.history.lasting, &now, &format!("{what}, opened again"));
    world.history.note(now);
    assert_lasts(&world, &disk.crash(seed), &format!("{what}, a crash once opened again"));
    for _ in 0..STEPS_AFTER {
        world.step().unwrap_or_else(|error| panic!("{what}: {error} once opened again"));
    }
    assert_lasts(&world, &disk.crash(seed), &format!("{what}, a crash in another life"));
    Ran { calls, was_told: failed.is_some() }
}

/// After a step that failed: what there is can be read, and has the change or not.
fn go_on(world: &mut World, failed: &str) {
    match world.contents() {
        Some(Ok(found)) => {
            if !world.is_about_tables {
                world.history.check_either(&found, failed);
            }
            world.history.note(found);
        }
        // What a failed sync took from the disk can be read again once the log has been done again.
        Some(Err(error)) if !world.is_about_tables && !failed.contains("sync") => {
            panic!("{failed}: then {error}")
        }
        _ => {
            world.open_again().unwrap_or_else(|error| panic!("{failed}: opened again: {error}"));
            let found = world.contents().expect("open").expect("read");
            world.history.check(world.history.lasting, &found, failed);
            world.history.note(found);
        }
    }
}

fn assert_lasts(world: &World, image: &SimDisk, what: &str) {
    let db = world.setting.open(image).unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = contents(&db).unwrap_or_else(|error| panic!("{what}: {error}"));
    world.history.check(world.history.lasting, &found, what);
}
