//! Tables whose values are records of one struct.

use std::marker::PhantomData;
use std::ops::ControlFlow;

use crate::record::{Record, RecordLength};
use crate::{Error, Result, Table, Upsert};

/// A table of any kind whose values are the records of one struct: read and changed as that struct,
/// where they lie.
///
/// It is a handle of the table, not a kind of its own: [`table`](Self::table) gives the table, with
/// everything that it can do ([`Table::as_hash`] for checkpoints; [`Table::as_ordered`] for ranges, with
/// [`Record::view`] of each value), and clones are the same table.
///
/// Nothing compares the struct with what other structs wrote: a value of the same length, but of other
/// fields, is read as it stands.
///
/// # Consistency
///
/// That of the [`Table`]: each operation on one key takes effect at one moment between its call and
/// its return, for every thread.
///
/// # Errors
///
/// A value that was put by other means may have another length than the record. It answers
/// [`Error::Record`], and stays as it is.
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
/// let routes = Records::<Route>::new(table);
/// for (from, to, minutes) in [("EWR", "IAH", 11), ("LGA", "ORD", -3), ("EWR", "IAH", 20)] {
///     let first = Route { flights: 1.into(), minutes: minutes.into() };
///     routes.put_if_absent_or_update(&key::encode(&(from, to)), &first, |route| {
///         route.flights += 1;
///         route.minutes += minutes;
///     })?;
/// }
/// let houston = routes.get(&key::encode(&("EWR", "IAH")))?.expect("two flights");
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
    pub fn new(table: impl Into<Table>) -> Records<R> {
        Records { table: table.into(), record: PhantomData }
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Calls `read` with the record of `key`, in place; `None` if the key is absent.
    ///
    /// # Errors
    /// [`Error::Record`]; as of [`Table::get_with`].
    #[inline]
    pub fn get_with<T>(&self, key: &[u8], read: impl FnOnce(&R) -> T) -> Result<Option<T>> {
        let found = self.table.get_with(key, |value| R::view(value).map(read))?;
        found.transpose().map_err(|cause| self.refused(cause))
    }

    /// A copy of the record of `key`; `None` if the key is absent.
    ///
    /// # Errors
    /// As of [`get_with`](Self::get_with).
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<R>> {
        self.get_with(key, |record| *record)
    }

    /// Puts a record; one that was there is replaced.
    ///
    /// # Errors
    /// As of [`Table::put`].
    #[inline]
    pub fn put(&self, key: &[u8], record: &R) -> Result<()> {
        self.table.put(key, record.bytes())
    }

    /// Puts a record unless there is one; true if it did.
    ///
    /// # Errors
    /// As of [`Table::put_if_absent`].
    #[inline]
    pub fn put_if_absent(&self, key: &[u8], record: &R) -> Result<bool> {
        self.table.put_if_absent(key, record.bytes())
    }

    /// Changes the record of `key` in place, in one step for every reader; answers what `change`
    /// answers, or `None` if the key is absent.
    ///
    /// # Errors
    /// [`Error::Record`]; as of [`Table::update`].
    #[inline]
    pub fn update<T>(&self, key: &[u8], mut change: impl FnMut(&mut R) -> T) -> Result<Option<T>> {
        let changed = self.table.update(key, |value| R::view_mut(value).map(&mut change))?;
        changed.transpose().map_err(|cause| self.refused(cause))
    }

    /// Puts `record` if the key is absent, or changes the one that is there: one search, in one
    /// step for every reader.
    ///
    /// # Errors
    /// [`Error::Record`]; as of [`Table::put_if_absent_or_update`].
    #[inline]
    pub fn put_if_absent_or_update<T>(
        &self,
        key: &[u8],
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

    /// Removes a key; true if it was there.
    ///
    /// # Errors
    /// As of [`Table::remove`].
    #[inline]
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        self.table.remove(key)
    }

    /// Visits every key and its record, in the table's order, until `visit` breaks.
    ///
    /// # Errors
    /// [`Error::Record`], at the first value of another length; as of [`Table::for_each`].
    pub fn for_each<B>(
        &self,
        mut visit: impl FnMut(&[u8], &R) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let flow = self.table.for_each(|key, value| match R::view(value) {
            Ok(record) => visit(key, record).map_break(Ok),
            Err(cause) => ControlFlow::Break(Err(cause)),
        })?;
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
