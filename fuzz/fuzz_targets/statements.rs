//! Statements of SQL and bytes of rows: refused, or of use.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sapwood::fuzzing::statements(bytes));
