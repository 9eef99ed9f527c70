//! The parts of a database that its tables and commits share: directory, log, versions of keys, and the pool of trees.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sapwood_occ::Versions;
use sapwood_ptree::{Joint, Pool, PoolOptions, Unsettled};

use crate::db_log::{Changes, DbLog};
use crate::directory::{self, Directory};
use crate::{Error, Result};

/// A database without its tables: kept open, with its directory locked, as long as there is a handle of one that needs it.
#[derive(Debug)]
pub(crate) struct Home {
    /// None in memory.
    pub(crate) directory: Option<Arc<Directory>>,
    /// None unless a directory is open to be written.
    pub(crate) log: Option<Arc<DbLog>>,
    pub(crate) versions: Arc<Versions>,
    trees: Trees,
}

/// The pool of tree tables, which is created with the first of them.
#[derive(Debug)]
struct Trees {
    options: PoolOptions,
    pool: OnceLock<Pool>,
    making: Mutex<()>,
}

impl Home {
    /// A database in memory.
    pub(crate) fn in_memory(options: PoolOptions) -> Home {
        Home::new(None, None, Arc::default(), (options, None))
    }

    pub(crate) fn new(
        directory: Option<Arc<Directory>>,
        log: Option<Arc<DbLog>>,
        versions: Arc<Versions>,
        (options, pool): (PoolOptions, Option<Pool>),
    ) -> Home {
        let pool = pool.map_or_else(OnceLock::new, OnceLock::from);
        Home { directory, log, versions, trees: Trees { options, pool, making: Mutex::default() } }
    }

    pub(crate) fn versions(&self) -> &Versions {
        &self.versions
    }

    pub(crate) fn log(&self) -> Option<&DbLog> {
        self.log.as_deref()
    }

    /// Refuses changes after the log has failed.
    pub(crate) fn check(&self) -> Result<()> {
        self.log().map_or(Ok(()), DbLog::check)
    }

    /// The pool of tree tables, if there is one.
    pub(crate) fn opened_pool(&self) -> Option<&Pool> {
        self.trees.pool.get()
    }

    /// The pool of tree tables, created if there is none.
    pub(crate) fn pool(&self) -> Result<&Pool> {
        let Trees { options, pool, making } = &self.trees;
        if let Some(pool) = pool.get() {
            return Ok(pool);
        }
        let _making = making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pool.get() {
            return Ok(pool);
        }
        let made = match &self.directory {
            None => Pool::in_memory(options.clone())
                .map_err(|cause| Error::Trees { path: None, cause })?,
            Some(directory) => {
                let disk = directory.make_pool()?;
                let log = self.log.as_ref().expect("it is open to be written");
                log.create_pool(&*disk, &options.clone().id(directory::new_table_id()))?
            }
        };
        Ok(pool.get_or_init(|| made))
    }

    /// Lets a commit to tree tables be one record of the log with changes of this thread in other tables; none
    /// while commits of another thread go [together](Self::together).
    pub(crate) fn join_trees(&self) -> Option<Joint<'_>> {
        self.opened_pool()?.join()
    }

    /// Waits until no commits of another thread to tree tables go [together](Self::together).
    pub(crate) fn pass_trees_together(&self) {
        if let Some(pool) = self.opened_pool() {
            pool.pass_together();
        }
    }

    /// Waits as the durability of the database says for all changes that this thread has made.
    pub(crate) fn settle(&self, trees: Option<Unsettled<'_>>) -> Result<Changes> {
        trees.map(Unsettled::settle).transpose().map_err(Error::trees)?;
        if let Some(log) = self.log() {
            log.wal().settle().map_err(|cause| log.named(cause))?;
        }
        Ok(self.changes())
    }

    /// All changes that are made by now.
    pub(crate) fn changes(&self) -> Changes {
        Changes {
            log: self.log.as_ref().map(|log| (Arc::clone(log), log.wal().told())),
            trees: self.opened_pool().map(Pool::last_commit),
        }
    }
}
