//! What can be chosen when an ordered table is made.

use std::sync::Arc;

use sapwood_chunkmap::ChunkMap;

use crate::schema::Schema;
use crate::{Error, Result, aggregate};

/// Choices for one ordered [`OrderedTable`](crate::OrderedTable), made once, when it is created.
///
/// How memory is mapped is none of them: a table begins with 16 KiB on small pages, takes larger
/// blocks as it grows, up to 2 MiB on huge pages, and
/// [`OrderedTable::trim`](crate::OrderedTable::trim) makes it small again.
///
/// ```
/// use sapwood::{Db, OrderedTableOptions};
///
/// let db = Db::in_memory();
/// let options = OrderedTableOptions::default().memory_budget(64 << 20);
/// let sessions = db.create_ordered_table("sessions", options)?;
/// assert_eq!(sessions.stats().budget_bytes, Some(64 << 20));
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedTableOptions {
    pub(crate) memory_budget: Option<u64>,
    pub(crate) chunk_entries: usize,
    pub(crate) volatile: bool,
    pub(crate) fields: Option<aggregate::Layout>,
    pub(crate) schema: Option<Schema>,
}

impl Default for OrderedTableOptions {
    fn default() -> Self {
        let engine = sapwood_chunkmap::Options::default();
        Self {
            memory_budget: engine.memory_budget,
            chunk_entries: engine.chunk_entries,
            volatile: false,
            fields: None,
            schema: None,
        }
    }
}

impl OrderedTableOptions {
    /// The most memory the table may map from the system, in bytes.
    ///
    /// Default: no limit. Set it for every table whose size others decide: reaching it answers
    /// [`OrderedEngineError::OutOfMemory`](crate::OrderedEngineError::OutOfMemory) and loses
    /// nothing, where a process without a limit is killed.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// let options = OrderedTableOptions::default().memory_budget(64 << 20);
    /// let table = Db::in_memory().create_ordered_table("t", options)?;
    /// assert_eq!(table.stats().budget_bytes, Some(64 << 20));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
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
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// let options = OrderedTableOptions::default().chunk_entries(1_024);
    /// let table = Db::in_memory().create_ordered_table("t", options)?;
    /// # drop(table);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn chunk_entries(mut self, count: usize) -> Self {
        self.chunk_entries = count;
        self
    }

    /// The table ends with the process, also in a database with a directory: its changes are not
    /// logged, and no checkpoint has it. In a database in memory this changes nothing.
    ///
    /// Default: it is in the log of the database, and there when the directory is opened again.
    ///
    /// ```
    /// use sapwood::{Db, OrderedTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let names = db.create_ordered_table("names", OrderedTableOptions::default())?;
    /// let latest = db.create_ordered_table("latest", OrderedTableOptions::default().volatile())?;
    /// names.put(b"ada", b"Ada Lovelace")?;
    /// latest.put(b"ada", b"online")?; // until the process ends
    /// # drop((names, latest, db));
    ///
    /// let db = Db::open(directory.path())?;
    /// assert_eq!(db.table_names(), ["names"]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn volatile(mut self) -> Self {
        self.volatile = true;
        self
    }

    /// Which fields objects have, for queries
    /// ([`OrderedTable::query`](crate::OrderedTable::query)). Nothing that is put is checked
    /// against it.
    ///
    /// Default: none; each query says it.
    ///
    /// ```
    /// use sapwood::aggregate::Aggregate;
    /// use sapwood::{Db, OrderedTableOptions};
    ///
    /// let fields = "pieces:u32le, euros:f64le@4".parse()?;
    /// let stock = Db::in_memory().create_ordered_table("stock", OrderedTableOptions::default().fields(fields))?;
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

    /// The typed columns of the table, which its entries are rows of ([`Rows`](crate::Rows)). The table keeps
    /// them. What is put as bytes is not checked against them.
    ///
    /// Default: none, entries are bytes.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// let schema = "sensor:u32, celsius:f32?, key(sensor)".parse().expect("a schema");
    /// let db = Db::in_memory();
    /// let table = db.create_ordered_table("t", OrderedTableOptions::default().schema(schema))?;
    /// db.rows("t")?.put(&[7.into(), 21.5.into()])?;
    /// assert_eq!(table.schema().expect("it was made with one").columns().len(), 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// An empty map.
    pub(crate) fn new_map(&self, table: &Arc<str>) -> Result<ChunkMap> {
        let mut engine = sapwood_chunkmap::Options::default();
        engine.memory_budget = self.memory_budget;
        engine.chunk_entries = self.chunk_entries;
        ChunkMap::with_options(engine)
            .map_err(|cause| Error::OrderedEngine { table: Arc::clone(table), cause })
    }
}
