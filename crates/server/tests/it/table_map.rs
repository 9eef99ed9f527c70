//! Streams of `SW.*` commands made of any bytes, on a table of each kind, and a map that answers them.
//!
//! The fuzz target `tables` takes its check from here.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::client::{Client, Value, field, ok, service};

/// Tables that are to behave alike, but for order.
const KINDS: [&str; 6] = [
    "ENGINE ordered CHUNK 4",
    "ENGINE hash",
    "ENGINE HASH RECORD fixed8 ENTRIES 100",
    "ENGINE tree",
    "ENGINE TREE KIND crit-bit RECORD fixed8",
    "ENGINE tree KIND Red-Black",
];

const KEYS: u64 = 40;

/// Commands that are shown when a reply is wrong.
const SHOWN: usize = 60;

/// Keys of 8 bytes, with bytes that text has not.
fn key(number: u64) -> Vec<u8> {
    [b'\r', b'\n', 0, 0xFF, b'*', b'-', (number / 4) as u8, (number % 4) as u8 ^ 0x80].to_vec()
}

#[derive(Debug, Clone)]
enum Command {
    Put(u64, i64),
    PutNx(u64, i64),
    PutXx(u64, i64),
    Get(u64),
    MPut(Vec<(u64, i64)>),
    MGet(Vec<u64>),
    Remove(Vec<u64>),
    Exists(Vec<u64>),
    Add(u64, i64),
    MAdd(Vec<(u64, i64)>),
    Counter(Vec<u64>),
    Cas(u64, i64, i64),
    Update(u64, &'static str, i64),
    Range { from: u64, to: u64, ends: u8, reverse: bool, limit: Option<(i64, i64)>, shown: Shown },
    Sum(&'static str),
    Groups(i64),
    Spread { total: i64, adding: bool, keys: Vec<u64> },
}

/// What a walk shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Entries,
    Keys,
}

/// What a stream does next.
#[derive(Debug, Clone)]
enum Step {
    Command(Command),
    /// These in one transaction.
    Exec(Vec<Command>),
    /// A step of a scan, of so many entries.
    Scan(u64),
    /// The table goes, and a new one has its name.
    Drop,
    Check,
}

/// Bytes that choose; zeros when there are none left.
struct Choices<'b>(&'b [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *byte
    }

    fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }

    fn key(&mut self) -> u64 {
        // Half of them among a few.
        match self.byte() {
            byte @ 128.. => u64::from(byte) % 8,
            byte => u64::from(byte) % KEYS,
        }
    }

    fn keys(&mut self) -> Vec<u64> {
        (0..=self.byte() % 4).map(|_| self.key()).collect()
    }

    fn number(&mut self) -> i64 {
        match self.byte() {
            255 => i64::MAX,
            254 => i64::MIN,
            byte @ 244..254 => (i64::from(byte) - 248) << 61,
            byte => i64::from(byte) - 122,
        }
    }

    fn pairs(&mut self) -> Vec<(u64, i64)> {
        (0..=self.byte() % 4).map(|_| (self.key(), self.number())).collect()
    }

    /// Keys one behind the other, as many as split a chunk or empty it.
    fn run(&mut self) -> impl Iterator<Item = u64> + use<> {
        let (from, len) = (self.key(), u64::from(self.byte()) % 24 + 1);
        from..(from + len).min(KEYS)
    }

    fn command(&mut self) -> Command {
        match self.byte() % 32 {
            0..4 => Command::Put(self.key(), self.number()),
            4 => Command::PutNx(self.key(), self.number()),
            5 => Command::PutXx(self.key(), self.number()),
            6..8 => Command::Get(self.key()),
            8 => Command::MPut(self.pairs()),
            9 => {
                let value = self.number();
                Command::MPut(self.run().map(|at| (at, value)).collect())
            }
            10 => Command::MGet(self.keys()),
            11 => Command::Remove(self.keys()),
            12 => Command::Remove(self.run().collect()),
            13 => Command::Exists(self.keys()),
            14..16 => Command::Add(self.key(), self.number()),
            16 => Command::MAdd(self.pairs()),
            17 => Command::Counter(self.keys()),
            18 => Command::Cas(self.key(), self.number(), self.number()),
            19..22 => {
                let action = self.of(&["set", "ADD", "min", "Max"]);
                Command::Update(self.key(), action, self.number())
            }
            22..26 => {
                let reverse = self.byte().is_multiple_of(2);
                let limit = match self.byte() % 3 {
                    0 => None,
                    _ => Some((self.of(&[0, 0, 1, 2, 7, -1]), self.of(&[-1, 0, 1, 2, 3, 20]))),
                };
                let shown = self.of(&[Shown::Entries, Shown::Keys]);
                let (from, to, ends) = (self.key(), self.key(), self.byte());
                Command::Range { from, to, ends, reverse, limit, shown }
            }
            26..28 => Command::Sum(self.of(&["planner", "log", "walk", "range"])),
            28 | 29 => Command::Groups(self.number()),
            _ => {
                let adding = self.byte().is_multiple_of(2);
                Command::Spread { total: self.number(), adding, keys: self.keys() }
            }
        }
    }

    fn step(&mut self) -> Step {
        match self.byte() % 32 {
            0..7 => Step::Scan(self.of(&[1, 2, 3, 5, 100])),
            7 | 8 => Step::Exec((0..=self.byte() % 5).map(|_| self.command()).collect()),
            9 if self.byte().is_multiple_of(4) => Step::Drop,
            9 => Step::Check,
            _ => Step::Command(self.command()),
        }
    }
}

#[derive(Debug, Default)]
struct Oracle {
    entries: BTreeMap<Vec<u8>, i64>,
    /// Keys that have been there since a scan began.
    steady: BTreeSet<Vec<u8>>,
    is_ordered: bool,
    /// Whether a batch is one transaction.
    is_tree: bool,
    is_resp3: bool,
}

fn text(number: impl std::fmt::Display) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn bytes(value: i64) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

fn word(word: &str) -> Vec<u8> {
    word.as_bytes().to_vec()
}

fn count(count: usize) -> Value {
    Value::Integer(count as i64)
}

fn all(keys: &[u64]) -> Vec<Vec<u8>> {
    keys.iter().map(|at| key(*at)).collect()
}

/// The value of a command that may be refused.
type Expected = Option<Value>;

impl Oracle {
    fn value(&self, number: u64) -> Value {
        let value = self.entries.get(&key(number));
        value.map_or(Value::Null, |value| Value::Bulk(bytes(*value)))
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        self.steady.remove(key);
        self.entries.remove(key).is_some()
    }

    fn shown<'a>(
        &self,
        entries: impl Iterator<Item = (&'a Vec<u8>, &'a i64)>,
        shown: Shown,
    ) -> Value {
        if shown == Shown::Keys {
            return Value::Array(entries.map(|(key, _)| Value::Bulk(key.clone())).collect());
        }
        let pair = |(key, value): (&Vec<u8>, &i64)| {
            let pair = vec![Value::Bulk(key.clone()), Value::Bulk(bytes(*value))];
            if self.is_resp3 { vec![Value::Array(pair)] } else { pair }
        };
        Value::Array(entries.flat_map(pair).collect())
    }

    /// A whole number as the protocol has it.
    fn whole(&self, number: i128) -> Value {
        match (i64::try_from(number), self.is_resp3) {
            (Ok(number), _) => Value::Integer(number),
            (Err(_), true) => Value::Big(number.to_string()),
            (Err(_), false) => Value::Bulk(text(number)),
        }
    }

    /// The arguments of a command behind the table's name, and its reply; `None` for an error.
    fn execute(&mut self, command: &Command) -> (&'static str, Vec<Vec<u8>>, Expected) {
        match command {
            Command::Put(at, value) => {
                self.entries.insert(key(*at), *value);
                ("sw.put", vec![key(*at), bytes(*value)], Some(ok()))
            }
            Command::PutNx(at, value) => {
                let is_put = !self.entries.contains_key(&key(*at));
                self.entries.entry(key(*at)).or_insert(*value);
                let reply = if is_put { ok() } else { Value::Null };
                ("sw.put", vec![key(*at), bytes(*value), word("NX")], Some(reply))
            }
            Command::PutXx(at, value) => {
                let found = self.entries.get_mut(&key(*at));
                let reply = found.map_or(Value::Null, |found| {
                    *found = *value;
                    ok()
                });
                ("SW.PUT", vec![key(*at), bytes(*value), word("xx")], Some(reply))
            }
            Command::Get(at) => ("sw.get", vec![key(*at)], Some(self.value(*at))),
            Command::MPut(pairs) => {
                self.entries.extend(pairs.iter().map(|(at, value)| (key(*at), *value)));
                let args = pairs.iter().flat_map(|(at, value)| [key(*at), bytes(*value)]);
                ("sw.mput", args.collect(), Some(ok()))
            }
            Command::MGet(keys) => {
                let values = keys.iter().map(|at| self.value(*at)).collect();
                ("sw.mget", all(keys), Some(Value::Array(values)))
            }
            Command::Remove(keys) => {
                let removed = keys.iter().filter(|at| self.remove(&key(**at))).count();
                ("sw.remove", all(keys), Some(count(removed)))
            }
            Command::Exists(keys) => {
                let found = keys.iter().filter(|at| self.entries.contains_key(&key(**at)));
                ("sw.exists", all(keys), Some(count(found.count())))
            }
            Command::Add(at, delta) => {
                let before = self.entries.get(&key(*at)).copied().unwrap_or(0);
                let sum = before.checked_add(*delta);
                if let Some(sum) = sum {
                    self.entries.insert(key(*at), sum);
                }
                ("sw.add", vec![key(*at), text(delta)], sum.map(Value::Integer))
            }
            Command::MAdd(pairs) => {
                let mut reply = Some(ok());
                let before_all = self.entries.clone();
                for (at, delta) in pairs {
                    let before = self.entries.get(&key(*at)).copied().unwrap_or(0);
                    match before.checked_add(*delta) {
                        Some(sum) => drop(self.entries.insert(key(*at), sum)),
                        None => {
                            reply = None;
                            break;
                        }
                    }
                }
                if reply.is_none() && self.is_tree {
                    self.entries = before_all;
                }
                let args = pairs.iter().flat_map(|(at, delta)| [key(*at), text(delta)]);
                ("sw.madd", args.collect(), reply)
            }
            Command::Counter(keys) => {
                let counter = |at: &u64| {
                    self.entries.get(&key(*at)).map_or(Value::Null, |value| (*value).into())
                };
                let reply = Value::Array(keys.iter().map(counter).collect());
                ("sw.counter", all(keys), Some(reply))
            }
            Command::Cas(at, old, new) => {
                let found = self.entries.get_mut(&key(*at)).filter(|value| **value == *old);
                let is_put = found.is_some();
                if let Some(found) = found {
                    *found = *new;
                }
                let reply = count(is_put.into());
                ("sw.cas", vec![key(*at), bytes(*old), bytes(*new)], Some(reply))
            }
            Command::Update(at, action, by) => {
                let before = self.entries.get(&key(*at)).copied();
                let after = before.map(|before| match *action {
                    "set" => Some(*by),
                    "ADD" => before.checked_add(*by),
                    "min" => Some(before.min(*by)),
                    _ => Some(before.max(*by)),
                });
                let reply = match after {
                    None => Some(Value::Null),
                    Some(None) => None,
                    Some(Some(after)) => {
                        self.entries.insert(key(*at), after);
                        Some(Value::Array(vec![after.into()]))
                    }
                };
                ("sw.update", vec![key(*at), word("n"), word(action), text(by)], reply)
            }
            Command::Range { from, to, ends, reverse, limit, shown } => {
                let edge = |at: u64, ends: u8, open: &str| match ends {
                    0 => (Bound::Unbounded, word(open)),
                    1 => (Bound::Excluded(key(at)), [word("("), key(at)].concat()),
                    _ => (Bound::Included(key(at)), [word("["), key(at)].concat()),
                };
                let (begin, min) = edge(*from, ends % 4, "-");
                let (end, max) = edge(*to, ends / 4 % 4, "+");
                let within = |key: &[u8]| {
                    let is_above = match &begin {
                        Bound::Included(begin) => key >= &begin[..],
                        Bound::Excluded(begin) => key > &begin[..],
                        Bound::Unbounded => true,
                    };
                    is_above
                        && match &end {
                            Bound::Included(end) => key <= &end[..],
                            Bound::Excluded(end) => key < &end[..],
                            Bound::Unbounded => true,
                        }
                };
                let mut found: Vec<_> =
                    self.entries.iter().filter(|(key, _)| within(key)).collect();
                if *reverse {
                    found.reverse();
                }
                let mut args = if *reverse { vec![max, min] } else { vec![min, max] };
                if let Some((offset, most)) = limit {
                    args.extend([word("limit"), text(offset), text(most)]);
                    let offset = usize::try_from(*offset).unwrap_or(usize::MAX);
                    let most = usize::try_from(*most).unwrap_or(usize::MAX);
                    found = found.into_iter().skip(offset).take(most).collect();
                }
                if *shown == Shown::Keys {
                    args.push(word("NoValues"));
                }
                let reply = self.is_ordered.then(|| self.shown(found.into_iter(), *shown));
                (if *reverse { "sw.revrange" } else { "sw.range" }, args, reply)
            }
            Command::Sum(executor) => {
                let is_there = match *executor {
                    "range" => self.is_ordered,
                    "log" | "walk" => !self.is_ordered,
                    _ => true,
                };
                let sum: i128 = self.entries.values().map(|value| i128::from(*value)).sum();
                let figure = match self.entries.is_empty() {
                    true => Value::Null,
                    false => self.whole(sum),
                };
                let row = vec![count(self.entries.len()), figure];
                let reply = is_there.then(|| Value::Array(vec![Value::Array(row)]));
                let args =
                    vec![word("SELECT"), word("count, sum(n)"), word("USING"), word(executor)];
                ("sw.aggregate", args, reply)
            }
            Command::Groups(least) => {
                let mut groups: BTreeMap<i64, i64> = BTreeMap::new();
                for value in self.entries.values().filter(|value| **value >= *least) {
                    *groups.entry(*value).or_default() += 1;
                }
                let rows = groups.iter().take(3);
                let rows =
                    rows.map(|(value, count)| Value::Array(vec![(*value).into(), (*count).into()]));
                let args = [
                    ("by", "n".to_owned()),
                    ("select", "count".to_owned()),
                    ("where", format!("n >= {least}")),
                    ("order", "n asc".to_owned()),
                    ("limit", "3".to_owned()),
                ];
                let args = args.into_iter().flat_map(|(name, text)| [word(name), word(&text)]);
                ("sw.aggregate", args.collect(), Some(Value::Array(rows.collect())))
            }
            Command::Spread { total, adding, keys } => {
                let mut there: Vec<Vec<u8>> = keys.iter().map(|at| key(*at)).collect();
                there.sort();
                there.dedup();
                let mut args = vec![word("n"), text(total), word("keys"), text(keys.len())];
                args.extend(keys.iter().map(|at| key(*at)));
                args.push(word(if *adding { "add" } else { "set" }));
                there.retain(|key| self.entries.contains_key(key));
                let mut after = self.entries.clone();
                let (all, mut left) = (i128::from(*total), 0);
                // Of nothing, no key is left without its part.
                let is_done = if there.is_empty() {
                    all == 0
                } else {
                    let each = all / there.len() as i128;
                    left += all - each * there.len() as i128;
                    there.iter().all(|key| {
                        let part = each + left.signum();
                        left -= left.signum();
                        let before = if *adding { self.entries[key] } else { 0 };
                        let sum = i64::try_from(i128::from(before) + part);
                        sum.is_ok_and(|sum| after.insert(key.clone(), sum).is_some())
                    })
                };
                if is_done {
                    self.entries = after;
                }
                ("sw.disaggregate", args, is_done.then_some(Value::Integer(*total)))
            }
        }
    }
}

/// A table and a map that hear the same commands.
struct Stream {
    kind: &'static str,
    client: Client,
    oracle: Oracle,
    /// Where the scan is, and how often each key has come.
    cursor: Vec<u8>,
    seen: BTreeMap<Vec<u8>, usize>,
    /// What was done, as people read it.
    told: Vec<String>,
}

impl Stream {
    fn new(kind: &'static str, is_resp3: bool) -> Stream {
        let mut client = Client::new(&service());
        if is_resp3 {
            client.line("hello 3");
        }
        let is_tree = kind.to_lowercase().contains("tree");
        let is_ordered = is_tree || kind.contains("ordered");
        let oracle = Oracle { is_ordered, is_tree, is_resp3, ..Oracle::default() };
        let cursor = word("0");
        let (seen, told) = (BTreeMap::new(), Vec::new());
        let mut stream = Stream { kind, client, oracle, cursor, seen, told };
        stream.create();
        stream
    }

    fn create(&mut self) {
        let line = format!("SW.CREATE t {} LAYOUT n:i64le", self.kind);
        assert_eq!(self.client.line(&line), ok());
    }

    /// What was done last, for a message.
    fn told(&self) -> String {
        format!("{}\n{}", self.kind, self.told[self.told.len().saturating_sub(SHOWN)..].join("\n"))
    }

    /// Sends a command; answers its reply, and what that is to be.
    fn send(&mut self, command: &Command) -> (Value, &'static str, Expected) {
        let (name, args, expected) = self.oracle.execute(command);
        let mut request: Vec<&[u8]> = vec![name.as_bytes(), b"t"];
        request.extend(args.iter().map(Vec::as_slice));
        (self.client.call(&request), name, expected)
    }

    fn compare(&self, reply: &Value, name: &str, expected: Expected) {
        let told = || self.told();
        match (name, expected) {
            (_, None) => assert!(matches!(reply, Value::Error(_)), "{}: {reply:?}", told()),
            ("sw.aggregate", Some(rows)) => assert_eq!(field(reply, "rows"), rows, "{}", told()),
            ("sw.disaggregate", Some(given)) => {
                assert_eq!(field(reply, "given"), given, "{}", told());
            }
            (_, Some(expected)) => assert_eq!(*reply, expected, "{}", told()),
        }
    }

    fn step(&mut self, step: &Step) {
        self.told.push(format!("{step:?}"));
        match step {
            Step::Command(command) => {
                let (reply, name, expected) = self.send(command);
                self.compare(&reply, name, expected);
            }
            Step::Exec(commands) => self.exec(commands),
            Step::Scan(count) => self.scan(*count),
            Step::Drop => {
                assert_eq!(self.client.line("sw.drop t"), ok(), "{}", self.told());
                let missing = Value::Error("ERR no such table".to_owned());
                assert_eq!(self.client.line("sw.get t k"), missing, "{}", self.told());
                self.create();
                self.oracle.entries.clear();
                self.cursor = word("0");
            }
            Step::Check => assert_eq!(self.client.line("sw.check t"), ok(), "{}", self.told()),
        }
    }

    fn exec(&mut self, commands: &[Command]) {
        assert_eq!(self.client.line("multi"), ok());
        let mut expected = Vec::new();
        for command in commands {
            let (reply, name, answer) = self.send(command);
            assert_eq!(reply, Value::Simple("QUEUED".to_owned()), "{}", self.told());
            expected.push((name, answer));
        }
        let Value::Array(replies) = self.client.line("exec") else { panic!("{}", self.told()) };
        assert_eq!(replies.len(), expected.len(), "{}", self.told());
        for (reply, (name, expected)) in replies.iter().zip(expected) {
            self.compare(reply, name, expected);
        }
    }

    /// One step of a scan that other commands come between: what comes is there; at its end, each
    /// key has come once that was there throughout.
    fn scan(&mut self, count: u64) {
        if self.cursor == b"0" {
            self.oracle.steady = self.oracle.entries.keys().cloned().collect();
            self.seen.clear();
        }
        let reply = self.client.call(&[b"sw.scan", b"t", &self.cursor, b"count", &text(count)]);
        let Value::Array(reply) = reply else { panic!("{}: {reply:?}", self.told()) };
        let [Value::Bulk(next), Value::Array(found)] = &reply[..] else { panic!("{reply:?}") };
        let flat: Vec<Value> = found
            .iter()
            .flat_map(|value| match value {
                Value::Array(pair) => pair.clone(),
                value => vec![value.clone()],
            })
            .collect();
        for pair in flat.chunks_exact(2) {
            let [Value::Bulk(key), Value::Bulk(value)] = pair else { panic!("{pair:?}") };
            let now = self.oracle.entries.get(key).map(|value| bytes(*value));
            assert_eq!(Some(value), now.as_ref(), "{}: {key:?}", self.told());
            *self.seen.entry(key.clone()).or_default() += 1;
        }
        self.cursor.clone_from(next);
        if next == b"0" {
            for key in &self.oracle.steady {
                assert_eq!(self.seen.get(key), Some(&1), "{}: {key:?}", self.told());
            }
        }
    }

    fn end(&mut self) {
        // What was begun, and then all.
        for _ in 0..2 {
            self.step(&Step::Scan(3));
            while self.cursor != b"0" {
                self.step(&Step::Scan(3));
            }
        }
        assert_eq!(self.seen.len(), self.oracle.entries.len(), "{}", self.told());
        self.step(&Step::Check);
    }
}

/// Panics if a table of any kind and a map answer the commands that these bytes make in different
/// ways.
pub(crate) fn check(bytes: &[u8]) {
    let Some((protocol, bytes)) = bytes.split_first() else { return };
    for kind in KINDS {
        let mut choices = Choices(bytes);
        let mut stream = Stream::new(kind, protocol % 2 == 1);
        while !choices.0.is_empty() {
            stream.step(&choices.step());
        }
        stream.end();
    }
}
