//! Rows of typed columns in a directory: loaded, looked at, changed, exported, and asked in SQL.

use std::fs;
use std::path::Path;

use sapwood::Db;
use sapwood::schema::Value as Typed;
use serde_json::Value;
use tempfile::TempDir;

use crate::{sapwood, stdout_of};

const STOPS: &str = "line;stop;first;waiting\nU6;Alt-Tegel;2024-01-01 04:30:00;12\n\
U6;Wedding;2024-01-01 04:41:00;NA\nU7;Spandau;2024-01-02 05:00:00;7.5\n";

/// A folder of files, in which commands run.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let files = Self(TempDir::new().expect("a directory for the test"));
        files.write("stops.csv", STOPS);
        files
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).expect("a file for the test");
    }

    fn run(&self, args: &[&str]) -> String {
        let output = sapwood(args).current_dir(&self.0).output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {stderr}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// The exit code, and what was said.
    fn failed(&self, args: &[&str]) -> (i32, String) {
        let output = sapwood(args).current_dir(&self.0).output().expect("it runs");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        (output.status.code().expect("no signal"), stderr)
    }

    fn json(&self, args: &[&str]) -> Vec<Value> {
        let out = self.run(&[args, &["--json"]].concat());
        out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

const ENGINES: [&str; 3] = ["ordered", "hash", "tree"];

#[test]
fn a_loaded_table_has_typed_columns_for_commands_programs_and_statements() {
    for engine in ENGINES {
        let files = Files::new();
        let load =
            ["load", "stops.csv", "--key", "line,stop", "--engine", engine, "--dir", "town", "-q"];
        let report = &files.json(&load)[0];
        let schema = "line:text, stop:text, first:timestamp(us)?, waiting:f64?, key(line, stop)";
        assert_eq!(report["schema"], schema);
        assert_eq!(
            files.run(&["get", "town", "-q", "U6", "Wedding"]),
            "line     U6\nstop     Wedding\nfirst    2024-01-01 04:41:00\nwaiting  null\n"
        );
        let row = &files.json(&["get", "town", "-q", "U7", "Spandau"])[0];
        assert_eq!((&row["waiting"], &row["line"]), (&7.5.into(), &"U7".into()));
        let mut scanned: Vec<String> =
            files.run(&["scan", "town", "-q"]).lines().map(str::to_owned).collect();
        scanned[1..].sort();
        assert_eq!(
            scanned,
            [
                "line,stop,first,waiting",
                "U6,Alt-Tegel,2024-01-01 04:30:00,12",
                "U6,Wedding,2024-01-01 04:41:00,",
                "U7,Spandau,2024-01-02 05:00:00,7.5"
            ]
        );
        let figures = files.run(&[
            "aggregate",
            "town",
            "-q",
            "--by",
            "line",
            "--select",
            "count, mean(waiting)",
        ]);
        assert_eq!(
            figures,
            "line  count  mean(waiting)\nU6        2           12.0\nU7        1            7.5\n"
        );
        let asked =
            files.run(&["sql", "select stop from town where waiting > 10", "--mode", "csv"]);
        assert_eq!(asked, "stop\nAlt-Tegel\n");
        let tables = &files.json(&["tables", "town"])[0];
        assert_eq!((&tables["rows"], &tables["engine"]), (&3.into(), &engine.into()));
        assert_eq!(tables["columns"], schema);
        let described = files.json(&["describe", "town"]);
        assert_eq!(described[1]["key"], 2);
        assert_eq!(
            (&described[3]["type"], &described[3]["nullable"]),
            (&"f64".into(), &true.into())
        );

        let db = Db::open_read_only(files.path().join("town")).expect("it opens");
        let rows = db.rows("rows").expect("it has a schema");
        let row = rows.get(&["U6".into(), "Alt-Tegel".into()]).expect("a key").expect("a row");
        assert_eq!(row[3], Typed::Float(12.0));
    }
}

#[test]
fn single_rows_are_put_and_removed() {
    for engine in ENGINES {
        let files = Files::new();
        files.run(&[
            "load",
            "stops.csv",
            "--key",
            "line,stop",
            "--engine",
            engine,
            "--dir",
            "town",
            "-q",
        ]);
        files.run(&["put", "town", "line=U8", "stop=Hermannstr. = S", "waiting=3"]);
        files.run(&["put", "town", "line=U7", "stop=Spandau"]);
        let row = &files.json(&["get", "town", "-q", "U8", "Hermannstr. = S"])[0];
        assert_eq!((&row["waiting"], &row["first"]), (&3.0.into(), &Value::Null));
        let row = &files.json(&["get", "town", "-q", "U7", "Spandau"])[0];
        assert_eq!(row["waiting"], Value::Null, "the row is another");
        assert_eq!(files.run(&["remove", "town", "U7", "Spandau"]), "1 row removed\n");
        let (code, says) = files.failed(&["remove", "town", "U7", "Spandau"]);
        assert!(code == 1 && says.contains("no row has the key U7,Spandau"), "{says}");
        for (args, says) in [
            (&["put", "town", "line=U1"][..], "needed"),
            (&["put", "town", "line=U1", "stop=x", "waiting=long"], "`long` is no f64"),
            (&["put", "town", "platform=2"], "`platform=2` names no column"),
            (&["put", "town", "line=U1", "--table", "none"], "no table `none`"),
            (&["put", "stops", "line=U1"], "there is no directory stops"),
        ] {
            let (code, found) = files.failed(args);
            assert!(code != 0 && found.contains(says), "{found}");
        }
        files.run(&["compact", "town"]);
        assert_eq!(files.json(&["tables", "town"])[0]["rows"], 3);
    }
}

#[test]
fn entries_without_columns_are_put_and_removed() {
    let files = Files::new();
    {
        let db = Db::open(files.path().join("cache")).expect("a directory");
        db.create_hash_table("bytes", Default::default()).expect("a table");
        db.close().expect("it lasts");
    }
    let table = ["--table", "bytes"];
    files.run(&[&["put", "cache", "a\\x00b", "v"][..], &table].concat());
    assert_eq!(files.run(&[&["scan", "cache", "-q"][..], &table].concat()), "key,value\na\\0b,v\n");
    let (code, says) = files.failed(&[&["put", "cache", "a=1"][..], &table].concat());
    assert!(code == 2 && says.contains("a key and a value are expected"), "{says}");
    files.run(&[&["remove", "cache", "a\\x00b"][..], &table].concat());
    assert_eq!(files.run(&["describe", "cache", "bytes"]).lines().count(), 3);
}

#[test]
fn rows_without_a_key_are_all_there() {
    let files = Files::new();
    files.write("twice.json", r#"[{"a": 1}, {"a": 1}, {"a": null, "b": "x"}]"#);
    for engine in ENGINES {
        let load = ["load", "twice.json", "--engine", engine, "--dir", engine, "-q"];
        assert_eq!(files.json(&load)[0]["entries"], 3);
        // And again: numbers go on.
        assert_eq!(files.json(&load)[0]["entries"], 6);
        assert_eq!(files.json(&["get", engine, "-q", "3"])[0]["b"], "x");
        let count =
            files.run(&["sql", &format!("select count(*), sum(a) from {engine}"), "--mode", "csv"]);
        assert_eq!(count.lines().nth(1), Some("6,4"));
        // Numbers that are taken are passed.
        files.run(&["remove", engine, "2"]);
        assert_eq!(files.json(&load)[0]["entries"], 8);
    }
    // Rows of a key are numbered behind it.
    for engine in ["ordered", "tree"] {
        let table = ["--dir", engine, "--table", "keyed", "--engine", engine];
        files.write("keyed.csv", "k,v\na,1\nb,2\na,3\n");
        let load = [&["load", "keyed.csv", "--key", "k", "--duplicates", "all", "-q"][..], &table]
            .concat();
        assert_eq!(files.json(&load)[0]["duplicates"], 1);
        assert_eq!(files.json(&load)[0]["entries"], 6);
        let rows = files.json(&["get", engine, "--table", "keyed", "-q", "a"]);
        let values: Vec<&Value> = rows.iter().map(|row| &row["v"]).collect();
        assert_eq!(values, [1, 3, 1, 3]);
    }
}

#[test]
fn a_later_load_goes_by_the_columns_of_the_table() {
    let files = Files::new();
    let load = |file, more: &[&'static str]| {
        let args = ["load", file, "--key", "k", "--dir", "db", "-q"];
        files.failed(&[&args[..], more].concat())
    };
    files.write("a.csv", "k,n,day\n1,10,2024-01-01\n");
    assert_eq!(load("a.csv", &["--types", "n:u8"]).0, 0);
    // Columns in another order, one without a value, and a value of another type.
    files.write("b.csv", "n,k\n7,2\n300,3\n,4\n");
    let (code, says) = load("b.csv", &[]);
    assert_eq!(code, 0);
    assert!(says.contains("line 3: malformed: `300` in column `n` is no u8"), "{says}");
    assert_eq!(files.run(&["scan", "db", "-q"]), "k,n,day\n1,10,2024-01-01\n2,7,\n4,,\n");
    files.write("c.csv", "k,more\n9,9\n");
    let (code, says) = load("c.csv", &[]);
    assert!(code == 1 && says.contains("has no column `more`"), "{says}");
    files.write("d.csv", "n\n9\n");
    let (code, says) = files.failed(&["load", "d.csv", "--dir", "db", "-q"]);
    assert!(code == 1 && says.contains("needs a column `k`"), "{says}");
    let (code, says) = files.failed(&["load", "a.csv", "--key", "n", "--dir", "db", "-q"]);
    assert!(code == 1 && says.contains("has the key k"), "{says}");
    let (code, says) = load("a.csv", &["--duplicates", "all"]);
    assert!(code == 1 && says.contains("has one row a key"), "{says}");
    assert_eq!(files.json(&["tables", "db"])[0]["rows"], 3);
}

#[test]
fn columns_become_wide_enough_for_later_loads() {
    let files = Files::new();
    for engine in ["ordered", "hash", "tree"] {
        files.write("a.csv", "k,n,f\n1,10,0.5\n2,NA,1\n");
        files.write("b.csv", "k,n,f\n2,70000,2\n3,-5,3.5\n");
        files.write("c.csv", "k,n,f\n4,5000000000,4\n");
        let dir = format!("db-{engine}");
        let load = |file: &str, more: &[&str]| {
            let args = ["load", file, "--key", "k", "--dir", &dir, "--engine", engine];
            files.failed(&[&args[..], more].concat())
        };
        let columns = || files.json(&["tables", &dir])[0]["columns"].as_str().map(str::to_owned);
        assert_eq!(load("a.csv", &[]).0, 0);
        assert_eq!(columns().as_deref(), Some("k:i64, n:i16?, f:f64?, key(k)"));
        let (code, says) = load("b.csv", &[]);
        assert_eq!(code, 0, "{says}");
        assert!(says.contains("column `n` of the table was i16, and is i32 from now on"), "{says}");
        // A type that was said stays.
        let (code, says) = load("c.csv", &["--types", "n:i32"]);
        assert!(code == 0 && says.contains("`5000000000` in column `n` is no i32"), "{says}");
        assert_eq!(load("c.csv", &["-q"]).0, 0);
        let wide = "k:i64, n:i64? was i16 until 2 was i32 until 3, f:f64?, key(k)";
        assert_eq!(columns().as_deref(), Some(wide));
        let select = ["sql", "select * from rows order by k", "--dir", &dir, "--mode", "csv", "-q"];
        assert_eq!(
            files.run(&select),
            "k,n,f\n1,10,0.5\n2,70000,2\n3,-5,3.5\n4,5000000000,4\n",
            "{engine}"
        );
        let sums = ["aggregate", &dir, "--select", "sum(n), count(n)", "-q"];
        let sums = files.json(&sums);
        assert_eq!(
            (&sums[0]["sum(n)"], &sums[0]["count(n)"]),
            (&5_000_070_005_i64.into(), &4.into())
        );
    }
}

#[test]
fn text_keys_are_what_the_file_has() {
    let files = Files::new();
    files.write("a.csv", "k,n\nNA,NA\n,1\n007,2\n");
    files.run(&["load", "a.csv", "--key", "k", "--dir", "db", "-q"]);
    assert_eq!(files.run(&["scan", "db", "-q"]), "k,n\n,1\n007,2\nNA,\n");
    // A number must be there.
    files.write("b.csv", "k,n\n1,x\n,y\n");
    let (code, says) =
        files.failed(&["load", "b.csv", "--key", "k", "--dir", "db", "--table", "b"]);
    assert_eq!(code, 0);
    assert!(says.contains("line 3: malformed: column `k`") && says.contains("needed"), "{says}");
}

/// A row of every type, in a file, a table, and the files that are exported.
#[test]
fn every_type_goes_from_file_to_table_to_file() {
    let types = "a:bool, b:i8, c:i16, d:i32, e:i64, f:i128, g:u8, h:u16, i:u32, j:u64, k:f32, l:f64, \
                 m:decimal(10,2), n:decimal(30,5), o:date, p:timestamp(s), q:timestamp(ms), r:timestamp(us), \
                 s:timestamp(ns), t:text, u:bytes, v:u128, w:[f32; 4], x:[date; 2]";
    let csv = "id,a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x\n\
        1,true,-128,-32768,-2147483648,-9223372036854775808,-99999999999999999999,255,65535,4294967295,\
        18446744073709551615,1.023,-1e300,-12345678.90,1234567890123456789012345.00001,1969-12-31,\
        2024-02-29 23:59:59,2024-02-29 23:59:59.001,2024-02-29 23:59:59.000001,\
        2024-02-29 23:59:59.000000001,\"a \"\"b\"\", c\",x\\x00\\\\y,\
        340282366920938463463374607431768211455,\"[0.1, -2,3,4e10]\",\"[1969-12-31,2024-02-29]\"\n\
        2,,,,,,,,,,,,,,,,,,,,,,,,\n";
    let files = Files::new();
    files.write("all.csv", csv);
    let types = format!("id:u8, {types}");
    for engine in ENGINES {
        let dir = format!("{engine}-db");
        files.run(&[
            "load", "all.csv", "--key", "id", "--types", &types, "--engine", engine, "--dir", &dir,
            "-q",
        ]);
        let scanned = files.run(&["scan", &dir, "-q"]);
        assert!(scanned.contains(",1.023,"), "{scanned}");
        assert!(scanned.contains("\"[0.1, -2, 3, 40000000000]\""), "{scanned}");
        let described = files.run(&["describe", &dir]);
        for format in ["csv", "jsonl", "parquet", "arrow"] {
            if cfg!(not(feature = "columnar")) && ["parquet", "arrow"].contains(&format) {
                continue;
            }
            let (file, back) = (format!("{engine}.{format}"), format!("{engine}-{format}"));
            let told = &files.json(&["export", &dir, "rows", "--to", &file, "-q"])[0];
            assert_eq!((&told["rows"], &told["form"]), (&2.into(), &"typed columns".into()));
            let command = told["import"].as_str().expect("text");
            assert!(command.starts_with(&format!("sapwood load {file} --dir DIR")), "{command}");
            // As the command says; files of columns have their types.
            let mut load =
                vec!["load", &file, "--key", "id", "--engine", engine, "--dir", &back, "-q"];
            if ["csv", "jsonl"].contains(&format) {
                load.extend(["--types", &types]);
            }
            files.run(&load);
            let there = files.run(&["scan", &back, "-q"]);
            let mut lines: Vec<&str> = there.lines().collect();
            let mut expected: Vec<&str> = scanned.lines().collect();
            lines[1..].sort_unstable();
            expected[1..].sort_unstable();
            assert_eq!(lines, expected, "{format}");
            let types_of = |text: &str| -> Vec<String> {
                let words = text.lines().map(|line| line.split_whitespace().take(2));
                words.map(|words| words.collect::<Vec<_>>().join(" ")).collect()
            };
            let back = files.run(&["describe", &back]);
            // Arrow has no whole numbers of 128 bits with a sign.
            let back = back.replace("decimal(38,0)", "i128");
            assert_eq!(types_of(&back), types_of(&described), "{format}");
        }
    }
}

/// Tables of earlier versions have their rows as text, and so has `import`.
#[test]
fn rows_that_are_kept_as_text_are_read_and_taken_over() {
    let files = Files::new();
    files.write("rows.csv", "k,n\na,1\nb,NA\n");
    files.run(&["import", "old", "rows", "rows.csv", "--key", "k:str", "--engine", "hash", "-q"]);
    let tables = &files.json(&["tables", "old"])[0];
    assert_eq!(tables["columns"], "k:text, n:text, key(k:str)");
    assert_eq!(files.run(&["get", "old", "-q", "a"]), "k  a\nn  1\n");
    assert_eq!(files.run(&["describe", "old"]).lines().count(), 3);
    let asked =
        files.run(&["sql", "select count(*), max(n) from old where k < 'b'", "--mode", "csv"]);
    assert_eq!(asked.lines().nth(1), Some("1,1"));
    let (code, says) =
        files.failed(&["load", "rows.csv", "--key", "k", "--engine", "hash", "--dir", "old"]);
    assert!(code == 1 && says.contains("keeps its rows as text"), "{says}");
    for args in [&["put", "old", "k=c"][..], &["sql", "delete from old.rows"]] {
        let (code, says) = files.failed(args);
        assert!(code != 0 && says.contains("keeps its rows as text"), "{says}");
    }
    // As it was said.
    files.run(&["export", "old", "rows", "--to", "rows.csv", "--overwrite", "-q"]);
    files.run(&["load", "rows.csv", "--key", "k:str", "--dir", "old", "--table", "new", "-q"]);
    assert_eq!(files.run(&["scan", "old", "--table", "new", "-q"]), "k,n\na,1\nb,\n");
    // Rows of typed columns are not for `import`.
    let (code, says) = files.failed(&["import", "old", "new", "rows.csv", "--key", "k:str"]);
    assert!(code == 1 && says.contains("has typed columns"), "{says}");
}

#[test]
fn a_load_without_a_directory_keeps_nothing_and_says_so() {
    let files = Files::new();
    let out = files.run(&["load", "stops.csv", "-q"]);
    assert!(out.contains("kept in      nothing: --dir DIRECTORY keeps the rows"), "{out}");
    assert!(out.contains("waiting:f64?"), "{out}");
    assert_eq!(fs::read_dir(files.path()).expect("it is there").count(), 1);
    let stdin = stdout_of(&["load", "--help"]);
    assert!(stdin.contains("--types"), "{stdin}");
}

#[test]
fn rows_that_cannot_be_loaded_are_named_in_the_order_of_the_file() {
    let files = Files::new();
    fs::write(files.path().join("x.csv"), b"k,n:x\n1,a\nx,b\n\n2\n3,c,d\n\xFF,e\n,f\n4,g\n1,h\n")
        .expect("a file for the test");
    let load = ["load", "x.csv", "--key", "k:int", "-q"];
    let (code, says) = files.failed(&load);
    assert_eq!(code, 0);
    assert_eq!(
        says.lines().collect::<Vec<_>>(),
        [
            "line 3: malformed: `x` in column `k` is no i64",
            "line 5: malformed: 1 field, the header has 2",
            "line 6: malformed: 3 fields, the header has 2",
            "line 7: malformed: it is not UTF-8: if it is Latin-1, as older programs write, \
             `iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW` makes it so",
            "line 8: malformed: column `k` (i64): a value is needed: the column is not nullable",
            "line 10: repeated: key 1 came before; this row takes the place of the earlier one",
            "warning: 5 malformed rows left out",
            "warning: 1 row dropped: a later row has the same key; more columns in --key, no --key or \
             --duplicates all would keep them all",
        ]
    );
    let (code, says) = files.failed(&[&load[..], &["--strict", "--show-errors", "1"]].concat());
    assert_eq!(code, 1);
    assert!(says.starts_with("line 3: malformed: ") && !says.contains("line 5"), "{says}");
    assert!(says.contains("--strict: 5 malformed rows, 1 repeated key"), "{says}");
    // JSON too.
    files.write("x.jsonl", "{\"k\": 1}\n[1]\n{\"k\": \"x\"}\n{\"v\": 1}\n{\"k\": 2}\n");
    let (code, says) = files.failed(&["load", "x.jsonl", "--key", "k:int", "-q"]);
    assert_eq!(code, 0);
    let lines: Vec<&str> = says.lines().collect();
    assert!(lines[0].starts_with("line 2: malformed: "), "{says}");
    assert_eq!(lines[1], "line 3: malformed: `x` in column `k` is no i64");
    assert!(lines[2].starts_with("line 4: malformed: column `k`"), "{says}");
    assert_eq!(lines[3..], ["warning: 3 malformed rows left out"]);
}

#[test]
fn files_that_cannot_be_loaded_leave_nothing() {
    let files = Files::new();
    files.write("open.csv", "k,v\n1,a\n2,\"b\n3,c\n");
    files.write("empty.csv", "");
    fs::write(files.path().join("cut.csv.gz"), b"\x1F\x8B\x08\0").expect("a file for the test");
    for (args, code, says) in [
        (&["open.csv", "--key", "k"][..], 1, "line 3: a quote opens a value there"),
        (&["empty.csv"], 1, "empty.csv is empty"),
        (&["cut.csv.gz"], 1, "cut.csv.gz cannot be read"),
        (&["none.csv"], 1, "none.csv cannot be read: No such file or directory"),
        (
            &["stops.csv", "--key", "platform"],
            1,
            "no column `platform`; the file has `line`, `stop`",
        ),
        (&["stops.csv", "--key", "waiting:f32"], 1, "others are said by --types"),
        (&["stops.csv", "--types", "platform:u8"], 1, "no column `platform`"),
        (&["stops.csv", "--types", "waiting:number"], 2, "--types"),
        (&["stops.csv", "--delimiter", "ab"], 2, "--delimiter"),
        (
            &["stops.csv", "--key", "line", "--engine", "hash", "--duplicates", "all"],
            2,
            "one row a key",
        ),
    ] {
        let (found, said) = files.failed(&[&["load"][..], args, &["--dir", "db"]].concat());
        assert!(found == code && said.contains(says), "{args:?}: {said}");
        assert!(!files.path().join("db").exists(), "{args:?}");
    }
}

/// From a file into a table, into statements, and out again: no digit is lost on the way.
#[test]
fn numbers_of_json_keep_their_digits() {
    let files = Files::new();
    let lines = "{\"id\":340282366920938463463374607431768211455,\"n\":-9223372036854775809,\"p\":0.12345678901234567890123456789,\"q\":12345678901234567890}\n\
        {\"id\":18446744073709551616,\"n\":170141183460469231731687303715884105727,\"p\":1e-3,\"q\":0.5}\n";
    files.write("big.jsonl", lines);
    let load =
        ["load", "big.jsonl", "--key", "id", "--types", "p:decimal(30,29)", "--dir", "db", "-q"];
    files.run(&load);
    let described = files.run(&["describe", "db"]);
    for expected in ["id u128", "n i128", "p decimal(30,29)", "q text"] {
        let words = described.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{expected}: {described}");
    }
    let select = ["sql", "select * from rows order by id", "--dir", "db", "--mode", "csv", "-q"];
    let csv = "id,n,p,q\n\
        18446744073709551616,170141183460469231731687303715884105727,0.00100000000000000000000000000,0.5\n\
        340282366920938463463374607431768211455,-9223372036854775809,0.12345678901234567890123456789,12345678901234567890\n";
    assert_eq!(files.run(&select), csv);
    let max = ["sql", "select max(id) as m from 'big.jsonl'", "--mode", "csv", "-q"];
    assert_eq!(files.run(&max), "m\n340282366920938463463374607431768211455\n");
    files.run(&["export", "db", "rows", "--to", "back.jsonl", "-q"]);
    files.run(&[
        "load",
        "back.jsonl",
        "--key",
        "id",
        "--types",
        "id:u128, n:i128, p:decimal(30,29), q:text",
        "--dir",
        "again",
        "-q",
    ]);
    let select = ["sql", "select * from rows order by id", "--dir", "again", "--mode", "csv", "-q"];
    assert_eq!(files.run(&select), csv);
}

#[test]
fn arrays_go_from_files_to_tables_and_back() {
    let files = Files::new();
    files.write(
        "a.jsonl",
        "{\"id\":1,\"tags\":[1.5,2],\"note\":[1]}\n{\"id\":2,\"tags\":[-3,0.25],\"note\":[1,2]}\n",
    );
    files.run(&["load", "a.jsonl", "--key", "id", "--dir", "db", "-q"]);
    let select = |dir: &str| {
        files.run(&[
            "sql",
            "select id, tags, tags[2] as second, note from rows order by id",
            "--dir",
            dir,
            "--mode",
            "csv",
            "-q",
        ])
    };
    let expected = "id,tags,second,note\n1,\"[1.5, 2]\",2,[1]\n2,\"[-3, 0.25]\",0.25,\"[1,2]\"\n";
    assert_eq!(select("db"), expected);
    for format in ["csv", "jsonl", "parquet", "arrow"] {
        if cfg!(not(feature = "columnar")) && ["parquet", "arrow"].contains(&format) {
            continue;
        }
        let (file, dir) = (format!("b.{format}"), format!("db-{format}"));
        files.run(&["export", "db", "rows", "--to", &file, "-q"]);
        let types = ["--types", "tags:[f64; 2]"];
        let types = if format == "csv" { &types[..] } else { &[] };
        files.run(&[&["load", &file, "--key", "id", "--dir", &dir, "-q"], types].concat());
        assert_eq!(select(&dir), expected, "{format}");
    }
    files.write("bad.csv", "id,v\n1,\"[1,2,3]\"\n2,\"[1,2]\"\n3,x\n");
    let (code, says) =
        files.failed(&["load", "bad.csv", "--key", "id", "--types", "v:[u8; 2]", "--dir", "bad"]);
    assert_eq!(code, 0, "{says}");
    for line in
        ["line 2: malformed: `[1,2,3]` in column `v` is no [u8; 2]", "line 4: malformed: `x`"]
    {
        assert!(says.contains(line), "{says}");
    }
    assert_eq!(files.run(&["scan", "bad", "-q"]), "id,v\n2,\"[1, 2]\"\n");
}
