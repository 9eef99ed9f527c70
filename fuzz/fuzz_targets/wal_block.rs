//! A block of the snapshot of a table: refused, or entries that are the same however they are read.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sapwood_wal::fuzzing::block(bytes));
