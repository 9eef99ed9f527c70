//! Verbs that see many entries: walks, iterators, neighbours, ranges.

use sapwood_engine::KeyRange;

use super::{Entry, Keyed, Keys, Nearest, Range, Sorted, Table, Visit};
use crate::{Direction, Result};

impl<E: Keyed> Table<E> {
    /// Calls `visit(key, value)` for every entry, in the order of the engine: that of the keys, or none that means
    /// anything. The closure answers `()`, or a [`ControlFlow`](std::ops::ControlFlow) to stop.
    ///
    /// # Errors
    /// [The engine's](Table#errors); `visit` was called for the entries before.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// let mut bytes = 0;
    /// table.for_each(|key, value| bytes += key.len() + value.len())?;
    /// assert_eq!(bytes, 4);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn for_each<V: Visit>(&self, mut visit: impl FnMut(&[u8], &[u8]) -> V) -> Result<V> {
        Ok(V::of_flow(E::for_each(self, |key, value| visit(key, value).into_flow())?))
    }

    /// The entries in the order of [`for_each`](Self::for_each); both ways where the engine has order.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// for entry in table.iter().rev() {
    ///     let entry = entry?;
    ///     println!("{:?} = {:?}", entry.key(), entry.value());
    /// }
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn iter(&self) -> E::Iter<'_> {
        E::iter(self)
    }

    /// The keys in the order of [`for_each`](Self::for_each), copied; both ways where the engine has order.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("b", "2"), ("a", "1")])?;
    /// assert_eq!(table.keys().collect::<Result<Vec<_>, _>>()?, [b"a", b"b"]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn keys(&self) -> Keys<E::Iter<'_>> {
        Keys(E::iter(self))
    }
}

impl<E: Sorted> Table<E> {
    /// The entry with the least key.
    ///
    /// # Errors
    /// [The engine's](Table#errors).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// assert!(table.first()?.is_none());
    /// table.put_many(&[("b", "2"), ("a", "1")])?;
    /// assert_eq!(table.first()?.expect("two entries").key(), b"a");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn first(&self) -> Result<Option<Entry<'_>>> {
        E::nearest(self, Nearest::First)
    }

    /// The entry with the greatest key.
    ///
    /// # Errors
    /// The errors of [`first`](Self::first).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("b", "2"), ("a", "1")])?;
    /// assert_eq!(table.last()?.expect("two entries").value(), b"2");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn last(&self) -> Result<Option<Entry<'_>>> {
        E::nearest(self, Nearest::Last)
    }

    /// The entry with the greatest key at or below `key`.
    ///
    /// # Errors
    /// The errors of [`first`](Self::first).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", ""), ("b", ""), ("d", "")])?;
    /// assert_eq!(table.floor(b"c")?.expect("there is one").key(), b"b");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn floor(&self, key: impl AsRef<[u8]>) -> Result<Option<Entry<'_>>> {
        E::nearest(self, Nearest::Floor(key.as_ref()))
    }

    /// The entry with the greatest key below `key`.
    ///
    /// # Errors
    /// The errors of [`first`](Self::first).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", ""), ("b", ""), ("d", "")])?;
    /// assert_eq!(table.lower(b"b")?.expect("there is one").key(), b"a");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn lower(&self, key: impl AsRef<[u8]>) -> Result<Option<Entry<'_>>> {
        E::nearest(self, Nearest::Lower(key.as_ref()))
    }

    /// The entry with the least key at or above `key`.
    ///
    /// # Errors
    /// The errors of [`first`](Self::first).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", ""), ("b", ""), ("d", "")])?;
    /// assert_eq!(table.ceiling(b"c")?.expect("there is one").key(), b"d");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn ceiling(&self, key: impl AsRef<[u8]>) -> Result<Option<Entry<'_>>> {
        E::nearest(self, Nearest::Ceiling(key.as_ref()))
    }

    /// The entry with the least key above `key`, in the whole table: with composite keys it may have another prefix.
    /// Within one prefix, take the first entry of its [`range`](Self::range).
    ///
    /// # Errors
    /// The errors of [`first`](Self::first).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", ""), ("b", ""), ("d", "")])?;
    /// assert_eq!(table.higher(b"b")?.expect("there is one").key(), b"d");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn higher(&self, key: impl AsRef<[u8]>) -> Result<Option<Entry<'_>>> {
        E::nearest(self, Nearest::Higher(key.as_ref()))
    }

    /// The entries of a range as an iterator, both ways.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, key};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// for minute in [485_u16, 492, 510] {
    ///     table.put(&key::encode(&("Museum", minute)), b"U6")?;
    /// }
    /// let (from, to) = (key::encode(&("Museum", 490_u16)), key::encode(&("Museum", 500_u16)));
    /// assert_eq!(table.range(from..to).count(), 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", ""), ("b", ""), ("c", "")])?;
    /// let mut keys = Vec::new();
    /// for entry in table.range("b"..).rev() {
    ///     keys.push(entry?.key().to_vec());
    /// }
    /// assert_eq!(keys, [b"c", b"b"]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn range(&self, range: impl KeyRange) -> Range<'_> {
        E::range(self, range.bounds())
    }

    /// Calls `visit(key, value)` for the entries of a range, and creates nothing per entry. The closure answers `()`, or
    /// a [`ControlFlow`](std::ops::ControlFlow) to stop.
    ///
    /// # Errors
    /// The errors of [`for_each`](Self::for_each); [`Error::NoOrder`](crate::Error::NoOrder) where the engine is known at run
    /// time and has no order.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, Direction, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2"), ("c", "3")])?;
    /// let found = table.scan("b".., Direction::Ascending, |key, value| {
    ///     if value == b"3" { ControlFlow::Break(key.to_vec()) } else { ControlFlow::Continue(()) }
    /// })?;
    /// assert_eq!(found, ControlFlow::Break(b"c".to_vec()));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan<V: Visit>(
        &self,
        range: impl KeyRange,
        direction: Direction,
        mut visit: impl FnMut(&[u8], &[u8]) -> V,
    ) -> Result<V> {
        let visit = |key: &[u8], value: &[u8]| visit(key, value).into_flow();
        Ok(V::of_flow(E::scan(self, range.bounds(), direction, visit)?))
    }

    /// Calls `visit(key)` for the keys of a range, without touching values.
    ///
    /// # Errors
    /// The errors of [`scan`](Self::scan).
    ///
    /// ```
    /// # use sapwood::{Db, Direction, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2"), ("c", "3")])?;
    /// let mut keys = Vec::new();
    /// table.scan_keys(.., Direction::Descending, |key| keys.push(key.to_vec()))?;
    /// assert_eq!(keys, [b"c", b"b", b"a"]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan_keys<V: Visit>(
        &self,
        range: impl KeyRange,
        direction: Direction,
        mut visit: impl FnMut(&[u8]) -> V,
    ) -> Result<V> {
        let visit = |key: &[u8]| visit(key).into_flow();
        Ok(V::of_flow(E::scan_keys(self, range.bounds(), direction, visit)?))
    }

    /// The number of entries in a range, from sums that the engine's nodes keep: it takes microseconds, however many there
    /// are. A transaction walks the range, and so does a table that is read in place from a file.
    ///
    /// # Consistency
    /// Exact while nothing changes the table. Beside writers, each entry that is there throughout is counted once.
    ///
    /// # Errors
    /// The errors of [`scan`](Self::scan).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", ""), ("b", ""), ("d", "")])?;
    /// assert_eq!(table.count("b"..)?, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn count(&self, range: impl KeyRange) -> Result<u64> {
        E::count(self, range.bounds())
    }

    /// The number of entries whose keys are below `key`, which the table need not have; consistent as
    /// [`count`](Self::count).
    ///
    /// # Errors
    /// The errors of [`scan`](Self::scan).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, key};
    /// # use std::cmp::Reverse;
    /// # let board = Db::in_memory().create_ordered_table("board", OrderedTableOptions::default())?;
    /// // The best first.
    /// for (score, player) in [(850_u32, "bob"), (900, "ada"), (700, "eve")] {
    ///     board.put(key::encode(&(Reverse(score), player)), b"")?;
    /// }
    /// assert_eq!(board.rank(key::encode(&(Reverse(850_u32), "bob")))?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn rank(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        self.count(..key.as_ref())
    }

    /// The entry that has `rank` entries before it; `None` if there are not so many. It costs as much as a
    /// [`count`](Self::count).
    ///
    /// # Errors
    /// The errors of [`first`](Self::first).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", ""), ("b", ""), ("d", "")])?;
    /// assert_eq!(table.nth(2)?.expect("three entries").key(), b"d");
    /// assert!(table.nth(3)?.is_none());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn nth(&self, rank: u64) -> Result<Option<Entry<'_>>> {
        E::nth(self, rank)
    }

    /// Removes the entry with the least key, and answers it.
    ///
    /// # Errors
    /// The errors of [`remove`](Self::remove).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// assert_eq!(table.pop_first()?, Some((b"a".to_vec(), b"1".to_vec())));
    /// assert_eq!(table.len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn pop_first(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        E::pop(self, Direction::Ascending)
    }

    /// Removes the entry with the greatest key, and answers it.
    ///
    /// # Errors
    /// The errors of [`remove`](Self::remove).
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put_many(&[("a", "1"), ("b", "2")])?;
    /// assert_eq!(table.pop_last()?, Some((b"b".to_vec(), b"2".to_vec())));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn pop_last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        E::pop(self, Direction::Descending)
    }

    /// Removes the entries of a range that the table has when it starts, and answers their number.
    ///
    /// # Errors
    /// The errors of [`retain`](Self::retain).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, key};
    /// # let seen = Db::in_memory().create_ordered_table("seen", OrderedTableOptions::default())?;
    /// for (minute, user) in [(480_u32, "ada"), (481, "bob"), (600, "eve")] {
    ///     seen.put(&key::encode(&(minute, user)), b"")?;
    /// }
    /// let nine_o_clock = key::encode(&540_u32);
    /// assert_eq!(seen.remove_range(..nine_o_clock)?, 2);
    /// assert_eq!(seen.len()?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn remove_range(&self, range: impl KeyRange) -> Result<u64> {
        E::remove_range(self, range.bounds())
    }
}
