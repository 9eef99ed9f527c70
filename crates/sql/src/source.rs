//! Where rows come from and go to: what this crate asks of tables and files.

use std::ops::Bound;

use sapwood_schema::{Batch, Scan, Schema, SourceColumn, Type, Value};

/// What a source says went wrong, for people.
pub type SourceResult<T> = std::result::Result<T, String>;

/// The tables that statements can name.
pub trait Catalog {
    /// Opens a table. `name` has the parts between the dots: `flights`, `DIR.flights`, or the name of a file in
    /// quotes.
    ///
    /// # Errors
    /// Why there is none, and what is there.
    fn open(&self, name: &TableName) -> SourceResult<Box<dyn Source + '_>>;

    /// As [`open`](Self::open), for a statement that puts rows into a table as it reads them: their types are final.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    fn open_settled(&self, name: &TableName) -> SourceResult<Box<dyn Source + '_>> {
        self.open(name)
    }

    /// Gives sources wider types, where the last statement met values that their types lack, and answers whether it did:
    /// the statement is executed again then.
    ///
    /// # Errors
    /// Why a source cannot be read.
    fn widen(&self) -> SourceResult<bool> {
        Ok(false)
    }

    /// The tables that are there, for `show tables`: name, kind, rows if they are known.
    ///
    /// # Errors
    /// Why they cannot be listed.
    fn tables(&self) -> SourceResult<Vec<TableSummary>>;

    /// Makes a table (`create table`).
    ///
    /// # Errors
    /// Why it cannot be made.
    fn create(&self, name: &TableName, schema: Schema, engine: Option<&str>) -> SourceResult<()>;

    /// Makes a table that has rows from its first moment on (`create table ... as select`): `fill` puts them in, and
    /// answers whether it has all. Where it has not, there is no table. A catalog that others share, or that lasts, shows
    /// the table to none before.
    ///
    /// # Errors
    /// Why it cannot be made.
    fn create_filled(
        &self,
        name: &TableName,
        schema: Schema,
        engine: Option<&str>,
        fill: &mut Filling<'_>,
    ) -> SourceResult<()> {
        self.create(name, schema, engine)?;
        match self.open(name).map(|into| fill(&*into)) {
            Ok(true) => Ok(()),
            Ok(false) => self.drop_table(name),
            Err(why) => self.drop_table(name).and(Err(why)),
        }
    }

    /// Removes a table (`drop table`).
    ///
    /// # Errors
    /// Why it cannot be removed.
    fn drop_table(&self, name: &TableName) -> SourceResult<()>;

    /// Adds a nullable column to a table (`alter table ... add column`).
    ///
    /// # Errors
    /// Why it cannot be added.
    fn add_column(&self, name: &TableName, column: &str, kind: Type) -> SourceResult<()>;

    /// Gives a column of a table a wider type (`alter table ... alter column ... type`).
    ///
    /// # Errors
    /// Why it cannot have it.
    fn widen_column(&self, name: &TableName, column: &str, kind: Type) -> SourceResult<()>;

    /// Writes an answer to a file (`copy ... to`), and answers its rows.
    ///
    /// # Errors
    /// Why it cannot be written.
    fn write(&self, answer: &crate::Answer, file: &str) -> SourceResult<u64>;
}

/// Puts rows into a table, and answers whether it has put all.
pub type Filling<'f> = dyn FnMut(&dyn Source) -> bool + 'f;

/// The name of a table as a statement has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// What stands between the dots, without quotes.
    pub parts: Vec<String>,
    /// Whether it stands in single quotes, as the names of files do.
    pub is_file: bool,
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.parts.join("."))
    }
}

/// A table, in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSummary {
    /// Its name.
    pub name: String,
    /// Its engine.
    pub kind: String,
    /// About how many rows it has, if that is known.
    pub rows: Option<u64>,
    /// Its columns, in the text form of schemas.
    pub columns: String,
}

/// Rows with typed columns.
pub trait Source: Send + Sync {
    /// The columns, in their order.
    fn columns(&self) -> &[SourceColumn];

    /// The columns by which rows can be reached, in the order of the key; none if a look at all rows is the only
    /// way.
    fn key_columns(&self) -> &[usize] {
        &[]
    }

    /// About how many rows there are, if that is known.
    fn rows_estimate(&self) -> Option<u64> {
        None
    }

    /// How a request would be answered, for `explain`: `get of 3 keys`, `range of the key`, `every row`.
    fn explain(&self, request: &Request) -> String;

    /// Begins to read.
    ///
    /// # Errors
    /// Why that cannot be.
    fn scan<'a>(&'a self, request: &Request) -> SourceResult<Box<dyn Scan + 'a>>;

    /// Whether its rows stay as they are while a statement puts rows into a table. A table says no: it may be that very
    /// table, by another name.
    fn is_fixed(&self) -> bool {
        false
    }

    /// Whether rows get numbers in the order in which they are put.
    fn is_numbered(&self) -> bool {
        false
    }

    /// The way to change rows, if there is one.
    ///
    /// # Errors
    /// Why there is none.
    fn change(&self) -> SourceResult<&dyn Change> {
        Err("its rows cannot be changed".to_owned())
    }
}

/// Which columns of which rows are wanted.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The numbers of the columns; each batch has them in this order.
    pub columns: Vec<usize>,
    /// What is known of the key of every row that is wanted. A source may show others as well.
    pub keys: KeyFilter,
    /// Whether batches say how each row is named ([`Batch::ids`]).
    pub with_ids: bool,
}

/// What is known of keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeyFilter {
    /// For each of the first columns of the key, the values that it may have: one, or several (`in`).
    pub equal: Vec<Vec<Value<'static>>>,
    /// Bounds of the column behind them.
    pub range: Option<(Bound<Value<'static>>, Bound<Value<'static>>)>,
}

impl KeyFilter {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.equal.is_empty() && self.range.is_none()
    }
}

/// What an update makes of a row: the row anew, or none if it stays as it is.
pub type Changed = Result<Option<Vec<Value<'static>>>, crate::Error>;

/// Takes note of the bytes of memory that all changes of a statement need so far, and refuses more than it may take.
pub type Room<'r> = dyn FnMut(usize) -> Result<(), crate::Error> + 'r;

/// Changes of the rows of a table: each call changes all that it is to, or nothing.
pub trait Change: Sync {
    /// Begins to put new rows.
    ///
    /// # Errors
    /// Why rows cannot be put.
    fn insert(&self) -> SourceResult<Box<dyn Insertion + '_>>;

    /// Changes the rows with these names, as `change` says, which may be asked again for a row that
    /// others change meanwhile. Answers how many are changed: rows that are gone, or stay as they
    /// are, are not. What is kept of rows until all are changed needs `room`.
    ///
    /// # Errors
    /// Why that cannot be; all rows are as they were then.
    fn update(
        &self,
        ids: &[&[u8]],
        change: &mut dyn FnMut(&[Value<'_>]) -> Changed,
        room: &mut Room<'_>,
    ) -> Result<u64, ChangeError>;

    /// Removes the rows with these names that still are as wanted. Answers how many. What is kept of rows until all are
    /// removed needs `room`.
    ///
    /// # Errors
    /// Why that cannot be; all rows are there then.
    fn remove(
        &self,
        ids: &[&[u8]],
        wanted: &mut dyn FnMut(&[Value<'_>]) -> Result<bool, crate::Error>,
        room: &mut Room<'_>,
    ) -> Result<u64, ChangeError>;
}

/// New rows of a table, which are there once all of them are. Dropped before, they never were.
pub trait Insertion: Sync {
    /// Takes a row, which has a value for each column.
    ///
    /// # Errors
    /// Why it cannot be put: its key is there, or a value does not fit.
    fn row(&self, row: &[Value<'_>]) -> SourceResult<()>;

    /// Takes the rows of a batch, which has a vector for each column, in the representation of the
    /// column's type.
    ///
    /// # Errors
    /// The errors of [`row`](Self::row).
    fn batch(&self, batch: &Batch, columns: &[SourceColumn]) -> SourceResult<()> {
        for row in 0..batch.len {
            let values = batch.columns.iter().zip(columns);
            let values = values.map(|(vector, column)| vector.value(row, &column.kind));
            let values = values.collect::<Result<Vec<_>, _>>();
            self.row(&values.map_err(|error| error.to_string())?)?;
        }
        Ok(())
    }

    /// Bytes of memory that the rows take until they are put.
    fn memory(&self) -> usize {
        0
    }

    /// Puts the rows: how many.
    ///
    /// # Errors
    /// The errors of [`row`](Self::row); no row is put then.
    fn finish(self: Box<Self>) -> SourceResult<u64>;
}

/// Why rows were not changed.
#[derive(Debug)]
pub enum ChangeError {
    /// The source refuses.
    Source(String),
    /// The statement has no value for it.
    Statement(crate::Error),
}
