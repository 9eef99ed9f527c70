//! Memory reclamation schemes, measured as an ordered map of slices would use them.
//!
//! Each scheme runs the work that the map would give it: a get pins, follows one word to a
//! 1,112-byte slice in a flat arena and sums its 1,000 value bytes; a replacement writes
//! a free slice, swaps the word and retires the old slice to the arena's free list.
//!
//! *Useful for* choosing a scheme by cost and by peak garbage. *Not useful for* ranking the
//! schemes on anything with more threads or longer pins than these.

mod arena;
mod schemes;

use std::sync::Barrier;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use clap::Parser;
use comfy_table::Table;

use arena::{Arena, SLICE_BYTES};
use schemes::{Crossbeam, CrossbeamFound, CrossbeamOwn, Leak, Scheme, Sdd, Seize, Worker};

/// Pin, retire and churn costs of memory reclamation schemes.
#[derive(Parser)]
struct Args {
    /// Live slices of 1,112 bytes.
    #[arg(long, default_value_t = 1_000_000)]
    entries: u32,
    /// Interleaved runs of each figure.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Operations of a run, for each thread.
    #[arg(long, default_value_t = 500_000)]
    ops: u64,
    /// Sizes that finish in a second.
    #[arg(long)]
    smoke: bool,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Job {
    /// Pin and unpin, nothing else.
    Pin,
    /// Pin and read a random value.
    Get,
    /// Pin and retire a word whose reclamation does nothing.
    Retire,
    /// Half gets, half replacements.
    Churn,
    /// As `Churn`, while one more thread pins for a scan of 10,000 values at a time.
    ChurnBesideScans,
}

impl Job {
    fn name(self) -> &'static str {
        match self {
            Job::Pin => "pin",
            Job::Get => "pin+read 1000 B",
            Job::Retire => "pin+retire",
            Job::Churn => "50% replace",
            Job::ChurnBesideScans => "50% replace beside scans",
        }
    }
}

/// Nanoseconds an operation and peak garbage in bytes of one run.
#[derive(Clone, Copy)]
struct Figure {
    ns: f64,
    garbage_bytes: u64,
}

fn main() {
    let mut args = Args::parse();
    if args.smoke {
        args.entries = 10_000;
        args.runs = 2;
        args.ops = 20_000;
    }
    let arena = Arena::make(args.entries);
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut thread_counts = vec![1];
    if cores > 1 {
        thread_counts.push(2);
    }
    let jobs = [Job::Pin, Job::Get, Job::Retire, Job::Churn, Job::ChurnBesideScans];

    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table.set_header(["job", "threads", "scheme", "ns/op", "min", "max", "peak garbage"]);
    for &threads in &thread_counts {
        for job in jobs {
            // Rows of (scheme, figures of each round): schemes take turns within a round.
            let mut rows: Vec<(String, Vec<Figure>)> = Vec::new();
            for round in 0..args.runs {
                let mut place = 0;
                let mut push = |name: &str, figure: Option<Figure>| {
                    if round == 0 {
                        rows.push((name.to_owned(), Vec::new()));
                    }
                    rows[place].1.extend(figure);
                    place += 1;
                };
                let seed = (round as u64) << 8;
                // Nothing is reclaimed: a bound on what the others can reach, reads only.
                let leak = matches!(job, Job::Pin | Job::Get);
                push("none (bound)", leak.then(|| run(&Leak, arena, job, threads, args.ops, seed)));
                push(
                    "crossbeam-epoch, default",
                    Some(run(&Crossbeam, arena, job, threads, args.ops, seed)),
                );
                push(
                    "crossbeam-epoch, own",
                    Some(run(&CrossbeamOwn::new(), arena, job, threads, args.ops, seed)),
                );
                push(
                    "crossbeam-epoch, own, found",
                    Some(run(&CrossbeamFound::new(), arena, job, threads, args.ops, seed)),
                );
                push(
                    "seize, batch 32",
                    Some(run(&Seize::new(32), arena, job, threads, args.ops, seed)),
                );
                push(
                    "seize, batch 256",
                    Some(run(&Seize::new(256), arena, job, threads, args.ops, seed)),
                );
                push("sdd", Some(run(&Sdd, arena, job, threads, args.ops, seed)));
            }
            for (name, mut figures) in rows {
                if figures.is_empty() {
                    continue;
                }
                figures.sort_by(|a, b| a.ns.total_cmp(&b.ns));
                let median = figures[figures.len() / 2].ns;
                let (min, max) = (figures[0].ns, figures[figures.len() - 1].ns);
                let garbage = figures.iter().map(|f| f.garbage_bytes).max().unwrap_or(0);
                if args.json {
                    println!(
                        "{}",
                        serde_json::json!({
                            "bench": "epochs", "workload": job.name(), "threads": threads,
                            "entries": args.entries, "engine": name, "unit": "ns/op",
                            "median": median, "min": min, "max": max, "runs": figures.len(),
                            "bytes_per_entry": null, "garbage_bytes_peak": garbage,
                        })
                    );
                }
                table.add_row([
                    job.name().to_owned(),
                    threads.to_string(),
                    name,
                    format!("{median:.1}"),
                    format!("{min:.1}"),
                    format!("{max:.1}"),
                    match job {
                        Job::Pin | Job::Get => "-".to_owned(),
                        _ => format!("{:.0} KiB", garbage as f64 / 1024.0),
                    },
                ]);
            }
        }
    }
    let collectors = if args.smoke { 100 } else { 10_000 };
    let mut sizes = Table::new();
    sizes.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    sizes.set_header(["scheme", "bytes of a collector that one thread has used"]);
    for (name, bytes) in [
        ("crossbeam-epoch, own", collector_bytes(collectors, CrossbeamOwn::new)),
        ("seize, batch 32", collector_bytes(collectors, || Seize::new(32))),
    ] {
        sizes.add_row([name.to_owned(), format!("{bytes:.0}")]);
        if args.json {
            println!(
                "{}",
                serde_json::json!({
                    "bench": "epochs", "workload": "collector memory", "threads": 1,
                    "entries": collectors, "engine": name, "unit": "B", "median": bytes,
                    "min": bytes, "max": bytes, "runs": 1, "bytes_per_entry": bytes,
                })
            );
        }
    }
    if !args.json {
        println!("{table}\n{sizes}");
    }
}

/// Resident bytes that each of `count` collectors costs once a thread has pinned it.
fn collector_bytes<S: Scheme>(count: u32, make: impl Fn() -> S) -> f64 {
    let before = resident_bytes();
    let schemes: Vec<S> = (0..count).map(|_| make()).collect();
    let workers: Vec<_> = schemes.iter().map(Scheme::worker).collect();
    for worker in &workers {
        worker.pin();
    }
    resident_bytes().saturating_sub(before) as f64 / f64::from(count)
}

fn resident_bytes() -> u64 {
    let status =
        std::fs::read_to_string("/proc/self/status").expect("Linux tells a process its size");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS is in status");
    let kib: u64 = line
        .split_whitespace()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("VmRSS is a number of KiB");
    kib * 1024
}

/// Runs `job` on `threads` threads; time is the slowest thread's.
fn run<S: Scheme>(
    scheme: &S,
    arena: &'static Arena,
    job: Job,
    threads: usize,
    ops: u64,
    seed: u64,
) -> Figure {
    arena.reset_garbage();
    let scans = usize::from(job == Job::ChurnBesideScans);
    let barrier = Barrier::new(threads + scans);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let nanoseconds = std::thread::scope(|scope| {
        if scans > 0 {
            scope.spawn(|| {
                let worker = scheme.worker();
                barrier.wait();
                let mut first = 0;
                while !stop.load(Relaxed) {
                    let sum = worker.read(arena, |arena| {
                        (first..first + 10_000).fold(0u64, |sum, i| {
                            sum.wrapping_add(arena.sum_live(i % arena.entries))
                        })
                    });
                    std::hint::black_box(sum);
                    first = (first + 10_000) % arena.entries;
                }
            });
        }
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let worker = scheme.worker();
                    let mut random = fastrand::Rng::with_seed(seed + thread as u64);
                    barrier.wait();
                    let begin = Instant::now();
                    work(&worker, arena, job, ops, &mut random);
                    begin.elapsed().as_nanos() as f64
                })
            })
            .collect();
        let slowest = workers
            .into_iter()
            .map(|w| w.join().expect("a worker does not panic"))
            .fold(0.0, f64::max);
        stop.store(true, Relaxed);
        slowest
    });
    let garbage_bytes = arena.garbage_peak() * SLICE_BYTES as u64;
    scheme.drain(arena);
    Figure { ns: nanoseconds / ops as f64, garbage_bytes }
}

fn work<W: Worker>(
    worker: &W,
    arena: &'static Arena,
    job: Job,
    ops: u64,
    random: &mut fastrand::Rng,
) {
    let mut sum = 0u64;
    match job {
        Job::Pin => {
            for _ in 0..ops {
                worker.pin();
                sum = std::hint::black_box(sum + 1);
            }
        }
        Job::Get => {
            for _ in 0..ops {
                let entry = random.u32(..arena.entries);
                sum = sum.wrapping_add(worker.read(arena, |arena| arena.sum_live(entry)));
            }
        }
        Job::Retire => {
            for _ in 0..ops {
                worker.retire_nothing(arena);
            }
        }
        Job::Churn | Job::ChurnBesideScans => {
            for _ in 0..ops {
                let entry = random.u32(..arena.entries);
                if random.bool() {
                    worker.replace(arena, entry);
                } else {
                    sum = sum.wrapping_add(worker.read(arena, |arena| arena.sum_live(entry)));
                }
            }
        }
    }
    std::hint::black_box(sum);
}
