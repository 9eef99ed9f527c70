//! Budgets of instructions, and whether figures keep them.

use crate::count::Figures;
use crate::work::NAMES;

/// Most instructions of an operation, or of one entry of a batch, the drawing of its key among them.
///
/// One version of the compiler gives the same figures on each run; there is head-room of a tenth for
/// the next one, of a seventh in `dev`. A change that needs more says so here.
struct Budget {
    /// In code that is optimised, as programs are shipped.
    release: f64,
    /// In that of tests, with their assertions.
    dev: f64,
}

const fn budget(release: f64, dev: f64) -> Budget {
    Budget { release, dev }
}

/// In the order of `NAMES`, where slots of a bucket are compared by SSE2.
const BUDGETS: [Budget; NAMES.len()] = [
    budget(18.0, 18.0),
    budget(140.0, 196.0),
    budget(176.0, 299.0),
    budget(179.0, 310.0),
    budget(178.0, 351.0),
    budget(131.0, 184.0),
    budget(143.0, 228.0),
    budget(146.0, 241.0),
    budget(242.0, 330.0),
    budget(256.0, 366.0),
    budget(260.0, 365.0),
    budget(228.0, 314.0),
    budget(239.0, 348.0),
    budget(242.0, 351.0),
    budget(552.0, 909.0),
];

/// Instructions fewer where AVX-512 compares them: a look is 17 then, and 37 by SSE2 with BMI2, in optimised code.
const WIDE: f64 = 20.0;

/// Whether the processor has what the engine's look wants.
fn is_wide() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("bmi2")
}

/// The budgets of this build on this processor.
fn most() -> Figures {
    let is_dev = cfg!(debug_assertions);
    let fewer = if is_wide() && !is_dev { WIDE } else { 0.0 };
    std::array::from_fn(|at| {
        let most = if is_dev { BUDGETS[at].dev } else { BUDGETS[at].release };
        // The first row looks into no bucket.
        if at == 0 { most } else { most - fewer }
    })
}

/// Prints figures beside their budgets, and fails if one exceeds its own.
pub(crate) fn judge(figures: &Figures) -> Result<(), String> {
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    println!("instructions of one operation or entry, profile {profile}");
    println!("{:12} {:>8} {:>8}", "", "counted", "budget");
    let mut over = Vec::new();
    for ((name, figure), most) in NAMES.iter().zip(figures).zip(most()) {
        println!("{name:12} {figure:8.1} {most:8.1}");
        if exceeds(*figure, most) {
            over.push(format!("{name}: {figure:.1}, where 1 to {most:.1} are allowed"));
        }
    }
    if over.is_empty() { Ok(()) } else { Err(over.join("\n")) }
}

/// Whether a figure is more than its budget, or counted nothing.
fn exceeds(figure: f64, most: f64) -> bool {
    !(1.0..=most).contains(&figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_over_its_budget_is_told() {
        assert_eq!(judge(&most()), Ok(()));
        for at in 0..NAMES.len() {
            for wrong in [most()[at] + 0.5, 0.0] {
                let mut figures = most();
                figures[at] = wrong;
                let told = judge(&figures).expect_err("one is wrong");
                assert!(told.starts_with(NAMES[at]) && told.lines().count() == 1, "{told}");
            }
        }
    }
}
