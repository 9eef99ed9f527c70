//! A file of the log: pages that are refused, or read the same however they are read.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sapwood_hashlog::fuzzing::part(bytes));
