//! A right engine without order passes, and wrong ones are caught.

use sapwood_testkit::case;
use sapwood_testkit::interleave::seed_thread;
use sapwood_testkit::keyed::ledger::Ledger;
use sapwood_testkit::keyed::reference::{KeyedFault, LockedTable};
use sapwood_testkit::keyed::stream::KeyedSpec;
use sapwood_testkit::keyed::stress::{Evidence, KeyedRound, ValueSizes};
use sapwood_testkit::keyed::{KeyedEngine as _, Lengths, Walk};
use sapwood_testkit::runner::check_against_oracle;

/// Room for a pair of 48 bytes.
const TIGHT: Lengths = Lengths { key: 1..=24, value: 0..=40, pair_max: 48, key_unit: 8 };

const EACH: [(Lengths, ValueSizes); 3] = [
    (Lengths::EIGHT, ValueSizes::Counters),
    (TIGHT, ValueSizes::AtMost(40)),
    (Lengths::ANY, ValueSizes::Any),
];

#[test]
fn a_right_engine_passes_streams() {
    case!().seeds(20, |seed| {
        for (lengths, _) in EACH {
            let ops = KeyedSpec::random(seed, 400, lengths.clone()).ops(seed);
            check_against_oracle(|| LockedTable::new(lengths.clone()), &ops).unwrap();
        }
    });
}

#[test]
fn a_wrong_engine_is_caught_and_the_stream_shrunk() {
    let faults = [
        KeyedFault::BatchOutOfOrder,
        KeyedFault::UpdatesOnce,
        KeyedFault::Wraps,
        KeyedFault::KeepsLength,
        KeyedFault::PartsOverlap,
    ];
    for fault in faults {
        let divergence = (1..=40).find_map(|seed| {
            let ops = KeyedSpec::random(seed, 400, Lengths::ANY).ops(seed);
            check_against_oracle(|| LockedTable::broken(Lengths::ANY, fault), &ops).err()
        });
        let divergence = divergence.unwrap_or_else(|| panic!("{fault:?} was not caught"));
        assert!(divergence.ops.len() <= 3, "{fault:?}: {divergence}");
    }
}

#[test]
fn a_right_engine_passes_rounds_and_threads_do_meet() {
    let mut total = Evidence::default();
    for (lengths, sizes) in EACH {
        let round = KeyedRound {
            walker_count: 1,
            walks_per_walker: 10,
            ..KeyedRound::few_keys(4, 100, 3, sizes)
        };
        for seed in 1..=20 {
            total += round.check(&LockedTable::new(lengths.clone()), seed).unwrap();
        }
    }
    assert!(total.events > 10_000, "{total:?}");
    assert!(total.overlaps > 200, "{total:?}");
}

#[test]
fn wrong_engines_are_caught_by_rounds() {
    let walks = KeyedRound {
        walker_count: 2,
        walks_per_walker: 10,
        is_stable: |index| index % 3 == 0,
        ..KeyedRound::few_keys(2, 100, 24, ValueSizes::Any)
    };
    let rounds = [
        (KeyedFault::LostAdd, KeyedRound::few_keys(4, 100, 3, ValueSizes::Any)),
        (KeyedFault::TakesLate, KeyedRound::few_keys(4, 100, 3, ValueSizes::Any)),
        (KeyedFault::ComputesLate, KeyedRound::few_keys(4, 100, 3, ValueSizes::Any)),
        (KeyedFault::CompareThenPut, KeyedRound::few_keys(4, 100, 3, ValueSizes::Any)),
        (KeyedFault::LostUpdate, KeyedRound::few_keys(4, 100, 3, ValueSizes::Any)),
        (KeyedFault::WalkByPosition, walks),
    ];
    for (fault, round) in rounds {
        let table = || LockedTable::broken(Lengths::ANY, fault);
        let told = (1..=200).find_map(|seed| round.check(&table(), seed).err());
        let told = told.unwrap_or_else(|| panic!("{fault:?} was not caught"));
        eprintln!("{} caught: {fault:?}: {told}", case!().test());
    }
}

/// Walks over the log while writers keep their books.
fn ledger_round(table: &LockedTable, seed: u64) -> Result<(), String> {
    let ledger = Ledger::new(2, 5, &table.lengths());
    ledger.fill(table).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let ledger = &ledger;
            scope.spawn(move || ledger.write(table, writer, 40, seed).unwrap());
        }
        seed_thread(seed);
        (0..20).try_for_each(|_| {
            let before = ledger.before();
            let seen = table.pairs(Walk::Log).unwrap();
            ledger.after().check(&before, &seen)
        })
    })?;
    let before = ledger.before();
    ledger.after().check(&before, &table.pairs(Walk::ForEach).unwrap())
}

#[test]
fn a_moment_passes_and_two_moments_are_caught() {
    for lengths in [Lengths::EIGHT, Lengths::ANY] {
        for seed in 1..=10 {
            ledger_round(&LockedTable::new(lengths.clone()), seed).unwrap();
        }
        let wrong = || LockedTable::broken(lengths.clone(), KeyedFault::TwoMoments);
        let told = (1..=200).find_map(|seed| ledger_round(&wrong(), seed).err());
        eprintln!("caught: {}", told.expect("two moments are not one"));
    }
}

#[test]
fn a_ledger_takes_nothing_else_for_a_moment() {
    let table = LockedTable::new(Lengths::ANY);
    let ledger = Ledger::new(1, 3, &table.lengths());
    ledger.fill(&table).unwrap();
    ledger.write(&table, 0, 5, 1).unwrap();
    let right = table.pairs(Walk::Log).unwrap();
    let check = |pairs: &[_]| ledger.after().check(&ledger.before(), pairs);
    assert_eq!(check(&right), Ok(()));
    let wrong = |what: &str, change: &dyn Fn(&mut Vec<(Vec<u8>, Vec<u8>)>)| {
        let mut pairs = right.clone();
        change(&mut pairs);
        assert!(check(&pairs).is_err(), "{what}: {pairs:?}");
    };
    for index in 0..right.len() {
        wrong("one missing", &|pairs| drop(pairs.remove(index)));
        wrong("one twice", &|pairs| pairs.push(pairs[index].clone()));
        if right[index].0[0] != b's' {
            wrong("an older value", &|pairs| pairs[index].1[0] -= 1);
        }
    }
    wrong("a key of nobody", &|pairs| pairs.push((vec![1], vec![2])));
}
