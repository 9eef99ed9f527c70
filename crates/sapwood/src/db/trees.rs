//! The pool of a database, in which its tree tables lie.

use std::sync::{Mutex, OnceLock, PoisonError};

use sapwood_ptree::{Pool, PoolOptions};

use crate::directory;
use crate::tree_table::Home;
use crate::{Error, Result};

/// Made with the first tree table, unless it is there.
#[derive(Debug)]
pub(super) struct Trees {
    options: PoolOptions,
    pool: OnceLock<Pool>,
    making: Mutex<()>,
}

impl Trees {
    pub(super) fn new(options: PoolOptions) -> Trees {
        Trees::with(options, None)
    }

    /// With the pool of a directory, if it has one.
    pub(super) fn with(options: PoolOptions, pool: Option<Pool>) -> Trees {
        let pool = pool.map_or_else(OnceLock::new, OnceLock::from);
        Trees { options, pool, making: Mutex::default() }
    }

    pub(super) fn opened(&self) -> Option<&Pool> {
        self.pool.get()
    }

    /// The pool, after making it if it is not there.
    pub(super) fn pool(&self, home: &Home) -> Result<&Pool> {
        if let Some(pool) = self.pool.get() {
            return Ok(pool);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = self.pool.get() {
            return Ok(pool);
        }
        let made = match &home.directory {
            None => Pool::in_memory(self.options.clone())
                .map_err(|cause| Error::Trees { path: None, cause })?,
            Some(directory) => {
                let disk = directory.make_pool()?;
                let log = home.log.as_ref().expect("it is open to be written");
                log.create_pool(&*disk, &self.options.clone().id(directory::new_table_id()))?
            }
        };
        Ok(self.pool.get_or_init(|| made))
    }
}
