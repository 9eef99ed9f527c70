//! Transactions, and what breaks them.

use crate::client::{Client, START, Value, ok, service};

fn queued() -> Value {
    Value::Simple("QUEUED".to_owned())
}

fn error(text: &str) -> Value {
    Value::Error(text.to_owned())
}

#[test]
fn commands_wait_for_exec() {
    let service = service();
    let (mut one, mut two) = (Client::new(&service), Client::new(&service));
    assert_eq!(one.line("multi"), ok());
    assert_eq!(one.line("set a 1"), queued());
    assert_eq!(one.line("incr a"), queued());
    assert_eq!(one.line("keys *"), queued());
    assert_eq!(two.line("get a"), Value::Null);
    let keys = Value::Array(vec!["a".into()]);
    assert_eq!(one.line("exec"), Value::Array(vec![ok(), Value::Integer(2), keys]));
    assert_eq!(two.line("get a"), "2".into());
    assert_eq!(one.line("exec"), error("ERR EXEC without MULTI"));
    assert_eq!(one.line("discard"), error("ERR DISCARD without MULTI"));
}

#[test]
fn a_command_that_is_refused_breaks_the_transaction() {
    let service = service();
    let mut client = Client::new(&service);
    client.line("multi");
    assert_eq!(client.line("set a 1"), queued());
    assert_eq!(client.line("multi"), error("ERR MULTI calls can not be nested"));
    assert_eq!(client.line("watch a"), error("ERR WATCH inside MULTI is not allowed"));
    assert_eq!(client.line("get"), error("ERR wrong number of arguments for 'get' command"));
    let aborted = "EXECABORT Transaction discarded because of previous errors.";
    assert_eq!(client.line("exec"), error(aborted));
    assert_eq!(client.line("get a"), Value::Null);
}

#[test]
fn one_that_fails_in_exec_leaves_the_others() {
    let service = service();
    let mut client = Client::new(&service);
    client.line("set a text");
    client.line("multi");
    client.line("incr a");
    client.line("set b 1");
    let Value::Array(replies) = client.line("exec") else { panic!("an array") };
    assert_eq!(replies, [error("ERR value is not an integer or out of range"), ok()]);
}

/// What breaks a watch of the key `a`, and what does not.
#[test]
fn a_watch_is_broken_by_each_change_of_the_key() {
    let changes = [
        "set a 2",
        "append a x",
        "del a",
        "unlink a b",
        "getdel a",
        "mset b 1 a 2",
        "rename b a",
        "rename a c",
        "expire a 100",
        "pexpire a -1",
        "incrby b 0 a",
        "setrange a 0 x",
        "flushall",
        "flushdb",
        "copy b a replace",
        "getex a ex 5",
        "getset a 1",
        "setex a 5 1",
        "decr a",
        "incrbyfloat a 0.5",
    ];
    let others = [
        "get a",
        "set b 2",
        "setnx a 3",
        "exists a",
        "persist a",
        "del c",
        "msetnx a 1 c 2",
        "copy a c",
        "set a 2 nx",
        "getex a",
        "renamenx b a",
        "ttl a",
        "keys *",
        "append c x",
    ];
    for (commands, breaks) in [(&changes[..], true), (&others[..], false)] {
        for change in commands.iter().filter(|change| **change != "incrby b 0 a") {
            let service = service();
            let (mut one, mut two) = (Client::new(&service), Client::new(&service));
            assert_eq!(one.line("mset a 1 b 1"), ok());
            assert_eq!(one.line("watch a"), ok());
            two.line(change);
            one.line("multi");
            one.line("ping");
            let expected = match breaks {
                true => Value::Null,
                false => Value::Array(vec![Value::Simple("PONG".to_owned())]),
            };
            assert_eq!(one.line("exec"), expected, "after {change}");
        }
    }
}

#[test]
fn a_watched_key_whose_time_ends_has_changed() {
    let service = service();
    let mut client = Client::new(&service);
    client.line("set a 1 px 10");
    client.line("watch a");
    service.set_clock(START + 10);
    client.line("multi");
    client.line("ping");
    assert_eq!(client.line("exec"), Value::Null);
}

/// Another client's command may be first to meet a key whose time has ended.
#[test]
fn a_watched_key_that_ends_has_changed_whichever_command_meets_it() {
    for line in ["get a", "del a", "getdel a", "set a 2 xx", "pexpire a -1", "flushdb"] {
        let service = service();
        let (mut one, mut two) = (Client::new(&service), Client::new(&service));
        one.line("set a 1 px 10");
        one.line("watch a");
        service.set_clock(START + 10);
        two.line(line);
        one.line("multi");
        one.line("ping");
        assert_eq!(one.line("exec"), Value::Null, "after {line}");
    }
}

#[test]
fn a_key_that_had_ended_when_the_watch_began_has_not_changed() {
    let service = service();
    let mut client = Client::new(&service);
    client.line("set a 1 px 10");
    service.set_clock(START + 10);
    client.line("watch a");
    while service.expire().expect("memory") {}
    client.line("multi");
    assert_eq!(client.line("exec"), Value::Array(Vec::new()));
}

#[test]
fn a_key_that_has_ended_before_it_is_watched_breaks_no_watch() {
    let service = service();
    let (mut one, mut two) = (Client::new(&service), Client::new(&service));
    for (turn, end) in (1..).zip(["exec", "del", "dbsize"]) {
        one.line("set a 1 px 100");
        service.set_clock(START + 200 * turn);
        assert_eq!(one.line("watch a"), ok());
        one.line("multi");
        one.line("ping");
        // Nothing that takes notice of the ended key changes it.
        match end {
            "del" => assert_eq!(two.line("del a"), Value::Integer(0)),
            "dbsize" => assert_eq!(two.line("dbsize"), Value::Integer(0)),
            _ => {}
        }
        let pong = Value::Simple("PONG".to_owned());
        assert_eq!(one.line("exec"), Value::Array(vec![pong]), "{end}");
    }
}

#[test]
fn unwatch_and_discard_forget() {
    let service = service();
    let mut client = Client::new(&service);
    for forget in [&["unwatch"][..], &["multi", "discard"], &["reset"]] {
        client.line("watch a");
        client.line("set a 2");
        forget.iter().for_each(|line| drop(client.line(line)));
        client.line("multi");
        assert_eq!(client.line("exec"), Value::Array(Vec::new()), "after {forget:?}");
    }
}

#[test]
fn databases_are_apart() {
    let service = service();
    let mut client = Client::new(&service);
    client.line("set a 0");
    assert_eq!(client.line("select 9"), ok());
    assert_eq!(client.line("get a"), Value::Null);
    client.line("set a 9");
    client.line("copy a a db 3");
    assert_eq!(client.line("select 16"), error("ERR DB index is out of range"));
    assert_eq!(client.line("flushdb"), ok());
    assert_eq!(client.line("get a"), Value::Null);
    client.line("select 3");
    assert_eq!(client.line("get a"), "9".into());
    client.line("select 0");
    assert_eq!(client.line("get a"), "0".into());
    client.line("flushall");
    client.line("select 3");
    assert_eq!(client.line("get a"), Value::Null);
}

/// It is done whole or not at all.
#[test]
fn a_transaction_that_needs_memory_is_refused_when_there_is_none() {
    let service = service();
    let (mut one, mut two) = (Client::new(&service), Client::new(&service));
    one.line("set a 1");
    for line in ["multi", "del a", "set b 1"] {
        one.line(line);
    }
    // Within a transaction, which has the lock of the databases.
    for line in ["multi", "config set maxmemory 1"] {
        two.line(line);
    }
    assert_eq!(two.line("exec"), Value::Array(vec![ok()]));
    let refused = "EXECABORT Transaction discarded because of: OOM command not allowed when used \
                   memory > 'maxmemory'.";
    assert_eq!(one.line("exec"), error(refused));
    assert_eq!(one.line("get a"), "1".into());
    for line in ["multi", "del a", "get a"] {
        one.line(line);
    }
    assert_eq!(one.line("exec"), Value::Array(vec![Value::Integer(1), Value::Null]));
    assert_eq!(two.line("config set maxmemory 0"), ok());
    assert_eq!(one.line("set a 1"), ok());
}

/// Commands that look at all databases take the lock that they have no second time.
#[test]
fn figures_of_all_databases_are_taken_in_a_transaction_too() {
    let service = service();
    let mut client = Client::new(&service);
    client.line("multi");
    let lines = ["memory stats", "memory doctor", "info everything", "dbsize", "config get *"];
    for line in lines {
        assert_eq!(client.line(line), queued());
    }
    let Value::Array(replies) = client.line("exec") else { panic!("an array") };
    assert_eq!(replies.len(), lines.len());
    assert!(replies.iter().all(|reply| !matches!(reply, Value::Error(_))), "{replies:?}");
}
