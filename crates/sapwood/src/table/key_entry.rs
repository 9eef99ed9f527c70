//! The place of a key, whether it has a value or not.

use super::{Keyed, Table};
use crate::{Result, Upsert, ValueMut};

#[cfg(doc)]
use crate::Compute;

/// The place of a key in a table: [`Table::entry`]. Nothing happens before [`or_put`](Self::or_put).
///
/// ```
/// use sapwood::{Db, HashTableOptions, Upsert};
///
/// let sessions = Db::in_memory().create_hash_table("sessions", HashTableOptions::default())?;
/// let visit = || sessions.entry("ada").and_update(|visits| visits[0] += 1).or_put([1]);
/// assert_eq!(visit()?, Upsert::Inserted);
/// assert_eq!(visit()?, Upsert::Updated(()));
/// # Ok::<(), sapwood::Error>(())
/// ```
#[must_use = "nothing is put before `or_put`"]
#[derive(Debug)]
pub struct KeyEntry<'t, E: Keyed, K, U = ()> {
    table: &'t Table<E>,
    key: K,
    update: U,
}

impl<'t, E: Keyed, K: AsRef<[u8]>> KeyEntry<'t, E, K> {
    pub(super) fn new(table: &'t Table<E>, key: K) -> KeyEntry<'t, E, K> {
        KeyEntry { table, key, update: () }
    }

    /// Sets the change of a value that the key has. The closure may be called more than once, as that of
    /// [`Table::update`].
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.entry("oak").and_update(|count| count[0] += 1).or_put([1])?;
    /// assert_eq!(table.get("oak")?, Some(vec![1]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn and_update<R, F: FnMut(&mut ValueMut<'_>) -> R>(
        self,
        change: F,
    ) -> KeyEntry<'t, E, K, F> {
        KeyEntry { table: self.table, key: self.key, update: change }
    }

    /// Puts a value unless the key has one; true if it did.
    ///
    /// # Errors
    /// The errors of [`Table::put_if_absent`].
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// assert!(table.entry("oak").or_put([1])?);
    /// assert!(!table.entry("oak").or_put([2])?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn or_put(self, value: impl AsRef<[u8]>) -> Result<bool> {
        self.table.put_if_absent(self.key, value)
    }
}

impl<E: Keyed, K: AsRef<[u8]>, R, F: FnMut(&mut ValueMut<'_>) -> R> KeyEntry<'_, E, K, F> {
    /// Changes the value, or puts one for a new key, with one search.
    ///
    /// # Errors
    /// The errors of [`Table::put_if_absent_or_update`].
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// let changed = |value: &mut sapwood::ValueMut<'_>| value.len();
    /// assert_eq!(table.entry("oak").and_update(changed).or_put([1])?, sapwood::Upsert::Inserted);
    /// assert_eq!(table.entry("oak").and_update(changed).or_put([1])?, sapwood::Upsert::Updated(1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn or_put(self, value: impl AsRef<[u8]>) -> Result<Upsert<R>> {
        self.table.put_if_absent_or_update(self.key, value, self.update)
    }
}
