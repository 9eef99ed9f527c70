//! `sapwood shell`: over a directory, and to a server on a free port.

mod sql;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use assert_cmd::cargo::CommandCargoExt;
use tempfile::TempDir;

use crate::{sapwood, stdout_of};

#[test]
fn a_directory_keeps_what_a_shell_wrote() {
    let folder = TempDir::new().expect("a directory for the test");
    let directory = folder.path().join("data");
    let directory = directory.to_str().expect("UTF-8");
    assert_eq!(stdout_of(&["shell", "--dir", directory, "-c", "SET a 'b c'"]), "OK\n");
    assert_eq!(stdout_of(&["shell", "--dir", directory, "-c", "GET a"]), "b c\n");
}

#[test]
fn lines_come_from_standard_input() {
    let lines = "# a comment\n\nSET a \"x\ny\"\nMULTI\nAPPEND a \\\n z\nGET a\nEXEC\nQUIT\nGET a\n";
    let run = sapwood(&["shell", "-o", "json"]).write_stdin(lines).assert().success();
    let stdout = String::from_utf8_lossy(&run.get_output().stdout).into_owned();
    let expected = "\"OK\"\n\"OK\"\n\"QUEUED\"\n\"QUEUED\"\n[4,\"x\\nyz\"]\n\"OK\"\n";
    assert_eq!(stdout, expected);
    // A quote that nothing closes is no argument.
    sapwood(&["shell"]).write_stdin("GET \"a\n").assert().code(1);
}

#[test]
fn times_go_beside_the_replies() {
    let run = sapwood(&["shell", "--timing", "-c", "ECHO a"]).assert().success();
    assert_eq!(run.get_output().stdout, b"a\n");
    let stderr = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(stderr.starts_with('(') && stderr.ends_with("s)\n"), "{stderr}");
}

/// A server that ends with the test.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start() -> Server {
        let mut process = Command::cargo_bin("sapwood")
            .expect("the binary of this package")
            .args(["serve", "--port", "0"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut lines = BufReader::new(process.stderr.take().expect("piped"));
        let mut said = String::new();
        let address = loop {
            let mut line = String::new();
            let read = lines.read_line(&mut line).expect("UTF-8");
            assert!(read > 0, "no address in: {said}");
            let word = line.split_whitespace().find_map(|word| {
                let word = word.trim_matches(|c: char| !c.is_ascii_digit());
                word.starts_with("127.0.0.1:").then(|| word.to_owned())
            });
            said += &line;
            if let Some(word) = word {
                break word;
            }
        };
        // It goes on to be heard.
        std::thread::spawn(move || lines.lines().for_each(drop));
        Server { process, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A process that has ended needs no end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_server_answers_as_a_database_in_the_process_does() {
    let server = Server::start();
    let lines = ["SET a 1", "INCR a", "MGET a b", "NOSUCH", "SELECT 1", "GET a", "HELLO 3"];
    let arguments = |address: Option<&str>| {
        let mut arguments = vec!["shell".to_owned(), "--json".to_owned()];
        arguments.extend(address.map(str::to_owned));
        arguments.extend(lines.iter().map(|line| format!("-c{line}")));
        arguments
    };
    let outputs = [Some(&server.address[..]), None].map(|address| {
        let arguments = arguments(address);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let run = sapwood(&arguments).assert().code(1);
        let stdout = String::from_utf8_lossy(&run.get_output().stdout).into_owned();
        // The last reply has the number of the client.
        stdout.lines().take(lines.len() - 1).map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(outputs[0], outputs[1]);
    let first = ["\"OK\"", "2", "[\"2\",null]"].map(str::to_owned);
    assert_eq!(outputs[0][..3], first);
    // The database of the address is selected.
    let url = format!("redis://{}/1", server.address);
    assert_eq!(stdout_of(&["shell", &url, "-c", "GET a", "-c", "DBSIZE"]), "\n0\n");
}

#[test]
fn what_cannot_be_trusted_is_not_talked_to() {
    let folder = TempDir::new().expect("a directory for the test");
    let none = folder.path().join("none.pem");
    std::fs::write(&none, "").expect("a file for the test");
    for (path, says) in
        [(&none, "no certificate to trust"), (&folder.path().join("x"), "cannot be read")]
    {
        let path: &Path = path;
        let path = path.to_str().expect("UTF-8");
        let mut run = sapwood(&["shell", "rediss://127.0.0.1:1", "--cacert", path, "-c", "PING"]);
        let stderr = run.assert().code(1).get_output().stderr.clone();
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        assert!(stderr.contains(says), "{stderr}");
    }
}

#[test]
fn a_server_executes_statements() {
    let server = Server::start();
    let folder = tempfile::TempDir::new().expect("a directory for the test");
    let file = folder.path().join("a.csv");
    std::fs::write(&file, "n\n1\n2\n").expect("a file for the test");
    let statements = format!(
        "create table trees (kind text, height double, is_old boolean, primary key (kind));\n\
         insert into trees values ('oak', 30.5, true),\n ('elm', null, false);\n\
         select * from trees order by kind;\nSW.LIST\n\
         select sum(n) as s from '{}';\n",
        file.display()
    );
    let run = |lines: &str, args: &[&str]| {
        let args = [&["shell", &server.address[..]], args].concat();
        let output = crate::sapwood(&args).write_stdin(lines).output().expect("it runs");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (text(output.stdout), text(output.stderr), output.status.code())
    };
    let (stdout, stderr, code) = run(&statements, &["-o", "json"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(
        lines,
        [
            "\"table trees is made\"",
            "{\"done\":\"inserted\",\"rows\":2}",
            "{\"kind\":\"elm\",\"height\":null,\"is_old\":false}",
            "{\"kind\":\"oak\",\"height\":30.5,\"is_old\":true}",
            "[\"trees\"]",
            "{\"s\":3}",
        ]
    );
    let (stdout, _, _) = run("select kind, height from trees where height > 1;", &["-o", "csv"]);
    assert_eq!(stdout, "kind,height\noak,30.5\n");
    for (statement, says) in [
        ("selec 1;", "selec"),
        ("select wings from trees;", "no column is called `wings`"),
        ("select kind from;", "the statement ends"),
    ] {
        let (_, stderr, code) = run(statement, &[]);
        assert!(code == Some(1) && stderr.contains(says), "{stderr}");
    }
    let both = format!("create table t as select * from '{}';", file.display());
    let (_, stderr, code) = run(&both, &[]);
    assert!(
        code == Some(1) && stderr.contains("does not reach the tables of a server"),
        "{stderr}"
    );
}
