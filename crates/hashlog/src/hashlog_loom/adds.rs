//! Additions to a counter beside the other threads that write to its word.

use super::{add, counters, race, value_of, word};
use crate::{Error, HashLog, ValueMut};

/// A put and an add in place: the add counts on top of the put, or of what was before it.
///
/// Loom keeps no total order of the writes to a word: after the sum 11 it may show 11, which a
/// machine cannot, since the put came later.
#[test]
fn loom_put_add() {
    let put = |log: &HashLog| log.put(&word(1), &word(20)).expect("memory");
    race(counters, put, add(1), |log, (), sum| {
        let left = value_of(log, 1).expect("never removed");
        assert!(matches!((sum, left), (21, 21) | (11, 20 | 11)), "{sum}, then {left}");
    });
}

/// Two adds both count, and answer different sums.
#[test]
fn loom_add_add() {
    race(counters, add(2), add(1), |log, two, one| {
        assert!((two, one) == (12, 13) || (two, one) == (13, 11), "{two}, {one}");
        assert_eq!(value_of(log, 1), Some(13));
    });
}

/// An add beside a put of the largest sum counts before it, or is refused: at no interleaving does
/// it wrap, as it would if it looked at the counter first and then added whatever that had become.
#[test]
fn loom_add_beside_put_of_the_most() {
    let most = i64::MAX as u64;
    let put = move |log: &HashLog| log.put(&word(1), &word(most)).expect("memory");
    let add = |log: &HashLog| log.add(&word(1), 1);
    race(counters, put, add, move |log, (), sum| {
        let left = value_of(log, 1).expect("never removed");
        let refused = Err(Error::Overflow { value: i64::MAX, delta: 1 });
        // As in `loom_put_add`: after the sum 11 a model may show 11.
        let is_right = if sum == Ok(11) { left == most || left == 11 } else { left == most };
        assert!(is_right && (sum == Ok(11) || sum == refused), "{sum:?}, then {left}");
    });
}

/// The same beside an update by a closure, of whose store no order is lost.
#[test]
fn loom_add_beside_update_to_the_most() {
    let most = i64::MAX as u64;
    let update = move |log: &HashLog| {
        let change = |value: &mut ValueMut<'_>| value.copy_from_slice(&word(most));
        log.update(&word(1), change).expect("memory").expect("never removed");
    };
    let add = |log: &HashLog| log.add(&word(1), 1);
    race(counters, update, add, move |log, (), sum| {
        let refused = Err(Error::Overflow { value: i64::MAX, delta: 1 });
        assert!(sum == Ok(11) || sum == refused, "{sum:?}");
        assert_eq!(value_of(log, 1), Some(most));
    });
}

/// An add and an update by a closure both count.
#[test]
fn loom_add_beside_update() {
    let update = |log: &HashLog| {
        let change = |value: &mut ValueMut<'_>| {
            let next = u64::from_le_bytes((**value).try_into().expect("8 bytes")) + 2;
            value.copy_from_slice(&word(next));
            next
        };
        log.update(&word(1), change).expect("memory").expect("never removed")
    };
    race(counters, update, add(1), |log, two, one| {
        assert!((two, one) == (12, 13) || (two, one) == (13, 11), "{two}, {one}");
        assert_eq!(value_of(log, 1), Some(13));
    });
}
