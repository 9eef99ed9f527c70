//! Ordered keys: bytes that are no key of a type are refused, others are the key's only bytes.
#![no_main]

use sapwood::key::{KeyDecode, KeyEncode, decode, encode};

fn check<K: KeyDecode + KeyEncode>(bytes: &[u8]) {
    if let Ok(key) = decode::<K>(bytes) {
        assert_eq!(encode(&key), bytes);
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 14 {
        0 => check::<u8>(bytes),
        1 => check::<(u16, i16)>(bytes),
        2 => check::<(u32, i32)>(bytes),
        3 => check::<(u64, i64)>(bytes),
        4 => check::<(u128, i128)>(bytes),
        5 => check::<f32>(bytes),
        6 => check::<f64>(bytes),
        7 => check::<bool>(bytes),
        8 => check::<String>(bytes),
        9 => check::<Vec<u8>>(bytes),
        10 => check::<Option<Option<String>>>(bytes),
        11 => check::<(String, u16, Vec<u8>)>(bytes),
        12 => check::<(Option<Vec<u8>>, bool, f64, String)>(bytes),
        _ => check::<((String, i8), Option<(u8, String)>)>(bytes),
    }
});
