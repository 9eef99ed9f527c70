//! `sapwood sql`: statements over files and over tables of directories.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{flights_path, sapwood, stdout_of};

fn folder() -> TempDir {
    TempDir::new().expect("a directory for the test")
}

fn write(directory: &TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.path().join(name);
    fs::write(&path, bytes).expect("a file for the test");
    path
}

/// The JSON lines that a statement answers.
#[track_caller]
fn rows(sql: &str) -> Vec<String> {
    stdout_of(&["sql", sql, "--json", "-q"]).lines().map(str::to_owned).collect()
}

fn shown(path: &Path) -> String {
    format!("'{}'", path.display())
}

#[track_caller]
fn refused(args: &[&str], code: i32) -> String {
    let output = sapwood(args).assert().code(code).get_output().clone();
    String::from_utf8(output.stderr).expect("UTF-8")
}

const STOPS: &str = "line,minute,stop\nU6,485,Museum\nU6,492,Harbour\nU7,480,NA\nU7,,Airport\n";

#[test]
fn files_of_all_formats_are_tables() {
    let folder = folder();
    let csv = write(&folder, "stops.csv", STOPS);
    let expected = [
        r#"{"line":"U6","count(*)":2,"sum(minute)":977}"#,
        r#"{"line":"U7","count(*)":2,"sum(minute)":480}"#,
    ];
    let question = |table: &str| {
        rows(&format!(
            "select line, count(*), sum(minute) from {table} group by line order by line"
        ))
    };
    assert_eq!(question(&shown(&csv)), expected);
    for name in
        ["copy.csv", "copy.csv.zst", "copy.jsonl.gz", "copy.msgpack", "copy.parquet", "copy.arrow"]
    {
        let copy = folder.path().join(name);
        let told = stdout_of(&[
            "sql",
            &format!("copy (select * from {}) to {}", shown(&csv), shown(&copy)),
        ]);
        assert_eq!(told, "4 rows written\n");
        assert_eq!(question(&shown(&copy)), expected, "{name}");
        // NA stays what it is: no column of numbers has it.
        assert_eq!(
            rows(&format!("select stop from {} where minute = 480", shown(&copy))),
            [r#"{"stop":"NA"}"#]
        );
    }
    let semicolons = write(&folder, "other.txt", STOPS.replace(',', ";"));
    assert_eq!(question(&shown(&semicolons)), expected);
    let array = r#"[{"line":"U6","minute":485},{"line":"U6","minute":492},{"line":"U7","minute":480},{"line":"U7"}]"#;
    assert_eq!(question(&shown(&write(&folder, "stops.json", array))), expected);
}

#[test]
fn types_are_those_of_all_values() {
    let folder = folder();
    let mut text = String::from("n,m\n");
    for number in 0..30_000 {
        text.push_str(&format!("{number},1\n"));
    }
    text.push_str("x,2.5\n");
    let file = write(&folder, "late.csv", text);
    assert_eq!(
        rows(&format!("select max(n), count(*) from {}", shown(&file))),
        [r#"{"max(n)":"x","count(*)":30001}"#]
    );
    assert_eq!(rows(&format!("select sum(m) from {}", shown(&file))), [r#"{"sum(m)":30002.5}"#]);
    let error =
        refused(&["sql", &format!("select sum(n) from {}", shown(&file)), "--types", "n:i64"], 1);
    assert!(error.contains("30002") && error.contains("`n`"), "{error}");
    let empty = write(&folder, "empty.csv", "n,m\n1,NA\nNA,2\n");
    assert_eq!(
        rows(&format!("select count(n), count(m) from {}", shown(&empty))),
        [r#"{"count(n)":1,"count(m)":1}"#]
    );
    let output = sapwood(&["sql", &format!("select 1 from {}", shown(&empty))]).assert().success();
    let told = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(told.contains("NA"), "{told}");
}

#[test]
fn reals_are_written_with_the_digits_that_they_have() {
    let folder = folder();
    let file = write(&folder, "speeds.csv", "speed,near\n1.023,\"[0.1,2]\"\n0.1,\"[3,4]\"\n");
    let sql = format!("select speed, near from {} where speed = 1.023", shown(&file));
    for (mode, expected) in [
        ("table", "speed  near\n1.023  [0.1, 2]\n"),
        ("csv", "speed,near\n1.023,\"[0.1, 2]\"\n"),
        ("json", "{\"speed\":1.023,\"near\":[0.1,2.0]}\n"),
    ] {
        let types = "speed:f32,near:[f32; 2]";
        let told = stdout_of(&["sql", &sql, "--types", types, "--mode", mode, "-q"]);
        assert_eq!(told, expected, "{mode}");
    }
    for (name, kind) in [("copy.csv", "double"), ("copy.jsonl", "double"), ("copy.parquet", "real")]
    {
        let copy = shown(&folder.path().join(name));
        let sql = format!("copy (select speed from {}) to {copy}", shown(&file));
        stdout_of(&["sql", &sql, "--types", "speed:f32", "-q"]);
        let found = rows(&format!("select speed, typeof(speed) as of from {copy} limit 1"));
        assert_eq!(found, [format!(r#"{{"speed":1.023,"of":"{kind}"}}"#)], "{name}");
    }
    let large = write(&folder, "large.csv", "speed\n1\n1e39\n");
    let sql = format!("select speed from {}", shown(&large));
    let error = refused(&["sql", &sql, "--types", "speed:f32"], 1);
    assert!(error.contains("1e39") && error.contains('3'), "{error}");
}

#[test]
fn tables_of_directories_are_made_changed_and_asked() {
    let folder = folder();
    let csv = write(&folder, "stops.csv", STOPS);
    let directory = folder.path().join("town");
    let dir = directory.to_str().expect("UTF-8");
    for engine in ["ordered", "hash", "tree"] {
        let made = format!(
            "create table {engine}_stops (line text, minute int, stop text, primary key (line, stop)) with (engine = '{engine}'); \
             copy {engine}_stops from {}",
            shown(&csv)
        );
        assert!(stdout_of(&["sql", "--dir", dir, &made]).ends_with("4 rows inserted\n"));
        let one = format!(
            "select minute from {}.{engine}_stops where line = 'U6' and stop = 'Museum'",
            shown(&directory)
        );
        assert_eq!(rows(&one), [r#"{"minute":485}"#]);
        let plan = stdout_of(&["sql", "-q", "--mode", "csv", &format!("explain {one}")]);
        assert!(plan.contains("get of 1 key"), "{plan}");
        let told = stdout_of(&[
            "sql",
            "--dir",
            dir,
            &format!(
                "update {engine}_stops set minute = minute + 1 where minute > 490; delete from {engine}_stops where minute is null"
            ),
        ]);
        assert_eq!(told, "1 row updated\n1 row deleted\n");
        assert_eq!(
            rows(&format!(
                "select stop, minute from {}.{engine}_stops order by 2",
                shown(&directory)
            )),
            [
                r#"{"stop":"NA","minute":480}"#,
                r#"{"stop":"Museum","minute":485}"#,
                r#"{"stop":"Harbour","minute":493}"#
            ]
        );
    }
    let tables = stdout_of(&["sql", "--dir", dir, "show tables", "--mode", "csv"]);
    assert!(tables.contains("hash_stops,hash,3,") || tables.contains("hash_stops"), "{tables}");
    assert_eq!(tables.lines().count(), 4, "{tables}");
    let error =
        refused(&["sql", "--dir", dir, "insert into hash_stops values ('U6', 1, 'Museum')"], 1);
    assert!(error.contains("the key (U6, Museum) is there already"), "{error}");
    let error = refused(&["sql", &format!("select * from {}", shown(&directory))], 1);
    assert!(error.contains("several tables"), "{error}");
    stdout_of(&[
        "sql",
        "--dir",
        dir,
        "alter table tree_stops add column zone int; drop table hash_stops",
    ]);
    assert_eq!(
        rows(&format!("select count(zone), count(*) from {}.tree_stops", shown(&directory))),
        [r#"{"count(zone)":0,"count(*)":3}"#]
    );
    let quoted = |table: &str| format!("select count(*) as n from '{dir}.{table}'");
    assert_eq!(rows(&quoted("tree_stops")), [r#"{"n":3}"#]);
    let error = refused(&["sql", &quoted("hash_stops")], 1);
    assert!(error.contains("hash_stops"), "{error}");
    // A file that is not there is none of a folder without tables.
    std::fs::create_dir(folder.path().join("plain")).expect("made");
    let missing = folder.path().join("plain.csv");
    let copied = format!("copy tree_stops from {}", shown(&missing));
    let error = refused(&["sql", "--dir", dir, &copied], 1);
    assert!(error.contains("plain.csv"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path().join("plain")).expect("read").count(), 0);
}

#[test]
fn bytes_of_other_tables_have_a_key_and_a_value() {
    let folder = folder();
    let directory = folder.path().join("bytes");
    let db = sapwood::Db::open(&directory).expect("a database");
    let table =
        db.create_ordered_table("hits", sapwood::OrderedTableOptions::default()).expect("a table");
    table.put_many(&[("/a", "1"), ("/b", "22"), ("/c", "3")]).expect("there is room");
    drop(table);
    db.close().expect("it lasts");
    assert_eq!(
        rows(&format!(
            "select key, octet_length(value) as n from {} where key >= '/b' order by key",
            shown(&directory)
        )),
        [r#"{"key":"/b","n":2}"#, r#"{"key":"/c","n":1}"#]
    );
}

#[test]
fn refusals_have_places_and_exit_codes() {
    let folder = folder();
    let csv = write(&folder, "stops.csv", STOPS);
    let sql = format!("select minte from {}", shown(&csv));
    let error = refused(&["sql", &sql], 2);
    assert!(
        error.contains("did you mean `minute`?") && error.contains("\n         ^^^^^"),
        "{error}"
    );
    for (sql, code, says) in [
        ("select 1 +", 2, "expected"),
        ("", 2, "there is no statement"),
        ("select 1 / 0", 1, "division by zero"),
        ("select * from 'nowhere.csv'", 1, "nowhere.csv"),
        ("select * from nowhere", 1, "no table is called `nowhere`"),
        ("create table t (a int)", 1, "--dir"),
        ("show tables", 1, "--dir"),
    ] {
        let error = refused(&["sql", sql], code);
        assert!(error.contains(says), "{sql}: {error}");
    }
    let ragged = write(&folder, "ragged.csv", "a,b\n1,2\n3\n4,5\n");
    let sql = format!("select count(*), sum(a) from {}", shown(&ragged));
    assert!(refused(&["sql", &sql], 1).contains("line 3"));
    let output = sapwood(&["sql", &sql, "--skip-malformed", "--mode", "csv"]).assert().success();
    let output = output.get_output();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "count(*),sum(a)\n2,5\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 record"));
}

#[test]
fn answers_have_four_modes() {
    let folder = folder();
    let csv = write(&folder, "stops.csv", STOPS);
    let sql = format!(
        "select line, sum(minute) as s, null as x from {} group by 1 order by 1",
        shown(&csv)
    );
    for (mode, expected) in [
        ("table", "line    s  x\nU6    977  null\nU7    480  null\n"),
        ("csv", "line,s,x\nU6,977,\nU7,480,\n"),
        (
            "json",
            "{\"line\":\"U6\",\"s\":977,\"x\":null}\n{\"line\":\"U7\",\"s\":480,\"x\":null}\n",
        ),
        (
            "markdown",
            "| line | s | x |\n| --- | ---: | --- |\n| U6 | 977 | null |\n| U7 | 480 | null |\n",
        ),
    ] {
        assert_eq!(stdout_of(&["sql", &sql, "--mode", mode]), expected, "{mode}");
    }
    let alike = "select null as a, 'null' as b";
    assert_eq!(stdout_of(&["sql", alike]), "a     b\nnull  'null'\n");
    assert_eq!(stdout_of(&["sql", alike, "--mode", "csv"]), "a,b\n,null\n");
    let read = sapwood(&["sql", "-", "--mode", "csv"])
        .write_stdin("select 1 as a; select 2 as b")
        .assert()
        .success();
    assert_eq!(String::from_utf8_lossy(&read.get_output().stdout), "a\n1\nb\n2\n");
    let script = write(&folder, "q.sql", "select 3 as c");
    assert_eq!(
        stdout_of(&["sql", "-f", script.to_str().expect("UTF-8"), "--mode", "csv"]),
        "c\n3\n"
    );
}

/// The figures that the packed file has, counted without any of the code under test.
#[test]
fn the_flights_have_the_same_figures_from_a_file_and_a_table() {
    let folder = folder();
    let (header, flights) = crate::flight_rows();
    let at = |name: &str| header.iter().position(|column| column == name).expect("a column");
    let (dest, delay) = (at("dest"), at("dep_delay"));
    let miami: Vec<&str> =
        flights.iter().filter(|row| &row[dest] == "MIA").map(|row| &row[delay]).collect();
    let delays: Vec<i64> = miami.iter().filter_map(|text| text.parse().ok()).collect();
    let expected = format!(
        r#"{{"n":{},"known":{},"s":{}}}"#,
        miami.len(),
        delays.len(),
        delays.iter().sum::<i64>()
    );
    let question = |table: &str| {
        rows(&format!(
            "select count(*) as n, count(dep_delay) as known, sum(dep_delay) as s from {table} where dest = 'MIA'"
        ))
    };
    let file = shown(&flights_path());
    assert_eq!(question(&file), std::slice::from_ref(&expected));
    let directory = folder.path().join("flights");
    stdout_of(&[
        "sql",
        "--dir",
        directory.to_str().expect("UTF-8"),
        &format!("create table f as select * from {file}"),
    ]);
    assert_eq!(question(&format!("{}.f", shown(&directory))), [expected]);
}

#[test]
fn files_with_alike_names_are_one_table() {
    let folder = folder();
    write(&folder, "f1.csv", "a,b\n1,x\n2,y\n");
    write(&folder, "f2.csv", "b;a\nz;2.5\n");
    write(&folder, "g.csv", "a,c\n1,2\n");
    let like = |pattern: &str| shown(&folder.path().join(pattern));
    let sum = format!("select sum(a) as s, count(*) as n, max(b) as m from {}", like("f*.csv"));
    assert_eq!(rows(&sum), [r#"{"s":5.5,"n":3,"m":"z"}"#]);
    let all = format!("select a, b from {}", like("f?.csv"));
    assert_eq!(
        rows(&all),
        [r#"{"a":1.0,"b":"x"}"#, r#"{"a":2.0,"b":"y"}"#, r#"{"a":2.5,"b":"z"}"#]
    );
    assert_eq!(rows(&format!("{all} limit 1")), [r#"{"a":1.0,"b":"x"}"#]);
    let error = refused(&["sql", &format!("select * from {}", like("*.csv"))], 1);
    assert!(error.contains("g.csv has no column `b`"), "{error}");
    let error = refused(&["sql", &format!("select * from {}", like("z*.csv"))], 1);
    assert!(error.contains("no file is called as"), "{error}");
    let error = refused(&["sql", "select * from 'https://example.org/f.csv'"], 1);
    assert!(error.contains("`https://example.org/f.csv` is an address"), "{error}");
    // A file of that very name is itself.
    write(&folder, "f*.csv", "a\n7\n");
    assert_eq!(rows(&format!("select a from {}", like("f*.csv"))), [r#"{"a":7}"#]);
    // A later value of one file widens the type of all.
    let mut long = String::from("a,b\n");
    (0..25_000).for_each(|row| long += &format!("{row},x\n"));
    write(&folder, "h1.csv", format!("{long}0.5,x\n"));
    write(&folder, "h2.csv", "a,b\n1,x\n");
    let sum = format!("select count(*) as n, max(a) as m from {}", like("h*.csv"));
    assert_eq!(rows(&sum), [r#"{"n":25002,"m":24999.0}"#]);
    // A folder has all files whose names tell a format.
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).expect("a folder for the test");
    write(&folder, "logs/1.csv", "a\n1\n");
    write(&folder, "logs/2.jsonl", "{\"a\":2}\n");
    write(&folder, "logs/words", "none");
    let sum = format!("select count(*) as n, sum(a) as s from {}", shown(&logs));
    assert_eq!(rows(&sum), [r#"{"n":2,"s":3}"#]);
}

#[test]
fn habits_of_other_programs_are_told() {
    let folder = folder();
    let told = |name: &str, text: &[u8]| {
        let path = write(&folder, name, text);
        let sql = format!("select * from {}", shown(&path));
        let output = sapwood(&["sql", &sql, "--mode", "csv"]).output().expect("it runs");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (text(output.stdout), text(output.stderr))
    };
    assert_eq!(told("excel.csv", b"sep=;\r\na;b\r\n1;2\r\n").0, "a,b\n1,2\n");
    let (rows, said) = told("blank.csv", b"a\n1\n\n2\n");
    assert!(rows == "a\n1\n2\n" && said.contains("blank lines are no rows"), "{rows}{said}");
    // A row with no value is no blank line.
    assert_eq!(told("quoted.csv", b"a\n1\n\"\"\n2\n").0, "a\n1\n\"\"\n2\n");
    let (_, said) = told("german.csv", b"preis;tag\n1,50;31.01.2013\n1.000,25;01.02.2013\n");
    assert!(said.contains("`preis` has numbers with decimal commas"), "{said}");
    assert!(said.contains("`tag` has days as 31.01.2013"), "{said}");
    assert!(told("latin.csv", b"a\ncaf\xe9\n").1.contains("iconv -f WINDOWS-1252"));
    assert!(told("latin", b"a,b\ncaf\xe9,1\n").1.contains("iconv -f WINDOWS-1252"));
    assert!(told("wide.csv", b"\xff\xfea\0\n\0").1.contains("UTF-16"));
}

#[test]
fn parameters_have_values() {
    let args = ["sql", "select ? as a, ? as b, ? as c, ? as d", "--mode", "json"];
    let values = ["--param", "7", "--param", "it's", "--param", "'7'", "--param", "null"];
    assert_eq!(
        stdout_of(&[&args[..], &values[..]].concat()),
        "{\"a\":7,\"b\":\"it's\",\"c\":\"7\",\"d\":null}\n"
    );
    assert!(refused(&["sql", "select $1"], 2).contains("no value is given"));
    assert!(refused(&["sql", "select $1", "--param", "1", "--param", "-2"], 2).contains("value 2"));
}
