//! Rust sources as words: what a file says and which names it defines.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;

/// A token and its line. Comments are gone (doc comments are string literals).
#[derive(Debug)]
pub struct Word {
    /// Its text.
    pub text: String,
    /// Its line, from 1.
    pub line: usize,
}

/// The words of a source.
///
/// # Panics
/// Where the source is not Rust.
#[must_use]
pub fn words(source: &str) -> Vec<Word> {
    let stream: TokenStream = source.parse().expect("sources are Rust");
    let mut words = Vec::new();
    flatten(stream, &mut words);
    words
}

fn flatten(stream: TokenStream, words: &mut Vec<Word>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    proc_macro2::Delimiter::Parenthesis => ("(", ")"),
                    proc_macro2::Delimiter::Brace => ("{", "}"),
                    proc_macro2::Delimiter::Bracket => ("[", "]"),
                    proc_macro2::Delimiter::None => ("", ""),
                };
                words.push(Word { text: open.to_owned(), line });
                flatten(group.stream(), words);
                let line = group.span_close().end().line;
                words.push(Word { text: close.to_owned(), line });
            }
            leaf => words.push(Word { text: leaf.to_string(), line }),
        }
    }
}

/// A source without its items for tests and models.
#[derive(Debug)]
pub struct Production {
    /// Its words.
    pub words: Vec<Word>,
    /// The first and the last line of each item that was left out.
    pub left_out: Vec<(usize, usize)>,
    /// Modules in files of their own that only tests and models have.
    pub modules: Vec<String>,
}

/// Leaves out the items that only builds of tests and models have.
#[must_use]
pub fn production(words: Vec<Word>) -> Production {
    let mut left = Production { words: Vec::new(), left_out: Vec::new(), modules: Vec::new() };
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        left.words.push(word);
        if !ends_with(&left.words, &["#", "[", "cfg", "("]) {
            continue;
        }
        let condition = take_group(&mut words, 2);
        if !needs_tests(&condition) {
            left.words.extend(condition);
            continue;
        }
        let begin = left.words[left.words.len() - 4].line;
        left.words.truncate(left.words.len() - 4);
        let mut item = Vec::new();
        // The item ends with a semicolon or a block.
        while let Some(word) = words.next() {
            let text = word.text.clone();
            item.push(word);
            match text.as_str() {
                ";" => break,
                "(" | "[" => item.extend(take_group(&mut words, 1)),
                "{" => {
                    item.extend(take_group(&mut words, 1));
                    break;
                }
                _ => {}
            }
        }
        left.left_out.push((begin, item.last().map_or(begin, |word| word.line)));
        if ends_with(&item, &[";"]) && item.len() >= 3 && item[item.len() - 3].text == "mod" {
            left.modules.push(item[item.len() - 2].text.clone());
        }
    }
    left
}

/// True where the condition of a `cfg` fails without tests and without loom, whatever else is on.
fn needs_tests(condition: &[Word]) -> bool {
    let texts: Vec<_> = condition.iter().map(|word| word.text.as_str()).collect();
    value(&mut texts.as_slice()) == Some(false)
}

/// Takes a condition. Its value, if tests and loom alone decide it.
fn value(words: &mut &[&str]) -> Option<bool> {
    let (name, rest) = words.split_first()?;
    *words = rest;
    if words.first() != Some(&"(") {
        while words.first().is_some_and(|word| ![",", ")"].contains(word)) {
            *words = &words[1..];
        }
        return ["test", "loom"].contains(name).then_some(false);
    }
    let mut values = Vec::new();
    while words.first().is_some_and(|word| ["(", ","].contains(word)) {
        *words = &words[1..];
        if words.first() != Some(&")") {
            values.push(value(words));
        }
    }
    *words = words.get(1..).unwrap_or_default();
    match *name {
        "not" => values.first().copied().flatten().map(|value| !value),
        "any" if values.iter().all(|value| *value == Some(false)) => Some(false),
        "any" if values.contains(&Some(true)) => Some(true),
        "all" if values.contains(&Some(false)) => Some(false),
        "all" if values.iter().all(|value| *value == Some(true)) => Some(true),
        _ => None,
    }
}

/// True where these words are the last.
#[must_use]
pub fn ends_with(words: &[Word], last: &[&str]) -> bool {
    words.len() >= last.len() && says(&words[words.len() - last.len()..], last)
}

/// True where these words are the first.
#[must_use]
pub fn says(words: &[Word], first: &[&str]) -> bool {
    words.len() >= first.len()
        && words.iter().zip(first).all(|(word, expected)| word.text == *expected)
}

/// The words up to the end of so many groups that are open.
fn take_group(words: &mut impl Iterator<Item = Word>, open: usize) -> Vec<Word> {
    let mut depth = open;
    let mut taken = Vec::new();
    while depth > 0
        && let Some(word) = words.next()
    {
        match word.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        taken.push(word);
    }
    taken
}

/// Lines where the words of `phrase` (blank-separated) stand side by side.
#[must_use]
pub fn lines_saying(words: &[Word], phrase: &str) -> Vec<usize> {
    let phrase: Vec<_> = phrase.split_whitespace().collect();
    words
        .windows(phrase.len())
        .filter(|window| window.iter().map(|word| word.text.as_str()).eq(phrase.iter().copied()))
        .map(|window| window[0].line)
        .collect()
}

/// Names of items, enum variants and fields, those inside macro calls too.
#[must_use]
pub fn definitions(words: &[Word]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, pair) in words.windows(2).enumerate() {
        let (keyword, name) = (&pair[0].text, &pair[1].text);
        match keyword.as_str() {
            "fn" | "trait" | "mod" | "type" | "const" | "static" | "macro_rules" => {}
            "struct" | "enum" | "union" => names.extend(members(&words[at + 2..])),
            _ => continue,
        }
        // `macro_rules ! name`
        let name = if name == "!" { &words[at + 2].text } else { name };
        names.insert(name.clone());
    }
    names
}

/// Variants or fields: the words after `{`, `,`, an attribute or `pub` at the first depth of
/// the body that follows, if one does.
fn members(words: &[Word]) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 0;
    let mut expected = false;
    for word in words {
        match word.text.as_str() {
            ";" | "(" if depth == 0 => break,
            "{" | "[" | "(" => {
                depth += 1;
                expected = depth == 1;
            }
            "}" | "]" | ")" => {
                depth -= 1;
                // After an attribute or a `pub(crate)`; after a variant's fields a comma comes.
                expected = depth == 1;
                if depth == 0 && word.text == "}" {
                    break;
                }
            }
            "," if depth == 1 => expected = true,
            "#" | "pub" => {}
            name => {
                let starts_name = |c: char| c.is_alphabetic() || c == '_';
                if expected && depth == 1 && name.starts_with(starts_name) {
                    names.push(name.to_owned());
                }
                expected = false;
            }
        }
    }
    names
}

#[test]
fn definitions_are_found_and_uses_are_not() {
    let source = r#"
        //! struct Comment;
        pub(crate) mod inner { const LIMIT: usize = used("fn string"); }
        pub struct Stats<T: Bound> where T: Other { #[doc = "x"] pub entries: u64, size: Vec<(A, B)> }
        struct Tuple(Hidden);
        enum Error { Absent, #[error("b")] Broken { what: String }, Wrapped(Inner) }
        layout! { struct Header { word: u64 } }
        macro_rules! layout { () => {} }
        impl Stats<u8> { fn sum(&self) {} }
    "#;
    let found = definitions(&words(source));
    let expected = [
        "Absent", "Broken", "Error", "Header", "LIMIT", "Stats", "Tuple", "Wrapped", "entries",
        "inner", "layout", "size", "sum", "word",
    ];
    assert_eq!(found, expected.map(str::to_owned).into());
}

#[test]
fn phrases_are_found_outside_comments_and_strings() {
    let source = "// unsafe\nlet a = \"unsafe\";\nunsafe { std::alloc::alloc(x) }";
    let words = words(source);
    assert_eq!(lines_saying(&words, "unsafe"), [3]);
    assert_eq!(lines_saying(&words, "std : : alloc"), [3]);
    assert!(lines_saying(&words, "core : : alloc").is_empty());
}

#[test]
fn items_of_tests_and_models_are_left_out() {
    let source = "#[cfg(all(test, not(loom)))] mod tests { a }
        #[cfg(not(test))] fn b() {}
        #[cfg(any(test, feature = \"x\"))] fn c() {}
        #[cfg(loom)]
        #[path = \"x\"]
        mod models;
        #[cfg(test)] use d; use e;";
    let left = production(words(source));
    let is_left = |text: &str| left.words.iter().any(|word| word.text == text);
    assert_eq!(["a", "b", "c", "d", "e"].map(is_left), [false, true, true, false, true]);
    assert_eq!(left.left_out, [(1, 1), (4, 6), (7, 7)]);
    assert_eq!(left.modules, ["models"]);
}
