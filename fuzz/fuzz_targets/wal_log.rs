//! A log that is replayed: refused, or told alike to one that reads and one that opens.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sapwood_wal::fuzzing::log(bytes));
