//! The table that rows are loaded into, and how rows of a key are put and found in it.

use std::ops::ControlFlow;

use sapwood::key::{self, KeyEncode};
use sapwood::{
    Compaction, Db, Direction, Error, HashEngineError, HashTableOptions, OrderedEngineError,
    OrderedTableOptions, Table,
};

use crate::args::{CompactAt, Duplicates, EngineName};
use crate::terminal::format::bytes;

/// Whether a row's key was new.
pub(crate) enum Put {
    New,
    Again,
}

/// Makes a table for rows.
pub(crate) fn create(
    db: &Db,
    name: &str,
    engine: EngineName,
    memory_budget: Option<u64>,
    compact_at: Option<CompactAt>,
) -> sapwood::Result<Table> {
    match engine {
        EngineName::Ordered => {
            let mut options = OrderedTableOptions::default();
            if let Some(budget) = memory_budget {
                options = options.memory_budget(budget);
            }
            db.create_ordered_table(name, options).map(Table::from)
        }
        EngineName::Hash => {
            let mut options = HashTableOptions::default();
            if let Some(budget) = memory_budget {
                options = options.memory_budget(budget).page_bytes(page_bytes(budget));
            }
            options = match compact_at {
                None => options,
                Some(CompactAt::Off) => options.compaction(None),
                Some(CompactAt::Share(garbage_share)) => {
                    options.compaction(Compaction { garbage_share, ..Compaction::default() })
                }
            };
            db.create_hash_table(name, options).map(Table::from)
        }
    }
}

/// Puts the `number`-th row of a file as `duplicates` says. `key` is as it was when this returns.
pub(crate) fn put(
    table: &Table,
    key: &mut Vec<u8>,
    value: &[u8],
    number: u64,
    duplicates: Duplicates,
) -> sapwood::Result<Put> {
    let new = match duplicates {
        Duplicates::First => table.put_if_absent(&*key, value)?,
        Duplicates::Last => {
            let new = table.put_if_absent(&*key, value)?;
            if !new {
                table.put(&*key, value)?;
            }
            new
        }
        Duplicates::All => {
            let table = table.as_ordered().expect("refused with the arguments: it needs order");
            // The number makes the key unique, behind all columns, so that it decides last.
            // Lines would not: a file may end its rows with `\r` alone.
            let whole = key.len();
            let before = table.ceiling(&*key)?;
            let new = !before.is_some_and(|entry| entry.key().starts_with(key));
            number.encode_to(key);
            let put = table.put(&*key, value);
            key.truncate(whole);
            put?;
            new
        }
    };
    Ok(if new { Put::New } else { Put::Again })
}

/// Calls `visit` with each row: in the order of the keys, or of a hash table's log.
pub(crate) fn scan<B>(
    table: &Table,
    mut visit: impl FnMut(&[u8]) -> ControlFlow<B>,
) -> sapwood::Result<ControlFlow<B>> {
    match table.as_hash() {
        Some(table) => table.scan_log(|_, value| visit(value)),
        None => table.for_each(|_, value| visit(value)),
    }
}

/// Calls `visit` for every row of a key: one, or with [`Duplicates::All`] any number.
pub(crate) fn find<B>(
    table: &Table,
    key: &[u8],
    mut visit: impl FnMut(&[u8]) -> ControlFlow<B>,
) -> sapwood::Result<ControlFlow<B>> {
    match table.as_ordered() {
        Some(table) => {
            // No key is a prefix of another, so these are the rows of this key alone.
            let range = key::prefix_range(key);
            table.scan(range, Direction::Ascending, |_, value| visit(value))
        }
        None => Ok(table.get_with(key, visit)?.unwrap_or(ControlFlow::Continue(()))),
    }
}

/// Pages of which a small budget holds some dozens.
fn page_bytes(budget: u64) -> usize {
    const MIN: u64 = 64 << 10;
    const MAX: u64 = 2 << 20;
    (budget / 64).next_power_of_two().clamp(MIN, MAX) as usize
}

/// Why a row cannot be in a table however much room there is, if that is why it was refused.
pub(crate) fn too_long(error: &Error, key: &[u8], value: &[u8]) -> Option<String> {
    match (error.ordered_engine(), error.hash_engine()) {
        (Some(OrderedEngineError::KeyLength { .. }), _) => {
            let (length, max) = (bytes(key.len() as u64), bytes(sapwood::KEY_BYTES_MAX as u64));
            Some(format!("the key is {length} long, the most is {max}"))
        }
        (Some(OrderedEngineError::ValueLength { .. }), _) => {
            let (length, max) = (bytes(value.len() as u64), bytes(sapwood::VALUE_BYTES_MAX as u64));
            Some(format!("the row is {length} long, the most is {max}"))
        }
        (_, Some(HashEngineError::KeyLength { max, .. })) => {
            let (length, max) = (bytes(key.len() as u64), bytes(*max as u64));
            Some(format!("the key is {length} long, the most is {max}"))
        }
        (_, Some(HashEngineError::ValueLength { max, .. })) => {
            let (length, max) = (bytes(value.len() as u64), bytes(*max as u64));
            Some(format!("the row is {length} long, the most is {max}"))
        }
        _ => None,
    }
}
