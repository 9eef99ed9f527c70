//! Dependencies between our crates point down only.

use crate::workspace::{expect_none, root};
use cargo_metadata::{DependencyKind, MetadataCommand, Package};
use std::collections::BTreeSet;

/// Each crate and all it may use of ours. A new edge is a decision: add it here, in
/// ARCHITECTURE.md and in a commit of its own.
const ALLOWED: &[(&str, &[&str])] = &[
    ("sapwood-derive", &[]),
    ("sapwood-engine", &[]),
    ("sapwood-aggregate", &["sapwood-engine", "sapwood-mem", "sapwood-schema"]),
    ("sapwood-mem", &[]),
    ("sapwood-chunkmap", &["sapwood-engine", "sapwood-mem"]),
    ("sapwood-disk", &["sapwood-mem"]),
    ("sapwood-hashlog", &["sapwood-disk", "sapwood-engine", "sapwood-mem"]),
    ("sapwood-occ", &["sapwood-mem"]),
    ("sapwood-ptree", &["sapwood-disk", "sapwood-engine", "sapwood-mem"]),
    (
        "sapwood-rollup",
        &["sapwood-aggregate", "sapwood-chunkmap", "sapwood-disk", "sapwood-engine"],
    ),
    ("sapwood-files", &["sapwood-schema"]),
    ("sapwood-schema", &["sapwood-engine"]),
    ("sapwood-sql", &["sapwood-aggregate", "sapwood-schema"]),
    ("sapwood-wal", &["sapwood-disk", "sapwood-engine"]),
    (
        "sapwood-execute",
        &[
            "sapwood-aggregate",
            "sapwood-chunkmap",
            "sapwood-engine",
            "sapwood-hashlog",
            "sapwood-ptree",
        ],
    ),
    (
        "sapwood",
        &[
            "sapwood-aggregate",
            "sapwood-chunkmap",
            "sapwood-derive",
            "sapwood-disk",
            "sapwood-engine",
            "sapwood-execute",
            "sapwood-files",
            "sapwood-hashlog",
            "sapwood-occ",
            "sapwood-ptree",
            "sapwood-rollup",
            "sapwood-schema",
            "sapwood-sql",
            "sapwood-wal",
        ],
    ),
    (
        "sapwood-bench",
        &[
            "sapwood",
            "sapwood-chunkmap",
            "sapwood-disk",
            "sapwood-hashlog",
            "sapwood-mem",
            "sapwood-ptree",
            "sapwood-server",
        ],
    ),
    ("sapwood-cli", &["sapwood", "sapwood-server"]),
    ("sapwood-server", &["sapwood"]),
    ("sapwood-testkit", &["sapwood-engine"]),
    ("sapwood-instructions", &["sapwood", "sapwood-hashlog"]),
    ("sapwood-shim", &[]),
    (
        "sapwood-torture",
        &["sapwood", "sapwood-disk", "sapwood-ptree", "sapwood-shim", "sapwood-testkit"],
    ),
    ("xtask", &[]),
];

/// The same for tests, on top of the above. The testkit tries itself on real engines; examples of
/// `engine`, `aggregate`, `execute`, `files`, `rollup`, `schema` and `sql` are shown in the facade's documentation.
const ALLOWED_IN_TESTS: &[(&str, &[&str])] = &[
    ("sapwood-engine", &["sapwood"]),
    ("sapwood-aggregate", &["sapwood"]),
    ("sapwood-execute", &["sapwood"]),
    ("sapwood-files", &["sapwood"]),
    ("sapwood-rollup", &["sapwood"]),
    ("sapwood-schema", &["sapwood"]),
    ("sapwood-sql", &["sapwood"]),
    ("sapwood-mem", &["sapwood-testkit"]),
    ("sapwood-chunkmap", &["sapwood-testkit"]),
    // Itself, with the simulated disk.
    ("sapwood-disk", &["sapwood-disk", "sapwood-testkit"]),
    ("sapwood-hashlog", &["sapwood-testkit"]),
    ("sapwood-wal", &["sapwood-testkit"]),
    // Itself, with its features.
    ("sapwood", &["sapwood", "sapwood-testkit"]),
    ("sapwood-bench", &["sapwood-testkit"]),
    ("sapwood-cli", &["sapwood-testkit"]),
    ("sapwood-server", &["sapwood-disk", "sapwood-testkit"]),
    ("sapwood-testkit", &["sapwood", "sapwood-chunkmap"]),
];

#[test]
fn dependencies_point_down_only() {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo reads the workspace");
    let packages: BTreeSet<_> = metadata.packages.iter().map(|p| p.name.as_str()).collect();
    let table: BTreeSet<_> = ALLOWED.iter().map(|(name, _)| *name).collect();
    assert_eq!(packages, table, "the workspace, and the table of allowed edges");
    expect_none(metadata.packages.iter().flat_map(wrong_edges).collect());
}

fn wrong_edges(package: &Package) -> Vec<String> {
    let ours = package.dependencies.iter().filter(|dependency| dependency.path.is_some());
    ours.filter(|dependency| {
        let in_tests = dependency.kind == DependencyKind::Development;
        !(allows(ALLOWED, &package.name, &dependency.name)
            || in_tests && allows(ALLOWED_IN_TESTS, &package.name, &dependency.name))
    })
    .map(|dependency| {
        format!("{} must not depend on {} ({})", package.name, dependency.name, dependency.kind)
    })
    .collect()
}

fn allows(table: &[(&str, &[&str])], user: &str, used: &str) -> bool {
    table.iter().any(|(name, allowed)| *name == user && allowed.contains(&used))
}

/// The crates that a program builds which depends on the facade, itself included, with their features.
fn crates_of_the_facade(flags: &[&str]) -> BTreeSet<String> {
    let tree = std::process::Command::new(env!("CARGO"))
        .args(["tree", "--locked", "-p", "sapwood", "-e", "normal,build", "--prefix", "none"])
        .args(["-f", "{p}\t{f}"])
        .args(flags)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let lines = String::from_utf8(tree.stdout).expect("names are text");
    lines.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

fn name(line: &str) -> String {
    line.split(' ').next().expect("a line has a name").to_owned()
}

/// The most crates of a program with the default features of the facade.
const CRATES_MAX: usize = 45;

#[test]
fn programs_build_what_they_use() {
    let crates = crates_of_the_facade(&[]);
    assert!(crates.len() <= CRATES_MAX, "{} crates: {crates:?}", crates.len());
    let names: BTreeSet<_> = crates.iter().map(|line| name(line)).collect();
    let of_features = [
        ("sql", &["sqlparser", "datasketches"][..]),
        ("files", &["csv", "zstd", "sapwood-files", "sqlparser"]),
        ("columnar", &["parquet", "arrow-array"]),
        ("rollup", &["regex", "jiff", "roaring", "datasketches"]),
        ("documents", &["serde_json", "rmp"]),
        ("serde", &["serde"]),
        ("derive", &["sapwood-derive"]),
    ];
    for (feature, wanted) in of_features {
        let with = crates_of_the_facade(&["--features", feature]);
        let with: BTreeSet<_> = with.iter().map(|line| name(line)).collect();
        for wanted in wanted {
            assert!(with.contains(*wanted), "{feature} has {wanted}");
            assert!(!names.contains(*wanted), "{wanted} is built without {feature}");
        }
    }
}

/// Features that only tests need (seeded faults), and those that would change other crates of a
/// program that embeds the library (the order of every `serde_json::Map`).
#[test]
fn programs_get_no_crate_or_feature_for_tests_and_the_command_line() {
    let lines = crates_of_the_facade(&["--features", "columnar,derive,documents,parquet,serde"]);
    let names: BTreeSet<_> = lines.iter().map(|line| name(line)).collect();
    assert!(names.contains("sapwood-disk") && names.contains("serde_json"), "{names:?}");
    let unwanted = ["rand", "rand_core", "rand_chacha", "chacha20", "cpufeatures", "indexmap"];
    let crates = unwanted.iter().filter(|unwanted| names.contains(**unwanted));
    let features = lines.iter().filter(|line| line.contains("preserve_order"));
    expect_none(
        crates
            .map(|unwanted| format!("a program that depends on sapwood builds {unwanted}"))
            .chain(features.map(|line| format!("a program that depends on sapwood has {line}")))
            .collect(),
    );
}
