//! What cannot be used is refused with what, where and what next: no panic, no backtrace.

use std::fs;

use tempfile::TempDir;

use crate::{flights_path, sapwood};

/// Runs over a file of these bytes, and answers the exit code and standard error with the
/// directory left out.
fn run(name: &str, bytes: impl AsRef<[u8]>, args: &[&str]) -> (i32, String) {
    let directory = TempDir::new().expect("a directory for the test");
    fs::write(directory.path().join(name), bytes).expect("a file for the test");
    let output = sapwood(args).current_dir(&directory).output().expect("it runs");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(!stderr.contains("panicked") && !stderr.contains("backtrace"), "{stderr}");
    (output.status.code().expect("no signal"), stderr)
}

/// As [`run`], of a command that must fail so.
#[track_caller]
fn refused(name: &str, bytes: impl AsRef<[u8]>, args: &[&str], code: i32, message: &str) {
    let (found, stderr) = run(name, bytes, args);
    assert_eq!(found, code, "{stderr}");
    let error = stderr.split_once("error: ").unwrap_or_else(|| panic!("no error in {stderr}")).1;
    assert!(error.starts_with(message), "found: {error}");
}

#[test]
fn files_that_cannot_be_read() {
    let stats = |file| ["stats", file, "--key", "k"];
    refused("x", "", &stats("none.csv"), 1, "none.csv cannot be read: No such file or directory\n");
    refused(
        "x.csv",
        "",
        &stats("x.csv"),
        1,
        "x.csv is empty: a header line with the names of the columns is expected\n",
    );
    refused("x.csv", "\n\n", &stats("x.csv"), 1, "x.csv is empty");
    refused(
        "x",
        "k\n\0\n",
        &stats("x"),
        1,
        "x cannot be read: its bytes are no text and no format",
    );
    refused("x", "", &["load", "."], 2, ". is a directory: give the file to load");
    refused("x", "", &stats("-"), 1, "standard input is empty: a header line");
}

#[test]
fn packed_files_that_are_damaged() {
    let whole = fs::read(flights_path()).expect("bundled");
    let args = ["stats", "x.csv.zst", "--key", "carrier,flight", "-q", "--show-errors", "0"];
    let (code, stderr) = run("x.csv.zst", &whole[..whole.len() / 2], &args);
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stderr.contains("x.csv.zst cannot be read: incomplete frame; is the file whole?"),
        "{stderr}"
    );
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 0x10;
    let (code, stderr) = run("x.csv.zst", &changed, &args);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("is the file whole?"), "{stderr}");
    refused("x.csv.zst", &whole[..5], &args, 1, "x.csv.zst cannot be read");
    refused(
        "x.csv.zst",
        b"\x28\xB5\x2F\xFDrubbish that is no frame",
        &args,
        1,
        "x.csv.zst cannot be read",
    );
    refused(
        "x.csv.zst",
        b"\x1F\x8Brubbish that is no member",
        &args,
        1,
        "x.csv.zst cannot be read",
    );
}

#[test]
fn columns_that_are_not_there() {
    refused(
        "x.csv",
        "a,b\n1,2\n",
        &["stats", "x.csv", "--key", "c"],
        1,
        "no column `c`; the file has `a`, `b`\n",
    );
    refused(
        "x.jsonl",
        "{\"a\":1}\n",
        &["stats", "x.jsonl", "--key", "c"],
        1,
        "no column `c`; the file has `a`\n",
    );
    refused(
        "x.csv",
        "a\n1\n",
        &["stats", "x.csv", "--key", "a,a"],
        2,
        "invalid value 'a,a' for '--key",
    );
    refused("x.csv", "a\n1\n", &["stats", "x.csv", "--key", ""], 2, "invalid value '' for '--key");
    refused(
        "x.csv",
        "a\n1\n",
        &["stats", "x.csv"],
        2,
        "--key is needed: it names the columns that make the key of a row\n",
    );
}

#[test]
fn values_that_do_not_fit_the_key() {
    let rows = "carrier,flight\nUA,1\n";
    let key = "carrier,flight:int";
    let get = |values: &[&'static str]| {
        let mut args = vec!["get", "x.csv", "-q", "--key", key];
        args.extend(values);
        args
    };
    refused(
        "x.csv",
        rows,
        &get(&["UA"]),
        2,
        "1 value given, the key has 2 columns; `sapwood scan --prefix`",
    );
    refused("x.csv", rows, &get(&["UA", "1", "2"]), 2, "3 values given, the key has 2 columns");
    refused("x.csv", rows, &get(&["UA", "one"]), 2, "key column `flight`: `one` is no i64\n");
    refused("x.csv", rows, &get(&["UA", ""]), 2, "key column `flight`: `` is no i64\n");
    refused(
        "x.csv",
        rows,
        &get(&["UA", "2"]),
        1,
        "no row has the key UA,2 (carrier:text,flight:i64)\n",
    );
    let scan = |option, value| ["scan", "x.csv", "-q", "--key", key, option, value];
    refused("x.csv", rows, &scan("--from", "UA,x"), 2, "key column `flight`: `x` is no i64");
    refused("x.csv", rows, &scan("--to", "UA,1,1"), 2, "3 values given, the key has 2 columns");
    refused("x.csv", rows, &scan("--prefix", "UA,1,1"), 2, "3 values given, the key has 2 columns");
    refused("x.csv", rows, &scan("--prefix", "UA\nUB"), 2, "one line is expected");
    refused("x.csv", rows, &scan("--limit", "-1"), 2, "unexpected argument '-1' found");
    let both = ["scan", "x.csv", "--key", key, "--from", "UA", "--prefix", "UA"];
    refused(
        "x.csv",
        rows,
        &both,
        2,
        "the argument '--from <VALUES>' cannot be used with '--prefix <VALUES>'",
    );
}

#[test]
fn malformed_rows_are_named_and_counted_and_the_others_loaded() {
    let rows = b"k,n:x\n1,a\nx,b\n\n2\n3,c,d\n\xFF,e\n,f\n4,g\n".as_slice();
    let args = ["stats", "x.csv", "--key", "k:int"];
    let (code, stderr) = run("x.csv", rows, &args);
    assert_eq!(code, 0, "{stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(
        lines[..6],
        [
            "line 3: malformed: `x` in column `k` is no i64",
            "line 5: malformed: 1 field, the header has 2",
            "line 6: malformed: 3 fields, the header has 2",
            "line 7: malformed: it is not UTF-8: if it is Latin-1, as older programs write, \
             `iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW` makes it so",
            "line 8: malformed: column `k` (i64): a value is needed: the column is not nullable",
            "warning: 5 malformed rows left out",
        ]
    );
    let mut strict = args.to_vec();
    strict.push("--strict");
    refused("x.csv", rows, &strict, 1, "--strict: 5 malformed rows, 0 repeated keys\n");
    let (_, stderr) =
        run("x.csv", rows, &["stats", "x.csv", "--key", "k:int", "-q", "--show-errors", "1"]);
    assert_eq!(
        stderr,
        "line 3: malformed: `x` in column `k` is no i64\nwarning: 5 malformed rows left out\n"
    );
}

#[test]
fn the_last_row_has_a_say_in_the_types_too() {
    let mut rows = String::from("k\n");
    for number in 0..50_000 {
        rows.push_str(&format!("{number}\n"));
    }
    rows.push_str("end\n");
    let get = |key| ["get", "x.csv", "-q", "--key", key, "end"];
    assert_eq!(run("x.csv", &rows, &get("k")), (0, String::new()));
    let message = "key column `k`: `end` is no i64\n";
    let (code, stderr) = run("x.csv", &rows, &get("k:int"));
    let malformed = "line 50002: malformed: `end` in column `k` is no i64\n";
    assert!(code == 2 && stderr.starts_with(malformed) && stderr.contains(message), "{stderr}");
}

#[test]
fn keys_and_rows_beyond_the_limits() {
    let rows = format!("k,v\n{},1\nshort,2\n", "x".repeat(70_000));
    let (code, stderr) = run("x.csv", &rows, &["stats", "x.csv", "--key", "k", "-q"]);
    assert_eq!(code, 0);
    assert_eq!(
        stderr,
        "line 2: malformed: the key is 68.4 KiB long, the most is 64.0 KiB\n\
         warning: 1 malformed row left out\n"
    );
}

#[test]
fn a_budget_that_is_reached() {
    let mut rows = String::from("k,v\n");
    for number in 0..5000 {
        rows.push_str(&format!("{number},{}\n", "v".repeat(200)));
    }
    let args = ["stats", "x.csv", "--key", "k", "--memory-budget", "256K"];
    let (code, stderr) = run("x.csv", &rows, &args);
    assert_eq!(code, 1);
    assert!(
        stderr.contains("cannot be loaded, ") && stderr.contains("(--memory-budget)"),
        "{stderr}"
    );
    let bad = ["stats", "x.csv", "--key", "k", "--memory-budget", "lots"];
    refused("x.csv", &rows, &bad, 2, "invalid value 'lots' for '--memory-budget <BYTES>'");
}

#[test]
fn rubbish_is_refused_in_every_form() {
    // A fixed run of a small generator: every byte value, nothing that looks like text.
    let mut state = 1_u32;
    let rubbish: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(100_000)
    .collect();
    for (name, key) in [("x.csv", "k"), ("x.jsonl", "k")] {
        let (code, stderr) = run(name, &rubbish, &["stats", name, "--key", key, "--strict"]);
        assert_eq!(code, 1, "{stderr}");
        assert!(stderr.chars().all(|c| c == '\n' || !c.is_control()), "no terminal is disturbed");
    }
}

#[test]
fn unknown_words_are_usage_errors() {
    for args in [
        &["sample", "trains"][..],
        &["flights"],
        &["sample", "flights", "--threads", "0"],
        &["stats", "x.csv", "--key", "k", "--duplicates", "some"],
        &["completions", "dos"],
        &[],
    ] {
        sapwood(args).assert().code(2);
    }
}

#[test]
fn a_quote_that_nothing_closes_is_an_error_in_every_packing() {
    // Beyond every buffer, and the quote opens late or early.
    let good: String = (0..100_000).map(|number| format!("{number},x,{number}\n")).collect();
    let late = format!("id,name,v\n{good}a,b,\"20\nc,d,40\n");
    let early = format!("id,name,v\n1,a,10\n2,b,\"20\n{good}");
    for (text, line) in [
        ("id,name,v\n1,a,10\n2,b,\"20\n3,c,30\n4,d,40\n".to_owned(), 3),
        ("id,name,v\n1,a,10\n\"2,b,20\n3,c,30\n".to_owned(), 3),
        ("id,name,v\n1,\"a\na\",10\n2,b,\"20".to_owned(), 4),
        ("id,\"name,v\n1,a,10\n".to_owned(), 1),
        (late, 100_002),
        (early, 3),
    ] {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, text.as_bytes()).expect("a vector takes everything");
        for (name, bytes) in [
            ("x.csv", text.clone().into_bytes()),
            ("x.csv.gz", gzip.finish().expect("a vector takes everything")),
            ("x.csv.zst", zstd::encode_all(text.as_bytes(), 1).expect("a vector takes everything")),
        ] {
            let message = format!(
                "{name}, line {line}: a quote opens a value there, and none closes it; close it"
            );
            for args in [
                &["stats", name, "--key", "id"][..],
                &["stats", name, "--key", "id", "--strict"],
                &["aggregate", name],
                &["scan", name, "--key", "id", "--engine", "hash"],
            ] {
                refused(name, &bytes, args, 1, &message);
            }
        }
    }
    let rows = "id\n1\n";
    let scan = ["scan", "x.csv", "--key", "id", "--from", "\"1"];
    refused("x.csv", rows, &scan, 2, "a quote opens a value, and none closes it");
    let directory = TempDir::new().expect("a directory for the test");
    fs::write(directory.path().join("rows.csv"), rows).expect("a file for the test");
    let rows = directory.path().join("rows.csv");
    let keys = ["aggregate", rows.to_str().expect("UTF-8"), "--key", "id", "--keys", "x.csv"];
    refused("x.csv", "id\n\"1\n", &keys, 1, "x.csv cannot be read from line 2 on: a quote");
}

#[test]
fn what_a_file_holds_does_not_steer_the_terminal() {
    let rows = "k,\u{1b}[2Jn\n\u{1b}[31mred,1\n\u{1b}[31mred,2\n\u{202e}x,3\n";
    let directory = TempDir::new().expect("a directory for the test");
    fs::write(directory.path().join("x.csv"), rows).expect("a file for the test");
    let key = ["x.csv", "--key", "k"];
    for (command, more) in [
        ("stats", &[][..]),
        ("stats", &["--key", "k,\u{1b}[2Jn"]),
        ("get", &["\u{1b}[31mred"]),
        ("get", &["\u{1b}[31mnone"]),
        ("aggregate", &["--by", "k", "--select", "count, top(k, 2)"]),
        ("aggregate", &["--by", "`\u{1b}[2Jn`"]),
        ("aggregate", &["--select", "sum(k)"]),
        ("aggregate", &["--missing", "refuse", "--na", "1", "--select", "sum(`\u{1b}[2Jn`)"]),
        ("stats", &["--types", "k:i64"]),
        ("stats", &[]),
    ] {
        let mut args = vec![command];
        args.extend(if more.first() == Some(&"--key") { &key[..1] } else { &key });
        args.extend(more);
        let output = sapwood(&args).current_dir(&directory).output().expect("it runs");
        for text in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(text);
            let is_clean = |c: char| c == '\n' || !c.is_control() && c != '\u{202e}';
            assert!(text.chars().all(is_clean), "{args:?}: {text:?}");
        }
    }
}

#[test]
fn columns_of_one_name_are_told_and_kept_apart() {
    let directory = TempDir::new().expect("a directory for the test");
    fs::write(directory.path().join("x.csv"), "id,id,name\n1,2,a\n").expect("a file for the test");
    let run = |args: &[&str]| {
        let output = sapwood(args).current_dir(&directory).assert().success();
        let output = output.get_output();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    let notice = "x.csv: columns 1 and 2 are both called `id`; column 2 is called `id_1` here\n";
    let scan = ["scan", "x.csv", "--key", "id", "--json"];
    let (out, said) = run(&scan);
    assert_eq!(out, "{\"id\":1,\"id_1\":2,\"name\":\"a\"}\n");
    assert!(said.starts_with(notice), "{said}");
    let figures = ["aggregate", "x.csv", "--select", "sum(id), sum(id_1)", "--json"];
    let (out, said) = run(&figures);
    assert_eq!(out, "{\"sum(id)\":1,\"sum(id_1)\":2}\n");
    assert!(said.starts_with(notice), "{said}");
    let load = ["load", "x.csv", "--key", "id_1", "--engine", "hash", "--dir", "kept", "-q"];
    run(&load);
    assert_eq!(run(&["scan", "kept", "-q"]).0, "id,id_1,name\n1,2,a\n");
    let typed = "{\"id\":1,\"id_1\":2,\"name\":\"a\"}\n";
    assert_eq!(run(&["scan", "kept", "-q", "--json"]).0, typed);
    run(&load);
}

#[test]
fn a_mark_before_json_lines_is_skipped() {
    let rows = "\u{FEFF}{\"id\":1}\n{\"id\":2}\n";
    let (code, stderr) = run("x.jsonl", rows, &["load", "x.jsonl", "--key", "id", "--strict"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
}

#[test]
fn sizes_beyond_64_bits_are_refused() {
    for size in ["99999999999999999999999", "16777216T", "18446744073709551616"] {
        let load = ["stats", "x.csv", "--key", "k", "--memory-budget", size];
        let message =
            format!("invalid value '{size}' for '--memory-budget <BYTES>': that is 16 EiB or more");
        refused("x.csv", "k\n1\n", &load, 2, &message);
    }
}

#[test]
fn mistakes_are_told_by_what_is_wrong() {
    let rows = "carrier,n\nUA,1\n";
    refused(
        "x.csv",
        rows,
        &["stats", "x.csv", "--key", "carrier:string"],
        1,
        "no column `carrier:string`, and no type `string` of a key: carrier:str, carrier:int and \
         carrier:float are what there is; others are said by --types\n",
    );
    refused(
        "x.jsonl",
        "{\"carrier\":\"UA\"}\n",
        &["stats", "x.jsonl", "--key", "carrier:string"],
        1,
        "no column `carrier:string`, and no type `string` of a key: ",
    );
    for command in ["load", "scan", "stats"] {
        let message = "none cannot be read: No such file or directory\n";
        refused("x.csv", rows, &[command, "none"], 1, message);
    }
    for option in [&["--from", "1"][..], &["--prefix", "1"], &["--keys", "x.csv"]] {
        let args = [&["aggregate", "x.csv"], option].concat();
        let message = format!("{} is about keys: say with --key which columns", option[0]);
        refused("x.csv", rows, &args, 2, &message);
    }
}

#[test]
fn no_warning_advises_what_is_on() {
    let rows = "k,n\n1,a\n1,b\n";
    let load = ["load", "x.csv", "--key", "k"];
    let stderr_of = |more: &[&str]| run("x.csv", rows, &[&load[..], more].concat()).1;
    assert!(stderr_of(&[]).contains("--duplicates all would keep them all"));
    assert_eq!(stderr_of(&["--duplicates", "all"]), "");
    assert!(!stderr_of(&["--engine", "hash"]).contains("--duplicates all"));
    for (more, advises) in [(&[][..], true), (&["--explain"], false), (&["--dry-run"], false)] {
        let args = [&["aggregate", "x.csv", "--select", "sum(m)"], more].concat();
        let (_, stderr) = run("x.csv", rows, &args);
        assert_eq!(stderr.contains("--dry-run shows"), advises, "{more:?}: {stderr}");
    }
}

#[test]
fn rows_that_end_with_a_carriage_return_alone_are_all_kept() {
    let rows = "k,n\r1,a\r1,b\r1,c\r";
    let directory = TempDir::new().expect("a directory for the test");
    fs::write(directory.path().join("x.csv"), rows).expect("a file for the test");
    for args in [
        &["scan", "x.csv", "--key", "k", "--duplicates", "all", "-q"][..],
        &["scan", "x.csv", "--key", "k", "--duplicates", "all", "-q", "--strict"],
    ] {
        let output = sapwood(args).current_dir(&directory).assert().success();
        let stdout = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
        assert_eq!(stdout, "k,n\n1,a\n1,b\n1,c\n");
    }
    let args = ["aggregate", "x.csv", "-q", "--json"];
    let output = sapwood(&args).current_dir(&directory).assert().success();
    assert_eq!(output.get_output().stdout, b"{\"count\":3}\n");
}
