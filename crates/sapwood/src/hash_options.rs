//! What can be chosen when a hash table is made.

use sapwood_hashlog as engine;

use crate::schema::Schema;
use crate::{ColdReads, Compaction, RecordLayout, aggregate};

/// Choices for one [`HashTable`](crate::HashTable). A table in a directory keeps them; layout and
/// page size stay for good, the others can be changed when it is opened again
/// ([`Db::hash_table_with`](crate::Db::hash_table_with)).
///
/// ```
/// use sapwood::{Db, HashTableOptions, RecordLayout};
///
/// let db = Db::in_memory();
/// let options = HashTableOptions::default().layout(RecordLayout::Fixed8).memory_budget(64 << 20);
/// let views = db.create_hash_table("views", options)?;
/// views.add(&7_u64.to_le_bytes(), 1)?;
/// assert_eq!(views.stats().budget_bytes, Some(64 << 20));
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct HashTableOptions {
    pub(crate) layout: RecordLayout,
    pub(crate) page_bytes: usize,
    pub(crate) memory_budget: Option<u64>,
    pub(crate) mutable_share: f64,
    pub(crate) expected_entries: u64,
    pub(crate) cold_reads: ColdReads,
    pub(crate) read_cache: u64,
    pub(crate) checkpoints_kept: usize,
    pub(crate) compaction: Option<Compaction>,
    pub(crate) fields: Option<aggregate::Layout>,
    pub(crate) schema: Option<Schema>,
}

impl Default for HashTableOptions {
    fn default() -> Self {
        Self::of(&engine::Options::default(), None)
    }
}

impl HashTableOptions {
    /// How long keys and values are.
    ///
    /// Default: [`RecordLayout::Variable`]. Choose [`RecordLayout::Fixed8`] where both always have 8 bytes,
    /// such as counters by number: it spares 8 bytes a record and changes values by single atomic
    /// instructions. It cannot be changed later.
    ///
    /// ```
    /// # use sapwood::{ColdReads, Db, HashTableOptions, RecordLayout};
    /// let options = HashTableOptions::default().layout(RecordLayout::Fixed8);
    /// let table = Db::in_memory().create_hash_table("t", options)?;
    /// assert_eq!(table.layout(), RecordLayout::Fixed8);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn layout(mut self, layout: RecordLayout) -> Self {
        self.layout = layout;
        self
    }

    /// Bytes of a page of the log, the unit in which it is written to the disk and leaves memory:
    /// a power of two from 64 B to 32 MiB. A record must fit into one.
    ///
    /// Default: 2 MiB, the size of a huge page. Make it larger for larger values, and smaller for
    /// a memory budget of a few MiB, which should hold a dozen pages beside the index. It cannot
    /// be changed later.
    ///
    /// ```
    /// # use sapwood::{ColdReads, Db, HashTableOptions, RecordLayout};
    /// let options = HashTableOptions::default().page_bytes(64 << 10);
    /// let table = Db::in_memory().create_hash_table("t", options)?;
    /// table.put(b"k", &[0; 60_000])?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn page_bytes(mut self, bytes: usize) -> Self {
        self.page_bytes = bytes;
        self
    }

    /// The most memory the table may map from the system, in bytes, its index included.
    ///
    /// Default: no limit. With a directory, what does not fit lies on the disk alone. Without one,
    /// reaching the budget answers
    /// [`HashEngineError::OutOfMemory`](crate::HashEngineError::OutOfMemory) and loses nothing.
    ///
    /// ```
    /// # use sapwood::{ColdReads, Db, HashTableOptions, RecordLayout};
    /// let options = HashTableOptions::default().memory_budget(64 << 20);
    /// let table = Db::in_memory().create_hash_table("t", options)?;
    /// assert_eq!(table.stats().budget_bytes, Some(64 << 20));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = Some(bytes);
        self
    }

    /// The share of the log's memory, from 0.0 to 1.0, in which values are changed in place; those
    /// in the rest are copied to the tail of the log when they change.
    ///
    /// Default: 0.9. It matters only to a table with a directory and a budget. Lower it where keys
    /// are read far more often than changed, and reading from the disk is what costs.
    ///
    /// ```
    /// # use sapwood::{ColdReads, Db, HashTableOptions, RecordLayout};
    /// let options = HashTableOptions::default().mutable_share(0.5);
    /// let table = Db::in_memory().create_hash_table("t", options)?;
    /// # drop(table);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn mutable_share(mut self, share: f64) -> Self {
        self.mutable_share = share;
        self
    }

    /// How many entries the index is sized for when the table is made.
    ///
    /// Default: 0. The index grows while the table is in use; set it to save the growing. Its
    /// buckets, 11 to 22 bytes for each entry, are written at once; more than the budget or the
    /// machine holds are refused.
    ///
    /// ```
    /// # use sapwood::{ColdReads, Db, HashTableOptions, RecordLayout};
    /// let options = HashTableOptions::default().expected_entries(100_000);
    /// let table = Db::in_memory().create_hash_table("t", options)?;
    /// # drop(table);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn expected_entries(mut self, count: u64) -> Self {
        self.expected_entries = count;
        self
    }

    /// What becomes of a record that was read from the disk.
    ///
    /// Default: [`ColdReads::CopyToTail`], so that the next read finds it in memory. Choose
    /// [`ColdReads::Stay`] where reads seldom come back to the same keys, or must not lengthen the log:
    /// copies cost log space. What stays is kept a while in a [read cache](Self::read_cache), if there is one.
    ///
    /// ```
    /// # use sapwood::{ColdReads, Db, HashTableOptions, RecordLayout};
    /// let options = HashTableOptions::default().cold_reads(ColdReads::Stay);
    /// let table = Db::in_memory().create_hash_table("t", options)?;
    /// # drop(table);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn cold_reads(mut self, cold_reads: ColdReads) -> Self {
        self.cold_reads = cold_reads;
        self
    }

    /// Bytes of memory, of the budget, for records that were lately read from the disk, where these stay
    /// there ([`ColdReads::Stay`]).
    ///
    /// Default: 0, none. It pays where some keys are read more than others and little is written: at a fourth
    /// of the memory it finds most of what an even larger one would. Where all keys are read alike it costs a
    /// read a twentieth of processor time. Of no use where reads are copied to the tail.
    ///
    /// ```
    /// # use sapwood::{ColdReads, Db, HashTableOptions};
    /// let options =
    ///     HashTableOptions::default().memory_budget(64 << 20).cold_reads(ColdReads::Stay).read_cache(8 << 20);
    /// let table = Db::in_memory().create_hash_table("t", options)?;
    /// assert_eq!(table.stats().read_cache_bytes, 0, "no record lies on a disk");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn read_cache(mut self, bytes: u64) -> Self {
        self.read_cache = bytes;
        self
    }

    /// How many checkpoints the directory keeps, the newest included; at least 1.
    ///
    /// Default: 2. Raise it to be able to go back further
    /// ([`Db::hash_table_at`](crate::Db::hash_table_at)); each keeps the log that it covers.
    ///
    /// ```
    /// # use sapwood::{ColdReads, Db, HashTableOptions, RecordLayout};
    /// let options = HashTableOptions::default().checkpoints_kept(5);
    /// let table = Db::in_memory().create_hash_table("t", options)?;
    /// # drop(table);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn checkpoints_kept(mut self, count: usize) -> Self {
        self.checkpoints_kept = count;
        self
    }

    /// When a table in a directory gives disk space back by itself: what is still in use moves out
    /// of the oldest part of the log, by a thread of the table's own, while all others go on.
    /// `None`: on request alone ([`HashTable::compact`](crate::HashTable::compact)), and without
    /// a thread.
    ///
    /// Default: [`Compaction::default`]: from 256 MiB of log on, once half of it is garbage, so that
    /// files take up to about twice what is live. Lower the share where disk space is short, for
    /// more to be moved. Files go once no checkpoint that is kept needs them.
    ///
    /// ```
    /// use sapwood::{Compaction, HashTableOptions};
    ///
    /// let tight = Compaction { garbage_share: 0.25, ..Compaction::default() };
    /// let options = HashTableOptions::default().compaction(tight);
    /// let on_request = HashTableOptions::default().compaction(None);
    /// # assert_ne!(options, on_request);
    /// ```
    #[must_use]
    pub fn compaction(mut self, compaction: impl Into<Option<Compaction>>) -> Self {
        self.compaction = compaction.into();
        self
    }

    /// Which fields objects have, for queries ([`HashTable::query`](crate::HashTable::query)).
    /// Nothing that is put is checked against it.
    ///
    /// Default: none; each query says it.
    ///
    /// ```
    /// use sapwood::aggregate::Aggregate;
    /// use sapwood::{Db, HashTableOptions};
    ///
    /// let options = HashTableOptions::default().fields("hits:i64le".parse()?);
    /// let hits = Db::in_memory().create_hash_table("hits", options)?;
    /// hits.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// let query = hits.query()?.aggregates(Aggregate::list("sum(hits)")?);
    /// assert_eq!(hits.aggregate(&query)?.value(0, "sum(hits)")?, &7.into());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn fields(mut self, fields: aggregate::Layout) -> Self {
        self.fields = Some(fields);
        self
    }

    /// The typed columns of the table, which its entries are rows of ([`Rows`](crate::Rows)). The table keeps
    /// them. What is put as bytes is not checked against them; a table of
    /// [`RecordLayout::Fixed8`] has none.
    ///
    /// Default: none, entries are bytes.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// let schema = "sensor:u32, celsius:f32?, key(sensor)".parse().expect("a schema");
    /// let db = Db::in_memory();
    /// let table = db.create_hash_table("t", HashTableOptions::default().schema(schema))?;
    /// db.rows("t")?.put(&[7.into(), 21.5.into()])?;
    /// assert_eq!(table.schema().expect("it was made with one").columns().len(), 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Those of an engine, and of its fields.
    pub(crate) fn of(engine: &engine::Options, fields: Option<aggregate::Layout>) -> Self {
        Self {
            layout: engine.layout,
            page_bytes: engine.page_bytes,
            memory_budget: engine.memory_budget,
            mutable_share: engine.mutable_share,
            expected_entries: engine.expected_entries,
            cold_reads: engine.cold_reads,
            read_cache: engine.read_cache,
            checkpoints_kept: engine.checkpoints_kept,
            compaction: engine.compaction,
            fields,
            schema: None,
        }
    }

    pub(crate) fn engine(&self) -> engine::Options {
        let mut options = engine::Options::default();
        options.layout = self.layout;
        options.page_bytes = self.page_bytes;
        options.memory_budget = self.memory_budget;
        options.mutable_share = self.mutable_share;
        options.expected_entries = self.expected_entries;
        options.cold_reads = self.cold_reads;
        options.read_cache = self.read_cache;
        options.checkpoints_kept = self.checkpoints_kept;
        options.compaction = self.compaction;
        options
    }
}
