//! References: published rates, quoted beside those of a run. None of them is a bar.

use sapwood::aggregate::Executor;

use super::workload::Fraction;

/// The reference: objects a ms that RAMCloud reached on one server, as its wiki page "Data
/// Operations" gives them, the most of all table sizes. A walk is its `forEach`.
pub(crate) fn ramcloud(executor: Executor, share: Fraction) -> Option<f64> {
    let [look_up, walk, log] = match share {
        Fraction::All => [5_036.0, 16_012.0, 70_323.0],
        Fraction::Tenth => [4_030.0, 1_322.0, 6_825.0],
        Fraction::TwoHundredth => [3_650.0, 63.0, 345.0],
    };
    match executor {
        Executor::LookUp => Some(look_up),
        Executor::Walk => Some(walk),
        Executor::Log => Some(log),
        // Its tables have no order.
        Executor::Range => None,
    }
}

/// As [`ramcloud`], for a total that is spread back over all objects.
pub(crate) fn ramcloud_disaggregate(executor: Executor) -> Option<f64> {
    (executor == Executor::LookUp).then_some(2_000.0)
}

/// The most objects a ms that it reached by reading them one at a time from a client.
pub(crate) const RAMCLOUD_CLIENT: f64 = 206.0;
