//! The programs of all tests, several at a time.
//!
//! `cargo test` runs one program after the other, and one that waits for a disk, a clock or a process leaves
//! the cores idle. Here as many run at once as there are cores, the largest first: those are of the crates
//! that use most others, and take longest.

use std::collections::VecDeque;
use std::io::{BufReader, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use cargo_metadata::Message;

/// A program of tests, and the folder of its package, in which it runs.
struct Binary {
    name: String,
    path: PathBuf,
    folder: PathBuf,
    bytes: u64,
}

/// Builds the tests of all crates, and lists their programs.
fn build(root: &Path) -> Result<Vec<Binary>, String> {
    let failed = |e: std::io::Error| format!("cannot build the tests: {e}");
    let mut cargo = Command::new("cargo")
        .args(["test", "--workspace", "--all-features", "--no-run", "--tests"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let messages = BufReader::new(cargo.stdout.take().expect("it is piped"));
    let mut binaries = Vec::new();
    for message in Message::parse_stream(messages) {
        let Message::CompilerArtifact(artifact) = message.map_err(failed)? else { continue };
        let Some(path) = artifact.executable.filter(|_| artifact.profile.test) else { continue };
        let path = path.into_std_path_buf();
        let folder = artifact.manifest_path.parent().expect("a manifest lies in a folder");
        let bytes = path.metadata().map_err(failed)?.len();
        let package = folder.file_name().unwrap_or_default();
        let name = format!("{package} {}", artifact.target.name);
        binaries.push(Binary { name, path, folder: folder.as_std_path().to_owned(), bytes });
    }
    match cargo.wait().map_err(failed)? {
        status if status.success() => Ok(binaries),
        status => Err(format!("the tests do not build: cargo ended with {status}")),
    }
}

impl Binary {
    fn run(&self) -> std::io::Result<Output> {
        let mut program = Command::new(&self.path);
        program.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        program.stdin(Stdio::null()).output()
    }
}

/// Runs all programs, the failed ones notwithstanding, and prints what each said when it ends.
pub(crate) fn run_all(root: &Path) -> ExitCode {
    let mut binaries = match build(root) {
        Ok(binaries) => binaries,
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::FAILURE;
        }
    };
    if binaries.is_empty() {
        eprintln!("error: cargo built no tests");
        return ExitCode::FAILURE;
    }
    binaries.sort_by_key(|binary| std::cmp::Reverse(binary.bytes));
    let waiting = Mutex::new(VecDeque::from(binaries));
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(binary) = waiting.lock().expect("no thread panics").pop_front() else {
                return;
            };
            let begin = Instant::now();
            let ended = binary.run();
            let took = begin.elapsed().as_secs_f64();
            let mut out = std::io::stdout().lock();
            // A reader that is gone is no reason to fail.
            let _ = writeln!(out, "\n--> {} ({took:.1} s)", binary.name);
            let is_sound = match ended {
                Ok(Output { status, stdout, stderr }) => {
                    let _ = out.write_all(&stdout).and_then(|()| out.write_all(&stderr));
                    status.success()
                }
                Err(error) => {
                    let _ = writeln!(out, "cannot start {}: {error}", binary.path.display());
                    false
                }
            };
            if !is_sound {
                failed.lock().expect("no thread panics").push(binary.name);
            }
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(2, NonZero::get);
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().expect("no thread panics");
    match failed.is_empty() {
        true => ExitCode::SUCCESS,
        false => {
            println!("\nfailed: {}", failed.join(", "));
            ExitCode::FAILURE
        }
    }
}
