//! Every promise of aggregation, each with a test that fails when it is broken.
#![forbid(unsafe_code)]

mod blocks;
mod bytes;
mod disaggregate;
mod documents;
mod flight;
mod oracle;
mod refusals;

use proptest::prelude::ProptestConfig;

/// Cases of a randomised test: `SEEDS` where it is set, for long runs. A failure prints what fails;
/// it becomes a test with a name, not a file of seeds.
pub(crate) fn cases(default: u32) -> ProptestConfig {
    let set = std::env::var("SEEDS").ok();
    let cases = set.map_or(default, |seeds| seeds.parse().expect("SEEDS is a number"));
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}
