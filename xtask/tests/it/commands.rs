//! The commands that the documents tell people to type exist.

use crate::markdown::Document;
use crate::workspace::{self, expect_none, read, root};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

#[test]
fn every_command_in_the_documents_exists() {
    let mut complaints = Vec::new();
    for page in workspace::files_ending(".md") {
        for command in Document::parse(&read(&page)).commands() {
            if let Err(why) = exists(&command) {
                complaints.push(format!("{}: `{command}`: {why}", page.display()));
            }
        }
    }
    expect_none(complaints);
}

#[test]
fn the_readme_gives_the_two_commands_of_a_fresh_machine() {
    let commands = Document::parse(&read("README.md")).commands();
    for expected in ["cargo run --release -- serve --sample flights", "cargo xtask test"] {
        assert!(commands.iter().any(|c| c == expected), "README.md lacks `{expected}`");
    }
}

#[test]
fn commands_that_do_not_exist_are_noticed() {
    for command in ["cargo xtask bask", "cargo xtask loom --deeper", "cargo build -p sapwood-x"] {
        assert!(exists(command).is_err(), "`{command}` passes for a command");
    }
    for command in ["cargo xtask loom --deep", "cargo test -p sapwood-mem", "git clone x"] {
        assert_eq!(exists(command), Ok(()), "{command}");
    }
}

/// Asks each program of ours for its help: `--help` after the words accepts them or says why
/// not, and runs nothing. Other people's programs are taken on trust.
fn exists(command: &str) -> Result<(), String> {
    let words = words(command);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (ours, theirs) = match words.iter().position(|word| *word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (&words[..], &[][..]),
    };
    match ours {
        ["cargo", "xtask", args @ ..] => {
            accepts(Command::new(env!("CARGO_BIN_EXE_xtask")).args(args))
        }
        ["cargo", "run", flags @ ..] if flags.contains(&"sapwood-bench") => bench(theirs),
        ["cargo", "run", ..] => sapwood(theirs),
        ["sapwood", args @ ..] => sapwood(args),
        ["sapwood-bench", args @ ..] => bench(args),
        ["cargo", _, flags @ ..] => flags
            .windows(2)
            .filter(|pair| pair[0] == "-p")
            .try_for_each(|pair| package_exists(pair[1])),
        [path, ..] if path.starts_with("./") || path.starts_with(".ci") => {
            match root().join(path).exists() {
                true => Ok(()),
                false => Err("no such file".to_owned()),
            }
        }
        _ => Ok(()),
    }
}

/// The words of a command, where quotes keep blanks.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut quote, mut is_inside) = (vec![String::new()], None, false);
    for letter in command.chars() {
        let word = words.last_mut().expect("there is one");
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '"' | '\'') => (quote, is_inside) = (Some(letter), true),
            (None, blank) if blank.is_whitespace() => {
                if is_inside || !word.is_empty() {
                    words.push(String::new());
                }
                is_inside = false;
            }
            (_, letter) => word.push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn sapwood(args: &[&str]) -> Result<(), String> {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(built_sapwood);
    accepts(Command::new(&*PROGRAM).args(args))
}

fn bench(args: &[&str]) -> Result<(), String> {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| built("sapwood-bench", "sapwood-bench"));
    accepts(Command::new(&*PROGRAM).args(args))
}

pub(crate) fn built_sapwood() -> PathBuf {
    built("sapwood-cli", "sapwood")
}

/// The program of a package beside this one, where a run of all tests has built it; if a source is
/// newer, it is built again.
fn built(package: &str, program: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name(program);
    let changed = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let sources = workspace::files().into_iter().filter(|path| path.starts_with("crates"));
    let newest = sources.filter_map(|path| changed(&root().join(path))).max();
    if changed(&program) < newest {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", package]).current_dir(root());
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo starts").success(), "{build:?} fails");
    }
    program
}

fn accepts(command: &mut Command) -> Result<(), String> {
    let Output { status, stderr, .. } =
        command.arg("--help").output().map_err(|e| e.to_string())?;
    match status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&stderr).trim().to_owned()),
    }
}

fn package_exists(name: &str) -> Result<(), String> {
    let line = format!("name = \"{name}\"");
    let manifests = workspace::files_ending("Cargo.toml");
    match manifests.iter().any(|manifest| read(manifest).lines().any(|l| l == line)) {
        true => Ok(()),
        false => Err(format!("no package {name}")),
    }
}
