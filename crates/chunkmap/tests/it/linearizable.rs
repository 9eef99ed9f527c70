//! Single-key operations are linearizable, whatever else goes on.

use crate::adapter::{Adapter, CONFIGURATIONS, NASTIEST};
use sapwood_testkit::case;
use sapwood_testkit::stress::{Evidence, Round};
use std::cell::Cell;

fn check(configuration: (usize, usize), round: &Round, seed: u64) -> Evidence {
    match round.check(&Adapter::new(configuration), seed) {
        Ok(evidence) => evidence,
        Err(told) => panic!("{configuration:?}, seed {seed}: {told}"),
    }
}

#[test]
fn four_threads_on_three_keys() {
    let total = Cell::new(Evidence::default());
    case!().seeds(250, |seed| {
        let evidence = check(NASTIEST, &Round::few_keys(4, 60, 3), seed);
        total.set(Evidence {
            events: total.get().events + evidence.events,
            overlaps: total.get().overlaps + evidence.overlaps,
        });
    });
    // Without operations at the same time the rounds would prove nothing.
    let Evidence { events, overlaps } = total.get();
    assert!(overlaps * 50 > events, "{overlaps} of {events} events overlap");
}

#[test]
fn four_threads_on_one_key() {
    case!().seeds(150, |seed| {
        check(NASTIEST, &Round::few_keys(4, 80, 1), seed);
    });
}

#[test]
fn eight_threads_on_a_dozen_keys_that_rebalance_all_the_time() {
    case!().seeds(80, |seed| {
        check(NASTIEST, &Round::few_keys(8, 60, 12), seed);
    });
}

#[test]
fn five_threads_in_every_configuration() {
    case!().seeds(12, |seed| {
        for configuration in CONFIGURATIONS {
            check(configuration, &Round::few_keys(5, 150, 6), seed);
        }
    });
}

#[test]
fn long_rounds() {
    case!().seeds(4, |seed| {
        check(CONFIGURATIONS[seed as usize % 3], &Round::few_keys(4, 4_000, 8), seed);
    });
}
