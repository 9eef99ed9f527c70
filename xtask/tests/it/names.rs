//! The names of the workspace: files, crates, items.

use crate::workspace;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use xtask::rust;

/// Names that are not ours and may stand in ARCHITECTURE.md.
const FOREIGN: &[&str] = &["unsafe"];

/// The names that a code span can refer to.
pub(crate) struct Names {
    files: BTreeSet<String>,
    /// Folder of each crate -> what its sources define.
    crates: BTreeMap<String, BTreeSet<String>>,
}

impl Names {
    pub(crate) fn of_workspace() -> Names {
        let mut names = Names { files: BTreeSet::new(), crates: BTreeMap::new() };
        for path in workspace::files() {
            for folder in path.ancestors().skip(1) {
                names.files.insert(folder.to_string_lossy().into_owned());
            }
            names.files.insert(path.to_string_lossy().into_owned());
            let (Some(folder), true) = (crate_folder(&path), is_rust(&path)) else {
                continue;
            };
            let words = rust::words(&workspace::read(&path));
            names.crates.entry(folder).or_default().extend(rust::definitions(&words));
        }
        names
    }

    /// True if `span` is a phrase, code or a command and so names nothing, or names something
    /// that exists.
    pub(crate) fn knows(&self, span: &str) -> bool {
        let span = span.trim_end_matches("()").trim_end_matches(['!', '/']);
        let name = |c: char| c.is_alphanumeric() || "_-:./*".contains(c);
        if !span.chars().all(name) || FOREIGN.contains(&span) {
            return true;
        }
        if self.files.contains(span) {
            return true;
        }
        if span.contains('/') || Path::new(span).extension().is_some() || span.starts_with('.') {
            return self.has_file(span);
        }
        if let Some(folder) = span.strip_prefix("sapwood-") {
            return self.crates.contains_key(folder);
        }
        let segments: Vec<_> = span.split("::").collect();
        let first = segments[0].strip_prefix("sapwood_").unwrap_or(segments[0]);
        match self.crates.get(first) {
            Some(items) => segments[1..].iter().all(|name| items.contains(*name)),
            None => {
                let defines_all =
                    |items: &BTreeSet<String>| segments.iter().all(|name| items.contains(*name));
                self.crates.values().any(defines_all)
            }
        }
    }

    /// `*` stands for any characters, once.
    fn has_file(&self, pattern: &str) -> bool {
        match pattern.split_once('*') {
            None => self.files.contains(pattern),
            Some((head, tail)) => {
                self.files.iter().any(|file| file.starts_with(head) && file.ends_with(tail))
            }
        }
    }
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// `crates/mem/src/lib.rs` -> `mem`.
fn crate_folder(path: &Path) -> Option<String> {
    let mut parts = path.iter().map(|part| part.to_string_lossy());
    match parts.next()?.as_ref() {
        "crates" => Some(parts.next()?.into_owned()),
        "xtask" => Some("xtask".to_owned()),
        _ => None,
    }
}

#[test]
fn names_that_exist_are_known_and_others_are_not() {
    let names = Names::of_workspace();
    let known = [
        "crates/mem",
        "crates/mem/",
        ".ci/run",
        "Cargo.toml",
        "crates/*/Cargo.toml",
        "mem",
        "sapwood-mem",
        "sapwood_chunkmap",
        "chunkmap::ChunkMap",
        "ChunkMap::get_with()",
        "Error::Reentrant",
        "Names::crates",
        "unsafe",
        "cargo xtask test",
        "a phrase",
        "#![x]",
    ];
    let unknown = [
        "crates/memory",
        "src/lib.rs",
        "Cargo.yaml",
        "crates/*/Cargo.yaml",
        "sapwood-memory",
        "chunkmap::Chunkmap",
        "ChunkMap::get_without",
        "mem::ChunkMap",
        "Reentrance",
        ".cj",
    ];
    for (spans, expected) in [(&known[..], true), (&unknown[..], false)] {
        let wrong: Vec<_> = spans.iter().filter(|span| names.knows(span) != expected).collect();
        assert!(wrong.is_empty(), "expected knows = {expected} of {wrong:?}");
    }
}
