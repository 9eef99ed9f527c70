//! Segments, manifests of segments, and records of the log: refused, or read to the end.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sapwood_rollup::fuzzing::files(bytes));
