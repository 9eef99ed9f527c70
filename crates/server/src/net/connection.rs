//! A session behind a stream of bytes.
//!
//! Bytes are read into a buffer that all connections of a thread share, and replies are written
//! from another: a connection keeps the bytes of a request that is not whole yet, and replies that
//! its client has not taken. One that waits has neither.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::poll_read_buf;
use tokio_util::sync::CancellationToken;

use crate::session::{Job, Next, Session};

/// Bytes that are read at a time.
const READ_BYTES: usize = 64 << 10;
/// A request that is not whole is copied to the front of the shared buffer while it is shorter.
const COPIED_BYTES_MAX: usize = 16 << 10;
/// The replies' buffer of a thread is given back when it has become larger.
const OUT_BYTES_KEPT: usize = 1 << 20;

struct Buffers {
    input: Box<[u8]>,
    out: Vec<u8>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers {
        input: vec![0; READ_BYTES].into_boxed_slice(),
        out: Vec::new(),
    });
}

struct Connection<S> {
    stream: S,
    session: Session,
    /// Bytes of requests that are not executed yet.
    rest: Vec<u8>,
    /// Whether `rest` may hold whole requests.
    may_go_on: bool,
    /// Replies that the client has not taken, from `sent` on.
    replies: Vec<u8>,
    sent: usize,
    /// Whether it ends when the replies are sent.
    is_ending: bool,
}

enum Step {
    Ended,
    Job(Job),
}

/// Serves a client until it goes, or until `stop`.
///
/// # Errors
/// Those of the stream.
pub async fn serve<S>(stream: S, session: Session, stop: CancellationToken) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut connection = Connection {
        stream,
        session,
        rest: Vec::new(),
        may_go_on: false,
        replies: Vec::new(),
        sent: 0,
        is_ending: false,
    };
    loop {
        let step = tokio::select! {
            biased;
            step = poll_fn(|context| connection.poll(context)) => step?,
            () = stop.cancelled() => return Ok(()),
        };
        match step {
            Step::Ended => return Ok(()),
            Step::Job(job) => {
                let work = tokio::task::spawn_blocking(move || {
                    let mut replies = Vec::new();
                    job.run(&mut replies);
                    replies
                });
                let replies = work.await.map_err(io::Error::other)?;
                connection.replies.extend_from_slice(&replies);
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Step>> {
        BUFFERS.with_borrow_mut(|buffers| {
            loop {
                // A client that does not take its replies is not read from.
                ready!(self.poll_send(context))?;
                if self.is_ending {
                    ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
                    return Poll::Ready(Ok(Step::Ended));
                }
                let next = match mem::take(&mut self.may_go_on) {
                    true => {
                        let rest = mem::take(&mut self.rest);
                        self.run_over(rest, &mut buffers.out)
                    }
                    false => match ready!(self.poll_requests(context, buffers))? {
                        None => return Poll::Ready(Ok(Step::Ended)),
                        Some(next) => next,
                    },
                };
                self.send_now(context, &mut buffers.out)?;
                match next {
                    Next::More => {}
                    Next::Full => self.may_go_on = true,
                    Next::Close => self.is_ending = true,
                    Next::Job(job) => {
                        self.may_go_on = !self.rest.is_empty();
                        return Poll::Ready(Ok(Step::Job(job)));
                    }
                }
            }
        })
    }

    /// Reads and executes; `None` when the client has gone.
    fn poll_requests(
        &mut self,
        context: &mut Context<'_>,
        buffers: &mut Buffers,
    ) -> Poll<io::Result<Option<Next>>> {
        if self.rest.len() > COPIED_BYTES_MAX {
            // A long argument: room for it grows as it comes, not as it was announced.
            let missing = self.session.wanted().saturating_sub(self.rest.len());
            self.rest.reserve(missing.clamp(READ_BYTES, self.rest.len().max(READ_BYTES)));
            let stream = Pin::new(&mut self.stream);
            let read = ready!(poll_read_buf(stream, context, &mut self.rest))?;
            if read == 0 {
                return Poll::Ready(Ok(None));
            }
            if self.rest.len() < self.session.wanted() {
                return Poll::Ready(Ok(Some(Next::More)));
            }
            let rest = mem::take(&mut self.rest);
            return Poll::Ready(Ok(Some(self.run_over(rest, &mut buffers.out))));
        }
        let had = self.rest.len();
        buffers.input[..had].copy_from_slice(&self.rest);
        let mut input = ReadBuf::new(&mut buffers.input[had..]);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut input))?;
        let read = input.filled().len();
        if read == 0 {
            return Poll::Ready(Ok(None));
        }
        let input = &buffers.input[..had + read];
        let (used, next) = self.session.run(input, &mut buffers.out);
        self.rest.clear();
        if used < input.len() {
            self.rest.extend_from_slice(&input[used..]);
        } else {
            self.rest = Vec::new();
        }
        Poll::Ready(Ok(Some(next)))
    }

    /// Executes requests that lie in a buffer of the connection's own.
    fn run_over(&mut self, mut rest: Vec<u8>, out: &mut Vec<u8>) -> Next {
        let (used, next) = self.session.run(&rest, out);
        if used < rest.len() {
            rest.drain(..used);
            self.rest = rest;
        }
        next
    }

    /// Sends replies that were kept.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.replies.len() {
            let replies = &self.replies[self.sent..];
            let sent = ready!(Pin::new(&mut self.stream).poll_write(context, replies))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += sent;
        }
        if self.sent > 0 {
            (self.replies, self.sent) = (Vec::new(), 0);
            // What encrypts has a buffer of its own.
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends replies, and keeps those that the client does not take now.
    fn send_now(&mut self, context: &mut Context<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        let mut sent = 0;
        if self.replies.is_empty() {
            while sent < out.len() {
                match Pin::new(&mut self.stream).poll_write(context, &out[sent..]) {
                    Poll::Ready(more) => sent += more?,
                    Poll::Pending => break,
                }
            }
            if sent > 0
                && let Poll::Ready(flushed) = Pin::new(&mut self.stream).poll_flush(context)
            {
                flushed?;
            }
        }
        self.replies.extend_from_slice(&out[sent..]);
        out.clear();
        if out.capacity() > OUT_BYTES_KEPT {
            *out = Vec::new();
        }
        Ok(())
    }
}
