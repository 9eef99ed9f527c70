//! Commands about the server.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sapwood::Db;
use sapwood_server::admin::{self, Debug, SaveRule};
use sapwood_server::clock::Clock;
use sapwood_server::service::Options;
use sapwood_server::session::Next;
use sapwood_server::{Service, Session};

fn service(db: Db, admin: admin::Options) -> Arc<Service> {
    let clock = Clock::Manual(AtomicU64::new(1_700_000_000_000));
    let options = Options { clock, threads: 2, admin, ..Options::default() };
    Arc::new(Service::new(db, options).expect("its tables open"))
}

fn said(session: &mut Session, commands: &[&str]) -> String {
    let mut out = Vec::new();
    for command in commands {
        let (_, next) = session.run(format!("{command}\r\n").as_bytes(), &mut out);
        if let Next::Job(job) = next {
            job.run(&mut out);
        }
    }
    String::from_utf8(out).expect("text").replace("\r\n", "|")
}

fn default() -> (Arc<Service>, Session) {
    let service = service(Db::in_memory(), admin::Options::default());
    let session = Session::new(Arc::clone(&service));
    (service, session)
}

#[test]
fn info_counts_what_was_done() {
    let (_service, mut client) = default();
    said(&mut client, &["SET a 1", "SET b 2 PX 5000", "GET a", "GET none", "INCR a", "INCR b x"]);
    said(&mut client, &["nonsense"]);
    let info = said(&mut client, &["INFO all"]);
    for line in [
        "redis_version:7.0.15|",
        "connected_clients:1|",
        "keyspace_hits:1|",
        "keyspace_misses:1|",
        "db0:keys=2,expires=1,avg_ttl=0",
        "rdb_changes_since_last_save:3|",
        "errorstat_ERR:count=2|",
        "role:master|",
        "maxmemory_policy:noeviction|",
    ] {
        assert!(info.contains(line), "{line} is missing in {info}");
    }
    for (name, counts) in [("get", "calls=2,"), ("set", "calls=2,"), ("incr", "calls=1,")] {
        assert!(info.contains(&format!("cmdstat_{name}:{counts}")), "{name} in {info}");
    }
    assert!(info.contains("cmdstat_incr:calls=1,") && info.contains("rejected_calls=1,"));
    let sections = said(&mut client, &["INFO keyspace cluster"]);
    assert_eq!(sections.matches("# ").count(), 2, "{sections}");
    assert!(!said(&mut client, &["INFO"]).contains("cmdstat_"));
    assert_eq!(said(&mut client, &["CONFIG RESETSTAT"]), "+OK|");
    assert!(said(&mut client, &["INFO stats"]).contains("keyspace_hits:0|"));
}

#[test]
fn options_are_shown_and_changed_all_or_none() {
    let (service, mut client) = default();
    let cases = [
        ("CONFIG GET maxmemor[y]", "*2|$9|maxmemory|$1|0|"),
        ("CONFIG SET maxmemory 2mb", "+OK|"),
        ("CONFIG GET MAXMEMORY", "*2|$9|maxmemory|$7|2097152|"),
        ("CONFIG SET slowlog-max-len 5 maxmemory x", ""),
        ("CONFIG GET slowlog-max-len", "*2|$15|slowlog-max-len|$3|128|"),
        ("CONFIG GET nothing*", "*0|"),
        ("CONFIG GET save", "*2|$4|save|$0||"),
        ("CONFIG SET save \"\"", "+OK|"),
        (
            "CONFIG SET save \"60 5\"",
            "-ERR CONFIG SET failed (possibly related to argument 'save') - a schedule needs a \
             directory to save in: start with --dir|",
        ),
        ("CONFIG GET save", "*2|$4|save|$0||"),
        (
            "CONFIG SET none 1",
            "-ERR Unknown option or number of arguments for CONFIG SET - 'none'|",
        ),
        (
            "CONFIG SET port 1",
            "-ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable \
             config|",
        ),
        ("CONFIG REWRITE", "-ERR The server is running without a config file|"),
        ("CONFIG NONE", "-ERR unknown subcommand 'NONE'. Try CONFIG HELP.|"),
    ];
    for (command, reply) in cases {
        let got = said(&mut client, &[command]);
        match reply {
            "" => assert!(got.starts_with("-ERR CONFIG SET failed"), "{command}: {got}"),
            reply => assert_eq!(got, reply, "{command}"),
        }
    }
    said(&mut client, &["CONFIG SET maxmemory 1", "SET a 1"]);
    service.check_memory();
    assert!(said(&mut client, &["SET a 1"]).starts_with("-OOM"));
    said(&mut client, &["CONFIG SET maxmemory 0"]);
    assert_eq!(said(&mut client, &["SET a 1"]), "+OK|");
}

#[test]
fn values_are_stored_as_redis_says() {
    let (_service, mut client) = default();
    let cases = [
        ("12", "int"),
        ("-9223372036854775808", "int"),
        ("9223372036854775808", "embstr"),
        ("012", "embstr"),
        ("text", "embstr"),
        (&"x".repeat(44), "embstr"),
        (&"x".repeat(45), "raw"),
    ];
    for (value, encoding) in cases {
        said(&mut client, &[&format!("SET key {value}")]);
        let got = said(&mut client, &["OBJECT ENCODING key"]);
        assert_eq!(got, format!("${}|{encoding}|", encoding.len()), "{value}");
    }
    assert_eq!(said(&mut client, &["OBJECT REFCOUNT key", "OBJECT IDLETIME key"]), ":1|:0|");
    assert_eq!(said(&mut client, &["OBJECT ENCODING none", "MEMORY USAGE none"]), "$-1|$-1|");
    assert!(said(&mut client, &["OBJECT FREQ key"]).starts_with("-ERR An LFU maxmemory policy"));
    let bytes = |reply: String| reply.trim_matches([':', '|']).parse::<u64>().expect("a number");
    said(&mut client, &["SET short 1", &format!("SET long {}", "x".repeat(1_000))]);
    let short = bytes(said(&mut client, &["MEMORY USAGE short"]));
    assert_eq!(bytes(said(&mut client, &["MEMORY USAGE long SAMPLES 0"])) - short, 1_000 - 8);
}

#[test]
fn the_addresses_that_are_listened_at_are_shown() {
    let (_service, mut client) = default();
    assert_eq!(said(&mut client, &["CONFIG GET bind"]), "*2|$4|bind|$0||");
    let bind = ["127.0.0.1", "::1"].map(|ip| ip.parse().expect("an address")).to_vec();
    let options = admin::Options { bind, ..Default::default() };
    let mut client = Session::new(service(Db::in_memory(), options));
    assert_eq!(said(&mut client, &["CONFIG GET bind"]), "*2|$4|bind|$13|127.0.0.1 ::1|");
}

#[test]
fn slow_commands_are_kept_without_secrets() {
    let options = admin::Options { slowlog_micros: 0, slowlog_len: 3, ..Default::default() };
    let service = service(Db::in_memory(), options);
    let mut client = Session::new(service);
    said(&mut client, &["GET a", "SET a 1", "HELLO 2 AUTH user hidden-word", "INCR a"]);
    let log = said(&mut client, &["SLOWLOG GET -1"]);
    assert!(log.starts_with("*3|") && log.contains("INCR") && log.contains("(redacted)"), "{log}");
    assert!(!log.contains("hidden-word") && !log.contains("|GET|"), "{log}");
    said(&mut client, &["CONFIG SET slowlog-log-slower-than -1", "SLOWLOG RESET"]);
    assert_eq!(said(&mut client, &["GET a", "SLOWLOG LEN"]), "$1|2|:0|");
}

#[test]
fn a_slow_command_is_kept_with_its_client_and_with_the_time_of_its_job() {
    let options = admin::Options { debug: Debug::On, slowlog_micros: 5_000, ..Default::default() };
    let service = service(Db::in_memory(), options);
    let mut client = Session::new(service);
    said(&mut client, &["CLIENT SETNAME sleeper", "CONFIG SET latency-monitor-threshold 5"]);
    said(&mut client, &["DEBUG SLEEP 0.01"]);
    let log = said(&mut client, &["SLOWLOG GET"]);
    assert!(log.starts_with("*1|") && log.contains("|DEBUG|$5|SLEEP|$4|0.01|"), "{log}");
    assert!(log.ends_with("|$3|?:0|$7|sleeper|"), "{log}");
    let calls = said(&mut client, &["INFO commandstats"]);
    let debug = calls.split('|').find(|line| line.starts_with("cmdstat_debug:calls=1,usec="));
    let micros = debug.and_then(|line| line.split(['=', ',']).nth(3)).expect("it was called");
    assert!(micros.parse::<u64>().expect("a number") >= 10_000, "{calls}");
    assert!(said(&mut client, &["LATENCY HISTORY command"]).starts_with("*1|"));
    // Of a transaction, its commands are kept.
    said(&mut client, &["SLOWLOG RESET", "MULTI", "DEBUG SLEEP 0.01", "EXEC"]);
    let log = said(&mut client, &["SLOWLOG GET"]);
    assert!(log.starts_with("*1|") && log.contains("|SLEEP|"), "{log}");
}

#[test]
fn spikes_are_kept_from_a_threshold_on() {
    let (_service, mut client) = default();
    assert_eq!(said(&mut client, &["LATENCY LATEST", "LATENCY HISTORY command"]), "*0|*0|");
    assert!(said(&mut client, &["LATENCY DOCTOR"]).contains("disabled"));
    let histogram = said(&mut client, &["SET a 1", "LATENCY HISTOGRAM set"]);
    assert!(histogram.contains("*2|$3|set|*4|$5|calls|:1|$14|histogram_usec|"), "{histogram}");
    assert_eq!(said(&mut client, &["LATENCY RESET"]), ":0|");
}

#[test]
fn commands_are_documented() {
    let (_service, mut client) = default();
    let get = said(&mut client, &["COMMAND INFO get"]);
    assert!(get.starts_with("*1|*10|$3|get|:2|*2|+readonly|+fast|:1|:1|:1|"), "{get}");
    assert_eq!(said(&mut client, &["COMMAND INFO none"]), "*1|$-1|");
    let docs = said(&mut client, &["COMMAND DOCS set none"]);
    assert!(docs.starts_with("*2|$3|set|") && docs.contains("summary"), "{docs}");
    assert_eq!(said(&mut client, &["COMMAND GETKEYS MSET a 1 b 2"]), "*2|$1|a|$1|b|");
    for (command, error) in [
        ("COMMAND GETKEYS none a", "-ERR Invalid command specified|"),
        ("COMMAND GETKEYS get", "-ERR Invalid number of arguments specified for command|"),
        ("COMMAND GETKEYS ping", "-ERR The command has no key arguments|"),
        ("COMMAND LIST FILTERBY NONE x", "-ERR syntax error|"),
    ] {
        assert_eq!(said(&mut client, &[command]), error, "{command}");
    }
    let listed = said(&mut client, &["COMMAND LIST FILTERBY PATTERN getr*"]);
    assert_eq!(listed, "*1|$8|getrange|");
    assert!(said(&mut client, &["COMMAND LIST FILTERBY ACLCAT transaction"]).contains("multi"));
    assert!(said(&mut client, &["COMMAND LIST"]).contains("|client|list|"));
    let count = said(&mut client, &["COMMAND COUNT"]);
    let all = said(&mut client, &["COMMAND"]);
    assert!(all.starts_with(&count.replace(':', "*")), "{count}");
    for command in sapwood_server::command::all() {
        assert!(!command.summary.is_empty(), "{} has no summary", command.name);
    }
}

#[test]
fn saves_need_a_directory_and_are_kept() {
    let (_service, mut client) = default();
    for command in ["SAVE", "BGSAVE", "SHUTDOWN SAVE"] {
        let refused = said(&mut client, &[command]);
        assert!(refused.starts_with("-ERR the server keeps its data in memory alone"), "{refused}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let open = || Db::open(directory.path()).expect("a database");
    {
        let service = service(open(), admin::Options::default());
        let mut client = Session::new(Arc::clone(&service));
        said(&mut client, &["SET kept 1", "SET long x", &format!("SETRANGE long 600000 {}", "y")]);
        assert_eq!(said(&mut client, &["SAVE"]), "+OK|");
        assert!(!service.is_save_due(), "nothing has changed since");
        said(&mut client, &["SET later 1"]);
        assert_eq!(said(&mut client, &["BGSAVE"]), "+Background saving started|");
        assert!(service.is_save_due() && !service.is_save_due());
        assert_eq!(said(&mut client, &["LASTSAVE"]), ":1700000000|");
        assert!(said(&mut client, &["INFO persistence"]).contains("rdb_saves:1|"));
    }
    let service = service(open(), admin::Options::default());
    let mut client = Session::new(service);
    assert_eq!(said(&mut client, &["GET kept", "GET later", "STRLEN long"]), "$1|1|$1|1|:600001|");
}

#[test]
fn a_checkpoint_is_due_by_the_rules() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = Db::open(directory.path()).expect("a database");
    let save = SaveRule::list("60 2").expect("a rule");
    let service = service(db, admin::Options { save, ..Default::default() });
    let mut client = Session::new(Arc::clone(&service));
    said(&mut client, &["SET a 1"]);
    service.set_clock(1_700_000_061_000);
    assert!(!service.is_save_due(), "one change is not two");
    said(&mut client, &["SET b 1"]);
    assert!(service.is_save_due());
    service.save().expect("it is kept");
    assert!(!service.is_save_due());
}

#[test]
fn backups_need_a_folder() {
    let (_service, mut client) = default();
    for line in ["SW.BACKUP", "SW.BACKUP KEEP 2", "SW.BACKUPS"] {
        assert!(said(&mut client, &[line]).contains("start it with --backups FOLDER"), "{line}");
    }
    for line in ["SW.BACKUP KEEP 0", "SW.BACKUP KEEP -1"] {
        assert!(said(&mut client, &[line]).contains("from 1 on"), "{line}");
    }
    assert_eq!(said(&mut client, &["SW.BACKUP NOW"]), "-ERR syntax error|");
}

#[test]
fn the_end_is_asked_for() {
    let (service, mut client) = default();
    assert!(!service.stop_wanted().is_cancelled());
    assert_eq!(said(&mut client, &["SHUTDOWN ABORT"]), "-ERR No shutdown in progress.|");
    assert_eq!(said(&mut client, &["SHUTDOWN SAVE NOSAVE"]), "-ERR syntax error|");
    assert_eq!(said(&mut client, &["SHUTDOWN NOSAVE"]), "");
    assert!(service.stop_wanted().is_cancelled() && !service.saves_at_the_end());
}

#[test]
fn debug_is_off_until_it_is_on() {
    let (_service, mut client) = default();
    assert!(said(&mut client, &["DEBUG SLEEP 0"]).starts_with("-ERR DEBUG command not allowed"));
    // A client without a socket is of this machine.
    let options = admin::Options { debug: Debug::Local, ..Default::default() };
    let mut client = Session::new(service(Db::in_memory(), options));
    assert_eq!(said(&mut client, &["DEBUG SLEEP 0"]), "+OK|");
    let shown = said(&mut client, &["CONFIG GET enable-debug-command"]);
    assert_eq!(shown, "*2|$20|enable-debug-command|$5|local|");
    let options = admin::Options { debug: Debug::On, ..Default::default() };
    let service = service(Db::in_memory(), options);
    let mut client = Session::new(Arc::clone(&service));
    assert_eq!(said(&mut client, &["DEBUG SLEEP 0", "DEBUG SET-ACTIVE-EXPIRE 0"]), "+OK|+OK|");
    said(&mut client, &["SET a 1 PX 1"]);
    service.set_clock(1_700_000_000_100);
    assert!(!service.expire().expect("nothing is removed"));
    assert!(said(&mut client, &["INFO stats"]).contains("expired_keys:0|"));
    assert_eq!(said(&mut client, &["TIME", "WAIT 0 0"]), "*2|$10|1700000000|$6|100000|:0|");
}

#[test]
fn bytes_of_clients_are_counted_also_of_those_that_have_gone() {
    let (service, mut client) = default();
    let net = |client: &mut Session| {
        let info = said(client, &["INFO stats"]);
        ["total_net_input_bytes:", "total_net_output_bytes:"].map(|name| {
            let (_, behind) = info.split_once(name).expect("it is there");
            behind.split('|').next().and_then(|text| text.parse::<u64>().ok()).expect("a number")
        })
    };
    let (request, reply) = ("PING 12345\r\n".len() as u64, "$5\r\n12345\r\n".len() as u64);
    let mut other = Session::new(service);
    said(&mut other, &["PING 12345"]);
    assert_eq!(net(&mut client), [request, reply]);
    drop(other);
    let [bytes_in, _] = net(&mut client);
    assert_eq!(bytes_in, request + "INFO stats\r\n".len() as u64, "it has gone");
    said(&mut client, &["CONFIG RESETSTAT"]);
    let [bytes_in, bytes_out] = net(&mut client);
    assert_eq!(
        [bytes_in, bytes_out],
        ["CONFIG RESETSTAT\r\n".len() as u64, "+OK\r\n".len() as u64]
    );
}

#[test]
fn slow_commands_name_their_client() {
    let options = admin::Options { slowlog_micros: 0, ..Default::default() };
    let mut client = Session::new(service(Db::in_memory(), options));
    said(&mut client, &["CLIENT SETNAME one", "SET a 1", "GET a", "DEL a"]);
    let log = said(&mut client, &["SLOWLOG GET 3"]);
    assert_eq!(log.matches("$3|?:0|$3|one|").count(), 3, "{log}");
}
