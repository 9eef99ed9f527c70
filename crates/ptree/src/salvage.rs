//! What can be read of a damaged pool, copied into another.
//!
//! A tree is walked from its head down, and where a node is none, the walk goes on beside it: what
//! lies below is lost, and nothing else. Records cannot be found without the nodes that name them: a
//! record has the rest of a key behind its first 8 bytes, and those stand in the node.
//!
//! Words have no checksums. A damaged word of a value, or of a key that still is one, is copied as it
//! is.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::heap::layout::{ROOT, ROOT_CATALOG, ROOT_WORDS};
use crate::heap::walk::{Found, Walk};
use crate::object::{ObjectId, ObjectType, load, type_of};
use crate::open::DamagedPool;
use crate::pool::Pool;
use crate::tree::Tree;
use crate::tree::btree::BTree;
use crate::tree::crit_bit::CritBit;
use crate::tree::entry::{Entry, TreeLayout};
use crate::tree::red_black::RedBlack;
use crate::tree::structure::{Head, Reached, Structure, TreeKind};
use crate::tree::with_structure;
use crate::view::{Committed, View};

/// Problems that are told of one tree; the rest is counted.
const PROBLEMS_MAX: usize = 8;
/// Entries and bytes of a transaction that copies.
const BATCH: (usize, usize) = (1024, 4 << 20);

/// What was copied of a damaged pool, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Salvage {
    /// Of each tree.
    pub trees: Vec<SalvagedTree>,
    /// What is wrong with the pool as a whole, one sentence each.
    pub problems: Vec<String>,
}

/// What was copied of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvagedTree {
    /// Its name, in both pools.
    pub name: String,
    /// Entries that the other pool has.
    pub copied: u64,
    /// Entries that the damaged tree said it had, if its head can be read.
    pub counted: Option<u64>,
    /// What could not be copied, one sentence each: the first of them.
    pub problems: Vec<String>,
    /// How many problems there are in all.
    pub problem_count: u64,
}

impl Salvage {
    /// Whether all was copied that the pool said it had.
    pub fn is_complete(&self) -> bool {
        let is_complete =
            |tree: &SalvagedTree| tree.problem_count == 0 && tree.counted == Some(tree.copied);
        self.problems.is_empty() && self.trees.iter().all(is_complete)
    }
}

impl SalvagedTree {
    fn new(name: String) -> SalvagedTree {
        SalvagedTree { name, copied: 0, counted: None, problems: Vec::new(), problem_count: 0 }
    }

    fn problem(&mut self, what: impl ToString) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(what.to_string());
        }
    }
}

impl Pool {
    /// Copies the trees of a pool that may be damaged into this one, as far as they can be read:
    /// under their names, with their kinds, layouts and notes. Trees that the catalog does not name
    /// any more are called `unnamed-` and a number.
    ///
    /// # Errors
    /// What this pool refuses.
    pub fn salvage(&self, damaged: DamagedPool) -> Result<Salvage> {
        let (space, problems) = damaged.finish();
        let mut salvage = Salvage { problems, ..Salvage::default() };
        let view = Committed(&space);
        let heads = heads(view, &mut salvage.problems);
        for Named { name, head, note } in heads {
            let mut of_tree = SalvagedTree::new(name);
            match Head::read(&view, head) {
                Ok(head) => {
                    of_tree.counted = Some(head.count);
                    match self.create_tree(&of_tree.name, head.kind, head.layout) {
                        Ok(tree) => {
                            self.transaction(|tx| match note.is_empty() {
                                true => Ok(()),
                                false => tx.set_note(&tree, &note),
                            })?;
                            copy(view, &head, &tree, &mut of_tree)?;
                        }
                        Err(error @ Error::TreeExists { .. }) => of_tree.problem(error),
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => of_tree.problem(error),
            }
            salvage.trees.push(of_tree);
        }
        Ok(salvage)
    }
}

/// A tree as it is to be called.
struct Named {
    name: String,
    head: ObjectId,
    note: Arc<[u8]>,
}

/// The heads of all trees: those of the catalog, then those that it does not have.
fn heads(view: Committed<'_>, problems: &mut Vec<String>) -> Vec<Named> {
    let mut named = Vec::new();
    let mut known = BTreeSet::new();
    let catalog = view.object(ROOT, ROOT_WORDS).map(|root| load(&root[ROOT_CATALOG]));
    let catalog = ObjectId::new(catalog.unwrap_or(0));
    if !catalog.is_null() {
        known.insert(catalog);
        match Head::read(&view, catalog) {
            Ok(head) => reach(view, &head, &mut |reached| match reached {
                Reached::Entry(entry) => match read(view, TreeLayout::Bytes, entry) {
                    Ok((name, value)) => {
                        let (head, note) = value.split_at(value.len().min(size_of::<u64>()));
                        let head = head.first_chunk().map_or(0, |head| u64::from_le_bytes(*head));
                        let head = ObjectId::new(head);
                        // One that is named twice is copied once.
                        if known.insert(head) {
                            let name = String::from_utf8_lossy(&name).into_owned();
                            named.push(Named { name, head, note: note.into() });
                        }
                    }
                    Err(error) => problems.push(format!("the name of a tree is lost: {error}")),
                },
                Reached::Nothing(error) => {
                    problems.push(format!("names of trees are lost: {error}"));
                }
            }),
            Err(error) => problems.push(format!("the names of all trees are lost: {error}")),
        }
    }
    named.sort_by(|one, other| one.name.cmp(&other.name));
    let mut objects = 0u64;
    for found in Walk::new(view.0) {
        match found {
            Ok(Found { id, object_type: ObjectType::TREE_HEAD, .. }) if known.insert(id) => {
                let name = format!("unnamed-{:x}", id.word());
                named.push(Named { name, head: id, note: Arc::default() });
            }
            Ok(found) => {
                objects += u64::from(found.object_type.0 < ObjectType::FIRST_RESERVED);
            }
            Err(error) => problems.push(format!("the heap cannot be walked to its end: {error}")),
        }
    }
    if objects > 0 {
        problems.push(format!("objects of no tree, which are not copied: {objects}"));
    }
    named
}

/// Tells what can be reached of a tree.
fn reach(view: Committed<'_>, head: &Head, tell: &mut dyn FnMut(Reached)) {
    with_structure!(head.kind, S => S::reach(&view, head, tell));
}

/// The key and the value of an entry.
fn read(view: Committed<'_>, layout: TreeLayout, entry: Entry) -> Result<(Vec<u8>, Vec<u8>)> {
    if let Some(record) = layout.record_of(entry) {
        let header = load(&view.object(record, 1)?[0]);
        if type_of(header) != ObjectType::RECORD {
            return Err(Error::corrupt(record.index(), "no record is there"));
        }
    }
    let (mut key, mut value) = (Vec::new(), Vec::new());
    layout.check_key_of(&view, entry, &mut key)?;
    layout.read_value(&view, entry, &mut value)?;
    Ok((key, value))
}

/// Copies a tree, some entries a transaction.
fn copy(view: Committed<'_>, head: &Head, tree: &Tree, told: &mut SalvagedTree) -> Result<()> {
    let mut entries = Vec::new();
    reach(view, head, &mut |reached| match reached {
        Reached::Entry(entry) => entries.push(entry),
        Reached::Nothing(error) => told.problem(error),
    });
    let mut entries = entries.into_iter().peekable();
    while entries.peek().is_some() {
        let tx = tree.pool().begin()?;
        let (mut count, mut bytes) = (0, 0);
        while count < BATCH.0
            && bytes < BATCH.1
            && let Some(entry) = entries.next()
        {
            match read(view, head.layout, entry) {
                Ok((key, value)) => {
                    count += 1;
                    bytes += key.len() + value.len();
                    match tx.put_if_absent(tree, &key, &value)? {
                        true => told.copied += 1,
                        false => told.problem("a key came twice"),
                    }
                }
                Err(error) => told.problem(error),
            }
        }
        tx.commit()?;
    }
    Ok(())
}
