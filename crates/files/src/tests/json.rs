//! JSON.

use super::{Files, columns, open, rows, rows_of, scan, settled, short};
use crate::{Malformed, ReadOptions};

#[test]
fn fields_are_columns() {
    let files = Files::new();
    let lines = "{\"a\":1,\"b\":{\"c\":\"x\",\"d\":{\"e\":2.5}}}\n\n{\"b\":{\"c\":null},\"a\":2,\"f\":[1,{}]}\n";
    let array = "[{\"a\":1,\"b\":{\"c\":\"x\",\"d\":{\"e\":2.5}}},\n {\"b\":{\"c\":null},\"a\":2,\"f\":[1,{}]} ]";
    for (name, text) in [
        ("a.jsonl", lines.to_owned()),
        ("a.json", lines.to_owned()),
        ("a.txt", format!("\u{FEFF}{lines}")),
        ("b.json", array.to_owned()),
        ("c", array.to_owned()),
        ("d.json", lines.replace(",\"b\"", ",\n\"b\"")),
    ] {
        for block_bytes in (1..=64).chain([1 << 20]) {
            let options = ReadOptions { block_bytes, ..ReadOptions::default() };
            let source = open(&files.write(name, &text), &options).expect("a source");
            assert_eq!(columns(&source), "a i64, b.c text, b.d.e f64, f text");
            let found = rows(&source).expect("rows");
            assert_eq!(found, ["1|x|2.5|null", "2|null|null|[1,{}]"], "{name}");
            assert_eq!(rows_of(&source, &[2, 0]).expect("rows"), ["2.5|1", "null|2"]);
            assert_eq!(rows_of(&source, &[]).expect("rows").len(), 2);
        }
    }
}

#[test]
fn columns_have_the_types_of_all_values() {
    let files = Files::new();
    for (values, kind, shown) in [
        (&["1", "-2"][..], "i64", "1|-2"),
        (&["1", "18446744073709551615"], "i128", "1|18446744073709551615"),
        (&["1", "18446744073709551616"], "i128", "1|18446744073709551616"),
        (
            &["1", "340282366920938463463374607431768211455"],
            "u128",
            "1|340282366920938463463374607431768211455",
        ),
        (
            &["-1", "340282366920938463463374607431768211455"],
            "text",
            "-1|340282366920938463463374607431768211455",
        ),
        (
            &["1", "9999999999999999999999999999999999999999"],
            "text",
            "1|9999999999999999999999999999999999999999",
        ),
        (&["2.5", "18446744073709551617"], "text", "2.5|18446744073709551617"),
        (&["2.5", "1e400"], "text", "2.5|1e400"),
        (&["1", "2.5", "null"], "f64", "1|2.5|null"),
        (&["true", "false"], "bool", "true|false"),
        (&["true", "1"], "text", "true|1"),
        (&["\"12\"", "\"\""], "text", "12|"),
        (&["\"12\"", "7"], "text", "12|7"),
        (&["\"2013-01-01\""], "date", "2013-01-01"),
        (
            &["\"2013-01-01\"", "\"2013-01-01T10:00Z\""],
            "timestamp(us)",
            "2013-01-01 00:00:00|2013-01-01 10:00:00",
        ),
        (&["\"2013-01-01\"", "\"x\""], "text", "2013-01-01|x"),
        (&["null"], "text", "null"),
        (&["[1, 2]", "\"x\""], "text", "[1,2]|x"),
        (&["[1, 2]", "[3,4]", "null"], "[i64; 2]", "[1, 2]|[3, 4]|null"),
        (&["[1, 2]", "[3,4.5]"], "[f64; 2]", "[1, 2]|[3, 4.5]"),
        (&["[1, 2]", "[18446744073709551617, 0]"], "[i128; 2]", "[1, 2]|[18446744073709551617, 0]"),
        (&["[true]", "[false]"], "[bool; 1]", "[true]|[false]"),
        (&["[\"2013-01-01\"]"], "[date; 1]", "[2013-01-01]"),
        (&["[1, 2]", "[3]"], "text", "[1,2]|[3]"),
        (&["[1, 2]", "[3, null]"], "text", "[1,2]|[3,null]"),
        (&["[1, 2]", "[3, \"x\"]"], "text", "[1,2]|[3,\"x\"]"),
        (&["[1]", "[[2]]"], "text", "[1]|[[2]]"),
        (&["[]"], "text", "[]"),
        (&["[1]", "7"], "text", "[1]|7"),
    ] {
        let text: String = values.iter().map(|value| format!("{{\"a\":{value}}}\n")).collect();
        let path = files.write("a.jsonl", text);
        let source = open(&path, &ReadOptions::default()).expect("a source");
        assert_eq!(columns(&source), format!("a {kind}"));
        assert_eq!(rows(&source).expect("rows").join("|"), shown);
        // From the first value alone it is the same in the end.
        let options = ReadOptions { sample_rows: 1, block_bytes: 1, ..ReadOptions::default() };
        let (source, rows, _) = settled(open(&path, &options).expect("a source"), &[0]);
        assert_eq!((rows.join("|").as_str(), columns(&source)), (shown, format!("a {kind}")));
    }
}

#[test]
fn further_fields_are_found_when_all_are_wanted() {
    let files = Files::new();
    let path = files.write("a.jsonl", "{\"a\":1}\n{\"a\":2}\n{\"a\":3,\"b\":{\"c\":4}}\n");
    let options = ReadOptions { sample_rows: 1, block_bytes: 1, ..ReadOptions::default() };
    let types = vec![("b.c".into(), "u8".parse().expect("a type"))];
    let source = open(&path, &ReadOptions { types, ..options.clone() }).expect("a source");
    assert_eq!(columns(&source), "a i64, b.c u8");
    let source = open(&path, &options).expect("a source");
    let what = scan(&source, &[0], 1).expect_err("a further field");
    assert!(short(&path, &what).starts_with("a.jsonl, line 3: the field `b.c`"), "{what}");
    let (source, rows, opened) = settled(source, &[0]);
    assert_eq!((columns(&source).as_str(), rows.len(), opened), ("a i64, b.c i64", 3, 2));
}

#[test]
fn types_that_are_said_and_missing_texts() {
    let files = Files::new();
    let path = files.write("a.jsonl", "{\"a\":\"7\",\"b\":\"-\"}\n{\"a\":8,\"b\":\"x\"}\n");
    let options = ReadOptions {
        types: vec![("a".into(), "decimal(5,2)".parse().expect("a type"))],
        na: Some("-".into()),
        ..ReadOptions::default()
    };
    let source = open(&path, &options).expect("a source");
    assert_eq!(rows(&source).expect("rows"), ["7.00|null", "8.00|x"]);
    let options =
        ReadOptions { types: vec![("b".into(), "i64".parse().expect("a type"))], ..options };
    let what = rows(&open(&path, &options).expect("a source")).expect_err("no number");
    assert!(
        short(&path, &what).starts_with("a.jsonl, line 2: `x` in column `b` is no i64"),
        "{what}"
    );
}

#[test]
fn errors_name_their_line() {
    let files = Files::new();
    let path = files.write("a.jsonl", "{\"a\":1}\n\n{\"a\"\n3\n{\"a\":2}\n");
    for block_bytes in [1, 9, 100] {
        let options = ReadOptions { block_bytes, ..ReadOptions::default() };
        let what = rows(&open(&path, &options).expect("a source")).expect_err("no JSON");
        assert!(short(&path, &what).starts_with("a.jsonl, line 3: it is no JSON"), "{what}");
        let options = ReadOptions { malformed: Malformed::Skip, ..options };
        let source = open(&path, &options).expect("a source");
        assert_eq!((rows(&source).expect("rows").len(), source.left_out().0), (2, 2));
    }
    for (text, expected) in [
        ("[{\"a\":1},\n{\"a\":}]", "a.json, line 2: it is no JSON"),
        ("[{\"a\":1}\n", "a.json, line 2: `]` is expected"),
        ("[{\"a\":1}]\n{}", "a.json, line 2: nothing is expected behind an array"),
    ] {
        for block_bytes in (1..20).chain([1 << 20]) {
            let options = ReadOptions { block_bytes, ..ReadOptions::default() };
            let what = open(&files.write("a.json", text), &options).expect_err(expected);
            assert!(what.starts_with(expected), "{what}");
        }
    }
}

#[test]
fn types_that_are_said_have_all_digits() {
    let files = Files::new();
    for (value, kind, shown) in [
        ("0.12345678901234567890123456789", "decimal(30,29)", "0.12345678901234567890123456789"),
        ("1.5e3", "decimal(10,2)", "1500.00"),
        ("1e3", "i32", "1000"),
        (
            "340282366920938463463374607431768211455",
            "u128",
            "340282366920938463463374607431768211455",
        ),
        (
            "-170141183460469231731687303715884105728",
            "i128",
            "-170141183460469231731687303715884105728",
        ),
        ("12345678901234567890123.4500", "text", "12345678901234567890123.4500"),
        ("[1, 2.5]", "[f32; 2]", "[1, 2.5]"),
        ("[\"0.10\", 2]", "[decimal(4,2); 2]", "[0.10, 2.00]"),
        ("\"[1,2]\"", "[u128; 2]", "[1, 2]"),
    ] {
        let path = files.write("a.jsonl", format!("{{\"a\":{value}}}\n"));
        let types = vec![("a".into(), kind.parse().expect("a type"))];
        let source = open(&path, &ReadOptions { types, ..ReadOptions::default() });
        let source = source.expect("a source");
        assert_eq!(
            (columns(&source), rows(&source)),
            (format!("a {kind}"), Ok(vec![shown.into()]))
        );
    }
    for (value, kind) in [
        ("0.123", "decimal(10,2)"),
        ("340282366920938463463374607431768211456", "u128"),
        ("1.5", "i64"),
        ("[1]", "[f32; 2]"),
        ("[1, null]", "[f32; 2]"),
        ("[[1], [2]]", "[f32; 2]"),
        ("{\"b\": 1}", "i64"),
    ] {
        let path = files.write("a.jsonl", format!("{{\"a\":{value}}}\n"));
        let types = vec![("a".into(), kind.parse().expect("a type"))];
        let read = open(&path, &ReadOptions { types, ..ReadOptions::default() });
        assert!(read.and_then(|source| rows(&source)).is_err(), "{value} as {kind}");
    }
}
