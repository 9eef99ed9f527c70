//! A census of a checkout: sizes and shapes of each crate, and the arrows between its files.
//!
//! Production is what a build without tests and models compiles. Counts are of words, as the tokenizer
//! of [`crate::rust`] finds them, so that an older checkout answers by the same rules.

pub mod arrows;
mod graph;
mod items;
mod sources;

pub use graph::Graph;
pub use sources::{Source, crates};

use arrows::Arrows;
use std::fmt::Write;
use std::path::Path;

/// Files with more lines are listed.
const FILE_LINES_MAX: usize = 500;
/// Functions with more lines are listed.
const FUNCTION_LINES_MAX: usize = 70;

/// Counts of a crate, and of all.
#[derive(Debug, Default)]
struct Counts {
    lines: usize,
    code: usize,
    types: usize,
    methods: usize,
    forwarding: usize,
    long_files: usize,
    long_functions: usize,
    arrows: usize,
    steps_up: usize,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.code += other.code;
        self.types += other.types;
        self.methods += other.methods;
        self.forwarding += other.forwarding;
        self.long_files += other.long_files;
        self.long_functions += other.long_functions;
        self.arrows += other.arrows;
        self.steps_up += other.steps_up;
    }

    fn row(&self, name: &str, circles: &str) -> String {
        format!(
            "{name:<14}{:>8}{:>8}{:>7}{:>9}{:>11}{:>7}{:>5}{:>8}{:>5}  {circles}\n",
            self.lines,
            self.code,
            self.types,
            self.methods,
            self.forwarding,
            self.long_files,
            self.long_functions,
            self.arrows,
            self.steps_up
        )
    }
}

/// The census of the checkout in a folder, as text.
///
/// # Errors
/// A folder that cannot be read, or holds no crates.
pub fn report(root: &Path) -> Result<String, String> {
    let mut table = format!(
        "{:<14}{:>8}{:>8}{:>7}{:>9}{:>11}{:>7}{:>5}{:>8}{:>5}  {}\n",
        "crate",
        "lines",
        "code",
        "types",
        "methods",
        "forwarding",
        ">500",
        ">70",
        "arrows",
        "up",
        "circles of files; of folders"
    );
    let mut details = String::new();
    let mut all = Counts::default();
    for (name, sources) in crates(root)? {
        let files = Arrows::of(&sources);
        let rooms = files.of_rooms();
        let counts = count(&name, &sources, &files.graph, &mut details);
        let sizes = |graph: &Graph| {
            let sizes = graph.circles().into_iter().map(|circle| circle.len().to_string());
            sizes.collect::<Vec<_>>().join(" ")
        };
        let circles = format!("{}; {}", sizes(&files.graph), sizes(&rooms));
        table += &counts.row(&name, &circles);
        all.add(&counts);
        for (kind, graph) in [("files", &files.graph), ("folders", &rooms)] {
            for circle in graph.circles() {
                let names: Vec<_> = circle.into_iter().collect();
                details += &format!("{name}: circle of {kind}: {}\n", names.join(" "));
            }
            for (user, used) in graph.steps_up() {
                details += &format!("{name}: step up between {kind}: {user} -> {used}\n");
            }
        }
    }
    table += &all.row("all", "");
    Ok(format!("{table}\n{details}"))
}

fn count(name: &str, sources: &[Source], graph: &Graph, details: &mut String) -> Counts {
    let mut counts =
        Counts { arrows: graph.arrows(), steps_up: graph.steps_up().len(), ..Counts::default() };
    for source in sources {
        let path = source.path.display();
        counts.lines += source.lines;
        counts.code += source.code();
        counts.types += items::public_types(&source.words);
        if source.lines > FILE_LINES_MAX {
            counts.long_files += 1;
            _ = writeln!(details, "{name}: {path}: {} lines", source.lines);
        }
        for function in items::functions(&source.words) {
            counts.methods += usize::from(function.is_public_method);
            counts.forwarding += usize::from(function.is_public_method && function.forwards);
            if function.lines > FUNCTION_LINES_MAX {
                counts.long_functions += 1;
                let (function, lines) = (function.name, function.lines);
                _ = writeln!(details, "{name}: {path}: `{function}` has {lines} lines");
            }
        }
    }
    counts
}
