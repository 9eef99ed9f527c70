//! Rights beside those of a real Redis server, where one is installed.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::{Client, Value, replies, request, service};

/// A Redis server at a path, ended when it is dropped.
struct Redis {
    process: Child,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Redis {
    /// `None` where there is no Redis server of version 7.
    fn start() -> Option<Redis> {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("redis.sock");
        let process = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let redis = Redis { process, socket, _folder: folder };
        let begun = Instant::now();
        while !is_there(&redis.socket) {
            assert!(begun.elapsed() < Duration::from_secs(20), "redis-server does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        let has_selectors = redis.send(&["ACL SETUSER probe (+get)", "ACL DELUSER probe"]);
        matches!(has_selectors[0], Value::Simple(_)).then_some(redis)
    }

    /// The replies to lines of a new client.
    fn send(&self, lines: &[&str]) -> Vec<Value> {
        let mut stream = UnixStream::connect(&self.socket).expect("it listens");
        let mut bytes: Vec<u8> = lines.iter().flat_map(|line| words(line)).collect();
        bytes.extend(request(&[b"QUIT"]));
        stream.write_all(&bytes).expect("it reads");
        let mut out = Vec::new();
        stream.read_to_end(&mut out).expect("it answers, and closes");
        let mut all = replies(&out);
        all.pop();
        all
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn is_there(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok()
}

fn words(line: &str) -> Vec<u8> {
    let args: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
    request(&args)
}

/// A reply without that in which two servers differ: the order of rules about commands, which Redis
/// shows in another at each start, and of the log of refusals the time and the client.
fn normal(value: Value) -> Value {
    match value {
        Value::Bulk(text) if text.windows(5).any(|part| *part == *b"@all ") => {
            let mut words: Vec<_> = text.split(|byte| *byte == b' ').collect();
            words.sort_unstable();
            Value::Bulk(words.join(&b' '))
        }
        Value::Array(mut values) => {
            for at in 1..values.len() {
                if ["age-seconds", "client-info"]
                    .iter()
                    .any(|name| values[at - 1] == (*name).into())
                {
                    values[at] = Value::Null;
                }
            }
            Value::Array(values.into_iter().map(normal).collect())
        }
        other => other,
    }
}

#[test]
fn sequences_are_answered_as_by_redis() {
    let Some(redis) = Redis::start() else { return };
    let sequences: &[&[&str]] = &[
        &["AUTH x", "AUTH default x", "AUTH nobody x", "AUTH a b c", "ACL WHOAMI"],
        &[
            "ACL SETUSER a on >pw ~k* +get +set",
            "AUTH a pw",
            "GET k1",
            "SET k1 v",
            "GET k1",
            "GET x",
            "DEL k1",
            "ACL WHOAMI",
            "AUTH a nopw",
            "GET k1",
            "AUTH default x",
            "ACL WHOAMI",
            "DEL k1",
        ],
        &[
            "ACL SETUSER b on nopass +@all -@dangerous ~*",
            "AUTH b any",
            "SET k v",
            "FLUSHALL",
            "KEYS *",
            "ACL SETUSER b +@all",
            "ACL WHOAMI",
            "CLIENT LIST",
            "DEL k",
        ],
        &[
            "ACL SETUSER c on nopass +multi +exec +set +acl|whoami ~k*",
            "AUTH c any",
            "MULTI",
            "SET k v",
            "EXEC",
            "MULTI",
            "SET k v",
            "SET x v",
            "EXEC",
            "MULTI",
            "GET k",
            "EXEC",
            "ACL WHOAMI",
            "ACL LIST",
            "DISCARD",
            "MULTI",
            "SAVE",
            "EXEC",
        ],
        &[
            "ACL SETUSER c2 on nopass +@all -exec ~k* &c",
            "AUTH c2 any",
            "MULTI",
            "SET k v",
            "EXEC",
            "EXEC",
        ],
        &[
            "ACL SETUSER c3 on nopass +@all ~k* &c",
            "AUTH c3 any",
            "MULTI",
            "ACL SETUSER c3 -set resetchannels",
            "SET k v",
            "PUBLISH c m",
            "ACL SETUSER c3 +set resetkeys",
            "SET k v",
            "EXEC",
        ],
        &[
            "ACL SETUSER d nothing",
            "ACL SETUSER d +nothing",
            "ACL SETUSER d -nothing",
            "ACL SETUSER d +@nothing",
            "ACL SETUSER d ~* ~a",
            "ACL SETUSER d &* &a",
            "ACL SETUSER d %X~a",
            "ACL SETUSER d %~a",
            "ACL SETUSER d %RR~a",
            "ACL SETUSER d ~* %X~a",
            "ACL SETUSER d (+nothing)",
            "ACL SETUSER d )",
            "ACL SETUSER d +select|",
            "ACL SETUSER d +acl|nothing",
            "ACL SETUSER d +client|id|1",
            "ACL SETUSER d +get|a|b",
            "ACL GETUSER d",
        ],
        &[
            "ACL SETUSER e on nopass +@pubsub resetchannels &c* +ping",
            "AUTH e any",
            "PUBLISH c1 m",
            "PUBLISH d m",
            "SUBSCRIBE d",
            "PSUBSCRIBE c1*",
            "SPUBLISH d m",
            "PSUBSCRIBE c*",
        ],
        &[
            "ACL LOG RESET",
            "ACL SETUSER e2 on nopass +multi +exec +mget ~k (+mget ~k ~o) +publish",
            "AUTH e2 any",
            "GET k",
            "GET k",
            "MGET k o x",
            "PUBLISH c m",
            "MULTI",
            "GET k",
            "EXEC",
            "AUTH e2b wrong",
            "AUTH default any",
            "ACL LOG",
            "ACL LOG 2",
            "ACL LOG x",
            "ACL LOG 1 x",
            "ACL LOG RESET",
            "ACL LOG",
        ],
        &["ACL DELUSER default", "ACL DELUSER nobody", "ACL DELUSER a b c d e", "ACL USERS"],
        &["ACL GENPASS 0", "ACL GENPASS 5000", "ACL CAT nothing", "ACL LOAD", "ACL SAVE"],
        &[
            "ACL SETUSER f on nopass -@all +select|0 +client|setname",
            "AUTH f any",
            "SELECT 0",
            "SELECT 1",
            "CLIENT SETNAME x",
            "CLIENT GETNAME",
        ],
        &["HELLO 4", "HELLO x", "HELLO 2 AUTH default", "HELLO 2 nothing"],
        &[
            "ACL DRYRUN absent get x",
            "ACL DRYRUN default nothing x",
            "ACL DRYRUN default acl nothing",
            "ACL DRYRUN default get",
            "ACL SETUSER f2 on nopass +get +acl|cat +subscribe ~k &c",
            "ACL DRYRUN f2 get k",
            "ACL DRYRUN f2 get x",
            "ACL DRYRUN f2 SET k v",
            "ACL DRYRUN f2 ACL LIST",
            "ACL DRYRUN f2 subscribe c d",
        ],
        &[
            "ACL SETUSER g on nopass (+set ~w*) (+get ~r*)",
            "AUTH g any",
            "SET w v",
            "GET r",
            "GET w",
            "SET r v",
            "PING",
        ],
        &[
            "ACL SETUSER h +get (+set ~k) clearselectors",
            "ACL DRYRUN h set k v",
            "ACL SETUSER h reset",
            "ACL DRYRUN h get k",
        ],
    ];
    let service = service();
    for lines in sequences {
        // Users that are there in every sequence, in both.
        let mut ours = Client::new(&service);
        let theirs = redis.send(lines);
        for (line, theirs) in lines.iter().zip(theirs) {
            let ours = ours.line(line);
            if line.starts_with("ACL USERS") || line.starts_with("CLIENT LIST") {
                continue;
            }
            assert_eq!(normal(ours), normal(theirs), "{line} in {lines:?}");
        }
    }
}

/// Rules of users, as both servers show them.
#[test]
fn rules_are_shown_as_by_redis() {
    let Some(redis) = Redis::start() else { return };
    let service = service();
    let mut ours = Client::new(&service);
    for rules in [
        "",
        "reset",
        "on nopass",
        "sanitize-payload",
        "skip-sanitize-payload",
        "on >one >two <one",
        "+@all ~* &*",
        "~a %R~b %W~b %W~c %RW~d &x &y",
        "+get",
        "+get +set -get",
        "+@all -get",
        "+@all -get +get",
        "+@read",
        "+@read +@write",
        "+@string -set +SET",
        "+@string -set",
        "+@all -@string +get",
        "+@all -@string +get -@string",
        "+@all -@dangerous",
        "+@all -@admin -@dangerous",
        "+@all +client|id",
        "+@all -client +client|id +client|setname",
        "+@all -client|kill",
        "+config -config|set",
        "+acl|cat +acl|list +acl",
        "+memory|doctor",
        "+memory|doctor +memory",
        "+@all -memory|doctor -memory",
        "+multi +exec +discard +watch",
        "+@pubsub -publish",
        "+select|0 +select|0",
        "+select|A +SELECT|a +select|b",
        "+select|0 +@connection -select",
        "+debug|digest -debug +debug|object",
        "+@hash",
        "+@all -@hash",
        "+@hash +@list -@hash",
        "+get (~a +set &c) ( +@all -@string )",
        "(+get) clearselectors",
    ] {
        let lines =
            [&*format!("ACL SETUSER u {rules}"), "ACL GETUSER u", "ACL LIST", "ACL DELUSER u"];
        for (line, theirs) in lines.iter().zip(redis.send(&lines)) {
            assert_eq!(normal(ours.line(line)), normal(theirs), "{line}: {rules}");
        }
    }
}

/// Commands with keys that may be read, written, or both, in every position.
#[test]
fn rights_on_keys_are_those_of_redis() {
    let Some(redis) = Redis::start() else { return };
    const USER: &str = "ACL SETUSER k on nopass +@all %R~r* %W~w* ~a*";
    let commands = [
        "get 1",
        "set 1 v",
        "set 1 v get",
        "set 1 v nx",
        "getset 1 v",
        "getdel 1",
        "getex 1",
        "setnx 1 v",
        "setex 1 1 v",
        "psetex 1 1 v",
        "mget 1 2",
        "mset 1 v 2 v",
        "msetnx 1 v 2 v",
        "append 1 v",
        "strlen 1",
        "getrange 1 0 1",
        "substr 1 0 1",
        "setrange 1 0 v",
        "incr 1",
        "decr 1",
        "incrby 1 1",
        "decrby 1 1",
        "incrbyfloat 1 1",
        "del 1 2",
        "unlink 1",
        "exists 1",
        "touch 1 2",
        "type 1",
        "rename 1 2",
        "renamenx 1 2",
        "copy 1 2",
        "expire 1 1",
        "pexpire 1 1",
        "expireat 1 1",
        "pexpireat 1 1",
        "ttl 1",
        "pttl 1",
        "expiretime 1",
        "pexpiretime 1",
        "persist 1",
        "watch 1",
    ];
    let service = service();
    let mut ours = Client::new(&service);
    ours.line(USER);
    let mut lines = Vec::new();
    for command in commands {
        for first in ["r", "w", "a", "x"] {
            for second in ["r", "w", "a", "x"] {
                let place = |word| match word {
                    "1" if !command.contains("incr") && !command.contains("decr") => first,
                    "2" => second,
                    word => word,
                };
                let mut words = command.split(' ');
                let name = words.next().unwrap_or_default();
                let key = words.next().map(|_| first).unwrap_or_default();
                let rest: Vec<_> = words.map(place).collect();
                lines.push(format!("ACL DRYRUN k {name} {key} {}", rest.join(" ")));
            }
        }
    }
    let mut all = vec![USER];
    all.extend(lines.iter().map(String::as_str));
    let theirs = redis.send(&all);
    for (line, theirs) in lines.iter().zip(&theirs[1..]) {
        assert_eq!(normal(ours.line(line)), normal(theirs.clone()), "{line}");
    }
}

#[test]
fn classes_are_those_of_redis() {
    let Some(redis) = Redis::start() else { return };
    let service = service();
    let mut ours = Client::new(&service);
    let names = |value: Value| match value {
        Value::Array(names) => names,
        other => panic!("no list: {other:?}"),
    };
    let theirs_of = |class: &str| names(redis.send(&[&format!("ACL CAT {class}")]).remove(0));
    let text = |value: &Value| match value {
        Value::Bulk(name) => String::from_utf8_lossy(name).into_owned(),
        other => panic!("no name: {other:?}"),
    };
    let classes: Vec<String> = names(redis.send(&["ACL CAT"]).remove(0)).iter().map(text).collect();
    let ours_of = |ours: &mut Client, class: &str| {
        names(ours.line(&format!("ACL CAT {class}"))).iter().map(text).collect::<Vec<_>>()
    };
    let known = |fast: Vec<String>, slow: Vec<String>| [fast, slow].concat();
    let all_theirs = known(
        theirs_of("fast").iter().map(text).collect(),
        theirs_of("slow").iter().map(text).collect(),
    );
    let (fast, slow) = (ours_of(&mut ours, "fast"), ours_of(&mut ours, "slow"));
    let all_ours = known(fast, slow);
    let mut wrong = Vec::new();
    for class in classes {
        let mine = ours_of(&mut ours, &class);
        let theirs: Vec<String> = theirs_of(&class).iter().map(text).collect();
        for name in all_ours.iter().filter(|name| all_theirs.contains(name)) {
            if mine.contains(name) != theirs.contains(name) {
                wrong.push(format!("{name} in @{class}: {}", theirs.contains(name)));
            }
        }
    }
    assert!(wrong.is_empty(), "by redis-server: {wrong:#?}");
}
