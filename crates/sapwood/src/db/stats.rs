//! What the tables of a database hold and cost.

use std::collections::BTreeMap;

use super::{Db, Slot, is_reserved};
#[cfg(feature = "rollup")]
use crate::rollup::RollupStats;
use crate::{HashStats, LogStats, OrderedStats, TreePoolStats, TreeStats};

#[cfg(doc)]
use crate::HashTable;

/// What the tables of a [`Db`] hold and cost.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DbStats {
    /// Of each ordered table, by name.
    pub ordered_tables: BTreeMap<String, OrderedStats>,
    /// Of each hash table that is open, by name.
    pub hash_tables: BTreeMap<String, HashStats>,
    /// Of each tree table, by name.
    pub tree_tables: BTreeMap<String, TreeStats>,
    /// Of each roll-up table, by name.
    #[cfg(feature = "rollup")]
    pub rollup_tables: BTreeMap<String, RollupStats>,
    /// What all tree tables cost, if there was ever one.
    pub trees: Option<TreePoolStats>,
    /// What the log costs, and whether it takes changes, of a directory that is open to be written.
    pub log: Option<LogStats>,
    /// The hash tables of the directory that are not opened yet. They cost no memory, and the
    /// sums below know nothing of them.
    pub unopened: Vec<String>,
    /// Sum of the tables' entries: of hash tables in a directory, what
    /// [`HashTable::len_estimate`] says; of roll-ups, their facts.
    pub entries_estimate: u64,
    /// Sum of the bytes of live keys and values in ordered tables.
    pub data_bytes: u64,
    /// Sum of the bytes mapped from the system, and of the dictionaries of roll-ups; of the heap of tree tables, all of it.
    pub reserved_bytes: u64,
    /// Sum of the bytes that tables and the log have on the disk.
    pub file_bytes: u64,
}

impl Db {
    /// What each table and all together hold and cost.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// db.create_ordered_table("t", OrderedTableOptions::default())?.put(b"k", b"v")?;
    /// let stats = db.stats();
    /// assert_eq!((stats.entries_estimate, stats.data_bytes), (1, 2));
    /// assert_eq!(stats.ordered_tables["t"].entries, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn stats(&self) -> DbStats {
        // Cloned, so that no name waits while tables count.
        let slots = self.slots().clone();
        let mut stats = DbStats {
            ordered_tables: BTreeMap::new(),
            hash_tables: BTreeMap::new(),
            tree_tables: BTreeMap::new(),
            #[cfg(feature = "rollup")]
            rollup_tables: BTreeMap::new(),
            trees: None,
            log: None,
            unopened: Vec::new(),
            entries_estimate: 0,
            data_bytes: 0,
            reserved_bytes: 0,
            file_bytes: 0,
        };
        for (name, slot) in slots {
            if is_reserved(&name) {
                continue;
            }
            let name = name.to_string();
            match slot {
                Slot::Ordered(table) => {
                    let table = table.stats();
                    stats.entries_estimate += table.entries;
                    stats.data_bytes += table.key_bytes + table.value_bytes;
                    stats.reserved_bytes += table.reserved_bytes;
                    stats.ordered_tables.insert(name, table);
                }
                Slot::Hash(slot) => match slot.opened() {
                    Some(table) => {
                        let table = table.stats();
                        stats.entries_estimate += table.entries_estimate;
                        stats.reserved_bytes += table.reserved_bytes;
                        stats.file_bytes += table.file_bytes;
                        stats.hash_tables.insert(name, table);
                    }
                    None => stats.unopened.push(name),
                },
                Slot::Tree(table) => {
                    let table = table.stats();
                    stats.entries_estimate += table.entries;
                    stats.tree_tables.insert(name, table);
                }
                #[cfg(not(feature = "rollup"))]
                Slot::Rollup(_) => {}
                #[cfg(feature = "rollup")]
                Slot::Rollup(table) => {
                    let table = table.stats();
                    stats.entries_estimate += table.facts;
                    stats.reserved_bytes += table.fact_bytes + table.dictionary_bytes;
                    stats.rollup_tables.insert(name, table);
                }
            }
        }
        if let Some(pool) = self.home().opened_pool() {
            let heap_bytes = pool.heap_bytes();
            stats.reserved_bytes += heap_bytes;
            if self.home().directory.is_some() {
                stats.file_bytes += heap_bytes;
            }
            stats.trees = Some(TreePoolStats { heap_bytes });
        }
        if let Some(log) = &self.home().log {
            let log = log.stats();
            stats.file_bytes += log.log_bytes + log.snapshot_bytes;
            stats.log = Some(log);
        }
        stats
    }
}
