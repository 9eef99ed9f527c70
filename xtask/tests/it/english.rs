//! The prose of comments and documents: threads, readers, writers, callers and files act in it, and
//! a file's first line is no question.

use crate::workspace::{self, read};
use std::path::Path;

/// Whether a word stands for people: a relative or indefinite pronoun of persons.
fn is_of_people(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let relative = word.strip_suffix("ever").unwrap_or(&word);
    let indefinite = word.strip_suffix("body").unwrap_or_default();
    ["who", "whom"].contains(&relative) || ["any", "every", "no", "some"].contains(&indefinite)
}

#[test]
fn prose_speaks_of_threads_and_files() {
    let complaints: Vec<_> = workspace::files().iter().flat_map(|path| prose_of(path)).collect();
    if !complaints.is_empty() {
        eprintln!("next: open with a noun, and let threads, callers or files act");
    }
    workspace::expect_none(complaints);
}

/// The lines of a file that are to be written anew.
fn prose_of(path: &Path) -> Vec<String> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => wrong(path, &read(path), comment),
        Some("md") => wrong(path, &read(path), whole),
        _ => Vec::new(),
    }
}

fn wrong(path: &Path, text: &str, prose: fn(&str) -> Option<&str>) -> Vec<String> {
    let title = text.lines().position(|line| line.starts_with("//!"));
    let is_wrong = |(index, prose): &(usize, &str)| {
        names_people(prose) || Some(*index) == title && prose.trim_end().ends_with('?')
    };
    let lines = text.lines().enumerate().filter_map(|(index, line)| Some((index, prose(line)?)));
    lines
        .filter(is_wrong)
        .map(|(index, prose)| format!("{}:{}: {}", path.display(), index + 1, prose.trim()))
        .collect()
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

fn names_people(prose: &str) -> bool {
    let mut words = prose.split(|c: char| !c.is_alphabetic());
    words.any(is_of_people)
}

#[test]
fn people_and_questions_are_noticed() {
    // In code the words are names, and do not count.
    let word = "Who";
    let source = format!("//! Where is it?\n//! {word}?\nlet {word} = 1; // For {word}\n// Why?\n");
    let lines = ["a.rs:1: //! Where is it?", "a.rs:2: //! WORD?", "a.rs:3: // For WORD"];
    let expected = lines.map(|line| line.replace("WORD", word));
    assert_eq!(wrong(Path::new("a.rs"), &source, comment), expected);
    for begin in ["any", "every", "no", "some"] {
        assert!(names_people(&format!("for {begin}body.")) && !names_people(begin));
    }
    assert!(names_people("whomever") && names_people("whom") && !names_people("body, whole, ever"));
    let text = format!("Whole, or `{word}`?\nIs it?\n");
    assert_eq!(wrong(Path::new("a.md"), &text, whole).len(), 1);
}
