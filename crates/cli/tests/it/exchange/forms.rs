//! In which columns tables are written.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::{Contents, ENGINES, Place, contents, endings, export, import};
use crate::{flight_rows, sapwood, stdout_of};

/// Rows of flights as CSV: with NA, texts and numbers.
fn flights() -> String {
    let (header, rows) = flight_rows();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&header).expect("a vector takes everything");
    for row in rows.iter().step_by(400) {
        writer.write_record(row).expect("a vector takes everything");
    }
    let bytes = writer.into_inner().expect("a vector takes everything");
    String::from_utf8(bytes).expect("UTF-8")
}

const KEY: &str = "time_hour:str,carrier:str,flight:int";

#[test]
fn a_loaded_file_comes_out_with_its_columns_and_goes_in_again() {
    let text = flights();
    for engine in ENGINES {
        let place = Place::new();
        let (rows, from) = (place.path("flights.csv"), place.path("from"));
        fs::write(&rows, &text).expect("a file for the test");
        import(&from, "rows", &rows, &["--key", KEY, "--engine", engine]);
        let loaded = contents(&from, "rows").0;
        let scanned = stdout_of(&["scan", &from, "-q"]);
        for ending in endings() {
            let file = place.path(&format!("rows.{ending}"));
            let notice = export(&from, "rows", &file, &[]);
            assert!(!notice.contains("as bytes"), "{notice}");
            if ending == "csv" {
                let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
                let written = fs::read_to_string(&file).expect("there");
                assert_eq!(lines(&written), lines(&text));
                assert_eq!(written.lines().next(), text.lines().next());
            }
            let to = place.path(&format!("to.{ending}"));
            let more: &[&str] = match ending {
                "parquet" | "arrow" => &[],
                _ if ending.starts_with("jsonl") => &["--key", KEY, "--cells"],
                _ => &["--key", KEY],
            };
            import(&to, "rows", &file, more);
            assert!(contents(&to, "rows").0 == loaded, "{engine} {ending}");
            if engine == "tree" {
                assert_eq!(stdout_of(&["scan", &to, "-q"]), scanned, "{ending}");
            }
        }
    }
}

#[test]
fn the_command_that_an_export_prints_brings_the_table_back() {
    let place = Place::new();
    let (rows, from) = (place.path("rows.csv"), place.path("from"));
    fs::write(&rows, "a b,\"n,m\",x\n1,2,'y'\n3,4,z\n").expect("a file for the test");
    import(&from, "rows", &rows, &["--key", "a b:int,\"n,m:int\"", "--engine", "hash"]);
    let loaded = contents(&from, "rows");
    for ending in endings() {
        let file = place.path(&format!("it's.{ending}"));
        let told = stdout_of(&["export", &from, "rows", "--to", &file, "--json"]);
        let told: Value = serde_json::from_str(&told).expect("an object");
        assert_eq!(told["rows"], 2);
        assert_eq!(told["form"], "columns");
        assert_eq!(told["columns"], serde_json::json!(["a b", "n,m", "x"]));
        let to = place.path(&format!("to {ending}"));
        let command = told["import"].as_str().expect("text").replace("DIR", &format!("'{to}'"));
        let binary = assert_cmd::cargo::cargo_bin("sapwood");
        let command = command.replacen("sapwood", binary.to_str().expect("UTF-8"), 1);
        let output = std::process::Command::new("sh").args(["-c", &command]).output().expect("sh");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(contents(&to, "rows") == loaded, "{command}");
    }
}

#[test]
fn json_lines_stay_as_they_were() {
    let lines = "{\"id\": 1, \"x\": 1.50}\n{\"id\":2,\"more\":[1, {\"a\":null}]}\n{ \"id\" : 3 }\n";
    let place = Place::new();
    let (rows, from) = (place.path("rows.jsonl"), place.path("from"));
    fs::write(&rows, lines).expect("a file for the test");
    import(&from, "rows", &rows, &["--key", "id:int", "--engine", "tree"]);
    let loaded = contents(&from, "rows");
    for ending in endings() {
        let file = place.path(&format!("rows.{ending}"));
        let notice = export(&from, "rows", &file, &[]);
        assert_eq!(notice.contains("as bytes"), !ending.starts_with("jsonl"), "{notice}");
        if ending == "jsonl" {
            assert_eq!(fs::read_to_string(&file).expect("there"), lines);
        }
        let to = place.path(&format!("to.{ending}"));
        let more: &[&str] = match ending.starts_with("jsonl") {
            true => &["--key", "id:int", "--engine", "tree"],
            false => &["--engine", "tree"],
        };
        import(&to, "rows", &file, more);
        assert!(contents(&to, "rows") == loaded, "{ending}");
        // And into the table itself, which knows how its rows are read.
        import(&from, "rows", &file, &[]);
        assert!(contents(&from, "rows") == loaded, "{ending}");
    }
}

#[test]
fn keys_that_columns_do_not_make_are_written_as_bytes() {
    let place = Place::new();
    let (rows, from) = (place.path("rows.csv"), place.path("from"));
    fs::write(&rows, "k,v\na,1\nb,3\n").expect("a file for the test");
    import(&from, "rows", &rows, &["--key", "k:str", "--engine", "tree"]);
    // A number behind the columns, as earlier versions of `sapwood load --duplicates all` wrote it.
    let db = sapwood::Db::open(&from).expect("it opens");
    let key = sapwood::key::encode(&("a", 1_u64));
    db.table("rows").expect("it is there").put(&key, b"\x01a\x012").expect("there is room");
    db.close().expect("it lasts");
    let loaded = contents(&from, "rows").0;
    assert_eq!(loaded.len(), 3);
    for ending in endings() {
        let file = place.path(&format!("rows.{ending}"));
        let notice = export(&from, "rows", &file, &[]);
        assert!(notice.contains("the key does not follow from the columns"), "{notice}");
        let to = place.path(&format!("to.{ending}"));
        import(&to, "rows", &file, &[]);
        assert!(contents(&to, "rows").0 == loaded, "{ending}");
        import(&from, "rows", &file, &[]);
        assert!(contents(&from, "rows").0 == loaded, "{ending}");
    }
}

#[test]
fn columns_called_key_and_value_are_not_mistaken() {
    let place = Place::new();
    let (rows, from) = (place.path("rows.csv"), place.path("from"));
    fs::write(&rows, "key,value\na,\\\\x\nb,2\n").expect("a file for the test");
    import(&from, "rows", &rows, &["--key", "key:str", "--engine", "hash"]);
    let loaded = contents(&from, "rows").0;
    for ending in endings() {
        let file = place.path(&format!("exported.{ending}"));
        export(&from, "rows", &file, &[]);
        let to = place.path(&format!("to.{ending}"));
        import(&to, "rows", &file, &[]);
        assert!(contents(&to, "rows").0 == loaded, "{ending}");
    }
    // Which of the two it is must be said.
    super::refused(&["import", &from, "rows", &rows], 2, "say --raw if they are bytes");
    import(&from, "rows", &rows, &["--key", "key:str"]);
    assert_eq!(contents(&from, "rows").0, loaded);
}

/// Fields that leave bytes out, overlap, or go by other names.
#[test]
fn fields_that_do_not_cover_a_record_are_not_used() {
    let mut entries = Contents::new();
    for number in 0..20_u32 {
        let value = [number.to_le_bytes(), (number * 7).to_le_bytes()].concat();
        entries.insert(sapwood::key::encode(&("shop", number as u16)), value);
    }
    for (fields, header) in [
        ("a:u32le, b:u32le@4", "key,a,b"),
        ("key(shop:str, day:u16), a:u64le", "shop,day,a"),
        ("key(shop:str, day:u16)", "shop,day,value"),
        ("key(shop:str, _:u16), a:u64le", "key,a"),
        ("key(shop:str, ..), a:u64le", "key,a"),
        ("key(shop:str, day:u16), a:u32le", "shop,day,value or key,value"),
        ("b:u32le@4, a:u32le", "key,a,b"),
        ("a:u32le, b:u32le@2", "key,value"),
        ("a:u32le", "key,value"),
        ("value:u64le", "key,value"),
        ("a:bytes", "key,a"),
    ] {
        let place = Place::new();
        let from = place.database("from", "tree", Some(fields), &entries);
        let file = place.path("t.csv");
        let told = stdout_of(&["export", &from, "t", "--to", &file, "--json", "-q"]);
        let first = fs::read_to_string(&file).expect("there");
        let first = first.lines().next().expect("a header").to_owned();
        assert!(header.split(" or ").any(|header| header == first), "{fields}: {first}");
        let to = place.path("to");
        let told: Value = serde_json::from_str(&told).expect("an object");
        let more: &[&str] = match told["form"] == "fields" {
            true => &["--layout", fields],
            false => &[],
        };
        import(&to, "t", &file, more);
        assert!(contents(&to, "t").0 == entries, "{fields}");
        // With --raw there is never anything else.
        export(&from, "t", &file, &["--raw"]);
        assert!(fs::read_to_string(&file).expect("there").starts_with("key,value\n"));
        import(&to, "t", &file, &["--raw"]);
        assert!(contents(&to, "t").0 == entries, "{fields}");
    }
}

#[test]
fn rows_go_to_standard_output_and_come_from_standard_input() {
    let place = Place::new();
    let entries: Contents = [(b"a".to_vec(), b"1,2".to_vec()), (b"b".to_vec(), vec![0])].into();
    let from = place.database("from", "tree", None, &entries);
    assert_eq!(stdout_of(&["export", &from, "t"]), "key,value\na,\"1,2\"\nb,\\0\n");
    let lines = stdout_of(&["export", &from, "t", "--format", "jsonl"]);
    assert_eq!(lines, "{\"key\":\"a\",\"value\":\"1,2\"}\n{\"key\":\"b\",\"value\":\"\\\\0\"}\n");
    let to = place.path("to");
    sapwood(&["import", &to, "t", "-", "--format", "jsonl"]).write_stdin(lines).assert().success();
    assert!(contents(&to, "t").0 == entries);
}

#[cfg(feature = "columnar")]
#[test]
fn columnar_files_go_to_a_pipe_too() {
    let place = Place::new();
    let entries: Contents = [(b"a".to_vec(), b"1".to_vec())].into();
    let from = place.database("from", "hash", None, &entries);
    for format in ["parquet", "arrow"] {
        let output = sapwood(&["export", &from, "t", "--format", format]).assert().success();
        let file = place.path(format);
        fs::write(&file, &output.get_output().stdout).expect("a file for the test");
        let to = place.path(&format!("to.{format}"));
        import(&to, "t", &file, &["--format", format]);
        assert!(contents(&to, "t").0 == entries, "{format}");
    }
}
