//! Requests and their replies, one after the other, with what a client must remember between them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use sapwood::aggregate::Cancel;
use sapwood_server::Service;

use super::address::{Address, Secret};
use super::in_process::InProcess;
use super::link::{Cancelled, Link, Received};
use super::remote::Remote;
use super::value::{Decoder, Value};

/// How often a wait looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);
/// How long a cancelled command may take to say so.
const PATIENCE: Duration = Duration::from_secs(2);

/// The other side of a conversation.
#[derive(Debug)]
pub(crate) enum Target {
    /// A database in this process, and its name for people.
    InProcess(Arc<Service>, String),
    Server(Box<Address>, Option<Arc<ClientConfig>>),
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The user stopped the command.
    Cancelled(&'static str),
    /// The other side is not there, or speaks another language.
    Lost(String),
}

/// Requests and replies over a link, which is made anew when it is lost.
#[derive(Debug)]
pub(crate) struct Conversation {
    target: Target,
    link: Option<Box<dyn Link>>,
    decoder: Decoder,
    /// Messages that came and were not shown.
    messages: Vec<Value>,
    /// The database that the other side is in.
    pub(crate) database: u32,
    pub(crate) is_in_transaction: bool,
    /// Whether version 3 of the protocol is spoken.
    is_version_3: bool,
    /// Whether the user has asked for the end.
    pub(crate) is_ended: bool,
}

impl Conversation {
    pub(crate) fn new(target: Target) -> Conversation {
        let database = match &target {
            Target::Server(address, _) => address.database,
            Target::InProcess(..) => 0,
        };
        Conversation {
            target,
            link: None,
            decoder: Decoder::default(),
            messages: Vec::new(),
            database,
            is_in_transaction: false,
            is_version_3: false,
            is_ended: false,
        }
    }

    /// The name of the other side, with the database and the transaction that it is in.
    pub(crate) fn label(&self) -> String {
        let mut label = match &self.target {
            Target::InProcess(_, name) => name.clone(),
            Target::Server(address, _) => address.to_string(),
        };
        if self.database != 0 {
            label += &format!("[{}]", self.database);
        }
        if self.is_in_transaction {
            label += "(TX)";
        }
        label
    }

    /// Opens the link, if there is none. The answer is a refusal of the other side to go on before
    /// something is done, such as `AUTH`.
    ///
    /// # Errors
    /// [`Failed::Lost`] without the other side, or if it does not accept the password.
    pub(crate) fn open(&mut self, cancel: &Cancel) -> Result<Option<String>, Failed> {
        if self.link.is_some() {
            return Ok(None);
        }
        self.decoder = Decoder::default();
        self.is_in_transaction = false;
        self.is_version_3 = false;
        let mut greeting = None;
        match &self.target {
            Target::InProcess(service, _) => self.link = Some(Box::new(InProcess::new(service))),
            Target::Server(address, tls) => {
                let unreached =
                    |error| Failed::Lost(format!("{address} cannot be reached: {error}"));
                let remote = Remote::connect(&address.socket, tls.as_ref()).map_err(unreached)?;
                self.link = Some(Box::new(remote));
                if let Some(Secret(password)) = &address.password {
                    let mut words = vec![b"AUTH".to_vec()];
                    words.extend(address.user.iter().map(|user| user.clone().into_bytes()));
                    words.push(password.clone().into_bytes());
                    greeting = Some(words);
                }
            }
        }
        if let Some(words) = greeting
            && let Value::Error(refusal) = self.exchange(&words, cancel)?
        {
            self.link = None;
            return Err(Failed::Lost(super::words::text(&refusal)));
        }
        self.greet(cancel)
    }

    /// Chooses version 3 of the protocol, and the database.
    fn greet(&mut self, cancel: &Cancel) -> Result<Option<String>, Failed> {
        let mut refusal = None;
        match self.exchange(&[b"HELLO".to_vec(), b"3".to_vec()], cancel)? {
            // An old server speaks version 2 alone.
            Value::Error(text) if !text.starts_with(b"ERR unknown command") => {
                refusal = Some(super::words::text(&text));
            }
            Value::Error(_) => {}
            _ => self.is_version_3 = true,
        }
        if self.database != 0 && refusal.is_none() {
            let number = self.database.to_string().into_bytes();
            if let Value::Error(text) = self.exchange(&[b"SELECT".to_vec(), number], cancel)? {
                self.database = 0;
                refusal = Some(super::words::text(&text));
            }
        }
        Ok(refusal)
    }

    /// Sends a command and waits for its reply. Messages that come before it are kept.
    ///
    /// # Errors
    /// [`Failed`]; the next call opens another link.
    pub(crate) fn call(&mut self, words: &[Vec<u8>], cancel: &Cancel) -> Result<Value, Failed> {
        self.open(cancel)?;
        let reply = self.exchange(words, cancel)?;
        self.note(words, &reply, cancel)?;
        Ok(reply)
    }

    fn exchange(&mut self, words: &[Vec<u8>], cancel: &Cancel) -> Result<Value, Failed> {
        let result = self.exchange_over_link(words, cancel);
        if result.is_err() {
            self.link = None;
            self.is_in_transaction = false;
        }
        result
    }

    fn exchange_over_link(&mut self, words: &[Vec<u8>], cancel: &Cancel) -> Result<Value, Failed> {
        let lost = |error| Failed::Lost(format!("the connection is lost: {error}"));
        let Some(link) = &mut self.link else { return Err(ended()) };
        link.send(&request(words)).map_err(lost)?;
        let mut awaited = awaited_messages(words);
        let mut given_up: Option<Instant> = None;
        loop {
            while let Some(value) = self.decoder.next().map_err(malformed)? {
                match value {
                    Value::Push(message) => {
                        self.messages.push(Value::Push(message));
                        if awaited > 0 {
                            awaited -= 1;
                            if awaited == 0 {
                                return Ok(Value::Push(Vec::new()));
                            }
                        }
                    }
                    reply => return Ok(reply),
                }
            }
            let Some(link) = &mut self.link else { return Err(ended()) };
            match given_up {
                None if cancel.is_cancelled() => match link.cancel() {
                    Cancelled::Answers => given_up = Some(Instant::now()),
                    Cancelled::Silent => return Err(CANCELLED),
                },
                Some(since) if since.elapsed() > PATIENCE => return Err(CANCELLED),
                _ => {}
            }
            if link.receive(self.decoder.buffer(), LOOK).map_err(lost)? == Received::Ended {
                // A reply may lie before the end.
                return match self.decoder.next().map_err(malformed)? {
                    Some(reply) => Ok(reply),
                    None => Err(ended()),
                };
            }
        }
    }

    /// Remembers what a command has changed about the session.
    fn note(&mut self, words: &[Vec<u8>], reply: &Value, cancel: &Cancel) -> Result<(), Failed> {
        let is = |name: &str| words[0].eq_ignore_ascii_case(name.as_bytes());
        let is_done = !matches!(reply, Value::Error(_));
        let is_queued = reply.bytes() == Some(b"QUEUED");
        if is("exec") || is("discard") {
            let is_open = matches!(reply, Value::Error(text) if text.starts_with(b"ERR"));
            self.is_in_transaction &= is_open;
        } else if is("quit") {
            self.is_ended = true;
        } else if !is_done || is_queued {
            return Ok(());
        } else if is("multi") {
            self.is_in_transaction = true;
        } else if is("select") {
            let number = words.get(1).and_then(|number| std::str::from_utf8(number).ok());
            self.database = number.and_then(|number| number.parse().ok()).unwrap_or_default();
        } else if is("reset") {
            self.is_in_transaction = false;
            self.database = 0;
            self.greet(cancel)?;
        } else if is("auth") && !self.is_version_3 {
            self.greet(cancel)?;
        }
        Ok(())
    }

    /// Messages that have come; waits for one, but not much longer than `patience`.
    ///
    /// # Errors
    /// [`Failed::Lost`]; the next call opens another link.
    pub(crate) fn messages(&mut self, patience: Duration) -> Result<Vec<Value>, Failed> {
        if self.messages.is_empty()
            && let Err(failed) = self.receive_messages(patience)
        {
            self.link = None;
            return Err(failed);
        }
        Ok(std::mem::take(&mut self.messages))
    }

    fn receive_messages(&mut self, patience: Duration) -> Result<(), Failed> {
        let Some(link) = &mut self.link else { return Ok(()) };
        let lost = |error| Failed::Lost(format!("the connection is lost: {error}"));
        let received = link.receive(self.decoder.buffer(), patience).map_err(lost)?;
        while let Some(message) = self.decoder.next().map_err(malformed)? {
            self.messages.push(message);
        }
        match received {
            Received::Ended if self.messages.is_empty() => Err(ended()),
            _ => Ok(()),
        }
    }

    /// Messages that came before the last reply.
    pub(crate) fn kept_messages(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.messages)
    }
}

const CANCELLED: Failed = Failed::Cancelled(
    "cancelled; what it had done stays done, and the next command begins a new session",
);

fn ended() -> Failed {
    Failed::Lost("the other side has closed the connection".to_owned())
}

fn malformed(error: super::value::Malformed) -> Failed {
    Failed::Lost(error.to_string())
}

/// A request, as every version of the protocol has it.
fn request(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Messages that are a command's answer: one for each channel.
fn awaited_messages(words: &[Vec<u8>]) -> usize {
    if is_subscription(words) || names(words, &["unsubscribe", "punsubscribe", "sunsubscribe"]) {
        words.len().max(2) - 1
    } else {
        0
    }
}

/// Whether a command asks for messages.
pub(crate) fn is_subscription(words: &[Vec<u8>]) -> bool {
    names(words, &["subscribe", "psubscribe", "ssubscribe"])
}

fn names(words: &[Vec<u8>], names: &[&str]) -> bool {
    let Some(word) = words.first() else { return false };
    names.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
}
