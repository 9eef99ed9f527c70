//! The tables of a database, for statements.

use std::fmt;

use sapwood_sql::{Answer, Catalog, Filling, Source, SourceResult, TableName, TableSummary};

#[cfg(feature = "rollup")]
use super::rollup::RollupSource;
use super::table::{Puts, TableSource};
use super::words::said;
use crate::schema::{Schema, Type};
use crate::transaction::Within;
use crate::{Db, Engine, HashTableOptions, OrderedTableOptions, TreeTableOptions};

/// The tables of a database, by their names. Statements over them reach no files, in any build.
///
/// ```
/// use sapwood::Db;
/// use sapwood::sql::{Catalog, Tables};
///
/// let db = Db::in_memory();
/// db.sql("create table t (a bigint primary key)")?;
/// assert_eq!(Tables::of(&db).tables().map(|tables| tables.len()), Ok(1));
/// # Ok::<(), sapwood::sql::Error>(())
/// ```
#[derive(Clone)]
pub struct Tables<'a> {
    db: &'a Db,
    within: &'a Within<'a>,
}

impl fmt::Debug for Tables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables").field("db", self.db).finish_non_exhaustive()
    }
}

/// Changes rows at once.
const AT_ONCE: &Within<'static> = &|change| change();

impl<'a> Tables<'a> {
    /// Those of a database.
    ///
    /// ```
    /// # use sapwood::sql::{Catalog, Tables};
    /// let db = sapwood::Db::in_memory();
    /// assert!(Tables::of(&db).tables().is_ok_and(|tables| tables.is_empty()));
    /// ```
    pub fn of(db: &'a Db) -> Tables<'a> {
        Tables { db, within: AT_ONCE }
    }

    /// Lets statements change rows within `hold`, which runs what it is given once, with a lock in
    /// hand, say. Rows are looked at before that.
    ///
    /// ```
    /// # use std::sync::Mutex;
    /// # use sapwood::sql::{Options, Session, Tables, parse};
    /// # let db = sapwood::Db::in_memory();
    /// # db.sql("create table t (a bigint primary key)")?;
    /// let audits = Mutex::new(());
    /// let hold = |change: &mut dyn FnMut()| {
    ///     let _no_audit = audits.lock();
    ///     change();
    /// };
    /// let tables = Tables::of(&db).changing_within(&hold);
    /// Session::new(&tables, Options::default()).execute(&parse("insert into t values (7)")?[0])?;
    /// # Ok::<(), sapwood::sql::Error>(())
    /// ```
    #[must_use]
    pub fn changing_within(self, hold: &'a (dyn Fn(&mut dyn FnMut()) + Sync + 'a)) -> Tables<'a> {
        Tables { within: hold, ..self }
    }

    /// A table as a source of rows, which is of this table also when the database is closed elsewhere.
    ///
    /// # Errors
    /// Why there is none: no table is called so, or it cannot be opened.
    ///
    /// ```
    /// # use sapwood::sql::{Source, Tables};
    /// # let db = sapwood::Db::in_memory();
    /// db.sql("create table t (a bigint primary key)")?;
    /// let source = Tables::of(&db).source("t").expect("it was made");
    /// assert_eq!(source.columns().len(), 1);
    /// # Ok::<(), sapwood::sql::Error>(())
    /// ```
    pub fn source(&self, name: &str) -> SourceResult<Box<dyn Source>> {
        source_within(self.db, name, AT_ONCE)
    }

    fn name<'n>(&self, name: &'n TableName) -> SourceResult<&'n str> {
        match (&name.parts[..], name.is_file) {
            ([one], false) => Ok(one),
            ([file], true) => Err(format!(
                "`{file}` is the name of a file, and statements here reach tables alone"
            )),
            _ => Err(format!("`{name}` has more than one part: a table has one name here")),
        }
    }
}

impl Catalog for Tables<'_> {
    fn open(&self, name: &TableName) -> SourceResult<Box<dyn Source + '_>> {
        source_within(self.db, self.name(name)?, self.within)
    }

    fn tables(&self) -> SourceResult<Vec<TableSummary>> {
        let summary = |name: String| {
            let engine = self.db.engine(&name);
            let kind = engine.map_or_else(String::new, |engine| engine.to_string());
            let (rows, columns) = match engine {
                #[cfg(feature = "rollup")]
                Some(Engine::Rollup) => {
                    let source = RollupSource::new(self.db.rollup_table(&name).map_err(said)?);
                    (source.rows_estimate(), source.described())
                }
                _ => {
                    let schema = self.db.schema(&name).map_err(said)?;
                    let entries = || "key:bytes, value:bytes, key(key)".to_owned();
                    let columns = schema.map_or_else(entries, |schema| schema.to_string());
                    let table = engine.map(|_| self.db.table(&name)).transpose().map_err(said)?;
                    (table.map(|table| table.len_estimate() as u64), columns)
                }
            };
            Ok(TableSummary { kind, rows, columns, name })
        };
        self.db.table_names().into_iter().map(summary).collect()
    }

    fn create(&self, name: &TableName, schema: Schema, engine: Option<&str>) -> SourceResult<()> {
        let name = self.name(name)?;
        let made = match engine_of(engine)? {
            Engine::Hash => {
                let options = HashTableOptions::default().schema(schema);
                self.db.create_hash_table(name, options).map(drop)
            }
            Engine::Tree => {
                let options = TreeTableOptions::default().schema(schema);
                self.db.create_tree_table(name, options).map(drop)
            }
            Engine::Ordered | Engine::Rollup => {
                let options = OrderedTableOptions::default().schema(schema);
                self.db.create_ordered_table(name, options).map(drop)
            }
        };
        made.map_err(said)
    }

    fn create_filled(
        &self,
        name: &TableName,
        schema: Schema,
        engine: Option<&str>,
        fill: &mut Filling<'_>,
    ) -> SourceResult<()> {
        let (name, engine) = (self.name(name)?, engine_of(engine)?);
        let made = self.db.create_filled(name, &schema, engine, |table| {
            fill(&TableSource::new(table, true, Puts::AsTheyCome))
        });
        made.map_err(said)
    }

    fn drop_table(&self, name: &TableName) -> SourceResult<()> {
        self.db.drop_table(self.name(name)?).map_err(said)
    }

    fn add_column(&self, name: &TableName, column: &str, kind: Type) -> SourceResult<()> {
        self.db.add_column(self.name(name)?, column, kind).map_err(said)
    }

    fn widen_column(&self, name: &TableName, column: &str, kind: Type) -> SourceResult<()> {
        self.db.widen_column(self.name(name)?, column, kind).map_err(said)
    }

    fn write(&self, _: &Answer, file: &str) -> SourceResult<u64> {
        Err(format!("`{file}` is the name of a file, and statements here reach tables alone"))
    }
}

/// A table as a source of rows, which change within what is given.
fn source_within<'w>(
    db: &Db,
    name: &str,
    within: &'w Within<'w>,
) -> SourceResult<Box<dyn Source + 'w>> {
    #[cfg(feature = "rollup")]
    if db.engine(name) == Some(Engine::Rollup) {
        let table = db.rollup_table(name).map_err(said)?;
        return Ok(Box::new(RollupSource::new(table)));
    }
    let schema = db.schema(name).map_err(said)?;
    let table = db.table(name).map_err(said)?;
    let puts = Puts::Together(db.clone(), within);
    Ok(Box::new(TableSource::new(table, schema.is_some(), puts)))
}

/// The engine that a statement names; not one without rows.
fn engine_of(name: Option<&str>) -> SourceResult<Engine> {
    match name {
        None | Some("ordered") => Ok(Engine::Ordered),
        Some("hash") => Ok(Engine::Hash),
        Some("tree") => Ok(Engine::Tree),
        Some(other) => Err(format!("no engine is called `{other}`: ordered, hash, tree")),
    }
}
