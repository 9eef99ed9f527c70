//! The names that a program sees of the crate `sapwood`: its own, each of one thing.

use crate::workspace::{self, expect_none, read};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where the facade says what programs see: the crate, and its modules of queries, of roll-ups and of typed columns.
const ROOT: &str = "crates/sapwood/src/lib.rs";
const QUERIES: &str = "crates/sapwood/src/aggregate.rs";
const ROLLUPS: &str = "crates/sapwood/src/rollup.rs";
const SCHEMAS: &str = "crates/sapwood/src/schema.rs";
const STATEMENTS: &str = "crates/sapwood/src/sql.rs";

/// Names that programs do not have.
const NOT_FOR_PROGRAMS: [&str; 10] = [
    "sapwood_aggregate",
    "sapwood_chunkmap",
    "sapwood_disk",
    "sapwood_hashlog",
    "sapwood_mem",
    "sapwood_rollup",
    "sapwood_schema",
    "sapwood_sql",
    "ChunkMap",
    "HashLog",
];

/// rustdoc shows the pages of other crates' items as the facade's own.
#[test]
fn documentation_speaks_of_the_facade_alone() {
    let mut complaints = Vec::new();
    let mut documented = 0;
    for file in [ROOT, QUERIES, ROLLUPS, SCHEMAS, STATEMENTS] {
        for (package, names) in by_package(&read(file)) {
            let Some(folder) = package.strip_prefix("sapwood_") else { continue };
            let sources = Path::new("crates").join(folder).join("src");
            let files = workspace::files_ending(".rs");
            for path in files.iter().filter(|path| path.starts_with(&sources)) {
                for (item, doc) in docs(&read(path)) {
                    if !names.contains(&item) {
                        continue;
                    }
                    documented += 1;
                    let strangers = NOT_FOR_PROGRAMS.iter().filter(|name| doc.contains(**name));
                    let place = path.display();
                    complaints.extend(strangers.map(|stranger| {
                        format!("{place}: {item} is shown as sapwood's, and speaks of {stranger}")
                    }));
                }
            }
        }
    }
    assert!(documented > 100, "only {documented} texts: are they still found?");
    expect_none(complaints);
}

/// A doc test runs each of them.
#[test]
fn every_public_method_has_an_example() {
    let mut complaints = Vec::new();
    let mut methods = 0;
    let sources = Path::new("crates/sapwood/src");
    let is_shown = |path: &&PathBuf| path.starts_with(sources) && !path.ends_with("fuzzing.rs");
    for path in workspace::files_ending(".rs").iter().filter(is_shown) {
        let mut has_example = false;
        for (line, text) in (1..).zip(read(path).lines().map(str::trim)) {
            if text.starts_with("///") {
                has_example |= text.contains("```");
                continue;
            }
            if text.starts_with("pub fn ") || text.starts_with("pub const fn ") {
                methods += 1;
                if !has_example {
                    complaints.push(format!("{}:{line}: no example: {text}", path.display()));
                }
            }
            // Attributes stand between documentation and method.
            has_example &= text.starts_with("#[");
        }
    }
    assert!(methods > 150, "only {methods} methods: are they still found?");
    expect_none(complaints);
}

/// A program may take all names of both.
#[test]
fn the_crate_and_its_queries_share_no_name() {
    let names = |file: &str| -> BTreeSet<String> {
        exports(&read(file)).into_iter().map(|export| export.seen_as).collect()
    };
    let (root, queries) = (names(ROOT), names(QUERIES));
    assert!(root.contains("Db") && queries.contains("Query"), "they are still found");
    let shared = root.intersection(&queries);
    expect_none(
        shared.map(|name| format!("sapwood::{name} is another aggregate::{name}")).collect(),
    );
    // What the crates below export later is exported here by decision.
    assert!(!root.contains("*") && !queries.contains("*"), "no list of names says `*`");
}

/// A name of a `pub use`.
#[derive(Debug, PartialEq, Eq)]
struct Export {
    /// The crate or module.
    from: String,
    name: String,
    seen_as: String,
}

/// The names that `pub use` lists, and modules.
fn exports(source: &str) -> Vec<Export> {
    let trees = trees(source);
    let mut exports = Vec::new();
    for (at, pair) in trees.windows(2).enumerate() {
        if !(is(&pair[0], "pub") && is(&pair[1], "use")) {
            continue;
        }
        let end = trees[at..].iter().position(|tree| is(tree, ";")).expect("an item ends");
        let path = &trees[at + 2..at + end];
        let from = path[0].to_string();
        let list = match path.last() {
            Some(TokenTree::Group(list)) => list.stream().into_iter().collect(),
            _ => path[3..].to_vec(),
        };
        for item in list.split(|tree| is(tree, ",")).filter(|item| !item.is_empty()) {
            let (name, seen_as) = (item[0].to_string(), item[item.len() - 1].to_string());
            exports.push(Export { from: from.clone(), name, seen_as });
        }
    }
    exports
}

/// The exports of each crate, by the names that they have there.
fn by_package(source: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut packages: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for Export { from, name, .. } in exports(source) {
        packages.entry(from).or_default().insert(name);
    }
    packages
}

/// The documentation of each type, function and constant: its own, and what stands in its body and
/// its `impl` blocks.
fn docs(source: &str) -> Vec<(String, String)> {
    let trees = trees(source);
    let mut found = Vec::new();
    let mut above = String::new();
    let mut at = 0;
    while at < trees.len() {
        let keyword = trees[at].to_string();
        match (keyword.as_str(), &trees[at]) {
            ("#", _) => {
                if let Some(TokenTree::Group(attribute)) = trees.get(at + 1) {
                    text_of_docs(&attribute.stream(), &mut above);
                }
                at += 2;
                continue;
            }
            ("struct" | "enum" | "union" | "trait" | "type" | "const" | "fn", _) => {
                let name = trees.get(at + 1).map(TokenTree::to_string).unwrap_or_default();
                let end = end_of_item(&trees, at);
                let mut doc = std::mem::take(&mut above);
                trees[at..end].iter().for_each(|tree| all_docs(tree, &mut doc));
                found.push((name, doc));
                at = end;
                continue;
            }
            ("impl", _) => {
                let end = end_of_item(&trees, at);
                let mut doc = std::mem::take(&mut above);
                trees[at..end].iter().for_each(|tree| all_docs(tree, &mut doc));
                found.push((implemented(&trees[at + 1..end]), doc));
                at = end;
                continue;
            }
            ("mod", _) => above.clear(),
            _ => {}
        }
        at += 1;
    }
    found
}

/// Behind the body in braces, or the semicolon.
fn end_of_item(trees: &[TokenTree], begin: usize) -> usize {
    let ends = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        other => is(other, ";"),
    };
    trees[begin..].iter().position(ends).map_or(trees.len(), |length| begin + length + 1)
}

/// The name of the type that an `impl` is for.
fn implemented(header: &[TokenTree]) -> String {
    let mut depth = 0_i32;
    let mut name = String::new();
    for tree in header {
        match tree.to_string().as_str() {
            "<" => depth += 1,
            ">" => depth -= 1,
            "for" if depth == 0 => name.clear(),
            "where" => break,
            // The last segment of a path.
            word if depth == 0 && matches!(tree, TokenTree::Ident(_)) => word.clone_into(&mut name),
            _ => {}
        }
    }
    name
}

/// Adds the texts of all doc attributes below a token.
fn all_docs(tree: &TokenTree, into: &mut String) {
    if let TokenTree::Group(group) = tree {
        text_of_docs(&group.stream(), into);
        group.stream().into_iter().for_each(|inner| all_docs(&inner, into));
    }
}

/// Of the inside of `#[doc = "..."]`.
fn text_of_docs(attribute: &TokenStream, into: &mut String) {
    let mut trees = attribute.clone().into_iter();
    if let (Some(word), Some(equals), Some(TokenTree::Literal(text))) =
        (trees.next(), trees.next(), trees.next())
        && is(&word, "doc")
        && is(&equals, "=")
    {
        into.push_str(&text.to_string());
        into.push('\n');
    }
}

fn trees(source: &str) -> Vec<TokenTree> {
    let stream: TokenStream = source.parse().expect("sources are Rust");
    stream.into_iter().collect()
}

fn is(tree: &TokenTree, word: &str) -> bool {
    tree.to_string() == word
}

#[test]
fn exports_are_found() {
    let source = "mod a; use inner::X; pub use a::B; pub(crate) use a::C;\n\
        pub use other::{D, E as F, G}; #[x] pub use all::*;";
    let export = |from: &str, name: &str, seen_as: &str| Export {
        from: from.to_owned(),
        name: name.to_owned(),
        seen_as: seen_as.to_owned(),
    };
    let expected = [
        export("a", "B", "B"),
        export("other", "D", "D"),
        export("other", "E", "F"),
        export("other", "G", "G"),
        export("all", "*", "*"),
    ];
    assert_eq!(exports(source), expected);
}

#[test]
fn documentation_is_found_with_its_item() {
    let source = r#"
        //! file
        /// own
        #[derive(Debug)]
        pub struct Stats<T> { /// field
            pub entries: u64 }
        /// other
        enum Other {}
        impl<T: Bound> Stats<T> { /// method
            fn sum(&self) {} }
        impl fmt::Display for path::Stats<u8> { /** block */ fn fmt() {} }
    "#;
    let docs = docs(source);
    let of = |item: &str| -> String {
        docs.iter().filter(|(name, _)| name == item).map(|(_, doc)| doc.as_str()).collect()
    };
    let stats = of("Stats");
    assert!(["own", "field", "method", "block"].iter().all(|text| stats.contains(text)), "{stats}");
    assert!(!stats.contains("other") && of("Other").contains("other"), "{docs:?}");
}
