//! `CLIENT`, without sockets.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sapwood::Db;
use sapwood_server::clients::OutputLimits;
use sapwood_server::clock::Clock;
use sapwood_server::service::Options;
use sapwood_server::session::Next;
use sapwood_server::{Service, Session};

use crate::client::{Client, START, Value, ok, request, service};

fn error(text: &str) -> Value {
    Value::Error(text.to_owned())
}

fn text(value: Value) -> String {
    match value {
        Value::Bulk(bytes) => String::from_utf8(bytes).expect("text"),
        other => panic!("no text: {other:?}"),
    }
}

/// A field of a line of `CLIENT LIST`.
fn field<'l>(line: &'l str, name: &str) -> &'l str {
    let of_name = |field: &'l str| field.split_once('=').filter(|(found, _)| *found == name);
    line.split([' ', '\n']).find_map(of_name).expect("a field").1
}

fn lines(client: &mut Client, command: &str) -> Vec<String> {
    text(client.line(command)).lines().map(str::to_owned).collect()
}

fn id(client: &mut Client) -> i64 {
    match client.line("CLIENT ID") {
        Value::Integer(id) => id,
        other => panic!("no number: {other:?}"),
    }
}

#[test]
fn clients_tell_what_they_are() {
    let service = service();
    let mut client = Client::new(&service);
    assert_eq!(client.line("CLIENT GETNAME"), Value::Null);
    assert_eq!(client.line("CLIENT SETNAME one"), ok());
    assert_eq!(client.line("CLIENT GETNAME"), "one".into());
    assert_eq!(
        client.call(&[b"CLIENT", b"SETNAME", b"a b"]),
        error("ERR Client names cannot contain spaces, newlines or special characters.")
    );
    assert_eq!(client.line("CLIENT SETINFO LIB-NAME tree-rs"), ok());
    assert_eq!(client.line("CLIENT SETINFO lib-ver 1.2"), ok());
    assert_eq!(
        client.call(&[b"CLIENT", b"SETINFO", b"lib-ver", b"1\n2"]),
        error("ERR lib-ver cannot contain spaces, newlines or special characters.")
    );
    assert_eq!(client.line("CLIENT SETINFO lib-age 7"), error("ERR Unrecognized option 'lib-age'"));
    assert_eq!(client.line("SELECT 3"), ok());
    service.set_clock(START + 65_000);
    let line = text(client.line("CLIENT INFO"));
    for (name, value) in [
        ("name", "one"),
        ("lib-name", "tree-rs"),
        ("lib-ver", "1.2"),
        ("age", "65"),
        ("idle", "0"),
        ("db", "3"),
        ("flags", "N"),
        ("multi", "-1"),
        ("cmd", "client|info"),
        ("user", "default"),
        ("resp", "2"),
        ("qbuf", "26"),
    ] {
        assert_eq!(field(&line, name), value, "{name} in {line}");
    }
    assert_eq!(client.call(&[b"CLIENT", b"SETNAME", b""]), ok());
    assert_eq!(client.line("CLIENT GETNAME"), Value::Null);
}

#[test]
fn others_see_what_a_client_does() {
    let service = service();
    let (mut busy, mut other) = (Client::new(&service), Client::new(&service));
    let (id, own) = (id(&mut busy), id(&mut other));
    busy.line("WATCH a b");
    busy.line("MULTI");
    busy.line("SET a 1");
    other.line("SET b 1");
    busy.line("GET a");
    service.set_clock(START + 7_000);
    let listed = lines(&mut other, &format!("CLIENT LIST ID {id} {id} 99"));
    assert_eq!(listed.len(), 2, "one for each number that there is");
    for (name, value) in [
        ("flags", "xd"),
        ("multi", "2"),
        ("watch", "2"),
        ("cmd", "get"),
        ("idle", "7"),
        ("qbuf", "0"),
        ("multi-mem", "209"),
        ("omem", "0"),
    ] {
        assert_eq!(field(&listed[0], name), value, "{name} in {}", listed[0]);
    }
    let memory = |line: &str| field(line, "tot-mem").parse::<usize>().expect("a number");
    let with_transaction = memory(&listed[0]);
    busy.line("DISCARD");
    let listed = lines(&mut other, &format!("CLIENT LIST ID {id}"));
    assert_eq!(with_transaction - memory(&listed[0]), 209);
    assert!((100..4_096).contains(&memory(&listed[0])), "{}", listed[0]);
    busy.send(b"SUBSCRIBE x y\r\n");
    busy.line("PSUBSCRIBE z*");
    let listed = lines(&mut other, "CLIENT LIST TYPE pubsub");
    assert_eq!(listed.len(), 1);
    let seen = ["id", "flags", "sub", "psub", "ssub"].map(|name| field(&listed[0], name));
    assert_eq!(seen, [&*id.to_string(), "P", "2", "1", "0"]);
    let listed = lines(&mut other, "CLIENT LIST TYPE normal");
    assert_eq!(field(&listed[0], "id"), own.to_string());
    assert_eq!(lines(&mut other, "CLIENT LIST").len(), 2);
    assert_eq!(lines(&mut other, "CLIENT LIST TYPE replica").len(), 0);
    drop(busy);
    assert_eq!(lines(&mut other, "CLIENT LIST").len(), 1);
    assert_eq!(other.line("CLIENT LIST TYPE x"), error("ERR Unknown client type 'x'"));
    assert_eq!(other.line("CLIENT LIST ID x"), error("ERR Invalid client ID"));
    assert_eq!(other.line("CLIENT LIST x"), error("ERR syntax error"));
}

/// Bytes that came, bytes that went out.
#[test]
fn bytes_are_counted() {
    let service = service();
    let mut client = Client::new(&service);
    client.line("PING");
    let line = text(client.line("CLIENT INFO"));
    assert_eq!(field(&line, "tot-net-in"), "14");
    assert_eq!(field(&line, "tot-net-out"), "7");
}

#[test]
fn a_client_that_is_killed_executes_nothing_more() {
    let service = service();
    let mut killer = Client::new(&service);
    let mut session = Session::new(Arc::clone(&service));
    let mut out = Vec::new();
    session.run(b"CLIENT ID\r\n", &mut out);
    let id = String::from_utf8(out[1..out.len() - 2].to_vec()).expect("text");
    assert_eq!(killer.line(&format!("CLIENT KILL ID {id}")), 1.into());
    out.clear();
    let (used, next) = session.run(b"SET k v\r\n", &mut out);
    assert_eq!((used, out.len()), (0, 0));
    assert!(matches!(next, Next::Close), "{next:?}");
    assert_eq!(killer.line("EXISTS k"), 0.into());
    drop(session);
    assert_eq!(killer.line(&format!("CLIENT KILL ID {id}")), 0.into());
}

#[test]
fn clients_are_killed_by_what_they_are() {
    let service = service();
    let mut killer = Client::new(&service);
    let mut killed = |filter: &str| {
        let mut normal = Client::new(&service);
        let mut subscriber = Client::new(&service);
        normal.line("PING");
        subscriber.line("SUBSCRIBE x");
        let reply = killer.line(&format!("CLIENT KILL {filter}"));
        let is_gone = |client: &mut Client| client.send(b"PING\r\n").is_empty();
        (reply, is_gone(&mut normal), is_gone(&mut subscriber))
    };
    assert_eq!(killed("TYPE normal"), (1.into(), true, false));
    assert_eq!(killed("TYPE pubsub"), (1.into(), false, true));
    assert_eq!(killed("TYPE pubsub SKIPME no"), (1.into(), false, true));
    assert_eq!(killed("TYPE replica"), (0.into(), false, false));
    assert_eq!(killed("USER default"), (2.into(), true, true));
    assert_eq!(killed("USER default TYPE pubsub"), (1.into(), false, true));
    assert_eq!(killed("MAXAGE 1"), (0.into(), false, false));
    assert_eq!(killed("ADDR 127.0.0.1:1"), (0.into(), false, false));
    assert_eq!(killed("127.0.0.1:1"), (error("ERR No such client"), false, false));
    for (filter, text) in [
        ("ID 0", "ERR client-id should be greater than 0"),
        ("ID x", "ERR client-id should be greater than 0"),
        ("TYPE x", "ERR Unknown client type 'x'"),
        ("USER bob", "ERR No such user 'bob'"),
        ("MAXAGE 0", "ERR maxage should be greater than 0"),
        ("MAXAGE x", "ERR maxage is not an integer or out of range"),
        ("SKIPME maybe", "ERR syntax error"),
        ("ID 1 TYPE", "ERR syntax error"),
    ] {
        assert_eq!(killed(filter), (error(text), false, false), "{filter}");
    }
    service.set_clock(START + 5_000);
    assert_eq!(killed("MAXAGE 5"), (0.into(), false, false));
    // The caller is old enough, and gets its reply before it ends.
    assert_eq!(killed("MAXAGE 5 SKIPME no"), (1.into(), false, false));
}

#[test]
fn replies_are_left_out() {
    let service = service();
    let mut client = Client::new(&service);
    let replies = client.send(
        b"CLIENT REPLY SKIP\r\nSET a 1\r\nGET a\r\nCLIENT REPLY OFF\r\nGET a\r\nNONSENSE\r\n\
          KEYS *\r\nCLIENT REPLY SKIP\r\nGET a\r\nCLIENT REPLY ON\r\nSTRLEN a\r\n",
    );
    assert_eq!(replies, ["1".into(), ok(), 1.into()]);
    assert_eq!(client.line("CLIENT REPLY x"), error("ERR syntax error"));
    assert_eq!(client.send(b"CLIENT REPLY OFF\r\nRESET\r\nPING\r\n").len(), 2);
}

/// Executes requests of a session that may be paused; answers the bytes used, and the replies.
fn run(session: &mut Session, requests: &[u8]) -> (usize, String) {
    let mut out = Vec::new();
    let (used, _) = session.run(requests, &mut out);
    (used, String::from_utf8(out).expect("text"))
}

fn pair(service: &Arc<Service>) -> (Session, Session) {
    (Session::new(Arc::clone(service)), Session::new(Arc::clone(service)))
}

#[test]
fn a_pause_holds_commands_back() {
    let service = service();
    let (mut one, mut other) = pair(&service);
    assert_eq!(run(&mut one, b"CLIENT PAUSE 1000\r\n").1, "+OK\r\n");
    assert_eq!(other.pause_millis(), Some(1_000));
    assert_eq!(service.client_counts().blocked, 0);
    for requests in [&b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"[..], b"PING\r\n", b"MULTI\r\n"] {
        assert_eq!(run(&mut other, requests), (0, String::new()));
    }
    assert_eq!(service.client_counts().blocked, 1);
    service.set_clock(START + 1_000);
    assert_eq!(other.pause_millis(), None);
    assert_eq!(run(&mut other, b"PING\r\n").1, "+PONG\r\n");
    assert_eq!(service.client_counts().blocked, 0);
}

#[test]
fn a_pause_of_writes_holds_writes_back() {
    let service = service();
    let (mut one, mut other) = pair(&service);
    run(&mut other, b"MULTI\r\nSET k v\r\n");
    assert_eq!(run(&mut one, b"CLIENT PAUSE 60000 WRITE\r\n").1, "+OK\r\n");
    assert_eq!(run(&mut other, b"EXEC\r\n"), (0, String::new()));
    let requests = b"PING\r\nGET k\r\nSET k v\r\nPING\r\n";
    let (used, replies) = run(&mut one, requests);
    assert_eq!((&requests[used..], &*replies), (&b"SET k v\r\nPING\r\n"[..], "+PONG\r\n$-1\r\n"));
    assert_eq!(run(&mut one, b"PUBLISH c m\r\n"), (0, String::new()));
    assert_eq!(run(&mut one, b"CLIENT UNPAUSE\r\n").1, "+OK\r\n");
    assert_eq!(run(&mut other, b"EXEC\r\n").1, "*1\r\n+OK\r\n");
    assert_eq!(run(&mut one, b"GET k\r\n").1, "$1\r\nv\r\n");
}

#[test]
fn orders_that_make_no_sense_are_refused_as_redis_does() {
    let service = service();
    let mut client = Client::new(&service);
    for (line, text) in [
        ("CLIENT", "ERR wrong number of arguments for 'client' command"),
        ("CLIENT NONSENSE", "ERR unknown subcommand 'NONSENSE'. Try CLIENT HELP."),
        ("CLIENT ID x", "ERR wrong number of arguments for 'client|id' command"),
        ("CLIENT PAUSE x", "ERR timeout is not an integer or out of range"),
        ("CLIENT PAUSE -1", "ERR timeout is negative"),
        ("CLIENT PAUSE 1 x", "ERR CLIENT PAUSE mode must be WRITE or ALL"),
        ("CLIENT UNBLOCK x", "ERR value is not an integer or out of range"),
        ("CLIENT UNBLOCK 1 x", "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
        ("CLIENT NO-EVICT x", "ERR syntax error"),
        ("CLIENT NO-TOUCH x", "ERR syntax error"),
    ] {
        assert_eq!(client.line(line), error(text), "{line}");
    }
    assert_eq!(client.line("CLIENT UNBLOCK 1 TIMEOUT"), 0.into());
    assert_eq!(client.line("CLIENT NO-EVICT on"), ok());
    assert_eq!(client.line("CLIENT NO-TOUCH ON"), ok());
    assert_eq!(field(&text(client.line("CLIENT INFO")), "flags"), "eT");
    assert_eq!(client.line("CLIENT TRACKING off"), ok());
    assert!(matches!(client.line("CLIENT TRACKING on"), Value::Error(_)));
    assert_eq!(client.line("CLIENT GETREDIR"), (-1).into());
    match client.line("CLIENT HELP") {
        Value::Array(lines) => assert!(lines.len() > 40),
        other => panic!("no help: {other:?}"),
    }
}

#[test]
fn reset_makes_a_client_new() {
    let service = service();
    let mut client = Client::new(&service);
    client.line("HELLO 3");
    client.line("CLIENT SETNAME n");
    client.line("CLIENT SETINFO lib-name l");
    client.line("CLIENT NO-TOUCH on");
    client.line("SELECT 2");
    client.line("SUBSCRIBE c");
    client.line("PSUBSCRIBE c*");
    client.line("WATCH k");
    client.line("MULTI");
    assert_eq!(client.line("RESET"), Value::Simple("RESET".to_owned()));
    assert_eq!(client.line("PUBLISH c m"), 0.into());
    let line = text(client.line("CLIENT INFO"));
    for (name, value) in [
        ("name", ""),
        ("lib-name", "l"),
        ("flags", "N"),
        ("db", "0"),
        ("sub", "0"),
        ("psub", "0"),
        ("watch", "0"),
        ("multi", "-1"),
        ("resp", "2"),
    ] {
        assert_eq!(field(&line, name), value, "{name} in {line}");
    }
}

/// A pipeline of reads makes as many replies as fit, and goes on when they are sent.
#[test]
fn a_pipeline_of_long_values_pauses() {
    let service = service();
    let mut session = Session::new(Arc::clone(&service));
    let value = vec![b'v'; 256 << 10];
    let mut out = Vec::new();
    session.run(&request(&[b"SET", b"k", &value]), &mut out);
    let requests = request(&[b"GET", b"k"]).repeat(200);
    let (mut rest, mut replied) = (&requests[..], 0);
    while !rest.is_empty() {
        out.clear();
        let (used, _) = session.run(rest, &mut out);
        assert!(used > 0 && out.len() < 5 << 20, "{} bytes of replies at a time", out.len());
        rest = &rest[used..];
        replied += out.len();
    }
    assert_eq!(replied, 200 * (value.len() + "$262144\r\n\r\n".len()));
}

/// Bounds that a client may exceed for a while: they are looked at by a timer.
#[test]
fn a_client_that_leaves_much_unread_for_long_is_closed() {
    let output_limits = OutputLimits::default().with("pubsub 0 100 5").expect("a limit");
    let clock = Clock::Manual(AtomicU64::new(START));
    let options = Options { clock, output_limits, ..Options::default() };
    let service = Arc::new(Service::new(Db::in_memory(), options).expect("memory"));
    let (mut slow, mut other) = (Client::new(&service), Client::new(&service));
    slow.line("SUBSCRIBE a");
    let mut post = |count: usize| {
        (0..count).for_each(|_| assert_eq!(other.line("PUBLISH a 123456789"), 1.into()));
    };
    // 39 bytes each.
    post(3);
    service.close_full_clients();
    service.set_clock(START + 4_999);
    service.close_full_clients();
    assert_eq!(slow.messages().len(), 3, "it takes them in time");
    service.close_full_clients();
    post(3);
    service.set_clock(START + 5_000);
    service.close_full_clients();
    service.set_clock(START + 9_999);
    service.close_full_clients();
    post(1);
    service.set_clock(START + 10_000);
    service.close_full_clients();
    assert_eq!(slow.messages(), [], "it is closed");
    drop(slow);
    assert_eq!(service.client_counts().closed_for_output, 1);
}

#[test]
fn bounds_of_what_waits_are_set_as_in_redis() {
    let service = service();
    let mut client = Client::new(&service);
    let get =
        |client: &mut Client, name: &str| field_of(&client.line(&format!("CONFIG GET {name}")));
    let name = "client-output-buffer-limit";
    let set =
        client.call(&[b"CONFIG", b"SET", name.as_bytes(), b"normal 1mb 512kb 7 pubsub 0 0 0"]);
    assert_eq!(set, ok());
    let text = "normal 1048576 524288 7 slave 268435456 67108864 60 pubsub 0 0 0";
    assert_eq!(get(&mut client, name), text.into());
    for wrong in ["normal 1 1", "other 1 1 1", "normal 1 1 x"] {
        let refused = client.call(&[b"CONFIG", b"SET", name.as_bytes(), wrong.as_bytes()]);
        assert!(matches!(refused, Value::Error(_)), "{wrong}: {refused:?}");
    }
    let name = "client-query-buffer-limit";
    assert_eq!(get(&mut client, name), (1_u64 << 30).to_string().as_str().into());
    assert_eq!(client.line("CONFIG SET client-query-buffer-limit 2mb"), ok());
    assert!(matches!(client.line("CONFIG SET client-query-buffer-limit 1000"), Value::Error(_)));
    assert_eq!(get(&mut client, name), (2_u64 << 20).to_string().as_str().into());
}

/// The value of the one parameter that `CONFIG GET` found.
fn field_of(reply: &Value) -> Value {
    match reply {
        Value::Array(pair) => pair[1].clone(),
        Value::Map(pairs) => pairs[0].1.clone(),
        other => panic!("{other:?}"),
    }
}
