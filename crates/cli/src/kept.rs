//! Rows that `sapwood load --dir` keeps: which table they are in, and how to read them.
//!
//! A directory is a database of hash tables. One of them, [`COLUMNS_TABLE`], says of each of the
//! others which columns its rows have and which of them make the key, as a JSON object:
//! `{"columns": ["carrier", "flight"], "key": [["carrier", "str"], ["flight", "int"]]}`, where the
//! columns of JSON lines are `null`.

use std::path::Path;

use sapwood::{Cut, Db, Engine, Error, HashTable};
use serde_json::{Value, json};

use crate::checkpoints;
use crate::exit::{Failure, Outcome};
use crate::format::quoted;
use crate::key_columns::KeyColumns;
use crate::rows::Columns;

/// The table that describes the others.
pub(crate) const COLUMNS_TABLE: &str = "load.columns";

/// How the rows of a table are to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) columns: Columns,
    pub(crate) keys: KeyColumns,
}

impl Description {
    /// Of rows of which nothing is known.
    pub(crate) fn none() -> Self {
        Self { columns: Columns::Csv(Vec::new()), keys: KeyColumns::none() }
    }

    /// Writes it, and makes it last: before any row, so that no row is without one.
    pub(crate) fn keep(&self, db: &Db, table: &str) -> Outcome {
        let columns = match &self.columns {
            Columns::Csv(names) => json!(names),
            Columns::Json => Value::Null,
        };
        let text = json!({ "columns": columns, "key": self.keys.as_json() }).to_string();
        let descriptions = db.open_or_create_hash_table(COLUMNS_TABLE)?;
        descriptions.put(table.as_bytes(), text.as_bytes())?;
        descriptions.checkpoint(Cut::Full)?;
        Ok(())
    }

    /// Reads that of a table; none if it has none.
    pub(crate) fn read(db: &Db, table: &str) -> Outcome<Option<Self>> {
        let descriptions = match db.hash_table(COLUMNS_TABLE) {
            Err(Error::TableMissing { .. }) => return Ok(None),
            other => other?,
        };
        let Some(text) = descriptions.get(table.as_bytes())? else {
            return Ok(None);
        };
        let description = Self::parse(&text).ok_or_else(|| {
            Failure::Failed(format!(
                "what table `{COLUMNS_TABLE}` says of table {} cannot be read; load it again",
                quoted(table)
            ))
        })?;
        Ok(Some(description))
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let object: Value = serde_json::from_slice(text).ok()?;
        let columns = match object.get("columns")? {
            Value::Null => Columns::Json,
            Value::Array(names) => {
                let names = names.iter().map(|name| name.as_str().map(str::to_owned));
                Columns::Csv(names.collect::<Option<_>>()?)
            }
            _ => return None,
        };
        let keys = KeyColumns::from_json(object.get("key")?, &columns)?;
        Some(Self { columns, keys })
    }
}

/// A table of a directory, opened to be read, if `sapwood load` has made it: as it is, or as it was
/// at a checkpoint.
pub(crate) fn open(
    directory: &Path,
    table: &str,
    checkpoint: Option<u64>,
) -> Outcome<(Db, HashTable, Description)> {
    match open_any(directory, table, checkpoint)? {
        (db, rows, Some(description)) => Ok((db, rows, description)),
        (_, _, None) => Err(Failure::Failed(format!(
            "{} has a table {}, which was not made by `sapwood load`: its rows have no columns",
            directory.display(),
            quoted(table)
        ))),
    }
}

/// A table of a directory, whoever has made it, opened to be read.
pub(crate) fn open_any(
    directory: &Path,
    table: &str,
    checkpoint: Option<u64>,
) -> Outcome<(Db, HashTable, Option<Description>)> {
    let db = database(directory)?;
    let rows = match checkpoint {
        None => db.hash_table(table),
        Some(number) => db.hash_table_view(table, number),
    };
    let rows = rows.map_err(|error| checkpoints::explained(directory, table, error))?;
    let description = Description::read(&db, table)?;
    Ok((db, rows, description))
}

/// The database in a directory.
pub(crate) fn database(directory: &Path) -> Outcome<Db> {
    // Looking must not make one.
    if !directory.join("tables").is_dir() {
        return Err(Failure::Failed(format!(
            "{} is a directory that holds no database; `sapwood load FILE --engine hash --dir {}` makes one",
            directory.display(),
            directory.display()
        )));
    }
    Ok(Db::open(directory)?)
}

/// The database that rows are to be loaded into, and the table if it is there with the same
/// columns.
pub(crate) fn open_for_load(
    directory: &Path,
    table: &str,
    description: &Description,
) -> Outcome<(Db, Option<HashTable>)> {
    if table == COLUMNS_TABLE {
        return Err(Failure::Usage(format!(
            "table `{COLUMNS_TABLE}` describes the others; choose another name"
        )));
    }
    let db = Db::open(directory)?;
    let rows = match db.engine(table) {
        Some(Engine::Hash) => Some(db.hash_table(table)?),
        _ => None,
    };
    let before = Description::read(&db, table)?;
    match (&rows, before) {
        (Some(rows), Some(before)) if before != *description && !rows.is_empty() => {
            Err(Failure::Failed(format!(
                "table {} of {} was loaded with other columns, by --key {}; load into another --table",
                quoted(table),
                directory.display(),
                before.keys
            )))
        }
        (Some(rows), None) if !rows.is_empty() => Err(Failure::Failed(format!(
            "table {} of {} was not made by `sapwood load`; load into another --table",
            quoted(table),
            directory.display()
        ))),
        _ => Ok((db, rows)),
    }
}
