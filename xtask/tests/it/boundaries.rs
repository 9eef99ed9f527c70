//! Absences: `unsafe`, mapped memory and files outside the crates that exist for them.

use crate::workspace::{self, expect_none, read, root};
use cargo_metadata::MetadataCommand;
use std::path::{Path, PathBuf};
use xtask::rust::{lines_saying, words};

/// Folders whose code may be unsafe. The shim, which only tests link, stands in for the C library.
const UNSAFE: &[&str] = &["crates/mem", "crates/chunkmap", "crates/hashlog", "crates/shim"];
/// Folders whose code may map and free memory: tables get theirs from `mem` alone; the benches map
/// the pages on which they measure the machine's own speed and a peer. The shim maps nothing, and
/// names system calls by `libc`.
const MAPS: &[&str] = &["crates/mem", "crates/bench", "crates/shim"];
/// Folders whose code may open files: tables keep theirs in `disk` alone. The command line and `files` read
/// what people give them, the benches read their data and what the system says of itself, xtask the
/// workspace. The shim takes back what a table has written.
/// `server` reads and writes its file of users, and no table.
const OPENS: &[&str] = &[
    // Copies files of a database, whatever they mean.
    "crates/sapwood/src/backup",
    "crates/disk",
    "crates/files",
    "crates/cli",
    "crates/bench",
    "crates/server",
    "crates/shim",
    "xtask",
];

/// Ways to memory that go around `mem`.
const MAPPING: &[&str] = &[
    "mmap",
    "mmap_anonymous",
    "munmap",
    "mremap",
    "madvise",
    "memmap2",
    "libc",
    // `disk` takes a flag of files from the same library.
    "rustix : : mm",
    "rustix : : {",
    "std : : alloc",
    "alloc_zeroed",
    "dealloc",
    "GlobalAlloc",
];

/// Ways to a file that stays open.
const OPENING: &[&str] = &["File : : open", "File : : create", "File : : options", "OpenOptions"];

#[test]
fn unsafe_code_stays_in_its_crates() {
    expect_none(outside(UNSAFE, &["unsafe"]));
}

#[test]
fn only_mem_maps_memory() {
    expect_none(outside(MAPS, MAPPING));
}

#[test]
fn only_disk_opens_files_for_tables() {
    let in_tests = |complaint: &String| {
        complaint.split_once(": ").is_some_and(|(place, _)| place.contains("/tests/"))
    };
    let mut complaints = outside(OPENS, OPENING);
    complaints.retain(|complaint| !in_tests(complaint));
    expect_none(complaints);
}

/// The crates listed above may use unsafe code; every other library and program forbids it, so that
/// the compiler refuses what the words above would miss behind a macro.
#[test]
fn every_other_root_forbids_unsafe_code() {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo reads the workspace");
    let targets = metadata.packages.iter().flat_map(|package| &package.targets);
    let complaints = targets
        .filter(|target| target.is_lib() || target.is_bin())
        .filter_map(|target| target.src_path.as_std_path().strip_prefix(root()).ok())
        .filter(|path| !lies_in(path, UNSAFE))
        .filter(|path| {
            lines_saying(&words(&read(path)), "# ! [ forbid ( unsafe_code ) ]").is_empty()
        })
        .map(|path| format!("{}: lacks #![forbid(unsafe_code)]", path.display()))
        .collect();
    expect_none(complaints);
}

/// A name that says nothing gathers everything.
#[test]
fn files_are_named_for_what_they_hold() {
    let vague = ["util", "utils", "common", "helper", "helpers", "misc"];
    let is_vague = |path: &PathBuf| {
        let stem = path.with_extension("");
        stem.iter().any(|part| vague.iter().any(|name| part == *name))
    };
    let sources = workspace::files_ending(".rs").into_iter().filter(is_vague);
    let complain = |path: PathBuf| format!("{}: name it for what it holds", path.display());
    expect_none(sources.map(complain).collect());
}

fn outside(folders: &[&str], phrases: &[&str]) -> Vec<String> {
    let mut complaints = Vec::new();
    for path in workspace::files_ending(".rs") {
        // Peers in bench-vs are a workspace of their own.
        if lies_in(&path, folders) || !lies_in(&path, &["crates", "xtask"]) {
            continue;
        }
        let words = words(&read(&path));
        for phrase in phrases {
            for line in lines_saying(&words, phrase) {
                let place = format!("{}:{line}", path.display());
                let phrase = phrase.replace(" : : ", "::");
                complaints.push(format!("{place}: {phrase} belongs in {}", folders.join(" or ")));
            }
        }
    }
    complaints
}

fn lies_in(path: &Path, folders: &[&str]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

#[test]
fn trespassing_is_noticed() {
    // With no folder allowed, the folders that exist for it trespass.
    assert!(!outside(&[], &["fn"]).is_empty());
    assert!(lies_in(Path::new("crates/mem/src/lib.rs"), MAPS));
    assert!(!lies_in(Path::new("crates/memory/src/lib.rs"), MAPS));
}
