//! Every chore of the workspace, each runnable alone: `cargo xtask --help` lists them.
#![forbid(unsafe_code)]

mod binaries;
mod budget;
mod chores;
mod failures;
mod step;

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Every chore of the workspace. Each prints the commands it runs, runs all of them, and
/// ends with a table of times, the command that repeats each failure, and what failed tests said.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Everything that must pass: format, lints, docs, loom models, tests, bench smokes
    Test {
        /// Redis clients of other makers and type checks for other systems, too, as in CI
        #[arg(long)]
        all: bool,
    },
    /// The programs of unit and integration tests, several at a time: of all, or of those that arguments of
    /// `cargo test` select, as in `-p sapwood-wal --test it -- crashes`
    Binaries {
        /// For `cargo test`; behind `--`, parts of the names of tests
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Format and clippy, warnings denied
    Lint,
    /// The API documentation, warnings denied
    Doc,
    /// Type-checks facade and server for macOS and Linux on ARM (needs their standard libraries)
    Targets,
    /// Loom models of the concurrent code: every interleaving up to a number of preemptions
    Loom {
        /// More preemptions: many minutes in place of one
        #[arg(long)]
        deep: bool,
    },
    /// The whole suite under AddressSanitizer (needs the nightly toolchain)
    Asan,
    /// Every decoder of stored bytes against a fuzzer (needs cargo-fuzz and the nightly toolchain)
    Fuzz {
        /// For each target
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// The soak tests at full size, optimised
    Soak,
    /// Crashes by the hundred thousand: images of a simulated disk, and killed processes
    Crash,
    /// Processes killed at any moment, over and over on one database or pool, at full size
    Kills {
        /// For the program: torture kills --help
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Every call on a file failed once and from then on; losses of power, at full size
    Faults {
        /// For the program, in place of all sizes: torture faults --help
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Every stored file damaged in many ways, and read, at full size
    Damage {
        /// For the program: torture damage --help
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Disks that are full at many points, at full size (needs the right to mount them)
    Enospc {
        /// For the program: torture enospc --help
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Figures of `sapwood aggregate` and of roll-ups against those of DuckDB (needs python3; gets
    /// DuckDB from PyPI)
    Duckdb {
        /// For the script, such as --smoke or --data small
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Redis clients of other makers against `sapwood serve` (needs python3, node, go, redis-tools)
    Clients {
        /// For the script, such as redis-py or --help
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Redis's own test suite against `sapwood serve` (needs python3, redis-server, tclsh)
    RedisSuite {
        /// For the script, such as unit/expire or --verbose
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// redis-py's own tests against `sapwood serve` (needs python3; gets them from PyPI)
    RedisPy {
        /// For the script, such as tests/test_commands.py or --verbose
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Files in the form of sqllogictest against `sapwood shell`, of a clone of SQLite's, DataFusion's or
    /// DuckDB's suite (needs python3)
    LogicTests {
        /// Where the files lie, or one of them
        folder: PathBuf,
        /// For the script, such as --only aggregate or --queries 0
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// CSV files as `sapwood sql` reads them, beside Python's reader, cell by cell (needs python3)
    CsvFiles {
        /// Where the files lie, or one of them
        folder: PathBuf,
        /// For the script, such as --verbose
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// A bench of `sapwood-bench` at full size; more arguments go to it
    Bench {
        /// The bench
        #[arg(value_enum, default_value = "ordered")]
        bench: chores::Bench,
        /// For example: --json
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Instructions of each operation of a hash table, optimised, beside their budgets (needs Linux
    /// on x86-64, and the right to trace a process)
    Instructions,
    /// Compares docs/design/layout/*.txt with the layouts in the code
    Layout {
        /// Rewrites the tables in place of comparing them
        #[arg(long)]
        bless: bool,
    },
    /// Sizes and shapes of each crate, and the arrows between its files, of this checkout or another
    Census {
        /// Where the other checkout lies
        folder: Option<PathBuf>,
    },
    /// Licences and advisories of the dependencies (needs cargo-deny)
    Deny,
    /// Clones the last commit into target/ci and runs its .ci/run there
    Ci,
}

fn main() -> ExitCode {
    let chore = Cli::parse().chore;
    // Asked at run time: a build folder that two clones share holds one xtask for both.
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR");
    let xtask = xtask.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&xtask).parent().expect("xtask lies in the root");
    let steps = match chore {
        Chore::Binaries { args } => {
            let (build, filters) = match args.iter().position(|arg| arg == "--") {
                Some(at) => (args[..at].to_vec(), args[at + 1..].to_vec()),
                None => (args, Vec::new()),
            };
            let all = || ["--workspace", "--all-features", "--tests"].map(str::to_owned).to_vec();
            let build = if build.is_empty() { all() } else { build };
            return binaries::run_all(root, &build, &filters);
        }
        Chore::Census { folder } => {
            return match xtask::census::report(folder.as_deref().unwrap_or(root)) {
                Ok(report) => {
                    print!("{report}");
                    ExitCode::SUCCESS
                }
                Err(why) => fail(&why),
            };
        }
        Chore::Test { all: false } => chores::test(),
        Chore::Test { all: true } => chores::all(root),
        Chore::Lint => chores::lint(),
        Chore::Doc => chores::doc(),
        Chore::Targets => chores::targets(root),
        Chore::Loom { deep: false } => chores::loom(chores::LOOM_PREEMPTIONS),
        Chore::Loom { deep: true } => chores::loom(chores::LOOM_PREEMPTIONS_DEEP),
        Chore::Asan => chores::asan(root),
        Chore::Fuzz { seconds } => chores::fuzz(root, seconds),
        Chore::Soak => chores::soak(),
        Chore::Crash => chores::crash(),
        Chore::Kills { args } => chores::kills(args),
        Chore::Faults { args } => chores::faults(args),
        Chore::Damage { args } => chores::torture("damage", chores::DAMAGES, args),
        Chore::Enospc { args } => chores::torture("enospc", chores::FULL_DISKS, args),
        Chore::Duckdb { args } => chores::duckdb(root, args),
        Chore::Clients { args } => chores::clients(args),
        Chore::RedisSuite { args } => chores::redis_suite(args),
        Chore::RedisPy { args } => chores::redis_py(root, args),
        Chore::LogicTests { folder, args } => chores::files_of_others("logic_tests", &folder, args),
        Chore::CsvFiles { folder, args } => chores::files_of_others("csv_files", &folder, args),
        Chore::Bench { bench, args } => chores::bench(bench, args),
        Chore::Instructions => chores::instructions(),
        Chore::Layout { bless } => chores::layout(bless),
        Chore::Deny => chores::deny(),
        Chore::Ci => chores::ci(root),
    };
    match steps {
        Ok(steps) => step::run_all(root, &steps),
        Err(why) => fail(&why),
    }
}

fn fail(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::FAILURE
}
