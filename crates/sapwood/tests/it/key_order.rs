//! The order of encodings is the order of values, they round-trip, and no bytes make the
//! decoder panic.

use std::cmp::{Ordering, Reverse};
use std::fmt::Debug;

use proptest::prelude::*;
use sapwood::key::{self, KeyDecode, KeyEncode};

/// Checks a pair of values against the comparison that the encoding must keep.
fn check<K: KeyEncode + KeyDecode + Debug>(
    a: &K,
    b: &K,
    compare: impl Fn(&K, &K) -> Ordering,
) -> Result<(), TestCaseError> {
    let (bytes_a, bytes_b) = (key::encode(a), key::encode(b));
    prop_assert_eq!(bytes_a.cmp(&bytes_b), compare(a, b), "{:?} and {:?}", a, b);
    prop_assert_eq!(bytes_a == bytes_b, compare(a, b).is_eq());
    // Prefix-free: else a longer tuple could sort between two equal components.
    prop_assert!(bytes_a == bytes_b || !bytes_b.starts_with(&bytes_a));
    let back =
        key::decode::<K>(&bytes_a).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert!(compare(&back, a).is_eq(), "{:?} came back as {:?}", a, back);
    Ok(())
}

/// Floats by their bits, so that NaN, zeros, infinities and subnormals are all drawn.
fn any_f64() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        prop::sample::select(vec![
            f64::NEG_INFINITY,
            -0.0,
            0.0,
            f64::INFINITY,
            f64::NAN,
            -f64::NAN,
            f64::MIN_POSITIVE,
            -f64::MIN_POSITIVE,
        ]),
    ]
}

/// Short strings over few bytes, so that prefixes, zeros and 0xFF meet often.
fn nasty_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0_u8, 1, 2, 0x61, 0xFE, 0xFF]), 0..6)
}

fn nasty_text() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop::sample::select(vec!['\0', '\u{1}', 'a', 'b', 'é', '\u{10FFFF}']),
        0..6,
    )
    .prop_map(|chars| chars.into_iter().collect())
}

macro_rules! ordered {
    ($($test:ident: $type:ty),* $(,)?) => {
        proptest! {$(
            #[test]
            fn $test(a: $type, b: $type) {
                check(&a, &b, Ord::cmp)?;
            }
        )*}
    };
}
ordered! {
    u8_in_order: u8, u16_in_order: u16, u32_in_order: u32, u64_in_order: u64, u128_in_order: u128,
    i8_in_order: i8, i16_in_order: i16, i32_in_order: i32, i64_in_order: i64, i128_in_order: i128,
    bool_in_order: bool, option_in_order: Option<i8>, nested_option_in_order: Option<Option<u8>>,
    text_in_order: String, bytes_in_order: Vec<u8>,
    numbers_in_order: (i8, u8), one_in_order: (i16,), eight_in_order: (bool, bool, bool, bool, bool, bool, bool, u8),
    mixed_in_order: (Option<String>, i64, (bool, Vec<u8>), u128),
}

proptest! {
    #[test]
    fn f64_in_total_order(a in any_f64(), b in any_f64()) {
        check(&a, &b, f64::total_cmp)?;
    }

    #[test]
    fn f32_in_total_order(a: u32, b: u32) {
        check(&f32::from_bits(a), &f32::from_bits(b), f32::total_cmp)?;
    }

    #[test]
    fn nasty_bytes_in_order(a in nasty_bytes(), b in nasty_bytes()) {
        check(&a, &b, Ord::cmp)?;
    }

    #[test]
    fn nasty_text_in_order(a in nasty_text(), b in nasty_text()) {
        check(&a, &b, Ord::cmp)?;
    }

    #[test]
    fn nasty_text_in_reverse_order(a in nasty_text(), b in nasty_text(), more: (u8, u8)) {
        check(&(Reverse(a), Reverse(more.0), more.1), &(Reverse(b), Reverse(more.1), 7), Ord::cmp)?;
    }

    #[test]
    fn nasty_tuples_in_order(
        a in (nasty_text(), nasty_bytes(), any::<i8>(), any_f64(), prop::option::of(nasty_text())),
        b in (nasty_text(), nasty_bytes(), any::<i8>(), any_f64(), prop::option::of(nasty_text())),
    ) {
        check(&a, &b, |a, b| {
            (&a.0, &a.1, a.2).cmp(&(&b.0, &b.1, b.2)).then(a.3.total_cmp(&b.3)).then(a.4.cmp(&b.4))
        })?;
    }

    /// What decodes at all encodes back to the same bytes: there is one encoding of a value.
    #[test]
    fn arbitrary_bytes_decode_or_are_refused(bytes in prop_oneof![nasty_bytes(), any::<Vec<u8>>()]) {
        fn refused_or_canonical<K: KeyEncode + KeyDecode>(bytes: &[u8]) -> Result<(), TestCaseError> {
            match key::decode::<K>(bytes) {
                Ok(value) => prop_assert_eq!(key::encode(&value), bytes),
                Err(error) => prop_assert!(error.offset <= bytes.len()),
            }
            Ok(())
        }
        refused_or_canonical::<String>(&bytes)?;
        refused_or_canonical::<Vec<u8>>(&bytes)?;
        refused_or_canonical::<Option<bool>>(&bytes)?;
        refused_or_canonical::<(u8, Vec<u8>, Option<i16>)>(&bytes)?;
        refused_or_canonical::<(String, f32)>(&bytes)?;
        refused_or_canonical::<(Option<Vec<u8>>, Option<String>, bool)>(&bytes)?;
        refused_or_canonical::<i128>(&bytes)?;
        refused_or_canonical::<(Reverse<Vec<u8>>, Reverse<(Option<String>, u16)>)>(&bytes)?;
    }

    #[test]
    fn a_prefix_range_holds_what_begins_with_the_prefix(prefix in nasty_bytes(), key in nasty_bytes()) {
        let range = key::prefix_range(&prefix);
        let inside = std::ops::RangeBounds::<&[u8]>::contains(&range.bounds(), &key.as_slice());
        prop_assert_eq!(inside, key.starts_with(&prefix));
    }

    #[test]
    fn partial_text_is_a_prefix_of_what_begins_so(begin in nasty_text(), text in nasty_text()) {
        let inside = key::encode(&text).starts_with(&key::encode_partial(&begin));
        prop_assert_eq!(inside, text.starts_with(&begin));
    }
}

#[test]
fn the_ends_of_each_type_sort() {
    fn rising<K: KeyEncode>(values: &[K]) {
        for pair in values.windows(2) {
            assert!(key::encode(&pair[0]) < key::encode(&pair[1]));
        }
    }
    rising(&[i8::MIN, -1, 0, 1, i8::MAX]);
    rising(&[i64::MIN, -1, 0, 1, i64::MAX]);
    rising(&[0, 1, u128::MAX]);
    rising(&[
        -f64::NAN,
        f64::NEG_INFINITY,
        f64::MIN,
        -f64::MIN_POSITIVE,
        -0.0,
        0.0,
        f64::MIN_POSITIVE,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
    ]);
    rising(&["", "\0", "\0\0", "\u{1}", "a", "a\0", "a\0b", "aa", "b"]);
    rising(&[None, Some(i8::MIN), Some(0)]);
}
