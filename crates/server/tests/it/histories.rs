//! Histories of concurrent clients are linearizable: over sockets, and between sessions.
//!
//! All databases are one object for the check, since commands of several keys, `EXEC` and `WATCH`
//! see more than one key. Clients write down when they asked and were told, and some order of all
//! that they did, in which each client's requests come in its order, must explain every answer.
//! `SEEDS` makes the rounds longer, as for the engines' histories.

mod client;
mod model;
mod streams;

use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use sapwood::Db;
use sapwood_server::Service;
use sapwood_server::clock::Clock;
use sapwood_server::service::Options;
use sapwood_testkit::case::Case;
use sapwood_testkit::history::{self, Event};
use sapwood_testkit::interleave::{self, Running as Others};
use sapwood_testkit::linear::check_object;
use sapwood_testkit::{case, history::Clock as Moments};

use crate::client::START;
use crate::histories::client::{Line, Recorder, Request, within};
use crate::histories::model::{Answer, Call, Command, State, Text};
use crate::histories::streams::{Stream, Theme, moment_of};
use crate::sockets::Running;

/// The sizes of a round.
#[derive(Debug, Clone, Copy)]
struct Round {
    theme: Theme,
    clients: usize,
    /// Requests of a client in a phase.
    requests: usize,
    /// Between two of them the clock goes on.
    phases: u64,
    timer: Timer,
}

/// What is done beside the clients, all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timer {
    /// Keys whose time has ended go.
    Ends,
    /// The same, and checkpoints are taken.
    EndsAndSaves,
}

impl Round {
    fn of(theme: Theme) -> Round {
        let requests = if theme == Theme::Long { 20 } else { 40 };
        let phases = if theme == Theme::Ends { 4 } else { 1 };
        let requests = requests / phases as usize;
        Round { theme, clients: 4, requests, phases, timer: Timer::Ends }
    }

    /// The events of clients that go at once.
    fn run(
        &self,
        service: &Arc<Service>,
        connect: &dyn Fn() -> Box<dyn Line>,
        (seed, moments): (u64, &Moments),
    ) -> Vec<Event<Call>> {
        let mut clock_events = Vec::new();
        let phase = Barrier::new(self.clients + 1);
        let others = Others::new(1);
        let others_end = others.guard();
        let lines: Vec<Box<dyn Line>> = (0..self.clients).map(|_| connect()).collect();
        let mut events: Vec<Event<Call>> = std::thread::scope(|scope| {
            let (phase, others) = (&phase, &others);
            let clients: Vec<_> = lines
                .into_iter()
                .enumerate()
                .map(|(client, line)| {
                    scope.spawn(move || {
                        interleave::seed_thread(seed.rotate_left(32) ^ client as u64);
                        let mut stream = Stream::new(self.theme, client, seed);
                        let mut recorder = Recorder::new(client, moments, line);
                        for number in 0..self.phases {
                            phase.wait();
                            for pipeline in stream.pipelines(self.requests, moment_of(number)) {
                                recorder.pipeline(&pipeline);
                                interleave::pause();
                            }
                            phase.wait();
                        }
                        recorder.events
                    })
                })
                .collect();
            let timer = scope.spawn(move || {
                while others.any() {
                    service.expire().expect("memory");
                    service.sweep().expect("memory");
                    if self.timer == Timer::EndsAndSaves {
                        service.save().expect("a directory");
                    }
                    std::thread::yield_now();
                }
            });
            for number in 0..self.phases {
                let begin = moments.tick();
                service.set_clock(moment_of(number));
                let (thread, call) = (self.clients, Call::Clock(moment_of(number)));
                clock_events.push(Event { thread, begin, end: moments.tick(), call });
                phase.wait();
                phase.wait();
            }
            let joined = clients.into_iter().map(|client| client.join());
            let all = joined
                .map(|events| events.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            let events = all.flatten().collect();
            drop(others_end);
            timer.join().expect("the timer ends");
            events
        });
        events.extend(clock_events);
        events
    }
}

fn check(events: &[Event<Call>]) -> Result<(), String> {
    check_object("all databases", State::new(), events).map_err(|told| told.to_string())
}

fn options() -> Options {
    let clock = Clock::Manual(AtomicU64::new(START));
    // Fewer replicas of the databases' lock than threads: some share one.
    Options { clock, threads: 2, ..Options::default() }
}

/// Rounds between sessions on threads.
fn between_sessions(case: &Case, theme: Theme, seeds: u64) {
    let overlaps = Cell::new(0);
    case.seeds(seeds, |seed| {
        let service = Arc::new(Service::new(Db::in_memory(), options()).expect("memory"));
        let events =
            Round::of(theme).run(&service, &|| within(&service), (seed, &Moments::default()));
        check(&events).unwrap_or_else(|told| panic!("seed {seed}: {told}"));
        overlaps.set(overlaps.get() + history::overlaps(&events));
    });
    // Without operations at the same time the rounds would prove nothing.
    assert!(overlaps.get() > 0, "clients that met");
}

/// Rounds over sockets.
fn over_sockets(case: &Case, theme: Theme, seeds: u64) {
    let overlaps = Cell::new(0);
    case.seeds(seeds, |seed| {
        let mut server = Running::start(options(), Duration::from_secs(60));
        let connect = || Box::new(server.connect()) as Box<dyn Line>;
        let events = Round::of(theme).run(&server.service, &connect, (seed, &Moments::default()));
        server.end();
        check(&events).unwrap_or_else(|told| panic!("seed {seed}: {told}"));
        overlaps.set(overlaps.get() + history::overlaps(&events));
    });
    assert!(overlaps.get() > 0, "clients that met");
}

/// Rounds between sessions over a directory, while checkpoints are taken: readers before a last one
/// and behind the start that follows see what the clients left.
fn beside_saves(case: &Case, theme: Theme, seeds: u64) {
    let overlaps = Cell::new(0);
    case.seeds(seeds, |seed| {
        let directory = tempfile::tempdir().expect("a directory");
        let moments = Moments::default();
        let open = || {
            let db = Db::open(directory.path()).expect("a directory");
            Arc::new(Service::new(db, options()).expect("its tables"))
        };
        let service = open();
        let round = Round { timer: Timer::EndsAndSaves, ..Round::of(theme) };
        let mut events = round.run(&service, &|| within(&service), (seed, &moments));
        events.extend(read_all(&service, &moments));
        service.save().expect("it is kept");
        drop(service);
        events.extend(read_all(&open(), &moments));
        check(&events).unwrap_or_else(|told| panic!("seed {seed}: {told}"));
        overlaps.set(overlaps.get() + history::overlaps(&events));
    });
    assert!(overlaps.get() > 0, "clients that met");
}

/// What a client sees that reads all keys.
fn read_all(service: &Arc<Service>, moments: &Moments) -> Vec<Event<Call>> {
    let mut reader = Recorder::new(usize::MAX, moments, within(service));
    for database in 0..3 {
        let all = Command::MGet((0..4).collect());
        reader.pipeline(&[Request::Select(database), Request::Command(all)]);
    }
    reader.events
}

#[test]
fn long_values_beside_saves() {
    beside_saves(&case!(), Theme::Long, 3);
}

#[test]
fn databases_beside_saves() {
    beside_saves(&case!(), Theme::Databases, 3);
}

#[test]
fn transactions_beside_saves() {
    beside_saves(&case!(), Theme::Transactions, 3);
}

/// A test between sessions and one over sockets for each theme.
macro_rules! histories {
    ($($theme:ident: $sessions:ident, $sockets:ident, $seeds:literal;)*) => {
        $(
            #[test]
            fn $sessions() {
                between_sessions(&case!(), Theme::$theme, $seeds);
            }

            #[test]
            fn $sockets() {
                over_sockets(&case!(), Theme::$theme, $seeds / 4);
            }
        )*
    };
}

histories! {
    Registers: registers_of_sessions, registers_over_sockets, 24;
    Counters: counters_of_sessions, counters_over_sockets, 24;
    Several: several_keys_of_sessions, several_keys_over_sockets, 24;
    Transactions: transactions_of_sessions, transactions_over_sockets, 24;
    Pipelines: pipelines_of_sessions, pipelines_over_sockets, 24;
    Ends: ends_of_sessions, ends_over_sockets, 24;
    Long: long_values_of_sessions, long_values_over_sockets, 8;
    Databases: databases_of_sessions, databases_over_sockets, 24;
    Steps: steps_of_sessions, steps_over_sockets, 40;
}

/// A command of database 0, by a client, between two moments.
fn told(client: usize, begin: u64, end: u64, command: Command, answer: Answer) -> Event<Call> {
    let call = Call::Command { client, database: 0, command, answer };
    Event { thread: client, begin, end, call }
}

fn exec(
    client: usize,
    begin: u64,
    end: u64,
    commands: Vec<Command>,
    answers: Option<Vec<Answer>>,
) -> Event<Call> {
    let call = Call::Exec { client, database: 0, commands, answers };
    Event { thread: client, begin, end, call }
}

#[track_caller]
fn expect_refused(what: &str, events: &[Event<Call>]) {
    assert!(check(events).is_err(), "{what} was taken for legal");
}

#[track_caller]
fn expect_legal(what: &str, events: &[Event<Call>]) {
    check(events).unwrap_or_else(|told| panic!("{what}: {told}"));
}

fn text(head: &str) -> Text {
    Text::new(head, 0)
}

#[test]
fn a_transaction_that_others_see_half_of_is_refused() {
    use Command::*;
    let both = vec![Set(0, text("a")), Set(1, text("b"))];
    let done = Some(vec![Answer::Ok, Answer::Ok]);
    let transaction = exec(0, 0, 9, both, done);
    let seen = |one: Option<&str>, other: Option<&str>| {
        let texts = vec![one.map(text), other.map(text)];
        told(1, 1, 2, MGet(vec![0, 1]), Answer::Texts(texts))
    };
    expect_legal("before it", &[transaction.clone(), seen(None, None)]);
    expect_legal("behind it", &[transaction.clone(), seen(Some("a"), Some("b"))]);
    expect_refused("the first half", &[transaction.clone(), seen(Some("a"), None)]);
    expect_refused("the second half", &[transaction, seen(None, Some("b"))]);
}

#[test]
fn a_watch_that_is_overlooked_is_refused() {
    use Command::*;
    let watch = told(0, 0, 1, Watch(vec![0]), Answer::Ok);
    let change = |begin, end| told(1, begin, end, Set(0, text("a")), Answer::Ok);
    let guarded = |answers| exec(0, 4, 5, vec![Set(0, text("b"))], answers);
    let done = Some(vec![Answer::Ok]);
    expect_refused("a change between", &[watch.clone(), change(2, 3), guarded(done.clone())]);
    expect_legal("told of it", &[watch.clone(), change(2, 3), guarded(None)]);
    expect_refused("told of none", &[watch.clone(), guarded(None)]);
    expect_legal("a change behind", &[watch.clone(), guarded(done.clone()), change(6, 7)]);
    for answers in [None, done] {
        expect_legal("a change at any time", &[watch.clone(), change(2, 9), guarded(answers)]);
    }
}

#[test]
fn requests_of_a_pipeline_come_in_order() {
    use Command::*;
    let set = |begin, head| told(0, begin, 9, Set(0, text(head)), Answer::Ok);
    let get = |begin, head| told(0, begin, 9, Get(0), Answer::Text(text(head)));
    expect_legal("the last write", &[set(0, "a"), set(1, "b"), get(2, "b")]);
    expect_refused("an earlier write", &[set(0, "a"), set(1, "b"), get(2, "a")]);
    expect_refused("a later write", &[set(0, "a"), get(1, "b"), set(2, "b")]);
}

#[test]
fn a_key_whose_time_has_ended_is_refused() {
    use Command::*;
    let clock = |begin, now| Event { thread: 9, begin, end: begin + 1, call: Call::Clock(now) };
    let set = told(0, 0, 1, SetUntil(0, text("a"), START + 5), Answer::Ok);
    let get = |begin, answer| told(0, begin, begin + 1, Get(0), answer);
    let there = || Answer::Text(text("a"));
    expect_legal("in time", &[set.clone(), clock(2, START + 4), get(4, there())]);
    expect_refused("at its end", &[set.clone(), clock(2, START + 5), get(4, there())]);
    expect_refused("too soon", &[set, clock(2, START + 4), get(4, Answer::None)]);
}

/// Real histories with one answer changed.
#[test]
fn a_doctored_history_is_refused() {
    for theme in [Theme::Registers, Theme::Several, Theme::Pipelines] {
        let service = Arc::new(Service::new(Db::in_memory(), options()).expect("memory"));
        let mut events =
            Round::of(theme).run(&service, &|| within(&service), (1, &Moments::default()));
        expect_legal("as it was", &events);
        let foreign = text("not written");
        let changed = events.iter_mut().find_map(|event| match &mut event.call {
            Call::Command { answer: Answer::Text(text), .. } => Some(text),
            Call::Command { answer: Answer::Texts(texts), .. } => {
                texts.iter_mut().find_map(Option::as_mut)
            }
            _ => None,
        });
        *changed.expect("a value that was read") = foreign;
        expect_refused("a value that no client wrote", &events);
    }
}

#[test]
#[should_panic(expected = "a torn value")]
fn bytes_of_two_values_are_none() {
    let (one, other) = (Text::new("0.1", 600_000).bytes(), Text::new("1.1", 600_000).bytes());
    let _torn = Text::of(&[&one[..524_032], &other[524_032..]].concat());
}
