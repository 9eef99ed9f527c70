//! Bytes of a client: however they are cut, a session answers them alike, in replies that are well
//! formed.
#![no_main]

#[path = "../../crates/server/tests/it/client.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod client;
#[path = "../../crates/server/tests/it/cut_anywhere.rs"]
mod cut_anywhere;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((step, bytes)) = bytes.split_first() else { return };
    cut_anywhere::check(bytes, usize::from(*step) % 16 + 1);
});
