//! Changes to trees inside a transaction.

use std::ops::ControlFlow;
use std::sync::Arc;

use sapwood_engine::{Compute, Computed, Direction, KeyRange, Upsert};

use super::batch::Batch;
use super::entry::{Entry, Probe};
use super::structure::{Head, Inserted, Place, Structure, TreeKind};
use super::value::ValueMut;
use super::{
    BTree, CritBit, RedBlack, Tree, ValueBuffer, expect_pool, find, head_in, value_of,
    with_structure,
};
use crate::error::{Error, Result};
use crate::state::TreeState;
use crate::transaction::Transaction;

impl Transaction<'_> {
    /// Takes a tree, which the transaction then has until it ends.
    pub(crate) fn hold(&self, state: &Arc<TreeState>) -> Result<()> {
        let mut held = self.lane().held.borrow_mut();
        if held.iter().any(|held| Arc::ptr_eq(held, state)) {
            return Ok(());
        }
        // Trees that are waited for come in one order, so that no two transactions wait for each
        // other; another order is tried, and not waited for.
        let is_next = held.iter().all(|held| held.head < state.head);
        if is_next {
            state.hold()?;
        } else if !state.try_hold()? {
            return Err(Error::Conflict { tree: state.name.clone() });
        }
        held.push(Arc::clone(state));
        Ok(())
    }

    /// The head of a tree that is to be changed. A closure that changes a value changes nothing else:
    /// the place of its entry has to stay good.
    fn head_for_change(&self, tree: &Tree) -> Result<Head> {
        match self.is_in_closure() {
            true => Err(Error::Reentrant { tree: tree.name().to_owned() }),
            false => self.head_for_read(tree),
        }
    }

    /// The head of a tree that is to be read: the transaction takes it, so that what it reads stays
    /// so.
    fn head_for_read(&self, tree: &Tree) -> Result<Head> {
        self.check()?;
        expect_pool(self, tree)?;
        self.hold(&tree.state)?;
        tree.state.check()?;
        head_in(self, tree.state.head)
    }

    /// Gives a key a value; whether the key is new.
    ///
    /// # Errors
    /// Those of the lengths, [`Error::Conflict`], [`Error::OutOfMemory`], [`Error::Aborted`],
    /// [`Error::TreeRemoved`], [`Error::OtherPool`], [`Error::Corrupt`], as of all changes.
    pub fn put(&self, tree: &Tree, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let (key, value) = (Probe::new(key.as_ref()), value.as_ref());
        let mut head = self.head_for_change(tree)?;
        match self.insert(&mut head, key, value)? {
            Inserted::New => Ok(true),
            Inserted::There(place, entry) => {
                self.replace(&head, place, key, entry, value)?;
                Ok(false)
            }
        }
    }

    /// Gives a key a value if it has none; whether it had none.
    ///
    /// # Errors
    /// As of [`Transaction::put`].
    pub fn put_if_absent(
        &self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool> {
        let mut head = self.head_for_change(tree)?;
        let inserted = self.insert(&mut head, Probe::new(key.as_ref()), value.as_ref())?;
        Ok(inserted == Inserted::New)
    }

    /// Puts a value, or changes the one that is there, in one search.
    ///
    /// # Errors
    /// As of [`Transaction::put`].
    pub fn put_if_absent_or_update<R>(
        &self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        update: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        let (key, value) = (Probe::new(key.as_ref()), value.as_ref());
        let mut head = self.head_for_change(tree)?;
        match self.insert(&mut head, key, value)? {
            Inserted::New => Ok(Upsert::Inserted),
            Inserted::There(place, entry) => {
                self.update_at(&head, place, key, entry, update).map(Upsert::Updated)
            }
        }
    }

    /// Changes a value; `None` without the key. Words that stay the same are not logged.
    ///
    /// # Errors
    /// As of [`Transaction::put`].
    pub fn update<R>(
        &self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        update: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let key = Probe::new(key.as_ref());
        let head = self.head_for_change(tree)?;
        head.layout.check_key(key.key)?;
        let place = with_structure!(head.kind, S => S::place(self, &head, key))?;
        let Some((place, entry)) = place else { return Ok(None) };
        self.update_at(&head, place, key, entry, update).map(Some)
    }

    /// Lets `decide` keep, replace or remove what is at a key, seeing it first.
    ///
    /// # Errors
    /// As of [`Transaction::put`].
    pub fn compute(
        &self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        decide: impl FnOnce(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        let key = Probe::new(key.as_ref());
        let head = self.head_for_change(tree)?;
        head.layout.check_key(key.key)?;
        let Some((place, entry)) = with_structure!(head.kind, S => S::place(self, &head, key))?
        else {
            return match self.in_closure(|| decide(None)) {
                Compute::Keep | Compute::Remove => Ok(Computed::Absent),
                Compute::Replace(value) => {
                    self.put(tree, key.key, value).map(|_| Computed::Inserted)
                }
            };
        };
        let mut value = ValueBuffer::new();
        head.layout.read_value(self, entry, &mut value)?;
        match self.in_closure(|| decide(Some(&value))) {
            Compute::Keep => Ok(Computed::Kept),
            Compute::Replace(value) => {
                self.replace(&head, place, key, entry, &value)?;
                Ok(Computed::Replaced)
            }
            Compute::Remove => self.remove(tree, key.key).map(|_| Computed::Removed),
        }
    }

    /// Adds to a counter; the sum. A counter is a value of 8 bytes, an `i64` with its least
    /// significant byte first; a key that is not there counts as 0, and is there afterwards.
    ///
    /// # Errors
    /// [`Error::NotACounter`] for a value that has not 8 bytes, [`Error::Overflow`]; as of
    /// [`Transaction::put`].
    pub fn add(&self, tree: &Tree, key: impl AsRef<[u8]>, delta: i64) -> Result<i64> {
        let initial = delta.to_le_bytes();
        match self.put_if_absent_or_update(tree, key, initial, |value| add_to(value, delta))? {
            Upsert::Inserted => Ok(delta),
            Upsert::Updated(sum) => sum,
        }
    }

    /// Removes a key; the value that it had.
    ///
    /// # Errors
    /// As of [`Transaction::put`].
    pub fn remove(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = Probe::new(key.as_ref());
        let mut head = self.head_for_change(tree)?;
        head.layout.check_key(key.key)?;
        let removed = with_structure!(head.kind, S => S::remove(self, &mut head, key))?;
        let Some(entry) = removed else { return Ok(None) };
        let mut value = Vec::new();
        head.layout.read_value(self, entry, &mut value)?;
        head.layout.free(self, entry)?;
        Ok(Some(value))
    }

    /// The value of a key, with the changes of this transaction.
    ///
    /// # Errors
    /// As of [`Transaction::put`].
    pub fn get(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        let head = self.head_for_read(tree)?;
        head.layout.check_key(key)?;
        Ok(value_of(self, &head, key)?.map(|value| value.to_vec()))
    }

    /// Whether a key is there.
    ///
    /// # Errors
    /// As of [`Transaction::put`].
    pub fn contains_key(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        let head = self.head_for_read(tree)?;
        head.layout.check_key(key)?;
        Ok(find(self, &head, Probe::new(key))?.is_some())
    }

    /// The number of entries.
    ///
    /// # Errors
    /// As of [`Transaction::put`].
    pub fn len(&self, tree: &Tree) -> Result<u64> {
        Ok(self.head_for_read(tree)?.count)
    }

    /// Visits the entries of a range, until `visit` breaks.
    ///
    /// # Errors
    /// As of [`Transaction::put`].
    pub fn scan<B>(
        &self,
        tree: &Tree,
        range: impl KeyRange,
        direction: Direction,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let mut batch = Batch::new(tree.layout(), range.bounds(), direction);
        while !batch.is_done() {
            let head = self.head_for_read(tree)?;
            let next = batch.read_next(self, &head)?;
            batch.take(next);
            for (key, value) in batch.iter() {
                if let ControlFlow::Break(result) = visit(key, value) {
                    return Ok(ControlFlow::Break(result));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Removes all entries.
    ///
    /// # Errors
    /// As of [`Transaction::put`].
    pub fn clear(&self, tree: &Tree) -> Result<()> {
        let mut head = self.head_for_change(tree)?;
        self.free_entries(&head)?;
        head.set_root(self, 0)?;
        head.set_count(self, 0)?;
        head.set_height(self, 0)
    }

    /// Frees all nodes and records of a tree.
    pub(crate) fn free_entries(&self, head: &Head) -> Result<()> {
        let mut objects = Vec::new();
        let mut records = Vec::new();
        with_structure!(head.kind, S => S::check(
            self,
            head,
            &mut |node| {
                objects.push(node);
                Ok(())
            },
            &mut |entry| {
                records.extend(head.layout.record_of(entry));
                Ok(())
            },
        ))?;
        for id in objects.into_iter().chain(records) {
            self.free(id)?;
        }
        Ok(())
    }

    /// Fills an empty tree from entries in strictly ascending order of keys; how many.
    ///
    /// # Errors
    /// As of [`Transaction::put`], and [`Error::Options`] where the tree is not empty or the keys
    /// do not ascend: the transaction is aborted then.
    pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        self.nested(|tx| tx.load_entries(tree, &mut entries.into_iter()))
    }

    fn load_entries<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        entries: &mut dyn Iterator<Item = (K, V)>,
    ) -> Result<u64> {
        let mut head = self.head_for_change(tree)?;
        if head.count > 0 {
            return Err(Error::Options(format!("tree {:?} is not empty", tree.name())));
        }
        let mut count = 0;
        let mut last: Option<Vec<u8>> = None;
        let layout = head.layout;
        let mut made = entries.map(|(key, value)| {
            let key = key.as_ref();
            if last.as_deref().is_some_and(|last| last >= key) {
                return Err(Error::Options(format!("key {count} is not above the one before")));
            }
            match &mut last {
                Some(last) => {
                    last.clear();
                    last.extend_from_slice(key);
                }
                None => last = Some(key.to_vec()),
            }
            count += 1;
            layout.make(self, Probe::new(key), value.as_ref())
        });
        with_structure!(head.kind, S => S::build(self, &mut head, &mut made))?;
        Ok(head.count)
    }

    fn insert(&self, head: &mut Head, key: Probe<'_>, value: &[u8]) -> Result<Inserted> {
        let layout = head.layout;
        layout.check_key(key.key)?;
        layout.check_value(value)?;
        let make = || layout.make(self, key, value);
        with_structure!(head.kind, S => S::insert(self, head, key, make))
    }

    fn replace(
        &self,
        head: &Head,
        place: Place,
        key: Probe<'_>,
        entry: Entry,
        value: &[u8],
    ) -> Result<()> {
        let next = head.layout.replace(self, key, entry, value)?;
        if next != entry {
            with_structure!(head.kind, S => S::set(self, head, place, next))?;
        }
        Ok(())
    }

    fn update_at<R>(
        &self,
        head: &Head,
        place: Place,
        key: Probe<'_>,
        entry: Entry,
        update: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<R> {
        let mut value = ValueBuffer::new();
        head.layout.read_value(self, entry, &mut value)?;
        let answer = self.in_closure(|| update(&mut ValueMut::new(&mut value, head.layout)));
        self.replace(head, place, key, entry, &value)?;
        Ok(answer)
    }
}

/// Adds to the counter that a value is, or leaves it as it is.
fn add_to(value: &mut ValueMut<'_>, delta: i64) -> Result<i64> {
    let len = value.len();
    let Ok(bytes) = <&mut [u8; 8]>::try_from(&mut **value) else {
        return Err(Error::NotACounter { len });
    };
    let held = i64::from_le_bytes(*bytes);
    let sum = held.checked_add(delta).ok_or(Error::Overflow { value: held, delta })?;
    *bytes = sum.to_le_bytes();
    Ok(sum)
}
