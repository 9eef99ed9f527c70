//! Roll-ups in a build without the feature `rollup`: no database has one.
//!
//! The types here have no values, so that code over tables of every kind is the same in each build. A
//! directory with a roll-up table does not open: its log would lose the table at the next checkpoint.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use sapwood_wal::TableId;

use crate::db_log::{DbLog, Kept};
use crate::directory::Directory;
use crate::{Error, Result};

/// A roll-up table.
#[derive(Debug, Clone)]
pub(crate) struct RollupTable(Infallible);

/// A roll-up that takes the batches of a log.
#[derive(Debug)]
pub(crate) struct RollupTarget(Infallible);

/// Batches of a roll-up, for one thread.
#[derive(Debug)]
pub(crate) struct Records(Infallible);

impl RollupTable {
    pub(crate) fn name(&self) -> &str {
        match self.0 {}
    }

    pub(crate) fn kept(&self) -> &Kept {
        match self.0 {}
    }

    pub(crate) fn is_same(&self, _: &RollupTable) -> bool {
        match self.0 {}
    }

    pub(crate) fn fact_count(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn hold_files(&self) -> impl fmt::Debug + use<> {
        match self.0 {}
    }
}

impl RollupTarget {
    pub(crate) fn open(
        _: &Directory,
        _: TableId,
        (name, _): (&str, &str),
        _: Option<u64>,
    ) -> Result<Arc<RollupTarget>> {
        Err(Error::Unsupported { table: name.into(), feature: "rollup" })
    }

    pub(crate) fn sealed_batches(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn expect_sealed(&self, _: &Directory, _: TableId, _: Option<u64>) -> Result<()> {
        match self.0 {}
    }

    pub(crate) fn expect_sound(&self) -> Result<()> {
        match self.0 {}
    }

    pub(crate) fn finish(&self) -> Result<()> {
        match self.0 {}
    }

    pub(crate) fn logged(&self, _: &Arc<DbLog>, _: &Directory, _: TableId) -> RollupTable {
        match self.0 {}
    }

    pub(crate) fn viewed(&self, _: &Arc<Directory>, _: TableId) -> RollupTable {
        match self.0 {}
    }
}

impl Records {
    pub(crate) fn of(target: &RollupTarget) -> Records {
        match target.0 {}
    }

    pub(crate) fn are_of(&self, _: &RollupTarget) -> bool {
        match self.0 {}
    }

    pub(crate) fn push(&mut self, _: &[u8]) {
        match self.0 {}
    }

    pub(crate) fn are_enough(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn are_large(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn run(self) {
        match self.0 {}
    }
}
