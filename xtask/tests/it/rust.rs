//! Rust sources as words: what a file says and which names it defines.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;

/// A token and its line. Comments are gone (doc comments are string literals).
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) line: usize,
}

pub(crate) fn words(source: &str) -> Vec<Word> {
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

/// Lines where the words of `phrase` (blank-separated) stand side by side.
pub(crate) fn lines_saying(words: &[Word], phrase: &str) -> Vec<usize> {
    let phrase: Vec<_> = phrase.split_whitespace().collect();
    words
        .windows(phrase.len())
        .filter(|window| window.iter().map(|word| word.text.as_str()).eq(phrase.iter().copied()))
        .map(|window| window[0].line)
        .collect()
}

/// Names of items, enum variants and fields, those inside macro calls too.
pub(crate) fn definitions(words: &[Word]) -> BTreeSet<String> {
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
