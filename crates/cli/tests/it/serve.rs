//! `sapwood serve` from outside: its log, and its answers while it loads.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use assert_cmd::cargo::CommandCargoExt;

use crate::sapwood;

/// A time that is over only when something is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server, and what it has logged so far.
struct Server {
    process: Child,
    log: BufReader<ChildStderr>,
    logged: String,
    stream: TcpStream,
}

impl Server {
    fn start(args: &[&str], env: &[(&str, &str)]) -> Server {
        let mut process = Command::cargo_bin("sapwood")
            .expect("the binary of this package")
            .args(["serve", "--port", "0", "--threads", "2"])
            .args(args)
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut log = BufReader::new(process.stderr.take().expect("piped"));
        let mut logged = String::new();
        let line = wait_for(&mut log, &mut logged, "ready to accept");
        let address = line.split_whitespace().find_map(|word| word.strip_prefix("address="));
        let stream = TcpStream::connect(address.expect("an address")).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("an option");
        Server { process, log, logged, stream }
    }

    /// Waits for a line of its log.
    fn wait_for(&mut self, what: &str) {
        wait_for(&mut self.log, &mut self.logged, what);
    }

    /// Sends requests, each with one line of reply, and answers the lines.
    fn lines(&mut self, requests: &[String]) -> Vec<String> {
        let mut replies = BufReader::new(self.stream.try_clone().expect("the same stream"));
        let reply = |request: &String| {
            self.stream.write_all(format!("{request}\r\n").as_bytes()).expect("it is sent");
            let mut line = String::new();
            replies.read_line(&mut line).expect("a reply");
            line.trim_end().to_owned()
        };
        requests.iter().map(reply).collect()
    }

    /// Ends it; answers all that it has logged.
    fn end(mut self) -> String {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").arg(id).status().expect("kill is there").success());
        self.log.read_to_string(&mut self.logged).expect("a log");
        assert!(self.process.wait().expect("it ends").success(), "{}", self.logged);
        std::mem::take(&mut self.logged)
    }
}

/// Reads a log up to a line, and answers it.
fn wait_for(log: &mut BufReader<ChildStderr>, logged: &mut String, what: &str) -> String {
    loop {
        let mut line = String::new();
        assert!(log.read_line(&mut line).expect("a log") > 0, "it ended: {logged}");
        logged.push_str(&line);
        if line.contains(what) {
            return line;
        }
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
fn secrets_are_in_no_log() {
    // At the start, when one is set, where one is wrong, and within requests that are refused.
    let [first, second, wrong, of_user] =
        ["first-secret-27", "second-secret-28", "wrong-secret-29", "users-secret-30"];
    let env = [("SAPWOOD_REQUIREPASS", first)];
    let args = ["--log-level", "debug", "--slowlog-log-slower-than", "0"];
    let mut server = Server::start(&args, &env);
    let requests = [
        (format!("AUTH {wrong}"), "-WRONGPASS"),
        (format!("HELLO 2 AUTH default {wrong}"), "-WRONGPASS"),
        (format!("AUTH {first}"), "+OK"),
        (format!("CONFIG SET requirepass {second}"), "+OK"),
        (format!("ACL SETUSER ann on >{of_user} +@all ~*"), "+OK"),
        (format!("ACL SETUSER ann on >{of_user} nonsense"), "-ERR"),
        (format!("AUTH ann {of_user}"), "+OK"),
        (format!("AUTH default {second} {wrong}"), "-ERR"),
        (format!("CONFIG SET maxclients {wrong}"), "-ERR"),
        ("NONSENSE".to_owned(), "-ERR"),
    ];
    let (requests, wanted): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
    for (reply, wanted) in server.lines(&requests).iter().zip(wanted) {
        assert!(reply.starts_with(wanted), "{wanted}: {reply}");
        let quotes_a_secret = [first, second, of_user].iter().any(|it| reply.contains(it));
        assert!(!quotes_a_secret, "{reply}");
    }
    // The log of slow commands has all of the above, and is shown to clients.
    server.stream.write_all(b"SLOWLOG GET 100\r\nACL LOG\r\nPING end\r\n").expect("it is sent");
    let mut shown = Vec::new();
    while !shown.ends_with(b"$3\r\nend\r\n") {
        let mut bytes = [0; 4096];
        let read = server.stream.read(&mut bytes).expect("a reply");
        assert!(read > 0, "the connection ended");
        shown.extend_from_slice(&bytes[..read]);
    }
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(shown.contains("(redacted)"), "{shown}");
    let logged = server.end();
    let printed = sapwood(&["config", "print"]).env("SAPWOOD_REQUIREPASS", first).assert();
    let printed = String::from_utf8_lossy(&printed.success().get_output().stdout).into_owned();
    for (place, text) in [("SLOWLOG", &shown), ("the log", &logged), ("config print", &printed)] {
        for secret in [first, second, of_user] {
            assert!(!text.contains(secret), "{secret} in {place}: {text}");
        }
    }
}

#[test]
fn clients_see_all_of_a_sample() {
    let mut server = Server::start(&["--sample", "flights"], &[]);
    // Asked at once, while it is being loaded. A header of columns, and a row.
    let request = "SW.AGGREGATE flights SELECT 'count,sum(dep_delay)'\r\n";
    server.stream.write_all(request.as_bytes()).expect("it is sent");
    let (header, rows) = crate::flight_rows();
    let delay = header.iter().position(|column| column == "dep_delay").expect("a column");
    let minutes: i64 = rows.iter().filter_map(|row| row[delay].parse::<i64>().ok()).sum();
    let mut replies = BufReader::new(server.stream.try_clone().expect("the same stream")).lines();
    for figure in [rows.len() as i64, minutes] {
        let is_figure = |line: &str| line.trim_start_matches(':') == figure.to_string();
        let found =
            replies.by_ref().map(|line| line.expect("a reply")).any(|line| is_figure(&line));
        assert!(found, "no {figure}");
    }
    server.wait_for("the sample is loaded");
    server.end();
}

/// A signal is heard while the sample is being loaded.
#[test]
fn a_server_ends_while_its_sample_is_loaded() {
    let mut server = Server::start(&["--sample", "flights"], &[]);
    server.wait_for("the sample is being loaded");
    server.end();
}

/// Resident bytes of a process.
#[cfg(target_os = "linux")]
fn resident_bytes(process: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id()));
    let status = status.expect("it is running");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
    kib << 10
}

/// The program itself, its stacks and the buffers of sockets are not counted: they are the same few
/// MiB whatever the data.
#[cfg(target_os = "linux")]
#[test]
fn used_memory_is_what_the_process_has_grown_by() {
    const UNCOUNTED: u64 = 24 << 20;
    let mut server = Server::start(&[], &[]);
    let empty = resident_bytes(&server.process);
    for (entries, len) in [(400_000, 8), (200_000, 100), (5_000, 9_000), (60, 1 << 20)] {
        let value = "v".repeat(len);
        let mut next = 0;
        while next < entries {
            let end = entries.min(next + (1 << 20) / (len + 40) + 1);
            let mut requests = Vec::new();
            for number in next..end {
                let key = format!("{number:08}");
                requests.extend_from_slice(
                    format!("*3\r\n$3\r\nSET\r\n$8\r\n{key}\r\n${len}\r\n{value}\r\n").as_bytes(),
                );
            }
            server.stream.write_all(&requests).expect("it is sent");
            let mut replies = vec![0; (end - next) * "+OK\r\n".len()];
            server.stream.read_exact(&mut replies).expect("replies");
            assert!(replies.chunks(5).all(|reply| reply == b"+OK\r\n"));
            next = end;
        }
        let used = used_memory(&mut server);
        let grown = resident_bytes(&server.process).saturating_sub(empty);
        assert!(used > (entries * len) as u64, "{used} bytes for {entries} of {len}");
        // What is counted is there, and what is there is counted.
        assert!(used <= grown + grown / 8 + (2 << 20), "{used} counted, {grown} grown, {len}");
        assert!(grown <= used + used / 8 + UNCOUNTED, "{used} counted, {grown} grown, {len}");
        assert_eq!(server.lines(&["FLUSHALL".to_owned()]), ["+OK"]);
        let left = used_memory(&mut server);
        assert!(left < 1 << 20, "{left} bytes are left of nothing");
        let grown = resident_bytes(&server.process).saturating_sub(empty);
        assert!(grown <= UNCOUNTED, "{grown} bytes stay, {len}");
    }
    server.end();
}

#[cfg(target_os = "linux")]
fn used_memory(server: &mut Server) -> u64 {
    server.stream.write_all(b"INFO memory\r\n").expect("it is sent");
    let mut replies = BufReader::new(server.stream.try_clone().expect("the same stream"));
    let mut line = String::new();
    replies.read_line(&mut line).expect("a length");
    let len: usize = line.trim_end()[1..].parse().expect("a length");
    let mut text = vec![0; len + 2];
    replies.read_exact(&mut text).expect("a text");
    let text = String::from_utf8(text).expect("text");
    let used = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
    used.expect("a field").trim().parse().expect("a number")
}
