//! Trees and what they should hold.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use sapwood_ptree::{Pool, Transaction, Tree, TreeKind, TreeLayout};

pub(crate) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;
/// Trees by name.
pub(crate) type Model = BTreeMap<String, Entries>;

pub(crate) const KINDS: [TreeKind; 3] = [TreeKind::BTree, TreeKind::CritBit, TreeKind::RedBlack];
pub(crate) const LAYOUTS: [TreeLayout; 2] = [TreeLayout::Bytes, TreeLayout::Fixed];

/// A name that says kind and layout.
pub(crate) fn name(kind: TreeKind, layout: TreeLayout) -> String {
    format!("{kind:?}-{layout:?}")
}

pub(crate) fn create_all(pool: &Pool) -> Model {
    let mut model = Model::new();
    for kind in KINDS {
        for layout in LAYOUTS {
            pool.create_tree(&name(kind, layout), kind, layout).expect("made");
            model.insert(name(kind, layout), Entries::new());
        }
    }
    model
}

pub(crate) fn key(rng: &mut ChaCha8Rng, layout: TreeLayout) -> Vec<u8> {
    if layout == TreeLayout::Fixed {
        let few = rng.random_range(0..200u64);
        return if rng.random() { few } else { few << 56 | few }.to_be_bytes().to_vec();
    }
    let len = [0, 1, 2, 7, 8, 9, 16, 17, 40][rng.random_range(0..9)];
    let byte = [0, 1, b'a', 0xff][rng.random_range(0..4)];
    let mut key = vec![byte; len];
    if let Some(last) = key.last_mut() {
        *last = rng.random_range(0..4);
    }
    if len > 3 && rng.random() {
        let at = rng.random_range(0..len);
        key[at] = rng.random_range(0..3);
    }
    key
}

pub(crate) fn value(rng: &mut ChaCha8Rng, layout: TreeLayout) -> Vec<u8> {
    if layout == TreeLayout::Fixed {
        return rng.random::<u64>().to_le_bytes().to_vec();
    }
    let len = match rng.random_range(0..40) {
        0 => 40_000,
        1..4 => rng.random_range(0..2000),
        _ => rng.random_range(0..40),
    };
    vec![rng.random(); len]
}

/// One random change, to both; what they answer is the same.
pub(crate) fn change(
    rng: &mut ChaCha8Rng,
    tx: &Transaction<'_>,
    tree: &Tree,
    entries: &mut Entries,
) -> Result<(), sapwood_ptree::Error> {
    let layout = tree.layout();
    let key = key(rng, layout);
    match rng.random_range(0..12) {
        0..4 => {
            let value = value(rng, layout);
            let is_new = tx.put(tree, &key, &value)?;
            assert_eq!(is_new, entries.insert(key, value).is_none());
        }
        4 => {
            let value = value(rng, layout);
            let is_new = tx.put_if_absent(tree, &key, &value)?;
            assert_eq!(is_new, !entries.contains_key(&key));
            entries.entry(key).or_insert(value);
        }
        5 => {
            let value = value(rng, layout);
            let fill = rng.random();
            tx.put_if_absent_or_update(tree, &key, &value, |value| value.fill(fill))?;
            entries.entry(key).and_modify(|value| value.fill(fill)).or_insert(value);
        }
        6 => {
            let fill = rng.random();
            let done = tx.update(tree, &key, |value| value.fill(fill))?;
            assert_eq!(done.is_some(), entries.contains_key(&key));
            entries.entry(key).and_modify(|value| value.fill(fill));
        }
        7..11 => assert_eq!(tx.remove(tree, &key)?, entries.remove(&key)),
        _ => {
            assert_eq!(tx.get(tree, &key)?, entries.get(&key).cloned());
            assert_eq!(tx.len(tree)?, entries.len() as u64);
        }
    }
    Ok(())
}

/// What the pool holds.
pub(crate) fn contents(pool: &Pool) -> Model {
    let mut model = Model::new();
    for info in pool.trees().expect("the catalog is whole") {
        let tree = pool.tree(&info.name).expect("it is there");
        let entries: Entries = tree.iter().map(|entry| entry.expect("an entry")).collect();
        assert_eq!(info.entries, entries.len() as u64);
        model.insert(info.name, entries);
    }
    model
}

/// The pool is sound and holds what it should.
pub(crate) fn assert_holds(pool: &Pool, model: &Model) {
    let report = pool.check().expect("it can be checked");
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(&contents(pool), model);
}
