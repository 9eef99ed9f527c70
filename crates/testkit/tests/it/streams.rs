//! Streams against the oracle find what is wrong on one thread, and say it in few operations.

use sapwood_testkit::case;
use sapwood_testkit::reference::{Fault, LockedMap};
use sapwood_testkit::runner::check_against_oracle;
use sapwood_testkit::stream::StreamSpec;

#[test]
fn a_right_engine_passes() {
    case!().seeds(30, |seed| {
        let ops = StreamSpec::random(seed, 300).ops(seed);
        check_against_oracle(LockedMap::new, &ops).unwrap();
    });
}

#[test]
fn a_wrong_engine_is_caught_and_the_stream_shrunk() {
    for fault in [Fault::KeepsLast, Fault::DescendsTooFar, Fault::CountsReplaced] {
        let divergence = (1..=20).find_map(|seed| {
            let ops = StreamSpec::random(seed, 300).ops(seed);
            check_against_oracle(|| LockedMap::broken(fault), &ops).err()
        });
        let divergence = divergence.unwrap_or_else(|| panic!("{fault:?} was not caught"));
        assert!(divergence.ops.len() <= 3, "{fault:?}: {divergence}");
    }
}

#[test]
fn a_panic_is_a_failure_like_any_other() {
    use sapwood_testkit::op::Op;
    struct Never;
    let make = || -> LockedMap { panic!("no {}", std::any::type_name::<Never>()) };
    let divergence = check_against_oracle(make, &[Op::First]).unwrap_err();
    assert!(divergence.what.contains("panicked"), "{divergence}");
}
