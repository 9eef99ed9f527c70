//! What a transaction has read and will change in ordered tables and hash tables, and how a commit makes
//! the changes: all of them, or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use sapwood_occ::{Conflict, Reads, Stripe};
use sapwood_ptree::Unsettled;

use super::buffered::Buffered;
use crate::db_log::DbLog;
use crate::tree_table::TreeTransaction;
use crate::{Db, Error, LogError, Result};

/// The values that keys will have; none for one that is removed.
pub(super) type Values = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The changes of a table.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) table: Buffered,
    pub(super) values: Values,
}

/// The changes of all tables.
#[derive(Debug, Default)]
pub(super) struct Writes(pub(super) Vec<Changed>);

impl Writes {
    /// Those of a table, if there are any.
    pub(super) fn of(&self, table: &Buffered) -> Option<&Values> {
        self.0.iter().find(|changed| changed.table.is_same(table)).map(|changed| &changed.values)
    }

    pub(super) fn set(&mut self, table: &Buffered, key: &[u8], value: Option<Vec<u8>>) {
        let at = self.0.iter().position(|changed| changed.table.is_same(table));
        let at = at.unwrap_or_else(|| {
            self.0.push(Changed { table: table.clone(), values: Values::new() });
            self.0.len() - 1
        });
        self.0[at].values.insert(key.to_vec(), value);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses where a table takes no changes.
    pub(super) fn expect_changes(&self) -> Result<()> {
        self.0.iter().try_for_each(|changed| {
            changed.table.kept().expect_changes()?;
            changed.table.kept().expect_there()
        })
    }

    pub(super) fn stripes(&self) -> Vec<Stripe> {
        let keys = self.0.iter().flat_map(|changed| {
            let versions = &changed.table.kept().keys;
            changed.values.keys().map(|key| versions.stripe(key))
        });
        keys.collect()
    }

    fn each(&self) -> impl Iterator<Item = Change<'_>> + Clone {
        self.0.iter().flat_map(|Changed { table, values }| {
            values.iter().map(move |(key, value)| (table, &key[..], value.as_deref()))
        })
    }
}

/// A key of a table, and the value that it gets, or none if it is removed.
pub(super) type Change<'w> = (&'w Buffered, &'w [u8], Option<&'w [u8]>);

/// Makes all changes, then runs `last`; takes them back where one is refused, or `last` is. The
/// caller has the stripes of the keys. Where it gives the log, for changes that no others go together with, they
/// are appended before it lets the stripes go.
pub(super) fn make<'w, R>(
    db: &Db,
    own: Option<&DbLog>,
    changes: impl Iterator<Item = Change<'w>> + Clone,
    last: Option<Last<'_, R>>,
) -> Result<Option<R>> {
    let made = make_with_room(db, changes, last);
    if let Some(log) = own {
        log.wal().append_group();
    }
    made
}

fn make_with_room<'w, R>(
    db: &Db,
    changes: impl Iterator<Item = Change<'w>> + Clone,
    last: Option<Last<'_, R>>,
) -> Result<Option<R>> {
    let mut each = changes.clone();
    let Some((table, key, value)) = each.next() else { return last.map(|last| last()).transpose() };
    if each.next().is_none() && last.is_none() {
        return table.set(key, value).map(|()| None);
    }
    let Some(log) = db.log() else { return make_all(db, changes, last) };
    // A full disk refuses all of them, before any is seen.
    let lens = changes.clone().map(|(_, key, value)| key.len() + value.map_or(0, <[u8]>::len));
    let (bytes, count) = (lens.sum(), changes.clone().count());
    let made = log.wal().with_room(bytes, count, || make_all(db, changes, last));
    made.map_err(|cause| log.named(cause))?
}

fn make_all<'w, R>(
    db: &Db,
    changes: impl Iterator<Item = Change<'w>>,
    last: Option<Last<'_, R>>,
) -> Result<Option<R>> {
    let mark = db.log().map_or(0, |log| log.wal().mark());
    let mut made: Vec<(&Buffered, &[u8], Option<Vec<u8>>)> = Vec::new();
    let make_all = || {
        for (table, key, value) in changes {
            made.push((table, key, table.exchange(key, value)?));
            db.versions().step();
        }
        last.map(|last| last()).transpose()
    };
    let done = make_all();
    let take_back = || match db.log() {
        Some(log) => log.wal().take_back(mark, || take_back(db, made)),
        None => take_back(db, made),
    };
    done.map_err(|refused| match take_back() {
        Ok(()) => refused,
        Err((table, cause)) => {
            if let Some(log) = db.log() {
                // It must not have half of them.
                let why =
                    format!("a transaction that was refused stays in memory by half: {cause}");
                log.wal().refuse(LogError::Contents { why });
            }
            Error::HalfMade { table, cause: Box::new(cause) }
        }
    })
}

/// What comes after all changes of a commit.
pub(super) type Last<'l, R> = Box<dyn FnOnce() -> Result<R> + 'l>;

/// Gives keys the values that they had, the last one first.
fn take_back(
    db: &Db,
    made: Vec<(&Buffered, &[u8], Option<Vec<u8>>)>,
) -> Result<(), (Arc<str>, Error)> {
    for (table, key, before) in made.into_iter().rev() {
        db.versions().step();
        table.set(key, before.as_deref()).map_err(|cause| (Arc::clone(table.name()), cause))?;
    }
    Ok(())
}

/// Commits: makes the changes, and after them those of tree tables, as one record of the log, if what was read is
/// still so.
pub(super) fn commit<'db>(
    db: &'db Db,
    reads: Option<Reads<'_>>,
    writes: &Writes,
    trees: Option<TreeTransaction<'db>>,
) -> Result<Option<Unsettled<'db>>> {
    writes.expect_changes()?;
    let (versions, log) = (db.versions(), db.log());
    let mut stripes = writes.stripes();
    versions.let_pass(&stripes);
    let holds_trees = trees.is_some();
    let mut is_in_way = false;
    let own = log.filter(|log| !log.wal().is_together());
    let all = || -> Result<Result<Option<Unsettled<'db>>>, Conflict> {
        let joint = match (&trees, log) {
            (Some(_), Some(_)) => {
                Some(db.join_trees().ok_or(Conflict::Busy).inspect_err(|_| is_in_way = true)?)
            }
            _ => None,
        };
        let reads = reads.map_or_else(|| Reads::begin(versions), Ok)?;
        let last = trees.map(|tx| -> Last<'_, Unsettled<'db>> {
            Box::new(move || match joint {
                Some(joint) => tx.commit_joined(joint),
                None => tx.commit(),
            })
        });
        reads.commit(&mut stripes, || make(db, own, writes.each(), last))
    };
    // Around the stripes: what goes together may wait for a stripe, and a checkpoint for what goes together.
    let done = match log {
        // Changes of another thread that go together may wait for a tree of this transaction.
        Some(log) if holds_trees => log.wal().together_holding(all),
        Some(log) => log.wal().together(all),
        None => all(),
    };
    if is_in_way {
        // With nothing in hand, for which that thread may wait.
        db.pass_trees_together();
    }
    let done = done.map_err(|_| Error::Conflict)??;
    // The record is appended at the end, and nothing in it could tell that this failed.
    log.map_or(Ok(()), DbLog::check)?;
    Ok(done)
}
