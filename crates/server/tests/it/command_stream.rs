//! Streams of commands made of any bytes, sent by two clients, and answered by a map beside them.
//!
//! The fuzz target `commands` takes its check from here.

use std::collections::BTreeSet;
use std::sync::Arc;

use sapwood_server::Service;

use crate::client::{Client, Value, request, service};
use crate::command_map::{Expected, Map};

/// The clients of a stream.
const CLIENTS: usize = 2;
/// Values of half a MiB and more that a stream makes.
const LONG_MAX: usize = 6;
/// Requests that go out at once, at most.
const PIPELINE_MAX: usize = 12;
/// Commands that are shown when a reply is wrong.
const SHOWN: usize = 60;

/// Lengths around those at which the stored form changes; the last ones lie in parts.
const LENGTHS: [usize; 16] =
    [0, 1, 6, 7, 8, 9, 15, 16, 40, 44, 45, 100, 20_000, 524_032, 524_033, 600_000];
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "-1",
    "9",
    "10",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "3.0",
    "2.25",
    "-0.25",
    "1e2",
    "007",
    " 1",
    "+1",
    "one",
];
const DELTAS: [&str; 8] =
    ["1", "-1", "7", "0", "9223372036854775807", "-9223372036854775808", "1.5", "many"];
const FLOATS: [&str; 8] = ["0.25", "-0.25", "1", "-3.5", "1e3", "1e400", "nan", "much"];
/// Times from now on, in the unit of the command.
const TIMES: [i64; 12] =
    [1, 2, 5, 10, 20, 100, 1_000, 100_000, 0, -1, i64::MAX, i64::MAX / 1000 + 1];
const OFFSETS: [i64; 8] = [0, 1, 7, 30, 100, 20_000, 524_030, -1];
const PLACES: [i64; 12] = [0, 1, 2, 7, 40, -1, -2, -7, -40, 524_040, i64::MAX, i64::MIN];

/// Bytes that choose; zeros when there are none left.
struct Choices<'b> {
    bytes: &'b [u8],
    longs_left: usize,
}

fn word(word: &str) -> Vec<u8> {
    word.as_bytes().to_vec()
}

impl Choices<'_> {
    fn byte(&mut self) -> usize {
        let Some((byte, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        usize::from(*byte)
    }

    fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.byte() % from.len()]
    }

    /// Short keys more often; those of over 8 KiB and the last are stored under a hash.
    fn key(&mut self) -> Vec<u8> {
        match self.byte() % 24 {
            0 => Vec::new(),
            1 => vec![b'k'; 16],
            2 => vec![b'k'; 8 << 10],
            3 => vec![b'k'; 9 << 10],
            4 => vec![b'k'; 100_000],
            5 => b"\0sw:key\0and so on".to_vec(),
            number @ 6..12 => format!("key{number}").into_bytes(),
            number => vec![b'a' + (number % 6) as u8],
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let (kind, byte) = (self.byte(), self.byte());
        if kind >= 128 {
            return word(NUMBERS[byte % NUMBERS.len()]);
        }
        let mut len = LENGTHS[kind % LENGTHS.len()];
        if len > 100_000 {
            match self.longs_left.checked_sub(1) {
                Some(left) => self.longs_left = left,
                None => len = 100,
            }
        }
        vec![b"0179-.ex\0\xff\r\nabcd"[byte % 16]; len]
    }

    /// A time of a command with such a name, or of such an option.
    fn time(&mut self, name: &str, now: u64) -> Vec<u8> {
        let base = match name {
            "exat" | "expireat" => now as i64 / 1000,
            "pxat" | "pexpireat" => now as i64,
            _ => 0,
        };
        let time = base.saturating_add(self.of(&TIMES));
        // Ends that are gone for long.
        word(&if self.byte() >= 250 { i64::MIN } else { time }.to_string())
    }

    /// Options when a value ends, with others: some lists contradict themselves.
    fn options(&mut self, words: &[&'static str], now: u64) -> Vec<Vec<u8>> {
        let mut options = Vec::new();
        for _ in 0..[0, 1, 1, 2, 2, 3][self.byte() % 6] {
            let name = self.of(words);
            options.push(word(name));
            if ["ex", "px", "exat", "pxat"].contains(&name) {
                options.push(self.time(name, now));
            }
        }
        options
    }

    fn conditions(&mut self) -> Vec<Vec<u8>> {
        const LISTS: [&str; 16] = [
            "", "", "", "", "nx", "nx", "xx", "XX", "gt", "GT", "lt", "Lt", "xx gt", "lt xx",
            "nx gt", "gt lt",
        ];
        match self.byte() {
            255 => vec![word("Soon")],
            byte => LISTS[byte % 16].split_whitespace().map(word).collect(),
        }
    }

    fn keys(&mut self) -> Vec<Vec<u8>> {
        (0..=self.byte() % 4).map(|_| self.key()).collect()
    }

    fn pairs(&mut self) -> Vec<Vec<u8>> {
        let mut pairs = Vec::new();
        for _ in 0..=self.byte() % 3 {
            pairs.extend([self.key(), self.value()]);
        }
        if self.byte() >= 250 {
            pairs.push(self.key());
        }
        pairs
    }

    /// The arguments of a command.
    fn command(&mut self, now: u64) -> Vec<Vec<u8>> {
        const SET: [&str; 8] = ["nx", "xx", "get", "keepttl", "ex", "px", "exat", "pxat"];
        const GETEX: [&str; 6] = ["persist", "persist", "ex", "px", "exat", "pxat"];
        let code = self.byte() % 80;
        let own = |name: &str, args: Vec<Vec<u8>>| [vec![word(name)], args].concat();
        match code {
            0..6 => vec![word("get"), self.key()],
            6..11 => vec![word("SET"), self.key(), self.value()],
            11..16 => {
                let args = vec![self.key(), self.value()];
                own("set", [args, self.options(&SET, now)].concat())
            }
            16 => vec![word("setnx"), self.key(), self.value()],
            17 => vec![word("getset"), self.key(), self.value()],
            18 => vec![word("setex"), self.key(), self.time("setex", now), self.value()],
            19 => vec![word("psetex"), self.key(), self.time("psetex", now), self.value()],
            20 => vec![word("getdel"), self.key()],
            21..24 => {
                let args = vec![self.key()];
                own("getex", [args, self.options(&GETEX, now)].concat())
            }
            24 | 25 => own("mget", self.keys()),
            26 | 27 => own("mset", self.pairs()),
            28 => own("msetnx", self.pairs()),
            29..32 => vec![word("append"), self.key(), self.value()],
            32 => vec![word("strlen"), self.key()],
            33 | 34 => {
                let name = if code == 33 { "getrange" } else { "substr" };
                let places = [self.of(&PLACES), self.of(&PLACES)].map(|at| word(&at.to_string()));
                own(name, [vec![self.key()], places.to_vec()].concat())
            }
            35 | 36 => {
                let mut value = self.value();
                value.truncate(1_000);
                let offset = self.of(&OFFSETS).to_string();
                vec![word("setrange"), self.key(), word(&offset), value]
            }
            37 => vec![word("incr"), self.key()],
            38 => vec![word("decr"), self.key()],
            39 => vec![word("incrby"), self.key(), word(self.of(&DELTAS))],
            40 => vec![word("decrby"), self.key(), word(self.of(&DELTAS))],
            41 | 42 => vec![word("incrbyfloat"), self.key(), word(self.of(&FLOATS))],
            43..49 => {
                let name = self.of(&["expire", "pexpire", "expireat", "pexpireat"]);
                let args = vec![self.key(), self.time(name, now)];
                own(name, [args, self.conditions()].concat())
            }
            49..51 => {
                let name = self.of(&["ttl", "pttl", "expiretime", "pexpiretime"]);
                vec![word(name), self.key()]
            }
            51 => vec![word("persist"), self.key()],
            52 => own("del", self.keys()),
            53 => own("unlink", self.keys()),
            54 => own("exists", self.keys()),
            55 => own("touch", self.keys()),
            56 => vec![word("type"), self.key()],
            57 => vec![word("keys"), word("*")],
            58 => vec![word("randomkey")],
            59 => vec![word("dbsize")],
            60 => vec![word("rename"), self.key(), self.key()],
            61 => vec![word("renamenx"), self.key(), self.key()],
            62 | 63 => {
                let mut args = vec![word("copy"), self.key(), self.key()];
                let options = ["", "", "replace", "db 1", "db 2 REPLACE", "db 16", "db", "db x"];
                args.extend(self.of(&options).split_whitespace().map(word));
                args
            }
            64 => match self.byte() {
                // A flush leaves nothing to be found.
                byte @ 0..64 => vec![word(if byte < 8 { "flushall" } else { "flushdb" })],
                _ => vec![word("get"), self.key()],
            },
            65 | 66 => vec![word("select"), word(self.of(&["0", "0", "1", "2", "0", "16", "-1"]))],
            67..70 => vec![word("multi")],
            70..73 => vec![word("exec")],
            73 => vec![word(self.of(&["discard", "unwatch", "discard", "reset"]))],
            74..77 => own("watch", self.keys()),
            // A command that is none, or lacks arguments, breaks a transaction.
            77 => vec![word(self.of(&["nosuch", "get", "set", "mget", "exec", "dbsize"]))],
            // Many keys, so that walks have many steps.
            _ => {
                let from = self.byte();
                let pairs = (from..from + 40).flat_map(|it| [word(&format!("n{it}")), word("v")]);
                own(if code == 78 { "mset" } else { "msetnx" }, pairs.collect())
            }
        }
    }
}

/// A service and a map that hear the same commands.
struct Stream<'b> {
    choices: Choices<'b>,
    service: Arc<Service>,
    clients: [Client; CLIENTS],
    map: Map,
    /// Requests of one client that wait to go out, and what they are to answer.
    pending: Vec<u8>,
    expected: Vec<Expected>,
    client: usize,
    /// Where the walk is, and what it has found.
    cursor: Vec<u8>,
    seen: BTreeSet<Vec<u8>>,
    /// The commands as people read them.
    told: Vec<String>,
}

/// Arguments, cut to what can be read.
fn shown(args: &[Vec<u8>]) -> String {
    let arg = |arg: &Vec<u8>| match arg.len() {
        0..=24 => format!("{:?}", String::from_utf8_lossy(arg)),
        len => format!("{:?} * {len}", String::from_utf8_lossy(&arg[..8])),
    };
    args.iter().map(arg).collect::<Vec<_>>().join(" ")
}

/// A reply, cut in the same way.
fn cut(reply: &dyn std::fmt::Debug) -> String {
    let text = format!("{reply:?}");
    text.chars().take(400).collect()
}

impl Stream<'_> {
    /// Sends what waits, and compares the replies.
    fn flush(&mut self) {
        let replies = self.clients[self.client].send(&self.pending);
        self.pending.clear();
        let expected = std::mem::take(&mut self.expected);
        let is_right = replies.len() == expected.len()
            && expected.iter().zip(&replies).all(|(expected, reply)| expected.holds(reply));
        if !is_right {
            let pairs = expected.iter().zip(&replies);
            let wrong = pairs.enumerate().find(|(_, (expected, reply))| !expected.holds(reply));
            let told = &self.told[self.told.len().saturating_sub(SHOWN)..];
            panic!(
                "{}\n{} of the last {} replies: {}",
                told.join("\n"),
                replies.len(),
                expected.len(),
                wrong.map_or_else(String::new, |(at, (expected, reply))| {
                    format!("number {at} is {}, not {}", cut(reply), cut(expected))
                }),
            );
        }
    }

    /// Removes what has ended: what counts keys counts it until then.
    fn remove_ended(&mut self) {
        self.flush();
        while self.service.expire().expect("memory") {}
    }

    fn step(&mut self) {
        let how = self.choices.byte();
        let client = how % CLIENTS;
        if client != self.client {
            self.flush();
            self.client = client;
        }
        match how / CLIENTS % 16 {
            0 => {
                self.flush();
                let time = self.choices.of(&[1, 2, 5, 10, 20, 50, 100, 1_000, 2_500, 1_000_000]);
                self.map.pass(time);
                self.told.push(format!("-- {time} ms pass"));
                self.service.set_clock(self.map.now());
            }
            1 => {
                self.told.push("-- what has ended is removed".to_owned());
                self.remove_ended();
            }
            2 => self.walk(),
            _ => self.command(),
        }
    }

    fn command(&mut self) {
        let args = self.choices.command(self.map.now());
        if [&b"dbsize"[..], b"randomkey", b"exec"].contains(&&args[0][..]) {
            self.remove_ended();
        }
        self.told.push(format!("{}: {}", self.client, shown(&args)));
        let expected = self.map.answer(self.client, &args);
        self.expected.push(expected);
        self.pending.extend(request(&args.iter().map(Vec::as_slice).collect::<Vec<_>>()));
        if self.expected.len() >= PIPELINE_MAX || self.pending.len() > 1 << 20 {
            self.flush();
        }
    }

    /// One step of a walk: no key comes that is not there. At its end, each has come that was there
    /// throughout.
    fn walk(&mut self) {
        self.flush();
        if self.map.is_queuing(self.client) {
            return;
        }
        let database = self.map.database_of(self.client);
        if self.map.walked() != Some(database) {
            self.map.begin_walk(database);
            self.cursor = word("0");
            self.seen.clear();
        }
        let count = word(self.choices.of(&["1", "2", "5", "10", "1000"]));
        let args = [word("scan"), self.cursor.clone(), word("count"), count];
        self.told.push(format!("{}: {}", self.client, shown(&args)));
        let reply = self.clients[self.client].call(&args.each_ref().map(Vec::as_slice));
        let Value::Array(reply) = reply else { panic!("{reply:?}") };
        let [Value::Bulk(next), Value::Array(found)] = &reply[..] else { panic!("{reply:?}") };
        for key in found {
            let Value::Bulk(key) = key else { panic!("{key:?}") };
            let told = || self.told.join("\n");
            assert!(self.map.contains(database, key), "{}\n{key:?} is not there", told());
            self.seen.insert(key.clone());
        }
        self.cursor.clone_from(next);
        if next == b"0" {
            let steady = self.map.end_walk();
            let missed: Vec<_> = steady.difference(&self.seen).collect();
            assert!(missed.is_empty(), "{}\n{} did not come", self.told.join("\n"), cut(&missed));
        }
    }

    /// What is there at the end: all databases equal the map's, and what ends gives its memory back.
    fn end(&mut self) {
        self.flush();
        let mut reader = Client::new(&self.service);
        for time in [0, 1 << 40] {
            self.map.pass(time);
            self.service.set_clock(self.map.now());
            self.remove_ended();
            for number in 0..3 {
                reader.line(&format!("select {number}"));
                let count = self.map.entries(number).count() as i64;
                assert_eq!(reader.line("dbsize"), count.into(), "{}", self.told.join("\n"));
                for (key, value) in self.map.entries(number) {
                    let reply = reader.call(&[b"get", key]);
                    let is_right = matches!(&reply, Value::Bulk(found) if found == value);
                    assert!(is_right, "{}\n{} at the end", self.told.join("\n"), cut(&reply));
                }
            }
        }
        self.service.check_memory();
    }
}

/// Panics if a service and a map answer the commands that these bytes make in different ways.
pub(crate) fn check(bytes: &[u8]) {
    let service = service();
    let mut clients: [Client; CLIENTS] = std::array::from_fn(|_| Client::new(&service));
    let (protocol, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    if protocol % 2 == 1 {
        clients[1].line("hello 3");
    }
    let map = Map::new(CLIENTS);
    let mut stream = Stream {
        choices: Choices { bytes, longs_left: LONG_MAX },
        service,
        clients,
        map,
        pending: Vec::new(),
        expected: Vec::new(),
        client: 0,
        cursor: word("0"),
        seen: BTreeSet::new(),
        told: Vec::new(),
    };
    while !stream.choices.bytes.is_empty() {
        stream.step();
    }
    stream.end();
}
