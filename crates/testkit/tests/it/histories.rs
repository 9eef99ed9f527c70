//! Legal and illegal histories of one key, by hand.

use sapwood_testkit::engine::{Computed, Edit, Edited};
use sapwood_testkit::history::{Call, Event};
use sapwood_testkit::linear::{NotLinearizable, check_key};
use sapwood_testkit::op::Rule;

/// Calls with their begins and ends; the thread is the position.
type Timed = (u64, u64, Call);

#[track_caller]
fn legal(what: &str, calls: &[Timed]) {
    check(what, Result::is_ok, calls);
}

#[track_caller]
fn illegal(what: &str, calls: &[Timed]) {
    check(what, Result::is_err, calls);
}

#[track_caller]
fn check(what: &str, expected: fn(&Result<(), NotLinearizable>) -> bool, calls: &[Timed]) {
    let event = |(thread, (begin, end, call)): (usize, &Timed)| Event {
        thread,
        begin: *begin,
        end: *end,
        call: call.clone(),
    };
    let events: Vec<Event> = calls.iter().enumerate().map(event).collect();
    let outcome = check_key(b"k", None, &events);
    assert!(expected(&outcome), "{what}: {outcome:?}");
    // The order in which events are given means nothing.
    let reversed: Vec<Event> = events.into_iter().rev().collect();
    assert!(expected(&check_key(b"k", None, &reversed)), "{what}, reversed");
}

/// A put that found no value.
fn put_new(value: &str) -> Call {
    Call::Put(value.as_bytes().into(), Some(false))
}

/// A put that replaced a value.
fn put_over(value: &str) -> Call {
    Call::Put(value.as_bytes().into(), Some(true))
}

fn get(value: &str) -> Call {
    Call::Get(Some(value.as_bytes().to_vec()))
}

const ABSENT: Call = Call::Get(None);

fn append(tail: &str, after: &str) -> Call {
    let edited = Edited { after: after.as_bytes().to_vec(), refused: None };
    Call::Update(vec![Edit::Append(tail.as_bytes().into())], Some(edited))
}

#[test]
fn reads_see_the_last_write() {
    let one_after_another =
        [(0, 1, put_new("a")), (2, 3, get("a")), (4, 5, put_over("b")), (6, 7, get("b"))];
    legal("one after another", &one_after_another);
    illegal("stale read", &[(0, 1, put_new("a")), (2, 3, put_over("b")), (4, 5, get("a"))]);
    illegal("read of nothing", &[(0, 1, put_new("a")), (2, 3, ABSENT)]);
    illegal("read of what nobody put", &[(0, 1, put_new("a")), (2, 3, get("b"))]);
    illegal("read before the write began", &[(0, 1, get("a")), (2, 3, put_new("a"))]);
    legal("read during the write, old", &[(0, 3, put_new("a")), (1, 2, ABSENT)]);
    legal("read during the write, new", &[(0, 3, put_new("a")), (1, 2, get("a"))]);
}

#[test]
fn time_does_not_run_backwards_for_readers() {
    let write = (0, 9, put_new("a"));
    let seen_then_not = [write.clone(), (1, 2, get("a")), (3, 4, ABSENT)];
    illegal("new, then old", &seen_then_not);
    let not_then_seen = [write, (1, 2, ABSENT), (3, 4, get("a"))];
    legal("old, then new", &not_then_seen);
    let readers_disagree = [
        (0, 1, put_new("0")),
        (2, 20, put_over("a")),
        (3, 19, put_over("b")),
        (4, 5, get("a")),
        (6, 7, get("b")),
        (8, 9, get("a")),
    ];
    illegal("two writes, seen a b a", &readers_disagree);
    legal("two writes, seen a b", &readers_disagree[..5]);
}

#[test]
fn updates_are_not_lost() {
    let base = (0, 1, put_new(""));
    let both = [base.clone(), (2, 5, append("x", "x")), (3, 6, append("y", "xy"))];
    legal("one on top of the other", &both);
    let lost = [base.clone(), (2, 5, append("x", "x")), (3, 6, append("y", "y"))];
    illegal("both on the same value", &lost);
    let gone = [base.clone(), (2, 3, append("x", "x")), (4, 5, get(""))];
    illegal("an update that left no trace", &gone);
    let half = [base, (2, 9, append("xy", "xy")), (3, 4, get("x"))];
    illegal("a reader of half an update", &half);
    illegal("an update of nothing", &[(0, 1, append("x", "x"))]);
    let absent = Call::Update(vec![], None);
    legal("an update that found nothing", &[(0, 1, absent.clone())]);
    illegal("an update that missed the value", &[(0, 1, put_new("a")), (2, 3, absent)]);
}

#[test]
fn exactly_one_inserts_and_exactly_one_removes() {
    let insert = |value: &str, inserted| Call::PutIfAbsent(value.as_bytes().into(), inserted);
    let race =
        |one, other| [(0, 5, insert("a", one)), (1, 4, insert("b", other)), (6, 7, get("a"))];
    legal("one inserts", &race(true, false));
    illegal("both insert", &race(true, true));
    illegal("neither inserts", &race(false, false));
    illegal("the loser's value", &race(false, true));
    let base = (0, 1, put_new("a"));
    let removals = |one, other| {
        [base.clone(), (2, 5, Call::Remove(one)), (3, 6, Call::Remove(other)), (7, 8, ABSENT)]
    };
    legal("one removes", &removals(true, false));
    illegal("both remove", &removals(true, true));
    illegal("neither removes", &removals(false, false));
    let taken = |value: &str| Call::Take(Some(value.as_bytes().to_vec()));
    legal("takes what is there", &[base.clone(), (2, 3, taken("a"))]);
    illegal(
        "takes what was overwritten",
        &[base.clone(), (2, 3, put_over("b")), (4, 5, taken("a"))],
    );
    illegal("replaced nothing", &[base.clone(), (2, 3, put_new("b"))]);
    illegal("replaced what was not there", &[(0, 1, put_over("a"))]);
    legal("did not say", &[base, (2, 3, Call::Put(b"b"[..].into(), None)), (4, 5, get("b"))]);
}

#[test]
fn removed_values_do_not_come_back() {
    let come_back =
        [(0, 1, put_new("a")), (2, 3, Call::Remove(true)), (4, 5, Call::Contains(true))];
    illegal("contains after removal", &come_back);
    legal("contains before removal", &come_back[..2]);
    let upsert = |left: Option<&str>| {
        let edited = left.map(|after| Edited { after: after.into(), refused: None });
        Call::Upsert(b"u"[..].into(), vec![Edit::Append(b"+"[..].into())], edited)
    };
    let removed = &come_back[..2];
    let with = |call| [removed, &[(4, 5, call)]].concat();
    legal("upsert inserts", &with(upsert(None)));
    illegal("upsert on top of the removed", &with(upsert(Some("a+"))));
    illegal("upsert of nothing", &[(0, 1, put_new("a")), (2, 3, upsert(None))]);
    legal("upsert updates", &[(0, 1, put_new("a")), (2, 3, upsert(Some("a+")))]);
}

#[test]
fn compute_decides_on_what_is_there() {
    let toggle = |computed| Call::Compute(Rule::Toggle(b"t"[..].into()), computed);
    let two = |one, other| [(0, 5, toggle(one)), (1, 4, toggle(other))];
    legal("in and out", &two(Computed::Inserted, Computed::Removed));
    illegal("twice in", &two(Computed::Inserted, Computed::Inserted));
    let keep = |computed| Call::Compute(Rule::Keep, computed);
    legal("keeps nothing", &[(0, 1, keep(Computed::Absent))]);
    illegal("keeps something that is not", &[(0, 1, keep(Computed::Kept))]);
}

#[test]
fn compare_and_put_puts_on_what_it_expects_alone() {
    let call = |expected: &str, new: &str, done| {
        Call::CompareAndPut(expected.as_bytes().into(), new.as_bytes().into(), done)
    };
    let race = |one, other| {
        let base = (0, 1, put_new("a"));
        [base, (2, 5, call("a", "b", one)), (3, 6, call("a", "c", other)), (7, 8, get("b"))]
    };
    legal("one puts", &race(true, false));
    illegal("both put", &race(true, true));
    illegal("neither puts", &race(false, false));
    illegal("absent is not empty", &[(0, 1, call("", "b", true))]);
    legal("absent is not equal", &[(0, 1, call("a", "b", false))]);
}

#[test]
fn every_delta_is_in_the_sum() {
    let counter = |count: i64| Call::Put(count.to_le_bytes()[..].into(), None);
    let add = |delta, sum| Call::Add(delta, sum);
    let both = |one, other| [(0, 1, counter(5)), (2, 5, add(1, one)), (3, 6, add(2, other))];
    legal("one after the other", &both(Some(6), Some(8)));
    legal("the other way round", &both(Some(8), Some(7)));
    illegal("a lost delta", &both(Some(6), Some(7)));
    legal("from nothing", &[(0, 1, add(3, Some(3))), (2, 3, add(4, Some(7)))]);
    legal("not a counter", &[(0, 1, put_new("text")), (2, 3, add(1, None))]);
    illegal("a counter after all", &[(0, 1, counter(5)), (2, 3, add(1, None))]);
    illegal("no wrapping around", &[(0, 1, counter(i64::MAX)), (2, 3, add(1, Some(i64::MIN)))]);
}

#[test]
fn an_update_that_may_change_nothing_yet_is_not_taken_too_early() {
    // Both truncate to "1:". Taken at once, the first would leave no operation to undo the put.
    let truncate = || {
        let edits = vec![Edit::Append(b"x"[..].into()), Edit::Resize(2)];
        let edited = Edited { after: b"1:".to_vec(), refused: None };
        Call::Update(edits, Some(edited))
    };
    let calls = [
        (0, 1, put_new("1:")),
        (2, 20, truncate()),
        (3, 4, put_over("1:160")),
        (5, 6, get("1:160")),
        (7, 19, append("3", "1:3")),
        (21, 22, get("1:3")),
    ];
    legal("truncated between the put and the append", &calls);
}

#[test]
fn many_overlapping_operations_are_decided_in_good_time() {
    // Eight appends at once, sixteen times over: 8! orders each, and reads that pin one of them.
    let mut calls = vec![(0, 1, put_new(""))];
    let mut value = String::new();
    for block in 1..=16u64 {
        let base = block * 100;
        for index in 0..8 {
            value.push((b'a' + index as u8) as char);
            calls.push((
                base + index,
                base + 50 + index,
                append(&value[value.len() - 1..], &value),
            ));
        }
        calls.push((base + 90, base + 91, get(&value)));
    }
    legal("all appends", &calls);
    calls.push((5_000, 5_001, get("")));
    illegal("all appends, then none", &calls);
    // Ten puts at once whose order nothing but the last read tells.
    let mut calls: Vec<Timed> = (0..10u64)
        .map(|index| (index, 100 + index, Call::Put(index.to_be_bytes()[..].into(), None)))
        .collect();
    calls.push((200, 201, Call::Get(Some(7u64.to_be_bytes().to_vec()))));
    legal("puts at once, one of them last", &calls);
    calls.push((202, 203, Call::Get(Some(8u64.to_be_bytes().to_vec()))));
    illegal("puts at once, two of them last", &calls);
}

#[test]
fn a_failure_tells_what_cannot_come_next() {
    let event = |thread, begin, end, call| Event { thread, begin, end, call };
    let events = [event(0, 0, 1, put_new("a")), event(1, 2, 3, get("zzz"))];
    let told = check_key(b"key", None, &events).expect_err("nobody put zzz").to_string();
    assert!(told.contains("b\"key\"") && told.contains("put b\"a\""), "{told}");
    assert!(told.contains("thread 1: get -> b\"zzz\""), "{told}");
}
