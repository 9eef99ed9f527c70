//! A client that writes down what it asked, when, and what it was told.

use std::sync::Arc;

use sapwood_server::Service;
use sapwood_testkit::history::{Clock, Event};

use crate::client::{Client, Value, request};
use crate::histories::model::{Answer, Call, Command};
use crate::sockets::Wire;

/// Takes requests, and answers as many replies.
pub(crate) trait Line: Send {
    fn ask(&mut self, requests: &[u8], count: usize) -> Vec<Value>;
}

impl Line for Client {
    fn ask(&mut self, requests: &[u8], count: usize) -> Vec<Value> {
        let replies = self.send(requests);
        assert_eq!(replies.len(), count, "each request has its reply");
        replies
    }
}

impl Line for Wire {
    fn ask(&mut self, requests: &[u8], count: usize) -> Vec<Value> {
        self.replies(requests, count)
    }
}

/// A session without a socket.
pub(crate) fn within(service: &Arc<Service>) -> Box<dyn Line> {
    Box::new(Client::new(service))
}

/// A request of a pipeline.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    Command(Command),
    Exec(Vec<Command>),
    Select(usize),
}

impl Request {
    /// Replies to it.
    fn replies(&self) -> usize {
        match self {
            Request::Command(_) | Request::Select(_) => 1,
            Request::Exec(commands) => commands.len() + 2,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let of = |args: Vec<Vec<u8>>| {
            let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
            request(&args)
        };
        match self {
            Request::Command(command) => of(command.args()),
            Request::Select(database) => {
                of(vec![b"SELECT".to_vec(), database.to_string().into_bytes()])
            }
            Request::Exec(commands) => {
                let queued = commands.iter().flat_map(|command| of(command.args()));
                let (begin, end) = (of(vec![b"MULTI".to_vec()]), of(vec![b"EXEC".to_vec()]));
                begin.into_iter().chain(queued).chain(end).collect()
            }
        }
    }
}

/// A client.
pub(crate) struct Recorder<'c> {
    pub(crate) client: usize,
    clock: &'c Clock,
    line: Box<dyn Line>,
    database: usize,
    pub(crate) events: Vec<Event<Call>>,
}

impl<'c> Recorder<'c> {
    pub(crate) fn new(client: usize, clock: &'c Clock, line: Box<dyn Line>) -> Recorder<'c> {
        Recorder { client, clock, line, database: 0, events: Vec::new() }
    }

    /// Sends a pipeline and takes its replies. Its requests come one after the other; neighbouring
    /// `GET`s are one batch, whose searches overlap, and come in any order.
    pub(crate) fn pipeline(&mut self, requests: &[Request]) {
        let is_get = |request: &Request| matches!(request, Request::Command(Command::Get(_)));
        let mut begins: Vec<u64> = Vec::with_capacity(requests.len());
        for (at, request) in requests.iter().enumerate() {
            let of_batch = at > 0 && is_get(request) && is_get(&requests[at - 1]);
            begins.push(if of_batch { begins[at - 1] } else { self.clock.tick() });
        }
        let bytes: Vec<u8> = requests.iter().flat_map(Request::bytes).collect();
        let count = requests.iter().map(Request::replies).sum();
        let mut replies = self.line.ask(&bytes, count).into_iter();
        let end = self.clock.tick();
        for (request, begin) in requests.iter().zip(begins) {
            let own: Vec<Value> = replies.by_ref().take(request.replies()).collect();
            if let Some(call) = self.call(request, own) {
                self.events.push(Event { thread: self.client, begin, end, call });
            }
        }
    }

    /// What a request and its replies were.
    fn call(&mut self, request: &Request, mut replies: Vec<Value>) -> Option<Call> {
        let client = self.client;
        let last = replies.pop().expect("a reply");
        match request {
            Request::Select(database) => {
                assert_eq!(Answer::from(last), Answer::Ok, "{request:?}");
                self.database = *database;
                None
            }
            Request::Command(command) => Some(Call::Command {
                client,
                database: self.database,
                command: command.clone(),
                answer: last.into(),
            }),
            Request::Exec(commands) => {
                let queued = std::iter::repeat_n("QUEUED", commands.len());
                let expected = std::iter::once("OK").chain(queued);
                let expected: Vec<Value> =
                    expected.map(|word| Value::Simple(word.to_owned())).collect();
                assert_eq!(replies, expected, "{request:?}");
                let answers = match last {
                    Value::Null => None,
                    Value::Array(answers) => Some(answers.into_iter().map(Answer::from).collect()),
                    other => panic!("{request:?}: {other:?}"),
                };
                let (database, commands) = (self.database, commands.clone());
                Some(Call::Exec { client, database, commands, answers })
            }
        }
    }
}
