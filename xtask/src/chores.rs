//! The commands of each chore.

use crate::step::Step;
use clap::ValueEnum;
use std::path::Path;
use std::process::{Command, Stdio};

/// Two find most bugs (Musuvathi and Qadeer, PLDI 2007), and take half a minute.
pub(crate) const LOOM_PREEMPTIONS: u32 = 2;
/// As many as still end in minutes.
pub(crate) const LOOM_PREEMPTIONS_DEEP: u32 = 3;

/// Have the models that CI runs. What `mem` shares between threads is modelled there too, in its use.
const MODELLED: [&str; 4] = ["sapwood-chunkmap", "sapwood-hashlog", "sapwood-occ", "sapwood-ptree"];
/// Has a model that takes no time, of one lock, in a crate that takes as long to build as all others.
const MODELLED_SLOWLY_BUILT: &str = "sapwood-rollup";
/// Have byte tables.
const LAID_OUT: [&str; 5] =
    ["sapwood-mem", "sapwood-disk", "sapwood-chunkmap", "sapwood-hashlog", "sapwood-ptree"];
/// Have soak tests.
const SOAKED: [&str; 2] = ["sapwood-chunkmap", "sapwood-hashlog"];

/// About ten minutes of crash images on two cores.
const CRASHES: &str = "100000";
/// About as long again: each kill is a process that starts, works, and is recovered.
const KILLS: &str = "1000";

/// Systems without a test run of ours, for which facade and program must compile: a Mac, and Linux on ARM.
const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "aarch64-unknown-linux-gnu"];
/// A thousand kills on fifty databases: each is a process that starts, works, and is looked at. A
/// database grows with each, and so does the look at it.
const KILLED_CHAINS: &str = "--chains 50 --links 20";
/// Two thousand kills on pools: one takes a twentieth of a second.
const KILLED_POOLS: &str = "--chains 50 --links 40";
/// A thousand kills, losses of power and moved directories of processes that execute statements.
const KILLED_STATEMENTS: &str = "--chains 50 --links 20";
/// Two thousand losses of power and a few more, six on each database.
const LOST_CHAINS: &str = "--chains 334 --links 6";
/// Some hundred for each stored file.
pub(crate) const DAMAGES: &str = "--count 5000";
/// One for each eight KiB that may be free.
pub(crate) const FULL_DISKS: &str = "--count 150";

/// Where the environment of the script lies that asks DuckDB.
const DUCKDB_VENV: &str = "target/duckdb";

/// Where the environment lies that runs redis-py's tests.
const REDIS_PY_VENV: &str = "target/redis-py/venv";

const SAPWOOD_RELEASE: &str = "cargo build --release -p sapwood-cli";
const INSTALL_PYTHON: &str = "install python3 with its module venv";

/// Where AddressSanitizer runs.
const ASAN_TARGET: &str = "x86_64-unknown-linux-gnu";

/// Seconds after which an input of a fuzzer counts as a hang. Most take a thousandth of one.
const FUZZ_HANGS_AFTER: u32 = 20;
/// Bytes of an input at most: several blocks of files, which targets take in short.
const FUZZ_BYTES_MAX: u32 = 1024;

/// The steps of a chore, or why it cannot start and what to do about it.
type Steps = Result<Vec<Step>, String>;

pub(crate) fn test() -> Steps {
    let mut steps = lint()?;
    steps.extend(doc()?);
    steps.push(models(&MODELLED, LOOM_PREEMPTIONS));
    // Unit, integration and doc tests, bench smokes, layout tables, rules of the documents.
    let test = "cargo test --workspace --all-features --no-fail-fast";
    steps.push(Step::new("build of tests", &format!("{test} --no-run --tests")));
    // Some wait for disks, clocks and processes: several run at once.
    steps.push(Step::new("tests", "cargo xtask binaries"));
    steps.push(Step::new("doc tests", &format!("{test} --doc")).beside());
    Ok(steps)
}

/// All that CI runs: the tests, then what needs more than Rust and a C compiler.
pub(crate) fn all(root: &Path) -> Steps {
    expect_targets()?;
    let mut steps = test()?;
    steps.extend(beyond_tests(root)?);
    Ok(steps)
}

/// Clients of other makers, against the program that the tests have built, and types for other systems.
pub(crate) fn beyond_tests(root: &Path) -> Steps {
    Ok(vec![redis_script("clients", "debug"), types(root)?])
}

/// Sets of features of the facade that are checked on their own, beside all of them together.
const FEATURE_SETS: [&str; 3] = ["", "derive,documents,serde,sql", "rollup"];

pub(crate) fn lint() -> Steps {
    let deny = "-- -D warnings";
    let all = format!("cargo clippy --workspace --all-targets --all-features {deny}");
    let mut steps = vec![Step::new("format", "cargo fmt --all --check"), Step::new("clippy", &all)];
    for set in FEATURE_SETS {
        let features = if set.is_empty() { String::new() } else { format!("--features {set}") };
        let name = format!("clippy of features: {}", if set.is_empty() { "none" } else { set });
        steps.push(Step::new(name, &format!("cargo clippy -p sapwood {features} {deny}")));
    }
    let plain = format!("cargo clippy -p sapwood-cli {deny}");
    steps.push(Step::new("clippy of the plain program", &plain));
    Ok(steps)
}

pub(crate) fn doc() -> Steps {
    let doc = Step::new("docs", "cargo doc --workspace --no-deps --all-features");
    Ok(vec![doc.env("RUSTDOCFLAGS", "-D warnings")])
}

/// Types alone, of the facade and of the server. No C compiler for the target is needed: the build
/// scripts that want one are overridden, and nothing is linked.
pub(crate) fn targets(root: &Path) -> Steps {
    expect_targets()?;
    Ok(vec![types(root)?])
}

/// Refuses to begin where a standard library is missing.
fn expect_targets() -> Result<(), String> {
    let listed = Command::new("rustup").args(["target", "list", "--installed"]).output();
    // Without rustup there is no telling: the check itself says what it lacks.
    let installed = listed
        .ok()
        .filter(|it| it.status.success())
        .and_then(|it| String::from_utf8(it.stdout).ok());
    let missing = |target: &&str| {
        installed.as_ref().is_some_and(|all| !all.lines().any(|line| line == *target))
    };
    let missing: Vec<&str> = TARGETS.into_iter().filter(missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(" ");
    Err(format!(
        "no standard library for {missing} is installed; next: rustup target add {missing}"
    ))
}

fn types(root: &Path) -> Result<Step, String> {
    let ring = ring_links(root)?;
    let of_target = |target| {
        let no_c = format!("target.{target}.{ring}.rustc-link-lib=[\"{ring}\"]");
        ["--target", target, "--config", &no_c].map(str::to_owned)
    };
    let step = Step::new("types", "cargo check -p sapwood -p sapwood-server");
    Ok(step.args(TARGETS.into_iter().flat_map(of_target)).env("RUSTFLAGS", "-D warnings"))
}

/// The name by which cargo knows the C code of the crate `ring`, which has the version in it.
fn ring_links(root: &Path) -> Result<String, String> {
    let path = root.join("Cargo.lock");
    let lock = std::fs::read_to_string(&path)
        .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let version = lock.split_once("name = \"ring\"\nversion = \"").and_then(|(_, behind)| {
        let (version, _) = behind.split_once('"')?;
        Some(version.replace('.', "_"))
    });
    let version = version.ok_or_else(|| format!("{} has no crate ring", path.display()))?;
    Ok(format!("ring_core_{version}_"))
}

pub(crate) fn loom(preemptions: u32) -> Steps {
    let packages = [&MODELLED[..], &[MODELLED_SLOWLY_BUILT]].concat();
    // Models that take a minute have all preemptions here.
    Ok(vec![models(&packages, preemptions).env("LOOM_LONG", "1")])
}

/// A profile of its own, for the number of interleavings; its own target folder, for the other flags. One build for
/// all crates.
fn models(packages: &[&str], preemptions: u32) -> Step {
    let packages: String = packages.iter().map(|package| format!("-p {package} ")).collect();
    let models = format!(
        "cargo xtask binaries --config build.rustflags=['--cfg','loom'] --target-dir target/loom \
         --profile loom {packages} --lib -- loom"
    );
    Step::new("loom", &models).env("LOOM_MAX_PREEMPTIONS", preemptions.to_string())
}

/// All but xtask, whose tests read texts, and the shim and its user: it stands in for functions of
/// the C library for which the sanitizer stands in, too. `cfg(asan)` lets `mem` mark what is free
/// in an arena, which the sanitizer cannot know.
pub(crate) fn asan(root: &Path) -> Steps {
    require(
        &["rustup", "run", "nightly", "cargo", "--version"],
        "AddressSanitizer needs the nightly toolchain",
        "rustup toolchain install nightly --profile minimal",
    )?;
    let without = "--exclude xtask --exclude sapwood-shim --exclude sapwood-torture";
    let suite = format!(
        "rustup run nightly cargo test --workspace --all-features {without} --no-fail-fast"
    );
    let flags = "-Zsanitizer=address --cfg asan";
    let leaks = root.join("xtask/leaks-of-peers.txt");
    // A target of its own, even if it is the host: build scripts stay without the sanitizer.
    let asan = Step::new("address sanitizer", &format!("{suite} --target {ASAN_TARGET}"))
        .env("RUSTFLAGS", flags)
        .env("RUSTDOCFLAGS", flags)
        .env("CARGO_TARGET_DIR", "target/asan")
        .env("LSAN_OPTIONS", format!("suppressions={}:print_suppressions=0", leaks.display()));
    Ok(vec![asan])
}

/// Every target of `fuzz`, one after the other. What they find to be new paths stays in
/// `fuzz/corpus`, so that the next run begins there; `fuzz/seeds` is where the first one does.
pub(crate) fn fuzz(root: &Path, seconds: u32) -> Steps {
    require(
        &["rustup", "run", "nightly", "cargo", "--version"],
        "fuzzing needs the nightly toolchain",
        "rustup toolchain install nightly --profile minimal",
    )?;
    require(
        &["rustup", "run", "nightly", "cargo", "fuzz", "--version"],
        "fuzzing needs cargo-fuzz",
        "cargo install --locked cargo-fuzz",
    )?;
    let fuzz = "rustup run nightly cargo fuzz";
    let mut steps = vec![Step::new("build fuzz targets", &format!("{fuzz} build --fuzz-dir fuzz"))];
    for target in fuzz_targets(root)? {
        let (corpus, seeds) = (format!("fuzz/corpus/{target}"), format!("fuzz/seeds/{target}"));
        std::fs::create_dir_all(root.join(&corpus))
            .map_err(|e| format!("cannot make {corpus}: {e}"))?;
        let run = format!("{fuzz} run --fuzz-dir fuzz {target} {corpus} {seeds}");
        // Short enough to be of any length from the start.
        let limits = format!(
            "-- -max_total_time={seconds} -timeout={FUZZ_HANGS_AFTER} -len_control=0 -max_len={FUZZ_BYTES_MAX}"
        );
        steps.push(Step::new(format!("fuzz {target}"), &format!("{run} {limits}")));
    }
    Ok(steps)
}

fn fuzz_targets(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("fuzz/fuzz_targets");
    let unread = |e| format!("cannot list {}: {e}", folder.display());
    let mut targets = Vec::new();
    for file in std::fs::read_dir(&folder).map_err(unread)? {
        let path = file.map_err(unread)?.path();
        targets.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    targets.sort();
    Ok(targets)
}

pub(crate) fn soak() -> Steps {
    let soak = |package: &&str| {
        let soak = format!("cargo test --release -p {package} --test it -- soak");
        Step::new(format!("soak {package}"), &soak).env("SAPWOOD_SOAK", "full").must_pick_tests()
    };
    Ok(SOAKED.iter().map(soak).collect())
}

/// The states that a crash can leave, far more often than the tests of every day ask: images of a
/// simulated disk, and processes that are killed.
pub(crate) fn crash() -> Steps {
    let durable = "cargo test --release -p sapwood-hashlog --test it -- durable";
    let crash = Step::new("crash", durable).env("CRASHES", CRASHES).env("KILLS", KILLS);
    let database = "cargo test --release -p sapwood --test it -- crashes";
    let database = Step::new("crash of databases", database).env("CRASHES", CRASHES);
    Ok(vec![crash.must_pick_tests(), database.must_pick_tests()])
}

/// One of the tortures of a database in real files, at full size unless `args` say otherwise.
pub(crate) fn torture(what: &str, full: &str, args: Vec<String>) -> Steps {
    let size = if args.is_empty() { full } else { "" };
    let torture = format!("cargo run --release -p sapwood-torture -- {what} {size}");
    Ok(vec![Step::new(what, &torture).args(args)])
}

/// Kills of processes with a database; with a pool and within statements too, where no `args` ask
/// for something else.
pub(crate) fn kills(args: Vec<String>) -> Steps {
    let is_full = args.is_empty();
    let mut steps = torture("kills", KILLED_CHAINS, args)?;
    if is_full {
        steps.extend(torture("pools", KILLED_POOLS, Vec::new())?);
        steps.extend(torture("statements", KILLED_STATEMENTS, Vec::new())?);
    }
    Ok(steps)
}

/// Failing calls; losses of power too, where no `args` ask for something else.
pub(crate) fn faults(args: Vec<String>) -> Steps {
    let losses =
        if args.is_empty() { torture("losses", LOST_CHAINS, Vec::new())? } else { Vec::new() };
    let mut steps = torture("faults", "", args)?;
    steps.extend(losses);
    Ok(steps)
}

/// Builds the program, and an environment for the script where there is none yet.
pub(crate) fn duckdb(root: &Path, args: Vec<String>) -> Steps {
    require(
        &["python3", "-m", "venv", "--help"],
        "DuckDB is asked by a script in Python",
        INSTALL_PYTHON,
    )?;
    let python = format!("{DUCKDB_VENV}/bin/python");
    let mut steps = Vec::new();
    if !root.join(&python).exists() {
        steps.push(Step::new("environment", &format!("python3 -m venv {DUCKDB_VENV}")));
    }
    // Says nothing new where it is there already.
    steps.push(Step::new("duckdb", &format!("{python} -m pip install --quiet duckdb")));
    steps.push(Step::new("sapwood", SAPWOOD_RELEASE));
    let compare = format!(
        "{python} xtask/duckdb/compare.py --sapwood target/release/sapwood --flights datasets/flights-2013.csv.zst"
    );
    steps.push(Step::new("compare", &compare).args(args.clone()));
    let rollup = format!("{python} xtask/duckdb/rollup.py --sapwood target/release/sapwood");
    steps.push(Step::new("roll-up", &rollup).args(args.clone()));
    let sql = format!("{python} xtask/duckdb/sql.py --sapwood target/release/sapwood");
    steps.push(Step::new("sql", &sql).args(args));
    Ok(steps)
}

/// Clients of other makers, against the program as tests build it.
pub(crate) fn clients(args: Vec<String>) -> Steps {
    redis("clients", "debug", "cargo build -p sapwood-cli", args)
}

/// Redis's own suite, which waits for less time with a program that is built for speed.
pub(crate) fn redis_suite(args: Vec<String>) -> Steps {
    redis("suite", "release", SAPWOOD_RELEASE, args)
}

/// redis-py's own tests, by a Python that has what they need.
pub(crate) fn redis_py(root: &Path, args: Vec<String>) -> Steps {
    require(&["python3", "-m", "venv", "--help"], "redis-py is tested in Python", INSTALL_PYTHON)?;
    let python = format!("{REDIS_PY_VENV}/bin/python");
    let mut steps = Vec::new();
    if !root.join(&python).exists() {
        steps.push(Step::new("environment", &format!("python3 -m venv {REDIS_PY_VENV}")));
    }
    steps.push(Step::new("sapwood", SAPWOOD_RELEASE));
    let script = format!("{python} -B xtask/redis/redis_py.py --sapwood {}", program("release"));
    steps.push(Step::new("redis-py", &script).args(args));
    Ok(steps)
}

/// One of the scripts of `xtask/sql` over a folder of files that others made.
pub(crate) fn files_of_others(script: &str, folder: &Path, args: Vec<String>) -> Steps {
    require(&["python3", "--version"], "files are read by a script in Python", INSTALL_PYTHON)?;
    let folder =
        std::path::absolute(folder).map_err(|e| format!("{} is no path: {e}", folder.display()))?;
    if !folder.exists() {
        let folder = folder.display();
        return Err(format!(
            "{folder} is not there; next: clone what has the files, and name its folder"
        ));
    }
    let run = format!("python3 -B xtask/sql/{script}.py --sapwood {}", program("release"));
    let run = Step::new(script.replace('_', "-"), &run).args([folder.display().to_string()]);
    Ok(vec![Step::new("sapwood", SAPWOOD_RELEASE), run.args(args)])
}

/// One of the scripts of `xtask/redis`, which says itself what it needs.
fn redis(script: &str, profile: &str, build: &str, args: Vec<String>) -> Steps {
    require(
        &["python3", "--version"],
        "clients of other makers are run by a script in Python",
        INSTALL_PYTHON,
    )?;
    Ok(vec![Step::new("sapwood", build), redis_script(script, profile).args(args)])
}

fn redis_script(script: &str, profile: &str) -> Step {
    let program = program(profile);
    Step::new(script, &format!("python3 -B xtask/redis/{script}.py --sapwood {program}"))
}

/// Where cargo puts the program.
fn program(profile: &str) -> String {
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    format!("{target}/{profile}/sapwood")
}

/// The bench that is run.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Bench {
    /// The ordered engine
    Ordered,
    /// The hash engine
    Hash,
    /// Aggregation over both
    Aggregate,
    /// Roll-ups of streams
    Rollup,
    /// Statements of SQL
    Sql,
    /// The server, beside Redis
    Server,
    /// The transactional trees
    Trees,
    /// The cost of durable tables
    Durability,
}

pub(crate) fn bench(bench: Bench, args: Vec<String>) -> Steps {
    let bench = match bench {
        Bench::Ordered => "ordered",
        Bench::Hash => "hash",
        Bench::Aggregate => "aggregate",
        Bench::Rollup => "rollup",
        Bench::Sql => "sql",
        Bench::Server => "server",
        Bench::Trees => "trees",
        Bench::Durability => "durability",
    };
    // Two of them measure processes of the program itself.
    let program = "cargo build --profile dist -p sapwood-cli --features columnar";
    let run = format!("cargo run --profile dist -p sapwood-bench -- {bench} --full");
    let run = Step::new(format!("bench {bench}"), &run).args(args);
    Ok(match bench {
        "sql" | "server" => vec![Step::new("sapwood", program), run],
        _ => vec![run],
    })
}

/// The budgets of optimised code; those of tests are held by a test.
pub(crate) fn instructions() -> Steps {
    Ok(vec![Step::new("instructions", "cargo run --profile dist -p sapwood-instructions")])
}

pub(crate) fn layout(bless: bool) -> Steps {
    let table = |package: &&str| {
        let step = Step::new(
            format!("layout {package}"),
            &format!("cargo test -p {package} --lib -- layout"),
        )
        .must_pick_tests();
        if bless { step.env("BLESS", "1") } else { step }
    };
    Ok(LAID_OUT.iter().map(table).collect())
}

pub(crate) fn deny() -> Steps {
    require(
        &["cargo", "deny", "--version"],
        "licences and advisories are checked by cargo-deny",
        "cargo install --locked cargo-deny",
    )?;
    Ok(vec![Step::new("deny", "cargo deny check")])
}

/// The view of a stranger's machine: the commit alone, nothing built before.
pub(crate) fn ci(root: &Path) -> Steps {
    let clone = root.join("target/ci");
    if clone.exists() {
        std::fs::remove_dir_all(&clone)
            .map_err(|e| format!("cannot clear {}: {e}", clone.display()))?;
    }
    Ok(vec![
        Step::new("clone", "git clone --quiet --no-hardlinks . target/ci"),
        Step::new(".ci/run", "target/ci/.ci/run").env("CARGO_TARGET_DIR", "target"),
    ])
}

/// `Err` says what is missing and the command that brings it.
fn require(probe: &[&str], why: &str, remedy: &str) -> Result<(), String> {
    let status = Command::new(probe[0])
        .args(&probe[1..])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("{why}, and `{}` fails; next: {remedy}", probe.join(" "))),
    }
}
