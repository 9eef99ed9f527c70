//! Named invariants: each `I-NAME` that a comment cites is defined, and each `INVARIANT` line
//! names one.
//!
//! A definition begins a line or an item in the head of a file: `//! - I-PINNED: a thread ...`.

use crate::workspace::{expect_none, files_ending, read};
use std::collections::{BTreeMap, BTreeSet};

/// The names that the sources of a crate define, and those that they cite, with one place of each.
#[derive(Default)]
struct Names {
    defined: BTreeMap<String, String>,
    cited: BTreeMap<String, String>,
}

/// The names of invariants in a line.
fn names_in(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    words.map(|word| word.trim_end_matches('-')).filter(|word| {
        let rest = word.strip_prefix("I-").unwrap_or_default();
        rest.starts_with(|c: char| c.is_ascii_uppercase())
            && rest.chars().all(|c| c.is_ascii_uppercase() || c == '-')
    })
}

/// Adds the names in the comments of a source.
fn collect(path: &str, text: &str, names: &mut Names) {
    let comments = text.lines().enumerate().filter_map(|(at, line)| {
        let (_, comment) = line.split_once("//")?;
        Some((format!("{path}:{}", at + 1), comment))
    });
    for (place, comment) in comments {
        let item = comment.strip_prefix('!').map(str::trim_start);
        let item = item.map(|item| item.strip_prefix("- ").unwrap_or(item));
        for name in names_in(comment) {
            let rest = item.and_then(|item| item.strip_prefix(name));
            if rest.is_some_and(|rest| rest.starts_with(':')) {
                names.defined.insert(name.to_owned(), place.clone());
                continue;
            }
            names.cited.entry(name.to_owned()).or_insert_with(|| place.clone());
        }
    }
}

/// The names of every crate, by its folder.
fn crates() -> BTreeMap<String, Names> {
    let mut crates = BTreeMap::<String, Names>::new();
    for path in files_ending(".rs") {
        let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
        if let [folder, name, sources, ..] = &parts[..]
            && (&**folder, &**sources) == ("crates", "src")
        {
            let names = crates.entry(name.clone().into_owned()).or_default();
            collect(&path.to_string_lossy(), &read(&path), names);
        }
    }
    crates
}

#[test]
fn cited_invariants_are_defined() {
    let crates = crates();
    let mut complaints = Vec::new();
    for (name, names) in &crates {
        let manifest = read(format!("crates/{name}/Cargo.toml"));
        let below =
            crates.iter().filter(|(other, _)| manifest.contains(&format!("sapwood-{other}")));
        let defined: BTreeSet<&String> =
            below.flat_map(|(_, below)| below.defined.keys()).chain(names.defined.keys()).collect();
        for (cited, place) in names.cited.iter().filter(|(cited, _)| !defined.contains(cited)) {
            complaints.push(format!("{place}: {cited} is defined in no head of a file below"));
        }
    }
    expect_none(complaints);
}

#[test]
fn lines_of_invariants_name_one() {
    let mut complaints = Vec::new();
    for path in files_ending(".rs") {
        for (at, line) in read(&path).lines().enumerate() {
            let Some(rest) = line.trim_start().strip_prefix("// INVARIANT") else { continue };
            let named = rest.strip_prefix(": ").and_then(|rest| names_in(rest).next());
            if !rest.starts_with(": I-") || named.is_none() {
                complaints.push(format!("{}:{}: which invariant?", path.display(), at + 1));
            }
        }
    }
    expect_none(complaints);
}

#[test]
fn names_of_invariants_are_found() {
    let mut names = Names::default();
    let source = "//! - I-ONE: a rule (I-TWO).\n//! I-SIX: one more.\nf(); // I-THREE-FOLD, ADDRESS-I, I-x.\nlet x = 'I-NOT';\n// - I-FOUR\n";
    collect("a.rs", source, &mut names);
    assert_eq!(names.defined.keys().collect::<Vec<_>>(), ["I-ONE", "I-SIX"]);
    assert_eq!(names.cited.keys().collect::<Vec<_>>(), ["I-FOUR", "I-THREE-FOLD", "I-TWO"]);
    assert_eq!(names.cited["I-THREE-FOLD"], "a.rs:3");
}
