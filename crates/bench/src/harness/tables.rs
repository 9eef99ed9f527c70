//! Tables of a database, of the kinds that several benches measure.

use sapwood::{AnyTable, Db, HashTableOptions, OrderedTableOptions, RecordLayout};

use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableKind {
    Ordered,
    Hash,
}

pub(crate) const TABLE_NAME: &str = "bench";

impl TableKind {
    pub(crate) const ALL: [TableKind; 2] = [TableKind::Ordered, TableKind::Hash];

    /// The name of an engine that has one such table.
    pub(crate) fn engine(self) -> &'static str {
        if self == TableKind::Ordered { "sapwood-ordered" } else { "sapwood-hash" }
    }

    /// Makes a table that is to hold so many keys. The options of a hash table do not say that it
    /// is volatile: its database is in memory.
    pub(crate) fn create(
        self,
        db: &Db,
        layout: RecordLayout,
        keys: u64,
        is_volatile: bool,
    ) -> Result<AnyTable> {
        if self == TableKind::Hash {
            let options = HashTableOptions::default().layout(layout).expected_entries(keys);
            return Ok(db.create_hash_table(TABLE_NAME, options)?.into());
        }
        let options = OrderedTableOptions::default();
        let options = if is_volatile { options.volatile() } else { options };
        Ok(db.create_ordered_table(TABLE_NAME, options)?.into())
    }
}
