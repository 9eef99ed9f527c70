//! Steps of a thread on a pool: each is one transaction, and follows from the seed.

use std::collections::BTreeMap;

use rand::RngExt as _;
use sapwood_ptree::{Pool, TreeKind};

/// The kinds of trees, of which each thread has one each.
pub(super) const KINDS: [TreeKind; 3] = [TreeKind::BTree, TreeKind::CritBit, TreeKind::RedBlack];
/// The tree in which each thread counts its steps.
pub(super) const STEPS: &str = "steps";

/// What all trees of a thread hold.
pub(super) type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// A change, which a step does to each tree of its thread.
#[derive(Debug)]
pub(super) enum Change {
    Put(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
}

/// The name of a thread's tree.
pub(super) fn tree_name(kind: TreeKind, thread: u64) -> String {
    format!("{kind:?}-{thread}")
}

/// The key of a thread in the tree of steps.
pub(super) fn step_key(thread: u64) -> [u8; 8] {
    thread.to_be_bytes()
}

/// The last step of a thread that a pool has, from 1; 0 without any.
pub(super) fn last_step(pool: &Pool, thread: u64) -> sapwood_ptree::Result<u64> {
    let found = pool.tree(STEPS)?.get(step_key(thread))?;
    Ok(found.and_then(|value| Some(u64::from_le_bytes(*value.first_chunk()?))).unwrap_or(0))
}

/// The changes of a step.
pub(super) fn changes(seed: u64, thread: u64, step: u64) -> Vec<Change> {
    let mixed = (seed << 8 | thread).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(step);
    let mut rng = sapwood_testkit::rng(mixed);
    let count = if step.is_multiple_of(97) { 400 } else { rng.random_range(1..10) };
    let changes = (0..count).map(|_| {
        let number = rng.random_range(0..500u32);
        // Of all lengths, some the beginnings of others.
        let mut key = number.to_be_bytes()[2..].to_vec();
        key.extend(std::iter::repeat_n(7, number as usize % 40));
        if rng.random_range(0..3) == 0 {
            return Change::Remove(key);
        }
        let len = if rng.random_range(0..200) == 0 { 6000 } else { rng.random_range(0..120) };
        Change::Put(key, vec![step as u8; len])
    });
    changes.collect()
}

/// Does a step to contents.
pub(super) fn apply(changes: Vec<Change>, contents: &mut Contents) {
    for change in changes {
        match change {
            Change::Put(key, value) => drop(contents.insert(key, value)),
            Change::Remove(key) => drop(contents.remove(&key)),
        }
    }
}
