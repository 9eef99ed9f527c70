//! Streams of `SW.*` commands on a table of each kind: a map answers the same.
#![no_main]

#[path = "../../crates/server/tests/it/client.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod client;
#[path = "../../crates/server/tests/it/table_map.rs"]
mod table_map;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| table_map::check(bytes));
