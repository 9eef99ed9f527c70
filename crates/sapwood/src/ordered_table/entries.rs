//! Where the entries of a table are, and what checkpoints write of them.

use std::ops::ControlFlow;
use std::sync::Arc;

use sapwood_chunkmap::ChunkMap;
use sapwood_wal::{Contents, Cut};

use super::stored::Stored;
use crate::db_log::LoggedEntries;
use crate::formats::FormatsCell;
use crate::{Direction, LogError};

/// The entries of a table.
#[derive(Clone, Debug)]
pub(crate) enum Entries {
    Memory(Arc<ChunkMap>),
    /// In its snapshot, as far as they were not needed in memory.
    Stored(Arc<Stored>),
}

impl LoggedEntries for Entries {
    fn contents(&self, formats: &FormatsCell) -> Contents {
        let (entries, formats) = (self.clone(), Arc::clone(formats));
        Contents::Entries(Arc::new(OrderedEntries { entries, formats }))
    }
}

/// What a checkpoint writes of an ordered table.
#[derive(Debug)]
struct OrderedEntries {
    entries: Entries,
    formats: FormatsCell,
}

impl sapwood_wal::Entries for OrderedEntries {
    fn for_each(
        &self,
        entry: &mut dyn FnMut(&[u8], &[u8]) -> sapwood_wal::Result<()>,
    ) -> sapwood_wal::Result<()> {
        let visit = |key: &[u8], value: &[u8]| match entry(key, value) {
            Ok(()) => ControlFlow::Continue(()),
            Err(cause) => ControlFlow::Break(cause),
        };
        let up = Direction::Ascending;
        let scanned = match &self.entries {
            Entries::Memory(map) => map.scan(.., up, visit).map_err(|cause| cause.to_string()),
            // Before its load is finished a table has no entries.
            Entries::Stored(stored) if stored.is_being_loaded() => return Ok(()),
            Entries::Stored(stored) => {
                stored.scan(&.., up, visit).map_err(|cause| cause.to_string())
            }
        };
        match scanned {
            Ok(ControlFlow::Continue(())) => Ok(()),
            Ok(ControlFlow::Break(cause)) => Err(cause),
            Err(why) => Err(LogError::Contents { why }),
        }
    }

    fn cut(&self) -> Option<&dyn Cut> {
        self.formats.get().map(|formats| &**formats as &dyn Cut)
    }
}
