//! Schemas, queries, expressions and filters of roll-ups: refused, or of use.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sapwood_rollup::fuzzing::documents(bytes));
