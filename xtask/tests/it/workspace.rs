//! The files of the workspace, as git would take them.

use ignore::WalkBuilder;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root")
}

/// Every file that is not ignored, relative to the root, in order.
pub(crate) fn files() -> Vec<PathBuf> {
    let mut walk = WalkBuilder::new(root());
    // Only the repository's own .gitignore: the answer is the same on every machine.
    walk.hidden(false).parents(false).git_global(false).git_exclude(false).require_git(false);
    walk.filter_entry(|entry| entry.file_name() != ".git");
    let mut files: Vec<_> = walk
        .build()
        .map(|entry| entry.expect("the workspace can be read"))
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .map(|entry| entry.path().strip_prefix(root()).expect("below the root").to_owned())
        .collect();
    files.sort();
    files
}

pub(crate) fn files_ending(suffix: &str) -> Vec<PathBuf> {
    files().into_iter().filter(|path| path.to_string_lossy().ends_with(suffix)).collect()
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Fails with one line for each complaint.
#[track_caller]
pub(crate) fn expect_none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
