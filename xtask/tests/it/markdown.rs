//! Documents as their links, headings, code spans and commands.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

#[derive(Default)]
pub(crate) struct Document {
    pub(crate) links: Vec<String>,
    /// As GitHub names them in links.
    pub(crate) anchors: Vec<String>,
    /// Spans of code in the text.
    pub(crate) spans: Vec<String>,
    /// Fenced code: its language and its text.
    pub(crate) blocks: Vec<(String, String)>,
}

impl Document {
    pub(crate) fn parse(text: &str) -> Document {
        let mut document = Document::default();
        let mut heading: Option<String> = None;
        let mut block: Option<(String, String)> = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    document.anchors.extend(heading.take().map(|title| anchor(&title)));
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        CodeBlockKind::Fenced(language) => language.into_string(),
                        CodeBlockKind::Indented => String::new(),
                    };
                    block = Some((language, String::new()));
                }
                Event::End(TagEnd::CodeBlock) => document.blocks.extend(block.take()),
                Event::Code(code) => {
                    if let Some(title) = &mut heading {
                        title.push_str(&code);
                    }
                    document.spans.push(code.into_string());
                }
                Event::Text(text) => {
                    if let Some(title) = &mut heading {
                        title.push_str(&text);
                    }
                    if let Some((_, code)) = &mut block {
                        code.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        document
    }

    /// The lines to type: those of shell blocks, without prompt, comment and settings, with
    /// continued lines joined, and the spans that begin with a program.
    pub(crate) fn commands(&self) -> Vec<String> {
        let shells = ["sh", "bash", "console", "shell"];
        let typed = self
            .blocks
            .iter()
            .filter(|(language, _)| shells.contains(&language.as_str()))
            .flat_map(|(_, text)| {
                let joined = text.replace("\\\n", " ");
                joined.lines().map(str::to_owned).collect::<Vec<_>>()
            });
        let programs = ["cargo ", "sapwood ", "rustup "];
        let mentioned =
            self.spans.iter().filter(|span| programs.iter().any(|p| span.starts_with(p)));
        typed.chain(mentioned.cloned()).map(|line| bare(&line)).filter(|l| !l.is_empty()).collect()
    }
}

fn bare(line: &str) -> String {
    let line = line.trim_start().trim_start_matches("$ ");
    let line = line.split(" #").next().expect("split gives one part at least");
    if line.starts_with('#') {
        return String::new();
    }
    let setting = |word: &&str| word.contains('=') && !word.starts_with('-');
    line.split_whitespace().skip_while(setting).collect::<Vec<_>>().join(" ")
}

fn anchor(title: &str) -> String {
    title
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn a_document_falls_into_its_parts() {
    let text = "# What `mem` is, and is not\n\
        [here](a.md#b) and ![p](p.png), `cargo xtask loom`\n\
        ```sh\n$ SEED=1 A=2 cargo test --key=a \\\n  -p mem # note\n# note\n```\n\
        ```rust\ncargo();\n```\n";
    let document = Document::parse(text);
    assert_eq!(document.links, ["a.md#b", "p.png"]);
    assert_eq!(document.anchors, ["what-mem-is-and-is-not"]);
    assert_eq!(document.spans, ["mem", "cargo xtask loom"]);
    assert_eq!(document.blocks.len(), 2);
    assert_eq!(document.commands(), ["cargo test --key=a -p mem", "cargo xtask loom"]);
}
