//! SQL over the tables of a database, and over any other rows.
//!
//! [`Db::sql`](crate::Db::sql) executes statements over the tables of a database. A table with a
//! [schema](crate::schema) has its columns; a roll-up has the columns of its facts; any other has `key` and `value`, as bytes. Conditions of the columns
//! of a key become gets and ranges; every other `select` looks at all rows, by several threads.
//!
//! ```
//! use sapwood::sql::Outcome;
//! use sapwood::Db;
//!
//! let db = Db::in_memory();
//! db.sql("create table flights (carrier text, flight int, delay int, primary key (carrier, flight))")?;
//! db.sql("insert into flights values ('UA', 1545, 11), ('UA', 1714, 20), ('AA', 1141, null)")?;
//! let outcome = db.sql("select carrier, count(*), avg(delay) as late from flights group by 1 order by late")?;
//! let Outcome::Rows(answer) = outcome else { unreachable!("a select has rows") };
//! assert_eq!(answer.len(), 2);
//! assert_eq!(answer.value(0, 2)?, 15.5.into());
//! # Ok::<(), sapwood::sql::Error>(())
//! ```
//!
//! # Files
//!
//! With the feature `files` a name in quotes is a file: CSV, JSON, MessagePack, and with `columnar` Parquet and Arrow,
//! packed by gzip or Zstandard or not. A pattern (`'logs/*.csv'`) and a folder are many files as one table.
//!
#![cfg_attr(feature = "files", doc = "```")]
#![cfg_attr(not(feature = "files"), doc = "```ignore")]
//! # use sapwood::Db;
//! # let folder = tempfile::tempdir().expect("a directory for the example");
//! # std::env::set_current_dir(folder.path()).expect("it is there");
//! std::fs::write("flights.csv", "carrier,delay\nUA,11\nAA,\nUA,20\n").expect("room");
//! let db = Db::in_memory();
//! db.sql("create table late as select carrier, avg(delay) as late from 'flights.csv' group by 1")?;
//! db.sql("insert into late select 'all', avg(delay) from 'fl*.csv'")?;
//! db.sql("copy (select * from late where late > 10) to 'late.jsonl'")?;
//! assert_eq!(
//!     std::fs::read_to_string("late.jsonl").expect("it is there"),
//!     "{\"carrier\":\"UA\",\"late\":15.5}\n{\"carrier\":\"all\",\"late\":15.5}\n"
//! );
//! # Ok::<(), sapwood::sql::Error>(())
//! ```
//!
//! # The language
//!
//! `select` of one table with expressions, `where`, `group by`, `having`, `distinct`, `order by`, `limit`;
//! `insert`, `update` and `delete`; `create table`, `alter table ... add column`, `drop table`; `copy` to and
//! from what a [`Catalog`] takes for files; `explain`, `describe`, `show tables`, `summarize`. What is not
//! supported (joins, subqueries, windows) is refused with its place. `docs/sql.md` has all of it, and where
//! it differs from other databases.
//!
//! # Consistency
//!
//! A `select` sees each row as it was at one moment of its run. A statement changes all its rows,
//! or none where it fails or is cancelled; readers see rows that it has changed while it changes
//! the others.

mod blocks;
mod catalog;
mod change;
#[cfg(feature = "files")]
mod files;
mod query;
mod ranges;
#[cfg(feature = "rollup")]
mod rollup;
mod scan;
mod table;
mod words;

pub use catalog::Tables;
#[cfg(feature = "files")]
pub use files::{Files, FilesAndTables};
pub use sapwood_sql::{
    Answer, Catalog, Change, ChangeError, Changed, Error, ErrorKind, Filling, Insertion, KeyFilter,
    Options, Outcome, Request, Result, Room, Session, Source, SourceResult, Statement, TableName,
    TableSummary, function_names, parameter, parse, parse_with,
};

use crate::Db;
use crate::schema::Value;

impl Db {
    /// Executes statements, which stand between semicolons, over the tables of this database, and with the feature
    /// `files` over files: what the last one did. Statements of others are for [`Tables`], which refuse files.
    ///
    /// # Errors
    /// [`sql::Error`](Error) at the first statement that is refused or has no answer. Those before it are executed.
    ///
    /// ```
    /// # use sapwood::Db;
    /// let db = Db::in_memory();
    /// db.sql("create table hits (page text primary key, hits bigint)")?;
    /// db.sql("insert into hits values ('/oaks', 7)")?;
    /// let error = db.sql("select hitz from hits").unwrap_err();
    /// assert!(error.to_string().contains("did you mean `hits`?"));
    /// # Ok::<(), sapwood::sql::Error>(())
    /// ```
    pub fn sql(&self, statements: &str) -> Result<Outcome> {
        self.sql_with(statements, &[])
    }

    /// Executes statements with values in the places of parameters: `$1` is the first, or each `?`
    /// the next one. For values that come from elsewhere: a text is never read as a part of the
    /// statement.
    ///
    /// # Errors
    /// The errors of [`sql`](Self::sql); a parameter without a value, or a value without a place.
    ///
    /// ```
    /// # use sapwood::Db;
    /// # use sapwood::sql::Outcome;
    /// # let db = Db::in_memory();
    /// db.sql("create table hits (page text primary key, hits bigint)")?;
    /// let page = "/oaks'); drop table hits; --";
    /// db.sql_with("insert into hits values ($1, $2)", &[page.into(), 7.into()])?;
    /// let found = db.sql_with("select hits from hits where page = ?", &[page.into()])?;
    /// assert!(matches!(found, Outcome::Rows(rows) if rows.len() == 1));
    /// # Ok::<(), sapwood::sql::Error>(())
    /// ```
    pub fn sql_with(&self, statements: &str, parameters: &[Value<'_>]) -> Result<Outcome> {
        #[cfg(feature = "files")]
        let tables = FilesAndTables::of(self, Files::default());
        #[cfg(not(feature = "files"))]
        let tables = Tables::of(self);
        let session = Session::new(&tables, Options::default());
        let mut last = Outcome::Done("nothing was to be done".to_owned());
        for statement in parse_with(statements, parameters)? {
            last = session.execute(&statement)?;
        }
        Ok(last)
    }
}
