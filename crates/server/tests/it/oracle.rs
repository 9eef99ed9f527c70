//! Streams of commands against a map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::client::{Client, START, Value, ok, request, service};

/// Lengths around those at which the stored form changes, and one that lies in parts.
const LENGTHS: [usize; 12] = [0, 1, 6, 7, 8, 9, 15, 16, 100, 20_000, 524_032, 600_000];

#[derive(Debug, Clone)]
enum Command {
    Get(usize),
    Set(usize, usize, u8),
    SetUntil(usize, usize, u8, u64),
    SetNx(usize, u8),
    SetXxKeep(usize, u8),
    Append(usize, usize, u8),
    GetDel(usize),
    Del(usize, usize),
    Exists(usize, usize),
    MSet(usize, usize, u8),
    MGet(usize, usize),
    SetRange(usize, usize, u8),
    GetRange(usize, i64, i64),
    Expire(usize, i64),
    Persist(usize),
    Pttl(usize),
    Strlen(usize),
    Rename(usize, usize),
    Copy(usize, usize),
    Incr(usize),
    Pass(u64),
    Clean,
    DbSize,
    FlushDb,
}

fn command() -> impl Strategy<Value = Command> {
    use Command::*;
    let key = || 0..KEYS;
    let len = || 0..LENGTHS.len();
    prop_oneof![
        6 => key().prop_map(Get),
        6 => (key(), len(), any::<u8>()).prop_map(|(key, len, byte)| Set(key, len, byte)),
        2 => (key(), len(), any::<u8>(), 1..100_u64)
            .prop_map(|(key, len, byte, time)| SetUntil(key, len, byte, time)),
        1 => (key(), any::<u8>()).prop_map(|(key, byte)| SetNx(key, byte)),
        1 => (key(), any::<u8>()).prop_map(|(key, byte)| SetXxKeep(key, byte)),
        2 => (key(), len(), any::<u8>()).prop_map(|(key, len, byte)| Append(key, len, byte)),
        1 => key().prop_map(GetDel),
        2 => (key(), key()).prop_map(|(one, two)| Del(one, two)),
        1 => (key(), key()).prop_map(|(one, two)| Exists(one, two)),
        1 => (key(), key(), any::<u8>()).prop_map(|(one, two, byte)| MSet(one, two, byte)),
        1 => (key(), key()).prop_map(|(one, two)| MGet(one, two)),
        1 => (key(), 0..40_usize, any::<u8>()).prop_map(|(key, at, byte)| SetRange(key, at, byte)),
        1 => (key(), -20..20_i64, -20..20_i64).prop_map(|(key, from, to)| GetRange(key, from, to)),
        2 => (key(), -1..100_i64).prop_map(|(key, time)| Expire(key, time)),
        1 => key().prop_map(Persist),
        1 => key().prop_map(Pttl),
        1 => key().prop_map(Strlen),
        1 => (key(), key()).prop_map(|(one, two)| Rename(one, two)),
        1 => (key(), key()).prop_map(|(one, two)| Copy(one, two)),
        1 => key().prop_map(Incr),
        2 => (0..50_u64).prop_map(Pass),
        1 => Just(Clean),
        1 => Just(DbSize),
        1 => prop_oneof![9 => Just(DbSize), 1 => Just(FlushDb)],
    ]
}

/// The last are stored under a hash: the empty one, a long one, and one that looks hashed.
const KEYS: usize = 7;

fn key(number: usize) -> Vec<u8> {
    match number {
        4 => Vec::new(),
        5 => vec![b'k'; 100_000],
        6 => b"\0sw:key\0and so on".to_vec(),
        number => format!("key{number}").into_bytes(),
    }
}

#[derive(Default)]
struct Oracle {
    now: u64,
    entries: BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>,
}

impl Oracle {
    fn pass(&mut self, time: u64) {
        self.now += time;
        let now = self.now;
        self.entries.retain(|_, (_, end)| end.is_none_or(|end| end > now));
    }

    fn value(&self, key: &[u8]) -> Value {
        self.entries.get(key).map_or(Value::Null, |(value, _)| Value::Bulk(value.clone()))
    }

    /// The arguments of a command, and its reply.
    fn execute(&mut self, command: &Command) -> (Vec<Vec<u8>>, Value) {
        let text = |number: &dyn std::fmt::Display| number.to_string().into_bytes();
        let word = |word: &str| word.as_bytes().to_vec();
        let value = |len: usize, byte: u8| vec![byte; LENGTHS[len]];
        let count = |is: bool| Value::Integer(i64::from(is));
        match *command {
            Command::Get(number) => (vec![word("get"), key(number)], self.value(&key(number))),
            Command::Set(number, len, byte) => {
                self.entries.insert(key(number), (value(len, byte), None));
                (vec![word("SET"), key(number), value(len, byte)], ok())
            }
            Command::SetUntil(number, len, byte, time) => {
                let end = self.now + time;
                self.entries.insert(key(number), (value(len, byte), Some(end)));
                let args =
                    vec![word("set"), key(number), value(len, byte), word("px"), text(&time)];
                (args, ok())
            }
            Command::SetNx(number, byte) => {
                let is_set = !self.entries.contains_key(&key(number));
                self.entries.entry(key(number)).or_insert((vec![byte; 3], None));
                (vec![word("setnx"), key(number), vec![byte; 3]], count(is_set))
            }
            Command::SetXxKeep(number, byte) => {
                let entry = self.entries.get_mut(&key(number));
                let reply = if entry.is_some() { ok() } else { Value::Null };
                if let Some((value, _)) = entry {
                    *value = vec![byte; 7];
                }
                let args = [word("set"), key(number), vec![byte; 7], word("xx"), word("keepttl")];
                (args.to_vec(), reply)
            }
            Command::Append(number, len, byte) => {
                let (bytes, _) = self.entries.entry(key(number)).or_default();
                bytes.extend(value(len, byte));
                let len_after = bytes.len() as i64;
                (vec![word("append"), key(number), value(len, byte)], len_after.into())
            }
            Command::GetDel(number) => {
                let reply = self.value(&key(number));
                self.entries.remove(&key(number));
                (vec![word("getdel"), key(number)], reply)
            }
            Command::Del(one, two) => {
                let removed =
                    [one, two].map(|it| i64::from(self.entries.remove(&key(it)).is_some()));
                (vec![word("del"), key(one), key(two)], (removed[0] + removed[1]).into())
            }
            Command::Exists(one, two) => {
                let there = [one, two].map(|it| i64::from(self.entries.contains_key(&key(it))));
                (vec![word("exists"), key(one), key(two)], (there[0] + there[1]).into())
            }
            Command::MSet(one, two, byte) => {
                for number in [one, two] {
                    self.entries.insert(key(number), (vec![byte; 8], None));
                }
                let args = [word("mset"), key(one), vec![byte; 8], key(two), vec![byte; 8]];
                (args.to_vec(), ok())
            }
            Command::MGet(one, two) => {
                let values = vec![self.value(&key(one)), self.value(&key(two))];
                (vec![word("mget"), key(one), key(two)], Value::Array(values))
            }
            Command::SetRange(number, at, byte) => {
                let (value, _) = self.entries.entry(key(number)).or_default();
                value.resize(value.len().max(at + 2), 0);
                value[at..at + 2].copy_from_slice(&[byte; 2]);
                let len = value.len() as i64;
                (vec![word("setrange"), key(number), text(&at), vec![byte; 2]], len.into())
            }
            Command::GetRange(number, from, to) => {
                let empty = (Vec::new(), None);
                let (value, _) = self.entries.get(&key(number)).unwrap_or(&empty);
                let len = value.len() as i64;
                let at = |at: i64| if at < 0 { (at + len).max(0) } else { at };
                let range = (at(from)..=at(to).min(len - 1)).map(|at| value[at as usize]);
                // Redis: both from the end, and the wrong way round.
                let is_none = from < 0 && to < 0 && from > to;
                let bytes = if is_none { Vec::new() } else { range.collect() };
                (vec![word("getrange"), key(number), text(&from), text(&to)], Value::Bulk(bytes))
            }
            Command::Expire(number, time) => {
                let is_there = self.entries.contains_key(&key(number));
                if time <= 0 {
                    self.entries.remove(&key(number));
                } else if let Some((_, end)) = self.entries.get_mut(&key(number)) {
                    *end = Some(self.now + time as u64);
                }
                (vec![word("pexpire"), key(number), text(&time)], count(is_there))
            }
            Command::Persist(number) => {
                let end = self.entries.get_mut(&key(number)).and_then(|(_, end)| end.take());
                (vec![word("persist"), key(number)], count(end.is_some()))
            }
            Command::Pttl(number) => {
                let reply = match self.entries.get(&key(number)) {
                    None => -2,
                    Some((_, None)) => -1,
                    Some((_, Some(end))) => (end - self.now) as i64,
                };
                (vec![word("pttl"), key(number)], reply.into())
            }
            Command::Strlen(number) => {
                let len = self.entries.get(&key(number)).map_or(0, |(value, _)| value.len());
                (vec![word("strlen"), key(number)], (len as i64).into())
            }
            Command::Rename(from, to) => {
                let reply = match self.entries.remove(&key(from)) {
                    None => Value::Error("ERR no such key".to_owned()),
                    Some(entry) => {
                        self.entries.insert(key(to), entry);
                        ok()
                    }
                };
                (vec![word("rename"), key(from), key(to)], reply)
            }
            Command::Copy(from, to) => {
                let args = vec![word("copy"), key(from), key(to)];
                if from == to {
                    let same = "ERR source and destination objects are the same";
                    return (args, Value::Error(same.to_owned()));
                }
                let old = self.entries.get(&key(from)).cloned();
                let is_copied = old.is_some() && !self.entries.contains_key(&key(to));
                if let (true, Some(old)) = (is_copied, old) {
                    self.entries.insert(key(to), old);
                }
                (args, count(is_copied))
            }
            Command::Incr(number) => {
                let args = vec![word("incr"), key(number)];
                let old = self.entries.get(&key(number)).cloned();
                let (value, end) = old.unwrap_or((b"0".to_vec(), None));
                let number_before = std::str::from_utf8(&value)
                    .ok()
                    .and_then(|text| text.parse::<i64>().ok().filter(|it| it.to_string() == text));
                let Some(before) = number_before else {
                    let no = "ERR value is not an integer or out of range";
                    return (args, Value::Error(no.to_owned()));
                };
                self.entries.insert(key(number), (text(&(before + 1)), end));
                (args, (before + 1).into())
            }
            Command::DbSize | Command::Pass(_) | Command::Clean => {
                (vec![word("dbsize")], (self.entries.len() as i64).into())
            }
            Command::FlushDb => {
                self.entries.clear();
                (vec![word("flushdb")], ok())
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 64 } else { 1024 }))]

    /// Commands one by one, and in pipelines of any length: the same replies as a map's.
    #[test]
    fn commands_answer_as_a_map_does(
        commands in prop::collection::vec(command(), 1..80),
        pipelined in 1..10_usize,
    ) {
        let service = service();
        let mut client = Client::new(&service);
        let mut oracle = Oracle { now: START, ..Oracle::default() };
        let mut requests = Vec::new();
        let mut expected = Vec::new();
        for command in &commands {
            match command {
                Command::Pass(_) | Command::Clean => {
                    prop_assert_eq!(client.send(&requests), std::mem::take(&mut expected));
                    requests.clear();
                    if let Command::Pass(time) = command {
                        oracle.pass(*time);
                        service.set_clock(oracle.now);
                    } else {
                        while service.expire().expect("memory") {}
                    }
                    continue;
                }
                // What has ended is counted until it is removed.
                Command::DbSize => while service.expire().expect("memory") {},
                _ => {}
            }
            let (args, reply) = oracle.execute(command);
            let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
            requests.extend(request(&args));
            expected.push(reply);
            if expected.len() >= pipelined {
                prop_assert_eq!(client.send(&requests), std::mem::take(&mut expected));
                requests.clear();
            }
        }
        prop_assert_eq!(client.send(&requests), expected);
        // Memory goes back with what has ended.
        oracle.pass(1_000);
        service.set_clock(oracle.now);
        while service.expire().expect("memory") {}
        prop_assert_eq!(client.line("dbsize"), Value::Integer(oracle.entries.len() as i64));
    }
}

/// Found by the above: the write begins a batch when the replies before it are too many to go on.
#[test]
fn a_write_behind_a_long_read_has_its_reply() {
    let mut client = Client::new(&service());
    let long = vec![b'x'; 3 << 20];
    assert_eq!(client.call(&[b"SET", b"long", &long]), ok());
    let requests: [&[&[u8]]; 4] =
        [&[b"GET", b"long"], &[b"SET", b"k", b"v"], &[b"GET", b"k"], &[b"ECHO", b"end"]];
    let bytes: Vec<u8> = requests.iter().flat_map(|args| request(args)).collect();
    let expected = [Value::Bulk(long), ok(), "v".into(), "end".into()];
    assert!(client.send(&bytes) == expected, "each request has its reply");
}
