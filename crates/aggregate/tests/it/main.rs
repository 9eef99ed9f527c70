//! Every promise of aggregation, each with a test that fails when it is broken.
#![forbid(unsafe_code)]

mod blocks;
mod bytes;
mod documents;
mod flight;
mod oracle;
mod refusals;

/// Cases of a randomised test: `SEEDS` where it is set, for long runs.
pub(crate) fn cases(default: u32) -> proptest::prelude::ProptestConfig {
    let set = std::env::var("SEEDS").ok();
    let cases = set.map_or(default, |seeds| seeds.parse().expect("SEEDS is a number"));
    proptest::prelude::ProptestConfig::with_cases(cases)
}
