//! Files that fail, and what a server does with them: every command has its reply, and what was
//! refused once is made good.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sapwood::{Db, HashTableOptions};
use sapwood_server::clock::Clock;
use sapwood_server::service::Options;
use sapwood_server::session::Next;
use sapwood_server::store::keyspace::{Change, Keys, Keyspace};
use sapwood_server::{Service, Session};
use tempfile::TempDir;

use crate::client::{Client, START, Value, ok, request};

/// A service over a directory, whose clock is set by hand.
fn open(folder: &TempDir) -> Arc<Service> {
    let clock = Clock::Manual(AtomicU64::new(START));
    let options = Options { clock, threads: 2, ..Options::default() };
    let db = Db::open(folder.path()).expect("a directory");
    Arc::new(Service::new(db, options).expect("its tables open"))
}

fn table(folder: &TempDir, name: &str) -> PathBuf {
    folder.path().join("tables").join(name)
}

/// The file that makes a folder a table can be neither read nor given the name of one that is dropped: folders are
/// in the place of both.
struct Obstacle {
    file: PathBuf,
    kept: PathBuf,
    dropped: PathBuf,
}

impl Obstacle {
    fn new(table: &Path) -> Obstacle {
        let [file, kept, dropped] =
            ["options", "kept", "options.dropped"].map(|name| table.join(name));
        fs::rename(&file, &kept).expect("the table is there");
        for folder in [&file, &dropped] {
            fs::create_dir_all(folder.join("full")).expect("a folder");
        }
        Obstacle { file, kept, dropped }
    }

    fn remove(self) {
        for folder in [&self.file, &self.dropped] {
            fs::remove_dir_all(folder).expect("the folder");
        }
        fs::rename(self.kept, self.file).expect("the file");
    }
}

fn is_error(value: &Value) -> bool {
    matches!(value, Value::Error(text) if text.starts_with("ERR "))
}

#[test]
fn a_database_in_a_directory_is_flushed() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = open(&folder);
    let mut client = Client::new(&service);
    for flush in ["flushdb", "flushall"] {
        client.call(&[b"set", b"long", &vec![b'x'; 1 << 20]]);
        client.line("set a 1 px 10");
        assert_eq!(client.line("save"), ok());
        assert_eq!(client.line(flush), ok());
        assert_eq!(client.line("dbsize"), Value::Integer(0));
        assert_eq!(client.line("mget a long"), Value::Array(vec![Value::Null; 2]));
        assert_eq!(client.line("set b 1"), ok());
        assert_eq!(client.line("keys *"), Value::Array(vec!["b".into()]));
    }
    client.line("save");
    drop((client, service));
    let service = open(&folder);
    assert_eq!(Client::new(&service).line("keys *"), Value::Array(vec!["b".into()]));
}

#[test]
fn a_database_is_flushed_while_a_job_reads_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = open(&folder);
    let mut client = Client::new(&service);
    client.line("mset a 1 b 2");
    let (mut reader, mut out) = (Session::new(Arc::clone(&service)), Vec::new());
    let (_, Next::Job(job)) = reader.run(b"KEYS *\r\n", &mut out) else { panic!("a job") };
    assert_eq!(client.line("flushall"), ok());
    assert_eq!(client.line("get a"), Value::Null);
    client.line("set c 1");
    job.run(&mut out);
    assert_eq!(client.line("keys *"), Value::Array(vec!["c".into()]));
    assert_eq!(client.line("flushall"), ok());
    assert_eq!(client.line("dbsize"), Value::Integer(0));
}

#[test]
fn a_flush_that_fails_is_made_good() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = open(&folder);
    let mut client = Client::new(&service);
    client.line("mset a 1 b 2");
    assert_eq!(client.line("save"), ok());
    client.line("select 1");
    client.line("set c 3");
    let obstacle = Obstacle::new(&table(&folder, "redis.0"));
    let mut other = Client::new(&service);
    assert!(is_error(&other.line("flushall")), "redis.0 cannot be removed");
    assert_eq!(client.line("get c"), Value::Null, "the other database is empty all the same");
    assert!(is_error(&client.line("select 0")));
    client = other;
    // Each has its reply, in order, neighbours that would be a batch among them.
    let lines: [&[&[u8]]; 6] = [
        &[b"get", b"a"],
        &[b"get", b"b"],
        &[b"ping"],
        &[b"set", b"a", b"2"],
        &[b"set", b"b", b"2"],
        &[b"mget", b"a", b"b"],
    ];
    let replies = client.send(&lines.map(request).concat());
    assert_eq!(replies.len(), lines.len(), "{replies:?}");
    assert_eq!(replies[2], Value::Simple("PONG".to_owned()));
    for at in [0, 1, 3, 4, 5] {
        assert!(is_error(&replies[at]), "{replies:?}");
    }
    obstacle.remove();
    assert_eq!(client.line("mget a b"), Value::Array(vec![Value::Null; 2]), "they were flushed");
    assert_eq!(client.line("set a 3 px 1000"), ok());
    assert_eq!(client.line("save"), ok());
    drop((client, service));
    let service = open(&folder);
    let mut client = Client::new(&service);
    assert_eq!(client.line("keys *"), Value::Array(vec!["a".into()]));
    assert_eq!(client.line("pttl a"), Value::Integer(1000));
}

/// Keys of a keyspace at a moment, for one caller.
fn keys(space: &Keyspace, now: u64) -> Keys<'_> {
    Keys { space, now, is_exclusive: true }
}

fn put<'v>(value: &'v [u8], end: Option<u64>) -> Change<'v> {
    Change::Put(value.into(), end)
}

#[test]
fn a_hashed_key_that_is_overwritten_during_a_walk_is_found() {
    let space = Keyspace::open(&Db::in_memory(), "k", HashTableOptions::default());
    let space = space.expect("memory");
    for key in [&vec![b'x'; 10_000][..], b"", b"\0sw:key\0 mine"] {
        let keys = keys(&space, START);
        keys.modify(key, |_| put(b"1", None)).expect("memory");
        // What a walk has seen.
        let mut seen = Vec::new();
        let walk = |key: &[u8], stored: &[u8]| {
            seen.push((key.to_vec(), stored.to_vec()));
            std::ops::ControlFlow::<()>::Continue(())
        };
        let _all = space.table().for_each(walk).expect("memory");
        let (stored_key, stored) = seen.pop().expect("the key");
        keys.modify(key, |_| put(b"2", None)).expect("memory");
        let found = keys.key_of(stored_key.clone(), &stored).expect("memory");
        assert!(found.as_deref() == Some(key), "a key of {} bytes is found", key.len());
        keys.remove(key).expect("memory");
        // Of an empty key nothing lies in parts that could be missed.
        let gone = keys.key_of(stored_key, &stored).expect("memory");
        assert!(gone.is_none_or(|key| key.is_empty()), "it is gone");
    }
}

/// Files of a table whose bytes cannot be read as they were until they are put back.
struct Damage(Vec<(PathBuf, Vec<u8>)>);

impl Damage {
    fn new(table: &Path) -> Damage {
        let mut files = Vec::new();
        for file in fs::read_dir(table).expect("the table is there") {
            let path = file.expect("a file").path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().contains("log")) {
                files.push((path.clone(), fs::read(&path).expect("a file")));
                fs::write(&path, []).expect("a file");
            }
        }
        assert!(!files.is_empty(), "a table has a log");
        Damage(files)
    }

    fn mend(self) {
        self.0.into_iter().for_each(|(path, bytes)| fs::write(path, bytes).expect("a file"));
    }
}

/// The time of each key ends though its value, or its name, could not be read when it was due.
#[test]
fn a_key_whose_value_cannot_be_read_ends_later() {
    let long = vec![b'x'; 10_000];
    for (damaged, key) in [("redis.0", &b"short"[..]), ("redis.0.parts", &long)] {
        let folder = tempfile::tempdir().expect("a folder");
        let service = open(&folder);
        let mut client = Client::new(&service);
        assert_eq!(client.call(&[b"set", key, b"value", b"px", b"10"]), ok());
        assert_eq!(client.line("save"), ok());
        drop((client, service));
        let service = open(&folder);
        let mut client = Client::new(&service);
        service.set_clock(START + 10);
        let damage = Damage::new(&table(&folder, damaged));
        assert!(service.expire().is_err(), "{damaged} cannot be read");
        damage.mend();
        service.sweep().expect("memory");
        assert!(!service.expire().expect("it can be read"), "there are no more");
        assert_eq!(client.line("dbsize"), Value::Integer(0), "{damaged}");
        let Value::Bulk(stats) = client.line("info stats") else { panic!("a text") };
        let stats = String::from_utf8(stats).expect("text");
        assert!(stats.contains("expired_keys:1\r\n"), "{damaged}: {stats}");
    }
}

/// A row of the roll-up `edits`.
const ROW: &[u8] = br#"{"time": "2013-01-01", "page": "Oak", "size": 1, "added": 3}"#;

/// The log has no room for another part: a folder is in its place.
struct FullLog(PathBuf);

impl FullLog {
    /// Leaves the log no room at all, by values of `filler`.
    fn new(folder: &TempDir, client: &mut Client) -> FullLog {
        let log = folder.path().join("log");
        let number = |name: &str| {
            u64::from_str_radix(name.strip_prefix("wal-")?.strip_suffix(".log")?, 16).ok()
        };
        let names = fs::read_dir(&log).expect("a folder").map(|file| file.expect("a file"));
        let last = names.filter_map(|file| number(file.file_name().to_str()?)).max();
        let next = log.join(format!("wal-{:016x}.log", last.expect("a part") + 1));
        fs::create_dir(&next).expect("a folder");
        for len in [100_000, 10_000, 1_000, 100, 0] {
            while client.call(&[b"set", b"filler", &vec![b'x'; len]]) == ok() {}
        }
        FullLog(next)
    }

    fn make_room(self) {
        fs::remove_dir(self.0).expect("the folder");
    }
}

fn persistence(client: &mut Client, name: &str) -> String {
    let Value::Bulk(text) = client.line("info persistence") else { panic!("a text") };
    let text = String::from_utf8(text).expect("text");
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.unwrap_or_else(|| panic!("{name}: {text}")).to_owned()
}

fn is_full(value: &Value) -> bool {
    matches!(value, Value::Error(text) if text.starts_with("MISCONF ") && text.contains("make room"))
}

#[test]
fn a_change_that_the_log_has_no_room_for_is_not_there_and_the_server_goes_on_once_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = open(&folder);
    let mut client = Client::new(&service);
    let long = vec![b'l'; 700_000];
    client.call(&[b"set", b"long", &long]);
    client.call(&[b"set", b"grown", &vec![b'g'; 6_000]]);
    client.call(&[b"append", b"grown", &vec![b'g'; 6_000]]);
    client.line("mset a 1 b 2 count 7");
    client.line("set ending 1 px 1000");
    client.line("sw.create t engine ordered");
    client.line("sw.put t k v");
    crate::rollups::create(&mut client);
    let mut reader = Client::new(&service);
    let mut all = || -> Vec<Value> {
        let lines =
            ["mget a b c count ending new", "exists new", "getrange long 0 9", "strlen long"];
        let more = ["get grown", "getrange long 699990 -1", "pttl ending", "dbsize", "sw.get t k"];
        lines.iter().chain(&more).map(|line| reader.line(line)).collect()
    };
    let full = FullLog::new(&folder, &mut client);
    let before = all();
    let piece = vec![b'p'; 9_000];
    let refused: [&[&[u8]]; 24] = [
        &[b"set", b"new", b"1"],
        &[b"set", b"a", b"1", b"px", b"50"],
        &[b"set", b"new", &long],
        &[b"setnx", b"new", b"1"],
        &[b"getset", b"a", b"5"],
        &[b"getdel", b"a"],
        &[b"mset", b"a", b"3", b"b", b"4", b"new", b"5"],
        &[b"msetnx", b"new", b"3", b"newer", b"4"],
        &[b"incr", b"count"],
        &[b"incrbyfloat", b"count", b"1.5"],
        &[b"append", b"a", b"more"],
        &[b"append", b"grown", &piece],
        &[b"setrange", b"long", b"5", b"xyz"],
        &[b"setrange", b"grown", b"4000", &piece],
        &[b"del", b"a", b"b"],
        &[b"unlink", b"long"],
        &[b"rename", b"long", b"new"],
        &[b"copy", b"a", b"new"],
        &[b"expire", b"a", b"100"],
        &[b"persist", b"ending"],
        &[b"sw.put", b"t", b"k", b"w"],
        &[b"sw.ingest", b"edits", b"format", b"json", ROW],
        &[b"sw.mput", b"t", b"k", b"w", b"l", b"w"],
        &[b"flushall"],
    ];
    assert_eq!(persistence(&mut client, "aof_last_write_status"), "err");
    for request in refused {
        let reply = client.call(request);
        let what = request[0].escape_ascii();
        assert!(is_full(&reply), "{what}: {reply:?}");
        assert_eq!(all(), before, "{what}");
    }
    // Each of a transaction, and of a batch, by itself.
    for line in ["multi", "set a 3", "get a", "set new 4", "del a b"] {
        client.line(line);
    }
    let Value::Array(replies) = client.line("exec") else { panic!("an array") };
    assert!([0, 2, 3].iter().all(|at| is_full(&replies[*at])), "{replies:?}");
    assert_eq!(replies[1], "1".into());
    let batch = [request(&[b"set", b"a", b"3"]), request(&[b"set", b"new", b"4"])].concat();
    assert!(client.send(&batch).iter().all(is_full));
    assert_eq!(all(), before);
    full.make_room();
    assert_eq!(client.line("set new 1"), ok());
    assert_eq!(persistence(&mut client, "aof_last_write_status"), "ok");
    assert_eq!(client.line("mset a 3 b 4"), ok());
    assert_eq!(client.line("incr count"), Value::Integer(8));
    assert_eq!(client.line("unlink long"), Value::Integer(1));
    let made = reader.line("mget a b count new long grown");
    drop((client, reader, service));
    let service = open(&folder);
    assert_eq!(Client::new(&service).line("mget a b count new long grown"), made);
}
