//! What can be chosen when a database or an ordered table is made.

use crate::{HashTableOptions, aggregate};

/// Choices for a whole [`Db`](crate::Db).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    pub(crate) table: TableOptions,
    pub(crate) hash_table: HashTableOptions,
}

impl Options {
    /// What [`Db::open_or_create`](crate::Db::open_or_create) gives a new table.
    ///
    /// Default: `TableOptions::default()`. Change it when tables are made by name alone, and
    /// all of them should have, say, a memory budget.
    #[must_use]
    pub fn table(mut self, options: TableOptions) -> Self {
        self.table = options;
        self
    }

    /// What [`Db::open_or_create_hash_table`](crate::Db::open_or_create_hash_table) gives a new
    /// table.
    ///
    /// Default: `HashTableOptions::default()`. Change it as you would [`table`](Self::table).
    #[must_use]
    pub fn hash_table(mut self, options: HashTableOptions) -> Self {
        self.hash_table = options;
        self
    }
}

/// Choices for one ordered [`Table`](crate::Table), made once, when it is created.
///
/// How memory is mapped is none of them: a table begins with 16 KiB on small pages, takes larger
/// blocks as it grows, up to 2 MiB on huge pages, and [`Table::trim`](crate::Table::trim) makes it
/// small again.
///
/// ```
/// use sapwood::{Db, TableOptions};
///
/// let db = Db::in_memory();
/// let options = TableOptions::default().memory_budget(64 << 20);
/// let sessions = db.create_table("sessions", options)?;
/// assert_eq!(sessions.stats().budget_bytes, Some(64 << 20));
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOptions {
    pub(crate) memory_budget: Option<u64>,
    pub(crate) chunk_entries: usize,
    pub(crate) fields: Option<aggregate::Layout>,
}

impl Default for TableOptions {
    fn default() -> Self {
        let engine = sapwood_chunkmap::Options::default();
        Self {
            memory_budget: engine.memory_budget,
            chunk_entries: engine.chunk_entries,
            fields: None,
        }
    }
}

impl TableOptions {
    /// The most memory the table may map from the system, in bytes.
    ///
    /// Default: no limit. Set it for every table whose size others decide: reaching it answers
    /// [`EngineError::OutOfMemory`](crate::EngineError::OutOfMemory) and loses nothing, where
    /// a process without a limit is killed.
    #[must_use]
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = Some(bytes);
        self
    }

    /// The most entries in the sorted part of a chunk, the unit in which an ordered table is
    /// searched, split and merged; a count from 2 to 4,096.
    ///
    /// Default: 512. Larger chunks make scans and look-ups in a table that is mostly read a
    /// little faster and put more work into each split; smaller ones do the opposite. Measure
    /// with your keys before you change it.
    #[must_use]
    pub fn chunk_entries(mut self, count: usize) -> Self {
        self.chunk_entries = count;
        self
    }

    /// Which fields objects have, for queries ([`Table::query`](crate::Table::query)). Nothing that
    /// is put is checked against it.
    ///
    /// Default: none; each query says it.
    ///
    /// ```
    /// use sapwood::aggregate::Aggregate;
    /// use sapwood::{Db, TableOptions};
    ///
    /// let fields = "pieces:u32le, euros:f64le@4".parse()?;
    /// let stock = Db::in_memory().create_table("stock", TableOptions::default().fields(fields))?;
    /// stock.put(b"acorn", &[&90_u32.to_le_bytes()[..], &1.5_f64.to_le_bytes()].concat())?;
    /// let query = stock.query()?.aggregates(Aggregate::list("sum(pieces), sum(euros)")?);
    /// assert_eq!(stock.aggregate(&query)?.value(0, "sum(pieces)")?, &90.into());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn fields(mut self, fields: aggregate::Layout) -> Self {
        self.fields = Some(fields);
        self
    }
}
