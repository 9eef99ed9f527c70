//! A client without a socket: requests in, replies taken apart.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sapwood::Db;
use sapwood_server::clock::Clock;
use sapwood_server::service::Options;
use sapwood_server::session::Next;
use sapwood_server::{Service, Session};

/// The time at which clocks stand that tests set.
pub(crate) const START: u64 = 1_700_000_000_000;

/// A service in memory whose clock is set by hand.
pub(crate) fn service() -> Arc<Service> {
    let clock = Clock::Manual(AtomicU64::new(START));
    let options = Options { clock, threads: 4, ..Options::default() };
    Arc::new(Service::new(Db::in_memory(), options).expect("memory"))
}

/// A reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Double(String),
    Big(String),
    Boolean(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Integer(number)
    }
}

pub(crate) fn ok() -> Value {
    Value::Simple("OK".to_owned())
}

/// The replies in some bytes.
pub(crate) fn replies(mut bytes: &[u8]) -> Vec<Value> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        let (value, rest) = reply(bytes);
        replies.push(value);
        bytes = rest;
    }
    replies
}

fn reply(bytes: &[u8]) -> (Value, &[u8]) {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n").expect("a line");
    let line = std::str::from_utf8(&bytes[1..end]).expect("text").to_owned();
    let rest = &bytes[end + 2..];
    let len = || line.parse::<i64>().expect("a number");
    let values = |count: usize, mut rest| {
        let mut values = Vec::new();
        for _ in 0..count {
            let (value, behind) = reply(rest);
            values.push(value);
            rest = behind;
        }
        (values, rest)
    };
    match bytes[0] {
        b'+' => (Value::Simple(line), rest),
        b'-' => (Value::Error(line), rest),
        b':' => (Value::Integer(len()), rest),
        b',' => (Value::Double(line), rest),
        b'(' => (Value::Big(line), rest),
        b'_' => (Value::Null, rest),
        b'#' => (Value::Boolean(line == "t"), rest),
        b'$' | b'=' | b'*' | b'~' | b'>' if len() < 0 => (Value::Null, rest),
        b'$' | b'=' => {
            let (value, behind) = rest.split_at(len() as usize);
            (Value::Bulk(value.to_vec()), behind.strip_prefix(b"\r\n").expect("its end"))
        }
        b'*' | b'~' | b'>' => {
            let (values, rest) = values(len() as usize, rest);
            (Value::Array(values), rest)
        }
        b'%' => {
            let (values, rest) = values(2 * len() as usize, rest);
            let pairs = values.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
            (Value::Map(pairs.collect()), rest)
        }
        other => panic!("no reply begins with {:?}", char::from(other)),
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

/// A request as clients send it.
pub(crate) fn request(args: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// A client.
pub(crate) struct Client {
    session: Session,
}

impl Client {
    pub(crate) fn new(service: &Arc<Service>) -> Client {
        Client { session: Session::new(Arc::clone(service)) }
    }

    /// Sends requests and takes all replies.
    pub(crate) fn send(&mut self, mut requests: &[u8]) -> Vec<Value> {
        let mut out = Vec::new();
        loop {
            let (used, next) = self.session.run(requests, &mut out);
            requests = &requests[used..];
            match next {
                Next::More => {
                    assert!(requests.is_empty(), "a whole request is executed");
                    return replies(&out);
                }
                Next::Full => {}
                Next::Job(job) => job.run(&mut out),
                Next::Close => return replies(&out),
            }
        }
    }

    /// The reply to one request.
    pub(crate) fn call(&mut self, args: &[&[u8]]) -> Value {
        let mut replies = self.send(&request(args));
        assert_eq!(replies.len(), 1, "a request has one reply");
        replies.remove(0)
    }

    /// The messages that have come beside replies.
    pub(crate) fn messages(&mut self) -> Vec<Value> {
        let mut out = Vec::new();
        self.session.messages(&mut out);
        replies(&out)
    }

    /// The reply to the words of a line.
    pub(crate) fn line(&mut self, line: &str) -> Value {
        let args: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        self.call(&args)
    }
}
