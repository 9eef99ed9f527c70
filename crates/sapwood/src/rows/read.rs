//! Rows read.

use super::{RowKind, RowRange, RowRef, Rows};
use crate::table::{Entry, Visit};
use crate::{Direction, Result, Sorted};

#[cfg(doc)]
use crate::Table;

impl<R: RowKind, E: Sorted> Rows<R, E> {
    /// A copy of the row of a key; `None` if there is none.
    ///
    /// # Errors
    /// [The errors of rows](Rows#errors).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # use sapwood::schema::Value;
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// assert_eq!(planes.get(&["N14228".into()])?, Some(vec!["N14228".into(), Value::Int(149)]));
    /// assert_eq!(planes.get(&["N24211".into()])?, None);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get(&self, key: R::Key<'_>) -> Result<Option<R::Row>> {
        self.get_with(key, |row| self.of_values(row.values()?))?.transpose()
    }

    /// Calls `read` with the row of a key, in place; `None` if there is none.
    ///
    /// # Errors
    /// [The errors of rows](Rows#errors).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # use sapwood::schema::Value;
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// let seats = planes.get_with(&["N14228".into()], |row| row.field::<u16>("seats"))?;
    /// assert_eq!(seats, Some(Ok(149)));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_with<T>(
        &self,
        key: R::Key<'_>,
        read: impl FnOnce(RowRef<'_>) -> T,
    ) -> Result<Option<T>> {
        let key = self.key(key)?;
        self.table.get_with(&key, |value| read(self.row(&key, value)))
    }

    /// True if there is a row of a key.
    ///
    /// # Errors
    /// [The errors of rows](Rows#errors).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put(&["N14228".into(), 149.into()])?;
    /// assert!(planes.contains_key(&["N14228".into()])? && !planes.contains_key(&["N1".into()])?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn contains_key(&self, key: R::Key<'_>) -> Result<bool> {
        self.table.contains_key(self.key(key)?)
    }

    /// Calls `visit` for every row, in place, in the order of [`Table::for_each`]. The closure answers `()`, or a
    /// [`ControlFlow`](std::ops::ControlFlow) to stop.
    ///
    /// # Errors
    /// [The errors of rows](Rows#errors).
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// # let schema = "plane:text, seats:u16, key(plane)".parse().expect("a schema");
    /// # db.create_hash_table("planes", HashTableOptions::default().schema(schema))?;
    /// let planes = db.rows("planes")?;
    /// planes.put_many(&[["N14228".into(), 149.into()], ["N24211".into(), 149.into()]])?;
    /// let found = planes.for_each(|row| match row.get("plane") {
    ///     Ok(plane) if plane == "N24211".into() => ControlFlow::Break(()),
    ///     _ => ControlFlow::Continue(()),
    /// })?;
    /// assert!(found.is_break());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn for_each<V: Visit>(&self, mut visit: impl FnMut(RowRef<'_>) -> V) -> Result<V> {
        self.table.for_each(|key, value| visit(self.row(key, value)))
    }

    /// Copies of the rows, in the order of [`Table::iter`].
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions, row::Row};
    /// # #[derive(Row)]
    /// # struct Plane { #[row(key)] tail: String, seats: u16 }
    /// # let db = Db::in_memory();
    /// # db.create_tree_table("planes", TreeTableOptions::default().schema(Plane::schema()))?;
    /// let planes = db.rows("planes")?.typed::<Plane>()?;
    /// planes.put(&Plane { tail: "N14228".to_owned(), seats: 149 })?;
    /// for plane in planes.iter() {
    ///     assert_eq!(plane?.seats, 149);
    /// }
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = Result<R::Row>> + '_ {
        self.table.iter().map(|entry| self.of_entry(entry?))
    }

    /// Copies of the rows of a range, both ways. The first item is [`Error::NoOrder`](crate::Error::NoOrder) for a hash
    /// table.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, row::Row};
    /// # #[derive(Row)]
    /// # struct Hits { #[row(key)] day: u8, #[row(key)] hour: u8, count: u32 }
    /// # let db = Db::in_memory();
    /// # db.create_ordered_table("hits", OrderedTableOptions::default().schema(Hits::schema()))?;
    /// let hits = db.rows("hits")?.typed::<Hits>()?;
    /// for (day, hour) in [(1, 23), (2, 0), (2, 9)] {
    ///     hits.put(&Hits { day, hour, count: 7 })?;
    /// }
    /// let last = hits.range((2,)..=(2,)).next_back().expect("two rows")?;
    /// assert_eq!(last.hour, 9);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn range(
        &self,
        range: impl RowRange,
    ) -> impl DoubleEndedIterator<Item = Result<R::Row>> + '_ {
        let (rows, refused) = match self.byte_range(&range) {
            Ok(range) => (Some(self.table.range(range)), None),
            Err(error) => (None, Some(Err(error))),
        };
        let rows = rows.into_iter().flatten().map(|entry| self.of_entry(entry?));
        rows.chain(refused)
    }

    /// The number of rows in a range, as [`Table::count`] counts them.
    ///
    /// # Errors
    /// The errors of [`scan`](Self::scan).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// let schema = "day:u8, hour:u8, hits:u32, key(day, hour)".parse().expect("a schema");
    /// db.create_ordered_table("hits", OrderedTableOptions::default().schema(schema))?;
    /// let hits = db.rows("hits")?;
    /// for (day, hour) in [(1, 23), (2, 0), (2, 9), (3, 0)] {
    ///     hits.put(&[day.into(), hour.into(), 7.into()])?;
    /// }
    /// assert_eq!(hits.count((2,)..=(2,))?, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn count(&self, range: impl RowRange) -> Result<u64> {
        self.table.count(self.byte_range(&range)?)
    }

    /// Calls `visit` for the rows of a range, in place. The closure answers `()`, or a
    /// [`ControlFlow`](std::ops::ControlFlow) to stop.
    ///
    /// # Errors
    /// [The errors of rows](Rows#errors); [`Error::NoOrder`](crate::Error::NoOrder) for a hash table.
    ///
    /// ```
    /// # use sapwood::schema::Value;
    /// # use sapwood::{Db, Direction, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// let schema = "day:u8, hour:u8, hits:u32, key(day, hour)".parse().expect("a schema");
    /// db.create_ordered_table("hits", OrderedTableOptions::default().schema(schema))?;
    /// let hits = db.rows("hits")?;
    /// for (day, hour) in [(1, 23), (2, 0), (2, 9), (3, 0)] {
    ///     hits.put(&[day.into(), hour.into(), 7.into()])?;
    /// }
    /// let mut hours = Vec::new();
    /// hits.scan((2, 1).., Direction::Descending, |row| {
    ///     hours.push(row.get("hour").map(Value::into_owned));
    /// })?;
    /// assert_eq!(hours, [Ok(Value::Int(0)), Ok(Value::Int(9))]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan<V: Visit>(
        &self,
        range: impl RowRange,
        direction: Direction,
        mut visit: impl FnMut(RowRef<'_>) -> V,
    ) -> Result<V> {
        let range = self.byte_range(&range)?;
        self.table.scan(range, direction, |key, value| visit(self.row(key, value)))
    }

    fn of_entry(&self, entry: Entry<'_>) -> Result<R::Row> {
        self.of_values(self.row(entry.key(), entry.value()).values()?)
    }
}
