//! Changes to a tree in transactions of their own.

use sapwood_engine::{Compute, Computed, Upsert};

use super::Tree;
use super::value::ValueMut;
use crate::error::Result;

impl Tree {
    /// Gives a key a value; whether the key is new.
    ///
    /// # Errors
    /// Those of the lengths, and of a transaction.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.pool.transaction(|tx| tx.put(self, key.as_ref(), value.as_ref()))
    }

    /// Gives a key a value if it has none; whether it had none.
    ///
    /// # Errors
    /// As of [`Tree::put`].
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.pool.transaction(|tx| tx.put_if_absent(self, key.as_ref(), value.as_ref()))
    }

    /// Puts a value, or changes the one that is there, in one search.
    ///
    /// # Errors
    /// As of [`Tree::put`].
    pub fn put_if_absent_or_update<R>(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        update: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        self.pool.transaction(|tx| {
            tx.put_if_absent_or_update(self, key.as_ref(), value.as_ref(), update)
        })
    }

    /// Changes a value; `None` without the key.
    ///
    /// # Errors
    /// As of [`Tree::put`].
    pub fn update<R>(
        &self,
        key: impl AsRef<[u8]>,
        update: impl FnOnce(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        self.pool.transaction(|tx| tx.update(self, key.as_ref(), update))
    }

    /// Lets `decide` keep, replace or remove what is at a key, seeing it first.
    ///
    /// # Errors
    /// As of [`Tree::put`].
    pub fn compute(
        &self,
        key: impl AsRef<[u8]>,
        decide: impl FnOnce(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        self.pool.transaction(|tx| tx.compute(self, key.as_ref(), decide))
    }

    /// Adds to a counter; the sum. As of [`Transaction::add`](crate::Transaction::add).
    ///
    /// # Errors
    /// As of [`Tree::put`], and [`Error::NotACounter`](crate::Error::NotACounter),
    /// [`Error::Overflow`](crate::Error::Overflow).
    pub fn add(&self, key: impl AsRef<[u8]>, delta: i64) -> Result<i64> {
        self.pool.transaction(|tx| tx.add(self, key.as_ref(), delta))
    }

    /// Removes a key; the value that it had.
    ///
    /// # Errors
    /// As of [`Tree::put`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.pool.transaction(|tx| tx.remove(self, key.as_ref()))
    }
}
