//! The replies of `redis-server`, where it is installed, beside ours: byte for byte.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use sapwood::Db;
use sapwood_server::Service;
use sapwood_server::net::{Listeners, Server};
use sapwood_server::service::Options;
use tokio_util::sync::CancellationToken;

/// A time that is over only when something is wrong.
const PATIENCE: Duration = Duration::from_secs(20);

/// A process that ends with the test.
pub(crate) struct Redis(Child);

impl Redis {
    /// `None` where it is not installed.
    pub(crate) fn start(path: &Path) -> Option<Redis> {
        let started = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(path)
            .stdout(Stdio::null())
            .spawn();
        match started {
            Ok(child) => Some(Redis(child)),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => panic!("redis-server: {error}"),
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It has nothing to keep.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server of ours at a path.
pub(crate) struct Ours {
    pub(crate) path: PathBuf,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Ours {
    pub(crate) fn start(path: &Path) -> Ours {
        let stop = CancellationToken::new();
        let (served_at, stopped) = (path.to_owned(), stop.clone());
        let serving = std::thread::spawn(move || {
            let service = Service::new(Db::in_memory(), Options::default()).expect("memory");
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            runtime.expect("threads").block_on(async {
                let mut listeners = Listeners::default();
                listeners.unix(&served_at).expect("a path");
                Server::new(Arc::new(service), stopped).run(listeners).await.expect("it serves");
            });
        });
        Ours { path: path.to_owned(), stop, serving }
    }

    pub(crate) fn end(self) {
        self.stop.cancel();
        self.serving.join().expect("the server ends");
    }
}

/// Connections to one server, made when they are first used.
pub(crate) struct Clients {
    path: PathBuf,
    named: Vec<(String, UnixStream)>,
    asked: usize,
}

impl Clients {
    pub(crate) fn new(path: PathBuf) -> Clients {
        Clients { path, named: Vec::new(), asked: 0 }
    }

    fn stream(&mut self, name: &str) -> &mut UnixStream {
        let at = self.named.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            let stream = loop {
                // The server may not listen yet.
                if let Ok(stream) = UnixStream::connect(&self.path) {
                    stream.set_read_timeout(Some(PATIENCE)).expect("an option");
                    break stream;
                }
                std::thread::yield_now();
            };
            self.named.push((name.to_owned(), stream));
            self.named.len() - 1
        });
        &mut self.named[at].1
    }

    /// The same for many requests at a time, each a line.
    pub(crate) fn call_many(&mut self, name: &str, requests: &[String]) -> Vec<String> {
        let mut sent = String::new();
        let mut marks = Vec::new();
        for request in requests {
            self.asked += 1;
            let mark = format!("mark-{}.", self.asked);
            sent += &format!("{}\r\nPING {mark}\r\n", request.replace("; ", "\r\n"));
            marks.push(mark);
        }
        let stream = self.stream(name);
        stream.write_all(sent.as_bytes()).expect("the server reads");
        let end = marks.last().map(|mark| format!("{mark}\r\n")).unwrap_or_default();
        let (mut found, mut part) = (Vec::new(), vec![0; 1 << 16]);
        while !found.ends_with(end.as_bytes()) {
            let read = stream.read(&mut part).expect("the server answers");
            assert!(read > 0, "the server answers all of {requests:?}");
            found.extend_from_slice(&part[..read]);
        }
        let found = String::from_utf8_lossy(&found);
        let mut rest = &*found;
        let of_mark = |mark: &String| {
            let (reply, behind) = rest.split_once(mark.as_str()).expect("a mark");
            rest = behind.strip_prefix("\r\n").expect("a line");
            reply.to_owned()
        };
        marks.iter().map(of_mark).collect()
    }

    /// All that comes for a client up to the reply to a `PING` behind its request.
    pub(crate) fn call(&mut self, name: &str, request: &str) -> String {
        self.asked += 1;
        let mark = format!("mark-{}", self.asked);
        let request = format!("{}\r\nPING {mark}\r\n", request.replace("; ", "\r\n"));
        let stream = self.stream(name);
        // A connection that has ended refuses the request, or takes it and answers nothing.
        let is_taken = stream.write_all(request.as_bytes()).is_ok();
        let end = format!("{mark}\r\n");
        let mut found = Vec::new();
        while is_taken && !found.ends_with(end.as_bytes()) {
            let mut byte = [0];
            match stream.read(&mut byte) {
                Ok(1) => found.push(byte[0]),
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => panic!("{name} {request}: {error}"),
            }
        }
        String::from_utf8_lossy(&found).into_owned()
    }
}

/// Each line has a client's name and requests. A transaction is one line, so that it is over when
/// the mark comes.
const REQUESTS: &str = r#"
a CLIENT GETNAME
a CLIENT SETNAME one
a CLIENT GETNAME
a CLIENT SETNAME "a b"
a CLIENT SETNAME ""
a CLIENT GETNAME
a CLIENT
a CLIENT NONSENSE
a CLIENT ID x
a CLIENT KILL x
a CLIENT KILL ID 0
a CLIENT KILL ID x
a CLIENT KILL ID 99999
a CLIENT KILL TYPE x
a CLIENT KILL TYPE master
a CLIENT KILL USER nobody
a CLIENT KILL ADDR a ID
a CLIENT KILL ADDR 127.0.0.1:1
a CLIENT KILL SKIPME x
a CLIENT LIST TYPE x
a CLIENT LIST ID x
a CLIENT LIST ID
a CLIENT LIST ID 99999
a CLIENT LIST x
a CLIENT PAUSE x
a CLIENT PAUSE -1
a CLIENT PAUSE 1 x
a CLIENT PAUSE 1 x y
a CLIENT UNBLOCK 1 x y
c PUBSUB SHARDCHANNELS a b
a CLIENT PAUSE 0
a CLIENT PAUSE 1 WRITE
a CLIENT UNPAUSE
a CLIENT UNBLOCK x
a CLIENT UNBLOCK 99999
a CLIENT UNBLOCK 1 x
a CLIENT UNBLOCK 99999 ERROR
a CLIENT REPLY x
a CLIENT REPLY ON
a CLIENT NO-EVICT x
a CLIENT NO-EVICT on
a CLIENT NO-EVICT OFF
a CLIENT TRACKING OFF
a CLIENT TRACKING x
a CLIENT TRACKINGINFO
a CLIENT CACHING yes
a CLIENT GETREDIR
b HELLO 3 x
b CLIENT TRACKINGINFO
b CLIENT GETNAME
a SUBSCRIBE
a SUBSCRIBE c d c
a GET k
a MULTI
a CLIENT ID
a NONSENSE
a PING
a PING x
a PING x y
a PSUBSCRIBE lo* ?
a SSUBSCRIBE c
c PUBLISH c 1
c PUBLISH d 2
c PUBLISH e 3
c PUBLISH longer 4
c SPUBLISH c 5
c PUBLISH c
a PING y
c PUBSUB NUMPAT
c PUBSUB NUMPAT x
c PUBSUB NUMSUB
c PUBSUB NUMSUB c d e
c PUBSUB CHANNELS c
c PUBSUB CHANNELS x*
c PUBSUB CHANNELS a b
c PUBSUB SHARDCHANNELS
c PUBSUB SHARDNUMSUB c d
c PUBSUB
c PUBSUB NONSENSE
a UNSUBSCRIBE c
a UNSUBSCRIBE c
a UNSUBSCRIBE
a UNSUBSCRIBE
a PUNSUBSCRIBE ?
a PUNSUBSCRIBE
a SUNSUBSCRIBE x
a SUNSUBSCRIBE
a PUNSUBSCRIBE
a SUNSUBSCRIBE
a GET k
a MULTI; SUBSCRIBE m; PUBLISH n 1; PSUBSCRIBE m*; EXEC
c PUBLISH m 1
a RESET
a GET k
c PUBLISH m 1
c MULTI; PUBLISH m 1; CLIENT GETNAME; EXEC
a CONFIG GET nothing
a CONFIG GET client-output-buffer-limit
a CONFIG SET client-output-buffer-limit ""
a CONFIG SET client-output-buffer-limit normal
a CONFIG SET client-output-buffer-limit "normal 1 1 1 pubsub"
a CONFIG SET client-output-buffer-limit "other 1 1 1"
a CONFIG SET client-output-buffer-limit "master 1 1 1"
a CONFIG SET client-output-buffer-limit "normal 10mbs 10mb 60"
a CONFIG SET client-output-buffer-limit "replica 10mb 10mbs 60"
a CONFIG SET client-output-buffer-limit "pubsub 10mb 10mb 60s"
a CONFIG SET client-output-buffer-limit "pubsub 10mb 10mb -1"
a CONFIG SET client-output-buffer-limit "normal 1mb 2mb 60 REPLICA 3mb 4mb 70 pubsub 5mb 6k 80"
a CONFIG GET client-output-buffer-limit
a CONFIG SET client-output-buffer-limit "normal 0 0 0"
a CONFIG SET timeout
a CONFIG SET timeout 0 timeout
a CONFIG SET timeout 0 TIMEOUT 0
a CONFIG SET timeout 1 Nothing 1
a CONFIG SET timeout 1 DATABASES 1
a CONFIG SET TIMEOUT x
a CONFIG SET timeout -1
a CONFIG SET timeout 2147483648
a CONFIG GET timeout
a CONFIG SET tcp-keepalive 1.5
a CONFIG SET maxclients 0
a CONFIG SET maxclients 4294967296
a CONFIG SET maxmemory x
a CONFIG SET maxmemory -1
a CONFIG SET client-query-buffer-limit 1kb
a CONFIG SET client-query-buffer-limit 9223372036854775808
a CONFIG SET slowlog-log-slower-than -2
a CONFIG SET slowlog-max-len -1
a CONFIG SET acllog-max-len +1
a CONFIG SET latency-monitor-threshold -1
a CONFIG SET latency-monitor-threshold 9223372036854775808
a CONFIG SET appendfsync sometimes
a CONFIG SET appendfsync NO appendfsync NO
a CONFIG SET acl-pubsub-default x
a CONFIG SET protected-mode x
a CONFIG SET protected-mode YES
a CONFIG SET save "60"
a CONFIG SET save "0 1"
a CONFIG SET save "60 x"
a CONFIG SET save ""
d SUBSCRIBE z
c CLIENT KILL TYPE pubsub
d PING
e CLIENT KILL TYPE normal SKIPME no
e PING
"#;

#[test]
fn replies_are_those_of_redis() {
    let folder = tempfile::tempdir().expect("a folder");
    let redis_path = folder.path().join("redis");
    let Some(_redis) = Redis::start(&redis_path) else {
        println!("skipped: redis-server is not installed");
        return;
    };
    let ours = Ours::start(&folder.path().join("sapwood"));
    let mut theirs = Clients::new(redis_path);
    let mut clients = Clients::new(ours.path.clone());
    let mut differences = Vec::new();
    for line in REQUESTS.lines().filter(|line| !line.is_empty()) {
        let (name, request) = line.split_once(' ').expect("a client and a request");
        let (theirs, ours) = (theirs.call(name, request), clients.call(name, request));
        if theirs != ours {
            differences.push(format!("{line}\n  theirs: {theirs:?}\n  ours:   {ours:?}"));
        }
    }
    ours.end();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
