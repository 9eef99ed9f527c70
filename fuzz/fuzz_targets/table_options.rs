//! The options of a hash table: refused, or the very text that would be written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sapwood::fuzzing::table_options(bytes));
