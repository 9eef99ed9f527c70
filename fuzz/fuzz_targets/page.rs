//! Records of a page: they lie side by side, and each is whole.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sapwood_hashlog::fuzzing::page(bytes));
