//! The power goes at any change of the disk: what is left opens, and is a prefix of what was done to all tables.

mod faults;
mod world;

use std::ops::ControlFlow;

use sapwood::{Db, Engine};
use sapwood_disk::SimDisk;
use sapwood_testkit::case;

use world::{SETTINGS, Setting, World, contents};

/// Steps of a stream.
const STEPS: usize = 60;

/// How many images are looked at: `CRASHES` of them, or some thousand.
fn images() -> u64 {
    let number = |text: String| text.parse().expect("CRASHES is a whole number");
    std::env::var("CRASHES").map_or(2_000, number)
}

#[test]
fn any_crash_leaves_a_prefix_of_all_changes() {
    let (wanted, mut seen) = (images(), 0);
    case!().seeds_until(|seed| {
        seen += crashes_of_a_stream(seed);
        if seen < wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
}

/// Runs a stream, and looks at what a crash before each change of the disk would have left; how often.
fn crashes_of_a_stream(seed: u64) -> u64 {
    let setting = SETTINGS[seed as usize % SETTINGS.len()];
    let disk = SimDisk::new();
    let mut world = World::open(&disk, setting, seed);
    world.prepare().expect("nothing fails");
    disk.take_images(seed << 32, 1);
    let mut seen = 0;
    for step in 0..STEPS {
        let lasting = world.history.lasting;
        world.step().expect("nothing fails");
        let mut images = disk.taken();
        if step == STEPS - 1 {
            images.push(disk.crash(seed));
        }
        for (number, image) in images.into_iter().enumerate() {
            seen += 1;
            let what = format!("{setting:?}, step {step}, image {number}");
            check_image(&world, lasting, image, seed + seen, &what);
        }
    }
    seen
}

/// Looks at an image; how thoroughly, is picked by a number.
fn check_image(world: &World, lasting: usize, image: SimDisk, pick: u64, what: &str) {
    let mut image = image;
    let check = |db: &Db, what: &str| {
        let found = contents(db).unwrap_or_else(|error| panic!("{what}: {error}"));
        world.history.check(lasting, &found, what);
        found
    };
    let setting = world.setting;
    match pick % 8 {
        0 => {
            let db = Db::open_simulated_read_only(&image);
            check(&db.unwrap_or_else(|error| panic!("{what}: {error}")), what);
            assert_eq!(image.operations(), 0, "{what}: a reader changes nothing");
        }
        1 => {
            // The power goes again while it is opened, or soon after.
            image.stop_after(pick / 8 % 40);
            let _cut_off = setting.open(&image);
            image = image.crash(pick);
        }
        _ => {}
    }
    let db = setting.open(&image).unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = check(&db, what);
    match pick % 16 {
        2 => {
            let has_keys = |name: &String| db.engine(name) != Some(Engine::Rollup);
            for name in db.table_names().into_iter().filter(has_keys) {
                let table = db.table(&name).and_then(|table| table.check());
                table.unwrap_or_else(|error| panic!("{what}: {name}: {error}"));
            }
        }
        3 => {
            // Nothing was changed, and it lasts.
            drop(db);
            let db = setting.open(&image.crash(pick)).expect("opened again");
            assert!(contents(&db).expect("read") == found, "{what}: opened again");
        }
        4 => goes_on(setting, &image, db, pick, what),
        _ => {}
    }
}

/// A life after the crash, which another ends.
fn goes_on(setting: Setting, image: &SimDisk, db: Db, seed: u64, what: &str) {
    drop(db);
    let mut world = World::open(image, setting, seed);
    for _ in 0..12 {
        world.step().unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    let db = setting.open(&image.crash(seed)).unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = contents(&db).expect("read");
    world.history.check(world.history.lasting, &found, &format!("{what}, another life"));
}
