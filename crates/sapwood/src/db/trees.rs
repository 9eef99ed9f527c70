//! The pool of a database, in which its tree tables lie.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sapwood_ptree::{Pool, PoolOptions};

use crate::directory::{self, Directory};
use crate::{Error, Result, TreeEngineError};

/// Made with the first tree table, unless it is there.
#[derive(Debug)]
pub(super) struct Trees {
    options: PoolOptions,
    pool: OnceLock<Pool>,
    making: Mutex<()>,
}

impl Trees {
    pub(super) fn new(options: PoolOptions) -> Trees {
        Trees { options, pool: OnceLock::new(), making: Mutex::default() }
    }

    /// That of a directory, opened if it is there.
    pub(super) fn of_directory(options: PoolOptions, directory: &Directory) -> Result<Trees> {
        let trees = Trees::new(options);
        if let Some(disk) = directory.pool_disk()? {
            let options = trees.options.clone();
            let pool = match directory.is_read_only() {
                true => Pool::open_read_only(disk, options),
                false => Pool::open(disk, options),
            };
            let pool = pool.map_err(|cause| refused(cause, Some(directory)))?;
            // Nothing else has had it yet.
            let _first = trees.pool.set(pool);
        }
        Ok(trees)
    }

    pub(super) fn opened(&self) -> Option<&Pool> {
        self.pool.get()
    }

    /// The pool, after making it if it is not there.
    pub(super) fn pool(&self, directory: Option<&Arc<Directory>>) -> Result<&Pool> {
        if let Some(pool) = self.pool.get() {
            return Ok(pool);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = self.pool.get() {
            return Ok(pool);
        }
        let options = self.options.clone();
        let made = match directory {
            None => Pool::in_memory(options),
            Some(directory) => {
                let disk = directory.make_pool()?;
                Pool::create(disk, options.id(directory::new_table_id()))
            }
        };
        let made = made.map_err(|cause| refused(cause, directory.map(|directory| &**directory)))?;
        Ok(self.pool.get_or_init(|| made))
    }
}

fn refused(cause: TreeEngineError, directory: Option<&Directory>) -> Error {
    Error::Trees { path: directory.map(Directory::pool_path), cause }
}
