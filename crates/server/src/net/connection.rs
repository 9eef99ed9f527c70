//! A session behind a stream of bytes.
//!
//! Bytes are read into a buffer that all connections of a thread share, and replies are written
//! from another: a connection keeps the bytes of a request that is not whole yet, and replies that
//! its client has not taken. One that waits has neither.
//!
//! A client that does not take its replies is not read from, so what is kept for it is bounded: by
//! the replies of one run, and by the limits of its class. What it sends is bounded as well, until
//! it is executed. A client that has closed its side still gets the replies to all that it sent,
//! that of a job among them: a socket does not tell one that waits for them from one that has gone.
//! A job is told to end when the connection fails, which may be when something is sent, or when the
//! client is killed.

use std::cell::RefCell;
use std::future::{Future, IntoFuture, poll_fn};
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sapwood::Lasting;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::poll_read_buf;

use crate::clients::Order;
use crate::jobs::{CancelOnDrop, Job};
use crate::net::working::Working;
use crate::session::{Next, Session};

/// Bytes that are read at a time.
const READ_BYTES: usize = 64 << 10;
/// A request that is not whole is copied to the front of the shared buffer while it is shorter, and
/// replies to where they are kept.
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
    /// The end of the messages among them, 0 without any: the mailbox counts what is before it.
    messages_end: usize,
    /// Changes that are to last before `replies` are sent.
    lasting: Option<Box<Lasting>>,
    /// Whether the client has closed its side.
    is_input_ended: bool,
    /// Whether it ends when the replies are sent.
    is_ending: bool,
}

enum Step {
    Ended,
    Job(Job),
    /// Clients are paused.
    Paused,
}

/// Bytes that a client may send while it waits for a job, before it is not read from.
const AHEAD_BYTES_MAX: usize = READ_BYTES;

/// Serves a client until it goes, until another client ends it, or until the server stops.
///
/// # Errors
/// Those of the stream.
pub async fn serve<S>(stream: S, session: Session) -> io::Result<()>
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
        messages_end: 0,
        lasting: None,
        is_input_ended: false,
        is_ending: false,
    };
    loop {
        match poll_fn(|context| connection.poll(context)).await? {
            Step::Ended => return Ok(()),
            // Boxed: a connection that waits for its client is small.
            Step::Job(job) => match Box::pin(connection.wait_for(job)).await? {
                Some(replies) => connection.keep_behind(&replies),
                None => return Ok(()),
            },
            Step::Paused => Box::pin(connection.wait_for_pause()).await,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Step>> {
        let order = self.session.entry().mailbox.attend(context);
        if order == Order::End {
            return Poll::Ready(Ok(Step::Ended));
        }
        BUFFERS.with_borrow_mut(|buffers| {
            let mut may_take = true;
            loop {
                // Nor is one whose changes do not last yet.
                ready!(self.poll_lasting(context))?;
                // A client that does not take its replies is not read from.
                ready!(self.poll_send(context))?;
                if self.is_ending {
                    ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
                    return Poll::Ready(Ok(Step::Ended));
                }
                // Messages and requests take turns. A message that comes from here on wakes.
                if mem::take(&mut may_take) && self.take_messages() {
                    continue;
                }
                let next = match mem::take(&mut self.may_go_on) {
                    true => {
                        let rest = mem::take(&mut self.rest);
                        self.run_over(rest, &mut buffers.out)
                    }
                    false if self.is_input_ended => return Poll::Ready(Ok(Step::Ended)),
                    false => match self.poll_requests(context, buffers)? {
                        Poll::Ready(Some(next)) => next,
                        Poll::Ready(None) => return Poll::Ready(Ok(Step::Ended)),
                        // All that has come is answered.
                        Poll::Pending if order == Order::Finish => {
                            self.is_ending = true;
                            continue;
                        }
                        Poll::Pending => return Poll::Pending,
                    },
                };
                may_take = true;
                if self.are_too_long(buffers.out.len()) {
                    self.keep(&mut buffers.out, 0);
                    return Poll::Ready(Ok(Step::Ended));
                }
                match self.session.take_unlasting() {
                    None => self.send_now(context, &mut buffers.out)?,
                    Some(changes) => {
                        self.lasting = Some(Box::new(changes.into_future()));
                        self.keep(&mut buffers.out, 0);
                    }
                }
                match next {
                    Next::More => {}
                    Next::Full => {
                        self.may_go_on = true;
                        if self.session.pause_millis().is_some() {
                            return Poll::Ready(Ok(Step::Paused));
                        }
                    }
                    Next::Close => self.is_ending = true,
                    Next::Job(job) => {
                        self.may_go_on = !self.rest.is_empty();
                        return Poll::Ready(Ok(Step::Job(job)));
                    }
                }
            }
        })
    }

    /// Waits until the changes of the last run last. Where that is not known, the client is not
    /// answered: it is told by the end of the connection.
    fn poll_lasting(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(lasting) = &mut self.lasting {
            let done = ready!(Pin::new(&mut **lasting).poll(context));
            self.lasting = None;
            if let Err(error) = done {
                tracing::error!(%error, "changes of a client may not last");
                return Poll::Ready(Err(io::Error::other(error)));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes the messages that have come, if there is nothing else to be sent.
    fn take_messages(&mut self) -> bool {
        let mailbox = &self.session.entry().mailbox;
        if !mailbox.has_messages() {
            return false;
        }
        debug_assert!(self.replies.is_empty(), "messages wait until replies are sent");
        self.replies = mailbox.take();
        self.messages_end = self.replies.len();
        self.session.note_messages(self.replies.len());
        true
    }

    /// Keeps replies behind the messages that came before them.
    fn keep_behind(&mut self, replies: &[u8]) {
        let mailbox = &self.session.entry().mailbox;
        if mailbox.has_messages() {
            let mut messages = mailbox.take();
            self.session.note_messages(messages.len());
            self.replies.append(&mut messages);
            // Replies before them count as messages from here on: no byte counts twice.
            self.messages_end = self.replies.len();
        }
        self.replies.extend_from_slice(replies);
        self.are_too_long(replies.len());
        self.may_go_on = !self.rest.is_empty();
        self.session.note_end_of_job(replies.len());
    }

    /// Waits for a job, and tells it to end when the connection does; `None` when that is first.
    async fn wait_for(&mut self, job: Job) -> io::Result<Option<Vec<u8>>> {
        let cancel = CancelOnDrop(job.cancel());
        let synced = self.session.always_synced();
        let mut work = Working::begin(job, synced, ());
        let waited = poll_fn(|context| self.poll_job(context, &mut work)).await;
        drop(cancel);
        waited
    }

    fn poll_job(
        &mut self,
        context: &mut Context<'_>,
        work: &mut Working,
    ) -> Poll<io::Result<Option<Vec<u8>>>> {
        if self.session.entry().mailbox.attend(context) == Order::End {
            return Poll::Ready(Ok(None));
        }
        // Messages, such as how far the job is, go out meanwhile.
        let lasts = self.poll_lasting(context)?.is_ready();
        while lasts && self.poll_send(context)?.is_ready() && self.take_messages() {}
        while !self.is_input_ended && self.rest.len() < AHEAD_BYTES_MAX {
            let stream = Pin::new(&mut self.stream);
            match poll_read_buf(stream, context, &mut self.rest)? {
                Poll::Ready(0) => self.is_input_ended = true,
                Poll::Ready(_) => {}
                Poll::Pending => break,
            }
        }
        Pin::new(work).poll(context).map_ok(Some)
    }

    /// Waits until clients are not paused any more, or the connection has an order.
    async fn wait_for_pause(&mut self) {
        while let Some(millis) = self.session.pause_millis() {
            let mailbox = &self.session.entry().mailbox;
            let mut is_woken = false;
            let woken = poll_fn(|context| match mailbox.attend(context) {
                Order::Serve if !mem::replace(&mut is_woken, true) => Poll::Pending,
                _ => Poll::Ready(()),
            });
            // Time over is the usual end.
            let _ = tokio::time::timeout(Duration::from_millis(millis), woken).await;
            let is_stopping =
                poll_fn(|context| Poll::Ready(mailbox.attend(context) != Order::Serve));
            if is_stopping.await {
                // What waits is not executed.
                self.is_ending = true;
                return;
            }
        }
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
                if self.session.is_query_too_long(self.rest.len()) {
                    return Ok(None).into();
                }
                self.session.note_life();
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
            match Pin::new(&mut self.stream).poll_write(context, replies)? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(sent) => self.sent += sent,
                Poll::Pending => {
                    self.note_left();
                    return Poll::Pending;
                }
            }
            self.session.note_life();
        }
        if self.sent > 0 {
            (self.replies, self.sent) = (Vec::new(), 0);
            self.session.note_kept(0);
            if mem::take(&mut self.messages_end) > 0 {
                self.session.entry().mailbox.sent();
            }
            // What encrypts has a buffer of its own.
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Notes the bytes that the client has not taken: of messages, and of replies.
    fn note_left(&self) {
        let messages = self.messages_end.saturating_sub(self.sent);
        if self.messages_end > 0 {
            self.session.entry().mailbox.left(messages);
        }
        self.session.note_kept(self.replies.len() - self.sent - messages);
    }

    /// Tells if replies are more than the client may leave unread; it is closed then. They count
    /// before they are sent, as in Redis, but for so few that a buffer of each client there has them.
    fn are_too_long(&self, replies_bytes: usize) -> bool {
        replies_bytes > COPIED_BYTES_MAX && self.session.are_too_long(replies_bytes)
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
        self.keep(out, sent);
        Ok(())
    }

    /// Keeps replies, from `sent` on, for later.
    fn keep(&mut self, out: &mut Vec<u8>, sent: usize) {
        if sent < out.len() {
            if self.replies.is_empty() && out.len() - sent > COPIED_BYTES_MAX {
                // Long ones are there once.
                (self.replies, self.sent) = (mem::take(out), sent);
            } else {
                self.replies.extend_from_slice(&out[sent..]);
            }
            self.session.note_kept(self.replies.len() - self.sent);
        }
        out.clear();
        if out.capacity() > OUT_BYTES_KEPT {
            *out = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::task::Waker;

    use sapwood::Db;
    use sapwood::aggregate::Cancel;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;
    use crate::Service;
    use crate::clients::OutputLimits;
    use crate::clock::Clock;
    use crate::service::Options;

    /// Bytes that a stream holds.
    const STREAM_BYTES: usize = 1 << 10;

    /// A connection that reads and writes nothing by itself, and its client.
    fn connection() -> (Connection<DuplexStream>, DuplexStream) {
        let service = Service::new(Db::in_memory(), Options::default()).expect("memory");
        connection_to(&Arc::new(service))
    }

    /// A service whose clients leave so much unread at most, and whose clock stands at 0.
    fn service(limits: &str) -> Arc<Service> {
        let output_limits = OutputLimits::default().with(limits).expect("limits");
        let clock = Clock::Manual(AtomicU64::new(0));
        let options = Options { output_limits, clock, ..Options::default() };
        Arc::new(Service::new(Db::in_memory(), options).expect("memory"))
    }

    fn connection_to(service: &Arc<Service>) -> (Connection<DuplexStream>, DuplexStream) {
        let (client, stream) = tokio::io::duplex(STREAM_BYTES);
        let connection = Connection {
            stream,
            session: Session::new(Arc::clone(service)),
            rest: Vec::new(),
            may_go_on: false,
            replies: Vec::new(),
            sent: 0,
            messages_end: 0,
            lasting: None,
            is_input_ended: false,
            is_ending: false,
        };
        (connection, client)
    }

    /// A job that goes on until it is told to end, and whether it has ended.
    fn endless() -> (Job, Arc<AtomicBool>) {
        let (cancel, has_ended) = (Cancel::new(), Arc::new(AtomicBool::new(false)));
        let (seen, ended) = (cancel.clone(), Arc::clone(&has_ended));
        let job = Job::with_cancel(cancel, move |out| {
            while !seen.is_cancelled() {
                std::thread::yield_now();
            }
            out.extend_from_slice(b"-ERR cancelled\r\n");
            ended.store(true, Ordering::SeqCst);
        });
        (job, has_ended)
    }

    fn run<T>(test: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        // The runtime waits for its jobs when it is dropped: one that is not told to end hangs.
        runtime.expect("a thread").block_on(test)
    }

    #[test]
    fn a_client_that_has_closed_its_side_gets_the_reply_of_a_job() {
        run(async {
            let (mut connection, mut client) = connection();
            client.write_all(b"PING\r\n").await.expect("room");
            client.shutdown().await.expect("it closes its side");
            let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
            let job = Job::new(move |out| {
                may_go_on.recv().expect("the end of what it sent is read");
                out.extend_from_slice(b"+OK\r\n");
            });
            let serving = async {
                let replies = connection.wait_for(job).await.expect("no error of the stream");
                assert!(connection.is_input_ended);
                connection.keep_behind(&replies.expect("it ends"));
                let step = poll_fn(|context| connection.poll(context)).await.expect("it serves");
                assert!(step.is_ended());
            };
            let ending = async {
                // The other is polled first, and has read all.
                go_on.send(()).expect("the job waits");
            };
            tokio::join!(serving, ending);
            drop(connection);
            let mut found = String::new();
            client.read_to_string(&mut found).await.expect("replies");
            assert_eq!(found, "+OK\r\n+PONG\r\n");
        });
    }

    #[test]
    fn a_job_is_told_to_end_when_the_connection_fails() {
        let has_ended = run(async {
            let (mut connection, client) = connection();
            let messages = connection.session.to_messages();
            let (job, has_ended) = endless();
            drop(client);
            messages.post(|reply| reply.integer(1));
            connection.wait_for(job).await.expect_err("its client has gone");
            has_ended
        });
        assert!(has_ended.load(Ordering::SeqCst));
    }

    #[test]
    fn a_job_is_told_to_end_when_its_client_is_killed() {
        let has_ended = run(async {
            let (mut connection, _client) = connection();
            let (job, has_ended) = endless();
            let entry = Arc::clone(connection.session.entry());
            let killer = std::thread::spawn(move || entry.kill());
            let replies = connection.wait_for(job).await.expect("no error of the stream");
            killer.join().expect("it ends");
            assert_eq!(replies, None, "the connection does not wait for it");
            has_ended
        });
        assert!(has_ended.load(Ordering::SeqCst));
    }

    #[test]
    fn a_job_tells_how_far_it_is_before_its_reply() {
        run(async {
            let (mut connection, mut client) = connection();
            let messages = connection.session.to_messages();
            let job = Job::new(move |out| {
                for step in 0..1_000 {
                    messages.post(|reply| reply.integer(step));
                }
                out.extend_from_slice(b"+OK\r\n");
            });
            let serving = tokio::spawn(async move {
                let replies = connection.wait_for(job).await.expect("no error of the stream");
                connection.keep_behind(&replies.expect("it ends"));
                connection.is_ending = true;
                poll_fn(|context| connection.poll(context)).await.expect("it sends").is_ended()
            });
            let mut found = String::new();
            client.read_to_string(&mut found).await.expect("messages");
            let steps: String = (0..1_000).map(|step| format!(":{step}\r\n")).collect();
            assert_eq!(found, steps + "+OK\r\n");
            assert!(serving.await.expect("it ends"));
        });
    }

    impl Step {
        fn is_ended(&self) -> bool {
            matches!(self, Step::Ended)
        }
    }

    /// Lets a connection do what it can; answers the bytes that its client has not taken, of replies
    /// and of messages.
    fn unread(connection: &mut Connection<DuplexStream>) -> (usize, usize) {
        let polled = connection.poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        let entry = connection.session.entry();
        let replies = entry.seen().bytes_kept;
        (replies, entry.mailbox.bytes())
    }

    /// Takes what a stream holds.
    async fn take(client: &mut DuplexStream) {
        let mut taken = [0; STREAM_BYTES];
        client.read_exact(&mut taken).await.expect("the stream is full");
    }

    /// A message of 3,009 bytes.
    fn post_3009(connection: &Connection<DuplexStream>) {
        let messages = connection.session.to_messages();
        messages.post(|reply| reply.bulk(&[b'm'; 3_000]));
    }

    #[test]
    fn messages_count_until_they_are_sent() {
        let service = service("normal 0 2000 60");
        let (mut connection, mut client) = connection_to(&service);
        run(async {
            post_3009(&connection);
            // The first 1,024 bytes are in the stream.
            assert_eq!(unread(&mut connection), (0, 1_985));
            // A client that takes them slowly is within the soft limit.
            service.close_full_clients();
            service.set_clock(60_000);
            service.close_full_clients();
            assert!(!connection.session.entry().mailbox.is_full());
            take(&mut client).await;
            assert_eq!(unread(&mut connection), (0, 961));
            // Those that have come since count whole.
            post_3009(&connection);
            assert_eq!(unread(&mut connection), (0, 3_970));
            take(&mut client).await;
            // The rest of the first ones is sent, and 63 bytes of the others.
            assert_eq!(unread(&mut connection), (0, 2_946));
            // One that takes nothing is not.
            service.close_full_clients();
            service.set_clock(120_000);
            service.close_full_clients();
            assert!(connection.session.entry().mailbox.is_full());
        });
    }

    #[test]
    fn replies_count_until_they_are_sent() {
        run(async {
            let (mut connection, mut client) = connection();
            connection.keep(&mut vec![b'r'; 3_009], 0);
            assert_eq!(unread(&mut connection), (1_985, 0));
            take(&mut client).await;
            assert_eq!(unread(&mut connection), (961, 0));
            take(&mut client).await;
            assert_eq!(unread(&mut connection), (0, 0));
        });
    }

    #[test]
    fn the_reply_of_a_job_counts_until_it_is_sent() {
        run(async {
            let (mut connection, mut client) = connection();
            post_3009(&connection);
            assert_eq!(unread(&mut connection), (0, 1_985));
            // Messages, messages behind them, and the reply behind all.
            post_3009(&connection);
            connection.keep_behind(&[b'r'; 2_000]);
            assert_eq!(unread(&mut connection), (2_000, 4_994));
            let sums = [(2_000, 3_970), (2_000, 2_946), (2_000, 1_922), (2_000, 898), (1_874, 0)];
            for sum in sums {
                take(&mut client).await;
                assert_eq!(unread(&mut connection), sum);
            }
        });
    }

    #[test]
    fn the_reply_of_a_job_is_bounded() {
        let service = service("normal 4000 0 0");
        for (bytes, is_closed) in [(5_000, false), (5_025, true)] {
            let (mut connection, _client) = connection_to(&service);
            connection.keep_behind(&vec![b'r'; bytes]);
            assert_eq!(unread(&mut connection), (bytes - STREAM_BYTES, 0));
            assert_eq!(connection.session.entry().mailbox.is_full(), is_closed, "{bytes} bytes");
        }
    }

    #[test]
    fn what_comes_while_a_job_runs_is_executed_behind_it() {
        run(async {
            let (mut connection, mut client) = connection();
            client.write_all(b"PING\r\nPING x\r\nPI").await.expect("room");
            let job = Job::new(|out| out.extend_from_slice(b"+OK\r\n"));
            let replies = connection.wait_for(job).await.expect("no error of the stream");
            connection.keep_behind(&replies.expect("it ends"));
            client.shutdown().await.expect("it closes its side");
            let step = poll_fn(|context| connection.poll(context)).await.expect("it serves");
            assert!(step.is_ended());
            drop(connection);
            let mut found = String::new();
            client.read_to_string(&mut found).await.expect("replies");
            assert_eq!(found, "+OK\r\n+PONG\r\n$1\r\nx\r\n");
        });
    }

    #[test]
    fn a_job_may_end_while_the_server_stops() {
        run(async {
            let (mut connection, mut client) = connection();
            connection.session.entry().mailbox.order(Order::Finish);
            let job = Job::new(|out| out.extend_from_slice(b"+OK\r\n"));
            let replies = connection.wait_for(job).await.expect("no error of the stream");
            connection.keep_behind(&replies.expect("the server lets it end"));
            let step = poll_fn(|context| connection.poll(context)).await.expect("it serves");
            assert!(step.is_ended());
            let mut found = String::new();
            client.read_to_string(&mut found).await.expect("replies");
            assert_eq!(found, "+OK\r\n");
        });
    }
}
