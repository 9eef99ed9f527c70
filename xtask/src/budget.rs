//! The minutes that CI may take, step by step.
//!
//! Seconds to aim at on two quiet cores, from a clean clone. The table at the end of a run marks the steps
//! beyond theirs, and fails none for it: machines differ and are shared. A change that adds to a step pays for
//! it here, in sight of a reviewer; a test holds the sum below 25 minutes.

use std::time::Duration;

use crate::step::{Step, groups};

/// The most that all steps may take together.
#[cfg(test)]
pub(crate) const TOTAL_MAX: Duration = Duration::from_secs(25 * 60);

const STEPS: [(&str, u64); 13] = [
    ("format", 5),
    ("clippy", 200),
    ("clippy of features: none", 15),
    ("clippy of features: derive,documents,serde,sql", 15),
    ("clippy of features: rollup", 15),
    ("clippy of the plain program", 30),
    ("docs", 60),
    ("loom", 120),
    ("build of tests", 540),
    ("tests", 420),
    ("doc tests", 240),
    ("clients", 60),
    ("types", 20),
];

/// The budget of a step, if it is a step of CI.
pub(crate) fn of(name: &str) -> Option<Duration> {
    let (_, seconds) = STEPS.iter().find(|(known, _)| name == *known)?;
    Some(Duration::from_secs(*seconds))
}

/// The budget of all steps, if each has one. Steps that run side by side take as long as the longest.
pub(crate) fn total(steps: &[Step]) -> Option<Duration> {
    groups(steps).map(|group| group.iter().map(|step| of(step.name())).max().flatten()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chores;

    #[test]
    fn the_budget_of_all_steps_is_kept() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let steps = chores::test().expect("it needs nothing but cargo");
        let rest = chores::beyond_tests(&root).expect("there is a lock file");
        let steps: Vec<_> = steps.into_iter().chain(rest).collect();
        for step in &steps {
            assert!(
                of(step.name()).is_some(),
                "step `{}` has no budget: xtask/src/budget.rs",
                step.name()
            );
        }
        let total = total(&steps).expect("each step has one");
        assert!(total <= TOTAL_MAX, "{total:?} are more than {TOTAL_MAX:?}");
        assert_eq!(of("another"), None);
    }
}
