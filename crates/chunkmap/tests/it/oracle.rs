//! On one thread the map is indistinguishable from a `BTreeMap`, in every configuration.

use crate::adapter::{Adapter, CONFIGURATIONS, NASTIEST, bounded};
use sapwood_testkit::case;
use sapwood_testkit::keys::KeyShape;
use sapwood_testkit::runner::check_against_oracle;
use sapwood_testkit::stream::{KeyOrder, StreamSpec};
use sapwood_testkit::values::ValueShape;

#[track_caller]
fn check(configuration: (usize, usize), spec: StreamSpec, seed: u64) {
    let ops = spec.ops(seed);
    if let Err(divergence) = check_against_oracle(|| Adapter::new(configuration), &ops) {
        panic!("{configuration:?} {spec:?}\n{divergence}");
    }
}

#[test]
fn streams_of_every_shape_in_the_nastiest_configuration() {
    case!().seeds(120, |seed| check(NASTIEST, StreamSpec::random(seed, 600), seed));
}

#[test]
fn streams_of_every_shape_in_every_configuration() {
    case!().seeds(30, |seed| {
        for configuration in CONFIGURATIONS {
            check(configuration, StreamSpec::random(seed, 600), seed);
        }
    });
}

#[test]
fn long_streams_over_many_keys() {
    case!().seeds(8, |seed| {
        for configuration in [CONFIGURATIONS[1], CONFIGURATIONS[3], CONFIGURATIONS[4]] {
            let spec = StreamSpec {
                op_count: 5_000,
                keys: KeyShape::Mixed,
                key_count: 3_000,
                order: KeyOrder::ALL[seed as usize % KeyOrder::ALL.len()],
                values: ValueShape::Small,
            };
            check(configuration, spec, seed);
        }
    });
}

#[test]
fn tied_abbreviations_and_keys_within_keys() {
    case!().seeds(40, |seed| {
        for keys in [KeyShape::Ties, KeyShape::Nested, KeyShape::Extremes] {
            let spec = StreamSpec {
                keys,
                key_count: 200,
                values: ValueShape::Small,
                ..StreamSpec::random(seed, 500)
            };
            check(CONFIGURATIONS[seed as usize % 3], spec, seed);
        }
    });
}

#[test]
fn a_budget_that_is_always_near_refuses_and_loses_nothing() {
    case!().seeds(40, |seed| {
        let spec = StreamSpec { values: ValueShape::Edges, ..StreamSpec::random(seed, 500) };
        for (configuration, budget) in [(NASTIEST, 192 << 10), (CONFIGURATIONS[2], 384 << 10)] {
            let make = || Adapter::of(bounded(configuration, Some(budget)));
            if let Err(divergence) = check_against_oracle(make, &spec.ops(seed)) {
                panic!("{configuration:?} {budget} {spec:?}\n{divergence}");
            }
        }
    });
}
