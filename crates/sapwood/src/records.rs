//! Tables whose values are records of one struct.

use std::marker::PhantomData;
use std::ops::ControlFlow;

use crate::aggregate::{Field, Layout, Part, Place, Read};
use crate::error::name_of;
use crate::record::{Record, RecordLength};
use crate::{Direction, Entry, Error, KeyRange, Range, Result, Table, TreeRange, Upsert};

#[cfg(doc)]
use crate::OrderedTable;

/// A table of any kind whose values are the records of one struct: read and changed as that struct,
/// where they lie.
///
/// It is a handle of the table, not a kind of its own: [`table`](Self::table) gives the table, with
/// everything that it can do ([`Db::checkpoint`](crate::Db::checkpoint) keeps it, where it is a hash table in a directory), and clones are the same table.
///
/// # Consistency
///
/// That of the [`Table`]: each operation on one key takes effect at one moment between its call and
/// its return, for every thread. Batches and walks are a series of operations, not one atomic one.
///
/// # Errors
///
/// [`new`](Self::new) compares the struct with the fields that the table declares. Values are compared
/// by their length alone: one that was put by other means may have another length than the record. It
/// answers [`Error::Record`], and stays as it is.
///
/// ```
/// use sapwood::record::{I64, U32, record};
/// use sapwood::{Db, OrderedTableOptions, Records, key};
///
/// #[record]
/// struct Route {
///     flights: U32,
///     minutes: I64,
/// }
///
/// let options = OrderedTableOptions::default().record::<Route>();
/// let table = Db::in_memory().create_ordered_table("routes", options)?;
/// let routes = Records::<Route>::new(table)?;
/// for (from, to, minutes) in [("EWR", "IAH", 11), ("LGA", "ORD", -3), ("EWR", "IAH", 20)] {
///     let first = Route { flights: 1.into(), minutes: minutes.into() };
///     routes.put_if_absent_or_update(key::encode(&(from, to)), &first, |route| {
///         route.flights += 1;
///         route.minutes += minutes;
///     })?;
/// }
/// let houston = routes.get(key::encode(&("EWR", "IAH")))?.expect("two flights");
/// assert_eq!((houston.flights.get(), houston.minutes.get()), (2, 31));
/// # Ok::<(), sapwood::Error>(())
/// ```
pub struct Records<R> {
    table: Table,
    /// No record is kept here: threads may share the view of any.
    record: PhantomData<fn() -> R>,
}

impl<R> Clone for Records<R> {
    fn clone(&self) -> Self {
        Records { table: self.table.clone(), record: PhantomData }
    }
}

impl<R> std::fmt::Debug for Records<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").field("table", &self.table).finish()
    }
}

impl<R: Record> Records<R> {
    /// The records of a table.
    ///
    /// Each field of the struct must be among the fields that the table declares, and no declared field
    /// of the value may lie behind the end of the struct. A `[u8; 3]` may be declared as `text3`, and a
    /// field may have a value that stands for "missing". A table that declares no fields has the
    /// records of any struct.
    ///
    /// # Errors
    /// [`Error::RecordFields`] if the table declares other fields.
    ///
    /// ```
    /// use sapwood::record::{I64, U32, record};
    /// use sapwood::{Db, Error, HashTableOptions, Records};
    ///
    /// #[record]
    /// struct Route {
    ///     flights: U32,
    ///     minutes: I64,
    /// }
    /// #[record]
    /// struct Swapped {
    ///     minutes: I64,
    ///     flights: U32,
    /// }
    /// let options = HashTableOptions::default().record::<Route>();
    /// let table = Db::in_memory().create_hash_table("routes", options)?;
    /// assert!(Records::<Route>::new(table.clone()).is_ok());
    /// assert!(matches!(Records::<Swapped>::new(table), Err(Error::RecordFields { .. })));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn new(table: impl Into<Table>) -> Result<Records<R>> {
        let table = table.into();
        match table.fields() {
            Some(declared) if !is_declared::<R>(declared) => Err(Error::RecordFields {
                table: table.name().into(),
                declared: declared.to_string(),
                record: name_of::<R>(),
                fields: R::layout().to_string(),
            }),
            _ => Ok(Records { table, record: PhantomData }),
        }
    }

    /// The table.
    ///
    /// ```
    /// # use sapwood::record::{U32, record};
    /// # use sapwood::{Db, HashTableOptions, Records};
    /// # #[record]
    /// # #[derive(Debug, PartialEq)]
    /// # struct Visits {
    /// #     count: U32,
    /// # }
    /// # let options = HashTableOptions::default().record::<Visits>();
    /// # let visits = Records::<Visits>::new(Db::in_memory().create_hash_table("visits", options)?)?;
    /// assert_eq!(visits.table().name(), "visits");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Calls `read` with the record of `key`, in place; `None` if the key is absent.
    ///
    /// # Errors
    /// [`Error::Record`]; as of [`Table::get_with`].
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Records, record::{U32, record}};
    /// # #[record]
    /// # struct Hits { count: U32 }
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// let hits = Records::<Hits>::new(table)?;
    /// hits.put("/oaks", &Hits { count: 3.into() })?;
    /// assert_eq!(hits.get_with("/oaks", |hits| hits.count.get())?, Some(3));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn get_with<T>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&R) -> T,
    ) -> Result<Option<T>> {
        let found = self.table.get_with(key, |value| R::view(value).map(read))?;
        found.transpose().map_err(|cause| self.refused(cause))
    }

    /// A copy of the record of `key`; `None` if the key is absent.
    ///
    /// # Errors
    /// As of [`get_with`](Self::get_with).
    ///
    /// ```
    /// # use sapwood::record::{U32, record};
    /// # use sapwood::{Db, HashTableOptions, Records};
    /// # #[record]
    /// # #[derive(Debug, PartialEq)]
    /// # struct Visits {
    /// #     count: U32,
    /// # }
    /// # let options = HashTableOptions::default().record::<Visits>();
    /// # let visits = Records::<Visits>::new(Db::in_memory().create_hash_table("visits", options)?)?;
    /// visits.put("/", &Visits { count: 1.into() })?;
    /// assert_eq!(visits.get("/")?, Some(Visits { count: 1.into() }));
    /// assert_eq!(visits.get("/about")?, None);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<R>> {
        self.get_with(key, |record| *record)
    }

    /// Whether the key is there, with a record or with another value.
    ///
    /// # Errors
    /// As of [`Table::contains_key`].
    ///
    /// ```
    /// # use sapwood::record::{U32, record};
    /// # use sapwood::{Db, HashTableOptions, Records};
    /// # #[record]
    /// # #[derive(Debug, PartialEq)]
    /// # struct Visits {
    /// #     count: U32,
    /// # }
    /// # let options = HashTableOptions::default().record::<Visits>();
    /// # let visits = Records::<Visits>::new(Db::in_memory().create_hash_table("visits", options)?)?;
    /// visits.put("/", &Visits { count: 1.into() })?;
    /// assert!(visits.contains_key("/")? && !visits.contains_key("/about")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.table.contains_key(key)
    }

    /// Calls `read(i, record)` once for each `keys[i]`, in any order: faster than single calls.
    ///
    /// # Errors
    /// [`Error::Record`], after `read` was called for all keys whose values are records; as of
    /// [`Table::get_many`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Records, record::{U32, record}};
    /// # #[record]
    /// # struct Hits { count: U32 }
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// let hits = Records::<Hits>::new(table)?;
    /// hits.put_many(&[("/oaks", Hits { count: 3.into() }), ("/elms", Hits { count: 4.into() })])?;
    /// let mut counts = [None; 3];
    /// hits.get_many(&["/elms", "/ash", "/oaks"], |index, hits| {
    ///     counts[index] = hits.map(|hits| hits.count.get());
    /// })?;
    /// assert_eq!(counts, [Some(4), None, Some(3)]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut read: impl FnMut(usize, Option<&R>),
    ) -> Result<()> {
        let mut other = None;
        self.table.get_many(keys, |index, value| match value.map(R::view).transpose() {
            Ok(record) => read(index, record),
            Err(cause) => other = Some(cause),
        })?;
        self.all_records(other)
    }

    /// Puts a record; one that was there is replaced.
    ///
    /// # Errors
    /// As of [`Table::put`].
    ///
    /// ```
    /// # use sapwood::record::{U32, record};
    /// # use sapwood::{Db, HashTableOptions, Records};
    /// # #[record]
    /// # #[derive(Debug, PartialEq)]
    /// # struct Visits {
    /// #     count: U32,
    /// # }
    /// # let options = HashTableOptions::default().record::<Visits>();
    /// # let visits = Records::<Visits>::new(Db::in_memory().create_hash_table("visits", options)?)?;
    /// visits.put("/", &Visits { count: 1.into() })?;
    /// visits.put("/", &Visits { count: 2.into() })?;
    /// assert_eq!(visits.get("/")?, Some(Visits { count: 2.into() }));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn put(&self, key: impl AsRef<[u8]>, record: &R) -> Result<()> {
        self.table.put(key, record.bytes())
    }

    /// Puts a record unless there is one; true if it did.
    ///
    /// # Errors
    /// As of [`Table::put_if_absent`].
    ///
    /// ```
    /// # use sapwood::record::{U32, record};
    /// # use sapwood::{Db, HashTableOptions, Records};
    /// # #[record]
    /// # #[derive(Debug, PartialEq)]
    /// # struct Visits {
    /// #     count: U32,
    /// # }
    /// # let options = HashTableOptions::default().record::<Visits>();
    /// # let visits = Records::<Visits>::new(Db::in_memory().create_hash_table("visits", options)?)?;
    /// assert!(visits.put_if_absent("/", &Visits { count: 1.into() })?);
    /// assert!(!visits.put_if_absent("/", &Visits { count: 2.into() })?);
    /// assert_eq!(visits.get("/")?, Some(Visits { count: 1.into() }));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, record: &R) -> Result<bool> {
        self.table.put_if_absent(key, record.bytes())
    }

    /// Puts the records, those of one key in order: faster than single calls.
    ///
    /// # Errors
    /// As of [`Table::put_many`].
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Records, record::{U32, record}};
    /// # #[record]
    /// # struct Hits { count: U32 }
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// let hits = Records::<Hits>::new(table)?;
    /// hits.put_many(&[("/oaks", Hits { count: 3.into() }), ("/elms", Hits { count: 4.into() })])?;
    /// assert_eq!(hits.table().len()?, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put_many<K: AsRef<[u8]>>(&self, entries: &[(K, R)]) -> Result<()> {
        let bytes = entries.iter().map(|(key, record)| (key.as_ref(), record.bytes()));
        self.table.put_many(&bytes.collect::<Vec<_>>())
    }

    /// Changes the record of `key` in place, in one step for every reader; answers what `change`
    /// answers, or `None` if the key is absent. The closure runs as of [`Table::update`].
    ///
    /// # Errors
    /// [`Error::Record`]; as of [`Table::update`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Records, record::{U32, record}};
    /// # #[record]
    /// # struct Hits { count: U32 }
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// let hits = Records::<Hits>::new(table)?;
    /// hits.put("/oaks", &Hits { count: 3.into() })?;
    /// hits.update("/oaks", |hits| hits.count += 1)?;
    /// assert_eq!(hits.get("/oaks")?.expect("it was put").count, 4);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn update<T>(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(&mut R) -> T,
    ) -> Result<Option<T>> {
        let changed = self.table.update(key, |value| R::view_mut(value).map(&mut change))?;
        changed.transpose().map_err(|cause| self.refused(cause))
    }

    /// Changes the records of many keys, each as by [`update`](Self::update); `change` is given the
    /// key's index. Answers how many keys were there.
    ///
    /// # Errors
    /// [`Error::Record`], after all values that are records were changed; as of
    /// [`Table::update_many`].
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Records, record::{U32, record}};
    /// # #[record]
    /// # struct Hits { count: U32 }
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// let hits = Records::<Hits>::new(table)?;
    /// hits.put("/oaks", &Hits { count: 3.into() })?;
    /// assert_eq!(hits.update_many(&["/oaks", "/elms"], |_index, hits| hits.count += 1)?, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn update_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut change: impl FnMut(usize, &mut R),
    ) -> Result<usize> {
        let mut other = None;
        let found = self.table.update_many(keys, |index, value| match R::view_mut(value) {
            Ok(record) => change(index, record),
            Err(cause) => other = Some(cause),
        })?;
        self.all_records(other).map(|()| found)
    }

    /// Puts `record` if the key is absent, or changes the one that is there: one search, in one
    /// step for every reader. The closure runs as of [`Table::update`].
    ///
    /// # Errors
    /// [`Error::Record`]; as of [`Table::put_if_absent_or_update`].
    ///
    /// ```
    /// # use sapwood::record::{U32, record};
    /// # use sapwood::{Db, HashTableOptions, Records};
    /// # #[record]
    /// # #[derive(Debug, PartialEq)]
    /// # struct Visits {
    /// #     count: U32,
    /// # }
    /// # let options = HashTableOptions::default().record::<Visits>();
    /// # let visits = Records::<Visits>::new(Db::in_memory().create_hash_table("visits", options)?)?;
    /// for path in ["/", "/about", "/"] {
    ///     let first = Visits { count: 1.into() };
    ///     visits.put_if_absent_or_update(path, &first, |visits| visits.count += 1)?;
    /// }
    /// assert_eq!(visits.get("/")?, Some(Visits { count: 2.into() }));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn put_if_absent_or_update<T>(
        &self,
        key: impl AsRef<[u8]>,
        record: &R,
        mut change: impl FnMut(&mut R) -> T,
    ) -> Result<Upsert<T>> {
        let change = |value: &mut crate::ValueMut<'_>| R::view_mut(value).map(&mut change);
        match self.table.put_if_absent_or_update(key, record.bytes(), change)? {
            Upsert::Inserted => Ok(Upsert::Inserted),
            Upsert::Updated(changed) => {
                changed.map(Upsert::Updated).map_err(|cause| self.refused(cause))
            }
        }
    }

    /// Puts `new` if the record is `expected`, byte for byte; true if it did.
    ///
    /// # Errors
    /// As of [`Table::compare_and_put`].
    ///
    /// ```
    /// # use sapwood::record::{U32, record};
    /// # use sapwood::{Db, HashTableOptions, Records};
    /// # #[record]
    /// # #[derive(Debug, PartialEq)]
    /// # struct Visits {
    /// #     count: U32,
    /// # }
    /// # let options = HashTableOptions::default().record::<Visits>();
    /// # let visits = Records::<Visits>::new(Db::in_memory().create_hash_table("visits", options)?)?;
    /// let (one, two) = (Visits { count: 1.into() }, Visits { count: 2.into() });
    /// visits.put("/", &one)?;
    /// assert!(visits.compare_and_put("/", &one, &two)?);
    /// assert!(!visits.compare_and_put("/", &one, &two)?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn compare_and_put(&self, key: impl AsRef<[u8]>, expected: &R, new: &R) -> Result<bool> {
        self.table.compare_and_put(key, expected.bytes(), new.bytes())
    }

    /// Removes a key; true if it was there.
    ///
    /// # Errors
    /// As of [`Table::remove`].
    ///
    /// ```
    /// # use sapwood::record::{U32, record};
    /// # use sapwood::{Db, HashTableOptions, Records};
    /// # #[record]
    /// # #[derive(Debug, PartialEq)]
    /// # struct Visits {
    /// #     count: U32,
    /// # }
    /// # let options = HashTableOptions::default().record::<Visits>();
    /// # let visits = Records::<Visits>::new(Db::in_memory().create_hash_table("visits", options)?)?;
    /// visits.put("/", &Visits { count: 1.into() })?;
    /// assert!(visits.remove("/")? && !visits.remove("/")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.table.remove(key)
    }

    /// Removes a key and answers a copy of its record; `None` without the key.
    ///
    /// # Errors
    /// [`Error::Record`]: the value was of another length, and is removed all the same; as of
    /// [`Table::remove_with`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Records, record::{U32, record}};
    /// # #[record]
    /// # struct Hits { count: U32 }
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// let hits = Records::<Hits>::new(table)?;
    /// hits.put("/oaks", &Hits { count: 3.into() })?;
    /// assert_eq!(hits.take("/oaks")?.expect("it was put").count, 3);
    /// assert!(hits.take("/oaks")?.is_none());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[inline]
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<R>> {
        let taken = self.table.remove_with(key, |value| R::view(value).copied())?;
        taken.transpose().map_err(|cause| self.refused(cause))
    }

    /// Removes the entries of which `keep` says false, and answers how many.
    ///
    /// # Errors
    /// [`Error::Record`], after all other entries: a value of another length stays, unasked. As of
    /// [`Table::retain`].
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Records, record::{U32, record}};
    /// # #[record]
    /// # struct Hits { count: U32 }
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// let hits = Records::<Hits>::new(table)?;
    /// hits.put_many(&[("/oaks", Hits { count: 3.into() }), ("/elms", Hits { count: 4.into() })])?;
    /// assert_eq!(hits.retain(|_page, hits| hits.count > 3)?, 1);
    /// assert!(!hits.contains_key("/oaks")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&[u8], &R) -> bool) -> Result<u64> {
        let mut other = None;
        let removed = self.table.retain(|key, value| match R::view(value) {
            Ok(record) => keep(key, record),
            Err(cause) => {
                other = Some(cause);
                true
            }
        })?;
        self.all_records(other).map(|()| removed)
    }

    /// Visits every key and its record, in the table's order, until `visit` breaks.
    ///
    /// # Errors
    /// [`Error::Record`], at the first value of another length; as of [`Table::for_each`].
    ///
    /// ```
    /// # use sapwood::record::{U32, record};
    /// # use sapwood::{Db, HashTableOptions, Records};
    /// # #[record]
    /// # #[derive(Debug, PartialEq)]
    /// # struct Visits {
    /// #     count: U32,
    /// # }
    /// # let options = HashTableOptions::default().record::<Visits>();
    /// # let visits = Records::<Visits>::new(Db::in_memory().create_hash_table("visits", options)?)?;
    /// use std::ops::ControlFlow;
    ///
    /// visits.put("/", &Visits { count: 2.into() })?;
    /// visits.put("/about", &Visits { count: 3.into() })?;
    /// let mut sum = 0;
    /// visits.for_each(|_path, visits| {
    ///     sum += visits.count.get();
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(sum, 5);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn for_each<B>(
        &self,
        mut visit: impl FnMut(&[u8], &R) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.flow(self.table.for_each(|key, value| visit_record(key, value, &mut visit))?)
    }

    /// Keys and copies of their records: in the order of the keys, or of a hash table in none.
    ///
    /// # Errors
    /// An item is [`Error::Record`] for a value of another length, and the walk goes on behind it;
    /// otherwise as of [`OrderedTable::range`] and [`HashTable::iter`](crate::HashTable::iter).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, Records, record::{U32, record}};
    /// # #[record]
    /// # struct Hits { count: U32 }
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// let hits = Records::<Hits>::new(table)?;
    /// hits.put_many(&[("/oaks", Hits { count: 3.into() }), ("/elms", Hits { count: 4.into() })])?;
    /// let mut sum = 0;
    /// for entry in hits.iter() {
    ///     let (_page, hits) = entry?;
    ///     sum += hits.count.get();
    /// }
    /// assert_eq!(sum, 7);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = Result<(Vec<u8>, R)>> + '_ {
        let entries = |entries| RecordRange { entries, records: self };
        let ordered = self.ordered_range(..).map(entries);
        let hash = self.table.as_hash().into_iter().flat_map(|table| table.iter());
        let hash = hash.map(|entry| {
            let (key, value) = entry?;
            self.copy(&value).map(|record| (key, record))
        });
        ordered.into_iter().flatten().chain(hash)
    }

    /// Keys of an ordered table within a range, and copies of their records, both ways.
    ///
    /// # Errors
    /// [`Error::NoOrder`] of a hash table. An item is [`Error::Record`] for a value of another length,
    /// and the walk goes on behind it.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Records, key, record::{U32, record}};
    /// # #[record]
    /// # struct Hits { count: U32 }
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// let hits = Records::<Hits>::new(table)?;
    /// for (page, hour, count) in [("/oaks", 8_u8, 3), ("/oaks", 9, 4), ("/elms", 8, 5)] {
    ///     hits.put(key::encode(&(page, hour)), &Hits { count: count.into() })?;
    /// }
    /// let oaks = key::prefix_range(key::encode(&"/oaks"));
    /// let (last, hits) = hits.range(oaks)?.next_back().expect("two hours")?;
    /// assert_eq!(key::decode::<(String, u8)>(&last)?.1, 9);
    /// assert_eq!(hits.count, 4);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn range(&self, range: impl KeyRange) -> Result<RecordRange<'_, R>> {
        let no_order = || Error::NoOrder { table: self.table.name().into() };
        let entries = self.ordered_range(range).ok_or_else(no_order)?;
        Ok(RecordRange { entries, records: self })
    }

    /// Visits the keys of an ordered table within a range and their records, in place, until `visit`
    /// breaks.
    ///
    /// # Errors
    /// [`Error::NoOrder`] of a hash table; [`Error::Record`], at the first value of another length; as
    /// of [`OrderedTable::scan`].
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use sapwood::{Db, Direction, OrderedTableOptions, Records, record::{U32, record}};
    /// # #[record]
    /// # struct Hits { count: U32 }
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// let hits = Records::<Hits>::new(table)?;
    /// hits.put_many(&[("/oaks", Hits { count: 3.into() }), ("/elms", Hits { count: 4.into() })])?;
    /// let mut sum = 0;
    /// let _ = hits.scan("/f".., Direction::Ascending, |_page, hits| {
    ///     sum += hits.count.get();
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(sum, 3);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn scan<B>(
        &self,
        range: impl KeyRange,
        direction: Direction,
        mut visit: impl FnMut(&[u8], &R) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let visit = |key: &[u8], value: &[u8]| visit_record(key, value, &mut visit);
        self.flow(self.table.scan(range, direction, visit)?)
    }

    /// The entries in a range, if the table keeps its keys in order.
    fn ordered_range(&self, range: impl KeyRange) -> Option<Entries<'_>> {
        match &self.table {
            Table::Ordered(table) => Some(Entries::Ordered(table.range(range))),
            Table::Tree(table) => Some(Entries::Tree(Box::new(table.range(range)))),
            Table::Hash(_) => None,
        }
    }

    fn copy(&self, value: &[u8]) -> Result<R> {
        R::view(value).copied().map_err(|cause| self.refused(cause))
    }

    /// An error if a walk met a value of another length.
    fn all_records(&self, other: Option<RecordLength>) -> Result<()> {
        other.map_or(Ok(()), |cause| Err(self.refused(cause)))
    }

    fn flow<B>(&self, flow: ControlFlow<Result<B, RecordLength>>) -> Result<ControlFlow<B>> {
        match flow {
            ControlFlow::Continue(()) => Ok(ControlFlow::Continue(())),
            ControlFlow::Break(Ok(result)) => Ok(ControlFlow::Break(result)),
            ControlFlow::Break(Err(cause)) => Err(self.refused(cause)),
        }
    }

    #[cold]
    fn refused(&self, cause: RecordLength) -> Error {
        Error::Record { table: self.table.name().into(), cause }
    }
}

/// Keys within a range, and copies of their records, in ascending order; `.rev()` descends.
///
/// Made by [`Records::range`]. Its consistency is that of [`OrderedTable::range`].
pub struct RecordRange<'a, R> {
    entries: Entries<'a>,
    records: &'a Records<R>,
}

/// The entries of a table of a kind that keeps them in order.
#[derive(Debug)]
enum Entries<'a> {
    Ordered(Range<'a>),
    Tree(Box<TreeRange<'a>>),
}

impl<R: Record> RecordRange<'_, R> {
    fn copy(&self, key: Vec<u8>, value: &[u8]) -> Result<(Vec<u8>, R)> {
        self.records.copy(value).map(|record| (key, record))
    }

    fn of_ordered(&self, entry: Result<Entry<'_>>) -> Result<(Vec<u8>, R)> {
        entry.and_then(|entry| self.copy(entry.key().to_vec(), entry.value()))
    }

    fn of_tree(&self, entry: Result<(Vec<u8>, Vec<u8>)>) -> Result<(Vec<u8>, R)> {
        entry.and_then(|(key, value)| self.copy(key, &value))
    }
}

impl<R: Record> Iterator for RecordRange<'_, R> {
    type Item = Result<(Vec<u8>, R)>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.entries {
            Entries::Ordered(entries) => {
                let entry = entries.next()?;
                Some(self.of_ordered(entry))
            }
            Entries::Tree(entries) => {
                let entry = entries.next()?;
                Some(self.of_tree(entry))
            }
        }
    }
}

impl<R: Record> DoubleEndedIterator for RecordRange<'_, R> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.entries {
            Entries::Ordered(entries) => {
                let entry = entries.next_back()?;
                Some(self.of_ordered(entry))
            }
            Entries::Tree(entries) => {
                let entry = entries.next_back()?;
                Some(self.of_tree(entry))
            }
        }
    }
}

impl<R> std::fmt::Debug for RecordRange<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RecordRange").field(&self.entries).finish()
    }
}

fn visit_record<R: Record, B>(
    key: &[u8],
    value: &[u8],
    visit: &mut impl FnMut(&[u8], &R) -> ControlFlow<B>,
) -> ControlFlow<Result<B, RecordLength>> {
    match R::view(value) {
        Ok(record) => visit(key, record).map_break(Ok),
        Err(cause) => ControlFlow::Break(Err(cause)),
    }
}

/// Whether values with these fields are records of the struct.
fn is_declared<R: Record>(declared: &Layout) -> bool {
    let in_value = || declared.fields().iter().filter(|field| field.place == Place::Value);
    let is_known = |(name, offset, read): &(&str, usize, Read)| {
        let is_same = |field: &Field| {
            field.name == *name
                && field.part == Part::From(*offset)
                && is_read_so(&field.read, read)
        };
        in_value().any(is_same)
    };
    R::FIELDS.iter().all(is_known) && in_value().all(|field| lies_within(field, size_of::<R>()))
}

/// Whether a field that is declared as `read` may have the bytes of one that is `own`.
fn is_read_so(read: &Read, own: &Read) -> bool {
    read == own || matches!((read, own), (Read::Text(len), Read::Bytes(own)) if len == own)
}

/// Whether a declared field ends before so many bytes do, as far as the layout knows where it ends.
fn lies_within(field: &Field, bytes: usize) -> bool {
    let Part::From(offset) = field.part else { return true };
    let width = match &field.read {
        Read::Number(number) => number.bytes(),
        Read::Bytes(len) | Read::Text(len) => len.unwrap_or(0),
        _ => 0,
    };
    offset.saturating_add(width) <= bytes
}
