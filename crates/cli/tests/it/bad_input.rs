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
    let load = |file| ["load", file, "--key", "k"];
    refused("x", "", &load("none.csv"), 1, "none.csv cannot be read: No such file or directory\n");
    refused(
        "x.csv",
        "",
        &load("x.csv"),
        1,
        "x.csv is empty: a header line with the column names is expected\n",
    );
    refused("x.csv", "\n\n", &load("x.csv"), 1, "x.csv is empty");
    refused("x.txt", "k\n1\n", &load("x.txt"), 2, "x.txt has a name that does not tell its format");
    refused("x", "", &load("."), 2, ". is a directory: give the file to load");
    refused("x", "", &load("-"), 2, "standard input has no name to tell its format: add --format");
}

#[test]
fn packed_files_that_are_damaged() {
    let whole = fs::read(flights_path()).expect("bundled");
    let args = ["load", "x.csv.zst", "--key", "carrier,flight", "-q", "--show-errors", "0"];
    let (code, stderr) = run("x.csv.zst", &whole[..whole.len() / 2], &args);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("x.csv.zst cannot be read on from line "), "{stderr}");
    assert!(stderr.contains("is the file whole?"), "{stderr}");
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 0x10;
    let (code, stderr) = run("x.csv.zst", &changed, &args);
    assert_eq!(code, 1, "{stderr}");
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
        &["load", "x.csv", "--key", "c"],
        1,
        "no column `c`; the header has `a`, `b`\n",
    );
    refused(
        "x.jsonl",
        "{\"a\":1}\n",
        &["load", "x.jsonl", "--key", "c"],
        1,
        "no column `c`; the first row has `a`\n",
    );
    refused(
        "x.csv",
        "a\n1\n",
        &["load", "x.csv", "--key", "a,a"],
        2,
        "invalid value 'a,a' for '--key",
    );
    refused("x.csv", "a\n1\n", &["load", "x.csv", "--key", ""], 2, "invalid value '' for '--key");
    refused(
        "x.csv",
        "a\n1\n",
        &["load", "x.csv"],
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
    refused(
        "x.csv",
        rows,
        &get(&["UA", "one"]),
        2,
        "key column `flight` is `one`, not a whole number of 64 bits\n",
    );
    refused(
        "x.csv",
        rows,
        &get(&["UA", ""]),
        2,
        "key column `flight` is empty, not a whole number",
    );
    refused(
        "x.csv",
        rows,
        &get(&["UA", "2"]),
        1,
        "no row has the key UA,2 (carrier:str,flight:int)\n",
    );
    let scan = |option, value| ["scan", "x.csv", "-q", "--key", key, option, value];
    refused("x.csv", rows, &scan("--from", "UA,x"), 2, "key column `flight` is `x`");
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
    let args = ["load", "x.csv", "--key", "k:int"];
    let (code, stderr) = run("x.csv", rows, &args);
    assert_eq!(code, 0, "{stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(
        lines[..6],
        [
            "line 3: malformed: key column `k` is `x`, not a whole number of 64 bits",
            "line 5: malformed: 1 field, the header has 2",
            "line 6: malformed: 3 fields, the header has 2",
            "line 7: malformed: column `k` is not UTF-8",
            "line 8: malformed: key column `k` is empty, not a whole number of 64 bits",
            "warning: 5 malformed rows left out",
        ]
    );
    let mut strict = args.to_vec();
    strict.push("--strict");
    refused("x.csv", rows, &strict, 1, "--strict: 5 malformed rows, 0 repeated keys\n");
    let (_, stderr) =
        run("x.csv", rows, &["load", "x.csv", "--key", "k:int", "-q", "--show-errors", "1"]);
    assert_eq!(
        stderr,
        "line 3: malformed: key column `k` is `x`, not a whole number of 64 bits\nwarning: 5 malformed rows left out\n"
    );
}

#[test]
fn rows_beyond_the_first_thousand_are_held_to_the_type_of_those() {
    let mut rows = String::from("k\n");
    for number in 0..1500 {
        rows.push_str(&format!("{number}\n"));
    }
    rows.push_str("end\n");
    let (code, stderr) = run("x.csv", &rows, &["load", "x.csv", "--key", "k", "-q"]);
    assert_eq!(code, 0);
    assert_eq!(
        stderr,
        "line 1502: malformed: key column `k` is `end`, not a whole number of 64 bits as in the \
         first rows (`--key k:str` would take every value as text)\n\
         warning: 1 malformed row left out\n"
    );
}

#[test]
fn keys_and_rows_beyond_the_limits() {
    let rows = format!("k,v\n{},1\nshort,2\n", "x".repeat(70_000));
    let (code, stderr) = run("x.csv", &rows, &["load", "x.csv", "--key", "k", "-q"]);
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
    let args = ["load", "x.csv", "--key", "k", "--memory-budget", "256K"];
    let (code, stderr) = run("x.csv", &rows, &args);
    assert_eq!(code, 1);
    assert!(
        stderr.contains("cannot be loaded, ") && stderr.contains("(--memory-budget)"),
        "{stderr}"
    );
    let bad = ["load", "x.csv", "--key", "k", "--memory-budget", "lots"];
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
        let (code, stderr) = run(name, &rubbish, &["load", name, "--key", key, "--strict"]);
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
        &["load", "x.csv", "--key", "k", "--duplicates", "some"],
        &["completions", "dos"],
        &[],
    ] {
        sapwood(args).assert().code(2);
    }
}
