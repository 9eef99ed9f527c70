//! The arrows between the files of a crate, from the paths that they name.
//!
//! A name is followed to the file that defines it, through the `use` of other modules. A re-export is an
//! arrow where the file uses the name itself. A file with a piece of an `impl` of a type of a module above it
//! is one node with that module.

use super::{Graph, Source};
use crate::rust::{Word, says};
use std::collections::{BTreeMap, BTreeSet};

/// The arrows of a crate's files.
#[derive(Debug)]
pub struct Arrows {
    /// Files, without their ending, and the arrows between them.
    pub graph: Graph,
    /// The top folder or file of each.
    rooms: BTreeMap<String, String>,
}

impl Arrows {
    /// Reads the arrows of a crate.
    #[must_use]
    pub fn of(sources: &[Source]) -> Self {
        let sources: Vec<_> =
            sources.iter().filter(|source| !is_other_root(source, sources)).collect();
        let files: Vec<_> = sources.iter().map(|source| File::of(source)).collect();
        let modules = files.iter().map(|file| (file.module, file)).collect();
        let names = Names { modules };
        let nodes: BTreeMap<_, _> =
            files.iter().map(|file| (file.module, names.node(file).join("/"))).collect();
        let mut arrows = Self { graph: Graph::default(), rooms: BTreeMap::new() };
        for (file, source) in files.iter().zip(&sources) {
            let node = &nodes[file.module];
            arrows.graph.add(node);
            let room = node.split('/').next().unwrap_or_default();
            arrows.rooms.insert(node.clone(), room.to_owned());
            let paths = file.uses.iter().filter(|import| !import.is_unused_export(&source.words));
            let paths = paths.map(|import| &import.path).chain(&file.paths);
            for used in paths.filter_map(|path| names.definer(path)) {
                arrows.graph.arrow(node, &nodes[used.module]);
            }
        }
        arrows
    }

    /// The arrows between top folders and files.
    #[must_use]
    pub fn of_rooms(&self) -> Graph {
        let mut rooms = Graph::default();
        for (user, used) in self.graph.iter() {
            rooms.arrow(&self.rooms[user], &self.rooms[used]);
        }
        rooms
    }
}

/// True for a program beside a library, which it names as other crates do.
fn is_other_root(source: &Source, sources: &[Source]) -> bool {
    let is_main = source.path.to_string_lossy() == "main.rs";
    let is_lib = |other: &Source| other.path.to_string_lossy() == "lib.rs";
    is_main && sources.iter().any(is_lib) || source.path.starts_with("bin")
}

type Module = [String];

/// A name that a `use` brings into a module.
#[derive(Debug)]
struct Import {
    name: String,
    /// From the root of the crate.
    path: Vec<String>,
    is_export: bool,
}

impl Import {
    /// True for a name that other modules alone need: no word outside of `use` items says it.
    fn is_unused_export(&self, words: &[Word]) -> bool {
        self.is_export && !outside_uses(words).any(|word| word.text == self.name)
    }
}

/// The items of a file, and the names that it uses.
struct File<'a> {
    module: &'a Module,
    items: BTreeSet<&'a str>,
    /// Types that a piece of an `impl` in it is for.
    changed: BTreeSet<&'a str>,
    uses: Vec<Import>,
    /// Paths in expressions and types, from the root of the crate.
    paths: Vec<Vec<String>>,
}

impl<'a> File<'a> {
    fn of(source: &'a Source) -> Self {
        let words = &source.words;
        let mut file = File {
            module: &source.module,
            items: BTreeSet::new(),
            changed: BTreeSet::new(),
            uses: Vec::new(),
            paths: Vec::new(),
        };
        let children: BTreeSet<&str> = words
            .windows(3)
            .filter(|three| three[0].text == "mod" && three[2].text == ";")
            .map(|three| three[1].text.as_str())
            .collect();
        let mut depth = 0;
        let mut at = 0;
        while at < words.len() {
            match words[at].text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                "impl" if depth == 0 => file.changed.extend(changed(&words[at + 1..])),
                "use" => at = file.take_use(words, at, &children),
                "macro_rules" => _ = file.items.insert(&words[at + 2].text),
                "fn" | "const" | "static" if depth > 0 => {}
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" => {
                    file.items.extend(words.get(at + 1).map(|word| word.text.as_str()));
                }
                _ if starts_path(words, at, &children) => {
                    let path = segments(&words[at..]);
                    file.paths.extend(absolute(&path, file.module, &children));
                }
                _ => {}
            }
            at += 1;
        }
        file
    }

    /// Takes a `use` that begins here; its last word.
    fn take_use(&mut self, words: &'a [Word], at: usize, children: &BTreeSet<&str>) -> usize {
        let end = at + words[at..].iter().position(|word| word.text == ";").unwrap_or(1);
        if end == at + 1 {
            return at;
        }
        let is_export = at > 0 && ["pub", ")"].contains(&words[at - 1].text.as_str());
        let mut found = Vec::new();
        let tree: Vec<_> = words[at + 1..end].iter().map(|word| word.text.as_str()).collect();
        tree_of_use(&mut tree.as_slice(), &[], &mut found);
        for (path, name) in found {
            if let Some(path) = absolute(&path, self.module, children) {
                self.uses.push(Import { name, path, is_export });
            }
        }
        end
    }
}

/// True where a path into the crate begins here.
fn starts_path(words: &[Word], at: usize, children: &BTreeSet<&str>) -> bool {
    let name = words[at].text.as_str();
    let begins = ["crate", "self", "super"].contains(&name) || children.contains(name);
    let goes_on = at > 0 && words[at - 1].text == ":";
    begins && !goes_on && says(&words[at + 1..], &[":", ":"])
}

fn segments(words: &[Word]) -> Vec<String> {
    let mut path = vec![words[0].text.clone()];
    let mut rest = &words[1..];
    while says(rest, &[":", ":"]) && rest.len() > 2 && is_name(&rest[2].text) {
        path.push(rest[2].text.clone());
        rest = &rest[3..];
    }
    path
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// A path from the crate's root, if it leads into the crate.
fn absolute(path: &[String], module: &Module, children: &BTreeSet<&str>) -> Option<Vec<String>> {
    let mut base = module.to_vec();
    let mut path = path;
    match path.first()?.as_str() {
        "crate" => {
            base.clear();
            path = &path[1..];
        }
        "self" => path = &path[1..],
        "super" => {
            while path.first().is_some_and(|name| name == "super") {
                base.pop()?;
                path = &path[1..];
            }
        }
        name if children.contains(name) => {}
        _ => return None,
    }
    base.extend(path.iter().cloned());
    Some(base)
}

/// Takes a tree of a `use`: the paths in it, each with the name it brings. A `*` is the name of a glob.
fn tree_of_use(words: &mut &[&str], prefix: &[String], found: &mut Vec<(Vec<String>, String)>) {
    let mut path = prefix.to_vec();
    while let Some((word, rest)) = words.split_first() {
        match *word {
            ":" => *words = rest,
            "{" => {
                *words = rest;
                while words.first().is_some_and(|word| *word != "}") {
                    tree_of_use(words, &path, found);
                    if words.first() == Some(&",") {
                        *words = &words[1..];
                    }
                }
                *words = words.get(1..).unwrap_or_default();
                return;
            }
            "*" => {
                *words = rest;
                found.push((path, "*".to_owned()));
                return;
            }
            "," | "}" => break,
            "as" => {
                found.push((path, rest.first().copied().unwrap_or_default().to_owned()));
                *words = rest.get(1..).unwrap_or_default();
                return;
            }
            "self" if !path.is_empty() => *words = rest,
            name => {
                path.push(name.to_owned());
                *words = rest;
            }
        }
    }
    if let Some(name) = path.last().cloned() {
        found.push((path, name));
    }
}

/// The type that an `impl` is for, from the words behind the keyword.
fn changed(words: &[Word]) -> Option<&str> {
    let mut depth = 0;
    let mut last = None;
    let mut before = "";
    for word in words {
        match word.text.as_str() {
            "<" => depth += 1,
            ">" if before != "-" => depth -= 1,
            "{" | "where" if depth == 0 => break,
            "for" if depth == 0 => last = None,
            name if depth == 0 && is_name(name) => last = Some(name),
            _ => {}
        }
        before = &word.text;
    }
    last
}

/// The words of a file that no `use` has.
fn outside_uses(words: &[Word]) -> impl Iterator<Item = &Word> {
    let mut is_use = false;
    words.iter().filter(move |word| {
        is_use = word.text == "use" || is_use && word.text != ";";
        !is_use
    })
}

struct Names<'a> {
    modules: BTreeMap<&'a Module, &'a File<'a>>,
}

impl<'a> Names<'a> {
    /// The file that defines what a path names, or else the last module in it.
    fn definer(&self, path: &[String]) -> Option<&'a File<'a>> {
        let (file, rest) = self.module(path)?;
        Some(self.item(file, rest, &mut BTreeSet::new()).unwrap_or(file))
    }

    /// The module that a path leads to, and the names behind it.
    fn module<'p>(&self, path: &'p [String]) -> Option<(&'a File<'a>, &'p [String])> {
        (0..=path.len()).rev().find_map(|len| {
            let file = self.modules.get(&path[..len])?;
            Some((*file, &path[len..]))
        })
    }

    /// The file that defines an item of a module, which may bring it by a `use`; each is followed once.
    fn item(
        &self,
        file: &'a File<'a>,
        names: &[String],
        followed: &mut BTreeSet<&'a Module>,
    ) -> Option<&'a File<'a>> {
        let Some(name) = names.first() else { return Some(file) };
        if file.items.contains(name.as_str()) {
            return Some(file);
        }
        if !followed.insert(file.module) {
            return None;
        }
        let imports =
            file.uses.iter().filter(|import| [name.as_str(), "*"].contains(&&*import.name));
        imports.into_iter().find_map(|import| {
            let behind = if import.name == "*" { names } else { &names[1..] };
            let path = [&import.path[..], behind].concat();
            let (file, rest) = self.module(&path)?;
            self.item(file, rest, followed)
        })
    }

    /// The file that a file counts as a piece of.
    fn node(&self, file: &File<'a>) -> Vec<String> {
        let mut module = file.module;
        for len in (0..module.len()).rev() {
            let Some(parent) = self.modules.get(&module[..len]) else { continue };
            let is_of =
                |name: &&&str| parent.items.contains(**name) && !file.items.contains(**name);
            if file.changed.iter().any(|name| is_of(&name)) {
                module = parent.module;
            }
        }
        if module.is_empty() { vec!["lib".to_owned()] } else { module.to_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rust::words;
    use std::path::PathBuf;

    fn source(path: &str, text: &str) -> Source {
        let module = path.split('/').filter(|name| *name != "lib").map(str::to_owned).collect();
        Source { path: PathBuf::from(path), module, words: words(text), lines: 1 }
    }

    #[test]
    fn names_are_followed_to_the_files_that_define_them() {
        let sources = [
            source("lib", "mod a; mod b; mod c; pub use a::{A, In}; pub use b::*;"),
            source(
                "a",
                "mod inner; mod piece; pub use inner::In; pub struct A; use crate::c as see;",
            ),
            source(
                "a/inner",
                "use super::super::b::{self, B as Other}; pub struct In; struct A; impl A {}",
            ),
            source("a/piece", "use super::A; impl<T> Clone for A { fn f() { crate::c::d::e() } }"),
            source("b", "use crate::{A, In}; pub struct B; fn f() { std::mem::swap() }"),
            source("c", "use crate::B; use std::fmt;"),
        ];
        let arrows = Arrows::of(&sources);
        let expected = [("a", "c"), ("a/inner", "b"), ("b", "a"), ("b", "a/inner"), ("c", "b")];
        assert_eq!(arrows.graph.iter().collect::<Vec<_>>(), expected);
        let rooms = [("a", "b"), ("a", "c"), ("b", "a"), ("c", "b")];
        assert_eq!(arrows.of_rooms().iter().collect::<Vec<_>>(), rooms);
    }
}
