//! The index of a checkpoint: refused, or the very words that would be written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sapwood_hashlog::fuzzing::image(bytes));
