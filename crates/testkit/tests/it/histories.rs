//! Legal and illegal histories of one key, by hand.

use sapwood_testkit::engine::{Computed, Edit, Edited};
use sapwood_testkit::history::{Call, Event};
use sapwood_testkit::linear::check_key;
use sapwood_testkit::op::Rule;

/// Calls with their begins and ends; the thread is the position.
type Timed = (u64, u64, Call);

#[track_caller]
fn check(what: &str, legal: bool, calls: &[Timed]) {
    let event = |(thread, (begin, end, call)): (usize, &Timed)| Event {
        thread,
        begin: *begin,
        end: *end,
        call: call.clone(),
    };
    let events: Vec<Event> = calls.iter().enumerate().map(event).collect();
    let outcome = check_key(b"k", None, &events);
    assert_eq!(outcome.is_ok(), legal, "{what}: {outcome:?}");
    // The order in which events are given means nothing.
    let reversed: Vec<Event> = events.into_iter().rev().collect();
    assert_eq!(check_key(b"k", None, &reversed).is_ok(), legal, "{what}, reversed");
}

fn put(value: &str, replaced: bool) -> Call {
    Call::Put(value.as_bytes().into(), Some(replaced))
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
        [(0, 1, put("a", false)), (2, 3, get("a")), (4, 5, put("b", true)), (6, 7, get("b"))];
    check("one after another", true, &one_after_another);
    check(
        "stale read",
        false,
        &[(0, 1, put("a", false)), (2, 3, put("b", true)), (4, 5, get("a"))],
    );
    check("read of nothing", false, &[(0, 1, put("a", false)), (2, 3, ABSENT)]);
    check("read of what nobody put", false, &[(0, 1, put("a", false)), (2, 3, get("b"))]);
    check("read before the write began", false, &[(0, 1, get("a")), (2, 3, put("a", false))]);
    check("read during the write, old", true, &[(0, 3, put("a", false)), (1, 2, ABSENT)]);
    check("read during the write, new", true, &[(0, 3, put("a", false)), (1, 2, get("a"))]);
}

#[test]
fn time_does_not_run_backwards_for_readers() {
    let write = (0, 9, put("a", false));
    let seen_then_not = [write.clone(), (1, 2, get("a")), (3, 4, ABSENT)];
    check("new, then old", false, &seen_then_not);
    let not_then_seen = [write, (1, 2, ABSENT), (3, 4, get("a"))];
    check("old, then new", true, &not_then_seen);
    let readers_disagree = [
        (0, 1, put("0", false)),
        (2, 20, put("a", true)),
        (3, 19, put("b", true)),
        (4, 5, get("a")),
        (6, 7, get("b")),
        (8, 9, get("a")),
    ];
    check("two writes, seen a b a", false, &readers_disagree);
    check("two writes, seen a b", true, &readers_disagree[..5]);
}

#[test]
fn updates_are_not_lost() {
    let base = (0, 1, put("", false));
    let both = [base.clone(), (2, 5, append("x", "x")), (3, 6, append("y", "xy"))];
    check("one on top of the other", true, &both);
    let lost = [base.clone(), (2, 5, append("x", "x")), (3, 6, append("y", "y"))];
    check("both on the same value", false, &lost);
    let gone = [base.clone(), (2, 3, append("x", "x")), (4, 5, get(""))];
    check("an update that left no trace", false, &gone);
    let half = [base, (2, 9, append("xy", "xy")), (3, 4, get("x"))];
    check("a reader of half an update", false, &half);
    check("an update of nothing", false, &[(0, 1, append("x", "x"))]);
    let absent = Call::Update(vec![], None);
    check("an update that found nothing", true, &[(0, 1, absent.clone())]);
    check("an update that missed the value", false, &[(0, 1, put("a", false)), (2, 3, absent)]);
}

#[test]
fn exactly_one_inserts_and_exactly_one_removes() {
    let insert = |value: &str, inserted| Call::PutIfAbsent(value.as_bytes().into(), inserted);
    let race =
        |one, other| [(0, 5, insert("a", one)), (1, 4, insert("b", other)), (6, 7, get("a"))];
    check("one inserts", true, &race(true, false));
    check("both insert", false, &race(true, true));
    check("neither inserts", false, &race(false, false));
    check("the loser's value", false, &race(false, true));
    let base = (0, 1, put("a", false));
    let removals = |one, other| {
        [base.clone(), (2, 5, Call::Remove(one)), (3, 6, Call::Remove(other)), (7, 8, ABSENT)]
    };
    check("one removes", true, &removals(true, false));
    check("both remove", false, &removals(true, true));
    check("neither removes", false, &removals(false, false));
    let taken = |value: &str| Call::Take(Some(value.as_bytes().to_vec()));
    check("takes what is there", true, &[base.clone(), (2, 3, taken("a"))]);
    check(
        "takes what was overwritten",
        false,
        &[base.clone(), (2, 3, put("b", true)), (4, 5, taken("a"))],
    );
    check("replaced nothing", false, &[base.clone(), (2, 3, put("b", false))]);
    check("replaced what was not there", false, &[(0, 1, put("a", true))]);
    check("did not say", true, &[base, (2, 3, Call::Put(b"b"[..].into(), None)), (4, 5, get("b"))]);
}

#[test]
fn removed_values_do_not_come_back() {
    let come_back =
        [(0, 1, put("a", false)), (2, 3, Call::Remove(true)), (4, 5, Call::Contains(true))];
    check("contains after removal", false, &come_back);
    check("contains before removal", true, &come_back[..2]);
    let upsert = |left: Option<&str>| {
        let edited = left.map(|after| Edited { after: after.into(), refused: None });
        Call::Upsert(b"u"[..].into(), vec![Edit::Append(b"+"[..].into())], edited)
    };
    let removed = &come_back[..2];
    let with = |call| [removed, &[(4, 5, call)]].concat();
    check("upsert inserts", true, &with(upsert(None)));
    check("upsert on top of the removed", false, &with(upsert(Some("a+"))));
    check("upsert of nothing", false, &[(0, 1, put("a", false)), (2, 3, upsert(None))]);
    check("upsert updates", true, &[(0, 1, put("a", false)), (2, 3, upsert(Some("a+")))]);
}

#[test]
fn compute_decides_on_what_is_there() {
    let toggle = |computed| Call::Compute(Rule::Toggle(b"t"[..].into()), computed);
    let two = |one, other| [(0, 5, toggle(one)), (1, 4, toggle(other))];
    check("in and out", true, &two(Computed::Inserted, Computed::Removed));
    check("twice in", false, &two(Computed::Inserted, Computed::Inserted));
    let keep = |computed| Call::Compute(Rule::Keep, computed);
    check("keeps nothing", true, &[(0, 1, keep(Computed::Absent))]);
    check("keeps something that is not", false, &[(0, 1, keep(Computed::Kept))]);
}

#[test]
fn compare_and_put_puts_on_what_it_expects_alone() {
    let call = |expected: &str, new: &str, done| {
        Call::CompareAndPut(expected.as_bytes().into(), new.as_bytes().into(), done)
    };
    let race = |one, other| {
        let base = (0, 1, put("a", false));
        [base, (2, 5, call("a", "b", one)), (3, 6, call("a", "c", other)), (7, 8, get("b"))]
    };
    check("one puts", true, &race(true, false));
    check("both put", false, &race(true, true));
    check("neither puts", false, &race(false, false));
    check("absent is not empty", false, &[(0, 1, call("", "b", true))]);
    check("absent is not equal", true, &[(0, 1, call("a", "b", false))]);
}

#[test]
fn every_delta_is_in_the_sum() {
    let counter = |count: i64| Call::Put(count.to_le_bytes()[..].into(), None);
    let add = |delta, sum| Call::Add(delta, sum);
    let both = |one, other| [(0, 1, counter(5)), (2, 5, add(1, one)), (3, 6, add(2, other))];
    check("one after the other", true, &both(Some(6), Some(8)));
    check("the other way round", true, &both(Some(8), Some(7)));
    check("a lost delta", false, &both(Some(6), Some(7)));
    check("from nothing", true, &[(0, 1, add(3, Some(3))), (2, 3, add(4, Some(7)))]);
    check("not a counter", true, &[(0, 1, put("text", false)), (2, 3, add(1, None))]);
    check("a counter after all", false, &[(0, 1, counter(5)), (2, 3, add(1, None))]);
    check(
        "no wrapping around",
        false,
        &[(0, 1, counter(i64::MAX)), (2, 3, add(1, Some(i64::MIN)))],
    );
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
        (0, 1, put("1:", false)),
        (2, 20, truncate()),
        (3, 4, put("1:160", true)),
        (5, 6, get("1:160")),
        (7, 19, append("3", "1:3")),
        (21, 22, get("1:3")),
    ];
    check("truncated between the put and the append", true, &calls);
}

#[test]
fn many_overlapping_operations_are_decided_in_good_time() {
    // Eight appends at once, sixteen times over: 8! orders each, and reads that pin one of them.
    let mut calls = vec![(0, 1, put("", false))];
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
    check("all appends", true, &calls);
    calls.push((5_000, 5_001, get("")));
    check("all appends, then none", false, &calls);
    // Ten puts at once whose order nothing but the last read tells.
    let mut calls: Vec<Timed> = (0..10u64)
        .map(|index| (index, 100 + index, Call::Put(index.to_be_bytes()[..].into(), None)))
        .collect();
    calls.push((200, 201, Call::Get(Some(7u64.to_be_bytes().to_vec()))));
    check("puts at once, one of them last", true, &calls);
    calls.push((202, 203, Call::Get(Some(8u64.to_be_bytes().to_vec()))));
    check("puts at once, two of them last", false, &calls);
}

#[test]
fn a_failure_tells_what_cannot_come_next() {
    let event = |thread, begin, end, call| Event { thread, begin, end, call };
    let events = [event(0, 0, 1, put("a", false)), event(1, 2, 3, get("zzz"))];
    let told = check_key(b"key", None, &events).expect_err("nobody put zzz").to_string();
    assert!(told.contains("b\"key\"") && told.contains("put b\"a\""), "{told}");
    assert!(told.contains("thread 1: get -> b\"zzz\""), "{told}");
}
