//! Clients behind sockets: their limits, their ends, and many of them at a time.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::pin::Pin;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use sapwood::Db;
use sapwood_server::clients::OutputLimits;
use sapwood_server::clock::Clock;
use sapwood_server::net::{Listeners, Server, serve};
use sapwood_server::service::Options;
use sapwood_server::{Service, Session};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_util::sync::CancellationToken;

use crate::client::{START, Value, replies};

/// A time that is over only when something is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server on a port of its own.
pub(crate) struct Running {
    pub(crate) service: Arc<Service>,
    address: SocketAddr,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(options: Options, grace: Duration) -> Running {
        let service = Arc::new(Service::new(Db::in_memory(), options).expect("memory"));
        let stop = CancellationToken::new();
        let server = Server::new(Arc::clone(&service), stop.clone()).with_grace(grace);
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("threads");
            runtime.block_on(async {
                let mut listeners = Listeners::default();
                let any = SocketAddr::from(([127, 0, 0, 1], 0));
                tell.send(listeners.tcp(any).expect("a port")).expect("a listener");
                server.run(listeners).await.expect("it serves");
            });
        });
        let address = told.recv().expect("an address");
        Running { service, address, stop, thread: Some(thread) }
    }

    fn new() -> Running {
        Running::start(Options { threads: 2, ..Options::default() }, PATIENCE)
    }

    pub(crate) fn connect(&self) -> Wire {
        Wire::new(self.address)
    }

    pub(crate) fn end(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server ends");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
    }
}

/// A client.
pub(crate) struct Wire {
    stream: TcpStream,
}

impl Wire {
    fn new(address: SocketAddr) -> Wire {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("an option");
        Wire { stream }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    /// Exactly these bytes come next.
    fn expect(&mut self, bytes: &[u8]) {
        let mut found = vec![0; bytes.len()];
        self.stream.read_exact(&mut found).expect("the server answers");
        assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(bytes));
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).expect("the server answers");
            line.push(byte[0]);
        }
        String::from_utf8(line).expect("text").trim_end().to_owned()
    }

    /// The reply to a request: a line, or the text behind its length.
    fn call(&mut self, request: &str) -> String {
        self.send(format!("{request}\r\n").as_bytes());
        let line = self.line();
        match line.strip_prefix('$') {
            None => line,
            Some(len) => {
                let mut text = vec![0; len.parse::<usize>().expect("a length") + 2];
                self.stream.read_exact(&mut text).expect("the server answers");
                String::from_utf8(text).expect("text").trim_end().to_owned()
            }
        }
    }

    /// Sends requests, and takes so many replies apart.
    pub(crate) fn replies(&mut self, requests: &[u8], count: usize) -> Vec<Value> {
        self.send(requests);
        let mut found = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        while replies_end(&found, count).is_none() {
            let read = self.stream.read(&mut buffer).expect("the server answers");
            assert!(read > 0, "the server ends the connection");
            found.extend_from_slice(&buffer[..read]);
        }
        assert_eq!(replies_end(&found, count), Some(found.len()), "no more than was asked for");
        replies(&found)
    }

    fn id(&mut self) -> String {
        self.call("CLIENT ID")[1..].to_owned()
    }

    /// The server ends the connection; answers the bytes that came before.
    fn expect_end(&mut self) -> Vec<u8> {
        let mut found = Vec::new();
        match self.stream.read_to_end(&mut found) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("no end: {error}"),
        }
        found
    }

    fn own_address(&self) -> SocketAddr {
        self.stream.local_addr().expect("an address")
    }
}

/// The end of so many replies in version 2, once they are whole.
fn replies_end(bytes: &[u8], count: usize) -> Option<usize> {
    let (mut at, mut left) = (0, count);
    while left > 0 {
        let line = bytes[at..].windows(2).position(|pair| pair == b"\r\n")?;
        let number = || std::str::from_utf8(&bytes[at + 1..at + line]).ok()?.parse::<i64>().ok();
        let behind = at + line + 2;
        left -= 1;
        at = match bytes[at] {
            b'$' => behind + number().map_or(0, |len| if len < 0 { 0 } else { len as usize + 2 }),
            b'*' => {
                left += number().map_or(0, |len| len.max(0) as usize);
                behind
            }
            _ => behind,
        };
        if at > bytes.len() {
            return None;
        }
    }
    Some(at)
}

/// A field of a line of `CLIENT LIST`.
fn field<'l>(line: &'l str, name: &str) -> &'l str {
    let of_name = |field: &'l str| field.split_once('=').filter(|(found, _)| *found == name);
    line.split(' ').find_map(of_name).expect("a field").1
}

#[test]
fn every_kind_of_kill_ends_connections() {
    let server = Running::new();
    let mut killer = server.connect();
    for filter in ["ID", "ADDR", "LADDR", "TYPE", "USER", "old"] {
        let mut victim = server.connect();
        let id = victim.id();
        let address = victim.own_address();
        let (line, reply) = match filter {
            "ID" => (format!("CLIENT KILL ID {id}"), ":1"),
            "ADDR" => (format!("CLIENT KILL ADDR {address} ID {id}"), ":1"),
            "LADDR" => (format!("CLIENT KILL LADDR {} ID {id}", server.address), ":1"),
            "TYPE" => (format!("CLIENT KILL TYPE normal ID {id}"), ":1"),
            "USER" => ("CLIENT KILL USER default".to_owned(), ":1"),
            _ => (format!("CLIENT KILL {address}"), "+OK"),
        };
        assert_eq!(killer.call(&line), reply, "{line}");
        assert_eq!(victim.expect_end(), b"", "{filter}");
        // The entry goes when the connection's task ends.
        while !killer.call(&format!("CLIENT LIST ID {id}")).is_empty() {}
    }
    let mut gone = server.connect();
    let id = gone.id();
    gone.send(b"QUIT\r\n");
    assert_eq!(gone.expect_end(), b"+OK\r\n");
    while !killer.call(&format!("CLIENT LIST ID {id}")).is_empty() {}
    assert_eq!(killer.call(&format!("CLIENT KILL ID {id}")), ":0");
    killer.send(format!("CLIENT KILL {}\r\nPING\r\n", killer.own_address()).as_bytes());
    killer.expect(b"+OK\r\n");
    assert_eq!(killer.expect_end(), b"");
}

/// Requests that a page in a browser can make a client of this machine send, and what a body of
/// theirs would do.
#[test]
fn a_request_of_http_ends_the_connection_before_its_body_is_executed() {
    let server = Running::new();
    let mut other = server.connect();
    let get = "-ERR wrong number of arguments for 'get' command\r\n";
    let put = "-ERR unknown command 'PUT', with args beginning with: '/' 'HTTP/1.1' \r\n";
    let x = "-ERR unknown command 'X:', with args beginning with: '1' \r\n";
    let cases = [
        ("POST / HTTP/1.1\r\nHost: 127.0.0.1:6379\r\n\r\n", String::new()),
        ("post / HTTP/1.1\n", String::new()),
        ("\"POST\" / HTTP/1.1\r\n", String::new()),
        ("GET / HTTP/1.1\r\nHOST: 127.0.0.1\r\n\r\n", get.to_owned()),
        ("PUT / HTTP/1.1\r\nX: 1\r\nhost: a\r\n\r\n", format!("{put}{x}")),
        ("*1\r\n$4\r\nPosT\r\n", String::new()),
        ("*2\r\n$5\r\nhost:\r\n$1\r\nx\r\n", String::new()),
        ("MULTI\r\nPOST / HTTP/1.1\r\n", "+OK\r\n".to_owned()),
        ("SET k 1\r\nPOST / HTTP/1.1\r\n", "+OK\r\n".to_owned()),
    ];
    for (request, replies) in cases {
        let mut page = server.connect();
        page.send(format!("{request}SET pwned 1\r\n*1\r\n$8\r\nFLUSHALL\r\n").as_bytes());
        let found = String::from_utf8(page.expect_end()).expect("text");
        assert_eq!(found, replies, "{request}");
        assert_eq!(other.call("EXISTS pwned"), ":0", "{request}");
    }
    assert_eq!(other.call("EXISTS k"), ":1", "what came before is executed");
    // The words are like any others where they are arguments.
    assert_eq!(other.call("SET POST Host:"), "+OK");
    assert_eq!(other.call("GET POST"), "Host:");
    assert!(other.call("POSTS").starts_with("-ERR unknown command"));
}

#[test]
fn clients_beyond_the_limit_are_told_so() {
    let options = Options { maxclients: 2, threads: 2, ..Options::default() };
    let server = Running::start(options, PATIENCE);
    let (mut one, mut two) = (server.connect(), server.connect());
    assert_eq!((one.call("PING"), two.call("PING")), ("+PONG".to_owned(), "+PONG".to_owned()));
    let mut three = server.connect();
    assert_eq!(three.expect_end(), b"-ERR max number of clients reached\r\n");
    two.send(b"QUIT\r\n");
    two.expect_end();
    // The place is free when the connection's task has ended.
    let mut found = String::new();
    while found != "+PONG" {
        let mut four = server.connect();
        found = match four.stream.write_all(b"PING\r\n") {
            Ok(()) => four.try_line().unwrap_or_default(),
            Err(_) => String::new(),
        };
    }
}

impl Wire {
    fn try_line(&mut self) -> io::Result<String> {
        let mut line = [0; 7];
        self.stream.read_exact(&mut line)?;
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }
}

#[test]
fn idle_clients_are_closed_and_subscribers_are_not() {
    let clock = Clock::Manual(AtomicU64::new(START));
    let timeout = Duration::from_secs(30);
    let options = Options { clock, timeout, threads: 2, ..Options::default() };
    let server = Running::start(options, PATIENCE);
    let (mut idle, mut busy, mut subscriber) =
        (server.connect(), server.connect(), server.connect());
    assert_eq!(idle.call("PING"), "+PONG");
    subscriber.send(b"SUBSCRIBE a\r\n");
    subscriber.expect(b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    server.service.set_clock(START + 20_000);
    assert_eq!(busy.call("PING"), "+PONG");
    server.service.set_clock(START + 30_000);
    server.service.close_idle_clients();
    assert_eq!(idle.call("PING"), "+PONG", "30 seconds are not longer than 30");
    server.service.set_clock(START + 55_000);
    assert_eq!(busy.call("PING"), "+PONG");
    server.service.set_clock(START + 61_000);
    server.service.close_idle_clients();
    assert_eq!(idle.expect_end(), b"");
    assert_eq!(busy.call("PUBLISH a 1"), ":1");
    subscriber.expect(b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\n1\r\n");
}

#[test]
fn a_client_that_has_closed_its_side_gets_its_replies() {
    let server = Running::new();
    let mut client = server.connect();
    let value = "v".repeat(1_000);
    client.send(format!("SET k {value}\r\n").as_bytes());
    client.expect(b"+OK\r\n");
    // More than the sockets hold, a job within, and a request that is not whole.
    let requests = "GET k\r\n".repeat(20_000) + "KEYS *\r\n" + &"GET k\r\n".repeat(20_000) + "GET";
    let mut writer = client.stream.try_clone().expect("a descriptor");
    let writing = std::thread::spawn(move || {
        writer.write_all(requests.as_bytes()).expect("the server reads");
        writer.shutdown(Shutdown::Write).expect("a socket");
    });
    let replies = client.expect_end();
    writing.join().expect("the writer ends");
    let reply = format!("$1000\r\n{value}\r\n").repeat(20_000);
    assert_eq!(replies.len(), 2 * reply.len() + "*1\r\n$1\r\nk\r\n".len());
    assert!(replies.starts_with(reply.as_bytes()) && replies.ends_with(reply.as_bytes()));
}

#[test]
fn a_client_that_never_reads_costs_little_and_can_be_killed() {
    let server = Running::new();
    let (mut deaf, mut other) = (server.connect(), server.connect());
    let id = deaf.id();
    let value = "v".repeat(1 << 20);
    other.send(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}\r\n", value.len()).as_bytes());
    other.expect(b"+OK\r\n");
    // Replies of 20 GiB.
    deaf.send("GET k\r\n".repeat(20_000).as_bytes());
    let (mut most, mut most_waiting) = (0, 0);
    for _ in 0..2_000 {
        let line = other.call(&format!("CLIENT LIST ID {id}"));
        most_waiting = most_waiting.max(field(&line, "omem").parse::<u64>().expect("a number"));
        most = most.max(field(&line, "tot-net-out").parse::<u64>().expect("a number"));
    }
    // The server's share is two replies; the others lie in the sockets.
    assert!(most > 1 << 20, "replies are made: {most} bytes");
    assert!(most < 64 << 20, "replies wait for the client: {most} bytes");
    assert!((1..=most).contains(&most_waiting), "{most_waiting} bytes wait");
    assert_eq!(other.call(&format!("CLIENT KILL ID {id}")), ":1");
    while !other.call(&format!("CLIENT LIST ID {id}")).is_empty() {}
}

#[test]
fn a_subscriber_that_never_reads_is_closed() {
    let output_limits = OutputLimits::default().with("pubsub 1mb 0 0").expect("a limit");
    let options = Options { output_limits, threads: 2, ..Options::default() };
    let server = Running::start(options, PATIENCE);
    let (mut deaf, mut other) = (server.connect(), server.connect());
    deaf.send(b"SUBSCRIBE a\r\n");
    deaf.expect(b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    let request = format!("*3\r\n$7\r\nPUBLISH\r\n$1\r\na\r\n$65536\r\n{}\r\n", "m".repeat(65_536));
    // The limit, and what sockets take.
    let mut sent = 0;
    loop {
        other.send(request.as_bytes());
        if other.line() == ":0" {
            break;
        }
        sent += 1;
        assert!(sent < 2_000, "{sent} messages of 64 KiB are kept");
    }
    assert!(sent >= 16, "the limit is 16 messages, closed after {sent}");
}

#[test]
fn a_client_that_leaves_more_unread_than_it_may_is_closed() {
    let output_limits = OutputLimits::default().with("normal 8mb 0 0").expect("a limit");
    let options = Options { output_limits, threads: 2, ..Options::default() };
    let server = Running::start(options, PATIENCE);
    let (mut deaf, mut other) = (server.connect(), server.connect());
    assert_eq!(other.call(&format!("SET v {}", "v".repeat(60_000))), "+OK");
    let id = deaf.id();
    // One reply, of 60 MB.
    deaf.send(format!("MGET{}\r\n", " v".repeat(1_000)).as_bytes());
    while !other.call(&format!("CLIENT LIST ID {id}")).is_empty() {}
    let stats = other.call("INFO stats");
    assert!(stats.contains("client_output_buffer_limit_disconnections:1"), "{stats}");
    let set = "CONFIG SET client-output-buffer-limit 'normal 0 0 0'";
    assert_eq!(other.call(set), "+OK");
    // It takes its time, and gets it.
    let mut slow = server.connect();
    slow.send(format!("MGET{}\r\n", " v".repeat(1_000)).as_bytes());
    slow.expect(b"*1000\r\n$60000\r\nvvvv");
}

#[test]
fn replies_count_before_they_are_sent() {
    let output_limits = OutputLimits::default().with("normal 100kb 0 0").expect("a limit");
    let options = Options { output_limits, threads: 2, ..Options::default() };
    let server = Running::start(options, PATIENCE);
    let mut other = server.connect();
    let value = "v".repeat(40_000);
    for key in ["a", "b"] {
        assert_eq!(other.call(&format!("SET {key} {value}")), "+OK");
        assert_eq!(other.call(&format!("SET {key}{value} 1")), "+OK");
    }
    assert_eq!(other.call("GET a"), value);
    assert_eq!(other.call("SET c 1"), "+OK");
    assert_eq!(other.call(&format!("SET c{value} 1")), "+OK");
    for requests in [
        "MGET a b a\r\n",
        "GET a\r\nGET b\r\nGET a\r\n",
        // A job.
        "KEYS *\r\n",
        "MULTI\r\nGET a\r\nGET b\r\nGET a\r\nDEL c\r\nEXEC\r\n",
    ] {
        let mut reader = server.connect();
        reader.send(requests.as_bytes());
        assert_eq!(String::from_utf8_lossy(&reader.expect_end()), "", "{requests}");
    }
    assert_eq!(other.call("EXISTS c"), ":0", "a transaction is executed to its end");
    // A client sees its end before it is counted.
    let counted = "client_output_buffer_limit_disconnections:4";
    crate::http::until(|| other.call("INFO stats").contains(counted));
}

#[test]
fn commands_that_wait_and_requests_that_do_not_end_are_bounded() {
    let options = Options { query_bytes_max: 1 << 20, threads: 2, ..Options::default() };
    let server = Running::start(options, PATIENCE);
    let mut other = server.connect();
    let stays = |client: &mut Wire, request: &[u8]| {
        (0..100_000).all(|_| client.stream.write_all(request).is_ok())
    };
    // Commands that are queued.
    let mut queues = server.connect();
    assert_eq!(queues.call("MULTI"), "+OK");
    let set = format!("SET k {}\r\n", "v".repeat(10_000));
    assert!(!stays(&mut queues, set.as_bytes()));
    // A request that never ends.
    let mut endless = server.connect();
    endless.send(b"*1000000\r\n");
    let argument = format!("$10000\r\n{}\r\n", "a".repeat(10_000));
    assert!(!stays(&mut endless, argument.as_bytes()));
    let stats = other.call("INFO stats");
    assert!(stats.contains("client_query_buffer_limit_disconnections:2"), "{stats}");
    // Others are as long as they may be.
    let long = format!("SET k {}", "v".repeat(60_000));
    assert_eq!(other.call(&long), "+OK");
}

#[test]
fn messages_keep_their_order_under_load() {
    const SENDERS: usize = 4;
    const EACH: usize = 5_000;
    let server = Running::new();
    let mut by_name = server.connect();
    by_name.send(b"SUBSCRIBE a\r\n");
    by_name.expect(b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    let mut by_pattern = server.connect();
    by_pattern.send(b"PSUBSCRIBE ?\r\n");
    by_pattern.expect(b"*3\r\n$10\r\npsubscribe\r\n$1\r\n?\r\n:1\r\n");
    let mut senders = Vec::new();
    for sender in 0..SENDERS {
        let mut client = server.connect();
        senders.push(std::thread::spawn(move || {
            // In pipelines, so that the subscribers fall behind.
            for begin in (0..EACH).step_by(100) {
                let requests: String =
                    (begin..begin + 100).map(|n| format!("PUBLISH a {sender}:{n}\r\n")).collect();
                client.send(requests.as_bytes());
                client.expect(b":2\r\n".repeat(100).as_slice());
            }
        }));
    }
    let read = |client: &Wire, lines: usize| {
        let mut stream = BufReader::new(client.stream.try_clone().expect("a descriptor"));
        let mut messages = Vec::new();
        let mut line = String::new();
        for _ in 0..SENDERS * EACH {
            for _ in 0..lines {
                line.clear();
                stream.read_line(&mut line).expect("a message");
            }
            messages.push(line.trim_end().to_owned());
        }
        messages
    };
    let (named, matched) = std::thread::scope(|scope| {
        let named = scope.spawn(|| read(&by_name, 7));
        let matched = scope.spawn(|| read(&by_pattern, 9));
        (named.join().expect("it reads"), matched.join().expect("it reads"))
    });
    senders.into_iter().for_each(|sender| sender.join().expect("it sends"));
    assert!(named == matched, "all subscribers see one order");
    let mut next = [0; SENDERS];
    for message in &named {
        let (sender, number) = message.split_once(':').expect("a message");
        let next = &mut next[sender.parse::<usize>().expect("a number")];
        assert_eq!(number.parse::<usize>().expect("a number"), *next, "of sender {sender}");
        *next += 1;
    }
    assert_eq!(next, [EACH; SENDERS]);
}

#[test]
fn a_paused_client_goes_on_by_itself() {
    let server = Running::new();
    let (mut one, mut other) = (server.connect(), server.connect());
    // Commands wait for milliseconds, and for an order.
    assert_eq!(one.call("CLIENT PAUSE 20"), "+OK");
    assert_eq!(other.call("PING"), "+PONG");
    assert_eq!(one.call("CLIENT PAUSE 3600000 WRITE"), "+OK");
    other.send(b"SET k v\r\nGET k\r\n");
    one.send(b"GET k\r\n");
    one.expect(b"$-1\r\n");
    assert_eq!(one.call("CLIENT UNPAUSE"), "+OK");
    other.expect(b"+OK\r\n$1\r\nv\r\n");
}

#[test]
fn what_has_come_is_answered_when_the_server_stops() {
    let mut server = Running::new();
    let mut idle = server.connect();
    assert_eq!(idle.call("PING"), "+PONG");
    let mut client = server.connect();
    let value = "v".repeat(10_000);
    client.send(format!("SET k {value}\r\n").as_bytes());
    client.expect(b"+OK\r\n");
    // 100 MB of replies: the pipeline is at work when the server stops.
    client.send("GET k\r\n".repeat(10_000).as_bytes());
    let first = format!("$10000\r\n{value}\r\n");
    client.expect(first.as_bytes());
    server.stop.cancel();
    let rest = client.expect_end();
    assert_eq!(rest.len(), first.len() * 9_999);
    assert_eq!(idle.expect_end(), b"");
    server.end();
    assert!(TcpStream::connect(server.address).is_err(), "nothing listens");
}

#[test]
fn a_client_that_never_reads_does_not_hold_the_end_up() {
    let options = Options { threads: 2, ..Options::default() };
    let mut server = Running::start(options, Duration::from_millis(50));
    let mut deaf = server.connect();
    let value = "v".repeat(1 << 20);
    deaf.send(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}\r\n", value.len()).as_bytes());
    deaf.expect(b"+OK\r\n");
    deaf.send("GET k\r\n".repeat(1_000).as_bytes());
    let mut one = [0];
    deaf.stream.read_exact(&mut one).expect("replies begin");
    server.end();
}

/// A stream that counts how often it is read from.
struct Counted {
    stream: tokio::io::DuplexStream,
    reads: Arc<AtomicU64>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// 1,000 clients send a long request byte by byte. Another's `GET` waits for a bounded number of
/// reads from them, and not for their requests.
#[test]
fn clients_that_drip_do_not_hold_others_up() {
    const DRIPPING: u64 = 1_000;
    const ROUNDS: usize = 40;
    let options = Options { threads: 2, ..Options::default() };
    let service = Arc::new(Service::new(Db::in_memory(), options).expect("memory"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a thread");
    runtime.block_on(async {
        let reads = Arc::new(AtomicU64::new(0));
        let mut dripping = Vec::new();
        for _ in 0..DRIPPING {
            let (client, stream) = tokio::io::duplex(64);
            let stream = Counted { stream, reads: Arc::clone(&reads) };
            tokio::spawn(serve(stream, Session::new(Arc::clone(&service))));
            dripping.push(client);
        }
        let (mut client, stream) = tokio::io::duplex(64);
        tokio::spawn(serve(stream, Session::new(Arc::clone(&service))));
        let request = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\nvvvvvvvvvvvvvvvvvvvvv";
        let mut most = 0;
        for round in 0..ROUNDS {
            for slow in &mut dripping {
                slow.write_all(&request[round..=round]).await.expect("the server reads");
            }
            let before = reads.load(Ordering::Relaxed);
            client.write_all(b"GET k\r\n").await.expect("the server reads");
            let mut reply = [0; 5];
            client.read_exact(&mut reply).await.expect("the server answers");
            assert_eq!(&reply, b"$-1\r\n");
            most = most.max(reads.load(Ordering::Relaxed) - before);
        }
        // Each is read from once for its byte, and once to learn that there is no other.
        assert!(most <= 2 * DRIPPING, "a reply waited for {most} reads");
        assert!(reads.load(Ordering::Relaxed) >= DRIPPING * ROUNDS as u64 / 2, "they drip");
    });
}

/// A server in a process of its own, so that its memory is its own.
struct Process {
    child: Child,
    /// Closed to end it.
    stdin: Option<ChildStdin>,
    address: SocketAddr,
}

/// Says to a process that it is a server.
const IS_SERVER: &str = "SAPWOOD_TEST_IS_SERVER";

/// Nothing, unless the process was started to be a server.
#[test]
fn process_that_serves() {
    if std::env::var_os(IS_SERVER).is_none() {
        return;
    }
    let options = Options { threads: 2, maxclients: 20_000, ..Options::default() };
    let mut server = Running::start(options, Duration::ZERO);
    println!("LISTENING {}", server.address);
    let mut rest = Vec::new();
    io::stdin().read_to_end(&mut rest).expect("the parent's end");
    server.end();
}

impl Process {
    fn start() -> Process {
        let mut child = Command::new(std::env::current_exe().expect("a program"))
            .args(["--exact", "sockets::process_that_serves", "--nocapture"])
            .env(IS_SERVER, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("a pipe");
        let mut lines = BufReader::new(stdout).lines();
        let address = lines
            .find_map(|line| {
                let line = line.expect("text");
                line.split_once("LISTENING ").map(|(_, address)| address.to_owned())
            })
            .expect("an address");
        // The rest of its output is of no use.
        std::thread::spawn(move || lines.for_each(drop));
        Process { child, stdin, address: address.parse().expect("an address") }
    }

    /// Kibibytes of a field of its status.
    fn kibibytes(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("a status");
        let line = status.lines().find(|line| line.starts_with(name)).expect("a field");
        line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // It may have ended by itself, badly: that is the test's failure already.
        let _ = self.child.wait();
    }
}

/// Whether the process may have so many descriptors; it asks for them.
fn may_have_descriptors(count: u64) -> bool {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= count) {
        return true;
    }
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).is_ok()
        && getrlimit(Resource::Nofile).current.is_none_or(|current| current >= count)
}

#[test]
fn ten_thousand_idle_connections_cost_less_than_4_kib_each() {
    const CONNECTIONS: usize = 10_000;
    if !may_have_descriptors(CONNECTIONS as u64 + 1_000) {
        println!("skipped: the system's limit of descriptors is too low");
        return;
    }
    let server = Process::start();
    let mut first = Wire::new(server.address);
    assert_eq!(first.call("PING"), "+PONG");
    let before = server.kibibytes("VmRSS");
    let mut all: Vec<Wire> = (0..CONNECTIONS).map(|_| Wire::new(server.address)).collect();
    for client in &mut all {
        assert_eq!(client.call("SET key value"), "+OK");
    }
    assert_eq!(all[CONNECTIONS / 2].call("GET key"), "value");
    let grown = server.kibibytes("VmRSS").saturating_sub(before);
    let each = grown * 1_024 / CONNECTIONS as u64;
    println!("{each} bytes for a connection");
    assert!(each < 4_096, "{each} bytes for a connection");
}

#[test]
fn announced_lengths_reserve_no_memory() {
    const CLIENTS: usize = 50;
    let server = Process::start();
    let mut first = Wire::new(server.address);
    assert_eq!(first.call("SET k v"), "+OK");
    let before = server.kibibytes("VmSize");
    let mut all: Vec<Wire> = (0..CLIENTS).map(|_| Wire::new(server.address)).collect();
    for client in &mut all {
        // Behind 100 KB of it, none of the length that was announced is reserved.
        client.send(b"PING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n");
        client.expect(b"+PONG\r\n");
        client.send(&[b'v'; 100_000]);
    }
    assert_eq!(first.call("GET k"), "v");
    // Bytes of addresses, used or not: what is announced would be 25 GiB.
    let grown = server.kibibytes("VmSize").saturating_sub(before);
    assert!(grown < (CLIENTS as u64) * 2 * 1_024 + (256 << 10), "{grown} KiB");
    let mut refused = Wire::new(server.address);
    refused.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1073741824\r\n");
    assert_eq!(refused.expect_end(), b"-ERR Protocol error: invalid bulk length\r\n");
}
