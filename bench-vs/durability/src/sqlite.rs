//! SQLite in WAL mode, on a table without row numbers. Nothing is synced, or every commit is. One
//! connection, which writers share: there is one writer at a time anyway. It has no level that outlives
//! nothing, and none that lasts soon: without `synchronous = FULL` only its checkpoints sync.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension};
use sapwood_bench::Error;
use sapwood_bench::durability::{Level, DurablePlace, DurableStore};

const PUT: &str = "INSERT INTO bench (k, v) VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET v = ?2";
const GET: &str = "SELECT v FROM bench WHERE k = ?1";

struct Sqlite(Mutex<Connection>);

pub fn open(place: &DurablePlace) -> Result<Option<Box<dyn DurableStore>>, Error> {
    let synchronous = match place.level {
        Level::Memory | Level::Async => return Ok(None),
        Level::Buffered => "OFF",
        Level::Sync => "FULL",
    };
    let connection = Connection::open(place.dir.join("sqlite"))?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = {synchronous};
         PRAGMA cache_size = -1000000;
         CREATE TABLE bench (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID;"
    ))?;
    Ok(Some(Box::new(Sqlite(Mutex::new(connection)))))
}

impl Sqlite {
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn put(connection: &Connection, key: &[u8], value: &[u8]) -> Result<(), Error> {
    connection.prepare_cached(PUT)?.execute((key, value))?;
    Ok(())
}

impl DurableStore for Sqlite {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        put(&self.connection(), key, value)
    }

    fn load(&self, entries: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        entries.iter().try_for_each(|(key, value)| put(&transaction, key, value))?;
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(GET)?;
        let value: Option<Vec<u8>> = statement.query_row([key], |row| row.get(0)).optional()?;
        if let Some(value) = value {
            read(&value);
        }
        Ok(())
    }

    /// The log goes into the file, which is synced.
    fn sync(&self) -> Result<(), Error> {
        Ok(self.connection().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
    }
}
