//! The integration tests of the facade, one binary.

mod db;
mod directory;
mod engines;
mod hash_table;
mod key_bytes;
mod key_order;
mod table;
