//! Documents that are true: names exist, links lead somewhere, the map stays short.

use crate::markdown::Document;
use crate::names::Names;
use crate::workspace::{self, expect_none, read, root};
use std::path::Path;

const ARCHITECTURE_LINES_MAX: usize = 280;

/// The headings of each page about an engine, in this order.
const DESIGN_HEADINGS: [&str; 9] = [
    "for--not-for",
    "picture",
    "bytes",
    "invariants",
    "operations",
    "concurrency",
    "crash-and-recovery",
    "costs",
    "version-history",
];

#[test]
fn every_name_in_architecture_exists() {
    let names = Names::of_workspace();
    let spans = Document::parse(&read("ARCHITECTURE.md")).spans;
    assert!(!spans.is_empty(), "ARCHITECTURE.md names nothing: is it still the map?");
    let absent = spans.iter().filter(|span| !names.knows(span));
    let complain = |span| format!("ARCHITECTURE.md: `{span}` does not exist; name what is there");
    expect_none(absent.map(complain).collect());
}

#[test]
fn architecture_fits_in_one_sitting() {
    let lines = read("ARCHITECTURE.md").lines().count();
    assert!(lines <= ARCHITECTURE_LINES_MAX, "{lines} lines, at most {ARCHITECTURE_LINES_MAX}");
}

#[test]
fn every_link_leads_somewhere() {
    let pages = workspace::files_ending(".md");
    expect_none(pages.iter().flat_map(|page| dead_links(page, &read(page))).collect());
}

fn dead_links(page: &Path, text: &str) -> Vec<String> {
    let document = Document::parse(text);
    let is_dead = |link: &&String| {
        if link.contains("://") || link.starts_with("mailto:") {
            return false;
        }
        let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
        let target = match path {
            "" => page.to_owned(),
            path => page.parent().expect("a file has a folder").join(path),
        };
        let has_anchor = |anchors: &[String]| anchors.iter().any(|anchor| anchor == fragment);
        match (path, fragment) {
            (_, "") => !root().join(target).exists(),
            ("", _) => !has_anchor(&document.anchors),
            _ => match std::fs::read_to_string(root().join(target)) {
                Ok(other) => !has_anchor(&Document::parse(&other).anchors),
                Err(_) => true,
            },
        }
    };
    let dead = document.links.iter().filter(is_dead);
    dead.map(|link| format!("{}: the link {link} leads nowhere", page.display())).collect()
}

#[test]
fn dead_links_are_noticed() {
    let text = "# Here\n[a](../Cargo.toml) [b](#here) [c](https://example.org/) [d](../README.md)\n\
        [e](absent.md) [f](#gone) [g](../README.md#gone) [h](absent.md#here)";
    let dead = dead_links(Path::new("docs/page.md"), text);
    let ends = ["absent.md", "#gone", "../README.md#gone", "absent.md#here"];
    assert_eq!(dead, ends.map(|end| format!("docs/page.md: the link {end} leads nowhere")));
}

#[test]
fn design_pages_share_their_headings() {
    for engine in ["mem", "chunkmap", "hashlog", "disk", "ptree", "wal", "aggregate", "rollup"] {
        let page = Path::new("docs/design").join(engine).with_extension("md");
        let anchors = Document::parse(&read(&page)).anchors;
        let shared: Vec<_> =
            anchors.iter().filter(|anchor| DESIGN_HEADINGS.contains(&anchor.as_str())).collect();
        assert_eq!(shared, DESIGN_HEADINGS.iter().collect::<Vec<_>>(), "{}", page.display());
    }
}

/// Paths of one developer's machine.
fn machine_paths() -> Vec<String> {
    // In two halves, lest this file break its own rule.
    [["/wo", "rk/"], ["/ho", "me/"], ["/ro", "ot/"], ["/Us", "ers/"], ["/tm", "p/wt"]]
        .map(|halves| halves.concat())
        .into()
}

#[test]
fn no_text_names_a_path_of_one_machine() {
    let patterns = machine_paths();
    let mut complaints = Vec::new();
    for path in workspace::files() {
        // Data files are not texts.
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else {
            continue;
        };
        for (index, line) in text.lines().enumerate() {
            if let Some(pattern) = patterns.iter().find(|pattern| line.contains(*pattern)) {
                let place = format!("{}:{}", path.display(), index + 1);
                complaints.push(format!("{place}: {pattern} is a path of one machine"));
            }
        }
    }
    expect_none(complaints);
}
