//! A log that is read while it is written: what the writer does between any two steps of the reader.

use std::cell::RefCell;

use fastrand::Rng;
use sapwood_disk::log::Durability;
use sapwood_disk::{Disk, SimDisk};
use sapwood_engine::Effect;
use sapwood_wal::{Error, Recovery, Result, TableId, View, Wal};

use crate::world::{Tables, Told, World};

/// Collects what is told, and lets the writer go on before each.
struct Between<'w> {
    told: Told,
    write: &'w dyn Fn(),
}

impl Recovery<Error> for Between<'_> {
    fn create(&mut self, id: TableId, name: &str, text: &[u8], own: Option<u64>) -> Result<()> {
        (self.write)();
        self.told.create(id, name, text, own)
    }

    fn entry(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<()> {
        (self.write)();
        self.told.entry(table, key, value)
    }

    fn change(&mut self, table: TableId, key: &[u8], effect: Effect<'_>) -> Result<()> {
        (self.write)();
        self.told.change(table, key, effect)
    }
}

fn tables(told: Told) -> Tables {
    told.tables.into_values().collect()
}

fn write(world: &mut World, rng: &mut Rng) {
    let name = ["a", "b"][rng.usize(..2)];
    let is_there = world.tables.contains_key(name);
    match rng.u8(..12) {
        0 => drop(world.wal.checkpoint().expect("written")),
        1 if is_there => world.drop_table(name).expect("dropped"),
        _ if !is_there => world.make_table(name).expect("made"),
        2 => world.table(name).remove(&[rng.u8(..9)]),
        3 => world.table(name).write(&[rng.u8(..9)], 1, &[rng.u8(..)]),
        _ => world.table(name).put(&[rng.u8(..9)], &vec![rng.u8(..); rng.usize(..3000)]),
    }
}

#[test]
fn a_reader_has_the_end_of_the_log_whatever_comes_between() {
    for seed in 0..150 {
        let disk = SimDisk::new();
        let world = World::create(&disk, Durability::Buffered).expect("made");
        let (world, rng) = (RefCell::new(world), RefCell::new(Rng::with_seed(seed)));
        let step = || write(&mut world.borrow_mut(), &mut rng.borrow_mut());
        for round in 0..4 {
            (0..10).for_each(|_| step());
            let mut view = View::begin(&disk).expect("begun");
            let steps = rng.borrow_mut().usize(..10);
            (0..steps).for_each(|_| step());
            let expected = world.borrow().contents();
            let end = world.borrow().wal.position();
            let mut between = Between { told: Told::default(), write: &step };
            let told = view.tell(&mut between).expect("nothing is missing");
            assert_eq!(told, (world.borrow().wal.id(), end), "seed {seed}, round {round}");
            assert_eq!(tables(between.told), expected, "seed {seed}, round {round}");
            assert_eq!(view.is_whole(), Ok(true));
        }
        // What was kept for readers goes with the next checkpoint.
        world.borrow().wal.checkpoint().expect("written");
        let names = disk.list().expect("names");
        let snapshots = names.iter().filter(|name| name.starts_with("snapshot-")).count();
        assert_eq!(snapshots, world.borrow().tables.len(), "{names:?}");
    }
}

/// The log has later changes of a table, and not what it was loaded with: that is in the checkpoint that came with it.
#[test]
fn a_reader_that_lacks_a_load_is_told_so() {
    let disk = SimDisk::new();
    let mut world = World::create(&disk, Durability::Buffered).expect("made");
    world.make_table("t").expect("made");
    let mut view = View::begin(&disk).expect("begun");
    let load = |world: &World, name: &str| {
        let (id, table) = &world.tables[name];
        let tell = |entry: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>| entry(b"1", b"loaded");
        world.wal.load(*id, tell, drop).expect("loaded");
        table.entries().insert(b"1".to_vec(), b"loaded".to_vec());
        table.put(b"2", b"later");
    };
    load(&world, "t");
    let mut told = Told::default();
    view.tell(&mut told).expect("nothing is missing");
    assert_ne!(tables(told), world.contents());
    assert_eq!(view.is_whole(), Ok(false), "it is to begin again");
    // So is one that was told of the load when it began.
    world.make_table("u").expect("made");
    let mut view = View::begin(&disk).expect("begun");
    load(&world, "u");
    view.tell(&mut Told::default()).expect("nothing is missing");
    assert_eq!(view.is_whole(), Ok(false));

    // The next one has all of both, though checkpoints come meanwhile.
    let mut view = View::begin(&disk).expect("begun");
    let mut told = Told::default();
    view.tell(&mut told).expect("nothing is missing");
    assert_eq!(tables(told), world.contents());
    assert_eq!(view.is_whole(), Ok(true));
    world.wal.checkpoint().expect("written");
    let mut view = View::begin(&disk).expect("begun");
    world.wal.checkpoint().expect("written");
    view.tell(&mut Told::default()).expect("nothing is missing");
    assert_eq!(view.is_whole(), Ok(true), "no table was loaded");
    drop(view);
    let opened = World::open(&disk, Durability::Buffered).expect("opened");
    assert_eq!(opened.contents(), world.contents());
}

/// Of a writer that was killed before it took away what readers kept.
#[test]
fn the_next_writer_keeps_what_a_reader_has_begun_with() {
    let disk = SimDisk::new();
    let mut world = World::create(&disk, Durability::Buffered).expect("made");
    world.make_table("t").expect("made");
    let fill = |world: &World, by: u8| {
        (0..200).for_each(|key| world.table("t").put(&[key], &[by; 9_000]));
        world.wal.checkpoint().expect("written");
    };
    fill(&world, 1);
    let mut view = View::begin(&disk).expect("begun");
    for by in 2..5 {
        fill(&world, by);
        drop(world);
        world = World::open(&disk, Durability::Buffered).expect("opened");
    }
    let expected = world.contents();
    let mut told = Told::default();
    view.tell(&mut told).expect("nothing is missing");
    assert_eq!(tables(told), expected);
    drop(view);
    drop(world);
    let before = disk.file_bytes();
    let world = World::open(&disk, Durability::Buffered).expect("opened");
    assert_eq!(world.contents(), expected);
    assert!(disk.file_bytes() < before / 2, "the rest has gone");
    Wal::view(&disk, &mut Told::default()).expect("whole");
}
