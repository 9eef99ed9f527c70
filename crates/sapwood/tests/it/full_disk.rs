//! A full disk: a change that is refused is not there, for any reader, before or after an opening,
//! and the next one is made as soon as there is room.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sapwood::rollup::{Column, Dimension, Metric, RowBatch, Schema};
use sapwood::{
    Compute, Db, DbOptions, Direction, HashTable, HashTableOptions, OrderedTable,
    OrderedTableOptions, RollupTable, RollupTableOptions, TreeTable, TreeTableOptions,
};
use sapwood_disk::{Faults, SimDisk};

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Tables of all kinds on a disk.
struct World {
    disk: SimDisk,
    db: Db,
    hash: HashTable,
    ordered: OrderedTable,
    tree: TreeTable,
    rollup: RollupTable,
}

fn rows(count: i64) -> RowBatch {
    RowBatch::new(count as usize)
        .column("time", Column::longs((0..count).map(|row| row * 1_000)))
        .and_then(|batch| {
            batch.column("page", Column::texts((0..count).map(|row| format!("page {row}"))))
        })
        .expect("columns of one length")
}

impl World {
    fn new() -> World {
        let disk = SimDisk::new();
        let db = Db::open_simulated(&disk, DbOptions::default()).expect("opened");
        let hash = db.create_hash_table("hash", HashTableOptions::default()).expect("made");
        let ordered = db.create_ordered_table("ordered", OrderedTableOptions::default());
        let ordered = ordered.expect("made");
        let tree = db.create_tree_table("tree", TreeTableOptions::default()).expect("made");
        let schema =
            Schema::new("time").dimension(Dimension::text("page")).metric(Metric::count("rows"));
        let rollup = db.create_rollup_table("rollup", RollupTableOptions::new(schema));
        let world = World { disk, db, hash, ordered, tree, rollup: rollup.expect("made") };
        for key in [b"a", b"b", b"c"] {
            world.hash.put(key, [key[0]; 100]).expect("room");
            world.ordered.put(key, [key[0]; 100]).expect("room");
            world.tree.put(key, [key[0]; 100]).expect("room");
        }
        world.hash.put(b"count", 1_i64.to_le_bytes()).expect("room");
        world.ordered.put(b"count", 1_i64.to_le_bytes()).expect("room");
        world.rollup.ingest(&rows(3)).expect("room");
        world
    }

    /// Leaves the disk no byte, and the log none either.
    fn fill(&self) {
        self.disk.set_faults(Faults::new().space(self.disk.file_bytes()));
        for len in [100_000, 10_000, 1_000, 100, 0] {
            while self.hash.put(b"filler", vec![7; len]).is_ok() {}
        }
    }

    fn make_room(&self) {
        self.disk.set_faults(Faults::new());
    }

    fn contents(&self) -> (Vec<Entries>, u64) {
        let mut hash = Entries::new();
        let _all = self.hash.for_each(|key, value| {
            hash.insert(key.to_vec(), value.to_vec());
            ControlFlow::<()>::Continue(())
        });
        hash.remove(&b"filler"[..]);
        let mut all = vec![hash, Entries::new(), Entries::new()];
        let _all = self.ordered.scan(.., Direction::Ascending, |key, value| {
            all[1].insert(key.to_vec(), value.to_vec());
            ControlFlow::<()>::Continue(())
        });
        let _all = self.tree.scan(.., Direction::Ascending, |key, value| {
            all[2].insert(key.to_vec(), value.to_vec());
            ControlFlow::<()>::Continue(())
        });
        (all, self.rollup.stats().facts)
    }

    fn open_again(self) -> World {
        let World { disk, db, hash, ordered, tree, rollup } = self;
        drop((db, hash, ordered, tree, rollup));
        let db = Db::open_simulated(&disk, DbOptions::default()).expect("opened");
        let hash = db.hash_table("hash").expect("there");
        let ordered = db.ordered_table("ordered").expect("there");
        let tree = db.tree_table("tree").expect("there");
        let rollup = db.rollup_table("rollup").expect("there");
        World { disk, db, hash, ordered, tree, rollup }
    }
}

type Operation = fn(&World) -> sapwood::Result<()>;

/// Changes of every kind, each of which needs room in the log.
const OPERATIONS: [(&str, Operation); 30] = [
    ("hash put", |it| it.hash.put(b"new", b"value")),
    ("hash put over", |it| it.hash.put(b"a", b"value")),
    ("hash put if absent", |it| it.hash.put_if_absent(b"new", b"value").map(drop)),
    ("hash remove", |it| it.hash.remove(b"a").map(drop)),
    ("hash add", |it| it.hash.add(b"count", 1).map(drop)),
    ("hash add new", |it| it.hash.add(b"new", 1).map(drop)),
    ("hash update", |it| it.hash.update(b"a", |value| value.fill(b'x')).map(drop)),
    ("hash update longer", |it| {
        it.hash.update(b"a", |value| value.extend_from_slice(b"more"))?.transpose().map(drop)
    }),
    ("hash upsert", |it| {
        it.hash.put_if_absent_or_update(b"b", b"value", |value| value[5] = 1).map(drop)
    }),
    ("hash compute", |it| it.hash.compute(b"c", |_| Compute::Replace(b"value".to_vec())).map(drop)),
    ("hash compute removes", |it| it.hash.compute(b"c", |_| Compute::Remove).map(drop)),
    ("hash compare and put", |it| it.hash.compare_and_put(b"a", [b'a'; 100], b"x").map(drop)),
    ("hash put many", |it| it.hash.put_many(&[("new", "1"), ("a", "2"), ("other", "3")])),
    ("hash add many", |it| it.hash.add_many(&[("count", 1), ("new", 2)])),
    ("hash update many", |it| {
        it.hash.update_many(&["a", "b"], |_, value| value.fill(b'y')).map(drop)
    }),
    ("hash clear", |it| it.hash.clear()),
    ("ordered put", |it| it.ordered.put(b"new", b"value")),
    ("ordered put over", |it| it.ordered.put(b"a", b"value")),
    ("ordered remove", |it| it.ordered.remove(b"a").map(drop)),
    ("ordered add", |it| it.ordered.add(b"count", 1).map(drop)),
    ("ordered update", |it| it.ordered.update(b"a", |value| value.fill(b'x')).map(drop)),
    ("ordered compute", |it| {
        it.ordered.compute(b"c", |_| Compute::Replace(b"value".to_vec())).map(drop)
    }),
    ("ordered put many", |it| it.ordered.put_many(&[("new", "1"), ("a", "2")])),
    ("ordered pop", |it| it.ordered.pop_first().map(drop)),
    ("ordered clear", |it| it.ordered.clear().map(drop)),
    ("tree put", |it| it.tree.put(b"new", b"value").map(drop)),
    ("tree remove", |it| it.tree.remove(b"a").map(drop)),
    ("transaction", |it| {
        it.db.transaction(|tx| {
            tx.table(&it.hash).put(b"a", b"1")?;
            tx.table(&it.ordered).put(b"a", b"1")?;
            tx.table(&it.tree).put(b"a", b"1")
        })
    }),
    ("batch", |it| {
        let mut batch = it.db.batch();
        batch.put(&it.hash, b"b", b"1")?;
        batch.remove(&it.ordered, b"b")?;
        batch.commit().map(drop)
    }),
    ("ingest", |it| it.rollup.ingest(&rows(20)).map(drop)),
];

#[test]
fn a_change_that_is_refused_is_not_there_and_the_next_one_is_made_once_there_is_room() {
    let mut world = World::new();
    world.fill();
    let before = world.contents();
    for (what, operation) in OPERATIONS {
        let refused = operation(&world).expect_err(what);
        assert!(refused.lacks_room(), "{what}: {refused}");
        assert_eq!(world.contents(), before, "{what}");
    }
    world.make_room();
    world = world.open_again();
    assert_eq!(world.contents(), before, "opened again");
    for (what, operation) in OPERATIONS {
        let world = World::new();
        world.fill();
        operation(&world).expect_err(what);
        world.make_room();
        operation(&world).unwrap_or_else(|error| panic!("{what}: {error}"));
        let made = world.contents();
        assert_eq!(world.open_again().contents(), made, "{what}, opened again");
    }
}

#[test]
fn changes_that_go_together_are_made_as_far_as_there_is_room() {
    let world = World::new();
    world.fill();
    let before = world.contents();
    let (done, _) = world.db.together(|| world.hash.put(b"a", b"1")).expect("the log is well");
    done.expect_err("there is no room");
    let refused = world.db.with_room(2 * 4, 2, || ()).expect_err("nor for two");
    assert!(refused.lacks_room(), "{refused}");
    assert_eq!(world.contents(), before);
    world.make_room();
    // Room that was kept is there when the disk is full again.
    world
        .db
        .with_room(2 * 4, 2, || {
            // By another thread, which has nothing kept.
            std::thread::scope(|scope| scope.spawn(|| world.fill()).join().expect("full"));
            world.hash.put(b"new", b"1").expect("kept");
            let (done, _) = world.db.together(|| world.ordered.put(b"new", b"1")).expect("well");
            done.expect("kept");
            world.hash.put(b"more", [1; 100]).expect_err("beyond it");
        })
        .expect("room");
    let made = world.contents();
    assert_eq!(made.0[0].get(&b"new"[..]), made.0[1].get(&b"new"[..]));
    assert!(!made.0[0].contains_key(&b"more"[..]));
    world.make_room();
    assert_eq!(world.open_again().contents(), made);
}

#[test]
fn a_load_and_a_table_that_a_full_disk_refuses_are_not_there_and_come_later() {
    let world = World::new();
    world.fill();
    let load = |name: &str| -> sapwood::Result<()> {
        let mut load = world.db.bulk_load(name, OrderedTableOptions::default())?;
        for number in 0..10_000_u32 {
            load.push(number.to_be_bytes(), [7; 100])?;
        }
        load.finish().map(drop)
    };
    load("loaded").expect_err("there is no room");
    world.db.create_hash_table("made", HashTableOptions::default()).expect_err("nor for that");
    assert!(world.db.ordered_table("loaded").is_err());
    world.make_room();
    load("loaded").expect("room");
    world.db.create_hash_table("made", HashTableOptions::default()).expect("room");
    world.hash.put(b"new", b"value").expect("room");
    let made = world.contents();
    let world = world.open_again();
    assert_eq!(world.contents(), made);
    assert_eq!(world.db.ordered_table("loaded").expect("there").len(), Ok(10_000));
}
