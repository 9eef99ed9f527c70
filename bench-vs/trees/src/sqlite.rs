//! SQLite in WAL mode: keys are row numbers, the form that it is fastest in. Nothing is synced, or
//! every commit is. One connection, which writers share: there is one writer at a time anyway.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension};
use sapwood_bench::Error;
use sapwood_bench::trees::{TreeEntry, TreeKey, CommitLevel, TreePlace, TreeStore, TreeValue, Writers};

const INSERT: &str = "INSERT INTO bench (k, v) VALUES (?1, ?2)";
const REMOVE: &str = "DELETE FROM bench WHERE k = ?1 RETURNING v";
const GET: &str = "SELECT v FROM bench WHERE k = ?1";
const ITERATE: &str = "SELECT k, v FROM bench ORDER BY k";

/// The lowest row number stands for key 0, so that rows are in the order of keys.
const FIRST: u64 = 1 << 63;

struct Sqlite(Mutex<Connection>);

pub fn open(place: &TreePlace) -> Result<Box<dyn TreeStore>, Error> {
    let connection = Connection::open(place.dir.join("sqlite"))?;
    let synchronous = match place.level {
        CommitLevel::Buffered => "OFF",
        CommitLevel::Sync => "FULL",
    };
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = {synchronous};
         PRAGMA cache_size = -1000000;
         CREATE TABLE bench (k INTEGER PRIMARY KEY, v INTEGER NOT NULL);"
    ))?;
    Ok(Box::new(Sqlite(Mutex::new(connection))))
}

fn row(key: &TreeKey) -> i64 {
    (u64::from_be_bytes(*key) ^ FIRST).cast_signed()
}

fn key(row: i64) -> TreeKey {
    (row.cast_unsigned() ^ FIRST).to_be_bytes()
}

impl Sqlite {
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `change` within one transaction.
    fn together(&self, change: impl FnOnce(&Connection) -> Result<(), Error>) -> Result<(), Error> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        change(&transaction)?;
        Ok(transaction.commit()?)
    }
}

fn insert(connection: &Connection, (key, value): &TreeEntry) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(INSERT)?;
    statement.execute((row(key), i64::from_le_bytes(*value)))?;
    Ok(())
}

fn value(connection: &Connection, query: &str, key: &TreeKey) -> Result<Option<TreeValue>, Error> {
    let mut statement = connection.prepare_cached(query)?;
    let value: Option<i64> = statement.query_row([row(key)], |row| row.get(0)).optional()?;
    Ok(value.map(i64::to_le_bytes))
}

impl TreeStore for Sqlite {
    fn insert(&mut self, entry: &TreeEntry) -> Result<(), Error> {
        insert(&self.connection(), entry)
    }

    fn remove(&mut self, key: &TreeKey) -> Result<Option<TreeValue>, Error> {
        value(&self.connection(), REMOVE, key)
    }

    fn insert_all(&mut self, entries: &[TreeEntry]) -> Result<(), Error> {
        self.together(|connection| entries.iter().try_for_each(|entry| insert(connection, entry)))
    }

    fn remove_all(
        &mut self,
        entries: &[TreeEntry],
        removed: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        self.together(|connection| {
            for (key, _) in entries {
                if let Some(value) = value(connection, REMOVE, key)? {
                    removed(&value);
                }
            }
            Ok(())
        })
    }

    fn get_all(&self, entries: &[TreeEntry], read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.together(|connection| {
            for (key, _) in entries {
                if let Some(value) = value(connection, GET, key)? {
                    read(&value);
                }
            }
            Ok(())
        })
    }

    fn iterate(&self, read: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(ITERATE)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let value: i64 = row.get(1)?;
            read(&key(row.get(0)?), &value.to_le_bytes());
        }
        Ok(())
    }

    fn writers(&self) -> Option<&dyn Writers> {
        Some(self)
    }
}

impl Writers for Sqlite {
    fn insert(&self, entry: &TreeEntry) -> Result<(), Error> {
        insert(&self.connection(), entry)
    }
}
