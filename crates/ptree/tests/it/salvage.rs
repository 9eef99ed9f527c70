//! What is saved of pools that are damaged.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use sapwood_disk::{Disk, SimDisk};
use sapwood_ptree::{DamagedPool, Error, Pool, Salvage, SalvagedTree, TreeKind, TreeLayout};

use crate::damage::{copy_of, damaged, options, prepared};
use crate::model::{KINDS, LAYOUTS, assert_holds, contents, name};

const NODES: [u16; 3] = [0xff02, 0xff03, 0xff04];
const HEAD: u16 = 0xff00;

/// What is saved, in a pool that is sound.
fn salvaged(disk: &SimDisk) -> Result<(Pool, Salvage), Error> {
    let files = |disk: &SimDisk| -> Vec<_> {
        let names = disk.list().expect("names");
        names.iter().map(|name| disk.contents(name).expect("there")).collect()
    };
    let before = files(disk);
    let pool = Pool::create(Arc::new(SimDisk::new()), options()).expect("made");
    let salvage = DamagedPool::open(disk, &options()).and_then(|damaged| pool.salvage(damaged));
    assert!(files(disk) == before, "a damaged pool is not written");
    let salvage = salvage?;
    let report = pool.check().expect("it can be checked");
    assert_eq!(report.problems, Vec::<String>::new());
    let copied: u64 = salvage.trees.iter().map(|tree| tree.copied).sum();
    assert_eq!(report.entries, copied);
    Ok((pool, salvage))
}

fn tree<'a>(salvage: &'a Salvage, name: &str) -> &'a SalvagedTree {
    salvage.trees.iter().find(|tree| tree.name == name).expect("it is told")
}

/// Trees of each kind and layout with so many entries, all in the heap's file.
fn full(count: u64) -> SimDisk {
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk.clone()), options()).expect("made");
    for kind in KINDS {
        for layout in LAYOUTS {
            let tree = pool.create_tree(&name(kind, layout), kind, layout).expect("made");
            pool.transaction(|tx| {
                tx.set_note(&tree, name(kind, layout).as_bytes())?;
                (0..count).try_for_each(|number| {
                    // Spread, so that no tree grows at its edge alone.
                    let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
                    tx.put(&tree, key, number.to_le_bytes()).map(drop)
                })
            })
            .expect("room");
        }
    }
    pool.close().expect("written");
    disk
}

/// Where objects of a type begin, in bytes of the heap's file.
fn objects(disk: &SimDisk, of: u16) -> Vec<u64> {
    let pool = Pool::open_read_only(Arc::new(copy_of(disk)), options()).expect("sound");
    let objects = pool.objects().expect("sound").into_iter();
    let objects = objects.filter(|object| object.object_type.0 == of);
    objects.map(|object| object.id.word() * 8).collect()
}

#[test]
fn a_sound_pool_is_copied_whole() {
    // Its last commits are in the log alone.
    let disk = prepared();
    let (pool, salvage) = salvaged(&disk).expect("sound");
    let source = Pool::open_read_only(Arc::new(disk.clone()), options()).expect("sound");
    assert_holds(&pool, &contents(&source));
    assert_eq!(salvage.problems, ["objects of no tree, which are not copied: 40"]);
    for tree in &salvage.trees {
        assert_eq!((tree.problem_count, tree.counted), (0, Some(tree.copied)), "{tree:?}");
    }

    let disk = full(2000);
    let (pool, salvage) = salvaged(&disk).expect("sound");
    assert!(salvage.is_complete(), "{salvage:?}");
    for info in pool.trees().expect("sound") {
        assert_eq!(info.name, name(info.kind, info.layout));
        assert_eq!((info.note, info.entries), (info.name.into_bytes(), 2000));
    }
}

#[test]
fn only_what_lies_below_a_damaged_node_is_lost() {
    const DAMAGES: usize = 9;
    let disk = full(20_000);
    let nodes = NODES.map(|node| objects(&disk, node));
    let names = KINDS.into_iter().flat_map(|kind| LAYOUTS.map(|layout| name(kind, layout)));
    // How often a tree was hit, and the fewest entries that it lost.
    let mut trees: BTreeMap<String, (u32, u64)> = names.map(|name| (name, (0, u64::MAX))).collect();
    for at in 0..DAMAGES {
        let damaged = copy_of(&disk);
        for nodes in &nodes {
            // Behind the first, which is the catalog's or a tree's; the type in its header.
            damaged
                .damage("heap", nodes[1 + at * (nodes.len() / DAMAGES)] + 4, 1)
                .expect("damaged");
        }
        // A node of each kind is damaged, and so one of the two trees that have nodes of it.
        let (_pool, salvage) = salvaged(&damaged).expect("a superblock");
        assert!(!salvage.is_complete());
        for (name, (hits, least)) in &mut trees {
            let told = tree(&salvage, name);
            assert_eq!(told.counted, Some(20_000));
            if told.problem_count > 0 {
                assert!(told.copied < 20_000, "{name}");
                (*hits, *least) = (*hits + 1, (*least).min(20_000 - told.copied));
            } else {
                assert_eq!(told.copied, 20_000, "{name}");
            }
        }
    }
    for (name, (hits, least)) in trees {
        assert!(hits > 0, "{name}: a node of it was damaged");
        assert!((1..100).contains(&least), "{name}: {least} entries were lost");
    }
}

#[test]
fn trees_without_a_name_get_one() {
    let disk = full(100);
    // The catalog's node is the first of all: it came with the first tree.
    let damaged = copy_of(&disk);
    damaged.damage("heap", objects(&disk, NODES[0])[0] + 4, 1).expect("damaged");
    let (pool, salvage) = salvaged(&damaged).expect("a superblock");
    assert_eq!(salvage.trees.len(), 6, "{salvage:?}");
    assert!(!salvage.is_complete());
    for info in pool.trees().expect("sound") {
        assert!(info.name.starts_with("unnamed-"), "{info:?}");
        assert_eq!(info.entries, 100);
    }
}

#[test]
fn a_tree_without_a_head_is_told() {
    let disk = full(100);
    let heads = objects(&disk, HEAD);
    assert_eq!(heads.len(), 7, "the catalog has one");
    let damaged = copy_of(&disk);
    damaged.damage("heap", heads[6] + 8, 0x40).expect("damaged");
    let (_pool, salvage) = salvaged(&damaged).expect("a superblock");
    let lost: Vec<_> = salvage.trees.iter().filter(|tree| tree.problem_count > 0).collect();
    assert_eq!((lost.len(), lost[0].counted, lost[0].copied), (1, None, 0), "{lost:?}");
    assert_eq!(salvage.trees.iter().map(|tree| tree.copied).sum::<u64>(), 500);
}

#[test]
fn what_the_checkpoint_has_is_there_without_the_log() {
    let disk = prepared();
    let damaged = copy_of(&disk);
    for name in damaged.list().expect("names").into_iter().filter(|name| name != "heap") {
        damaged.remove(&name).expect("removed");
    }
    assert!(Pool::open(Arc::new(damaged.clone()), options()).is_err());
    let (_pool, salvage) = salvaged(&damaged).expect("a superblock");
    assert!(salvage.problems[0].contains("since the last checkpoint"), "{salvage:?}");
    assert!(salvage.trees.iter().all(|tree| tree.problem_count == 0 && tree.copied > 0));

    let damaged = full(2000);
    damaged.truncate("heap", (18 << 16) + (4 << 16)).expect("cut");
    let (_pool, salvage) = salvaged(&damaged).expect("a superblock");
    assert!(salvage.problems[0].contains("is cut off"), "{salvage:?}");
    assert!(salvage.trees.iter().any(|tree| tree.copied > 0), "{salvage:?}");

    let damaged = full(10);
    damaged.damage("heap", 20, 1).expect("damaged");
    damaged.damage("heap", 4096 + 20, 1).expect("damaged");
    let error = salvaged(&damaged).map(drop).expect_err("nothing says where to begin");
    assert!(matches!(error, Error::CorruptFile { .. }), "{error}");
}

#[test]
fn any_damage_leaves_a_sound_copy() {
    let disk = prepared();
    let (_pool, whole) = salvaged(&disk).expect("sound");
    let whole: u64 = whole.trees.iter().map(|tree| tree.copied).sum();
    let (mut saved, mut unopened) = (0, 0);
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(200);
    for seed in 0..seeds {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let damaged = damaged(&disk, &mut rng);
        let opens = Pool::open(Arc::new(copy_of(&damaged)), options()).is_ok();
        let Ok((_pool, salvage)) = salvaged(&damaged) else {
            assert!(!opens, "seed {seed}: a pool that opens can be salvaged");
            continue;
        };
        let copied: u64 = salvage.trees.iter().map(|tree| tree.copied).sum();
        // What is damaged may look like an entry that was not there, and rarely does.
        assert!(copied <= whole + 10, "seed {seed}: {copied} of {whole}");
        // Where the heap is cut off, what was behind is gone.
        if !opens && !salvage.problems[0].contains("is cut off") {
            unopened += 1;
            saved += copied;
        }
    }
    assert!(unopened > seeds / 100, "{unopened} pools did not open");
    assert!(saved > whole * unopened / 2, "{saved} of {} entries were saved", whole * unopened);
}

#[test]
fn a_name_that_is_taken_is_told() {
    let disk = full(10);
    let pool = Pool::in_memory(options()).expect("made");
    let taken = name(TreeKind::BTree, TreeLayout::Bytes);
    pool.create_tree(&taken, TreeKind::RedBlack, TreeLayout::Bytes).expect("made");
    let salvage = DamagedPool::open(&disk, &options())
        .and_then(|damaged| pool.salvage(damaged))
        .expect("sound");
    assert_eq!(tree(&salvage, &taken).problem_count, 1);
    assert_eq!(pool.tree(&taken).expect("there").len(), Ok(0));
    assert!(!salvage.is_complete());
}
