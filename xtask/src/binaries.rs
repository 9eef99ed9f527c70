//! The programs of all tests, several at a time.
//!
//! `cargo test` runs one program after the other, and one that waits for a disk, a clock or a process leaves
//! the cores idle. Here the tests of each program are dealt to several processes, and as many of those run at
//! once as there are cores. Each runs its tests in one thread: threads of one process would wait for each
//! other in the kernel wherever they map memory.

use std::collections::VecDeque;
use std::io::{BufReader, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use cargo_metadata::Message;

/// Most tests of a process: few enough that the last processes end together.
const TESTS_MAX: usize = 12;

/// A program of tests, and the folder of its package, in which it runs.
struct Binary {
    name: String,
    path: PathBuf,
    folder: PathBuf,
    bytes: u64,
}

/// Some of the tests of a program, which one process runs.
struct Share<'b> {
    binary: &'b Binary,
    tests: Vec<String>,
}

/// Builds the tests that `args` select, and lists their programs.
fn build(root: &Path, args: &[String]) -> Result<Vec<Binary>, String> {
    let failed = |e: std::io::Error| format!("cannot build the tests: {e}");
    let mut cargo = Command::new("cargo")
        .args(["test", "--no-run", "--message-format", "json-render-diagnostics"])
        .args(args)
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
        status if !status.success() => {
            Err(format!("the tests do not build: cargo ended with {status}"))
        }
        _ if binaries.is_empty() => Err("cargo built no tests".to_owned()),
        _ => Ok(binaries),
    }
}

impl Binary {
    fn run(&self, args: &[String]) -> std::io::Result<Output> {
        let mut program = Command::new(&self.path);
        program.args(args).current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        program.stdin(Stdio::null()).output()
    }

    /// The names of its tests that `filters` pick.
    fn tests(&self, filters: &[String]) -> Result<Vec<String>, String> {
        let list = ["--list", "--format", "terse"].map(str::to_owned);
        let path = self.path.display();
        let listed = self.run(&[filters, &list].concat());
        let listed = listed.map_err(|e| format!("cannot start {path}: {e}"))?;
        if !listed.status.success() {
            let said = String::from_utf8_lossy(&listed.stderr);
            return Err(format!("{path} does not list its tests: {}\n{said}", listed.status));
        }
        let text = String::from_utf8_lossy(&listed.stdout);
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }
}

/// Deals the tests of a program to as few processes as take at most [`TESTS_MAX`] each. Neighbours, which often
/// take equally long, are dealt to different ones.
fn deal(tests: &[String]) -> Vec<Vec<String>> {
    let processes = tests.len().div_ceil(TESTS_MAX);
    let of = |at| tests.iter().skip(at).step_by(processes).cloned().collect();
    (0..processes).map(of).collect()
}

/// Runs the tests of the programs that `build` selects by arguments of `cargo test`, of these the ones that
/// `filters` pick, of each program at least one. Prints the output of each process when it ends; a failed one
/// stops no other.
pub(crate) fn run_all(root: &Path, build_args: &[String], filters: &[String]) -> ExitCode {
    let refuse = |why: String| {
        eprintln!("error: {why}");
        ExitCode::FAILURE
    };
    let mut binaries = match build(root, build_args) {
        Ok(binaries) => binaries,
        Err(why) => return refuse(why),
    };
    // The largest are of the crates that use most others, and take longest.
    binaries.sort_by_key(|binary| std::cmp::Reverse(binary.bytes));
    let mut waiting = VecDeque::new();
    for binary in &binaries {
        match binary.tests(filters) {
            Ok(tests) if tests.is_empty() && !filters.is_empty() => {
                return refuse(format!("{}: no test is picked by {filters:?}", binary.name));
            }
            Ok(tests) => {
                waiting.extend(deal(&tests).into_iter().map(|tests| Share { binary, tests }));
            }
            Err(why) => return refuse(why),
        }
    }
    let waiting = Mutex::new(waiting);
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = waiting.lock().expect("no thread panics").pop_front();
            let Some(Share { binary, mut tests }) = next else { return };
            tests.extend(["--exact", "--test-threads=1"].map(str::to_owned));
            let begin = Instant::now();
            let ended = binary.run(&tests);
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
                failed.lock().expect("no thread panics").push(&binary.name[..]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_to_list_its_tests_is_an_error() {
        let (name, path, folder) = ("crate it".to_owned(), "false".into(), ".".into());
        let error = Binary { name, path, folder, bytes: 0 }.tests(&[]).expect_err("it fails");
        assert!(error.contains("does not list its tests"), "{error}");
    }

    #[test]
    fn each_test_is_dealt_once_and_none_to_a_crowd() {
        for count in [0, 1, TESTS_MAX, TESTS_MAX + 1, 5 * TESTS_MAX + 3] {
            let tests: Vec<String> = (0..count).map(|at| format!("{at:03}")).collect();
            let dealt = deal(&tests);
            assert_eq!(dealt.len(), count.div_ceil(TESTS_MAX));
            assert!(dealt.iter().all(|share| (1..=TESTS_MAX).contains(&share.len())));
            let mut all = dealt.concat();
            all.sort();
            assert_eq!(all, tests);
        }
    }
}
