//! The integration tests of the facade, one binary.

mod db;
mod key_bytes;
mod key_order;
mod table;
