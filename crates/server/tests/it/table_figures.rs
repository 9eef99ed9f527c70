//! Figures and totals: their forms, and that they are right while others write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use sapwood_server::session::Next;
use sapwood_server::{Service, Session};

use crate::client::{Client, Value, field, ok, replies, request, service};

/// The answer of a query.
fn aggregate(client: &mut Client, table: &str, clauses: &[&[u8]]) -> Value {
    let mut args: Vec<&[u8]> = vec![b"sw.aggregate", table.as_bytes()];
    args.extend_from_slice(clauses);
    match client.call(&args) {
        Value::Error(text) => panic!("{text}"),
        reply => reply,
    }
}

/// The only figure of an answer.
fn figure(reply: &Value) -> Value {
    match field(reply, "rows") {
        Value::Array(rows) => match &rows[..] {
            [Value::Array(row)] if row.len() == 1 => row[0].clone(),
            _ => panic!("{rows:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Trees with their heights, and one whose height is missing.
fn trees(client: &mut Client, engine: &str) {
    let create: [&[u8]; 6] = [
        b"sw.create",
        engine.as_bytes(),
        b"engine",
        engine.as_bytes(),
        b"layout",
        b"kind:key.split(\"/\",0).text, height:i64le?-1, girth:f64le@8",
    ];
    assert_eq!(client.call(&create), ok());
    for (key, height, girth) in [
        ("oak/1", i64::MAX, 1.5),
        ("oak/2", i64::MAX, 2.5),
        ("elm/1", 7, 0.25),
        ("elm/2", -1, 1e300),
    ] {
        let value = [height.to_le_bytes(), f64::to_le_bytes(girth)].concat();
        client.call(&[b"sw.put", engine.as_bytes(), key.as_bytes(), &value]);
    }
}

#[test]
fn answers_have_the_forms_of_each_version() {
    let service = service();
    for engine in ["hash", "ordered"] {
        for is_resp3 in [false, true] {
            let mut client = Client::new(&service);
            if is_resp3 {
                client.line("hello 3");
            }
            if !is_resp3 {
                trees(&mut client, engine);
            }
            let answer = aggregate(
                &mut client,
                engine,
                &[
                    b"BY",
                    b"kind",
                    b"SELECT",
                    b"count, sum(height) as total, max(girth), top(kind, 1) as most",
                    b"ORDER",
                    b"kind desc",
                ],
            );
            assert_eq!(matches!(answer, Value::Map(_)), is_resp3);
            let (sum, girths) = match is_resp3 {
                true => (
                    Value::Big("18446744073709551614".to_owned()),
                    ["2.5", "1e+300"].map(|text| Value::Double(text.to_owned())),
                ),
                false => ("18446744073709551614".into(), ["2.5", "1e+300"].map(Value::from)),
            };
            let most = |kind: &str| {
                Value::Array(vec![Value::Array(vec![kind.into(), 2.into(), 2.into()])])
            };
            let row = |kind: &str, sum, girth| {
                Value::Array(vec![kind.into(), 2.into(), sum, girth, most(kind)])
            };
            let [oak, elm] = girths;
            let rows = Value::Array(vec![row("oak", sum, oak), row("elm", 7.into(), elm)]);
            assert_eq!(field(&answer, "rows"), rows);
            let columns = ["kind", "count", "total", "max(girth)", "most"].map(Value::from);
            assert_eq!(field(&answer, "columns"), Value::Array(columns.to_vec()));
            assert_eq!(field(&answer, "groups"), 2.into());
            assert_eq!(field(&answer, "selected"), 4.into());
            assert_eq!(field(&answer, "missing"), 1.into());
            assert_eq!(field(&answer, "mismatch"), Value::Null);
        }
    }
}

#[test]
fn clauses_narrow_what_counts() {
    let mut client = Client::new(&service());
    for engine in ["hash", "ordered"] {
        trees(&mut client, engine);
        let cases: [(&[&[u8]], i64); 8] = [
            (&[], 4),
            (&[b"prefix", b"oak"], 2),
            (&[b"range", b"[elm/1", b"(oak/2"], 3),
            (&[b"range", b"+", b"-"], 0),
            (&[b"keys", b"3", b"oak/1", b"oak/1", b"none"], 1),
            (&[b"where", b"height > 7"], 2),
            (&[b"where", b"girth < 2 and kind = 'oak'", b"using", b"planner", b"threads", b"3"], 1),
            (&[b"layout", b"kind:key.bytes3", b"where", b"kind = 'elm'"], 2),
        ];
        for (clauses, expected) in cases {
            let clauses = [&[&b"select"[..], b"count"][..], clauses].concat();
            let answer = aggregate(&mut client, engine, &clauses);
            assert_eq!(figure(&answer), expected.into(), "{engine} {clauses:?}");
        }
        let absent = [&b"select"[..], b"count", b"keys", b"2", b"oak/1", b"none"];
        assert_eq!(field(&aggregate(&mut client, engine, &absent), "absent"), 1.into());
        let having =
            [&b"by"[..], b"kind", b"select", b"sum(height)", b"having", b"sum(height) < 9"];
        let rows = Value::Array(vec![Value::Array(vec!["elm".into(), 7.into()])]);
        assert_eq!(field(&aggregate(&mut client, engine, &having), "rows"), rows);
    }
}

#[test]
fn plans_are_explained() {
    let mut client = Client::new(&service());
    client.line("hello 3");
    for (engine, executors) in [("hash", &["log", "walk"][..]), ("ordered", &["range"])] {
        trees(&mut client, engine);
        for executor in executors {
            let line = format!("sw.explain {engine} select count using {executor} threads 2");
            let plan = client.line(&line);
            assert_eq!(field(&plan, "executor"), (*executor).into());
            assert_eq!(field(&plan, "forced"), Value::Boolean(true));
            assert_eq!(field(&plan, "threads"), 2.into());
            let Value::Array(candidates) = field(&plan, "candidates") else { panic!("{plan:?}") };
            assert_eq!(candidates.len(), executors.len());
            assert_eq!(field(&candidates[0], "visits"), 4.into());
        }
        // What is short has one thread.
        let plan = client.line(&format!("sw.explain {engine} select count"));
        assert_eq!(field(&plan, "threads"), 1.into());
        let plan = client.line(&format!("sw.explain {engine} select count keys 1 a using lookup"));
        assert_eq!(field(&plan, "executor"), "look-up".into());
    }
}

#[test]
fn states_of_parts_merge_into_the_answer_of_the_whole() {
    let mut client = Client::new(&service());
    client.line("sw.create all engine hash layout n:i64le");
    client.line("sw.create left engine hash layout n:i64le");
    client.line("sw.create right engine ordered layout n:i64le");
    for number in 0..500_i64 {
        let part = if number % 3 == 0 { "left" } else { "right" };
        for table in ["all", part] {
            client.line(&format!("sw.add {table} k{number} {}", number * number % 97));
        }
    }
    let query: [&[u8]; 8] = [
        b"by",
        b"bucket(n, 10) as tens",
        b"select",
        b"count, sum(n), median(n), distinct(n)",
        b"where",
        b"n > 20",
        b"order",
        b"tens",
    ];
    let whole = aggregate(&mut client, "all", &query);
    let state = |client: &mut Client, table: &str| {
        let Value::Bulk(state) = aggregate(client, table, &[&query[..], &[b"partial"]].concat())
        else {
            panic!("a state")
        };
        state
    };
    let (left, right) = (state(&mut client, "left"), state(&mut client, "right"));
    let states: [&[u8]; 6] = [b"sw.merge", b"left", b"states", b"2", &left, &right];
    assert_eq!(client.call(&[&states[..], &query].concat()), whole);
    // Merged states are states.
    let merged = client.call(&[&states[..], &query, &[b"PARTIAL"]].concat());
    assert_eq!(merged, Value::Bulk(state(&mut client, "all")));

    let mut cut = left.clone();
    cut.truncate(left.len() / 2);
    let mut torn = left.clone();
    torn[left.len() / 2] ^= 1;
    let other = [&b"select"[..], b"count"];
    for (state, query, words) in [
        (&cut, &query[..], "corrupt"),
        (&torn, &query, "corrupt"),
        (&left, &other, "of another query"),
    ] {
        let args: [&[u8]; 5] = [b"sw.merge", b"left", b"states", b"1", state];
        match client.call(&[&args[..], query].concat()) {
            Value::Error(text) => assert!(text.contains(words), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn totals_are_spread_as_told() {
    let mut client = Client::new(&service());
    for engine in ["hash", "ordered"] {
        client.line(&format!("sw.create {engine} engine {engine} layout n:i64le,w:u8@8"));
        for (key, n, weight) in [("a", 10_i64, 1_u8), ("b", 20, 3), ("c", 30, 0)] {
            let value = [&n.to_le_bytes()[..], &[weight]].concat();
            client.call(&[b"sw.put", engine.as_bytes(), key.as_bytes(), &value]);
        }
        let sums = |client: &mut Client| {
            let answer = aggregate(client, engine, &[b"by", b"key", b"select", b"sum(n)"]);
            let Value::Array(rows) = field(&answer, "rows") else { panic!("rows") };
            rows.iter()
                .map(|row| match row {
                    Value::Array(row) => row[1].clone(),
                    other => panic!("{other:?}"),
                })
                .collect::<Vec<_>>()
        };
        let numbers = |numbers: [i64; 3]| numbers.map(Value::from).to_vec();
        let report = client.line(&format!("sw.disaggregate {engine} n 41 add by w"));
        assert_eq!(sums(&mut client), numbers([20, 51, 30]));
        assert_eq!(field(&report, "changed"), 3.into());
        assert_eq!(field(&report, "sum_before"), 60.into());
        assert_eq!(field(&report, "sum_after"), 101.into());
        assert_eq!(field(&report, "rest"), Value::Null);
        client.line(&format!("sw.disaggregate {engine} n 9 weights 2 a 2 c 1"));
        assert_eq!(sums(&mut client), numbers([6, 51, 3]));
        client.line(&format!("sw.disaggregate {engine} n -5 range [b + equally set"));
        assert_eq!(sums(&mut client), numbers([6, -3, -2]));
        let too_much = client.line(&format!("sw.disaggregate {engine} n {} keys 1 a", i128::MAX));
        assert!(matches!(too_much, Value::Error(text) if text.contains("Nothing was changed")));
        assert_eq!(sums(&mut client), numbers([6, -3, -2]));
    }
}

/// Runs `body` some times while two threads run `write(client, round)`.
fn while_writing(
    service: &Arc<Service>,
    write: impl Fn(&mut Client, u64) + Sync,
    mut body: impl FnMut(),
) {
    /// Ends the writers, also by a panic.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    let rounds = [const { AtomicI64::new(0) }; 2];
    thread::scope(|scope| {
        for (writer, rounds) in rounds.iter().enumerate() {
            let (is_over, write) = (&is_over, &write);
            scope.spawn(move || {
                let mut client = Client::new(service);
                for round in (writer as u64..).step_by(2) {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    write(&mut client, round);
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _over = Over(&is_over);
        let mut times = 0;
        while times < 30 || rounds.iter().any(|rounds| rounds.load(Ordering::Relaxed) < 200) {
            body();
            times += 1;
        }
    });
}

const ACCOUNTS: u64 = 200;

fn accounts(service: &Arc<Service>, engine: &str) -> Client {
    let mut client = Client::new(service);
    assert_eq!(client.line(&format!("sw.create {engine} engine {engine} layout n:i64le")), ok());
    for number in 0..ACCOUNTS {
        client.line(&format!("sw.add {engine} account{number} 100"));
    }
    client
}

/// Transfers leave the sum as it is. As of one moment, and in a transaction, it is always exact.
#[test]
fn a_moment_sees_transactions_whole() {
    for engine in ["hash", "ordered"] {
        let service = service();
        let mut client = accounts(&service, engine);
        let transfer = |client: &mut Client, round: u64| {
            let (from, to) = (round * 7 % ACCOUNTS, round * 13 % ACCOUNTS);
            client.line("multi");
            client.line(&format!("sw.add {engine} account{from} -5"));
            client.line(&format!("sw.add {engine} account{to} 5"));
            assert!(matches!(client.line("exec"), Value::Array(_)));
        };
        let sum = Value::Integer(ACCOUNTS as i64 * 100);
        while_writing(&service, transfer, || {
            if engine == "hash" {
                for threads in ["1", "3"] {
                    let clauses: [&[u8]; 5] =
                        [b"select", b"sum(n)", b"moment", b"threads", threads.as_bytes()];
                    assert_eq!(figure(&aggregate(&mut client, engine, &clauses)), sum);
                }
            }
            client.line("multi");
            client.line(&format!("sw.aggregate {engine} select sum(n)"));
            let Value::Array(answers) = client.line("exec") else { panic!("an array") };
            assert_eq!(figure(&answers[0]), sum);
            // Without a moment each account counts once, with a sum that it had.
            let count = aggregate(&mut client, engine, &[b"select", b"count"]);
            assert_eq!(figure(&count), (ACCOUNTS as i64).into());
        });
        let answer = aggregate(&mut client, engine, &[b"select", b"sum(n)"]);
        assert_eq!(figure(&answer), sum);
    }
}

/// The transactions are long, and the jobs are at hand: without a wait for the end of a transaction
/// a moment would lie inside of one.
#[test]
fn a_moment_waits_for_the_end_of_a_transaction() {
    let service = service();
    let mut client = accounts(&service, "hash");
    let jobs: Vec<_> = (0..100)
        .map(|_| {
            let args: [&[u8]; 5] = [b"sw.aggregate", b"hash", b"select", b"sum(n)", b"moment"];
            let mut session = Session::new(Arc::clone(&service));
            match session.run(&request(&args), &mut Vec::new()).1 {
                Next::Job(job) => job,
                other => panic!("{other:?}"),
            }
        })
        .collect();
    let mut requests = request(&[b"multi"]);
    requests.extend(request(&[b"sw.add", b"hash", b"account1", b"-5"]));
    let long: [&[u8]; 4] = [b"sw.aggregate", b"hash", b"select", b"median(n), distinct(n)"];
    requests.extend(request(&long).repeat(50));
    requests.extend(request(&[b"sw.add", b"hash", b"account2", b"5"]));
    requests.extend(request(&[b"exec"]));
    thread::scope(|scope| {
        let asking = scope.spawn(move || {
            let sums = jobs.into_iter().map(|job| {
                let mut out = Vec::new();
                job.run(&mut out);
                figure(&replies(&out)[0])
            });
            sums.collect::<Vec<_>>()
        });
        while !asking.is_finished() {
            assert!(matches!(client.send(&requests).last(), Some(Value::Array(_))));
        }
        let sums = asking.join().expect("it ends");
        assert_eq!(sums, vec![Value::Integer(ACCOUNTS as i64 * 100); 100]);
    });
}

/// What is spread and what is added meanwhile is all there in the end.
#[test]
fn totals_and_writers_lose_nothing_of_each_other() {
    for engine in ["hash", "ordered"] {
        let service = service();
        let mut client = accounts(&service, engine);
        let added = AtomicI64::new(0);
        let add = |client: &mut Client, round: u64| {
            let number = round * 7 % ACCOUNTS;
            let sum = client.line(&format!("sw.add {engine} account{number} 3"));
            assert!(matches!(sum, Value::Integer(_)));
            added.fetch_add(3, Ordering::Relaxed);
        };
        let mut given = 0;
        while_writing(&service, add, || {
            let line = format!("sw.disaggregate {engine} n 1001 add where n>-1 threads 2");
            let report = client.line(&line);
            assert_eq!(field(&report, "given"), 1001.into());
            given += 1001;
        });
        let expected = ACCOUNTS as i64 * 100 + given + added.load(Ordering::Relaxed);
        let sum = aggregate(&mut client, engine, &[b"select", b"sum(n)"]);
        assert_eq!(figure(&sum), expected.into());
        assert_eq!(client.line(&format!("sw.check {engine}")), ok());
    }
}
