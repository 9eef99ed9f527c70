//! Streams of commands on strings and keys, by two clients: a map answers the same.
#![no_main]

#[path = "../../crates/server/tests/it/client.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod client;
#[path = "../../crates/server/tests/it/command_map.rs"]
mod command_map;
#[path = "../../crates/server/tests/it/command_stream.rs"]
mod command_stream;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| command_stream::check(bytes));
