//! Rows as JSON lines, CSV, MessagePack, or a stored batch: refused, or folded, and the same again once
//! they are stored.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sapwood_rollup::fuzzing::rows(bytes));
