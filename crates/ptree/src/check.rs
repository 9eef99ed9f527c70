//! Checks: whether all that must hold of a pool does.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::heap::layout::{ROOT, ROOT_CATALOG, ROOT_WORDS};
use crate::heap::object_words;
use crate::heap::walk::{Found, Walk};
use crate::object::{ObjectId, ObjectType, load};
use crate::pool::Pool;
use crate::tree::btree::BTree;
use crate::tree::crit_bit::CritBit;
use crate::tree::entry::{Entry, Probe, TreeLayout};
use crate::tree::red_black::RedBlack;
use crate::tree::structure::{Head, Structure, TreeKind};
use crate::tree::with_structure;
use crate::view::{Committed, View};

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// Trees, the catalog not counted.
    pub trees: u64,
    /// Their entries.
    pub entries: u64,
    /// Objects of the heap.
    pub objects: u64,
    /// What is wrong, one sentence each; empty for a sound pool.
    pub problems: Vec<String>,
}

impl Pool {
    /// Checks everything: descriptors of the heap; order, balance, links and counts of each tree;
    /// that each object belongs to one tree, and each that a tree names is there. Commits wait
    /// meanwhile.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the heap's descriptors are damaged so that no walk is possible. All
    /// else is in the report.
    pub fn check(&self) -> Result<CheckReport> {
        let _no_commit = self.inner.core();
        let view = self.inner.committed();
        let mut check = Check { view, report: CheckReport::default(), named: BTreeSet::new() };
        check.trees()?;
        check.objects()?;
        Ok(check.report)
    }

    /// All objects of the heap, in the order in which they lie there.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn objects(&self) -> Result<Vec<Found>> {
        let _no_commit = self.inner.core();
        Walk::new(&self.inner.space).collect()
    }
}

struct Check<'a> {
    view: Committed<'a>,
    report: CheckReport,
    /// Objects that trees name.
    named: BTreeSet<ObjectId>,
}

impl Check<'_> {
    fn problem(&mut self, what: String) {
        self.report.problems.push(what);
    }

    fn name(&mut self, id: ObjectId, what: &str) {
        if !self.named.insert(id) {
            self.problem(format!("the object at {id} belongs to {what} and to something else"));
        }
    }

    fn trees(&mut self) -> Result<()> {
        let catalog = load(&self.view.object(ROOT, ROOT_WORDS)?[ROOT_CATALOG]);
        if catalog == 0 {
            return Ok(());
        }
        let mut heads = Vec::new();
        let view = self.view;
        self.tree(ObjectId::new(catalog), "the catalog", &mut |entry| {
            let (mut name, mut head) = (Vec::new(), Vec::new());
            TreeLayout::Bytes.read_key(&view, entry, &mut name)?;
            TreeLayout::Bytes.read_value(&view, entry, &mut head)?;
            let head = head.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            heads.push((String::from_utf8_lossy(&name).into_owned(), ObjectId::new(head)));
            Ok(())
        });
        for (name, head) in heads {
            self.report.trees += 1;
            let entries = self.tree(head, &format!("tree {name:?}"), &mut |_| Ok(()));
            self.report.entries += entries;
        }
        Ok(())
    }

    /// Checks a tree; its entries.
    fn tree(&mut self, id: ObjectId, what: &str, tell: &mut dyn FnMut(Entry) -> Result<()>) -> u64 {
        self.name(id, what);
        match self.tree_of(id, what, tell) {
            Ok(entries) => entries,
            Err(error) => {
                self.problem(format!("{what}: {error}"));
                0
            }
        }
    }

    fn tree_of(
        &mut self,
        id: ObjectId,
        what: &str,
        tell: &mut dyn FnMut(Entry) -> Result<()>,
    ) -> Result<u64> {
        let view = self.view;
        let head = Head::read(&view, id)?;
        let mut nodes = Vec::new();
        let mut records = Vec::new();
        let mut entries = 0u64;
        let mut last: Option<Vec<u8>> = None;
        let mut problems = Vec::new();
        with_structure!(head.kind, S => S::check(
            &view,
            &head,
            &mut |node| {
                nodes.push(node);
                Ok(())
            },
            &mut |entry| {
                entries += 1;
                records.extend(head.layout.record_of(entry));
                let mut key = Vec::new();
                head.layout.read_key(&view, entry, &mut key)?;
                if Probe::new(&key).head != entry.a {
                    problems.push(format!("{what}: entry {entries} and its key do not agree"));
                }
                if last.as_ref() >= Some(&key) {
                    problems.push(format!("{what}: entry {entries} is not above the one before"));
                }
                last = Some(key);
                let mut value = Vec::new();
                head.layout.read_value(&view, entry, &mut value)?;
                tell(entry)
            },
        ))?;
        for problem in problems {
            self.problem(problem);
        }
        if entries != head.count {
            self.problem(format!("{what} has {entries} entries and says {}", head.count));
        }
        for id in nodes.into_iter().chain(records) {
            self.name(id, what);
        }
        Ok(entries)
    }

    fn objects(&mut self) -> Result<()> {
        let view = self.view;
        let mut there = BTreeSet::new();
        for found in Walk::new(view.0) {
            let found = found?;
            self.report.objects += 1;
            there.insert(found.id);
            let is_ours = found.object_type.0 >= ObjectType::FIRST_RESERVED;
            if is_ours && !self.named.contains(&found.id) {
                self.problem(format!("the object at {} belongs to no tree: it leaks", found.id));
            }
        }
        let missing: Vec<_> = self.named.difference(&there).copied().collect();
        for id in missing {
            let what = match object_words(view.0, id) {
                Ok(_) => "is named by a tree, and free",
                Err(Error::NoObject(_)) => "is named by a tree, and no object can begin there",
                Err(error) => return Err(error),
            };
            self.problem(format!("the object at {id} {what}"));
        }
        Ok(())
    }
}
