//! Fields of a word, in batches, and keys that records hold.

use std::collections::BTreeMap;

use sapwood_aggregate::{Action, Collector, Disaggregator, Value};
use sapwood_engine::{
    Addresses, Column, ColumnBatch, HeldKeys, RecordAddress, RecordRun, Validity,
};

use super::{described, parts_of};

#[test]
fn threads_take_batches_of_words() {
    for action in [Action::Set, Action::Add] {
        let asked = described("n:i64le", 100_003);
        let asked = if action == Action::Add { asked.adding() } else { asked };
        check_words(&asked.compile().expect("words"));
    }
}

fn check_words(by: &Disaggregator) {
    assert!(by.changes_words());
    for other in ["n:i64be", "n:u64le", "n:i64le@8", "n:i32le", "n:i64le?0"] {
        assert!(!described(other, 1).compile().expect("numbers").changes_words());
    }
    let count = 20_000_usize;
    let mut collector = by.collector();
    for at in 0..count as u64 {
        collector.push(&at.to_be_bytes(), &at.to_le_bytes());
    }
    let shares = by.shares([collector.into_collected()]).expect("it fits");
    assert!(shares.batch_count() > 2);
    let run = |first: usize| {
        let mut progress = shares.progress();
        for at in (first..shares.batch_count()).step_by(2) {
            let batch = shares.batch(at);
            let number = |key: &[u8]| i64::from_be_bytes(key.try_into().expect("8 bytes"));
            let before: Vec<i64> = batch.shares().map(|share| number(share.key)).collect();
            let given = batch.shares().map(|share| share.part).sum();
            progress.record_words(at, &before, given);
            assert_eq!(progress.done(at), batch.len());
        }
        progress
    };
    let progress = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        run(0).merge(other.join().expect("no panic"))
    });
    let report = shares.report(&progress);
    assert_eq!((report.changed, report.given, report.pending), (count as u64, 100_003, 0));
    let before = (count * (count - 1) / 2) as i128;
    assert_eq!(report.sum_before, Some(Value::Int(before)));
    let kept = if by.action() == Action::Add { before } else { 0 };
    assert_eq!(report.sum_after, Some(Value::Int(kept + 100_003)));
}

/// Keys of records at addresses by threes, of which each may be read.
#[derive(Debug)]
struct Records(Vec<[u8; 8]>);

impl Records {
    fn key(&self, address: RecordAddress) -> [u8; 8] {
        self.0[(address.word() / 3) as usize]
    }
}

impl HeldKeys for Records {
    fn read_run(&self, run: &RecordRun, keys: &mut Vec<[u8; 8]>) {
        keys.extend((0..run.len()).filter_map(|at| Some(self.key(run.address(at)?))));
    }

    fn read_each(&self, addresses: &[RecordAddress], keys: &mut Vec<[u8; 8]>) {
        keys.extend(addresses.iter().map(|address| self.key(*address)));
    }
}

/// Whether the keys are kept or read from records, and whatever was guessed of them, objects get the
/// same parts, and the same is left.
#[test]
fn keys_that_records_hold_are_as_good_as_kept() {
    const COUNT: usize = 90_000;
    let mixed = |at: usize| (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7;
    let keys: Vec<[u8; 8]> = (0..COUNT).map(|at| mixed(at).to_be_bytes()).collect();
    let values: Vec<[u8; 8]> = (0..COUNT as i64).map(i64::to_le_bytes).collect();
    let records = Records(keys.clone());
    // Few of the last quarter are valid, most of what is before it.
    let is_valid =
        |at: usize| if at < COUNT * 3 / 4 { at % 50 != 7 } else { at.is_multiple_of(30) };
    let count = (0..COUNT).filter(|at| is_valid(*at)).count();
    let push = |collector: &mut Collector<'_>, first: usize| {
        let rows = first..(first + 1_000).min(COUNT);
        let mut bits = [0_u64; 16];
        let valid = rows.clone().filter(|at| is_valid(*at)).map(|at| at - first);
        valid.for_each(|at| bits[at / 64] |= 1 << (at % 64));
        let [keys, values] = [&keys, &values].map(|words| Column::of_words(&words[rows.clone()]));
        let batch = ColumnBatch::new(rows.len(), keys, values, Validity::Bits(&bits));
        let first = RecordAddress::from_word(3 * first as u64);
        let batch =
            batch.expect("one length").with_addresses(Addresses::Stepped { first, step: 3 });
        collector.push_batch(&batch.expect("by steps"));
    };
    for (total, threads) in [(10_000_019, 1), (-77_777, 2), (3, 3), (2 * count as i128, 1)] {
        let by = described("n:i64le", total).adding().compile().expect("words");
        let some: Vec<[u8; 8]> = keys.iter().copied().step_by(9).collect();
        let wrong: Vec<[u8; 8]> = (0..9_000_u64).map(u64::to_be_bytes).collect();
        let guesses = [
            None,
            by.guess(count as u64, &some),
            by.guess(count as u64 - 1, &some),
            by.guess(count as u64, &wrong),
        ];
        assert_eq!(guesses[1].is_some(), total % count as i128 != 0);
        assert_eq!(by.guess(count as u64, &some[..20]), None, "too few say nothing");
        let mut kept: Vec<_> = (0..threads).map(|_| by.collector()).collect();
        for (at, first) in (0..COUNT).step_by(1_000).enumerate() {
            push(&mut kept[at % threads], first);
        }
        let kept = kept.into_iter().map(Collector::into_collected);
        let kept = by.shares(kept).expect("it fits");
        for guess in guesses {
            let mut held: Vec<_> = (0..threads).map(|_| by.collector_of_held(guess)).collect();
            for (at, first) in (0..COUNT).step_by(1_000).enumerate() {
                push(&mut held[at % threads], first);
            }
            let held = held.into_iter().map(Collector::into_collected);
            let held = by.shares_of_held(held, &records).expect("it fits");
            assert_eq!((held.tally(), held.sum_before()), (kept.tally(), kept.sum_before()));
            let batches = (0..held.batch_count()).filter_map(|at| held.held_batch(at));
            let mut of_runs = BTreeMap::new();
            for batch in batches {
                let mut keys = Vec::new();
                batch.runs().iter().for_each(|run| records.read_run(run, &mut keys));
                of_runs.extend(keys.iter().map(|key| (key.to_vec(), batch.parts.of(*key))));
            }
            assert!(of_runs.len() * 10 > count * 9 && of_runs.len() < count, "few are kept");
            let parts = parts_of(&kept);
            assert!(of_runs.iter().all(|(key, part)| parts.get(key) == Some(part)), "{total}");
            assert_eq!(parts_of(&held), parts, "{total} {guess:?}");
            let rest = held.pending(&held.progress()).expect("each came once");
            let of_kept = kept.pending(&kept.progress()).expect("each came once");
            assert_eq!(rest.encode(), of_kept.encode());
        }
    }
}

/// Records that lie apart are no row of a page, however even their distance is.
#[test]
fn records_that_lie_apart_keep_their_keys() {
    const COUNT: usize = 200;
    let keys: Vec<[u8; 8]> = (0..COUNT as u64).map(u64::to_be_bytes).collect();
    let values: Vec<[u8; 8]> = (0..COUNT as i64).map(i64::to_le_bytes).collect();
    let apart: Vec<_> = (0..COUNT as u64).map(|at| RecordAddress::from_word(6 * at)).collect();
    let by = described("n:i64le", 100_003).adding().compile().expect("words");
    let mut collector = by.collector_of_held(None);
    let [keys, values] = [&keys, &values].map(|words| Column::of_words(words));
    let batch = ColumnBatch::new(COUNT, keys, values, Validity::All).expect("one length");
    collector.push_batch(&batch.with_addresses(Addresses::Each(&apart)).expect("one each"));
    // It has no key to be read.
    let none = Records(Vec::new());
    let shares = by.shares_of_held([collector.into_collected()], &none).expect("it fits");
    assert!((0..shares.batch_count()).all(|at| shares.held_batch(at).is_none()));
    let parts = parts_of(&shares);
    assert_eq!((parts.len(), parts.values().sum::<i128>()), (COUNT, 100_003));
}
