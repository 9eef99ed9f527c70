//! The sources of a checkout, crate by crate, without tests and models.

use crate::rust::{Word, production, words};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A file of a crate.
#[derive(Debug)]
pub struct Source {
    /// Below the folder of the crate's sources.
    pub path: PathBuf,
    /// The modules above it and its own; none of the crate's root.
    pub module: Vec<String>,
    /// Without items of tests and models.
    pub words: Vec<Word>,
    /// Lines of a production build, with comments and blank ones.
    pub lines: usize,
}

impl Source {
    /// Lines that hold code.
    #[must_use]
    pub fn code(&self) -> usize {
        self.words.iter().map(|word| word.line).collect::<BTreeSet<_>>().len()
    }
}

/// The crates of a checkout by name, each with its files.
///
/// # Errors
/// A folder that cannot be read, or holds no crates.
pub fn crates(root: &Path) -> Result<Vec<(String, Vec<Source>)>, String> {
    let mut folders = entries(&root.join("crates"))?;
    folders.push(root.join("xtask"));
    let mut crates = Vec::new();
    for folder in folders.iter().filter(|folder| folder.join("src").is_dir()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        crates.push((name, sources(&folder.join("src"))?));
    }
    Ok(crates)
}

fn sources(folder: &Path) -> Result<Vec<Source>, String> {
    let mut paths = Vec::new();
    collect(folder, &mut paths)?;
    let mut sources = Vec::new();
    let mut of_tests = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let path = path.strip_prefix(folder).unwrap_or(&path).to_owned();
        let module = module(&path);
        let left = production(words(&text));
        let left_out: usize = left.left_out.iter().map(|(first, last)| last + 1 - first).sum();
        for name in left.modules {
            of_tests.push([module.clone(), vec![name]].concat());
        }
        let lines = text.lines().count() - left_out;
        sources.push(Source { path, module, words: left.words, lines });
    }
    sources.retain(|source| !of_tests.iter().any(|module| source.module.starts_with(module)));
    Ok(sources)
}

/// The module of a file.
fn module(path: &Path) -> Vec<String> {
    let stem = path.with_extension("");
    let mut module: Vec<_> = stem.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let is_root = module.len() == 1 && ["lib", "main"].contains(&module[0].as_str());
    if is_root || module.last().is_some_and(|name| name == "mod") {
        module.pop();
    }
    module
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), String> {
    for path in entries(folder)? {
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let explain = |e| format!("{}: {e}; next: name the folder of a checkout", folder.display());
    let entries = fs::read_dir(folder).map_err(explain)?;
    let mut paths: Vec<_> =
        entries.map(|entry| Ok(entry.map_err(explain)?.path())).collect::<Result<_, String>>()?;
    paths.sort();
    Ok(paths)
}
