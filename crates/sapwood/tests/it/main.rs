//! The integration tests of the facade, one binary.

mod aggregate;
mod aggregate_writers;
mod backup;
mod crashes;
mod db;
mod directory;
mod disaggregate;
mod durability;
mod either;
mod engines;
mod golden;
mod hash_compute;
mod hash_table;
mod key_bytes;
mod key_order;
mod names;
mod ordered_table;
mod record;
mod removal;
mod rollup_table;
mod rows;
mod salvage;
mod serialized;
mod transactions;
mod tree_log;
mod tree_table;
