//! Files of a crate do not use each other in circles.

use crate::workspace::{expect_none, root};
use std::collections::BTreeMap;
use xtask::census::arrows::Arrows;

/// Circles of so many files are few enough to be read as one.
const FILES_MAX: usize = 3;

/// The circles of more files that are left, by their number of files; a list only gets shorter.
const LEFT: &[(&str, &[usize])] =
    &[("bench", &[33, 6]), ("rollup", &[11, 8]), ("server", &[25, 5])];

#[test]
fn circles_of_files_are_small() {
    let left: BTreeMap<_, _> = LEFT.iter().copied().collect();
    let mut complaints = Vec::new();
    for (name, sources) in xtask::census::crates(root()).expect("the workspace can be read") {
        let circles = Arrows::of(&sources).graph.circles();
        let large: Vec<_> = circles.iter().filter(|circle| circle.len() > FILES_MAX).collect();
        let sizes: Vec<_> = large.iter().map(|circle| circle.len()).collect();
        let left = left.get(name.as_str()).copied().unwrap_or_default();
        if sizes != left {
            complaints.push(format!(
                "{name}: circles of {sizes:?} files, and {left:?} are left: {large:?}"
            ));
        }
    }
    expect_none(complaints);
}
