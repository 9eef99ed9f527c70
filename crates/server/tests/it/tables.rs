//! Tables as a whole: how they come, go, and show themselves; transactions and jobs on them.

use std::sync::Arc;

use sapwood_server::service::Options;
use sapwood_server::session::Next;
use sapwood_server::{Service, Session};

use crate::client::{Client, Value, field, ok, replies, request, service};

fn error(text: &str) -> Value {
    Value::Error(text.to_owned())
}

#[test]
fn tables_come_and_go() {
    let service = service();
    let (mut one, mut two) = (Client::new(&service), Client::new(&service));
    let missing = error("ERR no such table");
    assert_eq!(one.line("sw.get t k"), missing);
    assert_eq!(one.line("sw.create t engine ordered"), ok());
    assert_eq!(one.line("sw.create u engine hash record fixed8"), ok());
    let exists = error("ERR table 't' exists already");
    assert_eq!(two.line("sw.create t engine hash"), exists);
    assert_eq!(two.line("sw.put t k v"), ok());
    assert_eq!(one.line("sw.get t k"), "v".into());
    assert_eq!(one.line("sw.list"), Value::Array(vec!["t".into(), "u".into()]));
    assert_eq!(one.line("sw.list match u*"), Value::Array(vec!["u".into()]));
    assert_eq!(one.line("sw.drop t"), ok());
    assert_eq!(two.line("sw.get t k"), missing);
    assert_eq!(two.line("sw.drop t"), missing);
    // The name is free for another, which both sessions see.
    assert_eq!(one.line("sw.create t engine hash"), ok());
    assert_eq!(two.line("sw.get t k"), Value::Null);
    assert_eq!(two.line("sw.drop t"), ok());
    assert_eq!(two.line("sw.drop u"), ok());
    assert_eq!(one.line("sw.list"), Value::Array(vec![]));
}

#[test]
fn tables_of_the_server_are_not_shown_and_refused() {
    let mut client = Client::new(&service());
    client.line("set k v");
    assert_eq!(client.line("sw.list"), Value::Array(vec![]));
    let own = error("ERR names that begin with 'redis.' are those of the server's own tables");
    for line in [
        "sw.get redis.0 k",
        "sw.put redis.0 k v",
        "sw.drop redis.0",
        "sw.create redis.1 engine hash",
        "sw.aggregate redis.0 select count",
        "sw.range redis.0 - +",
    ] {
        assert_eq!(client.line(line), own, "{line}");
    }
    assert_eq!(client.line("get k"), "v".into());
}

#[test]
fn flushing_leaves_tables() {
    let mut client = Client::new(&service());
    client.line("sw.create t engine hash");
    client.line("sw.put t k v");
    assert_eq!(client.line("flushall"), ok());
    assert_eq!(client.line("sw.get t k"), "v".into());
    client.line("select 3");
    assert_eq!(client.line("sw.get t k"), "v".into());
}

#[test]
fn tables_that_the_host_makes_are_found() {
    let db = sapwood::Db::in_memory();
    let service = Service::new(db.clone(), Default::default()).expect("memory");
    let mut client = Client::new(&Arc::new(service));
    let options = sapwood::OrderedTableOptions::default();
    let table = db.create_ordered_table("flights", options).expect("a table");
    table.put(b"UA1", b"12").expect("room");
    assert_eq!(client.line("sw.get flights UA1"), "12".into());
    assert_eq!(client.line("multi"), ok());
    client.line("sw.get flights UA1");
    assert_eq!(client.line("exec"), Value::Array(vec!["12".into()]));
}

#[test]
fn tables_show_themselves() {
    let mut client = Client::new(&service());
    client.line("hello 3");
    client.line("sw.create t engine hash budget 67108864 layout n:u32le,m:f64le@4");
    client.line("sw.put t k 123456789012");
    let info = client.line("sw.info t");
    assert_eq!(field(&info, "engine"), "hash".into());
    assert_eq!(field(&info, "layout"), "n:u32le, m:f64le@4".into());
    assert_eq!(field(&info, "entries"), Value::Integer(1));
    assert_eq!(field(&info, "kept"), Value::Boolean(false));
    let stats = client.line("sw.stats t");
    assert_eq!(field(&stats, "entries"), Value::Integer(1));
    assert_eq!(field(&stats, "budget_bytes"), Value::Integer(64 << 20));
    client.line("sw.create o engine ordered");
    let stats = client.line("sw.stats o");
    assert_eq!(field(&stats, "budget_bytes"), Value::Null);
    assert_eq!(field(&client.line("sw.info o"), "layout"), Value::Null);
}

#[test]
fn fields_are_changed_all_or_none() {
    let mut client = Client::new(&service());
    for engine in ["hash", "ordered"] {
        let create =
            format!("sw.create {engine} engine {engine} layout n:u8,f:f32le@1,d:decimal@5");
        assert_eq!(client.line(&create), ok());
        let name = engine.as_bytes();
        client.call(&[b"sw.put", name, b"k", &[7, 0, 0, 0, 0, b'9']]);
        let changed = client.line(&format!("sw.update {engine} k n add 3 f set 0.5 d add 1"));
        assert_eq!(changed, Value::Array(vec![10.into(), "0.5".into(), 10.into()]));
        let half = 0.5_f32.to_le_bytes();
        let value = [&[10][..], &half, b"10"].concat();
        assert_eq!(client.call(&[b"sw.get", name, b"k"]), Value::Bulk(value.clone()));
        let refused = client.line(&format!("sw.update {engine} k f set 9 n add 246"));
        assert_eq!(refused, error("ERR field 'n' cannot hold 256"));
        assert_eq!(client.call(&[b"sw.get", name, b"k"]), Value::Bulk(value));
        assert_eq!(client.line(&format!("sw.update {engine} none n add 1")), Value::Null);
    }
}

#[test]
fn commands_on_tables_wait_for_exec() {
    let service = service();
    let (mut one, mut two) = (Client::new(&service), Client::new(&service));
    one.line("sw.create t engine hash layout n:i64le");
    one.line("multi");
    for line in
        ["sw.add t a 1", "sw.add t b 2", "sw.aggregate t select sum(n)", "sw.check t", "sw.get x k"]
    {
        assert_eq!(one.line(line), Value::Simple("QUEUED".to_owned()));
    }
    assert_eq!(two.line("sw.exists t a"), Value::Integer(0));
    let Value::Array(answers) = one.line("exec") else { panic!("an array") };
    assert_eq!(answers[..2], [Value::Integer(1), Value::Integer(2)]);
    let rows = Value::Array(vec![Value::Array(vec![Value::Integer(3)])]);
    assert_eq!(field(&answers[2], "rows"), rows);
    assert_eq!(answers[3..], [ok(), error("ERR no such table")]);
}

/// Sends a request and answers the job that it leaves.
fn job_of(session: &mut Session, line: &str) -> sapwood_server::jobs::Job {
    let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let mut out = Vec::new();
    match session.run(&request(&args), &mut out).1 {
        Next::Job(job) => job,
        other => panic!("{other:?}, {:?}", replies(&out)),
    }
}

#[test]
fn jobs_are_listed_and_cancelled() {
    let service = service();
    let mut client = Client::new(&service);
    client.line("sw.create t engine hash layout n:i64le");
    client.line("sw.add t k 5");
    let mut waiting = Session::new(Arc::clone(&service));
    for line in [
        "sw.aggregate t select sum(n)",
        "sw.disaggregate t n 7",
        "sw.check t",
        "sw.scan t 0 count 100000",
    ] {
        let job = job_of(&mut waiting, line);
        let Value::Array(listed) = client.line("sw.jobs") else { panic!("an array") };
        assert_eq!(field(&listed[0], "table"), "t".into());
        let command = line.split(' ').next().unwrap_or_default();
        assert_eq!(field(&listed[0], "command"), command.into());
        let Value::Integer(id) = field(&listed[0], "id") else { panic!("a number") };
        let in_use = "ERR table 't' is in use by a job; wait for its end, or cancel it with \
                      SW.CANCEL";
        assert_eq!(client.line("sw.drop t"), error(in_use));
        assert_eq!(client.line(&format!("sw.cancel {id}")), Value::Integer(1));
        let mut out = Vec::new();
        job.run(&mut out);
        assert_eq!(replies(&out), [error("ERR cancelled")], "{line}");
        assert_eq!(client.line("sw.jobs"), Value::Array(vec![]));
        assert_eq!(client.line(&format!("sw.cancel {id}")), Value::Integer(0));
    }
    assert_eq!(client.line("sw.counter t k"), Value::Array(vec![5.into()]));
    // The connection can stop it, too.
    let job = job_of(&mut waiting, "sw.aggregate t select sum(n)");
    job.cancel().cancel();
    let mut out = Vec::new();
    job.run(&mut out);
    assert_eq!(replies(&out), [error("ERR cancelled")]);
    // A client that went took its job along.
    drop(job_of(&mut waiting, "sw.check t"));
    assert_eq!(client.line("sw.jobs"), Value::Array(vec![]));
    assert_eq!(client.line("sw.drop t"), ok());
}

#[test]
fn jobs_tell_how_far_they_are_if_asked() {
    let service = service();
    let mut client = Client::new(&service);
    for engine in ["hash", "ordered"] {
        client.line(&format!("sw.create {engine} engine {engine} layout n:i64le"));
        for number in 0..10_000 {
            client.line(&format!("sw.add {engine} k{number} 1"));
        }
        let refused = client.line(&format!("sw.aggregate {engine} select sum(n) progress"));
        assert_eq!(refused, error("ERR PROGRESS needs version 3 of the protocol: HELLO 3"));
        let mut session = Session::new(Arc::clone(&service));
        session.run(&request(&[b"hello", b"3"]), &mut Vec::new());
        for line in [
            format!("sw.aggregate {engine} select sum(n) progress threads 2"),
            format!("sw.disaggregate {engine} n 10000 progress"),
        ] {
            let mut out = Vec::new();
            job_of(&mut session, &line).run(&mut out);
            assert_eq!(replies(&out).len(), 1, "the reply comes alone");
            let mut told = Vec::new();
            session.messages(&mut told);
            assert_eq!(told.first(), Some(&b'>'), "messages are pushes");
            let mut last = 0;
            for message in replies(&told) {
                let Value::Array(message) = message else { panic!("{message:?}") };
                assert_eq!((&message[0], &message[2]), (&"sw.progress".into(), &engine.into()));
                let [Value::Integer(done), Value::Integer(total)] = message[3..] else {
                    panic!("{message:?}")
                };
                assert!(done >= last && total >= 1, "{message:?}");
                last = done;
            }
            assert!(last > 0);
        }
    }
}

#[test]
fn a_check_is_refused_while_a_job_changes_the_table() {
    let service = service();
    let mut client = Client::new(&service);
    client.line("sw.create t engine ordered layout n:i64le");
    client.line("sw.create u engine ordered");
    client.line("sw.add t k 5");
    let mut waiting = Session::new(Arc::clone(&service));
    let job = job_of(&mut waiting, "sw.disaggregate t n 7");
    let changes = "ERR a job changes the table; wait for its end, or cancel it with SW.CANCEL";
    assert_eq!(client.line("sw.check t"), error(changes));
    assert_eq!(client.line("sw.check u"), ok());
    job.run(&mut Vec::new());
    assert_eq!(client.line("sw.check t"), ok());
    assert_eq!(client.line("sw.counter t k"), Value::Array(vec![7.into()]));
}

#[test]
fn scans_take_patterns_and_leave_values_out() {
    let mut client = Client::new(&service());
    for engine in ["hash", "ordered"] {
        client.line(&format!("sw.create {engine} engine {engine}"));
        client.line(&format!("sw.mput {engine} oak 1 elm 2 oaks 3"));
        let reply = client.line(&format!("sw.scan {engine} 0 match oak* novalues count 100"));
        let Value::Array(reply) = reply else { panic!("an array") };
        let Value::Array(mut keys) = reply[1].clone() else { panic!("an array") };
        keys.sort_by_key(|key| format!("{key:?}").len());
        assert_eq!((&reply[0], &keys[..]), (&"0".into(), &["oak".into(), "oaks".into()][..]));
        // As a job too.
        let all = client.line(&format!("sw.scan {engine} 0 novalues count 5000"));
        let Value::Array(all) = all else { panic!("an array") };
        assert!(matches!(&all[1], Value::Array(keys) if keys.len() == 3));
    }
    let range = client.line("sw.range ordered [oak (oaks novalues");
    assert_eq!(range, Value::Array(vec!["oak".into()]));
    let range = client.line("sw.revrange ordered + - limit 1 1");
    assert_eq!(range, Value::Array(vec!["oak".into(), "1".into()]));
}

#[test]
fn every_command_of_a_table_names_it_as_its_key() {
    for command in sapwood_server::command::all().filter(|command| command.group == "table") {
        // Statements name their tables themselves.
        let is_of_all =
            matches!(command.name, "sw.list" | "sw.jobs" | "sw.cancel" | "sw.sql" | "sw.sql_ro");
        let args: Vec<&[u8]> = vec![b"name"; 8];
        let keys = command.keys_of(&args).count();
        assert_eq!(keys, usize::from(!is_of_all), "{}", command.name);
        assert!(!command.summary.is_empty(), "{}", command.name);
        let first = command.syntax.split(' ').next();
        assert_eq!(first == Some("table"), !is_of_all, "{}", command.name);
        // A policy, or a word that clients know.
        for tip in command.tips {
            let is_known = ["nondeterministic_output", "request_policy:", "response_policy:"]
                .iter()
                .any(|known| tip.starts_with(known));
            assert!(is_known, "{tip}");
        }
    }
}

#[test]
fn the_page_on_tables_has_each_command_and_its_options() {
    let page = include_str!("../../../../docs/table-commands.md").replace("\\|", "|");
    let words: Vec<&str> = page.split(|it: char| !(it.is_alphanumeric() || it == '.')).collect();
    for command in sapwood_server::command::all().filter(|command| command.group == "table") {
        let name = command.name.to_uppercase();
        assert!(page.contains(&format!("`{name}")), "{name}");
        let options = command.syntax.split(|it: char| !it.is_alphanumeric());
        for option in options.filter(|it| it.len() > 1 && **it == it.to_uppercase()) {
            assert!(words.contains(&option), "{name} {option}");
        }
    }
}

#[test]
fn tables_count_as_memory() {
    let options = Options { maxmemory: Some(8 << 20), ..Options::default() };
    let service = Service::new(sapwood::Db::in_memory(), options).expect("memory");
    let service = Arc::new(service);
    let mut client = Client::new(&service);
    for engine in ["hash", "ordered"] {
        assert_eq!(client.line(&format!("sw.create {engine} engine {engine}")), ok());
        service.check_memory();
        let value = vec![7; 100_000];
        for number in 0..100 {
            let key = format!("k{number}");
            client.call(&[b"sw.put", engine.as_bytes(), key.as_bytes(), &value]);
        }
        service.check_memory();
        let full = error("OOM command not allowed when used memory > 'maxmemory'.");
        assert_eq!(client.line(&format!("sw.put {engine} k v")), full);
        assert_eq!(client.line(&format!("sw.exists {engine} k1")), Value::Integer(1));
        assert_eq!(client.line(&format!("sw.drop {engine}")), ok());
        service.check_memory();
    }
}
