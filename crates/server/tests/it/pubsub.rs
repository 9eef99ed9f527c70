//! Messages between clients, without sockets.

use std::sync::Arc;

use sapwood::Db;
use sapwood_server::Service;
use sapwood_server::clients::OutputLimits;
use sapwood_server::service::Options;

use crate::client::{Client, Value, ok, service};

fn message(parts: &[&str]) -> Value {
    Value::Array(parts.iter().map(|part| (*part).into()).collect())
}

/// A reply to a subscription.
fn reply(name: &str, channel: &str, count: i64) -> Value {
    Value::Array(vec![name.into(), channel.into(), count.into()])
}

fn clients() -> (Client, Client) {
    let service = service();
    (Client::new(&service), Client::new(&service))
}

#[test]
fn messages_go_to_subscribers() {
    let (mut one, mut other) = clients();
    assert_eq!(
        one.send(b"SUBSCRIBE a b a\r\n"),
        [reply("subscribe", "a", 1), reply("subscribe", "b", 2), reply("subscribe", "a", 2)]
    );
    assert_eq!(one.line("PSUBSCRIBE a*"), reply("psubscribe", "a*", 3));
    assert_eq!(other.line("PUBLISH a 1"), 2.into());
    assert_eq!(other.line("PUBLISH b 2"), 1.into());
    assert_eq!(other.line("PUBLISH abc 3"), 1.into());
    assert_eq!(other.line("PUBLISH c 4"), 0.into());
    assert_eq!(
        one.messages(),
        [
            message(&["message", "a", "1"]),
            message(&["pmessage", "a*", "a", "1"]),
            message(&["message", "b", "2"]),
            message(&["pmessage", "a*", "abc", "3"]),
        ]
    );
    assert_eq!(one.messages(), []);
    assert_eq!(one.line("UNSUBSCRIBE a"), reply("unsubscribe", "a", 2));
    assert_eq!(one.line("UNSUBSCRIBE nothing"), reply("unsubscribe", "nothing", 2));
    assert_eq!(other.line("PUBLISH a 5"), 1.into());
    drop(one);
    assert_eq!(other.line("PUBLISH a 6"), 0.into());
}

#[test]
fn no_message_comes_behind_the_end_of_its_subscription() {
    let (mut one, mut other) = clients();
    one.send(b"SUBSCRIBE a b\r\n");
    other.line("PUBLISH a 1");
    other.line("PUBLISH b 2");
    assert_eq!(
        one.send(b"UNSUBSCRIBE\r\nPING\r\n"),
        [
            message(&["message", "a", "1"]),
            message(&["message", "b", "2"]),
            reply("unsubscribe", "a", 1),
            reply("unsubscribe", "b", 0),
            Value::Simple("PONG".to_owned()),
        ]
    );
    assert_eq!(one.messages(), []);
    let nothing = Value::Array(vec!["unsubscribe".into(), Value::Null, 0.into()]);
    assert_eq!(one.line("UNSUBSCRIBE"), nothing);
    // And none behind a reset.
    one.line("SUBSCRIBE a");
    other.line("PUBLISH a 1");
    assert_eq!(
        one.send(b"RESET\r\nGET k\r\n"),
        [message(&["message", "a", "1"]), Value::Simple("RESET".to_owned()), Value::Null]
    );
}

#[test]
fn a_subscriber_of_version_2_may_say_little() {
    let (mut one, _) = clients();
    one.line("SUBSCRIBE a");
    let refused = |name: &str| {
        Value::Error(format!(
            "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
             RESET are allowed in this context"
        ))
    };
    assert_eq!(one.line("GET a"), refused("get"));
    assert_eq!(one.line("SET a 1"), refused("set"));
    assert_eq!(one.line("MULTI"), refused("multi"));
    assert_eq!(one.line("CLIENT ID"), refused("client|id"));
    assert_eq!(one.line("PING"), message(&["pong", ""]));
    assert_eq!(one.line("PING x"), message(&["pong", "x"]));
    one.line("UNSUBSCRIBE a");
    assert_eq!(one.line("GET a"), Value::Null);
}

#[test]
fn a_subscriber_of_version_3_goes_on() {
    let (mut one, _) = clients();
    one.line("HELLO 3");
    one.line("SUBSCRIBE a");
    assert_eq!(one.line("SET k v"), ok());
    assert_eq!(one.line("PUBLISH a 1"), 1.into());
    assert_eq!(one.line("GET k"), "v".into());
    assert_eq!(one.messages(), [message(&["message", "a", "1"])]);
}

#[test]
fn transactions_send_messages() {
    let (mut one, mut other) = clients();
    one.line("SUBSCRIBE a");
    other.line("MULTI");
    other.line("PUBLISH a 1");
    assert_eq!(one.messages(), []);
    other.line("SUBSCRIBE b");
    assert_eq!(other.line("EXEC"), Value::Array(vec![1.into(), reply("subscribe", "b", 1)]));
    assert_eq!(one.messages(), [message(&["message", "a", "1"])]);
}

#[test]
fn channels_of_shards_are_others() {
    let (mut one, mut other) = clients();
    assert_eq!(one.line("SSUBSCRIBE a"), reply("ssubscribe", "a", 1));
    assert_eq!(one.line("SUBSCRIBE b"), reply("subscribe", "b", 1));
    assert_eq!(other.line("PUBLISH a 1"), 0.into());
    assert_eq!(other.line("SPUBLISH a 2"), 1.into());
    assert_eq!(other.line("SPUBLISH b 3"), 0.into());
    assert_eq!(one.messages(), [message(&["smessage", "a", "2"])]);
    let counts = |name: &str, count: i64| Value::Array(vec![name.into(), count.into()]);
    assert_eq!(other.line("PUBSUB SHARDNUMSUB a"), counts("a", 1));
    assert_eq!(other.line("PUBSUB SHARDCHANNELS"), message(&["a"]));
    assert_eq!(one.line("SUNSUBSCRIBE"), reply("sunsubscribe", "a", 0));
}

#[test]
fn subscriptions_are_counted() {
    let (mut one, mut other) = clients();
    one.send(b"SUBSCRIBE news.a news.b old\r\nPSUBSCRIBE n* o*\r\n");
    other.line("HELLO 3");
    other.line("SUBSCRIBE old");
    let mut third = Client::new(&service());
    assert_eq!(third.line("PUBSUB NUMPAT"), 0.into(), "another service");
    let mut channels = match other.line("PUBSUB CHANNELS news.*") {
        Value::Array(channels) => channels,
        other => panic!("no names: {other:?}"),
    };
    channels.sort_by_key(|channel| format!("{channel:?}"));
    assert_eq!(Value::Array(channels), message(&["news.a", "news.b"]));
    assert_eq!(
        other.line("PUBSUB NUMSUB old none"),
        Value::Array(vec!["old".into(), 2.into(), "none".into(), 0.into()])
    );
    assert_eq!(other.line("PUBSUB NUMPAT"), 2.into());
    assert_eq!(
        other.line("PUBSUB CHANNELS a b"),
        Value::Error(
            "ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP."
                .to_owned()
        )
    );
}

#[test]
fn a_subscriber_that_does_not_read_is_closed() {
    let output_limits = OutputLimits::default().with("pubsub 1000 0 0").expect("a limit");
    let options = Options { output_limits, ..Options::default() };
    let service = Arc::new(Service::new(Db::in_memory(), options).expect("memory"));
    let (mut idle, mut other) = (Client::new(&service), Client::new(&service));
    idle.line("SUBSCRIBE a");
    // 39 bytes each: 25 are 975 bytes.
    for sent in 0..26 {
        assert_eq!(other.line("PUBLISH a 123456789"), 1.into(), "{sent}");
    }
    assert_eq!(idle.send(b"PING\r\n"), []);
    assert_eq!(idle.messages(), []);
}
