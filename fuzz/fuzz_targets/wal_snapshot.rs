//! A snapshot of the first version: refused, or entries that are read again once they are written.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sapwood_wal::fuzzing::snapshot(bytes));
