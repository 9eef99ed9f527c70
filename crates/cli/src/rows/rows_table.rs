//! The table that rows are loaded into, and how rows of a key are put and found in it.

use std::ops::ControlFlow;

use sapwood::aggregate::Layout;
use sapwood::key::{self, KeyEncode};
use sapwood::schema::Schema;
use sapwood::{
    AnyTable, BulkLoad, Compaction, Db, Direction, Engine, Error, HashEngineError,
    HashTableOptions, OrderedEngineError, OrderedTableOptions, Transaction, TreeEngineError,
    TreeKind, TreeTableOptions,
};

use crate::args::rows::{CompactAt, Duplicates, EngineName, TreeName};
use crate::rows::columns::Columns;
use crate::terminal::format::bytes;

/// Whether a row's key was new.
pub(crate) enum Put {
    New,
    Again,
}

/// A table that is to be made.
#[derive(Debug)]
pub(crate) struct NewTable<'a> {
    pub(crate) engine: EngineName,
    /// How a tree is balanced.
    pub(crate) kind: Option<TreeName>,
    pub(crate) memory_budget: Option<u64>,
    pub(crate) compact_at: Option<CompactAt>,
    /// The fields that it declares.
    pub(crate) fields: Option<&'a Layout>,
    pub(crate) schema: Option<&'a Schema>,
}

impl NewTable<'_> {
    /// One as it is made without options.
    pub(crate) fn of(engine: EngineName) -> Self {
        NewTable {
            engine,
            kind: None,
            memory_budget: None,
            compact_at: None,
            fields: None,
            schema: None,
        }
    }

    /// Whether it can be [loaded](Self::load) past the memory.
    pub(crate) fn is_bulk(&self) -> bool {
        self.engine == EngineName::Ordered && self.memory_budget.is_none()
    }

    /// Begins to load an ordered table from entries in the order of their keys.
    pub(crate) fn load(&self, db: &Db, name: &str) -> sapwood::Result<BulkLoad> {
        db.bulk_load(name, self.ordered())
    }

    fn ordered(&self) -> OrderedTableOptions {
        let mut options = OrderedTableOptions::default();
        if let Some(budget) = self.memory_budget {
            options = options.memory_budget(budget);
        }
        options = self.fields.cloned().into_iter().fold(options, OrderedTableOptions::fields);
        self.schema.cloned().into_iter().fold(options, OrderedTableOptions::schema)
    }

    pub(crate) fn make(&self, db: &Db, name: &str) -> sapwood::Result<AnyTable> {
        let (fields, schema) = (self.fields.cloned(), self.schema.cloned());
        match self.engine {
            EngineName::Ordered => {
                db.create_ordered_table(name, self.ordered()).map(AnyTable::from)
            }
            EngineName::Hash => {
                let mut options = HashTableOptions::default();
                if let Some(budget) = self.memory_budget {
                    options = options.memory_budget(budget).page_bytes(page_bytes(budget));
                }
                options = match self.compact_at {
                    None => options,
                    Some(CompactAt::Off) => options.compaction(None),
                    Some(CompactAt::Share(garbage_share)) => {
                        options.compaction(Compaction { garbage_share, ..Compaction::default() })
                    }
                };
                options = fields.into_iter().fold(options, HashTableOptions::fields);
                options = schema.into_iter().fold(options, HashTableOptions::schema);
                db.create_hash_table(name, options).map(AnyTable::from)
            }
            EngineName::Tree => {
                let kind = match self.kind.unwrap_or(TreeName::Btree) {
                    TreeName::Btree => TreeKind::BTree,
                    TreeName::CritBit => TreeKind::CritBit,
                    TreeName::RedBlack => TreeKind::RedBlack,
                };
                let mut options = TreeTableOptions::default().kind(kind);
                options = fields.into_iter().fold(options, TreeTableOptions::fields);
                options = schema.into_iter().fold(options, TreeTableOptions::schema);
                db.create_tree_table(name, options).map(AnyTable::from)
            }
        }
    }
}

/// A table that rows are put into; a tree, by one transaction for all of them.
#[derive(Debug)]
pub(crate) struct Rows<'d> {
    pub(crate) table: AnyTable,
    pub(crate) transaction: Option<Transaction<'d>>,
}

impl Rows<'_> {
    fn put(&self, key: &[u8], value: &[u8]) -> sapwood::Result<()> {
        match (self.table.as_tree(), &self.transaction) {
            (Some(tree), Some(tx)) => tx.table(tree).put(key, value),
            _ => self.table.put(key, value),
        }
    }

    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> sapwood::Result<bool> {
        match (self.table.as_tree(), &self.transaction) {
            (Some(tree), Some(tx)) => tx.table(tree).put_if_absent(key, value),
            _ => self.table.put_if_absent(key, value),
        }
    }

    /// Whether a key begins so, of a table with order.
    fn has_prefix(&self, prefix: &[u8]) -> sapwood::Result<bool> {
        let range = key::prefix_range(prefix);
        let first = |_: &[u8], _: &[u8]| ControlFlow::Break(());
        let found = match (self.table.as_tree(), &self.transaction) {
            (Some(tree), Some(tx)) => tx.table(tree).scan(range, Direction::Ascending, first),
            _ => self.table.scan(range, Direction::Ascending, first),
        };
        Ok(found?.is_break())
    }
}

/// Puts a row, of whose key there is one, as `duplicates` says.
pub(crate) fn put(
    table: &Rows<'_>,
    key: &[u8],
    value: &[u8],
    duplicates: Duplicates,
) -> sapwood::Result<Put> {
    let new = match duplicates {
        Duplicates::First => table.put_if_absent(key, value)?,
        Duplicates::Last => {
            let new = table.put_if_absent(key, value)?;
            if !new {
                table.put(key, value)?;
            }
            new
        }
        Duplicates::All => unreachable!("all rows of a key have numbers: `put_numbered`"),
    };
    Ok(if new { Put::New } else { Put::Again })
}

/// Puts a row whose key ends in a number, under that one or the next that is free, which `number` is then.
pub(crate) fn put_numbered(
    table: &Rows<'_>,
    key: &mut Vec<u8>,
    value: &[u8],
    number: &mut u64,
) -> sapwood::Result<Put> {
    let begin = key.len() - size_of::<u64>();
    // A hash table, or one whose keys are numbers alone, has no rows of the same key.
    let new =
        begin == 0 || table.table.engine() == Engine::Hash || !table.has_prefix(&key[..begin])?;
    loop {
        key.truncate(begin);
        number.encode_to(key);
        if table.put_if_absent(key, value)? {
            return Ok(if new { Put::New } else { Put::Again });
        }
        *number += 1;
    }
}

/// Calls `visit` with each row: in the order of the keys, or of a hash table's log.
pub(crate) fn scan<B>(
    table: &AnyTable,
    mut visit: impl FnMut(&[u8]) -> ControlFlow<B>,
) -> sapwood::Result<ControlFlow<B>> {
    scan_entries(table, |_, value| visit(value))
}

/// As [`scan`], with their keys.
pub(crate) fn scan_entries<B>(
    table: &AnyTable,
    visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
) -> sapwood::Result<ControlFlow<B>> {
    match table.as_hash() {
        Some(table) => table.scan_log(visit),
        None => table.for_each(visit),
    }
}

/// Calls `visit` for every row of a key: one, or with [`Duplicates::All`] any number.
pub(crate) fn find<B>(
    table: &AnyTable,
    columns: &Columns,
    key: &[u8],
    mut visit: impl FnMut(&[u8]) -> ControlFlow<B>,
) -> sapwood::Result<ControlFlow<B>> {
    find_entries(table, columns, key, |_, value| visit(value))
}

/// As [`find`], with the whole keys.
pub(crate) fn find_entries<B>(
    table: &AnyTable,
    columns: &Columns,
    key: &[u8],
    mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
) -> sapwood::Result<ControlFlow<B>> {
    if table.engine() == Engine::Hash || *columns == Columns::Entries {
        let found = table.get_with(key, |value| visit(key, value))?;
        return Ok(found.unwrap_or(ControlFlow::Continue(())));
    }
    // No key of columns is a prefix of another, so these are the rows of this key alone.
    table.scan(key::prefix_range(key), Direction::Ascending, visit)
}

/// Pages of which a small budget holds some dozens.
fn page_bytes(budget: u64) -> usize {
    const MIN: u64 = 64 << 10;
    const MAX: u64 = 2 << 20;
    (budget / 64).next_power_of_two().clamp(MIN, MAX) as usize
}

/// Why a row cannot be in a table however much room there is, if that is why it was refused.
pub(crate) fn too_long(error: &Error, key: &[u8], value: &[u8]) -> Option<String> {
    match (error.ordered_engine(), error.hash_engine(), error.tree_engine()) {
        (Some(OrderedEngineError::KeyLength { .. }), ..) => {
            Some(long_key(key, sapwood::KEY_BYTES_MAX))
        }
        (Some(OrderedEngineError::ValueLength { .. }), ..) => {
            Some(long_row(value, sapwood::VALUE_BYTES_MAX))
        }
        (_, Some(HashEngineError::KeyLength { max, .. }), _)
        | (.., Some(TreeEngineError::KeyLength { max, .. })) => Some(long_key(key, *max)),
        (_, Some(HashEngineError::ValueLength { max, .. }), _)
        | (.., Some(TreeEngineError::ValueLength { max, .. })) => Some(long_row(value, *max)),
        _ => None,
    }
}

/// The same before it is put into an ordered table.
pub(crate) fn too_long_to_order(key: &[u8], value: &[u8]) -> Option<String> {
    if key.len() > sapwood::KEY_BYTES_MAX {
        return Some(long_key(key, sapwood::KEY_BYTES_MAX));
    }
    (value.len() > sapwood::VALUE_BYTES_MAX).then(|| long_row(value, sapwood::VALUE_BYTES_MAX))
}

fn long_key(key: &[u8], max: usize) -> String {
    let (length, max) = (bytes(key.len() as u64), bytes(max as u64));
    format!("the key is {length} long, the most is {max}")
}

fn long_row(value: &[u8], max: usize) -> String {
    let (length, max) = (bytes(value.len() as u64), bytes(max as u64));
    format!("the row is {length} long, the most is {max}")
}
