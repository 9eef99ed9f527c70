//! Sapwood: hot, fast-changing keyed state in tables of bytes, outside every managed heap.
//!
//! A [`Db`] holds named tables, each from byte keys to byte values; any number of threads read and
//! change it at once. Values are read where they lie, and changed in place. Typed
//! keys that sort as their values do are made by [`key`].
//!
//! ```
//! use sapwood::{Db, Direction, OrderedTableOptions, key};
//!
//! let db = Db::in_memory();
//! let delays = db.create_ordered_table("delays", OrderedTableOptions::default())?;
//!
//! // Count minutes per (carrier, destination): one search, in place once the key is there.
//! for (carrier, destination, minutes) in [("UA", "IAH", 11_i64), ("UA", "ORD", 12), ("UA", "IAH", 20)] {
//!     let key = key::encode(&(carrier, destination));
//!     delays.add(&key, minutes)?;
//! }
//! assert_eq!(delays.get_counter(&key::encode(&("UA", "IAH")))?, Some(31));
//!
//! // All destinations of a carrier, in order, without creating anything per entry.
//! let united = key::prefix_range(&key::encode(&"UA"));
//! let mut entries = 0;
//! delays.scan(united, Direction::Ascending, |_key, _value| entries += 1)?;
//! assert_eq!(entries, 2);
//! # Ok::<(), sapwood::Error>(())
//! ```
//!
//! # In your program
//!
//! The crate is in no registry yet: depend on its repository, or on a checkout of it.
//!
//! ```toml
//! [dependencies]
//! sapwood = { git = "<URL of your copy>" }
//! # or
//! sapwood = { path = "../sapwood/crates/sapwood" }
//! ```
//!
//! Tables of three kinds, the log, transactions, backups and aggregates are always there. The rest is off
//! until it is asked for:
//!
//! | feature | adds | crates |
//! |---|---|---|
//! | none | | 44 |
//! | `derive` | [`#[derive(Row)]`](macro@row::Row) | +1 |
//! | `documents` | aggregates over fields of JSON and MessagePack ([`aggregate::Read::Json`]) | +7 |
//! | `serde` | `serde::Serialize` for [`aggregate::Answer`] and its parts, for [`OrderedStats`], [`HashStats`], [`TableStats`], [`DbStats`] and [`CheckpointInfo`] | +3 |
//! | `sql` | [`Db::sql`] and the module [`sql`] | +4 |
//! | `files` | statements over files of CSV, JSON and MessagePack, and the module [`files`], with `sql` | +29 |
//! | `columnar` | Parquet and Arrow among those files, with `files` | +58 |
//! | `rollup` | [`RollupTable`] and the module [`rollup`] | +23 |
//! | `arrow` | roll-ups that take and answer Arrow batches, with `rollup` | +43 |
//! | `parquet` | facts of roll-ups as Parquet files, with `arrow` | +64 |
//!
//! A directory with a roll-up table does not open without `rollup` ([`Error::Unsupported`]).
//!
//! `examples` beside the source has programs that run: `backup`, `counters`, `departures`, `figures`, `leaderboard`,
//! `secondary_index`, `sessions`, and on tokio `csv_service`, `tasks` and `views`. How to call Sapwood from tokio stands
//! in `docs/async.md` of the repository: tables in memory in place, what may wait for a disk in `spawn_blocking`.
//!
//! # Three engines
//!
//! | table | keys | lasts | for |
//! |---|---|---|---|
//! | [`OrderedTable`] | in order | by the log; fits in memory | scans both ways beside many writers, updates in place |
//! | [`HashTable`] | by hash | by the log; outgrows memory | single keys at the highest speed |
//! | [`TreeTable`] | in order | by the log | data that opens at once, and is locked by its [transactions](Transaction) |
//!
//! ```
//! use sapwood::{Db, HashTableOptions, key};
//!
//! # let directory = tempfile::tempdir().expect("a directory for the example");
//! # let path = directory.path();
//! let db = Db::open(path)?;
//! let arrivals = db.create_hash_table("arrivals", HashTableOptions::default())?;
//! let hour = |airport, hour| key::encode(&(airport, hour));
//! arrivals.add_many(&[(hour("IAH", 8_u8), 1), (hour("ORD", 9), 1), (hour("IAH", 8), 1)])?;
//! assert_eq!(arrivals.get_counter(&hour("IAH", 8))?, Some(2));
//! drop(arrivals);
//! db.close()?;
//!
//! let arrivals = Db::open(path)?.hash_table("arrivals")?;
//! assert_eq!(arrivals.get_counter(&hour("IAH", 8))?, Some(2));
//! # Ok::<(), sapwood::Error>(())
//! ```
//!
//! Several tables, of any kind, change together, or not at all, in a [`Transaction`] or a [`Batch`]:
//!
//! ```
//! use sapwood::{Db, HashTableOptions, TreeTableOptions};
//!
//! # let directory = tempfile::tempdir().expect("a directory for the example");
//! # let path = directory.path();
//! let db = Db::open(path)?;
//! let stock = db.create_hash_table("stock", HashTableOptions::default())?;
//! let orders = db.create_tree_table("orders", TreeTableOptions::default())?;
//! stock.add(b"oak", 3)?;
//! db.transaction(|tx| {
//!     tx.table(&stock).add(b"oak", -1)?;
//!     tx.table(&orders).put(b"2026-11-01/1", b"oak")
//! })?;
//! assert_eq!(stock.get_counter(b"oak")?, Some(2));
//! # Ok::<(), sapwood::Error>(())
//! ```
//!
//! A fourth kind has no keys: a [`RollupTable`] folds rows of event streams into facts, and answers
//! queries meanwhile ([`rollup`]).
//!
//! Entries are bytes, or rows of typed columns ([`schema`]): a table that is made with a
//! [`Schema`](schema::Schema) keeps it, and is read and changed by [`Rows`].
//!
//! All of them are one type, [`Table`], whose page has the verbs; [`AnyTable`] is one whose engine is known at run
//! time, and [`TransactionTable`] one as a transaction sees it.
//!
//! Names come in threes: [`OrderedTableOptions`], [`HashTableOptions`] and [`TreeTableOptions`];
//! [`OrderedStats`], [`HashStats`] and [`TreeStats`]; [`OrderedEngineError`], [`HashEngineError`] and
//! [`TreeEngineError`]. The last are what an engine refuses; operations answer [`Error`], which holds
//! one of them beside the name of the table.
//!
//! # Figures
//!
//! [`aggregate`] answers questions about many objects (entries, a key and a value each) without
//! fetching them, and distributes totals back over them.
//!
//! # Durability
//!
//! All tables of a `Db` in a directory ([`Db::open`]) are there again after the end of the process,
//! however that comes, with every change that was made; after a power loss, as
//! [`DbOptions::durability`] says: by default without those of the last 100 ms. All tables have one log, so
//! that what is left of them is one prefix of what happened. Checkpoints, taken while changes go on, bound
//! what opening has to read. A disk that fails or is full leaves tables that can be read, and errors that
//! say so ([`Error::Log`]).
//!
//! [`OrderedTableOptions::volatile`] is for an ordered table that need not last, and
//! [`DbOptions::without_log`] for loading many entries at once.
//!
//! # What is absent
//!
//! No files and no threads for tables in memory, but the threads that a query is told to use while
//! it runs. A database in a directory has a thread that writes checkpoints, and one that syncs the log. Each hash table in a directory starts up to 64 threads when it first needs them, which
//! wait for the disk, and one that compacts ([`HashTableOptions::compaction`]); they end with the
//! last handle of the table and its `Db`. No randomness but for the number that tells the files of
//! a table in a directory from those of another, and no clock but for telling how long a query
//! took: the same changes in the same order give the same contents.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod aggregate;
mod any_table;
mod backup;
mod bulk_load;
mod db;
mod db_log;
mod db_options;
mod directory;
mod engine;
mod error;
mod formats;
#[cfg(fuzzing)]
pub mod fuzzing;
mod hash_options;
mod hash_table;
mod home;
#[cfg(feature = "files")]
pub use sapwood_files as files;
pub use sapwood_schema::key;
mod key_versions;
mod log_reader;
#[cfg(not(feature = "rollup"))]
mod no_rollups;
#[cfg(not(feature = "rollup"))]
pub(crate) use no_rollups::RollupTable;
mod ordered_options;
mod ordered_table;
#[cfg(feature = "rollup")]
pub mod rollup;
#[cfg(feature = "rollup")]
mod rollup_options;
#[cfg(feature = "rollup")]
mod rollup_table;
pub mod row;
mod rows;
pub mod schema;
#[cfg(feature = "sql")]
pub mod sql;
mod stored_options;
mod table;
mod transaction;
mod tree_options;
mod tree_table;
mod value;

pub use any_table::{Any, AnyTable, TableRef};
pub use backup::{BackupInfo, BackupProgress, Backups};
pub use bulk_load::BulkLoad;
pub use db::{
    CheckedTable, Db, DbCheck, DbStats, Problem, Salvage, SalvagedTable, StoredCheckpoint, TreePool,
};
pub use db_log::{Changes, Lasting, LogStats};
pub use db_options::{DbOptions, RecoveryProgress};
pub use engine::Engine;
pub use error::{Error, Result};
pub use hash_options::HashTableOptions;
pub use hash_table::{Hash, HashSnapshot, HashTable};
pub use log_reader::LogReader;
pub use ordered_options::OrderedTableOptions;
pub use ordered_table::{Ordered, OrderedTable};
#[cfg(feature = "rollup")]
pub use rollup_options::RollupTableOptions;
#[cfg(feature = "rollup")]
pub use rollup_table::{RollupTable, RollupWriter};
pub use row::Row;
pub use rows::{AsRow, ColumnId, KeyPart, RowKind, RowPrefix, RowRange, RowRef, Rows, Values};
pub use sapwood_chunkmap::{
    Compute, Computed, Direction, Error as OrderedEngineError, KEY_BYTES_MAX, KeyRange,
    OrderedStats, Upsert, VALUE_BYTES_MAX,
};
pub use sapwood_disk::DiskReads;
pub use sapwood_hashlog::{
    CheckpointInfo, ColdReads, Compacted, Compaction, Cut, Error as HashEngineError, HashStats,
    Layout as RecordLayout,
};
pub use sapwood_ptree::{
    CheckReport as TreeCheck, ClassReport as TreeHeapClass, Commit, Durability,
    Error as TreeEngineError, HeapReport as TreeHeap, PoolInfo as TreePoolInfo,
    Salvage as TreeSalvage, SalvagedTree, TreeKind,
};
pub use sapwood_wal::{
    Error as LogError, Frames as LogFrames, InspectedTable as LoggedTable,
    Inspection as LogInspection, LogChange, LogRecord,
};
pub use table::{
    Entry, KeyEntry, Keyed, Keys, Range, Sorted, Stored, Table, TableStats, TreePoolStats,
    TreeStats, Visit,
};
pub use transaction::{Batch, InTransaction, Retry, Transaction, TransactionTable};
pub use tree_options::TreeTableOptions;
pub use tree_table::{Tree, TreeTable};
pub use value::ValueMut;

/// Does what the first database of a process does for the process, once: on Linux, registering for the fence that
/// readers are spared. The system takes some 10 ms for that once there are other threads, and no time before. So a
/// short program calls it at its beginning; others need not.
///
/// ```
/// sapwood::prepare_process();
/// let db = sapwood::Db::in_memory();
/// # drop(db);
/// ```
pub fn prepare_process() {
    sapwood_chunkmap::prepare_process();
}

/// The README's examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;

/// Those of the page on asynchronous programs do.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/async.md")]
struct AsyncExamples;
