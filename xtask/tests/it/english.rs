//! A ratchet on the prose of comments and documents: words and titles that only ever get fewer.

use crate::workspace::{self, read};
use std::collections::BTreeMap;
use std::path::{Component, Path};

/// Words for people. In these texts threads, readers, writers, callers and files act.
const PEOPLE: &[&str] =
    &["who", "whom", "whoever", "whomever", "nobody", "somebody", "everybody", "anybody"];

/// The rest in each crate and folder: words for people, and sources whose first line is a
/// question. A crate has its page under `docs/design` too. What is not listed has neither.
#[rustfmt::skip]
const LEFT: &[(&str, Prose)] = &[
    (".", left(0, 0)),
    ("aggregate", left(0, 0)),
    ("bench", left(0, 0)),
    ("bench-vs", left(1, 2)),
    ("chunkmap", left(0, 0)),
    ("cli", left(0, 0)),
    ("disk", left(0, 0)),
    ("docs", left(2, 0)),
    ("hashlog", left(0, 0)),
    ("mem", left(0, 0)),
    ("sapwood", left(0, 0)),
    ("shim", left(0, 0)),
    ("testkit", left(0, 0)),
];

/// Prose that is to become other prose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Prose {
    people: usize,
    questions: usize,
}

impl std::fmt::Display for Prose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "left({}, {})", self.people, self.questions)
    }
}

const fn left(people: usize, questions: usize) -> Prose {
    Prose { people, questions }
}

#[test]
fn prose_speaks_of_threads_and_files() {
    let allowed: BTreeMap<String, Prose> =
        LEFT.iter().map(|(room, prose)| ((*room).to_owned(), *prose)).collect();
    let mut found: BTreeMap<String, (Prose, Vec<String>)> = BTreeMap::new();
    for path in workspace::files() {
        let (prose, places) = prose_of(&path);
        let (sum, all_places) = found.entry(room(&path)).or_default();
        sum.people += prose.people;
        sum.questions += prose.questions;
        all_places.extend(places);
    }
    let mut complaints = Vec::new();
    for (room, (prose, places)) in &found {
        let limit = allowed.get(room).copied().unwrap_or_default();
        if prose.people > limit.people || prose.questions > limit.questions {
            complaints.extend(places.iter().cloned());
            complaints.push(format!(
                "{room}: {prose}, and {limit} were left: open with a noun, let threads act"
            ));
        } else if *prose != limit {
            complaints.push(format!("{room}: fewer are left: its line is (\"{room}\", {prose}),"));
        }
    }
    let gone = allowed.keys().filter(|room| !found.contains_key(*room));
    complaints.extend(gone.map(|room| format!("{room}: it is gone: take its line out of LEFT")));
    workspace::expect_none(complaints);
}

/// The crate or folder that a file belongs to.
fn room(path: &Path) -> String {
    let parts: Vec<_> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    match parts[..] {
        ["crates", name, ..] => name.to_owned(),
        ["docs", "design", page] => {
            let name = page.strip_suffix(".md").unwrap_or(page);
            let is_crate = workspace::root().join("crates").join(name).is_dir();
            if is_crate { name } else { "docs" }.to_owned()
        }
        [folder, _, ..] => folder.to_owned(),
        _ => ".".to_owned(),
    }
}

/// The counts of a file, and the lines that are counted.
fn prose_of(path: &Path) -> (Prose, Vec<String>) {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => sum_up(path, &read(path), comment),
        Some("md") => sum_up(path, &read(path), whole),
        _ => (Prose::default(), Vec::new()),
    }
}

fn sum_up(path: &Path, text: &str, prose: fn(&str) -> Option<&str>) -> (Prose, Vec<String>) {
    let mut sum = Prose::default();
    let mut places = Vec::new();
    let first = text.lines().position(|line| line.starts_with("//!"));
    for (index, line) in text.lines().enumerate() {
        let Some(prose) = prose(line) else { continue };
        let people = people(prose);
        let is_question = Some(index) == first && prose.trim_end().ends_with('?');
        if people > 0 || is_question {
            places.push(format!("{}:{}: {}", path.display(), index + 1, prose.trim()));
        }
        sum.people += people;
        sum.questions += usize::from(is_question);
    }
    (sum, places)
}

/// A line of a document.
#[expect(clippy::unnecessary_wraps, reason = "stands beside `comment`")]
fn whole(line: &str) -> Option<&str> {
    Some(line)
}

/// The comment of a line of Rust: all of the line, or what follows its code.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    if line.starts_with("//") { Some(line) } else { line.find(" // ").map(|at| &line[at..]) }
}

fn people(prose: &str) -> usize {
    let words = prose.split(|c: char| !c.is_alphabetic());
    words.filter(|word| PEOPLE.iter().any(|it| it.eq_ignore_ascii_case(word))).count()
}

#[test]
fn people_and_questions_are_noticed() {
    // In code the words are names, and do not count.
    let word = PEOPLE[0];
    let source = format!("//! Where is it?\n//! {word}?\nlet {word} = 1; // For {word}\n");
    let (prose, places) = sum_up(Path::new("a.rs"), &source, comment);
    assert_eq!(prose, left(2, 1));
    let lines = ["a.rs:1: //! Where is it?", "a.rs:2: //! WORD?", "a.rs:3: // For WORD"];
    assert_eq!(places, lines.map(|line| line.replace("WORD", word)));
    assert_eq!(sum_up(Path::new("a.md"), "Whole, or `who`?\n", whole).0, left(1, 0));
    assert_eq!(room(Path::new("crates/mem/src/lib.rs")), "mem");
    assert_eq!(room(Path::new("docs/design/mem.md")), "mem");
    assert_eq!(room(Path::new("docs/design/keys.md")), "docs");
    assert_eq!(room(Path::new("README.md")), ".");
}
