//! The byte layout of keys is stored in tables: the document's examples pin it.

use sapwood::key;

/// What the document should say, made by the code.
fn examples() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("7u8", key::encode(&7_u8)),
        ("258u16", key::encode(&258_u16)),
        ("1u32", key::encode(&1_u32)),
        ("1u64", key::encode(&1_u64)),
        ("1u128", key::encode(&1_u128)),
        ("-128i8", key::encode(&-128_i8)),
        ("-1i16", key::encode(&-1_i16)),
        ("0i32", key::encode(&0_i32)),
        ("1i64", key::encode(&1_i64)),
        ("-2i128", key::encode(&-2_i128)),
        ("-inf f32", key::encode(&f32::NEG_INFINITY)),
        ("-1.0 f64", key::encode(&-1.0_f64)),
        ("-0.0 f64", key::encode(&-0.0_f64)),
        ("0.0 f64", key::encode(&0.0_f64)),
        ("1.0 f64", key::encode(&1.0_f64)),
        ("NaN f32", key::encode(&f32::from_bits(0x7FC0_0000))),
        ("false", key::encode(&false)),
        ("true", key::encode(&true)),
        (r#""""#, key::encode("")),
        (r#""a""#, key::encode("a")),
        (r#""a\0b""#, key::encode("a\0b")),
        ("None::<u8>", key::encode(&None::<u8>)),
        ("Some(5u8)", key::encode(&Some(5_u8))),
        ("Reverse(258u16)", key::encode(&std::cmp::Reverse(258_u16))),
        (r#"("UA", 1545u16, 3u8)"#, key::encode(&("UA", 1545_u16, 3_u8))),
    ]
}

#[test]
fn the_document_shows_the_bytes_that_the_code_writes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design/keys.md");
    let document = std::fs::read_to_string(path).expect("docs/design/keys.md is in the repository");
    let (_, after) =
        document.split_once("<!-- examples: value => bytes -->").expect("the begin mark");
    let (tables, _) = after.split_once("<!-- end -->").expect("the end mark");
    let written: Vec<&str> = tables.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = examples()
        .into_iter()
        .map(|(value, bytes)| {
            let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("| `{value}` | `{}` |", hex.join(" "))
        })
        .collect();
    assert_eq!(written, expected);
}

#[test]
fn text_and_bytes_of_the_same_content_are_the_same_key() {
    assert_eq!(key::encode("a\0b"), key::encode(&b"a\0b"[..]));
    assert_eq!(key::encode(&"a".to_owned()), key::encode(&b"a".to_vec()));
    assert_eq!(key::encode(&&&"a"), key::encode("a"));
}

#[test]
fn decoding_says_where_and_what() {
    fn fails<K: key::KeyDecode + std::fmt::Debug>(bytes: &[u8], offset: usize, what: &str) {
        let error = key::decode::<K>(bytes).expect_err("not a key of this type");
        assert_eq!((error.offset, error.what.as_str()), (offset, what));
    }
    fails::<u16>(&[], 0, "2 bytes expected, 0 left");
    fails::<(u8, u8)>(&[9], 1, "1 byte expected, 0 left");
    fails::<u8>(&[1, 2, 3], 1, "2 more bytes than the type has");
    fails::<bool>(&[2], 0, "0 or 1 expected, found 0x02");
    fails::<bool>(&[], 0, "1 byte expected, 0 left");
    fails::<Option<u8>>(&[0, 1], 0, "1 or 2 expected, found 0x00");
    fails::<Option<u8>>(&[], 0, "1 byte expected, 0 left");
    fails::<Option<u8>>(&[2], 1, "1 byte expected, 0 left");
    fails::<String>(b"ab", 2, "1 byte expected, 0 left");
    fails::<String>(b"ab\0", 3, "1 byte expected, 0 left");
    fails::<String>(b"ab\0c", 3, "0x01 or 0xff expected after a zero byte, found 0x63");
    fails::<(u8, String)>(b"\x01\xFF\0\x01", 1, "the text is not UTF-8");
}
