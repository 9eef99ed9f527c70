//! The manifest of the log: refused, or read again once it is written.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sapwood_wal::fuzzing::manifest(bytes));
