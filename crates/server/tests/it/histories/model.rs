//! What commands do to databases when they come one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sapwood_testkit::Bytes;
use sapwood_testkit::history::Specified;

use crate::client::{START, Value};

/// A value: bytes that no other value begins with, over and over up to a length.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Text {
    head: Bytes,
    len: usize,
}

/// Stands between the heads of a text.
const BETWEEN: u8 = b'~';

impl Text {
    pub(crate) fn new(head: &str, len: usize) -> Text {
        Text { head: head.as_bytes().into(), len: len.max(head.len()) }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let period = [&self.head, &[BETWEEN][..]].concat();
        let mut bytes = period.repeat(self.len.div_ceil(period.len()));
        bytes.truncate(self.len);
        bytes
    }

    /// The text that bytes are of. Bytes of two texts are of none, wherever they meet.
    pub(crate) fn of(bytes: &[u8]) -> Text {
        let head = bytes.split(|byte| *byte == BETWEEN).next().unwrap_or_default();
        let text = Text { head: head.into(), len: bytes.len() };
        assert!(
            text.bytes() == bytes,
            "a torn value of {} bytes that begins {text:?}",
            bytes.len()
        );
        text
    }

    fn number(&self) -> Option<i64> {
        let text = std::str::from_utf8(&self.head).ok().filter(|text| text.len() == self.len)?;
        text.parse().ok()
    }

    fn append(&self, more: &Text) -> Text {
        assert_eq!(self.len, self.head.len(), "only short texts grow");
        let head: Bytes = [&self.head[..], &more.head].concat().into();
        Text { len: head.len(), head }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.head.escape_ascii())?;
        if self.len > self.head.len() { write!(f, "..{}", self.len) } else { Ok(()) }
    }
}

/// A command of one client. Keys have numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    Get(u8),
    Set(u8, Text),
    SetNx(u8, Text),
    GetSet(u8, Text),
    GetDel(u8),
    Append(u8, Text),
    IncrBy(u8, i64),
    StrLen(u8),
    Del(Vec<u8>),
    Exists(Vec<u8>),
    MSet(Vec<(u8, Text)>),
    MSetNx(Vec<(u8, Text)>),
    MGet(Vec<u8>),
    Rename(u8, u8),
    RenameNx(u8, u8),
    /// From a key to another, or the same, of a database.
    Copy(u8, u8, usize),
    CopyOver(u8, u8, usize),
    FlushDb,
    FlushAll,
    SetUntil(u8, Text, u64),
    ExpireAt(u8, u64),
    Persist(u8),
    Watch(Vec<u8>),
    Unwatch,
}

impl Command {
    /// Its words, as a client sends them.
    pub(crate) fn args(&self) -> Vec<Vec<u8>> {
        use Command::*;
        let key = |key: &u8| vec![b'k', b'0' + key];
        let keys = |keys: &[u8]| keys.iter().map(key).collect::<Vec<_>>();
        let pairs = |pairs: &[(u8, Text)]| {
            pairs.iter().flat_map(|(at, text)| [key(at), text.bytes()]).collect::<Vec<_>>()
        };
        let copy = |from, to, database: &usize, more: &[&str]| {
            let database = database.to_string().into_bytes();
            let more = more.iter().map(|word| word.as_bytes().to_vec());
            [key(from), key(to), b"DB".to_vec(), database].into_iter().chain(more).collect()
        };
        let (name, rest) = match self {
            Get(at) => ("GET", vec![key(at)]),
            Set(at, text) => ("SET", vec![key(at), text.bytes()]),
            SetNx(at, text) => ("SETNX", vec![key(at), text.bytes()]),
            GetSet(at, text) => ("GETSET", vec![key(at), text.bytes()]),
            GetDel(at) => ("GETDEL", vec![key(at)]),
            Append(at, text) => ("APPEND", vec![key(at), text.bytes()]),
            IncrBy(at, 1) => ("INCR", vec![key(at)]),
            IncrBy(at, by) => ("INCRBY", vec![key(at), by.to_string().into_bytes()]),
            StrLen(at) => ("STRLEN", vec![key(at)]),
            Del(all) => ("DEL", keys(all)),
            Exists(all) => ("EXISTS", keys(all)),
            MSet(all) => ("MSET", pairs(all)),
            MSetNx(all) => ("MSETNX", pairs(all)),
            MGet(all) => ("MGET", keys(all)),
            Rename(from, to) => ("RENAME", vec![key(from), key(to)]),
            RenameNx(from, to) => ("RENAMENX", vec![key(from), key(to)]),
            Copy(from, to, database) => ("COPY", copy(from, to, database, &[])),
            CopyOver(from, to, database) => ("COPY", copy(from, to, database, &["REPLACE"])),
            FlushDb => ("FLUSHDB", vec![]),
            FlushAll => ("FLUSHALL", vec![]),
            SetUntil(at, text, end) => {
                let end = end.to_string().into_bytes();
                ("SET", vec![key(at), text.bytes(), b"PXAT".to_vec(), end])
            }
            ExpireAt(at, end) => ("PEXPIREAT", vec![key(at), end.to_string().into_bytes()]),
            Persist(at) => ("PERSIST", vec![key(at)]),
            Watch(all) => ("WATCH", keys(all)),
            Unwatch => ("UNWATCH", vec![]),
        };
        [vec![name.as_bytes().to_vec()], rest].concat()
    }
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Ok,
    None,
    Number(i64),
    Text(Text),
    Texts(Vec<Option<Text>>),
    Error(String),
}

impl From<Value> for Answer {
    fn from(value: Value) -> Answer {
        let each = |value| match value {
            Value::Bulk(bytes) => Some(Text::of(&bytes)),
            Value::Null => None,
            other => panic!("no value: {other:?}"),
        };
        match value {
            Value::Simple(text) if text == "OK" => Answer::Ok,
            Value::Null => Answer::None,
            Value::Integer(number) => Answer::Number(number),
            Value::Bulk(bytes) => Answer::Text(Text::of(&bytes)),
            Value::Array(values) => Answer::Texts(values.into_iter().map(each).collect()),
            Value::Error(text) => Answer::Error(text),
            other => panic!("no reply of these commands: {other:?}"),
        }
    }
}

/// A key of a database.
type Place = (usize, u8);

/// All databases, and what each client watches.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    now: u64,
    entries: BTreeMap<Place, (Text, Option<u64>)>,
    /// The keys that a client watches, and whether one has changed since.
    watches: BTreeMap<usize, (BTreeSet<Place>, bool)>,
}

impl State {
    pub(crate) fn new() -> State {
        State { now: START, entries: BTreeMap::new(), watches: BTreeMap::new() }
    }

    fn touch(&mut self, place: Place) {
        for (places, is_broken) in self.watches.values_mut() {
            *is_broken |= places.contains(&place);
        }
    }

    fn put(&mut self, place: Place, text: &Text, end: Option<u64>) {
        self.entries.insert(place, (text.clone(), end));
        self.touch(place);
    }

    fn take(&mut self, place: Place) -> Option<(Text, Option<u64>)> {
        let taken = self.entries.remove(&place);
        if taken.is_some() {
            self.touch(place);
        }
        taken
    }

    fn retain(&mut self, keeps: impl Fn(Place, Option<u64>) -> bool) {
        let ends = self.entries.iter().filter(|(place, (_, end))| !keeps(**place, *end));
        let ended: Vec<Place> = ends.map(|(place, _)| *place).collect();
        for place in ended {
            self.take(place);
        }
    }

    fn copy(&mut self, from: Place, to: Place) -> bool {
        let Some((text, end)) = self.entries.get(&from).cloned() else { return false };
        self.put(to, &text, end);
        true
    }

    /// Executes a command of a client that has chosen a database.
    fn execute(&mut self, client: usize, database: usize, command: &Command) -> Answer {
        use Command::*;
        let at = |key: &u8| (database, *key);
        let count = |is: bool| Answer::Number(i64::from(is));
        let text = |found: Option<&(Text, Option<u64>)>| found.map(|(text, _)| text.clone());
        let answer = |found: Option<Text>| found.map_or(Answer::None, Answer::Text);
        match command {
            Get(key) => answer(text(self.entries.get(&at(key)))),
            Set(key, new) => {
                self.put(at(key), new, None);
                Answer::Ok
            }
            SetNx(key, new) => {
                let is_set = !self.entries.contains_key(&at(key));
                if is_set {
                    self.put(at(key), new, None);
                }
                count(is_set)
            }
            GetSet(key, new) => {
                let old = text(self.entries.get(&at(key)));
                self.put(at(key), new, None);
                answer(old)
            }
            GetDel(key) => answer(self.take(at(key)).map(|(text, _)| text)),
            Append(key, more) => {
                let (new, end) = match self.entries.get(&at(key)) {
                    Some((old, end)) => (old.append(more), *end),
                    None => (more.clone(), None),
                };
                self.put(at(key), &new, end);
                Answer::Number(new.len as i64)
            }
            IncrBy(key, by) => {
                let (old, end) = match self.entries.get(&at(key)) {
                    Some((text, end)) => (text.number(), *end),
                    None => (Some(0), None),
                };
                let Some(sum) = old.map(|old| old + by) else {
                    return Answer::Error("ERR value is not an integer or out of range".to_owned());
                };
                self.put(at(key), &Text::new(&sum.to_string(), 0), end);
                Answer::Number(sum)
            }
            StrLen(key) => {
                Answer::Number(self.entries.get(&at(key)).map_or(0, |(text, _)| text.len as i64))
            }
            Del(keys) => {
                let taken = keys.iter().filter(|key| self.take(at(key)).is_some());
                Answer::Number(taken.count() as i64)
            }
            Exists(keys) => {
                let found = keys.iter().filter(|key| self.entries.contains_key(&at(key)));
                Answer::Number(found.count() as i64)
            }
            MSet(pairs) => {
                pairs.iter().for_each(|(key, text)| self.put(at(key), text, None));
                Answer::Ok
            }
            MSetNx(pairs) => {
                let is_set = !pairs.iter().any(|(key, _)| self.entries.contains_key(&at(key)));
                if is_set {
                    pairs.iter().for_each(|(key, text)| self.put(at(key), text, None));
                }
                count(is_set)
            }
            MGet(keys) => {
                Answer::Texts(keys.iter().map(|key| text(self.entries.get(&at(key)))).collect())
            }
            Rename(from, to) | RenameNx(from, to) => {
                let replaces = matches!(command, Rename(..));
                if !self.entries.contains_key(&at(from)) {
                    return Answer::Error("ERR no such key".to_owned());
                }
                let is_moved = replaces || !self.entries.contains_key(&at(to));
                if is_moved {
                    self.copy(at(from), at(to));
                    self.take(at(from));
                }
                if replaces { Answer::Ok } else { count(is_moved) }
            }
            Copy(from, to, of) => {
                let is_free = !self.entries.contains_key(&(*of, *to));
                count(is_free && self.copy(at(from), (*of, *to)))
            }
            CopyOver(from, to, of) => count(self.copy(at(from), (*of, *to))),
            FlushDb => {
                self.retain(|place, _| place.0 != database);
                Answer::Ok
            }
            FlushAll => {
                self.retain(|_, _| false);
                Answer::Ok
            }
            SetUntil(key, new, end) => {
                self.put(at(key), new, Some(*end));
                self.end_what_has_ended();
                Answer::Ok
            }
            ExpireAt(key, end) => {
                let is_there = self.entries.contains_key(&at(key));
                if let Some((text, _)) = self.entries.get(&at(key)).cloned() {
                    self.put(at(key), &text, Some(*end));
                    self.end_what_has_ended();
                }
                count(is_there)
            }
            Persist(key) => {
                let had_end = self.entries.get_mut(&at(key)).and_then(|(_, end)| end.take());
                if had_end.is_some() {
                    self.touch(at(key));
                }
                count(had_end.is_some())
            }
            Watch(keys) => {
                let (places, _) = self.watches.entry(client).or_default();
                places.extend(keys.iter().map(at));
                Answer::Ok
            }
            Unwatch => {
                self.watches.remove(&client);
                Answer::Ok
            }
        }
    }

    fn end_what_has_ended(&mut self) {
        let now = self.now;
        self.retain(|_, end| end.is_none_or(|end| end > now));
    }
}

/// An event of a history.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Command {
        client: usize,
        database: usize,
        command: Command,
        answer: Answer,
    },
    /// A transaction; `None` for one that a watch ended.
    Exec {
        client: usize,
        database: usize,
        commands: Vec<Command>,
        answers: Option<Vec<Answer>>,
    },
    /// The clock was set.
    Clock(u64),
}

impl Specified for Call {
    type State = State;

    fn step(&self, state: &State) -> Option<State> {
        let mut after = state.clone();
        let is_right = match self {
            Call::Command { client, database, command, answer } => {
                after.execute(*client, *database, command) == *answer
            }
            Call::Exec { client, database, commands, answers } => {
                let is_broken = after.watches.remove(client).is_some_and(|(_, broken)| broken);
                match answers {
                    None => is_broken,
                    Some(answers) => {
                        let mut right = commands.iter().zip(answers).map(|(command, answer)| {
                            after.execute(*client, *database, command) == *answer
                        });
                        !is_broken && right.all(|is_right| is_right)
                    }
                }
            }
            Call::Clock(now) => {
                after.now = *now;
                after.end_what_has_ended();
                true
            }
        };
        is_right.then_some(after)
    }

    fn changed_nothing(&self) -> bool {
        use Command::*;
        let Call::Command { command, answer, .. } = self else { return false };
        match command {
            Get(_) | StrLen(_) | Exists(_) | MGet(_) => true,
            SetNx(..) | MSetNx(_) | RenameNx(..) | Copy(..) | CopyOver(..) | Del(_)
            | ExpireAt(..) | Persist(_) => {
                matches!(answer, Answer::Number(0) | Answer::Error(_))
            }
            GetDel(_) => *answer == Answer::None,
            IncrBy(..) | Rename(..) => matches!(answer, Answer::Error(_)),
            _ => false,
        }
    }

    fn show(state: &State) -> String {
        format!("{:?}, watched {:?}", state.entries, state.watches)
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Call::Command { database, command, answer, .. } => {
                write!(f, "{command:?} in {database} -> {answer:?}")
            }
            Call::Exec { database, commands, answers, .. } => {
                write!(f, "EXEC {commands:?} in {database} -> {answers:?}")
            }
            Call::Clock(now) => write!(f, "the clock is set to {}", now - START),
        }
    }
}
