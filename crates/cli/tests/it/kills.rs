//! `sapwood serve --dir`, ended in every way while clients write, and started again.
//!
//! Each writer has keys of its own in two databases and a table of hashes, and does its operations
//! one after the other: what a start finds of a table is the state behind some number of them. That
//! number is no less than the number that was done when the last save began that is complete, and
//! the same for all tables where no save was cut off.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};

use assert_cmd::cargo::CommandCargoExt;
use sapwood::{Backups, Db};
use sapwood_testkit::case;
use tempfile::TempDir;

/// A server over a directory.
struct Server {
    process: Child,
    address: String,
    said: Receiver<String>,
}

impl Server {
    fn start(directory: &Path, options: &[&str]) -> Server {
        let mut process = Command::cargo_bin("sapwood")
            .expect("the binary of this package")
            .args(["serve", "--port", "0", "--threads", "2", "--dir"])
            .arg(directory)
            .args(options)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let lines = BufReader::new(process.stderr.take().expect("piped")).lines();
        let (tell, said) = mpsc::channel();
        std::thread::spawn(move || {
            // A test that has heard enough hears no more.
            lines.map_while(Result::ok).for_each(|line| drop(tell.send(line)));
        });
        let mut server = Server { process, address: String::new(), said };
        let line = server.hear("ready to accept connections");
        let address = line.split_whitespace().find_map(|word| word.strip_prefix("address="));
        server.address = address.expect("an address").to_owned();
        server
    }

    /// Waits for a line of its log.
    fn hear(&self, what: &str) -> String {
        let mut heard = String::new();
        for line in &self.said {
            if line.contains(what) {
                return line;
            }
            heard += &line;
            heard.push('\n');
        }
        panic!("no {what:?} in: {heard}");
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(name).arg(self.process.id().to_string()).status();
        assert!(sent.expect("kill is there").success());
    }

    fn end(&mut self) -> ExitStatus {
        self.process.wait().expect("it ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A process that has ended needs no end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A reply of version 2, of those that are asked for here.
#[derive(Debug, PartialEq)]
enum Reply {
    Line(String),
    Number(i64),
    Bytes(Option<Vec<u8>>),
}

fn request(args: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn new(server: &str) -> io::Result<Client> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        Ok(Client(BufReader::new(stream)))
    }

    fn send(&mut self, args: &[&[u8]]) -> io::Result<()> {
        self.0.get_mut().write_all(&request(args))
    }

    fn call(&mut self, args: &[&[u8]]) -> io::Result<Reply> {
        self.send(args)?;
        self.reply()
    }

    /// The next reply; of an array its length, and its values come as the next ones.
    fn reply(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 || !line.ends_with("\r\n") {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = line[1..].trim_end().to_owned();
        let number = || text.parse::<i64>().expect("a number");
        match line.as_bytes()[0] {
            b':' => Ok(Reply::Number(number())),
            b'$' if number() < 0 => Ok(Reply::Bytes(None)),
            b'$' => {
                let mut bytes = vec![0; number() as usize + 2];
                self.0.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Ok(Reply::Bytes(Some(bytes)))
            }
            _ => Ok(Reply::Line(text)),
        }
    }

    fn line(&mut self, line: &str) -> io::Result<Reply> {
        let args: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        self.call(&args)
    }

    fn expect_ok(&mut self, line: &str) {
        let reply = self.line(line).expect("the server answers");
        assert_eq!(reply, Reply::Line("OK".to_owned()), "{line}");
    }

    /// A number of `INFO persistence`.
    fn info(&mut self, name: &str) -> io::Result<u64> {
        let Reply::Bytes(Some(text)) = self.line("INFO persistence")? else { panic!("no text") };
        let text = String::from_utf8(text).expect("text");
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok(value.expect("a field").parse().expect("a number"))
    }
}

/// Where a key lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Home {
    First,
    Second,
    Table,
}

const HOMES: [Home; 3] = [Home::First, Home::Second, Home::Table];
const KEYS: u8 = 3;
type Place = (Home, u8);

/// The last write of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Written {
    number: u64,
    len: usize,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Never,
    /// Hours away.
    Later,
}

/// The keys of a writer.
type State = BTreeMap<Place, Written>;

/// The operation of a writer that has a number.
#[derive(Debug, Clone, Copy)]
enum Op {
    Put(Place, usize, End),
    /// Both in one step.
    PutTwo(Home, u8, u8),
    /// It has ended before a server can start again.
    PutBriefly(Place),
    Remove(Place),
}

impl Op {
    fn of(writer: usize, number: u64) -> Op {
        let mut rng = fastrand::Rng::with_seed(number << 8 | writer as u64);
        let place = (HOMES[rng.usize(..3)], rng.u8(..KEYS));
        let later = if rng.bool() { End::Later } else { End::Never };
        match (rng.u8(..16), place) {
            (0..2, (Home::First | Home::Second, _)) => Op::Put(place, 600_000, later),
            (2, (home @ (Home::First | Home::Second), key)) => {
                Op::PutTwo(home, key, (key + 1) % KEYS)
            }
            (3, (Home::First | Home::Second, _)) => Op::PutBriefly(place),
            (4..6, _) => Op::Remove(place),
            (_, (Home::Table, _)) => Op::Put(place, rng.usize(8..100), End::Never),
            _ => Op::Put(place, rng.usize(8..100), later),
        }
    }

    fn apply(self, number: u64, state: &mut State) {
        match self {
            Op::Put(place, len, end) => {
                state.insert(place, Written { number, len, end });
            }
            Op::PutTwo(home, one, other) => {
                for key in [one, other] {
                    state.insert((home, key), Written { number, len: 20, end: End::Never });
                }
            }
            Op::PutBriefly(place) | Op::Remove(place) => drop(state.remove(&place)),
        }
    }
}

fn key(writer: usize, key: u8) -> Vec<u8> {
    format!("{writer}:{key}").into_bytes()
}

/// Bytes that tell their writer and their number wherever they are cut.
fn value(writer: usize, number: u64, len: usize) -> Vec<u8> {
    let text = format!("{writer}.{number}~");
    text.bytes().cycle().take(len.max(text.len())).collect()
}

/// The number of a value, which must be whole.
fn number_of(writer: usize, bytes: &[u8]) -> u64 {
    let head = bytes.split(|byte| *byte == b'~').next().unwrap_or_default();
    let text = std::str::from_utf8(head).expect("digits");
    let number = text.split_once('.').expect("a point").1.parse().expect("a number");
    assert!(value(writer, number, bytes.len()) == bytes, "a torn value that begins {text}");
    number
}

/// A client's connections: one for each database.
struct Connections {
    first: Client,
    second: Client,
}

impl Connections {
    fn new(server: &str) -> io::Result<Connections> {
        let (first, mut second) = (Client::new(server)?, Client::new(server)?);
        second.line("SELECT 1")?;
        Ok(Connections { first, second })
    }

    fn of(&mut self, home: Home) -> &mut Client {
        match home {
            Home::First | Home::Table => &mut self.first,
            Home::Second => &mut self.second,
        }
    }

    fn execute(&mut self, writer: usize, number: u64) -> io::Result<()> {
        let reply = match Op::of(writer, number) {
            Op::Put((Home::Table, at), len, _) => {
                let (key, value) = (key(writer, at), value(writer, number, len));
                self.first.call(&[b"SW.PUT", b"hashes", &key, &value])?
            }
            Op::Put((home, at), len, end) => {
                let (key, value) = (key(writer, at), value(writer, number, len));
                let client = self.of(home);
                match end {
                    End::Never => client.call(&[b"SET", &key, &value])?,
                    End::Later => client.call(&[b"SET", &key, &value, b"EX", b"36000"])?,
                }
            }
            Op::PutTwo(home, one, other) => {
                let (one, other) = (key(writer, one), key(writer, other));
                let value = value(writer, number, 20);
                self.of(home).call(&[b"MSET", &one, &value, &other, &value])?
            }
            Op::PutBriefly((home, at)) => {
                let (key, value) = (key(writer, at), value(writer, number, 20));
                self.of(home).call(&[b"SET", &key, &value, b"PX", b"1"])?
            }
            Op::Remove((Home::Table, at)) => {
                self.first.call(&[b"SW.REMOVE", b"hashes", &key(writer, at)])?
            }
            Op::Remove((home, at)) => self.of(home).call(&[b"DEL", &key(writer, at)])?,
        };
        let is_right = matches!(&reply, Reply::Number(0 | 1)) || reply == Reply::Line("OK".into());
        assert!(is_right, "{:?}: {reply:?}", Op::of(writer, number));
        Ok(())
    }

    /// What is there of a writer.
    fn state(&mut self, writer: usize) -> State {
        let mut state = State::new();
        for home in HOMES {
            for at in 0..KEYS {
                let key = key(writer, at);
                let reply = match home {
                    Home::Table => self.first.call(&[b"SW.GET", b"hashes", &key]),
                    _ => self.of(home).call(&[b"GET", &key]),
                };
                let Reply::Bytes(found) = reply.expect("the server answers") else {
                    panic!("no value of {home:?} {at} of {writer}");
                };
                let Some(bytes) = found else { continue };
                let end = match home {
                    Home::Table => End::Never,
                    _ => match self.of(home).call(&[b"TTL", &key]).expect("the server answers") {
                        Reply::Number(-1) => End::Never,
                        _ => End::Later,
                    },
                };
                let (number, len) = (number_of(writer, &bytes), bytes.len());
                state.insert((home, at), Written { number, len, end });
            }
        }
        state
    }
}

/// A writer, as it is known outside of the server.
#[derive(Default)]
struct Writer {
    /// What was there when it began.
    base: State,
    /// The number of its first operation.
    first: u64,
    /// Operations below were sent.
    sent: AtomicU64,
    /// Operations below were answered.
    done: AtomicU64,
    /// Operations below were answered when the last save began that is complete.
    saved: AtomicU64,
}

/// What a start must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Each table as of a moment behind the save.
    OfEachTable,
    /// All tables as of one moment behind the save.
    OfAll,
}

impl Writer {
    fn begin(base: State, first: u64) -> Writer {
        let number = || AtomicU64::new(first);
        Writer { base, first, sent: number(), done: number(), saved: number() }
    }

    /// Writes until the server is gone.
    fn run(&self, writer: usize, server: &str) {
        let Ok(mut connections) = Connections::new(server) else { return };
        loop {
            let number = self.sent.fetch_add(1, Ordering::SeqCst);
            if connections.execute(writer, number).is_err() {
                return;
            }
            self.done.store(number + 1, Ordering::SeqCst);
        }
    }

    /// Numbers of operations behind which the tables of `homes` are as they were found.
    fn moments(&self, writer: usize, found: &State, homes: &[Home]) -> Vec<u64> {
        let of_homes = |state: &State| -> State {
            let of = state.iter().filter(|((home, _), _)| homes.contains(home));
            of.map(|(place, written)| (*place, *written)).collect()
        };
        let found = of_homes(found);
        let mut state = self.base.clone();
        let mut moments = Vec::new();
        for number in self.first..=self.sent.load(Ordering::SeqCst) {
            if number >= self.saved.load(Ordering::SeqCst) && of_homes(&state) == found {
                moments.push(number);
            }
            Op::of(writer, number).apply(number, &mut state);
        }
        moments
    }

    fn check(&self, writer: usize, found: &State, cut: Cut) {
        let groups: &[&[Home]] = match cut {
            Cut::OfEachTable => &[&[Home::First], &[Home::Second], &[Home::Table]],
            Cut::OfAll => &[&HOMES],
        };
        for homes in groups {
            if self.moments(writer, found, homes).is_empty() {
                let each = HOMES.map(|home| (home, self.moments(writer, found, &[home])));
                let [saved, done, sent] = [&self.saved, &self.done, &self.sent]
                    .map(|number| number.load(Ordering::SeqCst));
                panic!(
                    "writer {writer}, whose operations {}..{sent} were sent, ..{done} answered, \
                     ..{saved} saved: no moment of {homes:?} had {found:?}; of each table: {each:?}",
                    self.first
                );
            }
        }
    }
}

const WRITERS: usize = 3;

/// Saves again and again; between two of them it is as `is_over` says.
fn save(server: &str, writers: &[Writer], complete: &AtomicU64, is_over: &AtomicBool) {
    let Ok(mut client) = Client::new(server) else { return };
    let mut save = |number: u64| -> io::Result<()> {
        let begun: Vec<u64> =
            writers.iter().map(|writer| writer.done.load(Ordering::SeqCst)).collect();
        if number.is_multiple_of(2) {
            let reply = client.line("SAVE")?;
            assert_eq!(reply, Reply::Line("OK".to_owned()));
        } else {
            let before = client.info("rdb_saves")?;
            client.line("BGSAVE")?;
            while client.info("rdb_saves")? == before {}
        }
        for (writer, done) in writers.iter().zip(begun) {
            writer.saved.store(done, Ordering::SeqCst);
        }
        Ok(())
    };
    while !is_over.load(Ordering::SeqCst) {
        if save(complete.load(Ordering::SeqCst)).is_err() {
            return;
        }
        complete.fetch_add(1, Ordering::SeqCst);
    }
}

/// Starts a server and writes until it has ended, as `end` sees to. `end` gets the means to tell
/// how many saves are complete and to end saving, and answers which cut a start must find.
fn load(
    directory: &Path,
    options: &[&str],
    bases: Vec<(State, u64)>,
    end: impl FnOnce(&mut Server, &dyn Fn(u64), &dyn Fn(), &[Writer]) -> Cut,
) -> (Vec<Writer>, Cut) {
    let mut server = Server::start(directory, options);
    let mut client = Client::new(&server.address).expect("a connection");
    // It is there behind the first save.
    client.line("SW.CREATE hashes ENGINE HASH").expect("the server answers");
    let writers: Vec<Writer> =
        bases.into_iter().map(|(base, first)| Writer::begin(base, first)).collect();
    let complete = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    let address = server.address.clone();
    let cut = std::thread::scope(|scope| {
        for (writer, known) in writers.iter().enumerate() {
            let address = &address;
            scope.spawn(move || known.run(writer, address));
        }
        let saver = scope.spawn(|| save(&address, &writers, &complete, &is_over));
        let saver = Mutex::new(Some(saver));
        let saved = |count: u64| {
            while complete.load(Ordering::SeqCst) < count {
                std::thread::yield_now();
            }
        };
        let end_saves = || {
            is_over.store(true, Ordering::SeqCst);
            if let Some(saver) = saver.lock().expect("no panic").take() {
                saver.join().expect("the saver ends");
            }
        };
        let cut = end(&mut server, &saved, &end_saves, &writers);
        is_over.store(true, Ordering::SeqCst);
        cut
    });
    (writers, cut)
}

/// Waits until the writers have done so many more operations.
fn wait_for_writers(writers: &[Writer], more: u64) {
    let done = || writers.iter().map(|it| it.done.load(Ordering::SeqCst)).sum::<u64>();
    let before = done();
    while done() < before + more {
        std::thread::yield_now();
    }
}

/// Starts a server on what is there, and compares it; answers where the writers go on.
fn check(directory: &Path, writers: &[Writer], cut: Cut) -> Vec<(State, u64)> {
    let server = Server::start(directory, &["--save", ""]);
    let mut connections = Connections::new(&server.address).expect("a connection");
    let states = writers.iter().enumerate().map(|(number, writer)| {
        let found = connections.state(number);
        writer.check(number, &found, cut);
        // Nothing of an operation is there that was never sent.
        (found, writer.sent.load(Ordering::SeqCst) + 1)
    });
    states.collect()
}

fn at_first() -> Vec<(State, u64)> {
    (0..WRITERS).map(|_| (State::new(), 1)).collect()
}

/// Ends a server by `SIGKILL`, in the middle of saves and between them, again and again.
#[test]
fn kills_leave_what_the_last_save_has() {
    case!().seeds(3, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let folder = TempDir::new().expect("a directory for the test");
        let directory = folder.path().join("data");
        let mut bases = at_first();
        for _ in 0..3 {
            let (saves, more) = (rng.u64(1..5), rng.u64(1..200));
            let between = rng.bool();
            let (writers, cut) =
                load(&directory, &["--save", ""], bases, |server, saved, end_saves, writers| {
                    saved(saves);
                    if between {
                        end_saves();
                    }
                    wait_for_writers(writers, more);
                    server.process.kill().expect("it is killed");
                    server.end();
                    if between { Cut::OfAll } else { Cut::OfEachTable }
                });
            bases = check(&directory, &writers, cut);
        }
    });
}

/// A signal to a server with rules for saves.
#[cfg(unix)]
#[test]
fn a_signal_under_load_loses_nothing_that_was_answered() {
    let folder = TempDir::new().expect("a directory for the test");
    let directory = folder.path().join("data");
    let mut bases = at_first();
    for signal in ["-TERM", "-INT"] {
        let options = ["--save", "3600 1000000"];
        let (writers, cut) = load(&directory, &options, bases, |server, saved, _, writers| {
            saved(1);
            wait_for_writers(writers, 50);
            server.signal(signal);
            assert_eq!(server.end().code(), Some(0), "{signal}");
            Cut::OfAll
        });
        for writer in &writers {
            writer.saved.store(writer.done.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        bases = check(&directory, &writers, cut);
    }
}

/// `SHUTDOWN` under load, with a last save and without.
#[test]
fn a_client_says_whether_a_last_save_is_taken() {
    let folder = TempDir::new().expect("a directory for the test");
    let directory = folder.path().join("data");
    let mut bases = at_first();
    for (shutdown, rules) in [
        ("SHUTDOWN SAVE", ""),
        ("SHUTDOWN", "3600 1000000"),
        ("SHUTDOWN NOSAVE", "3600 1000000"),
        ("SHUTDOWN", ""),
    ] {
        let options = ["--save", rules];
        let is_saved = shutdown == "SHUTDOWN SAVE" || (shutdown == "SHUTDOWN" && !rules.is_empty());
        let (writers, cut) = load(&directory, &options, bases, |server, saved, end, writers| {
            saved(2);
            end();
            wait_for_writers(writers, 50);
            let mut client = Client::new(&server.address).expect("a connection");
            client.line(shutdown).expect_err("the end is the reply");
            assert_eq!(server.end().code(), Some(0), "{shutdown}");
            Cut::OfAll
        });
        for writer in writers.iter().filter(|_| is_saved) {
            writer.saved.store(writer.done.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        bases = check(&directory, &writers, cut);
    }
    // Without a last save nothing is lost either: the log has it.
    let mut server = Server::start(&directory, &["--save", "3600 1"]);
    let mut client = Client::new(&server.address).expect("a connection");
    client.expect_ok("SET key saved");
    client.expect_ok("SAVE");
    client.expect_ok("SET key logged");
    client.line("SHUTDOWN NOSAVE").expect_err("the end is the reply");
    assert_eq!(server.end().code(), Some(0));
    let server = Server::start(&directory, &["--save", ""]);
    let mut client = Client::new(&server.address).expect("a connection");
    let found = client.line("GET key").expect("the server answers");
    assert_eq!(found, Reply::Bytes(Some(b"logged".to_vec())));
}

/// The first signal waits for a client's job, the second does not.
#[cfg(unix)]
#[test]
fn a_second_signal_ends_at_once() {
    for (first, second, code) in
        [("-TERM", "-TERM", 143), ("-INT", "-INT", 130), ("-TERM", "-INT", 130)]
    {
        let folder = TempDir::new().expect("a directory for the test");
        let options = ["--save", "", "--enable-debug-command", "yes"];
        let mut server = Server::start(&folder.path().join("data"), &options);
        let mut sleeper = Client::new(&server.address).expect("a connection");
        let mut other = Client::new(&server.address).expect("a connection");
        sleeper.send(&[b"DEBUG", b"SLEEP", b"3600"]).expect("the server reads");
        // Its job has begun when others see its command.
        let is_asleep = |other: &mut Client| {
            let list = other.line("CLIENT LIST").expect("the server answers");
            let Reply::Bytes(Some(list)) = list else { panic!("no list: {list:?}") };
            String::from_utf8_lossy(&list).contains("cmd=debug")
        };
        while !is_asleep(&mut other) {}
        server.signal(first);
        server.hear("ending, as");
        server.signal(second);
        server.hear("ended at once");
        assert_eq!(server.end().code(), Some(code), "{first}, then {second}");
    }
}

/// Keys that a writer has in each table: so many that a transaction takes most of the time.
const PAIRS: u64 = 100;
/// Tables of several kinds.
const TABLES: [(&str, &str); 3] = [
    ("left", "SW.CREATE left ENGINE tree KIND btree"),
    ("middle", "SW.CREATE middle ENGINE hash"),
    ("right", "SW.CREATE right ENGINE tree KIND red-black"),
];
const CHANGES: u64 = PAIRS * TABLES.len() as u64;

fn key_of(writer: u64, pair: u64) -> String {
    format!("{writer}:{pair}")
}

/// Adds one to each of a writer's keys in each table, in one transaction, again and again; how often that was
/// answered.
fn add_to_all(server: &str, writer: u64, done: &AtomicU64) -> io::Result<()> {
    let mut client = Client::new(server)?;
    let mut transaction = request(&[b"MULTI"]);
    for pair in 0..PAIRS {
        for (table, _) in TABLES {
            let key = key_of(writer, pair);
            transaction.extend(request(&[b"SW.ADD", table.as_bytes(), key.as_bytes(), b"1"]));
        }
    }
    transaction.extend(request(&[b"EXEC"]));
    loop {
        client.0.get_mut().write_all(&transaction)?;
        let ok = Reply::Line("OK".to_owned());
        assert_eq!(client.reply()?, ok);
        for _ in 0..CHANGES {
            assert_eq!(client.reply()?, Reply::Line("QUEUED".to_owned()));
        }
        assert_eq!(client.reply()?, Reply::Line(CHANGES.to_string()));
        for _ in 0..CHANGES {
            assert!(matches!(client.reply()?, Reply::Number(_)));
        }
        done.fetch_add(1, Ordering::SeqCst);
    }
}

/// What the writers' keys have in a database, of each writer one number, since no transaction is there by half.
fn totals(directory: &Path) -> [u64; 2] {
    let db = Db::open_read_only(directory).expect("it opens");
    let of = |writer: u64| {
        let mut counters = Vec::new();
        for (table, _) in TABLES {
            let table = db.table(table).expect("it is there");
            let keys = (0..PAIRS).map(|pair| key_of(writer, pair));
            let got = keys.map(|key| table.get_counter(key.as_bytes()).expect("a counter"));
            counters.extend(got.map(|counter| counter.unwrap_or(0) as u64));
        }
        let is_whole = counters.iter().all(|counter| *counter == counters[0]);
        assert!(is_whole, "writer {writer}: a part of a transaction: {counters:?}");
        counters[0]
    };
    [of(0), of(1)]
}

/// Takes backups until the server is gone, and counts them; what was done before the last of them began.
fn take_backups(server: &str, done: &[AtomicU64; 2], taken: &AtomicU64) -> [u64; 2] {
    let mut least = [0; 2];
    let Ok(mut client) = Client::new(server) else { return least };
    loop {
        let before = [0, 1].map(|writer| done[writer].load(Ordering::SeqCst));
        match client.line("SW.BACKUP KEEP 3") {
            // Ten values, of five names.
            Ok(Reply::Line(len)) if len == "10" => {}
            Ok(other) => panic!("{other:?}"),
            Err(_) => return least,
        }
        for _ in 0..10 {
            if client.reply().is_err() {
                return least;
            }
        }
        least = before;
        taken.fetch_add(1, Ordering::SeqCst);
    }
}

/// What was answered is there, and of no transaction over tables of several kinds a half: in the directory of a
/// server that was killed, and in the backups that it took meanwhile.
#[test]
fn kills_lose_no_change_and_halve_no_transaction() {
    case!().seeds(3, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let folder = TempDir::new().expect("a directory for the test");
        let (directory, backups) = (folder.path().join("data"), folder.path().join("backups"));
        let options = ["--save", "", "--backups", backups.to_str().expect("text")];
        let mut base = [0; 2];
        for round in 0..3 {
            let mut server = Server::start(&directory, &options);
            let mut client = Client::new(&server.address).expect("it listens");
            for (_, create) in TABLES {
                let made = client.line(create).expect("it answers");
                assert_eq!(made == Reply::Line("OK".to_owned()), round == 0, "{made:?}");
            }
            let done = [AtomicU64::new(0), AtomicU64::new(0)];
            let wanted = rng.u64(1..40);
            let (taken, wanted_backups) = (AtomicU64::new(0), rng.u64(0..3));
            let in_backup = std::thread::scope(|scope| {
                for (writer, done) in done.iter().enumerate() {
                    let address = &server.address;
                    // It ends with the server.
                    scope.spawn(move || add_to_all(address, writer as u64, done).err());
                }
                let address = server.address.clone();
                let taking = scope.spawn(|| take_backups(&{ address }, &done, &taken));
                while done.iter().any(|done| done.load(Ordering::SeqCst) < wanted)
                    || taken.load(Ordering::SeqCst) < wanted_backups
                {
                    std::thread::yield_now();
                }
                // Somewhere in a transaction, and in a backup; anywhere will do.
                std::thread::sleep(std::time::Duration::from_micros(rng.u64(0..2_000)));
                server.process.kill().expect("it is killed");
                server.process.wait().expect("it ends");
                taking.join().expect("no panic")
            });
            if taken.into_inner() > 0 {
                let restored = folder.path().join(format!("restored-{round}"));
                let backups = Backups::open(&backups).expect("it is there");
                backups.verify(None, |_progress| true).expect("all are whole");
                backups.restore(None, &restored, |_progress| true).expect("restored");
                let there = totals(&restored);
                for writer in 0..2 {
                    let least = base[writer] + in_backup[writer];
                    assert!(least <= there[writer], "writer {writer}: {there:?}, not {least}");
                }
            }
            // Opened to be read, and by a server.
            let there = totals(&directory);
            let server = Server::start(&directory, &options);
            drop(server);
            assert_eq!(totals(&directory), there);
            for (writer, done) in done.iter().enumerate() {
                let least = base[writer] + done.load(Ordering::SeqCst);
                let there = there[writer];
                assert!((least..=least + 1).contains(&there), "{least}, and {there} are there");
                base[writer] = there;
            }
        }
    });
}
