//! A session over a database in this process.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use sapwood::aggregate::Cancel;
use sapwood_server::jobs::Job;
use sapwood_server::session::Next;
use sapwood_server::{Service, Session};

use super::link::{Cancelled, Link, Received};

/// A session, and the bytes on both of its sides.
#[derive(Debug)]
pub(crate) struct InProcess {
    session: Session,
    /// Requests that are not executed yet.
    input: Vec<u8>,
    /// Replies that are not taken yet.
    replies: Vec<u8>,
    job: Option<Running>,
    is_ended: bool,
}

/// A command that takes long, on a thread of its own.
#[derive(Debug)]
struct Running {
    cancel: Cancel,
    reply: mpsc::Receiver<Vec<u8>>,
}

impl Running {
    fn start(job: Job) -> io::Result<Running> {
        let cancel = job.cancel();
        let (sender, reply) = mpsc::channel();
        thread::Builder::new().name("command".to_owned()).spawn(move || {
            let mut bytes = Vec::new();
            job.run(&mut bytes);
            // A command that was given up has no reader.
            let _ = sender.send(bytes);
        })?;
        Ok(Running { cancel, reply })
    }
}

impl InProcess {
    pub(crate) fn new(service: &Arc<Service>) -> InProcess {
        InProcess {
            session: Session::new(Arc::clone(service)),
            input: Vec::new(),
            replies: Vec::new(),
            job: None,
            is_ended: false,
        }
    }

    /// Executes requests until one takes long, or none is left.
    fn go_on(&mut self) -> io::Result<()> {
        while self.job.is_none() && !self.is_ended && !self.input.is_empty() {
            let (used, next) = self.session.run(&self.input, &mut self.replies);
            self.input.drain(..used);
            match next {
                Next::Full if used > 0 => {}
                // Without progress clients are paused.
                Next::More | Next::Full => return Ok(()),
                Next::Job(job) => self.job = Some(Running::start(job)?),
                Next::Close => self.is_ended = true,
            }
        }
        Ok(())
    }
}

impl Link for InProcess {
    fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.input.extend_from_slice(request);
        self.go_on()
    }

    fn receive(&mut self, into: &mut Vec<u8>, patience: Duration) -> io::Result<Received> {
        self.session.messages(&mut self.replies);
        if self.replies.is_empty() && !self.is_ended {
            match &self.job {
                Some(job) => match job.reply.recv_timeout(patience) {
                    Ok(reply) => {
                        self.job = None;
                        self.session.messages(&mut self.replies);
                        self.replies.extend_from_slice(&reply);
                        self.go_on()?;
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(io::Error::other("the command panicked"));
                    }
                },
                None => {
                    thread::sleep(patience);
                    self.go_on()?;
                    self.session.messages(&mut self.replies);
                }
            }
        }
        match (self.replies.is_empty(), self.is_ended) {
            (false, _) => {
                into.append(&mut self.replies);
                Ok(Received::Some)
            }
            (true, true) => Ok(Received::Ended),
            (true, false) => Ok(Received::None),
        }
    }

    fn cancel(&mut self) -> Cancelled {
        match &self.job {
            Some(job) => {
                job.cancel.cancel();
                Cancelled::Answers
            }
            // Messages or the end of a pause are waited for.
            None => Cancelled::Silent,
        }
    }
}
