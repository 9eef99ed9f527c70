//! Models of the log's protocols: loom runs every interleaving up to a bound on
//! preemptions. The code under test is the code that ships, down to the epochs;
//! words of frames that were evicted are gone in a model, so a use after free panics.

mod adds;

use std::ops::ControlFlow;
use std::sync::Arc;

use loom::thread;
use sapwood_mem::Pages;
use sapwood_mem::model;

use crate::log::Share;
use crate::log::cold::Fetched;
use crate::ops::read_back::{Noted, Stored};
use crate::ops::search::Probed;
use crate::ops::store::Store;
use crate::record::address::PageNumber;
use crate::record::layout::slot;
use crate::record::{Fixed, Form, hash};
use crate::{HashLog, Layout, Options, RecordAddress, Snapshot, Sweep, ValueMut};

/// Two buckets, and pages of ten fixed records.
fn small_log(layout: Layout) -> Arc<HashLog> {
    let mut options = Options::default();
    options.layout = layout;
    options.page_bytes = 256;
    options.pages = Pages::Small;
    Arc::new(HashLog::in_memory(options).expect("a few pages"))
}

/// A log of fixed records that holds key 1, so that its first page is there.
fn counters() -> Arc<HashLog> {
    let log = small_log(Layout::Fixed8);
    log.put(&word(1), &word(10)).expect("memory");
    log
}

fn word(value: u64) -> [u8; 8] {
    value.to_le_bytes()
}

fn value_of(log: &HashLog, key: u64) -> Option<u64> {
    let read = |value: &[u8]| u64::from_le_bytes(value.try_into().expect("8 bytes"));
    log.get_with(&word(key), read).expect("a fine key")
}

/// The entries of a snapshot, in log order.
fn scanned(snapshot: &Snapshot<'_>) -> Vec<(u64, u64)> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    let mut seen = Vec::new();
    let _all = snapshot
        .scan(|key, value| {
            seen.push((number(key), number(value)));
            ControlFlow::<()>::Continue(())
        })
        .expect("a scan in memory");
    seen
}

/// Fresh keys whose first look-ups go to one bucket, with tags that agree or not.
fn neighbours(agreeing: bool) -> [u64; 2] {
    let depth = 1;
    let place = |key: u64| {
        let hash = hash::of_word(key);
        (hash & 1, slot::tag_of(hash, depth))
    };
    let first = 2;
    let (bucket, tag) = place(first);
    let second = (3..)
        .find(|key| place(*key).0 == bucket && (place(*key).1 == tag) == agreeing)
        .expect("tags have fourteen bits");
    [first, second]
}

/// Branches of a model, as loom has it by default.
const BRANCHES_MAX: usize = 1_000;

fn model(check: impl Fn() + Sync + Send + 'static) {
    model_within(BRANCHES_MAX, check);
}

fn model_within(branches_max: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = branches_max;
    builder.check(move || {
        model::reset();
        check();
    });
}

fn spawn<R: 'static>(
    log: &Arc<HashLog>,
    work: impl FnOnce(&HashLog) -> R + 'static,
) -> thread::JoinHandle<R> {
    let log = Arc::clone(log);
    thread::spawn(move || work(&log))
}

/// Runs a model of two threads, and again with their parts exchanged.
///
/// Of a word that one thread loads, then the other, which goes on to change it, loom remembers the
/// second load alone, and does not try what the first would see after the change. It does if the
/// one that changes the word began. So each of the two begins once.
fn race<A: 'static, B: 'static>(
    set_up: impl Fn() -> Arc<HashLog> + Copy + Send + Sync + 'static,
    one: impl Fn(&HashLog) -> A + Copy + Send + Sync + 'static,
    two: impl Fn(&HashLog) -> B + Copy + Send + Sync + 'static,
    check: impl Fn(&HashLog, A, B) + Copy + Send + Sync + 'static,
) {
    race_within(BRANCHES_MAX, set_up, one, two, check);
}

/// The same with another bound of branches.
fn race_within<A: 'static, B: 'static>(
    branches_max: usize,
    set_up: impl Fn() -> Arc<HashLog> + Copy + Send + Sync + 'static,
    one: impl Fn(&HashLog) -> A + Copy + Send + Sync + 'static,
    two: impl Fn(&HashLog) -> B + Copy + Send + Sync + 'static,
    check: impl Fn(&HashLog, A, B) + Copy + Send + Sync + 'static,
) {
    model_within(branches_max, move || {
        let log = set_up();
        let other = spawn(&log, two);
        let mine = one(&log);
        check(&log, mine, other.join().expect("no panic"));
        log.check().expect("invariants");
    });
    model_within(branches_max, move || {
        let log = set_up();
        let other = spawn(&log, one);
        let mine = two(&log);
        check(&log, other.join().expect("no panic"), mine);
        log.check().expect("invariants");
    });
}

fn put_if_absent(key: u64, value: u64) -> impl Fn(&HashLog) -> bool + Copy + Send + Sync {
    move |log| log.put_if_absent(&word(key), &word(value)).expect("memory")
}

/// A bucket splits, as if there were too many keys for two.
fn grow(log: &HashLog) {
    let index = &log.store.index;
    index.slots.add(12);
    let _pin = log.store.log.epochs.pin();
    index.grow(&log.store.log.epochs, |_, _| unreachable!("tags are long")).expect("memory");
    index.slots.add(-12);
}

/// A key that goes to the new bucket.
fn moved() -> u64 {
    (2..).find(|key| hash::of_word(*key) & 3 == 2).expect("four classes")
}

fn with(key: u64, value: u64) -> impl Fn() -> Arc<HashLog> + Copy + Send + Sync {
    move || {
        let log = counters();
        log.put(&word(key), &word(value)).expect("memory");
        log
    }
}

/// A removal that looks at the value first takes what an addition beside it has left, or the
/// addition begins again from nothing.
#[test]
fn loom_remove_with_add() {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    race(
        counters,
        move |log| log.remove_with(&word(1), number).expect("memory"),
        |log| log.add(&word(1), 1).expect("memory"),
        |log, removed, sum| match removed {
            Some(10) => assert_eq!((sum, value_of(log, 1)), (1, Some(1))),
            Some(11) => assert_eq!((sum, value_of(log, 1)), (11, None)),
            other => panic!("removed {other:?}"),
        },
    );
}

/// Of two removals one takes the value.
#[test]
fn loom_remove_with_remove() {
    race(
        counters,
        |log| log.remove_with(&word(1), |_| ()).expect("memory").is_some(),
        |log| log.remove(&word(1)).expect("memory"),
        |log, one, two| {
            assert!(one ^ two, "one of two removals");
            assert_eq!((value_of(log, 1), log.len_estimate()), (None, 0));
        },
    );
}

/// One of two inserts of a key wins, and its value stays.
#[test]
fn loom_insert_insert() {
    race(counters, put_if_absent(2, 1), put_if_absent(2, 2), |log, one, two| {
        assert!(one != two, "exactly one inserts");
        assert_eq!(value_of(log, 2), Some(if one { 1 } else { 2 }));
    });
}

/// The same while a slot before them is vacated, so that each may take another one: what one finds
/// alone, both must not.
#[test]
fn loom_insert_insert_beside_a_removal() {
    let [gone, key] = neighbours(false);
    let remove_and_insert = move |log: &HashLog| {
        assert!(log.remove(&word(gone)).expect("memory"), "it was there all the time");
        put_if_absent(key, 2)(log)
    };
    race(with(gone, 0), put_if_absent(key, 1), remove_and_insert, move |log, one, two| {
        assert!(one != two, "exactly one inserts");
        assert_eq!(value_of(log, key), Some(if one { 1 } else { 2 }));
    });
}

/// Two keys that share bucket and tag end up in one chain.
#[test]
fn loom_insert_insert_agreeing() {
    let [a, b] = neighbours(true);
    race(counters, put_if_absent(a, 1), put_if_absent(b, 2), move |log, one, two| {
        assert!(one && two, "no other thread inserts them");
        assert_eq!((value_of(log, a), value_of(log, b)), (Some(1), Some(2)));
    });
}

/// Two keys of one bucket find a slot each.
#[test]
fn loom_insert_insert_apart() {
    let [a, b] = neighbours(false);
    race(counters, put_if_absent(a, 1), put_if_absent(b, 2), move |log, one, two| {
        assert!(one && two, "no other thread inserts them");
        assert_eq!((value_of(log, a), value_of(log, b)), (Some(1), Some(2)));
    });
}

fn add(delta: i64) -> impl Fn(&HashLog) -> i64 + Copy + Send + Sync {
    move |log| log.add(&word(1), delta).expect("a counter")
}

/// An add while a snapshot is taken: it counts, and the snapshot shows it or not. One that began
/// after the snapshot was there does not show.
#[test]
fn loom_add_during_shift() {
    add_during_shift(|log| log.add(&word(1), 1).expect("a counter"));
}

/// The same in a destructor of a thread-local: the pin of the add is late.
#[test]
fn loom_late_add_during_shift() {
    add_during_shift(|log| {
        model::end_locals();
        assert!(!log.store.log.epochs.is_pinned());
        log.add(&word(1), 1).expect("a counter")
    });
}

/// The same inside a late pin of another table.
#[test]
fn loom_late_add_within_a_pin_during_shift() {
    add_during_shift(|log| {
        model::end_locals();
        let elsewhere = sapwood_mem::epoch::Epochs::new();
        let pin = elsewhere.pin();
        let sum = log.add(&word(1), 1).expect("a counter");
        assert!(pin.is_outermost() && elsewhere.is_pinned() && !log.store.log.epochs.is_pinned());
        sum
    });
}

fn add_during_shift(add: fn(&HashLog) -> i64) {
    model(move || {
        let log = counters();
        let other = spawn(&log, add);
        let snapshot = log.snapshot().expect("unpinned");
        let first = scanned(&snapshot);
        let theirs = other.join().expect("no panic");
        assert_eq!(theirs, 11);
        assert_eq!(log.add(&word(1), 1).expect("a counter"), 12, "no add is lost");
        let again = scanned(&snapshot);
        assert!(matches!(first[..], [(1, 10 | 11)]), "{first:?}");
        assert_eq!(again, first, "a snapshot stands still");
        drop(snapshot);
        assert_eq!(value_of(&log, 1), Some(12));
    });
}

/// A put that returned before another change is in each snapshot that shows the change, though it
/// began a page while the snapshot was taken.
#[test]
fn loom_page_turn_snapshot() {
    let set_up = || {
        let log = counters();
        // The page is full, and no other is there.
        for key in 2..11 {
            log.put(&word(key), &word(0)).expect("memory");
        }
        log
    };
    let put_both = |log: &HashLog| {
        log.put(&word(11), &word(0)).expect("memory");
        log.put(&word(1), &word(20)).expect("memory");
    };
    let scan = |log: &HashLog| scanned(&log.snapshot().expect("unpinned"));
    race_within(20_000, set_up, put_both, scan, |log, (), seen| {
        let is_later = seen.contains(&(1, 20));
        assert!(seen.contains(&(11, 0)) || !is_later, "{seen:?}");
        assert!(is_later || seen.contains(&(1, 10)), "{seen:?}");
        assert_eq!(value_of(log, 1), Some(20));
    });
}

/// An insert while the key is removed: the one that comes second finds what the first left.
#[test]
fn loom_remove_insert() {
    race(counters, put_if_absent(1, 2), remove(1), |log, inserted, removed| {
        assert!(removed, "it was there all the time");
        assert!(matches!((inserted, value_of(log, 1)), (true, Some(2)) | (false, None)));
    });
}

fn remove(key: u64) -> impl Fn(&HashLog) -> bool + Copy + Send + Sync {
    move |log| log.remove(&word(key)).expect("memory")
}

/// A new key inserted and removed again: the remove takes it, or finds nothing.
#[test]
fn loom_insert_remove() {
    race(counters, put_if_absent(2, 1), remove(2), |log, inserted, removed| {
        assert!(inserted, "no other thread inserts");
        assert_eq!(value_of(log, 2).is_none(), removed);
    });
}

/// A log of one page that is full: compaction takes it whole.
fn of_a_full_page() -> Arc<HashLog> {
    let log = counters();
    for key in 2..11 {
        log.put(&word(key), &word(0)).expect("memory");
    }
    drop(log.snapshot().expect("unpinned"));
    log
}

/// Runs a model beside a compaction, which takes the page and answers the bytes that it freed.
fn beside_compaction<A: 'static>(
    one: impl Fn(&HashLog) -> A + Copy + Send + Sync + 'static,
    check: impl Fn(&HashLog, A, u64) + Copy + Send + Sync + 'static,
) {
    let compact = |log: &HashLog| log.compact(1.0).expect("memory").bytes_freed;
    // A compaction alone takes more than the default.
    race_within(20_000, of_a_full_page, one, compact, check);
}

/// A batch finds nothing to read ahead while a page goes: the bounds of the log move one by one,
/// and a log in memory has no disk.
#[test]
fn loom_batch_beside_compaction() {
    let read = |log: &HashLog| {
        let mut found = None;
        let keep = |_, value: Option<&[u8]>| found = value.map(<[u8]>::to_vec);
        log.get_many(&[word(1)], keep).expect("a fine key");
        found
    };
    beside_compaction(read, |log, found, freed| {
        assert!(freed > 0, "a page went");
        assert_eq!(found, Some(word(10).to_vec()));
        assert_eq!(value_of(log, 1), Some(10));
    });
}

/// Figures that are made of two bounds are true of some moment, though the bounds move between the
/// two: nothing comes back, and a log of two pages is never longer.
#[test]
fn loom_figures_beside_compaction() {
    let figures = |log: &HashLog| {
        // Those of all figures that are made of bounds: the others take many branches.
        let (begin, tail) = log.store.log.ends();
        (log.store.log.bytes_to_come(), tail.bytes() - begin.bytes())
    };
    beside_compaction(figures, |log, (returning, bytes), freed| {
        assert_eq!(returning, 0, "all of it is in memory");
        let page = log.options().page_bytes as u64;
        assert!(freed == page && bytes <= 2 * page, "{bytes} bytes");
    });
}

/// A key is found in its new bucket while the split goes on.
#[test]
fn loom_grow_get() {
    let key = moved();
    let find = move |log: &HashLog| (value_of(log, key), put_if_absent(key, 40)(log));
    race(with(key, 30), find, grow, move |log, found, ()| {
        assert_eq!(found, (Some(30), false), "it is there");
        assert_eq!(value_of(log, key), Some(30));
    });
}

/// A search alone, which nothing behind it would put right, misses no key of a bucket that splits.
#[test]
fn loom_grow_remove() {
    let key = moved();
    race(with(key, 30), remove(key), grow, move |log, removed, ()| {
        assert!(removed, "it was there all the time");
        assert_eq!(value_of(log, key), None);
    });
}

/// A key that is inserted while its bucket splits is in the bucket that it is looked for in.
#[test]
fn loom_grow_insert() {
    let key = moved();
    let insert = move |log: &HashLog| (put_if_absent(key, 30)(log), value_of(log, key));
    race(counters, insert, grow, move |log, inserted, ()| {
        assert_eq!(inserted, (true, Some(30)));
        assert_eq!(value_of(log, key), Some(30));
    });
}

/// A scan shows a key whose record is superseded meanwhile exactly once.
#[test]
fn loom_superseded_scan() {
    let scan = |log: &HashLog| {
        let snapshot = log.snapshot().expect("unpinned");
        let seen = scanned(&snapshot);
        assert!(matches!(seen[..], [(1, 10 | 20)]), "{seen:?}");
        assert_eq!(scanned(&snapshot), seen, "a snapshot stands still");
    };
    let put = |log: &HashLog| {
        // The first record is below the boundary of this snapshot: the put must append.
        let still = log.snapshot().expect("unpinned");
        log.put(&word(1), &word(20)).expect("memory");
        assert_eq!(scanned(&still), [(1, 10)]);
    };
    race(counters, scan, put, |log, (), ()| assert_eq!(value_of(log, 1), Some(20)));
}

/// A sweep shows a key whose record is replaced meanwhile, or changed in place, exactly once.
#[test]
fn loom_superseded_sweep() {
    let sweep = |log: &HashLog| {
        let mut seen = Vec::new();
        let sweep = log.sweep().expect("unpinned");
        let walk = sweep.scan_part(0, 1, |key, value| {
            let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
            seen.push((number(key), number(value)));
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(walk, Ok(ControlFlow::Continue(())));
        assert!(matches!(seen[..], [(1, 10 | 20 | 30)]), "{seen:?}");
    };
    let put = |log: &HashLog| {
        let still = log.snapshot().expect("unpinned");
        log.put(&word(1), &word(20)).expect("memory");
        drop(still);
        log.put(&word(1), &word(30)).expect("memory");
    };
    race(counters, sweep, put, |log, (), ()| assert_eq!(value_of(log, 1), Some(30)));
}

/// The entries of a sweep.
fn swept(sweep: &Sweep<'_>) -> Vec<(u64, u64)> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    let mut seen = Vec::new();
    let _all = sweep
        .scan_part(0, 1, |key, value| {
            seen.push((number(key), number(value)));
            ControlFlow::<()>::Continue(())
        })
        .expect("a walk in memory");
    seen
}

/// As `counters`, and the page of key 1 lies on the disk alone.
fn opened_counters() -> Arc<HashLog> {
    let log = counters();
    drop(log.snapshot().expect("unpinned"));
    log.store.log.leave_memory();
    log
}

/// Pages that left memory, in their frames.
struct Left(Vec<u8>);

impl Stored for Left {
    fn read<F: Form>(&mut self, store: &Store, page: PageNumber) -> crate::error::Result<Noted> {
        self.0 = store.log.bytes_that_left(page);
        Noted::of::<F>(store.log.page_start(page), &self.0)
    }

    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A record comes back without a mark while a put that does not find it in memory replaces it: a
/// walk that has begun before shows one of the two, and the marks that it leaves are complete.
#[test]
fn loom_superseded_while_it_comes_back() {
    let walk = |log: &HashLog| {
        let sweep = log.sweep().expect("unpinned");
        log.store.read_back_from::<Fixed>(Share::All, &mut Left(Vec::new()));
        let seen = swept(&sweep);
        assert!(matches!(seen[..], [(1, 10 | 20)]), "{seen:?}");
        assert_eq!(log.store.log.marked(), log.store.log.begin());
    };
    let put = |log: &HashLog| log.put(&word(1), &word(20)).expect("memory");
    race(opened_counters, walk, put, |log, (), ()| {
        assert_eq!(swept(&log.sweep().expect("unpinned")), [(1, 20)]);
        assert_eq!(value_of(log, 1), Some(20));
    });
}

/// A record moves to the tail, as when its page is compacted, and the page is given up, while a search goes down to it:
/// the key is there all the time.
#[test]
fn loom_search_beside_a_page_that_is_given_up() {
    let is_absent = |log: &HashLog| {
        let pin = log.store.log.epochs.pin();
        let fetched = Fetched::default();
        let probed = log.store.find::<Fixed>(&pin, Fixed::hash(1), 1, &fetched);
        matches!(probed, Ok(Probed::Absent(..)))
    };
    let give_up = |log: &HashLog| {
        log.put(&word(1), &word(10)).expect("memory");
        log.store.log.cut(log.store.log.head());
    };
    race(opened_counters, is_absent, give_up, |log, is_absent, ()| {
        assert!(!is_absent, "the key was there all the time");
        assert_eq!(value_of(log, 1), Some(10));
    });
}

/// As `counters`, and the page of key 1 is closed, so that it can be edited.
fn closed_counters() -> Arc<HashLog> {
    let log = counters();
    drop(log.snapshot().expect("unpinned"));
    log
}

/// Adds to key 1 under an edit where `counters` put it, if it is still there.
fn add_at(delta: u64) -> impl Fn(&HashLog) -> usize + Copy + Send + Sync {
    move |log| {
        let first = RecordAddress::from(log.store.log.begin());
        log.edit().update_at(&[first], &[word(1)], adding(delta)).expect("memory")
    }
}

/// The same without an edit.
fn add_met(delta: u64) -> impl Fn(&HashLog) -> usize + Copy + Send + Sync {
    move |log| {
        let first = RecordAddress::from(log.store.log.begin());
        log.update_at(&[first], &[word(1)], adding(delta)).expect("memory")
    }
}

fn adding(delta: u64) -> impl Fn(usize, Option<&mut ValueMut<'_>>) {
    move |_, value| {
        let Some(value) = value else { return };
        let before = u64::from_le_bytes((**value).try_into().expect("8 bytes"));
        value.copy_from_slice(&word(before + delta));
    }
}

/// An update by place that may be raced.
trait Update: Fn(&HashLog) -> usize + Copy + Send + Sync + 'static {}

impl<U: Fn(&HashLog) -> usize + Copy + Send + Sync + 'static> Update for U {}

/// An update that adds two and an add of one, which copies or changes in place, both count.
fn race_add(two: impl Update) {
    race(closed_counters, two, add(1), |log, there, sum| {
        assert!(there == 1 && (sum == 11 || sum == 13), "{there}, {sum}");
        assert_eq!(value_of(log, 1), Some(13));
    });
}

/// An update that adds two and an edit that adds one both count.
fn race_edit(two: impl Update) {
    race(closed_counters, two, add_at(1), |log, two, one| {
        assert_eq!((two, one, value_of(log, 1)), (1, 1, Some(13)));
    });
}

/// An add of one counts on top of a put, or was before it.
fn race_put(one: impl Update, put: impl Fn(&HashLog) + Copy + Send + Sync + 'static) {
    let put = move |log: &HashLog| {
        put(log);
        // From here on it has not been before.
        value_of(log, 1)
    };
    race(closed_counters, one, put, |log, there, seen| {
        let left = value_of(log, 1);
        assert_eq!(there, 1);
        assert!(matches!((seen, left), (Some(20), Some(20 | 21)) | (Some(21), Some(21))));
    });
}

/// An add of one was before a removal, or finds nothing.
fn race_remove(one: impl Update) {
    race(closed_counters, one, remove(1), |log, there, removed| {
        assert!(removed && there <= 1, "{removed}, {there}");
        assert_eq!(value_of(log, 1), None);
    });
}

/// An add of one while a snapshot is taken counts, and the snapshot shows it or not, and stands
/// still.
fn race_snapshot(one: impl Update) {
    let scan = |log: &HashLog| {
        let snapshot = log.snapshot().expect("unpinned");
        let seen = scanned(&snapshot);
        assert!(matches!(seen[..], [(1, 10 | 11)]), "{seen:?}");
        assert_eq!(scanned(&snapshot), seen, "a snapshot stands still");
    };
    race(closed_counters, scan, one, |log, (), there| {
        assert_eq!((there, value_of(log, 1)), (1, Some(11)));
    });
}

#[test]
fn loom_met_add() {
    race_add(add_met(2));
}

#[test]
fn loom_update_at_add() {
    race_add(add_at(2));
}

#[test]
fn loom_met_update_at() {
    race_edit(add_met(2));
}

#[test]
fn loom_update_at_twice() {
    race_edit(add_at(2));
}

/// While a snapshot raises `read_only`, so that the put appends.
#[test]
fn loom_met_put_during_shift() {
    race_put(add_met(1), |log| {
        let still = log.snapshot().expect("unpinned");
        log.put(&word(1), &word(20)).expect("memory");
        assert!(matches!(scanned(&still)[..], [(1, 10 | 11)]));
    });
}

#[test]
fn loom_update_at_put() {
    race_put(add_at(1), |log| log.put(&word(1), &word(20)).expect("memory"));
}

#[test]
fn loom_met_remove() {
    race_remove(add_met(1));
}

#[test]
fn loom_update_at_remove() {
    race_remove(add_at(1));
}

#[test]
fn loom_met_during_shift() {
    race_snapshot(add_met(1));
}

#[test]
fn loom_update_at_during_shift() {
    race_snapshot(add_at(1));
}

/// Two updates of a value of variable length both count.
#[test]
fn loom_update_variable() {
    model(|| {
        let log = small_log(Layout::Variable);
        log.put(b"k", &[0]).expect("memory");
        let other = spawn(&log, |log| {
            log.update(b"k", |value| value[0] += 1).expect("memory").expect("never removed");
        });
        log.update(b"k", |value| value[0] += 1).expect("memory").expect("never removed");
        other.join().expect("no panic");
        assert_eq!(log.get(b"k").expect("a fine key"), Some(vec![2]));
    });
}

/// A reader sees a value of variable length before or after an update, never half of it.
#[test]
fn loom_update_get_variable() {
    model(|| {
        let log = small_log(Layout::Variable);
        log.put(b"k", &[1; 16]).expect("memory");
        let other = spawn(&log, |log| log.put(b"k", &[2; 12]).expect("memory"));
        let seen = log.get(b"k").expect("a fine key").expect("never removed");
        assert!(seen == [1; 16] || seen == [2; 12], "half an update: {seen:?}");
        other.join().expect("no panic");
        assert_eq!(log.get(b"k").expect("a fine key"), Some(vec![2; 12]));
    });
}
