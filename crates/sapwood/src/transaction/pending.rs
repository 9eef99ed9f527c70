//! What a transaction has read and will change in ordered tables and hash tables, and how a commit makes
//! the changes: all of them, or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use sapwood_occ::{Claims, Reads, Stripe};
use sapwood_ptree::{Joint, Unsettled};
use sapwood_wal::LogRoom;

use super::buffered::Buffered;
use crate::db_log::DbLog;
use crate::home::Home;
use crate::tree_table::TreeTransaction;
use crate::{Error, LogError, Result};

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

/// Changes that a commit has applied in memory.
pub(super) struct Applied<'w> {
    home: &'w Home,
    /// The place of the first of them in the record of the log.
    mark: usize,
    /// The keys, and the values that they had.
    before: Vec<(&'w Buffered, &'w [u8], Option<Vec<u8>>)>,
    /// Kept for all of them.
    _room: Option<LogRoom<'w>>,
}

impl<'w> Applied<'w> {
    /// Applies changes: all of them, or none. The caller holds the stripes of the keys. `may_fail` says that something behind
    /// them may, and that they are undone then.
    pub(super) fn new(
        home: &'w Home,
        changes: impl Iterator<Item = Change<'w>> + Clone,
        may_fail: bool,
    ) -> Result<Applied<'w>> {
        let mark = home.log().map_or(0, |log| log.wal().mark());
        let mut applied = Applied { home, mark, before: Vec::new(), _room: None };
        let mut each = changes.clone();
        let Some((table, key, value)) = each.next() else { return Ok(applied) };
        if each.next().is_none() && !may_fail {
            return table.set(key, value).map(|()| applied);
        }
        if let Some(log) = home.log() {
            // A full disk refuses all of them, before any is seen.
            let lens =
                changes.clone().map(|(_, key, value)| key.len() + value.map_or(0, <[u8]>::len));
            let room = log.wal().room(lens.sum(), changes.clone().count());
            applied._room = Some(room.map_err(|cause| log.named(cause))?);
        }
        for (table, key, value) in changes {
            match table.exchange(key, value) {
                Ok(before) => applied.before.push((table, key, before)),
                Err(refused) => return Err(applied.undo(refused)),
            }
            home.versions().step();
        }
        Ok(applied)
    }

    /// Gives the keys the values that they had, the last one first, because of an error; answers the error.
    pub(super) fn undo(self, refused: Error) -> Error {
        let Applied { home, mark, before, .. } = self;
        let undone = match home.log() {
            Some(log) => log.wal().take_back(mark, || restore(home, before)),
            None => restore(home, before),
        };
        let Err((table, cause)) = undone else { return refused };
        if let Some(log) = home.log() {
            // It must not have half of them.
            let why = format!("a transaction that was refused stays in memory by half: {cause}");
            log.wal().refuse(LogError::Contents { why });
        }
        Error::HalfMade { table, cause: Box::new(cause) }
    }
}

/// Gives keys the values that they had, the last one first.
fn restore(
    home: &Home,
    before: Vec<(&Buffered, &[u8], Option<Vec<u8>>)>,
) -> Result<(), (Arc<str>, Error)> {
    for (table, key, before) in before.into_iter().rev() {
        home.versions().step();
        table.set(key, before.as_deref()).map_err(|cause| (Arc::clone(table.name()), cause))?;
    }
    Ok(())
}

/// The log, if changes of this thread begin a record of their own now: it has them once [`seal`] is called.
pub(super) fn own_record(home: &Home) -> Option<&DbLog> {
    home.log().filter(|log| !log.wal().is_together())
}

/// Appends the record of applied changes, before their stripes are free: later changes of these keys come behind.
pub(super) fn seal(own: Option<&DbLog>) {
    if let Some(log) = own {
        log.wal().append_group();
    }
}

/// A commit that nothing but an engine can refuse any more: its stripes are claimed, and its reads are still so.
struct Prepared<'c, 'db> {
    trees: Option<TreeTransaction<'db>>,
    /// Makes the commit of the trees part of the record.
    joint: Option<Joint<'db>>,
    _claims: Claims<'c>,
}

/// The reason for which a commit is not prepared.
enum Unprepared {
    Conflict,
    /// Commits of another thread to tree tables go together.
    TreesBusy,
}

impl<'c, 'db: 'c> Prepared<'c, 'db> {
    fn new(
        home: &'db Home,
        reads: Option<Reads<'db>>,
        stripes: &'c mut Vec<Stripe>,
        trees: Option<TreeTransaction<'db>>,
    ) -> Result<Prepared<'c, 'db>, Unprepared> {
        let joint = match (&trees, home.log()) {
            (Some(_), Some(_)) => Some(home.join_trees().ok_or(Unprepared::TreesBusy)?),
            _ => None,
        };
        let reads = reads.map_or_else(|| Reads::begin(home.versions()), Ok);
        let claims = reads.and_then(|reads| reads.claim(stripes));
        let claims = claims.map_err(|_| Unprepared::Conflict)?;
        Ok(Prepared { trees, joint, _claims: claims })
    }

    /// Applies the changes, and after them those of tree tables, and seals the record.
    fn apply(
        self,
        home: &'db Home,
        writes: &Writes,
        own: Option<&DbLog>,
    ) -> Result<Option<Unsettled<'db>>> {
        let Prepared { trees, joint, _claims } = self;
        let applied = Applied::new(home, writes.each(), trees.is_some());
        let done = applied.and_then(|applied| {
            let committed = match (trees, joint) {
                (Some(tx), Some(joint)) => tx.commit_joined(joint).map(Some),
                (Some(tx), None) => tx.commit().map(Some),
                (None, _) => Ok(None),
            };
            committed.map_err(|refused| applied.undo(refused))
        });
        seal(own);
        done
    }
}

/// Commits: prepares, applies the changes of all tables, and seals them as one record of the log.
pub(super) fn commit<'db>(
    home: &'db Home,
    reads: Option<Reads<'db>>,
    writes: &Writes,
    trees: Option<TreeTransaction<'db>>,
) -> Result<Option<Unsettled<'db>>> {
    writes.expect_changes()?;
    let mut stripes = writes.stripes();
    home.versions().let_pass(&stripes);
    let own = own_record(home);
    // Around the stripes: what goes together may wait for a stripe, and a checkpoint for what goes together. Changes of
    // another thread that go together may wait for a tree of this transaction.
    let group = home.log().map(|log| log.wal().group(trees.is_some()));
    let done = match Prepared::new(home, reads, &mut stripes, trees) {
        Ok(prepared) => prepared.apply(home, writes, own)?,
        Err(Unprepared::Conflict) => return Err(Error::Conflict),
        Err(Unprepared::TreesBusy) => {
            // With nothing in hand, for which that thread may wait.
            drop(group);
            home.pass_trees_together();
            return Err(Error::Conflict);
        }
    };
    drop(group);
    // The record is appended at the end, and nothing in it could tell that this failed.
    home.check()?;
    Ok(done)
}
