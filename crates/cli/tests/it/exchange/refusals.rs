//! What is refused, by which words, and what is there afterwards.

use std::fs;
use std::path::Path;

use super::{Contents, Place, contents, endings, export, refused};
use crate::{sapwood, stdout_of};

fn two() -> Contents {
    [(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), b"2".to_vec())].into()
}

#[test]
fn a_file_that_is_there_stays_unless_it_may_go() {
    let place = Place::new();
    let from = place.database("from", "hash", None, &two());
    for name in ["t.csv", "t.jsonl", "t.csv.gz", "t.csv.zst"] {
        let file = place.path(name);
        fs::write(&file, "of another program").expect("written");
        refused(&["export", &from, "t", "--to", &file], 1, "is there, and stays as it is");
        let copy = format!("copy (select 1 as a) to '{file}'");
        refused(&["sql", &copy], 1, "is there, and stays as it is");
        assert_eq!(fs::read(&file).expect("read"), b"of another program", "{name}");
        assert!(!Path::new(&format!("{file}.part")).exists(), "{name}");
        stdout_of(&["export", &from, "t", "--to", &file, "--overwrite", "-q"]);
        assert_ne!(fs::read(&file).expect("read"), b"of another program", "{name}");
        stdout_of(&["sql", "--overwrite", &copy]);
        // A statement may replace what one before it wrote.
        let fresh = place.path(&format!("fresh.{name}"));
        let copy = format!("copy (select 1 as a) to '{fresh}'");
        stdout_of(&["sql", &format!("{copy}; {copy}")]);
    }
    let (file, part) = (place.path("u.csv"), place.path("u.csv.part"));
    fs::write(&part, "of another program").expect("written");
    refused(&["export", &from, "t", "--to", &file], 1, "u.csv.part is there");
    assert_eq!(fs::read(&part).expect("read"), b"of another program");
    stdout_of(&["export", &from, "t", "--to", &file, "--overwrite", "-q"]);
    assert!(!Path::new(&part).exists() && Path::new(&file).exists());
}

#[test]
fn what_is_not_there_is_named() {
    let place = Place::new();
    let from = place.database("from", "hash", None, &two());
    let (file, none) = (place.path("t.csv"), place.path("none"));
    refused(&["export", &from, "other", "--to", &file], 1, "no table `other`; there are: t");
    refused(&["export", &none, "t", "--to", &file], 1, "there is no directory");
    refused(&["export", &from, "t", "--to", &place.path("t.txt")], 2, "add --format");
    refused(&["export", &from, "t", "--to", &place.path("t.msgpack")], 2, "rows of typed columns");
    refused(&["import", &none, "t", &place.path("t.msgpack")], 2, "rows of typed columns");
    refused(&["export", &from, "t", "--to", &place.path("no/t.csv")], 1, "cannot be written: ");
    refused(&["export", &from, "t", "--to", &from, "--format", "csv"], 1, "is a directory");
    refused(&["import", &none, "t", &file], 1, "cannot be read: ");
    refused(&["import", &none, "t", "-"], 2, "add --format csv");
    refused(&["import", &none, "load.columns", &file], 2, "choose another name");
    assert!(!Path::new(&none).exists(), "nothing is made for a file that is not there");
    assert!(!Path::new(&file).exists());
}

#[test]
fn columns_that_say_nothing_of_keys_are_refused() {
    let place = Place::new();
    let (file, to) = (place.path("rows.csv"), place.path("to"));
    fs::write(&file, "id,name\n1,x\n").expect("a file for the test");
    refused(&["import", &to, "t", &file], 2, "has the columns `id`, `name`: say with --key");
    refused(&["import", &to, "t", &file, "--key", "id"], 2, "id:str, id:int or id:float");
    refused(&["import", &to, "t", &file, "--key", "it:int"], 1, "no column `it`");
    refused(&["import", &to, "t", &file, "--layout", "id:u32"], 2, "--layout: ");
    refused(&["import", &to, "t", &file, "--layout", "id:u32le@1"], 2, "leave bytes");
    refused(&["import", &to, "t", &file, "--layout", "id:u32le"], 1, "no column `key`");
    refused(&["import", &to, "t", &file, "--raw"], 1, "no column `key`");
    assert!(!Path::new(&to).exists(), "nothing is made for a file that cannot be used");
}

#[test]
fn a_table_keeps_its_columns() {
    let place = Place::new();
    let (rows, from) = (place.path("rows.csv"), place.path("from"));
    fs::write(&rows, "id,name\n1,x\n").expect("a file for the test");
    stdout_of(&["import", &from, "rows", &rows, "--key", "id:int", "--engine", "hash"]);
    let before = contents(&from, "rows");
    fs::write(&rows, "id,other\n1,x\n").expect("a file for the test");
    refused(&["import", &from, "rows", &rows], 1, "no column `name`; it has `id`, `other`");
    fs::write(&rows, "id,name,more\n1,x,y\n").expect("a file for the test");
    refused(&["import", &from, "rows", &rows], 1, "the table has no column `more`");
    refused(&["import", &from, "rows", &rows, "--key", "id:int"], 1, "loaded with other columns");
    fs::write(&rows, "name,id\n1,x\n").expect("a file for the test");
    refused(&["import", &from, "rows", &rows], 1, "line 2: key column `id` is `x`");
    let engine = ["import", &from, "rows", &rows, "--engine", "tree"];
    refused(&engine, 1, "is there already and is a hash table");
    assert!(contents(&from, "rows") == before);
    // In another order they are the same.
    fs::write(&rows, "name,id\ny,1\nz,2\n").expect("a file for the test");
    stdout_of(&["import", &from, "rows", &rows]);
    assert_eq!(stdout_of(&["get", &from, "1", "-q"]), "id    1\nname  y\n");
    let plain = place.database("plain", "tree", None, &two());
    refused(&["import", &plain, "t", &rows, "--key", "id:int"], 1, "was not made of a file");
    refused(
        &["import", &plain, "t", &rows, "--layout", "key(name:str), id:text"],
        1,
        "declares other fields",
    );
}

#[test]
fn a_bad_row_ends_an_import_and_the_rows_before_it_stay() {
    for engine in super::ENGINES {
        let place = Place::new();
        let (file, to) = (place.path("rows.csv"), place.path("to"));
        let key = ["--key", "id:int", "--engine", engine];
        let import = |rows: &str| {
            fs::write(&file, rows).expect("a file for the test");
            [&["import", &to, "t", &file][..], &key].concat().join("\u{1}")
        };
        let run = |rows: &str, what: &str| {
            let args = import(rows);
            refused(&args.split('\u{1}').collect::<Vec<_>>(), 1, what);
        };
        run("id,x\n1,a\n2,b\nx,c\n4,d\n", "line 4: key column `id` is `x`, not a whole number");
        run("id,x\n5,a\n6,b,c\n", "line 3: 3 fields, the header has 2; mend it");
        run("id,x\n7,\"a\n", "a quote opens a value there");
        run("id,x\n8,a\n\u{0}", "line 3: 1 field");
        let output =
            sapwood(&import("id,x\n9,a\nx,b\n").split('\u{1}').collect::<Vec<_>>()).assert();
        let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(stderr.contains("1 entry is put into table `t`"), "{stderr}");
        let mut ids: Vec<i64> = contents(&to, "t")
            .0
            .keys()
            .map(|key| sapwood::key::decode(key).expect("a key"))
            .collect();
        ids.sort_unstable();
        assert_eq!(ids, [1, 2, 5, 8, 9]);
    }
}

#[test]
fn what_a_table_cannot_hold_is_named_by_its_row() {
    let place = Place::new();
    for engine in super::ENGINES {
        let (file, to) = (place.path("rows.csv"), place.path(engine));
        let long = "x".repeat(200_000);
        fs::write(&file, format!("key,value\na,1\n{long},2\nc,3\n")).expect("a file for the test");
        refused(
            &["import", &to, "t", &file, "--engine", engine],
            1,
            "line 3: the key is 195.3 KiB",
        );
        assert_eq!(contents(&to, "t").0.len(), 1);
    }
}

#[test]
fn values_of_another_type_are_refused_with_their_place() {
    let place = Place::new();
    let to = place.path("to");
    let layout = "key(id:u8), n:i16le, f:f32le@2, b:bytes2@6";
    let run = |name: &str, text: &str, what: &str| {
        let file = place.path(name);
        fs::write(&file, text).expect("a file for the test");
        refused(&["import", &to, "t", &file, "--layout", layout], 1, what);
    };
    run("r.csv", "id,n,f,b\n256,1,1,ab\n", "line 2: column `id` is `256`, not a whole number of 8");
    run("r.csv", "id,n,f,b\n1,x,1,ab\n", "line 2: column `n` is `x`");
    run("r.csv", "id,n,f,b\n1,,1,ab\n", "line 2: column `n` is ``");
    run("r.csv", "id,n,f,b\n1,1,x,ab\n", "line 2: column `f` is `x`");
    run("r.csv", "id,n,f,b\n1,1,1,abc\n", "line 2: column `b` has 3 bytes, not 2");
    run("r.jsonl", "{\"id\":1,\"n\":1,\"f\":1,\"b\":null}\n", "line 1: column `b` is null");
    run("r.jsonl", "{\"id\":1.5,\"n\":1,\"f\":1,\"b\":\"ab\"}\n", "line 1: column `id` is 1.5");
    run("r.jsonl", "{\"id\":1,\"n\":[],\"f\":1,\"b\":\"ab\"}\n", "line 1: column `n` is an array");
    run("r.jsonl", "{\"id\":1,\"n\":1,\"f\":1}\n", "no column `b`");
    let good = "{\"id\":1,\"n\":1,\"f\":1,\"b\":\"ab\"}\n";
    run("r.jsonl", &format!("{good}{{\"id\":1}}\n"), "line 2: column `n` is missing");
    run("r.jsonl", &format!("{good}nothing\n"), "line 2: not JSON");
}

#[test]
fn a_damaged_file_is_an_error_and_the_table_stays() {
    let place = Place::new();
    let from = place.database("from", "hash", None, &two());
    for ending in endings() {
        let file = place.path(&format!("t.{ending}"));
        export(&from, "t", &file, &[]);
        let bytes = fs::read(&file).expect("there");
        if matches!(ending, "csv" | "jsonl") {
            continue;
        }
        fs::write(&file, &bytes[..bytes.len() - 3]).expect("a file for the test");
        refused(&["import", &from, "t", &file], 1, "is the file whole?");
        assert!(contents(&from, "t").0 == two(), "{ending}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_failure_in_every_format() {
    let place = Place::new();
    let from = place.database("from", "hash", None, &two());
    let formats: &[&str] = match cfg!(feature = "columnar") {
        true => &["csv", "jsonl", "parquet", "arrow"],
        false => &["csv", "jsonl"],
    };
    for format in formats {
        let full = fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let binary = assert_cmd::cargo::cargo_bin("sapwood");
        let output = std::process::Command::new(binary)
            .args(["export", &from, "t", "--format", format])
            .stdout(full)
            .output()
            .expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{format}: {stderr}");
        assert!(stderr.contains("standard output cannot be written: "), "{format}: {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let place = Place::new();
    let many: Contents =
        (0..50_000_u32).map(|n| (n.to_be_bytes().to_vec(), vec![b'v'; 20])).collect();
    let from = place.database("from", "hash", None, &many);
    let formats: &[&str] = match cfg!(feature = "columnar") {
        true => &["csv", "jsonl", "parquet", "arrow"],
        false => &["csv", "jsonl"],
    };
    for format in formats {
        let binary = assert_cmd::cargo::cargo_bin("sapwood");
        let mut child = std::process::Command::new(binary)
            .args(["export", &from, "t", "--format", format])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("it runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{format}: {stderr}");
        assert!(stderr.is_empty(), "{format}: {stderr}");
    }
}

/// Ctrl-C, while rows come without end: those that came are in.
#[cfg(unix)]
#[test]
fn an_import_that_is_stopped_keeps_what_came() {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    let place = Place::new();
    let to = place.path("to");
    let binary = assert_cmd::cargo::cargo_bin("sapwood");
    let mut child = Command::new(binary)
        .args(["import", &to, "t", "-", "--format", "csv", "--engine", "hash"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut stdin = child.stdin.take().expect("piped");
    // More than pipe and buffers hold, so that the process has read of it when all is written.
    let mut rows = String::from("key,value\n");
    rows.extend((0..200_000).map(|number| format!("{number},x\n")));
    stdin.write_all(rows.as_bytes()).expect("it reads");
    let sent = Command::new("kill").arg("-INT").arg(child.id().to_string()).status();
    assert!(sent.expect("kill is there").success());
    let mut stderr = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("UTF-8");
    assert_eq!(
        child.wait().expect("it ends though input stays open").code(),
        Some(130),
        "{stderr}"
    );
    drop(stdin);
    let words: Vec<&str> = stderr.trim().trim_start_matches("interrupted: ").split(' ').collect();
    let counted: usize = words[0].replace(',', "").parse().expect("a count");
    assert!(counted > 0, "{stderr}");
    assert_eq!(contents(&to, "t").0.len(), counted, "{stderr}");
}

/// Ctrl-C, once the file has been begun: it is whole, or not there.
#[cfg(unix)]
#[test]
fn an_export_that_is_stopped_leaves_no_half_file() {
    use std::process::{Command, Stdio};

    let place = Place::new();
    let many: Contents =
        (0..200_000_u32).map(|n| (n.to_be_bytes().to_vec(), vec![b'v'; 20])).collect();
    let from = place.database("from", "hash", None, &many);
    for ending in endings() {
        let file = place.path(&format!("t.{ending}"));
        let part = format!("{file}.part");
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("sapwood"))
            .args(["export", &from, "t", "--to", &file])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        while !Path::new(&part).exists() && child.try_wait().expect("a child").is_none() {
            std::thread::yield_now();
        }
        let sent = Command::new("kill").arg("-INT").arg(child.id().to_string()).status();
        assert!(sent.is_ok());
        // The signal may come when all is done.
        let is_whole = match child.wait().expect("it ends").code() {
            Some(130) => false,
            Some(0) => true,
            other => panic!("{ending}: {other:?}"),
        };
        assert_eq!(Path::new(&file).exists(), is_whole, "{ending}");
        assert!(!Path::new(&part).exists(), "{ending}");
    }
}
