//! The flags of all benches, and the plan that they make with the table of a bench.

use std::io::Write;
use std::path::PathBuf;

use crate::harness::*;

pub(crate) struct Bench {
    pub(crate) name: &'static str,
    /// Names that `--workloads` knows; [`Mode::Usual`] runs those before `extra`.
    pub(crate) workloads: &'static [&'static str],
    /// Workloads that only a smoke run, a full run, or their own name asks for.
    pub(crate) extra: &'static [&'static str],
    pub(crate) engines: &'static [&'static str],
    /// Entries of a smoke run, of a usual one and of a full one.
    pub(crate) entries: [&'static [usize]; 3],
    /// The least and the most that `--entries` may be.
    pub(crate) entries_range: [usize; 2],
    pub(crate) runs: [usize; 3],
    /// Thread counts; empty for 1, 2, 4 ... and all cores.
    pub(crate) threads: &'static [usize],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Smoke,
    Usual,
    Full,
}

impl Mode {
    pub(crate) fn pick<T>(self, smoke: T, usual: T, full: T) -> T {
        match self {
            Mode::Smoke => smoke,
            Mode::Usual => usual,
            Mode::Full => full,
        }
    }
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Flags {
    /// Engines to run, by the names that `list` shows [default: all that are there]
    #[arg(long, alias = "servers", value_delimiter = ',', value_name = "NAMES")]
    pub(crate) engines: Vec<String>,

    /// Workloads to run, by their names or a part of these [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    workloads: Vec<String>,

    /// Threads: readers, writers or connections [default: those of the bench, or 1, 2, 4 ... and
    /// all cores]
    #[arg(long, alias = "writers", value_delimiter = ',', value_name = "COUNTS")]
    threads: Vec<usize>,

    /// Entries: keys, objects or rows; several sizes one after the other, where a bench has them
    #[arg(long, aliases = ["keys", "objects", "rows"], value_delimiter = ',', value_name = "COUNTS")]
    entries: Vec<usize>,

    /// Interleaved runs of each figure
    #[arg(long, value_name = "N")]
    runs: Option<usize>,

    /// Operations of each thread in a run, where a bench has a number of them
    #[arg(long, value_name = "N")]
    pub(crate) ops: Option<usize>,

    /// A folder on the disk to measure: fresh ones inside it are used and removed [default: the
    /// system's temporary folder]
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,

    /// Print one JSON object a line instead of tables
    #[arg(long)]
    json: bool,

    /// Draw the figures, too: bars of the engines side by side, with their spread
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Finish in seconds
    #[arg(long, conflicts_with = "full")]
    smoke: bool,

    /// Take what it needs: the sizes at which targets are judged
    #[arg(long)]
    full: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) mode: Mode,
    engines: Vec<String>,
    pub(crate) workloads: Vec<&'static str>,
    pub(crate) threads: Vec<usize>,
    pub(crate) entries: Vec<usize>,
    pub(crate) runs: usize,
    pub(crate) dir: PathBuf,
}

impl Plan {
    pub(crate) fn takes(&self, engine: &str) -> bool {
        self.engines.is_empty() || self.engines.iter().any(|wanted| wanted == engine)
    }

    pub(crate) fn runs(&self, workload: &str) -> bool {
        self.workloads.contains(&workload)
    }

    pub(crate) fn size(&self) -> usize {
        self.entries[0]
    }
}

impl Flags {
    pub(crate) fn mode(&self) -> Mode {
        match (self.smoke, self.full) {
            (true, _) => Mode::Smoke,
            (_, true) => Mode::Full,
            _ => Mode::Usual,
        }
    }

    /// Opens the sheet that reports go to, before anything is measured.
    pub(crate) fn open<'a>(&'a self, out: &'a mut dyn Write) -> Result<Sheet<'a>> {
        self.plot.as_deref().map(plot::create).transpose()?;
        let plot = self.plot.as_deref().map(|path| (path, Vec::new()));
        Ok(Sheet { out, json: self.json, plot })
    }

    /// Fills in defaults. `outside` are the names of engines from outside of this workspace.
    pub(crate) fn plan(&self, bench: &Bench, outside: &[&str]) -> Result<Plan> {
        let others = outside.iter().filter(|name| !bench.engines.contains(name));
        let known: Vec<&str> = bench.engines.iter().chain(others).copied().collect();
        if let Some(name) = self.engines.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(unknown("engine", name, &known));
        }
        let mode = self.mode();
        let at = mode.pick(0, 1, 2);
        let entries = or(&self.entries, bench.entries[at]);
        let runs = match (mode, self.runs) {
            (Mode::Smoke, Some(runs)) => runs.min(bench.runs[at]),
            (_, Some(runs)) => runs,
            (_, None) => bench.runs[at],
        };
        if runs == 0 || self.threads.contains(&0) || self.ops == Some(0) {
            bail!("--runs, --threads and --ops are at least 1");
        }
        let [least, most] = bench.entries_range;
        if entries.iter().any(|entries| !(least..=most).contains(entries)) {
            bail!("choose {least} to {most} entries with --entries");
        }
        if bench.entries.iter().all(|sizes| sizes.len() == 1) && entries.len() != 1 {
            bail!("choose one number with --entries: this bench has one size");
        }
        Ok(Plan {
            mode,
            engines: self.engines.clone(),
            workloads: self.chosen(bench)?,
            threads: match (self.threads.is_empty(), bench.threads) {
                (false, _) => self.threads.clone(),
                (true, []) => thread_counts(),
                (true, threads) => threads.to_vec(),
            },
            entries,
            runs,
            dir: self.dir.clone().unwrap_or_else(std::env::temp_dir),
        })
    }

    /// The workloads of those names, or else those whose names have a word as a part.
    fn chosen(&self, bench: &Bench) -> Result<Vec<&'static str>> {
        let known = [bench.workloads, bench.extra].concat();
        if self.workloads.is_empty() {
            return Ok(if self.mode() == Mode::Usual { bench.workloads.to_vec() } else { known });
        }
        let mut chosen = Vec::new();
        for word in &self.workloads {
            let before = chosen.len();
            let is_whole = known.contains(&word.as_str());
            let is_meant = |name: &&str| if is_whole { name == word } else { name.contains(word) };
            chosen.extend(known.iter().copied().filter(is_meant));
            if chosen.len() == before {
                return Err(unknown("workload", word, &known));
            }
        }
        // In the order of the table, each once.
        Ok(known.into_iter().filter(|name| chosen.contains(name)).collect())
    }

    /// Looks whether engines of another program were asked for without their flag: an error says
    /// why the flag is needed. A run of all engines tells that they are left out.
    pub(crate) fn check_flag(
        &self,
        engines: &[&str],
        is_given: bool,
        why: &str,
        flag: &str,
    ) -> Result {
        if is_given {
            return Ok(());
        }
        if let Some(name) = self.engines.iter().find(|name| engines.contains(&name.as_str())) {
            bail!("{name} {why}: add {flag}");
        }
        if self.engines.is_empty() {
            tell(format_args!("left out: {}; run with {flag}", engines.join(", ")));
        }
        Ok(())
    }
}

pub(crate) fn or<T: Clone>(given: &[T], others: &[T]) -> Vec<T> {
    if given.is_empty() { others } else { given }.to_vec()
}

pub(crate) const fn names<T, const N: usize>(table: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = table[at].0;
        at += 1;
    }
    names
}

pub(crate) trait Named: ValueEnum {
    fn name(&self) -> String {
        let value = self.to_possible_value().expect("no value is hidden");
        value.get_name().to_owned()
    }
}

impl<V: ValueEnum> Named for V {}

fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    format!("no {what} is called {name}: choose from {}", known.join(", ")).into()
}

fn thread_counts() -> Vec<usize> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let powers = std::iter::successors(Some(1), |count| Some(count * 2));
    let mut counts: Vec<usize> = powers.take_while(|&count| count < cores).collect();
    counts.push(cores);
    counts
}

pub(crate) fn list(benches: &[&Bench], out: &mut dyn Write) -> Result {
    let mut rows = table(&["bench", "workloads", "engines"], 3);
    for bench in benches {
        let workloads = [bench.workloads, bench.extra].concat().join("\n");
        rows.add_row([bench.name, &workloads, &bench.engines.join("\n")]);
    }
    Ok(writeln!(out, "{rows}")?)
}

/// The command line as it was given, with the program's name alone in front: it repeats a run.
pub(crate) fn command() -> String {
    let mut words = std::env::args();
    let program = PathBuf::from(words.next().unwrap_or_default());
    let program = program.file_name().map_or("sapwood-bench".into(), |name| name.to_string_lossy());
    let quoted = words.map(|word| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=,./:".contains(c);
        if word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    std::iter::once(program.into_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}
