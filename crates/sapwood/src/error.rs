//! What can go wrong, where, and what to do next.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sapwood_aggregate::{QueryError, SyntaxError};
use sapwood_execute::Executor;

use crate::{Engine, HashEngineError, LogError, OrderedEngineError, TreeEngineError};

/// The longest name of a table, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// The result of an operation on a [`Db`](crate::Db), an [`OrderedTable`](crate::OrderedTable) or a
/// [`HashTable`](crate::HashTable).
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation was refused. Nothing was changed, unless the variant says what was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that no table can have.
    #[error(
        "table name {name:?} {why}; use 1 to {max} letters, digits, `_`, `-` or `.`, \
         beginning with a letter or a digit",
        max = NAME_BYTES_MAX
    )]
    TableName {
        /// The name given.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The table to create is there already.
    #[error("table `{name}` exists already; open it with `{}`, or choose another name", engine.opened_by())]
    TableExists {
        /// Its name.
        name: String,
        /// The engine that it has.
        engine: Engine,
    },
    /// A hash table was asked for something in the order of keys, which it does not keep.
    #[error(
        "table `{table}` is a hash table, which keeps no order: walk all of it (`Table::iter`, `Table::for_each`), or make it with `Db::create_ordered_table`"
    )]
    NoOrder {
        /// The table's name.
        table: Arc<str>,
    },
    /// Bytes are not a key of the type that was asked for.
    #[error(transparent)]
    Key(#[from] crate::key::DecodeError),
    /// The table to open or drop is not there.
    #[error("no table `{name}`; {}", known_tables(known))]
    TableMissing {
        /// The name given.
        name: String,
        /// Some of the tables that are there, in order.
        known: Vec<String>,
    },
    /// A table that a transaction changes was dropped before its commit.
    #[error("table `{table}` was dropped: the transaction changed nothing")]
    TableDropped {
        /// The name that it had.
        table: Arc<str>,
    },
    /// The table is there, with another engine than the one asked for.
    #[error("table `{name}` is {engine}{}; open it with `{}`", engine.absent(), engine.opened_by())]
    OtherEngine {
        /// Its name.
        name: String,
        /// The engine that it has.
        engine: Engine,
    },
    /// The hash table has handles in use, and what was asked needs it closed.
    #[error("table `{name}` has handles in use; drop them first, then {what} it")]
    TableInUse {
        /// Its name.
        name: String,
        /// What was to be done with it.
        what: &'static str,
    },
    /// The hash table is open in this `Db`, and what was asked needs it closed.
    #[error(
        "table `{name}` is open, and a view of one of its checkpoints needs it closed; ask a `Db` \
         that has not opened it"
    )]
    TableOpen {
        /// Its name.
        name: String,
    },
    /// The table is being loaded, and can be used once that is finished.
    #[error("table `{name}` is being loaded; it can be used once that is finished")]
    Loading {
        /// Its name.
        name: String,
    },
    /// Entries of a [`BulkLoad`](crate::BulkLoad) come in the order of their keys, each once.
    #[error(
        "a key for table `{name}` does not come behind the one before it: entries of a bulk load come in the order of \
         their keys, each key once; `put` takes any"
    )]
    KeyOrder {
        /// The name of the table.
        name: String,
    },
    /// The table has no checkpoint of the number to go back to. Nothing was closed.
    #[error("table `{name}` has no checkpoint {number}; it has {}", numbers(known))]
    CheckpointMissing {
        /// The name of the table.
        name: String,
        /// The number given.
        number: u64,
        /// The checkpoints that are there, the oldest first.
        known: Vec<u64>,
    },
    /// An ordered table's engine refused.
    #[error("table `{table}`: {cause}{}", next_step(cause))]
    OrderedEngine {
        /// The name of the table.
        table: Arc<str>,
        /// What the engine said.
        cause: OrderedEngineError,
    },
    /// A batch on an ordered table stopped: its first `done` entries are in, the others are not.
    #[error(
        "table `{table}`: the batch stopped after {done} entries, which are in: {cause}{}",
        next_step(cause)
    )]
    OrderedBatch {
        /// The name of the table.
        table: Arc<str>,
        /// How many entries of the batch are in the table.
        done: usize,
        /// What the engine said to the next one.
        cause: OrderedEngineError,
    },
    /// A hash table's engine refused.
    #[error("table `{table}`: {cause}{}", hash_next_step(cause))]
    HashEngine {
        /// The name of the table.
        table: Arc<str>,
        /// What the engine said.
        cause: HashEngineError,
    },
    /// A batch on a hash table stopped: its first `done` entries are in, the others are not.
    #[error(
        "table `{table}`: the batch stopped after {done} entries, which are in: {cause}{}",
        hash_next_step(cause)
    )]
    HashBatch {
        /// The name of the table.
        table: Arc<str>,
        /// How many entries of the batch are in the table.
        done: usize,
        /// What the engine said to the next one.
        cause: HashEngineError,
    },
    /// The tree engine refused an operation.
    #[error("table `{table}`: {cause}{}", tree_next_step(cause))]
    TreeEngine {
        /// The table's name.
        table: Arc<str>,
        /// What the engine says.
        cause: TreeEngineError,
    },
    /// The tree engine refused what concerns all tree tables: to open them, or to commit.
    #[error("{}: {cause}{}", trees_of(path.as_deref()), tree_next_step(cause))]
    Trees {
        /// Their folder, where they are opened.
        path: Option<PathBuf>,
        /// What the engine says.
        cause: TreeEngineError,
    },
    /// A table needs a feature that this program was built without. Nothing was changed.
    #[error(
        "table `{table}` needs the feature `{feature}` of the crate `sapwood`, which this program was built without; next: build it with that feature"
    )]
    Unsupported {
        /// The name of the table.
        table: Arc<str>,
        /// The feature.
        feature: &'static str,
    },
    /// A roll-up refused a schema, rows or a query.
    #[cfg(feature = "rollup")]
    #[error("table `{table}`: {cause}")]
    Rollup {
        /// The name of the table.
        table: Arc<str>,
        /// What it said.
        cause: crate::rollup::Error,
    },
    /// A schema, a row or a value does not fit the columns of a table. Nothing was changed.
    #[error("table `{table}`: {cause}")]
    Schema {
        /// The name of the table.
        table: Arc<str>,
        /// What is wrong.
        cause: crate::schema::Error,
    },
    /// Rows were asked for of a table that has no schema.
    #[error(
        "table `{table}` has no schema, and so no rows: make it with one (`OrderedTableOptions::schema`, \
         `HashTableOptions::schema`, `TreeTableOptions::schema`), or use it as bytes"
    )]
    NoSchema {
        /// The name of the table.
        table: Arc<str>,
    },
    /// A transaction met a change of what it had read, or of what it wants to change. Nothing changed.
    #[error(
        "the transaction met another change of what it read or changes: run it again, as \
         `Db::transaction` does (`Retry`)"
    )]
    Conflict,
    /// A transaction or a batch was given a table of another database. It goes on without it.
    #[error("table `{table}` is of another database: give the transaction its own tables")]
    OtherDatabase {
        /// The name of the table.
        table: Arc<str>,
    },
    /// A transaction was refused at its commit, and what it had changed by then could not be taken back:
    /// memory has a part of it. A log has nothing of it, and takes no changes.
    #[error(
        "a transaction was refused, and what it had changed in table `{table}` cannot be taken back: \
         {cause}; open the directory again, which has nothing of it"
    )]
    HalfMade {
        /// The table that refused.
        table: Arc<str>,
        /// Why.
        cause: Box<Error>,
    },
    /// The log of the database refused: to be opened, to take a change, or to make it last.
    #[error("the log in {}: {cause}{}", path.display(), log_next_step(cause))]
    Log {
        /// Its folder.
        path: PathBuf,
        /// What the log says.
        cause: LogError,
    },
    /// A folder of backups, or one of them, cannot be used.
    #[error("{}: {what}", path.display())]
    Backup {
        /// The folder, or the file in it.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// A check of all tree tables found damage.
    #[error(
        "the tree tables are corrupt: {}; bring their folder back from a copy, or save what can be read \
         (`TreeTable::for_each`)",
        problems.join("; ")
    )]
    TreesCorrupt {
        /// What is wrong, one sentence each.
        problems: Arc<[String]>,
    },
    /// A query does not fit together, objects do not have what it reads, or a figure leaves its
    /// range.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A text form of a query cannot be read.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The table has no such executor, or it cannot answer the query.
    #[error("table `{table}`: {}{why}", executor.map_or(String::new(), |executor| format!("the executor `{executor}` ")))]
    Executor {
        /// The name of the table.
        table: Arc<str>,
        /// The executor, if one was asked for.
        executor: Option<Executor>,
        /// Why not, and what to do.
        why: String,
    },
    /// A query was to be over the fields of a table that declares none.
    #[error(
        "table `{table}` declares no fields; give the query a layout (`Query::new`), or the table \
         its fields (`OrderedTableOptions::fields`, `HashTableOptions::fields`)"
    )]
    NoFields {
        /// The name of the table.
        table: Arc<str>,
    },
    /// The fields of a table cannot be written to its directory.
    #[error(
        "table `{table}`: its fields cannot be kept: {why}; say them shorter, or with each query"
    )]
    Fields {
        /// The name of the table.
        table: Arc<str>,
        /// What is wrong with their text form.
        why: &'static str,
    },
    /// A run was cancelled. A query changes nothing; of a disaggregation
    /// [`DisaggregationRun`](crate::aggregate::DisaggregationRun) says what was changed, and keeps the rest.
    #[error("table `{table}`: cancelled after {visited} visits")]
    Cancelled {
        /// The name of the table.
        table: Arc<str>,
        /// Objects, keys or records that were visited by then.
        visited: u64,
    },
    /// [`OrderedTable::check`](crate::OrderedTable::check) found a broken invariant: a bug of the
    /// engine.
    #[error(
        "table `{table}` is corrupt: {what}; stop using it, and report this with `OrderedTable::dump`"
    )]
    Corrupt {
        /// The name of the table.
        table: Arc<str>,
        /// The invariant, and where it does not hold.
        what: String,
    },
    /// [`HashTable::check`](crate::HashTable::check) found a broken invariant: a bug of the engine.
    #[error(
        "table `{table}` is corrupt: {what}; stop using it, and report this with `HashTable::stats`"
    )]
    HashCorrupt {
        /// The name of the table.
        table: Arc<str>,
        /// The invariant, and where it does not hold.
        what: String,
    },
    /// The database lives in memory alone, and what was asked needs a directory.
    #[error("the database lives in memory alone; `Db::open` keeps one in a directory")]
    NoDirectory,
    /// Another `Db` has the directory open to write, in this process or another: one at a time does
    /// ([`Db::open`](crate::Db::open)). Any number of them read it beside
    /// ([`Db::open_read_only`](crate::Db::open_read_only)).
    #[error(
        "{} is open already to be written, in this process or another, which holds its file .lock: stop that \
         program, or close its `Db` with the handles of its hash tables, and try again; to read beside it, use \
         `Db::open_read_only`",
        path.display()
    )]
    DirectoryInUse {
        /// The directory.
        path: PathBuf,
    },
    /// A writer has made and dropped tables, time and again, before all of them could be opened to be read.
    #[error(
        "{} cannot be read now: its writer makes and drops tables faster than they can be opened; try again",
        path.display()
    )]
    Outrun {
        /// The directory.
        path: PathBuf,
    },
    /// The database is open to be read only, and what was asked would change it.
    #[error("{} is open to be read only; `Db::open` opens it to be written", path.display())]
    ReadOnly {
        /// The directory.
        path: PathBuf,
    },
    /// The system refused to do something with the database's directory.
    #[error("{} cannot be {what}: {why}", path.display())]
    Directory {
        /// The file or folder.
        path: PathBuf,
        /// What was to be done with it.
        what: &'static str,
        /// The system's answer.
        kind: io::ErrorKind,
        /// The system's answer in words.
        why: Arc<str>,
    },
    /// A later version of Sapwood has written a file. It is as it should be, and is not changed.
    #[error(
        "{} was written by format {found}, and this program reads up to {known}: upgrade to the version of Sapwood that \
         wrote it, or a later one",
        path.display()
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The version of its format.
        found: u64,
        /// The last one that is known.
        known: u64,
    },
    /// The file with a table's options is not what was written.
    #[error(
        "{} is corrupt at offset {offset}: {what}; bring it back from a copy, or drop the table",
        path.display()
    )]
    StoredOptions {
        /// The file.
        path: PathBuf,
        /// At which byte of it.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
}

impl Error {
    /// Whether a transaction met another, so that it may succeed if it is run again.
    ///
    /// ```
    /// use sapwood::{Db, Error, OrderedTableOptions};
    ///
    /// let db = Db::in_memory();
    /// let table = db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// let tx = db.begin()?;
    /// tx.table(&table).add(b"k", 1)?;
    /// table.add(b"k", 1)?;
    /// assert!(tx.commit().unwrap_err().is_conflict());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is_conflict(&self) -> bool {
        match self {
            Error::Conflict => true,
            Error::TreeEngine { cause, .. } | Error::Trees { cause, .. } => {
                matches!(cause, TreeEngineError::Conflict { .. })
            }
            _ => false,
        }
    }

    /// Tells a full disk from other failures. The refused change was not made, and another may succeed
    /// once there is room; for a batch [`HashBatch`](Self::HashBatch) and
    /// [`OrderedBatch`](Self::OrderedBatch) say how much was.
    ///
    /// ```
    /// use sapwood::{Db, OrderedTableOptions};
    ///
    /// let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// match table.put(b"k", b"v") {
    ///     Err(error) if error.lacks_room() => println!("{error}"),
    ///     done => done?,
    /// }
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn lacks_room(&self) -> bool {
        let is_full = |kind: &std::io::ErrorKind| sapwood_disk::is_full(*kind);
        match self {
            Error::Log { cause: LogError::NoRoom { .. }, .. }
            | Error::HashEngine { cause: HashEngineError::Journal(_), .. }
            | Error::HashBatch { cause: HashEngineError::Journal(_), .. }
            | Error::OrderedEngine { cause: OrderedEngineError::Journal(_), .. }
            | Error::OrderedBatch { cause: OrderedEngineError::Journal(_), .. } => true,
            Error::HashEngine { cause: HashEngineError::Io { kind, .. }, .. }
            | Error::HashBatch { cause: HashEngineError::Io { kind, .. }, .. }
            | Error::TreeEngine { cause: TreeEngineError::Io { kind, .. }, .. }
            | Error::Trees { cause: TreeEngineError::Io { kind, .. }, .. } => is_full(kind),
            #[cfg(feature = "rollup")]
            Error::Rollup { cause: crate::rollup::Error::Io { kind, .. }, .. } => is_full(kind),
            _ => false,
        }
    }

    /// What the engine said, when it was the engine of an ordered table that refused.
    ///
    /// ```
    /// use sapwood::{Db, OrderedEngineError, OrderedTableOptions};
    ///
    /// let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// let error = table.put(b"", b"value").unwrap_err();
    /// assert_eq!(error.ordered_engine(), Some(&OrderedEngineError::KeyLength { len: 0 }));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn ordered_engine(&self) -> Option<&OrderedEngineError> {
        match self {
            Self::OrderedEngine { cause, .. } | Self::OrderedBatch { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// What the engine said, when it was the engine of a hash table that refused.
    ///
    /// ```
    /// use sapwood::{Db, HashEngineError, HashTableOptions};
    ///
    /// let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"name", b"not a counter")?;
    /// let error = table.add(b"name", 1).unwrap_err();
    /// assert_eq!(error.hash_engine(), Some(&HashEngineError::NotACounter { len: 13 }));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn hash_engine(&self) -> Option<&HashEngineError> {
        match self {
            Self::HashEngine { cause, .. } | Self::HashBatch { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// `what` completes "cannot be ...".
    /// What the tree engine refused, if it was it.
    ///
    /// ```
    /// # use sapwood::{Db, TreeEngineError, TreeTableOptions};
    /// # let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
    /// table.put(b"k", b"no number")?;
    /// let refused = table.add(b"k", 1).unwrap_err();
    /// assert_eq!(refused.tree_engine(), Some(&TreeEngineError::NotACounter { len: 9 }));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn tree_engine(&self) -> Option<&TreeEngineError> {
        match self {
            Self::TreeEngine { cause, .. } | Self::Trees { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// What a roll-up said, when it was one that refused.
    ///
    /// ```
    /// use sapwood::rollup::{self, Query, Schema};
    /// use sapwood::{Db, RollupTableOptions};
    ///
    /// let options = RollupTableOptions::new(Schema::new("time"));
    /// let table = Db::in_memory().create_rollup_table("t", options)?;
    /// let refused = table.query(&Query::group_by(["page"])).unwrap_err();
    /// assert!(matches!(refused.rollup(), Some(rollup::Error::Query(_))));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[cfg(feature = "rollup")]
    pub fn rollup(&self) -> Option<&crate::rollup::Error> {
        match self {
            Self::Rollup { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// What is wrong with a schema, a row or a value, if that was refused.
    ///
    /// ```
    /// use sapwood::schema::{self, Value};
    /// use sapwood::{Db, OrderedTableOptions};
    ///
    /// let db = Db::in_memory();
    /// let options = OrderedTableOptions::default().schema("day:u8, key(day)".parse().expect("a schema"));
    /// db.create_ordered_table("days", options)?;
    /// let refused = db.rows("days")?.put(&[Value::Int(256)]).unwrap_err();
    /// assert!(matches!(refused.schema(), Some(schema::Error::Value { .. })));
    /// assert_eq!(refused.to_string(), "table `days`: column `day` (u8): 256 does not fit into u8");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn schema(&self) -> Option<&crate::schema::Error> {
        match self {
            Self::Schema { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// What concerns all tree tables.
    pub(crate) fn trees(cause: TreeEngineError) -> Self {
        Self::Trees { path: None, cause }
    }

    pub(crate) fn directory(path: &Path, what: &'static str, cause: &io::Error) -> Self {
        let why = cause.to_string().into();
        Self::Directory { path: path.to_owned(), what, kind: cause.kind(), why }
    }
}

/// How many names an error lists.
pub(crate) const KNOWN_COUNT: usize = 8;

fn known_tables(known: &[String]) -> String {
    match known {
        [] => "there is none yet; `Db::create_ordered_table`, `Db::create_hash_table`, `Db::create_tree_table` and `Db::create_rollup_table` make them"
            .to_owned(),
        some if some.len() < KNOWN_COUNT => format!("there are: {}", some.join(", ")),
        some => format!("there are: {}, ...", some.join(", ")),
    }
}

fn numbers(known: &[u64]) -> String {
    match known {
        [] => "none".to_owned(),
        some => some.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// What only the facade knows to say: the option by its name here.
fn next_step(cause: &OrderedEngineError) -> &'static str {
    match cause {
        OrderedEngineError::Journal(_) => "; make room on the disk, and try again",
        OrderedEngineError::OutOfMemory { budget: u64::MAX, .. } => "",
        OrderedEngineError::OutOfMemory { .. } => " (`OrderedTableOptions::memory_budget`)",
        _ => "",
    }
}

fn trees_of(path: Option<&Path>) -> String {
    match path {
        Some(path) => format!("the tree tables in {}", path.display()),
        None => "the tree tables".to_owned(),
    }
}

fn tree_next_step(cause: &TreeEngineError) -> &'static str {
    match cause {
        TreeEngineError::OutOfMemory { .. } => " (`DbOptions::tree_limit`)",
        TreeEngineError::Conflict { .. } => " (`Db::begin_on`)",
        TreeEngineError::ReadOnly => " (`Db::open`)",
        TreeEngineError::Corrupt { .. } | TreeEngineError::CorruptFile { .. } => {
            "; bring the folder back from a copy"
        }
        _ => "",
    }
}

fn log_next_step(cause: &LogError) -> &'static str {
    match cause {
        // Damage says so itself.
        LogError::CorruptFile { .. }
        | LogError::Newer { .. }
        | LogError::Io { kind: io::ErrorKind::Unsupported, .. }
        | LogError::Table(_)
        | LogError::Gone { .. } => "",
        LogError::NoRoom { .. } => {
            "; make room on the disk, and try again: the database need not be opened anew"
        }
        LogError::Contents { .. } => "; the log keeps all changes until a checkpoint succeeds",
        _ => {
            "; tables can be read on, and take no changes: mend the disk, and open the directory again; \
             of the changes behind the last sync it has the first ones, all, some or none"
        }
    }
}

/// The option, or the step, that only the facade knows, for hash tables.
fn hash_next_step(cause: &HashEngineError) -> &'static str {
    match cause {
        HashEngineError::Journal(_) => "; make room on the disk, and try again",
        HashEngineError::OutOfMemory { budget: u64::MAX, .. } => "",
        HashEngineError::OutOfMemory { .. } => " (`HashTableOptions::memory_budget`, `Db::open`)",
        HashEngineError::ValueLength { min, max, .. } if min < max => {
            " (`HashTableOptions::page_bytes`)"
        }
        HashEngineError::NoDirectory | HashEngineError::ReadOnly => " (`Db::open`)",
        HashEngineError::CheckpointDamaged { .. } => {
            " (`Db::hash_table_at`; `Db::hash_table_view` looks at it, `Db::checkpoints` lists all)"
        }
        HashEngineError::View => " (`Db::hash_table_at`)",
        HashEngineError::Corrupt { .. } => {
            "; bring the file back from a copy, go back to a checkpoint that is whole \
             (`Db::checkpoints`, `Db::hash_table_at`), or drop the table"
        }
        _ => "",
    }
}
