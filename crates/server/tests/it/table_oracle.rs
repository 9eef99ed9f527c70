//! Streams of commands on tables of each kind against a map.

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;

use crate::client::{Client, Value, ok, service};

/// Tables that are to behave alike, but for order.
const KINDS: [&str; 3] =
    ["ENGINE ordered CHUNK 4", "ENGINE hash", "ENGINE HASH RECORD fixed8 ENTRIES 100"];

const KEYS: u64 = 12;

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
    MPut(u64, u64, i64),
    MGet(u64, u64),
    Remove(u64, u64),
    Exists(u64, u64),
    Add(u64, i64),
    MAdd(u64, u64, i64),
    Counter(u64, u64),
    Cas(u64, i64, i64),
    Update(u64, &'static str, i64),
    Range { from: u64, to: u64, ends: u8, reverse: bool, limit: Option<(i64, i64)> },
    Scan(u64),
    Sum(&'static str),
    Groups(i64),
    Spread { total: i64, adding: bool, keys: Vec<u64> },
}

fn command() -> impl Strategy<Value = Command> {
    use Command::*;
    let key = || 0..KEYS;
    let number = || prop_oneof![6 => -100..100_i64, 1 => Just(i64::MAX), 1 => Just(i64::MIN), 1 => any::<i64>()];
    let executor = prop::sample::select(vec!["planner", "log", "walk", "range"]);
    let action = prop::sample::select(vec!["set", "ADD", "min", "Max"]);
    prop_oneof![
        6 => (key(), number()).prop_map(|(key, value)| Put(key, value)),
        2 => (key(), number()).prop_map(|(key, value)| PutNx(key, value)),
        2 => (key(), number()).prop_map(|(key, value)| PutXx(key, value)),
        3 => key().prop_map(Get),
        2 => (key(), key(), number()).prop_map(|(one, two, value)| MPut(one, two, value)),
        2 => (key(), key()).prop_map(|(one, two)| MGet(one, two)),
        2 => (key(), key()).prop_map(|(one, two)| Remove(one, two)),
        1 => (key(), key()).prop_map(|(one, two)| Exists(one, two)),
        3 => (key(), number()).prop_map(|(key, delta)| Add(key, delta)),
        1 => (key(), key(), -9..9_i64).prop_map(|(one, two, delta)| MAdd(one, two, delta)),
        1 => (key(), key()).prop_map(|(one, two)| Counter(one, two)),
        1 => (key(), -3..3_i64, number()).prop_map(|(key, old, new)| Cas(key, old, new)),
        3 => (key(), action, number()).prop_map(|(key, action, by)| Update(key, action, by)),
        4 => (key(), key(), any::<u8>(), any::<bool>(), prop::option::of((-1..5_i64, -1..5_i64)))
            .prop_map(|(from, to, ends, reverse, limit)| Range { from, to, ends, reverse, limit }),
        2 => (1..5_u64).prop_map(Scan),
        2 => executor.prop_map(Sum),
        2 => (-100..100_i64).prop_map(Groups),
        2 => (number(), any::<bool>(), prop::collection::vec(key(), 1..5))
            .prop_map(|(total, adding, keys)| Spread { total, adding, keys }),
    ]
}

#[derive(Debug, Default)]
struct Oracle {
    entries: BTreeMap<Vec<u8>, i64>,
    is_ordered: bool,
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

/// The value of a command that may be refused.
type Expected = Option<Value>;

impl Oracle {
    fn value(&self, number: u64) -> Value {
        let value = self.entries.get(&key(number));
        value.map_or(Value::Null, |value| Value::Bulk(bytes(*value)))
    }

    fn pairs<'a>(&self, entries: impl Iterator<Item = (&'a Vec<u8>, &'a i64)>) -> Value {
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
            Command::MPut(one, two, value) => {
                self.entries.insert(key(*one), *value);
                self.entries.insert(key(*two), value ^ 1);
                let args = vec![key(*one), bytes(*value), key(*two), bytes(value ^ 1)];
                ("sw.mput", args, Some(ok()))
            }
            Command::MGet(one, two) => {
                let values = Value::Array(vec![self.value(*one), self.value(*two)]);
                ("sw.mget", vec![key(*one), key(*two)], Some(values))
            }
            Command::Remove(one, two) => {
                let removed = [one, two].map(|at| self.entries.remove(&key(*at)).is_some());
                let removed = removed.into_iter().filter(|is| *is).count();
                ("sw.remove", vec![key(*one), key(*two)], Some(count(removed)))
            }
            Command::Exists(one, two) => {
                let found = [one, two].map(|at| self.entries.contains_key(&key(*at)));
                let found = found.into_iter().filter(|is| *is).count();
                ("sw.exists", vec![key(*one), key(*two)], Some(count(found)))
            }
            Command::Add(at, delta) => {
                let before = self.entries.get(&key(*at)).copied().unwrap_or(0);
                let sum = before.checked_add(*delta);
                if let Some(sum) = sum {
                    self.entries.insert(key(*at), sum);
                }
                ("sw.add", vec![key(*at), text(delta)], sum.map(Value::Integer))
            }
            Command::MAdd(one, two, delta) => {
                let mut reply = Some(ok());
                for at in [one, two] {
                    let before = self.entries.get(&key(*at)).copied().unwrap_or(0);
                    match before.checked_add(*delta) {
                        Some(sum) => drop(self.entries.insert(key(*at), sum)),
                        None => {
                            reply = None;
                            break;
                        }
                    }
                }
                let args = vec![key(*one), text(delta), key(*two), text(delta)];
                ("sw.madd", args, reply)
            }
            Command::Counter(one, two) => {
                let counter = |at: &u64| {
                    self.entries.get(&key(*at)).map_or(Value::Null, |value| (*value).into())
                };
                let reply = Value::Array(vec![counter(one), counter(two)]);
                ("sw.counter", vec![key(*one), key(*two)], Some(reply))
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
            Command::Range { from, to, ends, reverse, limit } => {
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
                let reply = self.is_ordered.then(|| self.pairs(found.into_iter()));
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
            Command::Scan(_) => unreachable!("a scan is many commands"),
        }
    }
}

/// A value of a map, by its name; in version 2 of the protocol maps are arrays.
pub(crate) fn field(reply: &Value, name: &str) -> Value {
    let found = match reply {
        Value::Map(pairs) => pairs.iter().find(|(key, _)| *key == name.into()).map(|pair| &pair.1),
        Value::Array(values) => {
            let mut pairs = values.chunks_exact(2);
            pairs.find(|pair| pair[0] == name.into()).map(|pair| &pair[1])
        }
        _ => None,
    };
    found.unwrap_or_else(|| panic!("no {name} in {reply:?}")).clone()
}

fn scanned(client: &mut Client, step: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut entries = BTreeMap::new();
    let mut cursor = b"0".to_vec();
    loop {
        let step = step.to_string();
        let reply = client.call(&[b"sw.scan", b"t", &cursor, b"count", step.as_bytes()]);
        let Value::Array(reply) = reply else { panic!("{reply:?}") };
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
            assert!(entries.insert(key.clone(), value.clone()).is_none(), "a key comes once");
        }
        if next == b"0" {
            return entries;
        }
        cursor.clone_from(next);
    }
}

fn follow(kind: &str, is_resp3: bool, commands: &[Command]) {
    let mut client = Client::new(&service());
    if is_resp3 {
        client.line("hello 3");
    }
    assert_eq!(client.line(&format!("SW.CREATE t {kind} LAYOUT n:i64le")), ok());
    let is_ordered = kind.contains("ordered");
    let mut oracle = Oracle { is_ordered, is_resp3, ..Oracle::default() };
    for command in commands {
        if let Command::Scan(step) = command {
            let entries: BTreeMap<_, _> =
                oracle.entries.iter().map(|(key, value)| (key.clone(), bytes(*value))).collect();
            assert_eq!(scanned(&mut client, *step), entries);
            continue;
        }
        let (name, args, expected) = oracle.execute(command);
        let mut request: Vec<&[u8]> = vec![name.as_bytes(), b"t"];
        request.extend(args.iter().map(Vec::as_slice));
        let reply = client.call(&request);
        match (name, expected) {
            (_, None) => assert!(matches!(reply, Value::Error(_)), "{command:?}: {reply:?}"),
            ("sw.aggregate", Some(rows)) => assert_eq!(field(&reply, "rows"), rows, "{command:?}"),
            ("sw.disaggregate", Some(given)) => {
                assert_eq!(field(&reply, "given"), given, "{command:?}");
            }
            (_, Some(expected)) => assert_eq!(reply, expected, "{command:?}"),
        }
    }
    let entries: BTreeMap<_, _> =
        oracle.entries.iter().map(|(key, value)| (key.clone(), bytes(*value))).collect();
    assert_eq!(scanned(&mut client, 3), entries);
    assert_eq!(client.line("sw.check t"), ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn tables_of_each_kind_are_maps(
        commands in prop::collection::vec(command(), 1..120),
        is_resp3: bool,
    ) {
        for kind in KINDS {
            follow(kind, is_resp3, &commands);
        }
    }
}
