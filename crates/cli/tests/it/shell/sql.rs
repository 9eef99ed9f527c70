//! Statements of SQL in the shell, and its commands that begin with a dot.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::{sapwood, stdout_of};

fn folder() -> TempDir {
    TempDir::new().expect("a directory for the test")
}

/// Standard output, standard error and exit code of a shell that reads lines.
#[track_caller]
fn told(args: &[&str], lines: &str) -> (String, String, Option<i32>) {
    let args = [&["shell"], args].concat();
    let output = sapwood(&args).write_stdin(lines).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[track_caller]
fn answers(args: &[&str], lines: &str) -> String {
    let (stdout, stderr, code) = told(args, lines);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    stdout
}

fn stops(folder: &Path) -> String {
    let path = folder.join("stops.csv");
    fs::write(&path, "line,minute\nU6,485\nU6,492\nU7,480\n").expect("a file for the test");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn statements_and_commands_share_a_directory() {
    let folder = folder();
    let directory = folder.path().join("town");
    let directory = directory.to_str().expect("UTF-8");
    let stops = stops(folder.path());
    let made = answers(
        &["--dir", directory],
        &format!(
            "create table stops (line text, minute int,\n  primary key (line, minute));\n\
             copy stops from '{stops}'; SET greeting hello\n-- a comment; of one line\n\
             select count(*) /* ; */ as n\n  from stops -- ;\n  where line = 'U6';\n\
             SW.LIST MATCH st*\n"
        ),
    );
    assert_eq!(made, "table stops is made\n3 rows inserted\nOK\nn\n2\nstops\n");
    // The directory by its path, which is the one that is open, by its name, and at a later time.
    let one = format!("select max(minute) as m from '{directory}'.stops;");
    assert_eq!(
        stdout_of(&["shell", directory, "-c", &one, "-c", "GET greeting"]),
        "  m\n492\nhello\n"
    );
    assert_eq!(
        stdout_of(&["sql", "--dir", directory, "--mode", "csv", "select sum(minute) from stops"]),
        "sum(minute)\n1457\n"
    );
}

#[test]
fn a_database_in_memory_has_tables_and_files() {
    let folder = folder();
    let stops = stops(folder.path());
    let lines = format!(
        "select sum(minute) as m from '{stops}';\n.import {stops} stops\n.import '{stops}' stops\n\
         select count(*) as n from stops"
    );
    assert_eq!(answers(&[], &lines), "   m\n1457\n3 rows inserted\n3 rows inserted\nn\n6\n");
    // A file is read anew by each statement.
    let copied = format!(
        "copy (select 1 as a) to '{0}'; select * from '{0}'; copy (select 2 as b) to '{0}'; select * from '{0}';",
        folder.path().join("again.csv").display()
    );
    let expected = "1 row written\na\n1\n1 row written\nb\n2\n";
    assert_eq!(stdout_of(&["shell", "-c", &copied]), expected);
}

#[test]
fn a_script_ends_with_the_first_statement_that_fails() {
    for (lines, says) in [
        ("begin;\ndelete from t;\nrollback;\n", "not supported"),
        ("insert into t values (7);\ndelete from t;\n", ""),
        ("select nothing from t;\ndelete from t;\n", "no column"),
    ] {
        let folder = folder();
        let dir = folder.path().join("v").display().to_string();
        let made = "create table t (a bigint primary key); insert into t values (7)";
        stdout_of(&["sql", "--dir", &dir, made]);
        let output = sapwood(&["shell", "--dir", &dir]).write_stdin(lines).assert().failure();
        let words = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(words.contains(says), "{lines}: {words}");
        assert_eq!(stdout_of(&["sql", "--dir", &dir, "select a from t"]), "a\n7\n", "{lines}");
    }
}

#[test]
fn words_of_both_languages_are_told_apart() {
    let folder = folder();
    let file = folder.path().join("t.csv");
    let lines = format!(
        "SELECT 1\nSET a x\nCOPY a b\nGET b\nselect 1;\nselect 1 as one, 2 as two;\n\
         create table t (a bigint primary key); insert into t values (7);\n\
         copy t to '{0}';\nselect\n1\n;\nSELECT 0\nGET b\n",
        file.display()
    );
    let expected = "OK\nOK\n1\nx\n1\n1\none  two\n  1    2\ntable t is made\n1 row inserted\n\
                    1 row written\n1\n1\nOK\n\n";
    assert_eq!(answers(&[], &lines), expected);
    assert_eq!(fs::read_to_string(file).expect("it was made"), "a\n7\n");
}

#[test]
fn answers_have_the_form_that_is_chosen() {
    let lines = ".mode\nselect 1 as a, 'x|y' as b;\n.mode csv\nselect 1 as a, 'x,y' as b;\nMSET k 1 l 2\n\
                 .mode json\nselect 1 as a, null as b;\n.mode markdown\nselect 1 as a, 'x|y' as b;\n\
                 GET k\n.mode\n.mode table\nselect 'z' as a;\n";
    let expected = "table\na  b\n1  x|y\na,b\n1,\"x,y\"\nOK\n{\"a\":1,\"b\":null}\n\
                    | a | b |\n| ---: | --- |\n| 1 | x\\|y |\n1\nmarkdown\na\nz\n";
    assert_eq!(answers(&[], lines), expected);
    assert_eq!(stdout_of(&["shell", "--json", "-c", "select 1 as a;"]), "{\"a\":1}\n");
    assert_eq!(
        stdout_of(&["shell", "-o", "markdown", "-c", "select 1 as a;"]),
        "| a |\n| ---: |\n| 1 |\n"
    );
}

#[test]
fn tables_are_named_and_defined() {
    let made = "create table hits (page text primary key, hits bigint not null, \"of day\" date) \
                with (engine = 'hash'); create table visits (a double); SET a 1\n";
    let lines = format!("{made}.tables\n.tables vis\n.schema hits\n.mode json\n.tables\n");
    let expected = "table hits is made\ntable visits is made\nOK\nhits\nvisits\nvisits\n\
                    create table hits (\n  page text,\n  hits bigint not null,\n  \"of day\" date,\n  \
                    primary key (page)\n) with (engine = 'hash');\n[\"hits\",\"visits\"]\n";
    assert_eq!(answers(&[], &lines), expected);
    let (_, stderr, code) = told(&[], ".schema none\n");
    assert_eq!(code, Some(1));
    assert!(stderr.contains("no table `none`"), "{stderr}");
}

#[test]
fn plans_and_times_go_beside_answers() {
    let lines = "create table t (a bigint primary key);\n.explain select * from t where a = 1\n\
                 .explain on\nselect a from t where a > 1;\n.explain off\n.timer on\nselect 1 as a;\n";
    let (stdout, stderr, code) = told(&[], lines);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.starts_with("table t is made\nplan\n"), "{stdout}");
    assert!(stdout.contains("get of 1 key") && !stdout.contains("range"), "{stdout}");
    assert!(stdout.ends_with("a\n1\n"), "{stdout}");
    assert!(stderr.contains("range") && stderr.ends_with("s)\n"), "{stderr}");
    assert_eq!(stderr.matches("s)\n").count(), 1, "{stderr}");
}

#[test]
fn mistakes_are_shown() {
    let lines = "create table t (carrier text primary key);\nselec 1;\n.tabels\n\
                 select count(*) as n from t;\nselect carier from t;\nselect 1;\n";
    let (stdout, stderr, code) = told(&[], lines);
    assert_eq!(code, Some(1));
    assert_eq!(stdout, "table t is made\nn\n0\n");
    assert!(stderr.contains("did you mean `carrier`?"), "{stderr}");
    assert!(stderr.contains("\n  select carier from t;\n         ^^^^^^\n"), "{stderr}");
    assert!(stderr.contains("unknown command 'selec'"), "{stderr}");
    assert!(stderr.contains("did you mean `select`, with which a statement"), "{stderr}");
    assert!(stderr.contains("no command is called `.tabels`: there are .tables "), "{stderr}");
    let (_, stderr, _) = told(&[], "gte a\n");
    assert!(stderr.contains("did you mean `GET`?"), "{stderr}");
    let (stdout, _, code) = told(&["--json"], ".mode xml\nselect x;\nselect 1;\n");
    assert_eq!(code, Some(1));
    assert_eq!(stdout.lines().count(), 2, "{stdout}");
    assert!(stdout.lines().all(|line| line.starts_with("{\"error\":\"")), "{stdout}");
    let (_, stderr, code) = told(&[], "select * from '-';\nselect 'open");
    assert_eq!(code, Some(1));
    assert!(stderr.contains("standard input has the lines of the shell"), "{stderr}");
}

#[test]
fn forms_have_one_name_in_both_commands() {
    for name in ["-o", "--output", "--mode"] {
        assert_eq!(told(&[name, "json"], "select 1 as n;\n").0, "{\"n\":1}\n", "{name}");
        assert_eq!(stdout_of(&["sql", "select 1 as n", name, "json"]), "{\"n\":1}\n", "{name}");
    }
}

#[test]
fn a_place_is_a_directory_or_a_server() {
    let folder = folder();
    let stops = stops(folder.path());
    let run = |args: &[&str]| {
        let output = sapwood(args).current_dir(&folder).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(run(&["shell", "./new", "-c", "create table t (a int);"]).0, Some(0));
    assert_eq!(run(&["shell", "new", "-c", "select * from t;"]).0, Some(0));
    let (code, said) = run(&["shell", &stops, "-c", "select 1;"]);
    assert!(code == Some(2) && said.contains("is a file"), "{said}");
    let (code, said) = run(&["shell", "new", "--askpass", "-c", "select 1;"]);
    assert!(code == Some(2) && said.contains("a directory is named"), "{said}");
}

/// Ctrl-C ends a run of lines that come from a program, and its statement with it.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_statement() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use assert_cmd::cargo::CommandCargoExt;

    let folder = folder();
    let rows: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    let file = folder.path().join("rows.csv");
    fs::write(&file, format!("n\n{rows}")).expect("a file for the test");
    let imports = format!("insert into t select n from '{}';", file.display());
    let lines = format!("create table t (n bigint);\n{}", imports.repeat(1000));
    let mut child = Command::cargo_bin("sapwood")
        .expect("the binary of this package")
        .args(["shell", "-c", &lines])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    stdout.read_line(&mut line).expect("a line");
    assert_eq!(line, "table t is made\n");
    let sent = Command::new("kill").arg("-INT").arg(child.id().to_string()).status();
    assert!(sent.expect("kill is there").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
}
