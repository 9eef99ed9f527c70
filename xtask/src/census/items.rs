//! Types and functions of a source.

use crate::rust::{Word, says};

/// A function with a body.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) lines: usize,
    /// Takes `self`, and callers outside of the crate may name it.
    pub(super) is_public_method: bool,
    /// The body is one expression that calls a function of the same name.
    pub(super) forwards: bool,
}

pub(super) fn public_types(words: &[Word]) -> usize {
    let kinds = ["struct", "enum", "union", "trait", "type"];
    words
        .windows(3)
        .filter(|three| three[0].text == "pub" && kinds.contains(&three[1].text.as_str()))
        .count()
}

pub(super) fn functions(words: &[Word]) -> Vec<Function> {
    let mut functions = Vec::new();
    for at in 0..words.len().saturating_sub(1) {
        let name = &words[at + 1].text;
        if words[at].text != "fn" || name == "(" {
            continue;
        }
        let Some(open) = body(words, at + 2) else { continue };
        let close = closing(words, open);
        let body = &words[open + 1..close];
        functions.push(Function {
            name: name.clone(),
            lines: words[close].line + 1 - words[at].line,
            is_public_method: is_public(words, at) && takes_self(&words[at + 2..open]),
            forwards: forwards(body, name),
        });
    }
    functions
}

/// The brace that opens the body of a function whose signature begins here, if it has one.
fn body(words: &[Word], from: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, word) in words.iter().enumerate().skip(from) {
        match word.text.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            ";" | "}" if depth == 0 => return None,
            "{" if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

fn closing(words: &[Word], open: usize) -> usize {
    let mut depth = 0;
    for (at, word) in words.iter().enumerate().skip(open) {
        match word.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    words.len() - 1
}

/// True where `pub` alone stands before the qualifiers of a function.
fn is_public(words: &[Word], function: usize) -> bool {
    let qualifiers = ["const", "async", "unsafe"];
    let before = words[..function].iter().rev();
    before.map(|word| word.text.as_str()).find(|word| !qualifiers.contains(word)) == Some("pub")
}

fn takes_self(signature: &[Word]) -> bool {
    let open = signature.iter().position(|word| word.text == "(");
    let first = open.into_iter().flat_map(|open| &signature[open + 1..]);
    first
        .take_while(|word| ![",", ")", ":"].contains(&word.text.as_str()))
        .any(|word| word.text == "self")
}

fn forwards(body: &[Word], name: &str) -> bool {
    let statements = [";", "if", "match", "for", "while", "loop", "let"];
    if body.iter().any(|word| statements.contains(&word.text.as_str())) {
        return false;
    }
    let is_call = |at: &usize| {
        [".", ":"].contains(&body[at - 1].text.as_str())
            && body[*at].text == name
            && (says(&body[at + 1..], &["("]) || says(&body[at + 1..], &[":", ":", "<"]))
    };
    (1..body.len()).filter(is_call).count() == 1
}

#[test]
fn methods_that_forward_are_noticed() {
    let source = "impl T {
        pub fn a(&self) -> u8 { self.inner.a() }
        pub fn b(&self, k: &[u8; 4]) -> R { self.named(self.map.b::<u8>(k)) }
        pub fn c(self) -> R { Ok(each!(self, t => t.c()?)) }
        pub fn d(&self) { let x = self.inner.d(); x }
        pub fn e(&mut self) { self.inner.f() }
        pub(crate) fn g(&self) { self.inner.g() }
        pub const fn h(k: &Self) { inner::h(k) }
        fn i(&self);
    } pub struct A; pub(crate) struct B; pub enum C {}";
    let words = crate::rust::words(source);
    let functions = functions(&words);
    let names = |is: fn(&Function) -> bool| {
        let names = functions.iter().filter(|function| is(function));
        names.map(|function| function.name.as_str()).collect::<String>()
    };
    assert_eq!(names(|_| true), "abcdegh");
    assert_eq!(names(|function| function.is_public_method), "abcde");
    assert_eq!(names(|function| function.forwards), "abcgh");
    assert_eq!(public_types(&words), 2);
}
