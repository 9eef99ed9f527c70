//! What a pool says of its files.

use std::sync::Arc;

use sapwood_disk::SimDisk;
use sapwood_ptree::{Pool, PoolOptions, TreeKind, TreeLayout};

#[test]
fn a_pool_knows_its_checkpoint_and_the_log_behind_it() {
    let disk = SimDisk::new();
    let options = || PoolOptions::default().limit_bytes(64 << 20).layout_name("ledger").id(7);
    let pool = Pool::create(Arc::new(disk.clone()), options()).expect("made");
    let made = pool.info().expect("it has files");
    assert_eq!((made.version, made.id, made.layout_name.as_str()), (1, 7, "ledger"));
    assert_eq!((made.generation, made.log_bytes), (1, 0));

    let tree = pool.create_tree("t", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    tree.put(b"key", [7; 1000]).expect("put");
    let changed = pool.info().expect("it has files");
    assert_eq!(changed.generation, 1);
    assert!((1000..4000).contains(&changed.log_bytes), "{changed:?}");

    // One that only looks says the same, and so does one that opens it.
    let view = Pool::open_read_only(Arc::new(disk.clone()), options()).expect("opened");
    assert_eq!(view.info(), Some(changed.clone()));
    drop((view, tree, pool));
    let pool = Pool::open(Arc::new(disk), options()).expect("opened");
    assert_eq!(pool.info().expect("it has files").log_bytes, changed.log_bytes);

    pool.checkpoint().expect("written");
    let written = pool.info().expect("it has files");
    assert_eq!((written.generation, written.log_bytes), (2, 0));
    assert_eq!(written.checkpoint_bytes, pool.heap_bytes());
}
