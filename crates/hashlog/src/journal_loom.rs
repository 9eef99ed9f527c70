//! Models of changes that a journal hears of: what it heard last of a key is what the log has, and what it
//! heard before a moment is in that moment.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread;
use sapwood_engine::{Compute, Effect, Journal};
use sapwood_mem::{Pages, model};

use crate::{HashLog, Layout, Options};

/// What a journal heard of a key last.
#[derive(Debug)]
struct Last(Mutex<Option<Vec<u8>>>);

impl Last {
    fn value(&self) -> Option<Vec<u8>> {
        self.0.lock().expect("no panic").clone()
    }
}

impl Journal for Last {
    fn log(&self, key: &[u8], effect: Effect<'_>) {
        assert_eq!(key, KEY);
        *self.0.lock().expect("no panic") = match effect {
            Effect::Put(value) => Some(value.to_vec()),
            Effect::Write { .. } => unreachable!("values of eight bytes are logged whole"),
            Effect::Remove => None,
        };
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

const KEY: [u8; 8] = [1; 8];

fn value(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// A log that has logged one entry.
fn told_log(layout: Layout) -> (Arc<HashLog>, Arc<Last>) {
    let mut options = Options::default();
    options.layout = layout;
    options.page_bytes = 256;
    options.pages = Pages::Small;
    let last = Arc::new(Last(Mutex::new(None)));
    let log = HashLog::in_memory(options).expect("a few pages");
    let log = log.with_journal(last.clone() as Arc<dyn Journal>);
    log.put(&KEY, &value(10)).expect("memory");
    (Arc::new(log), last)
}

/// The last change that a journal hears of is the last that happened.
#[track_caller]
fn last_told_is_there(layout: Layout, first: fn(&HashLog), second: fn(&HashLog)) {
    loom::model(move || {
        model::reset();
        let (log, last) = told_log(layout);
        let other = {
            let log = Arc::clone(&log);
            thread::spawn(move || first(&log))
        };
        second(&log);
        other.join().expect("no panic");
        assert_eq!(last.value(), log.get(&KEY).expect("a fine key"));
        log.check().expect("invariants");
    });
}

fn put(log: &HashLog) {
    log.put(&KEY, &value(20)).expect("memory");
}

fn add(log: &HashLog) {
    log.add(&KEY, 1).expect("a counter");
}

fn remove(log: &HashLog) {
    log.remove(&KEY).expect("memory");
}

fn insert(log: &HashLog) {
    log.put_if_absent(&KEY, &value(30)).expect("memory");
}

#[test]
fn loom_logged_put_add() {
    last_told_is_there(Layout::Fixed8, put, add);
}

#[test]
fn loom_logged_put_put() {
    last_told_is_there(Layout::Fixed8, put, |log| log.put(&KEY, &value(30)).expect("memory"));
}

#[test]
fn loom_logged_remove_insert() {
    last_told_is_there(Layout::Fixed8, remove, insert);
}

#[test]
fn loom_logged_remove_put_variable() {
    last_told_is_there(Layout::Variable, remove, put);
}

/// Batches, whose latches are taken together, beside a single change.
#[test]
fn loom_logged_batch() {
    last_told_is_there(Layout::Fixed8, add, |log| {
        log.put_many(&[(KEY, value(20)), (KEY, value(40))]).expect("memory");
    });
}

#[test]
fn loom_logged_update_batch() {
    last_told_is_there(Layout::Variable, put, |log| {
        log.update_many(&[KEY], |_, value| value[0] += 1).expect("memory");
    });
}

#[test]
fn loom_logged_compute() {
    last_told_is_there(Layout::Fixed8, add, |log| {
        log.compute(&KEY, |_| Compute::Replace(value(50).to_vec())).expect("memory");
    });
}

/// A snapshot has what was logged before it was taken, as a checkpoint needs it.
#[track_caller]
fn told_before_a_moment_is_in_it(layout: Layout, change: fn(&HashLog)) {
    loom::model(move || {
        model::reset();
        let (log, last) = told_log(layout);
        let other = {
            let log = Arc::clone(&log);
            thread::spawn(move || change(&log))
        };
        let heard = last.value();
        let snapshot = log.snapshot().expect("unpinned");
        let mut seen = None;
        let _all = snapshot.scan(|_, value| {
            seen = Some(value.to_vec());
            ControlFlow::<()>::Continue(())
        });
        if heard != Some(value(10).to_vec()) {
            assert_eq!(seen, heard);
        }
        drop(snapshot);
        other.join().expect("no panic");
        assert_eq!(last.value(), log.get(&KEY).expect("a fine key"));
    });
}

#[test]
fn loom_logged_put_before_a_moment() {
    told_before_a_moment_is_in_it(Layout::Fixed8, put);
}

#[test]
fn loom_logged_remove_before_a_moment() {
    told_before_a_moment_is_in_it(Layout::Variable, remove);
}
