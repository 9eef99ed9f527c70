//! Changes of many entries of one table, each by its own value, which take effect together: those
//! of a statement.
//!
//! Entries are looked at while others may change them, and what is to become of each is kept. The
//! commit takes the stripes of those that change, and looks again at the few that others have
//! changed since; so a stripe is held for as long as it takes to make the changes. A tree is locked
//! as a whole from the beginning.

use std::borrow::Cow;

use sapwood_occ::{Conflict, Look, Stripe};

use super::buffered::Buffered;
use super::pending::{Applied, own_record, seal};
use crate::home::Home;
use crate::tree_table::TreeTransaction;
use crate::{AnyTable, Compute, Computed, Error, Result, Retry, TableRef, TreeTable};

/// The fate of an entry.
#[derive(Debug)]
pub(crate) enum Decision<'v> {
    Keep,
    Put(Cow<'v, [u8]>),
    /// Only of one that is there.
    Remove,
}

impl Decision<'_> {
    fn into_compute(self) -> Compute {
        match self {
            Decision::Keep => Compute::Keep,
            Decision::Put(value) => Compute::Replace(value.into_owned()),
            Decision::Remove => Compute::Remove,
        }
    }
}

/// Says what becomes of the entry of a key, by the number of the key and the value that is there.
pub(crate) type Decide<'d, 'v, E> =
    dyn FnMut(usize, Option<&[u8]>) -> std::result::Result<Decision<'v>, E> + 'd;

/// Runs what it is given, with what must be held while entries change.
pub(crate) type Within<'w> = dyn Fn(&mut dyn FnMut()) + Sync + 'w;

/// Keys of a table, and what becomes of each.
struct Changes<'c, 'k, 'v, E> {
    table: &'c AnyTable,
    keys: &'c [&'k [u8]],
    decide: &'c mut Decide<'c, 'v, E>,
}

impl Home {
    /// Changes entries of a table as `decide` says: all of them, or none where it refuses one. It
    /// may be asked again of an entry that another thread has changed meanwhile, and the last
    /// answer counts. Answers how many are changed.
    ///
    /// # Errors
    /// Errors of `decide`; as of [`Batch::commit`](crate::Batch::commit).
    pub(crate) fn change_all<'v, E: From<Error>>(
        &self,
        table: &AnyTable,
        keys: &[&[u8]],
        within: &Within<'_>,
        decide: &mut Decide<'_, 'v, E>,
    ) -> Result<u64, E> {
        // Out of the way of the lifetime of `decide`.
        let mut ask = |at: usize, there: Option<&[u8]>| decide(at, there);
        let mut changes = Changes { table, keys, decide: &mut ask };
        match (keys, table.resolve()) {
            ([], _) => Ok(0),
            // It is all or nothing by itself.
            ([_], _) => changes.change_one(within),
            (_, TableRef::Tree(tree)) => changes.change_tree(self, tree, within),
            (_, TableRef::Ordered(it)) => {
                changes.change_buffered(self, &Buffered::Ordered(it.clone()), within)
            }
            (_, TableRef::Hash(it)) => {
                changes.change_buffered(self, &Buffered::Hash(it.clone()), within)
            }
        }
    }
}

impl<'v, E: From<Error>> Changes<'_, '_, 'v, E> {
    fn change_one(&mut self, within: &Within<'_>) -> Result<u64, E> {
        let key = self.keys[0];
        let mut done = Ok(Computed::Absent);
        let mut refused = None;
        within(&mut || {
            done = self.table.compute(key, |there| {
                refused = None;
                match (self.decide)(0, there) {
                    Ok(decision) => decision.into_compute(),
                    Err(error) => {
                        refused = Some(error);
                        Compute::Keep
                    }
                }
            });
        });
        match refused {
            Some(error) => Err(error),
            None => Ok(u64::from(is_change(&done?))),
        }
    }

    fn change_tree(
        &mut self,
        home: &Home,
        tree: &TreeTable,
        within: &Within<'_>,
    ) -> Result<u64, E> {
        let mut done = None;
        within(&mut || {
            let mut change = || -> Result<_, E> {
                home.check()?;
                let tx = TreeTransaction::begin_on(home.pool()?, &[tree])?;
                let mut count = 0;
                for (at, key) in self.keys.iter().enumerate() {
                    let mut refused = None;
                    let computed = tx.compute(tree, key, |there| {
                        (self.decide)(at, there).map_or_else(
                            |error| {
                                refused = Some(error);
                                Compute::Keep
                            },
                            Decision::into_compute,
                        )
                    })?;
                    if let Some(error) = refused {
                        return Err(error);
                    }
                    count += u64::from(is_change(&computed));
                }
                Ok((count, tx.commit()?))
            };
            done = Some(change());
        });
        let (count, unsettled) = done.expect("it was run")?;
        home.settle(Some(unsettled))?;
        Ok(count)
    }

    fn change_buffered(
        &mut self,
        home: &Home,
        table: &Buffered,
        within: &Within<'_>,
    ) -> Result<u64, E> {
        // Whatever it meets is over soon.
        let patience = Retry::times(1_000);
        let mut attempt = 0;
        let count = loop {
            match self.try_change_buffered(home, table, within) {
                Ok(done) => break done?,
                Err(_) if patience.pause(attempt) => attempt += 1,
                Err(_) => return Err(Error::Conflict.into()),
            }
        };
        if count > 0 {
            // The record is appended at the end, and nothing in it could tell that this failed.
            home.check()?;
            home.settle(None)?;
        }
        Ok(count)
    }

    fn try_change_buffered(
        &mut self,
        home: &Home,
        table: &Buffered,
        within: &Within<'_>,
    ) -> Result<Result<u64, E>, Conflict> {
        if let Err(error) = table.kept().expect_changes() {
            return Ok(Err(error.into()));
        }
        let stripe = |key: &[u8]| table.kept().keys.stripe(key);
        let look = Look::begin(home.versions())?;
        let all = 0..self.keys.len();
        let decided = all.map(|at| self.decided(table, at)).collect::<Result<Vec<_>, E>>();
        let mut decided = match decided {
            Ok(decided) => decided,
            Err(error) => return Ok(Err(error)),
        };
        let kept = |decision: &Decision<'_>| matches!(decision, Decision::Keep);
        let changed = self.keys.iter().zip(&decided).filter(|(_, decision)| !kept(decision));
        let mut stripes: Vec<Stripe> = changed.map(|(key, _)| stripe(key)).collect();
        if stripes.is_empty() {
            return Ok(Ok(0));
        }
        let own = own_record(home);
        let apply = |has_changed: &dyn Fn(Stripe) -> bool| -> Result<u64, E> {
            for (at, decision) in decided.iter_mut().enumerate() {
                if !kept(decision) && has_changed(stripe(self.keys[at])) {
                    *decision = self.decided(table, at)?;
                    home.versions().step();
                }
            }
            let values = decided.iter().map(|decision| match decision {
                Decision::Keep => None,
                Decision::Put(value) => Some(Some(&**value)),
                Decision::Remove => Some(None),
            });
            let changes = self.keys.iter().zip(values);
            let changes = changes.filter_map(|(key, value)| Some((table, *key, value?)));
            let count = changes.clone().count();
            let applied = Applied::new(home, changes, false).map(drop);
            seal(own);
            applied?;
            Ok(count as u64)
        };
        let mut commit = Some(|| look.commit(&mut stripes, apply));
        let mut done = Err(Conflict::Busy);
        within(&mut || {
            // Around the stripes: what goes together may wait for a stripe, and a checkpoint for
            // what goes together.
            let commit = commit.take().expect("it is run once");
            done = match home.log() {
                Some(log) => log.wal().together(commit),
                None => commit(),
            };
        });
        done
    }

    /// Decides on the entry of a key as it is now. A value that the table cannot have is refused.
    fn decided(&mut self, table: &Buffered, at: usize) -> Result<Decision<'v>, E> {
        let (key, decide) = (self.keys[at], &mut *self.decide);
        let decision = match self.table.get_with(key, |value| decide(at, Some(value)))? {
            Some(decision) => decision?,
            None => decide(at, None)?,
        };
        if let Decision::Put(value) = &decision {
            table.expect_fits(key, Some(value))?;
        }
        Ok(decision)
    }
}

fn is_change(computed: &Computed) -> bool {
    matches!(computed, Computed::Inserted | Computed::Replaced | Computed::Removed)
}
