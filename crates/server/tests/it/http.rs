//! HTTP: metrics and health, and roll-ups as Druid has them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use sapwood::Db;
use sapwood::rollup::{
    Dimension, DimensionKind, Metric, Query, Rollup, RowBatch, RowBatchBuilder, ScanOrder, Schema,
    Writer,
};
use sapwood_server::acl;
use sapwood_server::net::Http;
use sapwood_server::service::Options;
use sapwood_server::{Service, Session};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::client::{Client, Value, field, ok};
use crate::rollups::{BY_PAGE, create};

/// A time that is over only when something is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lets the thread of jobs go on.
struct Held(Sender<()>);

/// A server on a port of its own, with one thread for jobs.
struct Running {
    service: Arc<Service>,
    address: SocketAddr,
    ending: CancellationToken,
    stop: CancellationToken,
    runtime: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn new() -> Running {
        Running::start(Options { threads: 1, ..Options::default() })
    }

    fn start(options: Options) -> Running {
        let service = Arc::new(Service::new(Db::in_memory(), options).expect("memory"));
        let (ending, stop) = (CancellationToken::new(), CancellationToken::new());
        let (tell, told) = channel();
        let parts = (Arc::clone(&service), ending.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .max_blocking_threads(1)
                .enable_all()
                .build()
                .expect("threads");
            let handle = runtime.handle().clone();
            runtime.block_on(async {
                let any = SocketAddr::from(([127, 0, 0, 1], 0));
                let http = Http::listen(any).await.expect("a port");
                tell.send((http.address().expect("an address"), handle)).expect("a listener");
                let (service, ending, stop) = parts;
                http.run(service, ending, stop).await;
            });
        });
        let (address, runtime) = told.recv().expect("an address");
        Running { service, address, ending, stop, runtime, thread: Some(thread) }
    }

    /// With a roll-up `edits`.
    fn with_edits() -> (Running, Client) {
        let running = Running::new();
        let mut client = Client::new(&running.service);
        create(&mut client);
        (running, client)
    }

    /// Keeps the one thread of jobs until the answer is dropped.
    fn hold_jobs(&self) -> Held {
        let (release, until) = channel::<()>();
        let (begin, begun) = channel();
        self.runtime.spawn_blocking(move || {
            begin.send(()).expect("it is waited for");
            let _dropped = until.recv();
        });
        begun.recv().expect("the thread is free");
        Held(release)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("an option");
        stream
    }

    fn ask(&self, head: &str, body: &[u8]) -> Response {
        let mut stream = self.connect();
        stream.write_all(&request(head, body)).expect("the server reads");
        response(&mut stream)
    }

    fn get(&self, path: &str) -> Response {
        self.ask(&format!("GET {path} HTTP/1.1"), b"")
    }

    fn query(&self, query: &str) -> Response {
        self.ask(&format!("POST /druid/v2 HTTP/1.1\r\n{JSON}"), query.as_bytes())
    }

    fn ingest(&self, rows: &str) -> Response {
        self.ask(&format!("POST /ingest/edits HTTP/1.1\r\n{JSON}"), rows.as_bytes())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take()
            && !std::thread::panicking()
        {
            thread.join().expect("the server ends");
        }
    }
}

const JSON: &str = "Content-Type: application/json";

fn request(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("{head}\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[derive(Debug)]
struct Response {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Response {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The status, and what Druid's clients read of an error.
    fn failure(&self) -> (u16, String, String) {
        let json = self.json();
        let text =
            |name: &str| json[name].as_str().unwrap_or_else(|| panic!("{self:?}")).to_owned();
        (self.status, text("error"), text("errorMessage"))
    }
}

fn response(stream: &mut TcpStream) -> Response {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("the server answers");
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).expect("text").to_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let len = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; len.expect("a length").parse().expect("a number")];
    stream.read_exact(&mut body).expect("the server answers");
    Response { status, head, body }
}

/// Waits until something holds.
pub(crate) fn until(mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "it does not come to hold");
        std::thread::sleep(Duration::from_millis(2));
    }
}

const ROWS: &str = r#"{"time": "2013-01-01T00:10Z", "page": "Oak", "size": 1, "added": 3}
{"time": "2013-01-01T00:20Z", "page": "Oak", "size": 1, "added": 4}
{"time": "2013-01-01T01:20Z", "page": "Elm", "size": 2, "added": 5}
"#;

/// The answer to `BY_PAGE`. The order of names depends on what else is built.
fn expected() -> serde_json::Value {
    let row = |page: &str, added: i64| {
        serde_json::json!({
            "version": "v1",
            "timestamp": "2013-01-01T00:00:00.000Z",
            "event": {"page": page, "added": added},
        })
    };
    serde_json::json!([row("Elm", 5), row("Oak", 7)])
}

#[test]
fn metrics_and_health_answer() {
    let running = Running::new();
    let metrics = running.get("/metrics");
    assert_eq!(metrics.status, 200);
    assert!(metrics.head.contains("content-type: text/plain; version=0.0.4"), "{metrics:?}");
    let text = metrics.text();
    for line in [
        "# TYPE sapwood_connected_clients gauge",
        "# TYPE sapwood_network_input_bytes_total counter",
        "# TYPE process_cpu_seconds_total counter",
        "# TYPE process_start_time_seconds gauge",
        "sapwood_tables{engine=\"hash\"}",
    ] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line}: {text}");
    }
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}: {text}"))
    };
    assert!(value("process_resident_memory_bytes") > 1e6 && value("process_open_fds") > 2.0);
    assert!(value("process_start_time_seconds") > 1.5e9 && value("process_max_fds") > 2.0);
    assert!(text.contains("sapwood_build_info{version=\"") && !text.contains("# EOF"));
    let open = running.ask("GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text", b"");
    assert!(open.head.contains("content-type: application/openmetrics-text; version=1.0.0"));
    assert!(open.text().ends_with("# EOF\n"), "{open:?}");
    assert_eq!((running.get("/healthz").status, running.get("/readyz").text()), (200, "ready\n"));
    assert_eq!(running.ask("POST /metrics HTTP/1.1", b"").status, 405);
    assert_eq!(running.get("/elsewhere").status, 404);
    running.ending.cancel();
    let ready = running.get("/readyz");
    assert_eq!((ready.status, ready.text()), (503, "ending\n"));
}

#[test]
fn rows_come_in_and_queries_are_answered() {
    let (running, _) = Running::with_edits();
    let told = running.ingest(ROWS);
    assert_eq!(told.status, 200, "{told:?}");
    let json = told.json();
    assert_eq!((&json["processed"], &json["new_facts"]), (&3.into(), &2.into()));
    assert_eq!(json["samples"], serde_json::json!([]));
    for path in ["/druid/v2", "/druid/v2/"] {
        let head = format!("POST {path} HTTP/1.1\r\nContent-Type: application/json; charset=utf-8");
        let answer = running.ask(&head, BY_PAGE.as_bytes());
        assert_eq!((answer.status, answer.json()), (200, expected()));
        assert!(answer.head.contains("content-type: application/json"));
    }
    let pretty =
        running.ask(&format!("POST /druid/v2/?pretty HTTP/1.1\r\n{JSON}"), BY_PAGE.as_bytes());
    assert!(pretty.text().starts_with("[\n  {\n"), "{pretty:?}");
    assert_eq!(pretty.json(), expected());
    let head = format!("POST /druid/v2 HTTP/1.1\r\n{JSON}\r\nAccept: text/csv");
    let csv = running.ask(&head, BY_PAGE.as_bytes());
    assert!(csv.head.contains("content-type: text/csv"));
    let expected =
        "timestamp,page,added\n2013-01-01T00:00:00.000Z,Elm,5\n2013-01-01T00:00:00.000Z,Oak,7\n";
    assert_eq!(csv.text(), expected);
}

#[test]
fn csv_comes_in_and_what_is_no_row_is_told() {
    let (running, _) = Running::with_edits();
    let head = "POST /ingest/edits HTTP/1.1\r\nContent-Type: text/csv";
    let told =
        running.ask(head, b"time,page,added\n2013-01-01,Oak,1\n2013-01-01,Oak\nnever,Oak,1\n");
    let json = told.json();
    assert_eq!((&json["processed"], &json["unparseable"]), (&1.into(), &2.into()), "{told:?}");
    assert_eq!((&json["samples"][0]["line"], &json["samples"][1]["row"]), (&2.into(), &1.into()));
    let told = running.ingest("{}\n{\n");
    assert_eq!(told.json()["unparseable"], 2);
    assert_eq!(running.ingest("").json()["processed"], 0);
}

#[test]
fn roll_ups_are_listed_with_their_columns() {
    let (running, mut client) = Running::with_edits();
    client.line("sw.create t engine hash");
    assert_eq!(running.get("/druid/v2/datasources").text(), r#"["edits"]"#);
    let columns = running.get("/druid/v2/datasources/edits");
    assert_eq!(columns.text(), r#"{"dimensions":["page","size"],"metrics":["edits","added"]}"#);
    for name in ["t", "none", "%2e%2e", "a/b"] {
        let failure = running.get(&format!("/druid/v2/datasources/{name}")).failure();
        assert_eq!((failure.0, failure.1.as_str()), (404, "Unknown datasource"), "{name}");
    }
    let own = running.get("/druid/v2/datasources/redis.0").failure();
    assert!(own.0 == 400 && own.2.contains("the server's own tables"), "{own:?}");
}

#[test]
fn bad_requests_are_refused_as_druid_does() {
    let (running, mut client) = Running::with_edits();
    client.line("sw.create t engine hash");
    let unknown = BY_PAGE.replace("\"edits\"", "\"none\"");
    let of_keys = BY_PAGE.replace("\"edits\"", "\"t\"");
    let invalid = "Query validation failed";
    for (query, status, error, words) in [
        (&*unknown, 404, "Unknown datasource", "no such table"),
        (&of_keys, 400, invalid, "table 't' is a hash table, and no roll-up"),
        ("", 400, invalid, "the query is no JSON"),
        ("{\"queryType\": \"timeBoundary\"}", 400, invalid, "the query has no dataSource"),
        ("{\"dataSource\": \"edits\"}", 400, invalid, "queryType"),
        ("{\"dataSource\": [\"edits\"]}", 400, invalid, "dataSource is no table"),
        (
            r#"{"queryType": "groupBy", "dataSource": "edits", "dimensions": ["user"]}"#,
            400,
            invalid,
            "the query cannot be answered",
        ),
    ] {
        let failure = running.query(query).failure();
        assert_eq!((failure.0, failure.1.as_str()), (status, error), "{query}: {failure:?}");
        assert!(failure.2.contains(words), "{query}: {failure:?}");
    }
    let unsupported = "Unsupported operation";
    for (head, status, error) in [
        ("POST /druid/v2/sql HTTP/1.1\r\nContent-Type: application/json", 501, unsupported),
        ("GET /druid/v2 HTTP/1.1", 405, unsupported),
        ("DELETE /druid/v2/datasources/edits HTTP/1.1", 405, unsupported),
        ("GET /ingest/edits HTTP/1.1", 405, unsupported),
        ("POST /druid/v2 HTTP/1.1", 415, unsupported),
        ("POST /druid/v2 HTTP/1.1\r\nContent-Type: text/plain", 415, unsupported),
        ("POST /ingest/edits HTTP/1.1\r\nContent-Type: text/plain", 415, unsupported),
        ("POST /ingest/edits HTTP/1.1\r\nContent-Type: application/x-thrift", 415, unsupported),
        ("POST /ingest/none HTTP/1.1\r\nContent-Type: text/csv", 404, "Unknown datasource"),
        ("POST /ingest/t HTTP/1.1\r\nContent-Type: application/json", 400, invalid),
        ("POST /druid/v3 HTTP/1.1", 404, "Unknown datasource"),
    ] {
        let failure = running.ask(head, b"{}").failure();
        assert_eq!((failure.0, failure.1.as_str()), (status, error), "{head}: {failure:?}");
    }
    assert!(running.ask("GET /druid/v2 HTTP/1.1", b"").head.contains("allow: post"));
    assert_eq!(running.query(BY_PAGE).text(), "[]", "nothing has come in");
}

#[test]
fn a_body_that_is_too_long_is_refused_before_it_comes() {
    let (running, _) = Running::with_edits();
    let mut stream = running.connect();
    let head = format!(
        "POST /ingest/edits HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\nContent-Length: {}\r\n\r\n",
        (64 << 20) + 1
    );
    stream.write_all(head.as_bytes()).expect("the server reads");
    let failure = response(&mut stream).failure();
    assert_eq!((failure.0, failure.1.as_str()), (413, "Resource limit exceeded"));
}

/// `user:password` in Base64.
fn login(user_and_password: &str) -> String {
    use base64::Engine as _;
    let coded = base64::engine::general_purpose::STANDARD.encode(user_and_password);
    format!("Authorization: Basic {coded}")
}

#[test]
fn users_and_rights_are_those_of_the_redis_protocol() {
    let options = Options {
        threads: 1,
        users: acl::Options { requirepass: Some("secret".into()), ..Default::default() },
        ..Options::default()
    };
    let running = Running::start(options);
    let mut admin = Client::new(&running.service);
    assert_eq!(admin.line("auth secret"), ok());
    create(&mut admin);
    for rule in [
        "acl setuser reader on >pw %R~edits +sw.query",
        "acl setuser writer on >pw %W~edits +sw.ingest",
        "acl setuser off off >pw ~* +@all",
    ] {
        assert_eq!(admin.line(rule), ok(), "{rule}");
    }
    let ask = |user: Option<&str>, head: &str, body: &str| {
        let login = user.map_or_else(|| "X-None: 1".to_owned(), login);
        running.ask(&format!("{head} HTTP/1.1\r\n{JSON}\r\n{login}"), body.as_bytes())
    };
    for (user, asked, brought, listed) in [
        (None, 401, 401, 401),
        (Some("default:wrong"), 401, 401, 401),
        (Some("unknown:pw"), 401, 401, 401),
        (Some("off:pw"), 401, 401, 401),
        (Some("reader:pw"), 200, 403, 403),
        (Some("writer:pw"), 403, 200, 403),
        (Some("default:secret"), 200, 200, 200),
        (Some(":secret"), 200, 200, 200),
    ] {
        let statuses = [
            ask(user, "POST /druid/v2", BY_PAGE).status,
            ask(user, "POST /ingest/edits", ROWS).status,
            ask(user, "GET /druid/v2/datasources", "").status,
        ];
        assert_eq!(statuses, [asked, brought, listed], "{user:?}");
    }
    let refused = ask(None, "POST /druid/v2", BY_PAGE);
    assert!(refused.head.contains("www-authenticate: basic realm=\"sapwood\""), "{refused:?}");
    assert_eq!(refused.failure().1, "Unauthorized request");
    assert_eq!(ask(None, "POST /druid/v2/sql", "{}").status, 401, "all is closed");
    // Metrics tell what INFO tells; health is told to all.
    let metrics = |user| ask(user, "GET /metrics", "").status;
    let statuses = [None, Some("reader:pw"), Some(":secret")].map(metrics);
    assert_eq!((statuses, running.get("/healthz").status), ([401, 403, 200], 200));
    // A connection is no user: each request says its own.
    let mut stream = running.connect();
    for (header, status) in [(login("reader:pw"), 200), ("X-None: 1".to_owned(), 401)] {
        let head = format!("POST /druid/v2 HTTP/1.1\r\n{JSON}\r\n{header}");
        stream.write_all(&request(&head, BY_PAGE.as_bytes())).expect("the server reads");
        assert_eq!(response(&mut stream).status, status);
    }
    // What is refused is in the log, as of other clients.
    let Value::Array(log) = admin.line("acl log") else { panic!("no list") };
    let objects: Vec<Value> = log.iter().map(|entry| field(entry, "object")).collect();
    assert!(objects.contains(&"sw.ingest".into()), "{objects:?}");
}

/// The status of metrics, for a user and a password or none.
fn metrics(running: &Running, user: Option<&str>) -> u16 {
    let login = user.map_or_else(|| "X-None: 1".to_owned(), login);
    running.ask(&format!("GET /metrics HTTP/1.1\r\n{login}"), b"").status
}

#[test]
fn metrics_are_closed_where_info_is() {
    let running = Running::new();
    let mut admin = Client::new(&running.service);
    // The rules of the first user change below.
    assert_eq!(admin.line("acl setuser root on >pw ~* &* +@all"), ok());
    assert_eq!(admin.line("auth root pw"), ok());
    assert_eq!(admin.line("acl setuser scraper on >pw +info"), ok());
    assert_eq!(admin.line("acl setuser reader on >pw ~* +get"), ok());
    for (rules, status) in [
        ("on nopass", 200),
        ("off", 401),
        ("on -info", 403),
        ("+info", 200),
        ("-@all", 403),
        ("+info", 200),
        ("(+get) -info", 403),
        ("(+info)", 200),
        ("resetpass clearselectors +@all", 401),
    ] {
        assert_eq!(admin.line(&format!("acl setuser default {rules}")), ok(), "{rules}");
        assert_eq!(metrics(&running, None), status, "{rules}");
        assert_eq!(metrics(&running, Some("scraper:pw")), 200, "{rules}");
    }
    assert_eq!(metrics(&running, Some("reader:pw")), 403);
    assert_eq!(metrics(&running, Some("scraper:wrong")), 401);
    // What is refused is in the log, as of commands.
    let Value::Array(log) = admin.line("acl log") else { panic!("no list") };
    let has = |name: &str, value: &str| log.iter().any(|entry| field(entry, name) == value.into());
    assert!(has("reason", "auth") && has("object", "info"), "{log:?}");
}

#[test]
fn metrics_wait_for_nothing() {
    let (running, mut client) = Running::with_edits();
    // All say a password.
    assert_eq!(client.line("acl setuser scraper on >pw +info"), ok());
    assert_eq!(client.line("acl setuser default >pw"), ok());
    let head = format!("POST /druid/v2 HTTP/1.1\r\n{JSON}\r\n{}", login("default:pw"));
    let statuses = || {
        let query = running.ask(&head, BY_PAGE.as_bytes());
        (query.status, metrics(&running, Some("scraper:pw")))
    };
    assert_eq!(client.line("client pause 100000"), ok());
    assert_eq!(statuses(), (503, 200));
    assert_eq!(client.line("client unpause"), ok());
    running.service.limits().set_clients(0);
    assert_eq!(statuses(), (503, 200));
    running.service.limits().set_clients(10_000);
    let held = running.hold_jobs();
    let mut streams: Vec<TcpStream> = (0..64).map(|_| running.connect()).collect();
    for stream in &mut streams {
        stream.write_all(&request(&head, BY_PAGE.as_bytes())).expect("the server reads");
    }
    until(|| matches!(client.line("sw.jobs"), Value::Array(jobs) if jobs.len() == 64));
    assert_eq!(statuses(), (429, 200));
    drop(held);
    for stream in &mut streams {
        assert_eq!(response(stream).status, 200);
    }
}

#[test]
fn the_work_of_a_client_that_goes_is_given_up() {
    let (running, mut client) = Running::with_edits();
    let held = running.hold_jobs();
    let before = running.service.client_counts().connected;
    // So many rows are a job.
    let rows = ROWS.repeat(1_000);
    let mut stream = running.connect();
    let head = format!("POST /ingest/edits HTTP/1.1\r\n{JSON}");
    stream.write_all(&request(&head, rows.as_bytes())).expect("the server reads");
    until(|| matches!(client.line("sw.jobs"), Value::Array(jobs) if jobs.len() == 1));
    assert_eq!(running.service.client_counts().connected, before + 1);
    drop(stream);
    until(|| running.service.client_counts().connected == before);
    drop(held);
    until(|| client.line("sw.jobs") == Value::Array(vec![]));
    assert_eq!(field(&client.line("sw.stats edits"), "processed"), 0.into());
    assert_eq!(running.ingest(&rows).json()["processed"], 3_000, "and the server goes on");
}

#[test]
fn so_many_requests_are_answered_at_a_time() {
    let (running, mut client) = Running::with_edits();
    let held = running.hold_jobs();
    let head = format!("POST /druid/v2 HTTP/1.1\r\n{JSON}");
    let mut streams: Vec<TcpStream> = (0..64).map(|_| running.connect()).collect();
    for stream in &mut streams {
        stream.write_all(&request(&head, BY_PAGE.as_bytes())).expect("the server reads");
    }
    until(|| matches!(client.line("sw.jobs"), Value::Array(jobs) if jobs.len() == 64));
    let refused = running.query(BY_PAGE);
    assert_eq!(refused.failure().1, "Query capacity exceeded");
    assert!(refused.status == 429 && refused.head.contains("retry-after: 1"), "{refused:?}");
    assert_eq!(running.get("/healthz").status, 200);
    drop(held.0);
    for stream in &mut streams {
        assert_eq!(response(stream).status, 200);
    }
    until(|| running.query(BY_PAGE).status == 200);
}

#[test]
fn bodies_that_do_not_come_take_no_place() {
    let (running, _) = Running::with_edits();
    let before = running.service.client_counts().connected;
    let head = format!("POST /ingest/edits HTTP/1.1\r\nHost: localhost\r\n{JSON}");
    let streams: Vec<TcpStream> = (0..70)
        .map(|_| {
            let mut stream = running.connect();
            let head = format!("{head}\r\nContent-Length: 100000\r\n\r\n ");
            stream.write_all(head.as_bytes()).expect("the server reads");
            stream
        })
        .collect();
    // Heads have come, and are let in.
    until(|| running.service.client_counts().connected == before + streams.len());
    assert_eq!(running.get("/druid/v2/datasources").text(), r#"["edits"]"#);
    assert_eq!(running.ingest(ROWS).status, 200);
    assert_eq!(running.query(BY_PAGE).json(), expected());
}

#[test]
fn clients_that_are_killed_paused_or_too_many_are_told() {
    let (running, mut client) = Running::with_edits();
    let held = running.hold_jobs();
    let mut stream = running.connect();
    let head = format!("POST /druid/v2 HTTP/1.1\r\n{JSON}");
    stream.write_all(&request(&head, BY_PAGE.as_bytes())).expect("the server reads");
    until(|| matches!(client.line("sw.jobs"), Value::Array(jobs) if jobs.len() == 1));
    let local = stream.local_addr().expect("an address");
    assert_eq!(client.line(&format!("client kill {local}")), ok());
    assert_eq!(response(&mut stream).status, 503);
    drop(held);
    assert_eq!(client.line("client pause 100000 write"), ok());
    assert_eq!(running.ingest(ROWS).status, 503);
    assert_eq!(running.query(BY_PAGE).status, 200);
    assert_eq!(client.line("client unpause"), ok());
    running.service.limits().set_clients(0);
    assert_eq!(running.query(BY_PAGE).status, 503);
    running.service.limits().set_clients(10);
    let _other = Session::new(Arc::clone(&running.service));
    assert_eq!(running.query(BY_PAGE).status, 200);
}

#[test]
fn a_query_has_its_name_in_the_head_of_the_answer() {
    let (running, _) = Running::with_edits();
    let named = |query: &str, context: &str| {
        let begin = format!("{{\"context\": {context},");
        running.query(&query.replacen('{', &begin, 1))
    };
    let unknown = BY_PAGE.replace("\"edits\"", "\"none\"");
    for (query, status) in [(BY_PAGE, 200), (&unknown, 404), ("{\"dataSource\": 7}", 400)] {
        let answer = named(query, r#"{"queryId": "edits by page 7"}"#);
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.head.contains("\r\nx-druid-query-id: edits by page 7\r\n"), "{answer:?}");
    }
    assert!(!running.query(BY_PAGE).head.contains("x-druid-query-id"));
    for (context, words) in [
        (r#"{"queryId": 7}"#, "`context.queryId` is a number, not a text"),
        (r#"{"queryId": "a\r\nb"}"#, "context.queryId is answered in a header"),
        (r#"{"timeout": -1}"#, "`context.timeout` is -1, not a whole number from 0"),
    ] {
        let answer = named(BY_PAGE, context);
        let (status, error, message) = answer.failure();
        assert_eq!((status, &*error), (400, "Query validation failed"), "{answer:?}");
        assert!(message.contains(words) && !answer.head.contains("x-druid-query-id"), "{answer:?}");
    }
}

#[test]
fn queries_are_cancelled_by_their_name() {
    let (running, mut client) = Running::with_edits();
    let held = running.hold_jobs();
    let head = format!("POST /druid/v2 HTTP/1.1\r\n{JSON}");
    let mut streams = ["by page/7", "by page/7", "other"].map(|name| {
        let mut stream = running.connect();
        let begin = format!("{{\"context\": {{\"queryId\": \"{name}\"}},");
        let query = BY_PAGE.replacen('{', &begin, 1);
        stream.write_all(&request(&head, query.as_bytes())).expect("the server reads");
        stream
    });
    let names = |client: &mut Client| {
        let Value::Array(jobs) = client.line("sw.jobs") else { panic!("no list") };
        jobs.iter().map(|job| field(job, "name")).collect::<Vec<_>>()
    };
    until(|| names(&mut client).len() == 3);
    let told = |name: &str| running.ask(&format!("DELETE /druid/v2/{name} HTTP/1.1"), b"").status;
    assert_eq!((told("by%20page%2F7"), told("unknown")), (202, 202));
    assert_eq!(client.line("sw.cancel name unknown"), 0.into());
    drop(held);
    let [one, two, other] = streams.each_mut().map(response);
    for ended in [one, two] {
        let json = ended.json();
        assert_eq!((ended.status, &json["error"]), (500, &"Query cancelled".into()), "{json}");
        assert_eq!(json["errorClass"], "org.apache.druid.query.QueryInterruptedException");
    }
    assert_eq!(other.status, 200);
    assert_eq!(running.ask("DELETE /druid/v2/datasources HTTP/1.1", b"").status, 405);
    assert_eq!(running.ask("GET /druid/v2/by%20page HTTP/1.1", b"").status, 405);
}

#[test]
fn a_query_that_waits_longer_than_its_timeout_is_ended() {
    let (running, mut client) = Running::with_edits();
    // No thread has time for it.
    let held = running.hold_jobs();
    let query = BY_PAGE.replacen('{', r#"{"context": {"timeout": 5},"#, 1);
    let (status, error, message) = running.query(&query).failure();
    assert_eq!((status, error.as_str()), (504, "Query timeout"));
    assert!(message.starts_with("the query took longer than its timeout"), "{message}");
    assert_eq!(client.line("sw.jobs"), Value::Array(vec![]), "it is gone before its turn");
    drop(held);
    assert_eq!(running.query(&query.replace("5}", "3600000}")).status, 200);
}

#[test]
fn rows_come_as_message_pack_and_as_arrow() {
    let (running, _) = Running::with_edits();
    let ingest = |kind: &str, rows: &[u8]| {
        running.ask(&format!("POST /ingest/edits HTTP/1.1\r\nContent-Type: {kind}"), rows)
    };
    for kind in ["application/msgpack", "application/x-msgpack", "application/vnd.msgpack"] {
        let told = ingest(kind, &message_pack("Oak", 3)).json();
        assert_eq!((&told["processed"], &told["unparseable"]), (&1.into(), &0.into()), "{told}");
    }
    let told = ingest("application/vnd.msgpack", &[&message_pack("Oak", 1)[..], b"\xc1"].concat());
    let told = told.json();
    assert_eq!((&told["processed"], &told["unparseable"]), (&1.into(), &1.into()), "{told}");
    assert_eq!(told["samples"][0]["offset"], message_pack("Oak", 1).len());
    let asked = |accept: &str| {
        let head = format!("POST /druid/v2 HTTP/1.1\r\n{JSON}\r\nAccept: {accept}");
        running.ask(&head, BY_PAGE.as_bytes())
    };
    let answer = asked("application/vnd.apache.arrow.stream");
    assert!(
        answer.head.contains("content-type: application/vnd.apache.arrow.stream"),
        "{answer:?}"
    );
    let batches = RowBatch::from_arrow_stream(&answer.body).expect("a stream");
    assert_eq!(batches[0].names().collect::<Vec<_>>(), ["timestamp", "page", "added"]);
    for added in 1..3 {
        let told = ingest("application/vnd.apache.arrow.stream", &arrow("Elm", added)).json();
        assert_eq!((&told["processed"], &told["unparseable"]), (&1.into(), &0.into()), "{told}");
    }
    let told = ingest("application/vnd.apache.arrow.stream", b"no stream");
    assert_eq!(told.failure().0, 400);
    let csv = asked("text/csv");
    let time = "2013-01-01T00:00:00.000Z";
    assert_eq!(csv.text(), format!("timestamp,page,added\n{time},Elm,3\n{time},Oak,10\n"));
}

/// A row `{"time": ..., "page": ..., "added": ...}`.
fn message_pack(page: &str, added: u8) -> Vec<u8> {
    let text = |text: &str| [&[0xa0 | text.len() as u8], text.as_bytes()].concat();
    let fields = [text("time"), text("2013-01-01"), text("page"), text(page), text("added")];
    [&[0x83], &fields.concat()[..], &[added]].concat()
}

/// A stream of such a row.
fn arrow(page: &str, added: i64) -> Vec<u8> {
    let schema = Schema::new("time")
        .dimension(Dimension::text("page"))
        .metric(Metric::long_sum("added", "added"));
    let rollup = Arc::new(Rollup::new(schema).expect("it fits"));
    let mut row = RowBatchBuilder::new();
    row.push("time", "2013-01-01");
    row.push("page", page);
    row.push("added", added);
    row.end_row().expect("within the limits");
    Writer::new(&rollup).ingest(&row.finish()).expect("room");
    let facts = Query::scan(["time", "page", "added"], ScanOrder::Ascending)
        .virtual_column("time", "__time", DimensionKind::Long)
        .expect("it can be read");
    let answer = rollup.query(&facts).expect("it fits");
    answer.to_arrow_stream().expect("it is small")
}

#[test]
fn a_query_that_takes_longer_than_its_timeout_is_ended() {
    let (running, _) = Running::with_edits();
    // Two batches: the time is looked at when the first has been read.
    let rows = (0..2_000)
        .map(|page| format!("{{\"time\": \"2013-01-01\", \"page\": \"{page}\", \"added\": 1}}\n"));
    assert_eq!(running.ingest(&rows.collect::<String>()).status, 200);
    let timed = |figures: usize, timeout: u64| {
        let figures = (0..figures).map(|figure| {
            format!(r#"{{"type": "longSum", "name": "f{figure}", "fieldName": "added"}}"#)
        });
        let figures = figures.collect::<Vec<_>>().join(",");
        running.query(&format!(
            r#"{{"queryType": "timeseries", "dataSource": "edits", "granularity": "all",
            "aggregations": [{figures}], "context": {{"timeout": {timeout}, "queryId": "q"}}}}"#
        ))
    };
    assert_eq!(timed(1, 0).status, 200, "none is no timeout");
    assert_eq!(timed(1, 3_600_000).status, 200);
    // More and more figures, until no machine is fast enough.
    let mut answers = (0..7).map(|zeros| timed(10_usize.pow(zeros), 1));
    let ended = answers.find(|answer| answer.status != 200).expect("it ends");
    assert_eq!(ended.status, 504, "{ended:?}");
    let expected = serde_json::json!({
        "error": "Query timeout",
        "errorMessage":
            "the query took longer than its timeout: ask for fewer facts, or give it more time",
        "errorClass": "org.apache.druid.query.QueryTimeoutException",
        "host": null,
    });
    assert_eq!(ended.json(), expected);
    assert!(ended.head.contains("x-druid-query-id: q\r\n"), "{ended:?}");
    assert_eq!(timed(1, 0).status, 200, "others go on");
}
