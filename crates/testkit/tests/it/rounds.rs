//! Stress rounds pass a right engine and catch wrong ones.

use sapwood_testkit::case;
use sapwood_testkit::reference::{Fault, LockedMap};
use sapwood_testkit::stress::{Evidence, Round};

fn scanning_round() -> Round {
    Round {
        scanner_count: 2,
        scans_per_scanner: 10,
        is_stable: |index| index % 3 == 0,
        ..Round::few_keys(2, 100, 24)
    }
}

#[test]
fn a_right_engine_passes_and_threads_do_meet() {
    let mut total = Evidence::default();
    for round in [Round::few_keys(4, 100, 3), scanning_round()] {
        for seed in 1..=20 {
            let evidence = round.check(&LockedMap::new(), seed).unwrap();
            total.events += evidence.events;
            total.overlaps += evidence.overlaps;
        }
    }
    assert!(total.events > 10_000, "{total:?}");
    assert!(total.overlaps > 200, "{total:?}");
}

#[test]
fn wrong_engines_are_caught() {
    let faults = [Fault::LostUpdate, Fault::StaleGet, Fault::CheckThenPut, Fault::DoubleRemove];
    for fault in faults {
        caught(fault, &Round::few_keys(4, 100, 3));
    }
    caught(Fault::ScanByPosition, &scanning_round());
}

fn caught(fault: Fault, round: &Round) {
    let told = (1..=200).find_map(|seed| round.check(&LockedMap::broken(fault), seed).err());
    let told = told.unwrap_or_else(|| panic!("{fault:?} was not caught"));
    eprintln!("{} caught: {fault:?}: {told}", case!().test());
}
