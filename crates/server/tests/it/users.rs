//! Users, passwords and rights, as clients meet them.

use std::sync::Arc;

use sapwood::Db;
use sapwood_server::acl::{self, Secret};
use sapwood_server::service::Options;
use sapwood_server::session::Next;
use sapwood_server::{Service, Session};

use crate::client::{Client, Value, ok, request, service};

const PASSWORD: &str = "hunter2-hunter2";
const WRONG: &str = "WRONGPASS invalid username-password pair or user is disabled.";
const NO_AUTH: &str = "NOAUTH Authentication required.";
pub(crate) const NO_KEY: &str =
    "NOPERM this user has no permissions to access one of the keys used as arguments";
const NO_CHANNEL: &str =
    "NOPERM this user has no permissions to access one of the channels used as arguments";

fn with_password() -> Arc<Service> {
    let users = acl::Options { requirepass: Some(PASSWORD.into()), ..acl::Options::default() };
    let options = Options { users, threads: 2, ..Options::default() };
    Arc::new(Service::new(Db::in_memory(), options).expect("memory"))
}

fn error(text: &str) -> Value {
    Value::Error(text.to_owned())
}

fn may_not_run(command: &str) -> Value {
    error(&format!("NOPERM this user has no permissions to run the '{command}' command"))
}

/// Sends lines and compares their replies.
fn check(client: &mut Client, lines: &[(&str, Value)]) {
    for (line, expected) in lines {
        assert_eq!(client.line(line), *expected, "{line}");
    }
}

/// A client that is a user with these rules.
fn client_of(service: &Arc<Service>, name: &str, rules: &str) -> Client {
    let mut admin = Client::new(service);
    let line = format!("ACL SETUSER {name} reset on nopass {rules}");
    assert_eq!(admin.line(&line), ok(), "{line}");
    let mut client = Client::new(service);
    assert_eq!(client.line(&format!("AUTH {name} any")), ok());
    client
}

#[test]
fn a_password_is_asked_for() {
    let service = with_password();
    let mut client = Client::new(&service);
    let auth = format!("AUTH {PASSWORD}");
    check(
        &mut client,
        &[
            ("GET k", error(NO_AUTH)),
            ("PING", error(NO_AUTH)),
            ("ACL WHOAMI", error(NO_AUTH)),
            ("AUTH wrong", error(WRONG)),
            ("AUTH default wrong", error(WRONG)),
            ("AUTH stranger wrong", error(WRONG)),
            ("AUTH a b c", error("ERR syntax error")),
            ("AUTH", error("ERR wrong number of arguments for 'auth' command")),
            ("RESET", Value::Simple("RESET".to_owned())),
            (&auth, ok()),
            ("SET k v", ok()),
            ("GET k", "v".into()),
            ("ACL WHOAMI", "default".into()),
            // A wrong password changes nothing.
            ("AUTH wrong", error(WRONG)),
            ("GET k", "v".into()),
            ("RESET", Value::Simple("RESET".to_owned())),
            ("GET k", error(NO_AUTH)),
        ],
    );
}

#[test]
fn without_a_password_one_that_is_said_is_an_error() {
    let mut client = Client::new(&service());
    let none = "ERR AUTH <password> called without any password configured for the default user. \
                Are you sure your configuration is correct?";
    check(&mut client, &[("AUTH x", error(none)), ("AUTH default x", ok())]);
}

#[test]
fn hello_logs_in_and_names() {
    let service = with_password();
    let mut client = Client::new(&service);
    let needs = "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                 HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client \
                 and select the RESP protocol version at the same time";
    check(
        &mut client,
        &[
            ("HELLO", error(needs)),
            ("HELLO 3", error(needs)),
            ("HELLO 3 SETNAME x", error(needs)),
            ("HELLO 3 AUTH default wrong SETNAME x", error(WRONG)),
            ("HELLO 3 AUTH default", error("ERR Syntax error in HELLO option 'AUTH'")),
            ("HELLO 3 nothing", error("ERR Syntax error in HELLO option 'nothing'")),
            ("HELLO 4", error("NOPROTO unsupported protocol version")),
        ],
    );
    let hello = format!("HELLO 3 AUTH default {PASSWORD} SETNAME a SETNAME b");
    assert!(matches!(client.line(&hello), Value::Map(_)), "the last of each counts");
    check(
        &mut client,
        &[
            ("CLIENT GETNAME", "b".into()),
            ("HELLO 2 AUTH default wrong SETNAME c", error(WRONG)),
            ("CLIENT GETNAME", "b".into()),
            ("GET k", Value::Null),
        ],
    );
    let spaces = "ERR Client names cannot contain spaces, newlines or special characters.";
    assert_eq!(client.call(&[b"HELLO", b"2", b"SETNAME", b"a b"]), error(spaces));
}

#[test]
fn a_client_without_a_password_sends_little() {
    let service = with_password();
    let mut session = Session::new(Arc::clone(&service));
    let mut out = Vec::new();
    let (_, next) = session.run(b"*11\r\n", &mut out);
    assert!(matches!(next, Next::Close));
    assert_eq!(out, b"-ERR Protocol error: unauthenticated multibulk length\r\n");
    let mut client = Client::new(&service);
    client.line(&format!("AUTH {PASSWORD}"));
    let many: Vec<&[u8]> = [&b"DEL"[..]].into_iter().chain([&b"k"[..]; 20]).collect();
    assert_eq!(client.call(&many), 0.into(), "in the same session, once it has said it");
    let long = vec![b'x'; 20_000];
    assert_eq!(client.call(&[b"ECHO", &long]), Value::Bulk(long.clone()));
    // In one pipeline with the password, too.
    let mut client = Client::new(&service);
    let mut bytes = request(&[b"AUTH", PASSWORD.as_bytes()]);
    bytes.extend(request(&[b"ECHO", &long]));
    assert_eq!(client.send(&bytes), [ok(), Value::Bulk(long)]);
}

#[test]
fn each_refusal_has_its_text() {
    let service = service();
    let mut bob = client_of(&service, "bob", "+get +set +mget +client|id +select|0 ~app:*");
    check(
        &mut bob,
        &[
            ("GET app:1", Value::Null),
            ("GET other", error(NO_KEY)),
            ("MGET app:1 other", error(NO_KEY)),
            ("SET app:1 v", ok()),
            ("SET other v", error(NO_KEY)),
            ("DEL app:1", may_not_run("del")),
            ("CLIENT ID", Value::Integer(2)),
            ("CLIENT LIST", may_not_run("client|list")),
            ("SELECT 0", ok()),
            ("SELECT 1", may_not_run("select")),
            ("ACL WHOAMI", may_not_run("acl|whoami")),
            // Before rights, Redis looks for the command.
            ("NOTHING", error("ERR unknown command 'NOTHING', with args beginning with: ")),
            ("AUTH bob x", ok()),
            ("HELLO 4", error("NOPROTO unsupported protocol version")),
        ],
    );
}

#[test]
fn channels_have_rights_of_their_own() {
    let service = service();
    let mut bob = client_of(&service, "bob", "+@pubsub +multi +exec &news:* &x");
    check(
        &mut bob,
        &[
            ("PUBLISH news:1 hello", 0.into()),
            ("PUBLISH other hello", error(NO_CHANNEL)),
            ("SPUBLISH other hello", error(NO_CHANNEL)),
            ("SUBSCRIBE news:1 other", error(NO_CHANNEL)),
            ("PSUBSCRIBE news:1*", error(NO_CHANNEL)),
            ("SSUBSCRIBE other", error(NO_CHANNEL)),
            ("MULTI", ok()),
            ("PUBLISH other hello", error(NO_CHANNEL)),
            ("EXEC", error("EXECABORT Transaction discarded because of previous errors.")),
        ],
    );
    let expected = Value::Array(vec!["psubscribe".into(), "news:*".into(), 1.into()]);
    assert_eq!(bob.line("PSUBSCRIBE news:*"), expected);
}

#[test]
fn reading_and_writing_are_two_rights() {
    let service = service();
    let mut bob = client_of(&service, "bob", "+@all %R~r* %W~w* %RW~a*");
    check(
        &mut bob,
        &[
            ("SET w1 v", ok()),
            ("SET w1 v GET", error(NO_KEY)),
            ("SET r1 v", error(NO_KEY)),
            ("SET a1 v GET", Value::Null),
            ("GET w1", error(NO_KEY)),
            ("GET r1", Value::Null),
            ("COPY r1 w1", 0.into()),
            ("COPY w1 r1", error(NO_KEY)),
            ("RENAME a1 w2", ok()),
            ("RENAME r1 w2", error(NO_KEY)),
            // Any right will do.
            ("EXISTS w1 r1 a1", 1.into()),
            ("EXISTS b", error(NO_KEY)),
            ("INCR w3", error(NO_KEY)),
            ("INCR a3", 1.into()),
            // Of a command on a table the key is the table's name.
            ("SW.CREATE w4 ENGINE HASH", ok()),
            ("SW.CREATE r4 ENGINE HASH", error(NO_KEY)),
            ("SW.PUT w4 k v", ok()),
            ("SW.MPUT w4 k v", ok()),
            ("SW.MADD w4 n 1", ok()),
            ("SW.REMOVE w4 k", 1.into()),
            // Those that show what was there read it.
            ("SW.ADD w4 n 1", error(NO_KEY)),
            ("SW.CAS w4 k v w", error(NO_KEY)),
            ("SW.GET w4 k", error(NO_KEY)),
            ("SW.PUT r4 k v", error(NO_KEY)),
            ("SW.DROP r4", error(NO_KEY)),
            ("SW.DROP w4", ok()),
        ],
    );
}

#[test]
fn selectors_do_not_add_up() {
    let service = service();
    let mut bob = client_of(&service, "bob", "(+@write ~write:*) ( +@read ~read:* )");
    check(
        &mut bob,
        &[
            ("PING", may_not_run("ping")),
            ("SET write:1 v", ok()),
            ("GET read:1", Value::Null),
            ("GET write:1", error(NO_KEY)),
            ("SET read:1 v", error(NO_KEY)),
        ],
    );
}

/// The neighbouring reads and writes of a pipeline are a batch for a user that may do all; for any
/// other each of them is looked at.
#[test]
fn pipelines_of_restricted_users_are_looked_at() {
    let service = service();
    let mut bob = client_of(&service, "bob", "+get +set ~app:*");
    let lines: [&[&[u8]]; 7] = [
        &[b"SET", b"app:1", b"a"],
        &[b"SET", b"other", b"b"],
        &[b"SET", b"app:2", b"c"],
        &[b"GET", b"app:1"],
        &[b"GET", b"other"],
        &[b"GET", b"app:2"],
        &[b"GET", b"app:3"],
    ];
    let pipeline: Vec<u8> = lines.iter().flat_map(|line| request(line)).collect();
    let denied = || error(NO_KEY);
    let expected = [ok(), denied(), ok(), "a".into(), denied(), "c".into(), Value::Null];
    assert_eq!(bob.send(&pipeline), expected);
    assert_eq!(Client::new(&service).line("GET other"), Value::Null);
    // In one pipeline a client becomes another user, and has its rights at once.
    let mut client = Client::new(&service);
    let mut bytes = request(&[b"GET", b"other"]);
    bytes.extend(request(&[b"AUTH", b"bob", b""]));
    bytes.extend(request(&[b"GET", b"other"]));
    assert_eq!(client.send(&bytes), [Value::Null, ok(), denied()]);
}

#[test]
fn sessions_see_changes_at_once() {
    let service = service();
    let mut admin = Client::new(&service);
    let mut bob = client_of(&service, "bob", "+@all ~*");
    assert_eq!(bob.line("SET k v"), ok());
    assert_eq!(admin.line("ACL SETUSER bob -set"), ok());
    assert_eq!(bob.line("SET k v"), may_not_run("set"));
    assert_eq!(bob.line("GET k"), "v".into());
    // Its own change, within one pipeline.
    let mut bytes = request(&[b"ACL", b"SETUSER", b"bob", b"-get"]);
    bytes.extend(request(&[b"GET", b"k"]));
    assert_eq!(bob.send(&bytes), [ok(), may_not_run("get")]);
    // A user that is off keeps its sessions, as in Redis.
    admin.line("ACL SETUSER bob off");
    assert_eq!(bob.line("PING"), Value::Simple("PONG".to_owned()));
    assert_eq!(Client::new(&service).line("AUTH bob x"), error(WRONG));
}

#[test]
fn sessions_of_a_user_that_is_deleted_end() {
    let service = service();
    let mut admin = Client::new(&service);
    client_of(&service, "bob", "+@all ~*");
    let mut session = Session::new(Arc::clone(&service));
    let mut out = Vec::new();
    session.run(b"AUTH bob x\r\n", &mut out);
    assert_eq!(admin.line("ACL DELUSER bob stranger"), 1.into());
    // One of the same name is another.
    admin.line("ACL SETUSER bob on nopass +@all ~*");
    out.clear();
    let (used, next) = session.run(b"SET k v\r\n", &mut out);
    assert!(matches!(next, Next::Close) && used == 0 && out.is_empty());
    // Its own: the reply goes out, what follows is not executed.
    let mut session = Session::new(Arc::clone(&service));
    session.run(b"AUTH bob x\r\n", &mut out);
    out.clear();
    let (_, next) = session.run(b"ACL DELUSER bob\r\nSET k v\r\n", &mut out);
    assert!(matches!(next, Next::Close));
    assert_eq!(out, b":1\r\n");
    assert_eq!(admin.line("EXISTS k"), 0.into());
    let always = "ERR The 'default' user cannot be removed";
    assert_eq!(admin.line("ACL DELUSER default"), error(always));
}

#[test]
fn subscribers_that_lose_their_channel_end() {
    let service = service();
    let mut admin = Client::new(&service);
    client_of(&service, "bob", "+@all &a &b:*");
    let subscribe = |request: &[u8]| {
        let mut session = Session::new(Arc::clone(&service));
        let mut out = Vec::new();
        session.run(b"AUTH bob x\r\n", &mut out);
        session.run(request, &mut out);
        session
    };
    let is_ended =
        |session: &mut Session| matches!(session.run(b"PING\r\n", &mut Vec::new()).1, Next::Close);
    let mut kept = subscribe(b"SUBSCRIBE a\r\n");
    let mut lost = subscribe(b"PSUBSCRIBE b:*\r\n");
    admin.line("ACL SETUSER bob resetchannels &a &c");
    assert!(!is_ended(&mut kept));
    assert!(is_ended(&mut lost));
    admin.line("ACL SETUSER bob allchannels");
    assert!(!is_ended(&mut kept));
    admin.line("ACL SETUSER bob resetchannels");
    assert!(is_ended(&mut kept));
}

#[test]
fn transactions_are_looked_at_twice() {
    let service = service();
    let mut admin = Client::new(&service);
    let mut bob = client_of(&service, "bob", "+@all ~a*");
    let changed = "NOPERM ACLs rules changed between the moment the transaction was accumulated \
                   and the EXEC call. This command is no longer allowed for the following reason: ";
    let queued = || Value::Simple("QUEUED".to_owned());
    for (line, rules, reason) in [
        ("SET a v", "-set", "no permission to execute the command or subcommand"),
        ("SET a v", "resetkeys ~b*", "no permission to touch the specified keys"),
        (
            "PUBLISH c m",
            "resetchannels",
            "no permission to access one of the channels used as arguments",
        ),
    ] {
        admin.line("ACL SETUSER bob +@all resetkeys ~a* &c");
        check(&mut bob, &[("MULTI", ok()), (line, queued()), ("PING", queued())]);
        admin.line(&format!("ACL SETUSER bob {rules}"));
        let pong = Value::Simple("PONG".to_owned());
        let expected = Value::Array(vec![error(&format!("{changed}{reason}")), pong]);
        assert_eq!(bob.line("EXEC"), expected);
    }
    // A user that a transaction has ended runs no more of its commands.
    let mut eve = client_of(&service, "eve", "+@all ~*");
    check(&mut eve, &[("MULTI", ok()), ("ACL DELUSER eve", queued()), ("SET a v", queued())]);
    let reason = "no permission to execute the command or subcommand";
    let refused = error(&format!("{changed}{reason}"));
    assert_eq!(eve.line("EXEC"), Value::Array(vec![1.into(), refused]));
    admin.line("ACL SETUSER bob +@all resetkeys ~a*");
    let abort = "EXECABORT Transaction discarded because of previous errors.";
    check(
        &mut bob,
        &[
            ("MULTI", ok()),
            ("SET b v", error(NO_KEY)),
            ("SET a v", queued()),
            ("EXEC", error(abort)),
            ("EXISTS a", 0.into()),
        ],
    );
}

#[test]
fn rules_that_are_wrong_are_refused_whole() {
    let service = service();
    let mut admin = Client::new(&service);
    let hash = "0".repeat(63);
    let in_rule = |rule: &str, text: &str| {
        error(&format!("ERR Error in ACL SETUSER modifier '{rule}': {text}"))
    };
    let unknown = "Unknown command or category name in ACL";
    let no_hash = "The password hash must be exactly 64 characters and contain only lowercase \
                   hexadecimal characters";
    let keys = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does \
                not have any effect. Try 'resetkeys' to start with an empty list of patterns";
    let channels = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid \
                    and does not have any effect. Try 'resetchannels' to start with an empty list \
                    of channels";
    let absent = "The password you are trying to remove from the user does not exist";
    let no_deeper = "Allowing first-arg of a subcommand is not supported";
    for (rules, expected) in [
        ("on nothing", in_rule("nothing", "Syntax error")),
        ("on +nothing", in_rule("+nothing", unknown)),
        ("on -nothing", in_rule("-nothing", unknown)),
        ("on +@nothing", in_rule("+@nothing", unknown)),
        ("on +acl|nothing", in_rule("+acl|nothing", unknown)),
        ("on -get|nothing", in_rule("-get|nothing", unknown)),
        ("on +get|a|b", in_rule("+get|a|b", unknown)),
        ("on +client|id|1", in_rule("+client|id|1", no_deeper)),
        ("on +select|", in_rule("+select|", "Syntax error")),
        ("on %X~a", in_rule("%X~a", "Syntax error")),
        ("on %~a", in_rule("%~a", "Syntax error")),
        ("on %RR~a", in_rule("%RR~a", "Syntax error")),
        ("on ~* ~a", in_rule("~a", keys)),
        ("on &* &a", in_rule("&a", channels)),
        (&format!("on #{hash}"), in_rule("#(hidden)", no_hash)),
        ("on <secret", in_rule("<(hidden)", absent)),
        ("on (+nothing)", in_rule("(+nothing)", unknown)),
        ("on (on)", in_rule("(on)", "Syntax error")),
        ("on )", in_rule(")", "Syntax error")),
        ("on ( +get", error("ERR Unmatched parenthesis in acl selector starting at '('.")),
    ] {
        assert_eq!(admin.line(&format!("ACL SETUSER bob {rules}")), expected, "{rules}");
        assert_eq!(admin.line("ACL GETUSER bob"), Value::Null, "{rules}: none is applied");
    }
    let spaces = "ERR Usernames can't contain spaces or null characters";
    assert_eq!(admin.call(&[b"ACL", b"SETUSER", b"a b"]), error(spaces));
    let expected = in_rule("~a b", "Syntax error");
    assert_eq!(admin.call(&[b"ACL", b"SETUSER", b"bob", b"~a b"]), expected);
}

#[test]
fn users_are_shown_as_rules() {
    let service = service();
    let mut admin = Client::new(&service);
    let hash = "34344e4d60c2b6d639b7bd22e18f2b0b91bc34bf0ac5f9952744435093cfb4e6";
    for (rules, shown) in [
        ("", "off resetchannels -@all"),
        ("on nopass +@all ~* &*", "on nopass ~* &* +@all"),
        ("on >passwd4 >passwd4", &format!("on #{hash} resetchannels -@all")),
        (&format!("#{hash} >x <x"), &format!("off #{hash} resetchannels -@all")),
        (">x nopass", "off nopass resetchannels -@all"),
        ("skip-sanitize-payload", "off skip-sanitize-payload resetchannels -@all"),
        ("~a %R~b %W~b %W~c &x &x", "off ~a ~b %W~c resetchannels &x -@all"),
        ("+@string -set +SET", "off resetchannels -@all +@string"),
        ("+@string -set", "off resetchannels -@all +@string -set"),
        ("+acl|cat +acl|list +acl", "off resetchannels -@all +acl"),
        ("+acl -acl|cat", "off resetchannels -@all +acl -acl|cat"),
        ("+@all -@string +get -@string", "off resetchannels +@all -@string"),
        ("+@all -@string +get", "off resetchannels +@all -@string +get"),
        ("+@all -get +get", "off resetchannels +@all"),
        ("+multi +exec +discard +watch", "off resetchannels -@all +@transaction -unwatch"),
        ("+select|0 +select|0", "off resetchannels -@all +select|0"),
        ("+select|A +SELECT|a +select|b", "off resetchannels -@all +select|A +select|b"),
        ("+select|0 +@connection -select", "off resetchannels -@all +@connection -select"),
        // Classes of which there are no commands are kept.
        ("+@hash +@HASH", "off resetchannels -@all +@hash"),
        ("+@hash -@hash", "off resetchannels -@all"),
        ("+@hash +@all -@list +@list -@set", "off resetchannels +@all -@set"),
        (
            "+get (~a +set) ( ~b )",
            "off resetchannels -@all +get (~a resetchannels -@all +set) (~b resetchannels -@all)",
        ),
        ("on +get (~a) clearselectors reset", "off sanitize-payload resetchannels -@all"),
    ] {
        admin.line("ACL DELUSER bob");
        assert_eq!(admin.line(&format!("ACL SETUSER bob {rules}")), ok(), "{rules}");
        let Value::Array(list) = admin.line("ACL LIST") else { panic!("a list") };
        assert_eq!(list[0], format!("user bob {shown}").as_str().into(), "{rules}");
        // A user of the rules that are shown is the same user.
        assert_eq!(admin.line(&format!("ACL SETUSER cat {shown}")), ok(), "{shown}");
        assert_eq!(admin.line("ACL GETUSER cat"), admin.line("ACL GETUSER bob"), "{shown}");
        for command in ["GET a", "SET a v", "SELECT 0", "SELECT b", "ACL CAT", "WATCH b", "MULTI"] {
            let dry_run = |user: &str| format!("ACL DRYRUN {user} {command}");
            assert_eq!(
                admin.line(&dry_run("cat")),
                admin.line(&dry_run("bob")),
                "{shown}: {command}"
            );
        }
        admin.line("ACL DELUSER cat");
    }
    let expected = Value::Array(vec!["bob".into(), "default".into()]);
    assert_eq!(admin.line("ACL USERS"), expected);
    admin.line("ACL SETUSER bob reset on >passwd4 ~a %R~b &c +get (~d +set)");
    let array = |values: &[&str]| Value::Array(values.iter().map(|it| Value::from(*it)).collect());
    let selector = array(&["commands", "-@all +set", "keys", "~d", "channels", ""]);
    let expected = Value::Array(vec![
        "flags".into(),
        array(&["on", "sanitize-payload"]),
        "passwords".into(),
        array(&[hash]),
        "commands".into(),
        "-@all +get".into(),
        "keys".into(),
        "~a %R~b".into(),
        "channels".into(),
        "&c".into(),
        "selectors".into(),
        Value::Array(vec![selector]),
    ]);
    assert_eq!(admin.line("ACL GETUSER bob"), expected);
}

fn fields(entry: &Value) -> Vec<(String, Value)> {
    let Value::Array(values) = entry else { panic!("an entry") };
    let name = |value: &Value| match value {
        Value::Bulk(name) => String::from_utf8_lossy(name).into_owned(),
        other => panic!("no name: {other:?}"),
    };
    values.chunks_exact(2).map(|pair| (name(&pair[0]), pair[1].clone())).collect()
}

#[test]
fn refusals_are_logged() {
    let service = service();
    let mut admin = Client::new(&service);
    let mut bob = client_of(&service, "bob", "+get +multi ~a* +publish");
    bob.line("GET b");
    bob.line("GET b");
    bob.line("MULTI");
    bob.line("INCR a");
    bob.line("AUTH bob2 wrong");
    let Value::Array(entries) = admin.line("ACL LOG") else { panic!("a list") };
    let seen: Vec<Vec<Value>> = entries
        .iter()
        .map(|entry| {
            let fields = fields(entry);
            let wanted = ["count", "reason", "context", "object", "username"];
            let of = |name: &&str| fields.iter().find(|(it, _)| it == name).expect(name).1.clone();
            wanted.iter().map(of).collect()
        })
        .collect();
    let entry = |count: i64, words: [&str; 4]| {
        let words = words.iter().map(|word| Value::from(*word));
        [Value::from(count)].into_iter().chain(words).collect::<Vec<_>>()
    };
    // AUTH waits for EXEC.
    let expected =
        [entry(1, ["command", "multi", "incr", "bob"]), entry(2, ["key", "toplevel", "b", "bob"])];
    assert_eq!(seen, expected);
    let info = &fields(&entries[1]).into_iter().find(|(name, _)| name == "client-info");
    let Some((_, Value::Bulk(info))) = info else { panic!("client-info") };
    let info = String::from_utf8_lossy(info);
    assert!(info.contains(" cmd=get user=bob "), "{info}");
    admin.line("AUTH bob3 wrong");
    let Value::Array(entries) = admin.line("ACL LOG 1") else { panic!("a list") };
    let shown = fields(&entries[0]);
    assert!(shown.contains(&("reason".to_owned(), "auth".into())));
    assert!(shown.contains(&("object".to_owned(), "AUTH".into())));
    assert!(shown.contains(&("username".to_owned(), "bob3".into())));
    assert_eq!(entries.len(), 1);
    assert_eq!(admin.line("ACL LOG RESET"), ok());
    assert_eq!(admin.line("ACL LOG"), Value::Array(vec![]));
}

#[test]
fn dry_runs_say_what_is_denied() {
    let mut admin = Client::new(&service());
    admin.line("ACL SETUSER bob +get +subscribe +acl|cat ~a &c");
    check(
        &mut admin,
        &[
            ("ACL DRYRUN bob get a", ok()),
            ("ACL DRYRUN bob ACL CAT", ok()),
            ("ACL DRYRUN bob get b", "This user has no permissions to access the 'b' key".into()),
            (
                "ACL DRYRUN bob SET a v",
                "This user has no permissions to run the 'set' command".into(),
            ),
            (
                "ACL DRYRUN bob ACL LIST",
                "This user has no permissions to run the 'acl|list' command".into(),
            ),
            (
                "ACL DRYRUN bob subscribe c d",
                "This user has no permissions to access the 'd' channel".into(),
            ),
            ("ACL DRYRUN who get a", error("ERR User 'who' not found")),
            ("ACL DRYRUN bob what a", error("ERR Command 'what' not found")),
            ("ACL DRYRUN bob acl what", error("ERR Command 'acl' not found")),
            ("ACL DRYRUN bob get", error("ERR wrong number of arguments for 'get' command")),
        ],
    );
}

#[test]
fn other_subcommands_answer_as_in_redis() {
    let mut admin = Client::new(&service());
    let bits = "ERR ACL GENPASS argument must be the number of bits for the output password, a \
                positive number up to 4096";
    let usage = "ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.";
    let Value::Error(no_file) = admin.line("ACL LOAD") else { panic!("there is no file") };
    assert!(no_file.starts_with("ERR This Redis instance is not configured to use an ACL file."));
    check(
        &mut admin,
        &[
            ("ACL GENPASS 0", error(bits)),
            ("ACL GENPASS 4097", error(bits)),
            ("ACL CAT nothing", error("ERR Unknown category 'nothing'")),
            ("ACL CAT a b", error(usage)),
            ("ACL CAT hash", Value::Array(vec![])),
            ("ACL HELP x", error("ERR wrong number of arguments for 'acl|help' command")),
            ("ACL GETUSER stranger", Value::Null),
            ("ACL SAVE", error(&no_file)),
        ],
    );
    for (line, digits) in [("ACL GENPASS", 64), ("ACL GENPASS 5", 2), ("ACL GENPASS 4096", 1024)] {
        let Value::Bulk(password) = admin.line(line) else { panic!("a password") };
        assert_eq!(password.len(), digits);
        assert!(password.iter().all(u8::is_ascii_hexdigit));
        if digits > 2 {
            assert_ne!(admin.line(line), Value::Bulk(password), "two are never the same");
        }
    }
}

#[test]
fn files_are_read_and_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("users.acl");
    let lines = "user alice on >alice ~a* +@all\n\nuser default on nopass ~* &* +@all\n";
    std::fs::write(&path, lines).expect("a file");
    let new = || Service::new(Db::in_memory(), Options::default()).expect("memory");
    let service = Arc::new(new().with_users_of(path.clone()).expect("it is right"));
    let mut admin = Client::new(&service);
    let mut alice = Client::new(&service);
    assert_eq!(alice.line("AUTH alice alice"), ok());
    // What is not in the file goes, with its sessions; the others stay.
    let mut session = Session::new(Arc::clone(&service));
    admin.line("ACL SETUSER bob on nopass +@all");
    session.run(b"AUTH bob x\r\n", &mut Vec::new());
    assert_eq!(admin.line("ACL LOAD"), ok());
    assert!(matches!(session.run(b"PING\r\n", &mut Vec::new()).1, Next::Close));
    assert_eq!(alice.line("GET a1"), Value::Null);
    assert_eq!(admin.line("ACL SETUSER carol on >c %R~x (+get ~y)"), ok());
    let list = admin.line("ACL LIST");
    assert_eq!(admin.line("ACL SAVE"), ok());
    assert_eq!(admin.line("ACL LOAD"), ok());
    assert_eq!(admin.line("ACL LIST"), list);
    let names: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(names.len(), 1, "nothing is left beside it");
    let saved = std::fs::read_to_string(&path).expect("a file");
    // A file that is wrong changes nothing, and all of its errors are told.
    let wrong = format!("{saved}user alice on\nnobody\nuser x +nothing\nuser y >pw #{PASSWORD}\n");
    std::fs::write(&path, &wrong).expect("a file");
    let Value::Error(told) = admin.line("ACL LOAD") else { panic!("it is wrong") };
    for part in [
        "Duplicate user 'alice' found on line 4",
        ":5 should start with user keyword followed by the username",
        ":6: Error in applying operation '+nothing': Unknown command or category name in ACL",
        ":7: The password hash must be exactly 64 characters",
        "no change to the previously active ACL rules was performed",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains(PASSWORD));
    assert_eq!(admin.line("ACL LIST"), list);
    assert!(new().with_users_of(path).is_err(), "nor does a service start with it");
    assert!(new().with_users_of(folder.path().join("none")).is_err());
}

#[test]
fn a_file_without_the_default_user_opens_no_door() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("users.acl");
    std::fs::write(&path, "user alice on >alice +@all ~*\n").expect("a file");
    let users = acl::Options { requirepass: Some(PASSWORD.into()), ..acl::Options::default() };
    let options = Options { users, ..Options::default() };
    let service = Service::new(Db::in_memory(), options).expect("memory");
    let service = Arc::new(service.with_users_of(path).expect("it is right"));
    assert_eq!(Client::new(&service).line("PING"), error(NO_AUTH));
    assert_eq!(Client::new(&service).line(&format!("AUTH {PASSWORD}")), ok());
}

#[test]
fn no_text_for_debugging_shows_a_secret() {
    let service = with_password();
    let mut admin = Client::new(&service);
    admin.line(&format!("AUTH {PASSWORD}"));
    let Value::Array(list) = admin.line("ACL LIST") else { panic!("a list") };
    let Value::Bulk(line) = &list[0] else { panic!("a line") };
    let line = String::from_utf8_lossy(line).into_owned();
    let hash = line.split(' ').find_map(|word| word.strip_prefix('#')).expect("a hash");
    let mut session = Session::new(Arc::clone(&service));
    let mut out = Vec::new();
    // As words, whose text the parser copies, and in a transaction, which keeps arguments.
    for line in [
        format!("AUTH {PASSWORD}\r\n"),
        format!("AUTH nobody {PASSWORD}\r\n"),
        format!("HELLO 3 AUTH default {PASSWORD}\r\n"),
        "MULTI\r\n".to_owned(),
        format!("ACL SETUSER bob >{PASSWORD}\r\n"),
        format!("AUTH default {PASSWORD}\r\n"),
    ] {
        session.run(line.as_bytes(), &mut out);
        let texts = [format!("{session:?}"), format!("{service:#?}")];
        for text in texts.iter().chain([&String::from_utf8_lossy(&out).into_owned()]) {
            assert!(!text.contains(PASSWORD), "{line}");
            assert!(!text.contains(hash), "{line}");
        }
    }
    for line in ["CLIENT LIST", "ACL LOG"] {
        let shown = format!("{:?}", admin.line(line));
        assert!(!shown.contains(PASSWORD), "{line}");
    }
    let options = acl::Options { requirepass: Some(Secret::from(PASSWORD)), ..Default::default() };
    assert!(!format!("{options:?}").contains(PASSWORD));
}
