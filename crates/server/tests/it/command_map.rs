//! A map that answers commands as Redis does: strings, keys, ends of times, counters, transactions
//! and databases, for several sessions.
//!
//! It knows the commands' arguments as clients send them, so that a transaction is a list of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::client::{START, Value, ok};

type Key = Vec<u8>;
type Keys = BTreeSet<Key>;
type Answer = Result<Expected, String>;

const DATABASES: usize = 16;
/// Bytes of text from which on Redis reads no number.
const FLOAT_BYTES_LIMIT: usize = 5 * 1024;

/// What a reply is to be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expected {
    Is(Value),
    /// An array of all these, in any order.
    Keys(Keys),
    /// One of these; null if there are none.
    OneOf(Keys),
    /// An array of such replies.
    All(Vec<Expected>),
}

impl Expected {
    pub(crate) fn holds(&self, reply: &Value) -> bool {
        match (self, reply) {
            (Expected::Is(value), reply) => value == reply,
            (Expected::Keys(keys), Value::Array(found)) => {
                let bytes = found.iter().filter_map(|key| match key {
                    Value::Bulk(key) => Some(key.clone()),
                    _ => None,
                });
                found.len() == keys.len() && bytes.collect::<Keys>() == *keys
            }
            (Expected::OneOf(keys), Value::Bulk(key)) => keys.contains(key),
            (Expected::OneOf(keys), Value::Null) => keys.is_empty(),
            (Expected::All(all), Value::Array(replies)) => {
                let mut pairs = all.iter().zip(replies);
                all.len() == replies.len() && pairs.all(|(expected, reply)| expected.holds(reply))
            }
            _ => false,
        }
    }
}

#[derive(Debug, Clone)]
struct Entry {
    value: Vec<u8>,
    end: Option<u64>,
}

/// A key that a session watches, and its end as the watch began.
#[derive(Debug)]
struct Watched {
    database: usize,
    key: Key,
    end: Option<u64>,
}

#[derive(Debug, Default)]
struct Transaction {
    queued: Vec<Vec<Vec<u8>>>,
    is_broken: bool,
}

#[derive(Debug, Default)]
struct Session {
    database: usize,
    transaction: Option<Transaction>,
    watched: Vec<Watched>,
    has_changed: bool,
}

/// A walk over a database that other commands come between.
#[derive(Debug)]
struct Walk {
    database: usize,
    /// Keys that have been there all the time, and have to come.
    steady: Keys,
}

/// The databases of a service, and the sessions of its clients.
#[derive(Debug)]
pub(crate) struct Map {
    now: u64,
    databases: Vec<BTreeMap<Key, Entry>>,
    sessions: Vec<Session>,
    walk: Option<Walk>,
}

fn int(number: i64) -> Answer {
    Ok(Expected::Is(Value::Integer(number)))
}

fn count(number: usize) -> Answer {
    int(number as i64)
}

fn done() -> Answer {
    Ok(Expected::Is(ok()))
}

fn null() -> Answer {
    Ok(Expected::Is(Value::Null))
}

fn bulk(bytes: &[u8]) -> Answer {
    Ok(Expected::Is(Value::Bulk(bytes.to_vec())))
}

fn bulk_or_null(bytes: Option<&[u8]>) -> Answer {
    bytes.map_or_else(null, bulk)
}

fn error<T>(text: &str) -> Result<T, String> {
    Err(format!("ERR {text}"))
}

fn syntax<T>() -> Result<T, String> {
    error("syntax error")
}

fn lower(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_lowercase()
}

/// An integer as Redis writes it.
fn integer_of(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

fn integer(text: &[u8]) -> Result<i64, String> {
    integer_of(text).map_or_else(|| error("value is not an integer or out of range"), Ok)
}

/// The number of a database.
fn database(text: &[u8]) -> Result<usize, String> {
    let number = usize::try_from(integer(text)?).ok().filter(|number| *number < DATABASES);
    number.map_or_else(|| error("DB index is out of range"), Ok)
}

fn float(text: &[u8]) -> Result<f64, String> {
    let number = std::str::from_utf8(text).ok().filter(|_| text.len() < FLOAT_BYTES_LIMIT);
    let number = number.and_then(|text| text.parse().ok()).filter(|number: &f64| !number.is_nan());
    number.map_or_else(|| error("value is not a valid float"), Ok)
}

/// The number of arguments, with the name: at least, and at most.
fn arity(name: &str) -> Option<(usize, usize)> {
    const ANY: usize = usize::MAX;
    Some(match name {
        "multi" | "exec" | "discard" | "unwatch" | "randomkey" | "dbsize" | "reset" => (1, 1),
        "get" | "getdel" | "strlen" | "incr" | "decr" | "ttl" | "pttl" | "expiretime" => (2, 2),
        "pexpiretime" | "persist" | "type" | "keys" | "select" => (2, 2),
        "getset" | "setnx" | "append" | "incrby" | "decrby" | "incrbyfloat" => (3, 3),
        "rename" | "renamenx" => (3, 3),
        "setex" | "psetex" | "getrange" | "substr" | "setrange" => (4, 4),
        "flushdb" | "flushall" => (1, ANY),
        "getex" | "mget" | "del" | "unlink" | "exists" | "touch" | "watch" => (2, ANY),
        "set" | "mset" | "msetnx" | "expire" | "pexpire" | "expireat" | "pexpireat" | "copy" => {
            (3, ANY)
        }
        _ => return None,
    })
}

/// When a value is to end, as options say it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending<'a> {
    /// `KEEPTTL`, `PERSIST`.
    Word,
    /// An option, and its time.
    Time(&'static str, &'a [u8]),
}

impl<'a> Ending<'a> {
    /// Takes an option with its time, which may stand behind its like.
    fn take(option: &str, time: Option<&'a Vec<u8>>, before: &mut Option<Ending<'a>>) -> bool {
        let name = ["ex", "px", "exat", "pxat"].into_iter().find(|name| *name == option);
        let (Some(name), Some(time)) = (name, time) else { return false };
        let is_like = match before {
            None => true,
            Some(Ending::Word) => false,
            Some(Ending::Time(before, _)) => *before == name,
        };
        if is_like {
            *before = Some(Ending::Time(name, time));
        }
        is_like
    }
}

impl Map {
    pub(crate) fn new(sessions: usize) -> Map {
        Map {
            now: START,
            databases: vec![BTreeMap::new(); DATABASES],
            sessions: (0..sessions).map(|_| Session::default()).collect(),
            walk: None,
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Time passes: what has ended is not there any more.
    pub(crate) fn pass(&mut self, time: u64) {
        self.now += time;
        let now = self.now;
        for (number, database) in self.databases.iter_mut().enumerate() {
            let walk = &mut self.walk;
            database.retain(|key, entry| {
                let is_there = entry.end.is_none_or(|end| end > now);
                if let (false, Some(walk)) = (is_there, walk.as_mut())
                    && walk.database == number
                {
                    walk.steady.remove(key);
                }
                is_there
            });
        }
    }

    /// Whether a session's commands wait for `EXEC`.
    pub(crate) fn is_queuing(&self, session: usize) -> bool {
        self.sessions[session].transaction.is_some()
    }

    pub(crate) fn database_of(&self, session: usize) -> usize {
        self.sessions[session].database
    }

    /// The keys and values of a database.
    pub(crate) fn entries(&self, number: usize) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.databases[number].iter().map(|(key, entry)| (&key[..], &entry.value[..]))
    }

    pub(crate) fn contains(&self, database: usize, key: &[u8]) -> bool {
        self.databases[database].contains_key(key)
    }

    /// A walk over a database begins, and takes the place of the one before.
    pub(crate) fn begin_walk(&mut self, database: usize) {
        let steady = self.databases[database].keys().cloned().collect();
        self.walk = Some(Walk { database, steady });
    }

    /// The database that a walk goes over.
    pub(crate) fn walked(&self) -> Option<usize> {
        self.walk.as_ref().map(|walk| walk.database)
    }

    /// Ends the walk; answers the keys that have been there since it began.
    pub(crate) fn end_walk(&mut self) -> Keys {
        self.walk.take().map(|walk| walk.steady).unwrap_or_default()
    }

    /// The reply to a request of a session.
    pub(crate) fn answer(&mut self, session: usize, args: &[Vec<u8>]) -> Expected {
        let answer = self.request(session, args);
        answer.unwrap_or_else(|text| Expected::Is(Value::Error(text)))
    }

    fn request(&mut self, at: usize, args: &[Vec<u8>]) -> Answer {
        let name = lower(&args[0]);
        let is_legal = match arity(&name) {
            None => error(&format!("unknown command '{name}', with args beginning with: ")),
            Some((least, most)) if (least..=most).contains(&args.len()) => Ok(()),
            Some(_) => error(&format!("wrong number of arguments for '{name}' command")),
        };
        let session = &mut self.sessions[at];
        if let Err(text) = is_legal {
            if let Some(transaction) = &mut session.transaction {
                transaction.is_broken = true;
            }
            return Err(text);
        }
        match (&name[..], &mut session.transaction) {
            ("multi", Some(_)) => error("MULTI calls can not be nested"),
            ("multi", transaction) => {
                *transaction = Some(Transaction::default());
                done()
            }
            ("watch", Some(_)) => error("WATCH inside MULTI is not allowed"),
            ("discard", None) => error("DISCARD without MULTI"),
            ("discard", Some(_)) => {
                session.transaction = None;
                self.unwatch(at);
                done()
            }
            ("exec", None) => error("EXEC without MULTI"),
            ("exec", Some(_)) => self.exec(at),
            ("reset", _) => {
                session.transaction = None;
                session.database = 0;
                self.unwatch(at);
                Ok(Expected::Is(Value::Simple("RESET".to_owned())))
            }
            (_, Some(transaction)) => {
                transaction.queued.push(args.to_vec());
                Ok(Expected::Is(Value::Simple("QUEUED".to_owned())))
            }
            (name, None) => self.execute(at, name, args),
        }
    }

    fn exec(&mut self, at: usize) -> Answer {
        let now = self.now;
        let session = &mut self.sessions[at];
        let has_ended = session.watched.iter().any(|it| it.end.is_some_and(|end| end <= now));
        let has_changed = session.has_changed || has_ended;
        let transaction = session.transaction.take().unwrap_or_default();
        self.unwatch(at);
        if transaction.is_broken {
            let text = "EXECABORT Transaction discarded because of previous errors.";
            return Err(text.to_owned());
        }
        if has_changed {
            return null();
        }
        let answer = |args: &Vec<Vec<u8>>| {
            let answer = self.execute(at, &lower(&args[0]), args);
            answer.unwrap_or_else(|text| Expected::Is(Value::Error(text)))
        };
        Ok(Expected::All(transaction.queued.iter().map(answer).collect()))
    }

    fn unwatch(&mut self, at: usize) {
        let session = &mut self.sessions[at];
        session.watched.clear();
        session.has_changed = false;
    }

    fn watch(&mut self, at: usize, keys: &[Vec<u8>]) -> Answer {
        for key in keys {
            let end = self.entry(at, key).and_then(|entry| entry.end);
            let session = &mut self.sessions[at];
            let database = session.database;
            if !session.watched.iter().any(|it| it.database == database && it.key == *key) {
                session.watched.push(Watched { database, key: key.clone(), end });
            }
        }
        done()
    }

    fn touch(&mut self, database: usize, key: &[u8]) {
        for session in &mut self.sessions {
            session.has_changed |=
                session.watched.iter().any(|it| it.database == database && it.key == key);
        }
    }

    fn entry(&self, at: usize, key: &[u8]) -> Option<&Entry> {
        self.databases[self.sessions[at].database].get(key)
    }

    fn put(&mut self, database: usize, key: &[u8], value: &[u8], end: Option<u64>) {
        self.touch(database, key);
        if end.is_some_and(|end| end <= self.now) {
            self.remove(database, key);
        } else {
            self.databases[database].insert(key.to_vec(), Entry { value: value.to_vec(), end });
        }
    }

    fn remove(&mut self, database: usize, key: &[u8]) -> Option<Entry> {
        let entry = self.databases[database].remove(key);
        if entry.is_some() {
            self.touch(database, key);
            if let Some(walk) = self.walk.as_mut().filter(|walk| walk.database == database) {
                walk.steady.remove(key);
            }
        }
        entry
    }

    fn execute(&mut self, at: usize, name: &str, args: &[Vec<u8>]) -> Answer {
        let own = self.sessions[at].database;
        let keys = &args[1..];
        match name {
            "get" => bulk_or_null(self.entry(at, &keys[0]).map(|entry| &entry.value[..])),
            "strlen" => count(self.entry(at, &keys[0]).map_or(0, |entry| entry.value.len())),
            "set" => self.set(at, args),
            "getset" => self.set(at, &[args, &[b"get".to_vec()]].concat()),
            "setnx" => {
                let is_set = self.entry(at, &keys[0]).is_none();
                if is_set {
                    self.put(own, &keys[0], &keys[1], None);
                }
                int(i64::from(is_set))
            }
            "setex" | "psetex" => {
                let option = if name == "setex" { "ex" } else { "px" };
                let end = self.end_of(name, option, &keys[1])?;
                self.put(own, &keys[0], &keys[2], Some(end));
                done()
            }
            "getdel" => {
                let old = self.remove(own, &keys[0]);
                bulk_or_null(old.as_ref().map(|entry| &entry.value[..]))
            }
            "getex" => self.getex(at, args),
            "mget" => {
                let value = |key: &Vec<u8>| {
                    let value = self.entry(at, key).map(|entry| entry.value.clone());
                    Expected::Is(value.map_or(Value::Null, Value::Bulk))
                };
                Ok(Expected::All(keys.iter().map(value).collect()))
            }
            "mset" | "msetnx" => {
                if !keys.len().is_multiple_of(2) {
                    return error(&format!("wrong number of arguments for '{name}' command"));
                }
                let mut pairs = keys.chunks_exact(2);
                if name == "msetnx" && pairs.clone().any(|pair| self.contains(own, &pair[0])) {
                    return int(0);
                }
                pairs.by_ref().for_each(|pair| self.put(own, &pair[0], &pair[1], None));
                if name == "mset" { done() } else { int(1) }
            }
            "append" => {
                let old = self.entry(at, &keys[0]).cloned();
                let (mut value, end) = old.map_or((Vec::new(), None), |old| (old.value, old.end));
                value.extend_from_slice(&keys[1]);
                self.put(own, &keys[0], &value, end);
                count(value.len())
            }
            "getrange" | "substr" => self.getrange(at, keys),
            "setrange" => self.setrange(at, keys),
            "incr" | "decr" | "incrby" | "decrby" => self.add(at, name, keys),
            "incrbyfloat" => self.add_float(at, keys),
            "expire" | "pexpire" | "expireat" | "pexpireat" => self.expire(at, name, keys),
            "ttl" | "pttl" | "expiretime" | "pexpiretime" => {
                let Some(entry) = self.entry(at, &keys[0]) else { return int(-2) };
                let Some(end) = entry.end else { return int(-1) };
                int(match name {
                    "ttl" => (end - self.now + 500) / 1000,
                    "pttl" => end - self.now,
                    "expiretime" => (end + 500) / 1000,
                    _ => end,
                } as i64)
            }
            "persist" => {
                let Some(Entry { value, end: Some(_) }) = self.entry(at, &keys[0]).cloned() else {
                    return int(0);
                };
                self.put(own, &keys[0], &value, None);
                int(1)
            }
            "del" | "unlink" => {
                count(keys.iter().filter(|key| self.remove(own, key).is_some()).count())
            }
            "exists" | "touch" => count(keys.iter().filter(|key| self.contains(own, key)).count()),
            "type" => {
                let of = if self.contains(own, &keys[0]) { "string" } else { "none" };
                Ok(Expected::Is(Value::Simple(of.to_owned())))
            }
            // The one pattern that streams have.
            "keys" => Ok(Expected::Keys(self.databases[own].keys().cloned().collect())),
            "randomkey" => Ok(Expected::OneOf(self.databases[own].keys().cloned().collect())),
            "dbsize" => count(self.databases[own].len()),
            "rename" | "renamenx" => self.rename(at, name == "rename", keys),
            "copy" => self.copy(at, keys),
            "flushdb" => {
                self.flush(own);
                done()
            }
            "flushall" => {
                (0..DATABASES).for_each(|number| self.flush(number));
                done()
            }
            "select" => {
                self.sessions[at].database = database(&keys[0])?;
                done()
            }
            "watch" => self.watch(at, keys),
            "unwatch" => {
                self.unwatch(at);
                done()
            }
            _ => unreachable!("its number of arguments is known"),
        }
    }

    fn flush(&mut self, number: usize) {
        let keys: Vec<Key> = self.databases[number].keys().cloned().collect();
        for key in keys {
            self.remove(number, &key);
        }
    }

    /// When a time that a client gave ends.
    fn end_of(&self, name: &str, option: &str, time: &[u8]) -> Result<u64, String> {
        let invalid = || format!("ERR invalid expire time in '{name}' command");
        let time = integer(time)?;
        let unit = if option.starts_with("ex") { 1000 } else { 1 };
        let base = if option.ends_with("at") { 0 } else { self.now as i64 };
        if time <= 0 {
            return Err(invalid());
        }
        let end = time.checked_mul(unit).and_then(|time| time.checked_add(base));
        end.map(|end| end as u64).ok_or_else(invalid)
    }

    fn set(&mut self, at: usize, args: &[Vec<u8>]) -> Answer {
        let (key, value) = (&args[1], &args[2]);
        let (mut condition, mut gets, mut ending) = (None, false, None);
        let mut place = 3;
        while let Some(option) = args.get(place).map(|option| lower(option)) {
            place += 1;
            match &option[..] {
                "nx" if condition != Some(true) => condition = Some(false),
                "xx" if condition != Some(false) => condition = Some(true),
                "get" => gets = true,
                "keepttl" if matches!(ending, None | Some(Ending::Word)) => {
                    ending = Some(Ending::Word);
                }
                _ if Ending::take(&option, args.get(place), &mut ending) => place += 1,
                _ => return syntax(),
            }
        }
        let old = self.entry(at, key).cloned();
        let end = match ending {
            None => None,
            Some(Ending::Word) => old.as_ref().and_then(|old| old.end),
            Some(Ending::Time(option, time)) => Some(self.end_of("set", option, time)?),
        };
        let is_set = condition.is_none_or(|wanted| wanted == old.is_some());
        if is_set {
            self.put(self.sessions[at].database, key, value, end);
        }
        match gets {
            true => bulk_or_null(old.as_ref().map(|old| &old.value[..])),
            false if is_set => done(),
            false => null(),
        }
    }

    fn getex(&mut self, at: usize, args: &[Vec<u8>]) -> Answer {
        let mut ending = None;
        let mut place = 2;
        while let Some(option) = args.get(place).map(|option| lower(option)) {
            place += 1;
            match &option[..] {
                "persist" if matches!(ending, None | Some(Ending::Word)) => {
                    ending = Some(Ending::Word);
                }
                _ if Ending::take(&option, args.get(place), &mut ending) => place += 1,
                _ => return syntax(),
            }
        }
        let Some(Entry { value, end }) = self.entry(at, &args[1]).cloned() else { return null() };
        let own = self.sessions[at].database;
        match ending {
            Some(Ending::Word) if end.is_some() => self.put(own, &args[1], &value, None),
            None | Some(Ending::Word) => {}
            Some(Ending::Time(option, time)) => {
                let end = self.end_of("getex", option, time)?;
                self.put(own, &args[1], &value, Some(end));
            }
        }
        bulk(&value)
    }

    fn getrange(&self, at: usize, keys: &[Vec<u8>]) -> Answer {
        let (from, to) = (integer(&keys[1])?, integer(&keys[2])?);
        let value = self.entry(at, &keys[0]).map_or(&[][..], |entry| &entry.value);
        // Redis: both from the end, and the wrong way round.
        if from < 0 && to < 0 && from > to {
            return bulk(&[]);
        }
        let len = value.len() as i128;
        let place = |at: i64| {
            let at = i128::from(at);
            if at < 0 { (at + len).max(0) } else { at }
        };
        let (from, to) = (place(from), place(to).min(len - 1));
        if from > to { bulk(&[]) } else { bulk(&value[from as usize..=to as usize]) }
    }

    fn setrange(&mut self, at: usize, keys: &[Vec<u8>]) -> Answer {
        let Ok(offset) = usize::try_from(integer(&keys[1])?) else {
            return error("offset is out of range");
        };
        let old = self.entry(at, &keys[0]).cloned();
        let (mut value, end) = old.map_or((Vec::new(), None), |old| (old.value, old.end));
        let piece = &keys[2];
        if !piece.is_empty() {
            value.resize(value.len().max(offset + piece.len()), 0);
            value[offset..offset + piece.len()].copy_from_slice(piece);
            self.put(self.sessions[at].database, &keys[0], &value, end);
        }
        count(value.len())
    }

    fn add(&mut self, at: usize, name: &str, keys: &[Vec<u8>]) -> Answer {
        let delta = match name {
            "incr" => 1,
            "decr" => -1,
            "incrby" => integer(&keys[1])?,
            _ => match integer(&keys[1])?.checked_neg() {
                Some(delta) => delta,
                None => return error("decrement would overflow"),
            },
        };
        let old = self.entry(at, &keys[0]).cloned();
        let (value, end) = old.map_or((b"0".to_vec(), None), |old| (old.value, old.end));
        let Some(sum) = integer(&value)?.checked_add(delta) else {
            return error("increment or decrement would overflow");
        };
        self.put(self.sessions[at].database, &keys[0], sum.to_string().as_bytes(), end);
        int(sum)
    }

    fn add_float(&mut self, at: usize, keys: &[Vec<u8>]) -> Answer {
        let delta = float(&keys[1])?;
        let old = self.entry(at, &keys[0]).cloned();
        let (value, end) = old.map_or((b"0".to_vec(), None), |old| (old.value, old.end));
        let sum = float(&value)? + delta;
        if !sum.is_finite() {
            return error("increment would produce NaN or Infinity");
        }
        // Streams have quarters alone, so no sum has many digits behind its point.
        let text = if sum == 0.0 { "0".to_owned() } else { sum.to_string() };
        self.put(self.sessions[at].database, &keys[0], text.as_bytes(), end);
        bulk(text.as_bytes())
    }

    fn expire(&mut self, at: usize, name: &str, keys: &[Vec<u8>]) -> Answer {
        let options: Vec<String> = keys[2..].iter().map(|option| lower(option)).collect();
        let known = ["nx", "xx", "gt", "lt"];
        if let Some(at) = options.iter().position(|option| !known.contains(&&option[..])) {
            let option = String::from_utf8_lossy(&keys[2 + at]);
            return error(&format!("Unsupported option {option}"));
        }
        let has = |word: &str| options.iter().any(|option| option == word);
        if has("nx") && (has("xx") || has("gt") || has("lt")) {
            return error("NX and XX, GT or LT options at the same time are not compatible");
        }
        if has("gt") && has("lt") {
            return error("GT and LT options at the same time are not compatible");
        }
        let time = integer(&keys[1])?;
        let unit = if name.starts_with('p') { 1 } else { 1000 };
        let base = if name.ends_with("at") { 0 } else { self.now as i64 };
        let Some(end) = time.checked_mul(unit).and_then(|time| time.checked_add(base)) else {
            return error(&format!("invalid expire time in '{name}' command"));
        };
        let Some(old) = self.entry(at, &keys[0]).cloned() else { return int(0) };
        // A key without an end ends later than any other.
        let before = old.end.map_or(i128::MAX, i128::from);
        let is_refused = has("nx") && old.end.is_some()
            || has("xx") && old.end.is_none()
            || has("gt") && i128::from(end) <= before
            || has("lt") && i128::from(end) >= before;
        if is_refused {
            return int(0);
        }
        let end = u64::try_from(end).unwrap_or(0);
        self.put(self.sessions[at].database, &keys[0], &old.value, Some(end));
        int(1)
    }

    fn rename(&mut self, at: usize, replaces: bool, keys: &[Vec<u8>]) -> Answer {
        let own = self.sessions[at].database;
        let (from, to) = (&keys[0], &keys[1]);
        let Some(old) = self.entry(at, from).cloned() else { return error("no such key") };
        let moves = from != to && (replaces || !self.contains(own, to));
        if moves {
            self.put(own, to, &old.value, old.end);
            self.remove(own, from);
        }
        if replaces { done() } else { int(i64::from(moves)) }
    }

    fn copy(&mut self, at: usize, keys: &[Vec<u8>]) -> Answer {
        let own = self.sessions[at].database;
        let (mut target, mut replaces) = (own, false);
        let mut options = keys[2..].iter();
        while let Some(option) = options.next() {
            match &lower(option)[..] {
                "replace" => replaces = true,
                "db" => match options.next() {
                    Some(number) => target = database(number)?,
                    None => return syntax(),
                },
                _ => return syntax(),
            }
        }
        if target == own && keys[0] == keys[1] {
            return error("source and destination objects are the same");
        }
        let Some(old) = self.entry(at, &keys[0]).cloned() else { return int(0) };
        if !replaces && self.contains(target, &keys[1]) {
            return int(0);
        }
        self.put(target, &keys[1], &old.value, old.end);
        int(1)
    }
}
