//! Handles of tables, by name.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use sapwood::{AnyTable, HashTable, RollupTable, TableStats};

use crate::store::memory::Memory;

/// A handle of a table of any kind.
#[derive(Debug, Clone)]
pub(crate) enum Handle {
    /// Of one with keys and values.
    Keyed(AnyTable),
    /// Of a roll-up, which has none.
    Rollup(RollupTable),
}

/// Handles of the tables that commands have used. Clones share them until one is changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables {
    by_name: Arc<HashMap<Box<[u8]>, Handle, FixedState>>,
}

/// The beginning of the names of tables that hold databases of Redis.
const OWN: &[u8] = b"redis.";

/// Whether a name is that of a table of the server's own.
pub(crate) fn is_own(name: &[u8]) -> bool {
    name.starts_with(OWN)
}

impl Tables {
    #[inline]
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Handle> {
        self.by_name.get(name)
    }

    /// Sets a handle, or takes it out.
    pub(crate) fn set(&mut self, name: &str, handle: Option<&Handle>) {
        let by_name = Arc::make_mut(&mut self.by_name);
        match handle {
            Some(handle) => drop(by_name.insert(name.as_bytes().into(), handle.clone())),
            None => drop(by_name.remove(name.as_bytes())),
        }
    }

    /// Hash tables among them.
    pub(crate) fn hash_tables(&self) -> impl Iterator<Item = &HashTable> {
        self.by_name.values().filter_map(|handle| match handle {
            Handle::Keyed(table) => table.as_hash(),
            Handle::Rollup(_) => None,
        })
    }

    /// Memory of the others. Tree tables have one heap.
    pub(crate) fn memory_beside(&self) -> Memory {
        let mut trees = 0;
        let memory = |handle: &Handle| match handle {
            Handle::Keyed(table) if table.as_hash().is_some() => Memory::default(),
            Handle::Keyed(table) => match table.stats() {
                TableStats::Ordered(stats) => Memory::of_ordered(&stats),
                TableStats::Tree(stats) => {
                    trees = stats.trees.heap_bytes;
                    Memory::default()
                }
                other => Memory::all_used(other.reserved_bytes()),
            },
            Handle::Rollup(table) => {
                let stats = table.stats();
                Memory::all_used(stats.fact_bytes + stats.dictionary_bytes)
            }
        };
        let others: Memory = self.by_name.values().map(memory).sum();
        others + Memory::all_used(trees)
    }
}

#[cfg(test)]
mod tests {
    use sapwood::rollup::Schema;
    use sapwood::{Db, OrderedTableOptions, RollupTableOptions};

    use super::*;

    #[test]
    fn clones_keep_what_they_had() {
        let db = Db::in_memory();
        let keyed = db.create_ordered_table("t", OrderedTableOptions::default());
        let rollup = db.create_rollup_table("r", RollupTableOptions::new(Schema::new("time")));
        for handle in [
            Handle::Keyed(keyed.expect("a table").into()),
            Handle::Rollup(rollup.expect("a table")),
        ] {
            let mut tables = Tables::default();
            tables.set("t", Some(&handle));
            let before = tables.clone();
            tables.set("t", None);
            assert!(before.get(b"t").is_some() && tables.get(b"t").is_none());
            assert!(before.memory_beside().reserved > 0, "{handle:?}");
            assert_eq!(tables.memory_beside(), Memory::default(), "{handle:?}");
        }
    }

    #[test]
    fn names_of_the_server_are_known() {
        assert!(is_own(b"redis.0") && is_own(b"redis.0.parts"));
        assert!(!is_own(b"redis") && !is_own(b"flights"));
    }
}
