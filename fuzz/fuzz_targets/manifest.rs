//! The one block of a checkpoint: refused, or what would be written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sapwood_hashlog::fuzzing::manifest(bytes));
