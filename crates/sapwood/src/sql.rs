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
//! A `select` sees each row as it was at one moment of its run. Rows change one by one: each atomically, a
//! statement that fails or is cancelled leaves those that it has changed.

mod blocks;
mod catalog;
mod change;
mod ranges;
#[cfg(feature = "rollup")]
mod rollup;
mod scan;
mod table;

pub use catalog::Tables;
pub use sapwood_sql::{
    Answer, BATCH_ROWS, Batch, Catalog, Change, ChangeError, Changed, Data, Error, ErrorKind,
    Filling, KeyFilter, Options, Outcome, Request, Result, Scan, Session, Sink, Source,
    SourceColumn, SourceResult, Statement, Strings, TableName, TableSummary, Vector,
    function_names, parse,
};

use crate::Db;

impl Db {
    /// Executes statements, which stand between semicolons, over the tables of this database: what the last
    /// one did.
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
        let tables = Tables::of(self);
        let session = Session::new(&tables, Options::default());
        let mut last = Outcome::Done("nothing was to be done".to_owned());
        for statement in parse(statements)? {
            last = session.execute(&statement)?;
        }
        Ok(last)
    }
}
