//! CSV.

use std::fmt::Write as _;

use sapwood_schema::Type;

use super::{Files, columns, open, rows, rows_of, scan, settled, short};
use crate::{Malformed, ReadOptions};

#[test]
fn random_files_have_the_rows_that_another_reader_has() {
    const WORDS: &[&str] = &[
        "",
        "7",
        "-1.5",
        "x",
        "stra\u{DF}e",
        "a\"b",
        "\"a,b\"",
        "\"a\nb\"",
        "\"\"\"\"",
        "\"\r\n\"",
        "\"x\"y",
    ];
    let files = Files::new();
    let mut random = fastrand::Rng::with_seed(2_013);
    for number in 0..40 {
        let mut text = String::from(if number % 3 == 0 { "\u{FEFF}a,b,c\n" } else { "a,b,c\r\n" });
        let count = random.usize(0..30);
        for row in 0..count {
            let cells: Vec<&str> = (0..3).map(|_| WORDS[random.usize(0..WORDS.len())]).collect();
            let end = ["\n", "\r\n", "\n\n"][random.usize(0..3)];
            let end = if row + 1 == count && random.bool() { "" } else { end };
            write!(text, "{}{end}", cells.join(",")).expect("a string takes everything");
        }
        let path = files.write("random.csv", &text);
        let mut reader = csv::Reader::from_path(&path).expect("the file");
        let expected: Vec<String> = reader
            .records()
            .map(|record| {
                let record = record.expect("all have three fields");
                let cells = record.iter().map(|cell| if cell.is_empty() { "null" } else { cell });
                cells.collect::<Vec<_>>().join("|")
            })
            .collect();
        for block_bytes in 1..=64 {
            let types = ["a", "b", "c"].map(|name| (name.to_owned(), Type::Text)).to_vec();
            let options = ReadOptions { block_bytes, types, ..ReadOptions::default() };
            let source = open(&path, &options).expect("a source");
            assert_eq!(rows(&source).as_ref(), Ok(&expected), "{block_bytes} {text:?}");
        }
    }
}

#[test]
fn columns_have_names_and_types() {
    let files = Files::new();
    for (text, expected) in [
        ("a,b,c,d\n1,2.5,2013-01-01,x\n", "a i64, b f64, c date, d text"),
        ("a;b\n1,5;true\n", "a text, b bool"),
        ("a\tb\n1\t2\n", "a i64, b i64"),
        ("\u{FEFF}a|b\n1|2013-01-01 10:00\n", "a i64, b timestamp(us)"),
        ("id,,id\n1,2,3\n", "id i64, column2 i64, id_1 i64"),
        ("\"a,x\",\"b\"\"\"\n1,2\n", "a,x i64, b\" i64"),
        ("a,b\n", "a text, b text"),
        ("a,b", "a text, b text"),
        ("a\n9223372036854775808\n1\n", "a i128"),
    ] {
        let source = files.open("a.csv", text);
        assert_eq!(columns(&source), expected, "{text:?}");
        rows(&source).expect("rows");
    }
    let source = files.open("a.csv", "id,id\n1,2\n");
    assert!(source.notices()[0].contains("are both called `id`"), "{:?}", source.notices());
    assert_eq!(columns(&files.open("a.tsv", "a,b\tc\n")), "a,b text, c text");
}

#[test]
fn a_request_has_the_columns_that_it_names() {
    let files = Files::new();
    let source = files.open("a.csv", "a,b,c\n1,x,2.5\n2,,3\n");
    assert_eq!(rows_of(&source, &[2, 0, 2]).expect("rows"), ["2.5|1|2.5", "3|2|3"]);
    assert_eq!(rows_of(&source, &[1]).expect("rows"), ["x", "null"]);
    assert_eq!(rows_of(&source, &[]).expect("rows"), ["", ""]);
    assert!(rows(&files.open("b.csv", "a,b\n\n")).expect("no rows").is_empty());
}

#[test]
fn na_is_missing_beside_numbers() {
    let files = Files::new();
    let source = files.open("a.csv", "a,b\n1,NA\nNA,x\n");
    assert_eq!((columns(&source).as_str(), source.notices().len()), ("a i64, b text", 1));
    assert_eq!(rows(&source).expect("rows"), ["1|null", "null|x"]);
    let source = files.open("a.csv", "a,b\n1,NA\n2,DE\n");
    assert_eq!(
        (rows(&source).expect("rows"), source.notices().len()),
        (vec!["1|NA".into(), "2|DE".into()], 0)
    );
    let options = ReadOptions { na: Some("-".into()), ..ReadOptions::default() };
    let source = open(&files.write("a.csv", "a,b\n1,NA\n-,-\n"), &options).expect("a source");
    assert_eq!(rows(&source).expect("rows"), ["1|NA", "null|null"]);
    assert!(source.notices().is_empty());
}

/// A sample of two rows, so that those behind them may surprise.
fn small() -> ReadOptions {
    ReadOptions { sample_rows: 2, block_bytes: 8, ..ReadOptions::default() }
}

#[test]
fn types_widen_to_those_of_all_rows() {
    let files = Files::new();
    for (later, kind, shown) in [
        ("3", "i64", "1|2|3"),
        ("2.5", "f64", "1|2|2.5"),
        ("x", "text", "1|2|x"),
        ("007", "text", "1|2|007"),
        ("NA", "i64", "1|2|null"),
        ("9223372036854775808", "i128", "1|2|9223372036854775808"),
        ("2.5\nx", "text", "1|2|2.5|x"),
        ("2.5\nNA", "f64", "1|2|2.5|null"),
    ] {
        let path = files.write("a.csv", format!("a\n1\n2\n{later}\n"));
        let source = open(&path, &small()).expect("a source");
        assert_eq!(columns(&source), "a i64");
        let (source, rows, opened) = settled(source, &[0]);
        assert_eq!((rows.join("|").as_str(), columns(&source)), (shown, format!("a {kind}")));
        let whole = open(&path, &ReadOptions::default()).expect("a source");
        assert_eq!(columns(&whole), columns(&source));
        assert_eq!(opened, 1 + usize::from(later != "3"), "{later}");
    }
    // A range that is too small for all that looks like its type.
    let text = "a\n2013-01-01 10:00:00.123456789\n2013-01-01\n9999-01-01\n";
    let source = open(&files.write("a.csv", text), &small()).expect("a source");
    assert_eq!(columns(&source), "a timestamp(ns)");
    assert_eq!(columns(&settled(source, &[0]).0), "a text");
}

#[test]
fn columns_that_are_not_read_stay() {
    let files = Files::new();
    let source =
        open(&files.write("a.csv", "a,b\n1,1\n2,2\n3,x\nx,4\n"), &small()).expect("a source");
    assert_eq!(columns(&source), "a i64, b i64");
    let what = scan(&source, &[0], 1).expect_err("a value that does not fit");
    assert_eq!(
        short(&files.path("a.csv"), &what),
        "a.csv, line 5: `x` in column `a` is no i64, the type of the rows before it; opened again, \
         the file has a wider one"
    );
    let source = source.reopen().expect("a wider source");
    assert_eq!(columns(&source), "a text, b i64");
    assert_eq!(rows_of(&source, &[0]).expect("rows"), ["1", "2", "3", "x"]);
    assert!(!source.is_too_narrow());
    assert_eq!(columns(&source.reopen().expect("all columns")), "a text, b text");
}

#[test]
fn types_that_are_said_stay() {
    let files = Files::new();
    let path = files.write("a.csv", "a,b\n007,1\n8,x\n");
    let said = |kind: &str| ReadOptions {
        types: vec![("a".into(), kind.parse().expect("a type"))],
        ..ReadOptions::default()
    };
    for (kind, shown) in
        [("u8", "7 8"), ("decimal(5,1)", "7.0 8.0"), ("text", "007 8"), ("f32", "7 8")]
    {
        let source = open(&path, &said(kind)).expect("a source");
        assert_eq!(rows_of(&source, &[0]).expect("rows").join(" "), shown);
    }
    let source = open(&path, &said("date")).expect("a source");
    let what = rows_of(&source, &[0]).expect_err("no date");
    assert!(
        short(&path, &what).starts_with("a.csv, line 2: `007` in column `a` is no date"),
        "{what}"
    );
    assert!(!source.is_too_narrow());
    let options = ReadOptions { types: vec![("z".into(), Type::Text)], ..ReadOptions::default() };
    let what = open(&path, &options).expect_err("no such column");
    assert_eq!(what, "a.csv: no column `z`; the file has `a`, `b` (it was to be text)");
}

#[test]
fn errors_name_their_line() {
    let files = Files::new();
    for (text, expected) in [
        (&b"a,b\n1,2\n3\n"[..], "line 3: 1 field, the header has 2"),
        (b"a,b\r\n\"1\n\n\",2\r\n\r\n3,4,5\r\n", "line 6: 3 fields, the header has 2"),
        (b"\n\na,b\n1,2\n3,\xFF\n", "line 5: it is not UTF-8"),
        (b"a,b\n1,2\n\"x\ny\",\"\xFF\"\n", "line 3: it is not UTF-8"),
    ] {
        for block_bytes in [1, 5, 8, 1 << 20] {
            let path = files.write("a.csv", text);
            let options = ReadOptions { block_bytes, ..ReadOptions::default() };
            let source = open(&path, &options).expect("a source");
            for columns in [&[][..], &[0], &[0, 1]] {
                let what = scan(&source, columns, 1).expect_err(expected);
                let what = short(&path, &what);
                assert!(what.starts_with(&format!("a.csv, {expected}")), "{what}");
            }
            let options = ReadOptions { malformed: Malformed::Skip, ..options };
            let source = open(&path, &options).expect("a source");
            assert_eq!(rows(&source).expect("one is left out").len(), 1);
            assert_eq!(source.left_out().0, 1);
        }
    }
}

#[test]
fn many_rows_come_in_small_batches() {
    let files = Files::new();
    let mut text = String::from("n,word\n");
    for number in 0..50_000 {
        writeln!(text, "{number},w{}", number % 7).expect("a string takes everything");
    }
    let path = files.write("a.csv", text);
    for block_bytes in [1 << 12, 1 << 16, 1 << 20] {
        let options = ReadOptions { block_bytes, ..ReadOptions::default() };
        let source = open(&path, &options).expect("a source");
        let rows = rows_of(&source, &[1, 0]).expect("rows");
        let expected = (0..50_000).map(|number| format!("w{}|{number}", number % 7));
        assert!(rows.into_iter().eq(expected));
    }
}
