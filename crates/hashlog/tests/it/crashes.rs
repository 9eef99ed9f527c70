//! The power goes at any moment: what is left opens, and is exactly what a checkpoint saw.

use crate::adapter::{
    COLDEST, Configuration, KEPT_SHORT, ON_DISK, contents, key, number_of_environment,
    try_contents, value,
};
use sapwood_disk::SimDisk;
use sapwood_hashlog::{Cut, Error, HashLog};
use sapwood_testkit::case;
use sapwood_testkit::engine::Pair;
use sapwood_testkit::keyed::op::KeyedOp;
use sapwood_testkit::keyed::oracle::KeyedOracle;
use sapwood_testkit::keyed::stream::KeyedSpec;
use sapwood_testkit::values::ValueShape;

/// A run with checkpoints and compactions, up to the first error.
struct Run {
    disk: SimDisk,
    /// What was in the log at each checkpoint begun; first, nothing.
    cuts: Vec<Vec<Pair>>,
    /// The last of them that returned.
    completed: usize,
    ended: Option<Error>,
}

/// Runs `ops` until the power is cut after `power` changes of the disk.
fn run(configuration: Configuration, ops: &[KeyedOp], seed: u64, power: Option<u64>) -> Run {
    let disk = SimDisk::new();
    if let Some(count) = power {
        disk.stop_after(count);
    }
    let mut run = Run { disk: disk.clone(), cuts: vec![vec![]], completed: 0, ended: None };
    run.ended = drive(configuration, ops, seed, &mut run).err();
    run
}

fn drive(
    configuration: Configuration,
    ops: &[KeyedOp],
    seed: u64,
    run: &mut Run,
) -> Result<(), Error> {
    let log = configuration.try_open(&run.disk)?;
    let mut oracle = KeyedOracle::new(configuration.lengths());
    for (step, op) in (seed..).zip(ops) {
        apply(&log, op)?;
        oracle.answer(op);
        if step.is_multiple_of(17) {
            run.cuts.push(pairs(&oracle));
            log.checkpoint(cut_of(step))?;
            run.completed = run.cuts.len() - 1;
        }
        if step.is_multiple_of(29) {
            log.compact([0.3, 1.0][(step % 2) as usize])?;
        }
    }
    // With the log's own threads at work, the power may go as late as here.
    assert_eq!(try_contents(&log)?, pairs(&oracle), "{configuration:?}, seed {seed}");
    Ok(())
}

fn cut_of(step: u64) -> Cut {
    if step.is_multiple_of(3) { Cut::Full } else { Cut::Incremental }
}

/// Errors of operations but those that are right answers.
fn apply(log: &HashLog, op: &KeyedOp) -> Result<(), Error> {
    let done = match op {
        KeyedOp::Put(key, value) => log.put(key, value),
        KeyedOp::PutIfAbsent(key, value) => log.put_if_absent(key, value).map(drop),
        KeyedOp::Remove(key) => log.remove(key).map(drop),
        KeyedOp::Add(key, delta) => log.add(key, *delta).map(drop),
        KeyedOp::CompareAndPut(key, expected, new) => {
            log.compare_and_put(key, expected, new).map(drop)
        }
        KeyedOp::PutMany(pairs) => log.put_many(pairs).map_err(|batch| batch.error),
        KeyedOp::AddMany(deltas) => log.add_many(deltas).map_err(|batch| batch.error),
        KeyedOp::Clear => log.clear(),
        _ => Ok(()),
    };
    match done {
        Err(error @ (Error::Io { .. } | Error::Corrupt { .. })) => Err(error),
        _ => Ok(()),
    }
}

/// Whether `drive` knows what an operation does.
fn is_driven(op: &KeyedOp) -> bool {
    matches!(
        op,
        KeyedOp::Put(..)
            | KeyedOp::PutIfAbsent(..)
            | KeyedOp::Remove(..)
            | KeyedOp::Add(..)
            | KeyedOp::CompareAndPut(..)
            | KeyedOp::PutMany(..)
            | KeyedOp::AddMany(..)
            | KeyedOp::Clear
    )
}

/// The power goes after any change of the disk: what is left opens, and is exactly what some
/// checkpoint saw, none older than the last that returned. `CRASHES=n` looks at n images.
#[test]
fn any_crash_leaves_a_checkpoint_that_opens() {
    let images = number_of_environment("CRASHES", 4_000);
    let in_progress = std::cell::Cell::new(0);
    let configurations = || ON_DISK.into_iter().chain(KEPT_SHORT);
    case!().seeds(images.div_ceil(4 * configurations().count() as u64), |seed| {
        for configuration in configurations() {
            let spec = KeyedSpec {
                key_count: 60,
                values: ValueShape::Small,
                ..KeyedSpec::random(seed, 150, configuration.lengths())
            };
            let ops: Vec<KeyedOp> = spec.ops(seed).into_iter().filter(is_driven).collect();
            let whole = run(configuration, &ops, seed, None);
            assert_eq!(whole.ended, None, "{configuration:?}");
            assert_eq!(whole.completed + 1, whole.cuts.len());
            let changes = whole.disk.operations();
            for turn in 0..2 {
                let power = seed.wrapping_mul(0x9E37_79B9).wrapping_add(turn * 7_919) % changes;
                let cut_off = run(configuration, &ops, seed, Some(power));
                let what = format!("{configuration:?}, power for {power} of {changes} changes");
                // Files that are no longer needed are removed last; that may fail unnoticed.
                assert!(matches!(cut_off.ended, None | Some(Error::Io { .. })), "{what}");
                for image in 0..2 {
                    let left = check_image(configuration, &cut_off, seed + image, &what);
                    in_progress.set(in_progress.get() + u64::from(left));
                }
            }
        }
    });
    assert!(images < 100 || in_progress.get() > 0, "no crash met a checkpoint in progress");
}

/// Opens what a crash left; whether it is a checkpoint that had not returned.
fn check_image(configuration: Configuration, run: &Run, seed: u64, what: &str) -> bool {
    let image = run.disk.crash(seed);
    let log = configuration.try_open(&image);
    let log = log.unwrap_or_else(|error| panic!("{what}, image {seed}: {error}"));
    log.check().unwrap_or_else(|told| panic!("{what}, image {seed}: {told}"));
    let held = contents(&log);
    let cut = run.cuts.iter().rposition(|cut| *cut == held);
    let Some(cut) = cut else {
        panic!("{what}, image {seed}: no checkpoint saw {held:?}");
    };
    let least = run.completed;
    assert!(cut >= least, "{what}, image {seed}: checkpoint {cut}, but {least} had returned");
    for (key, value) in &held {
        assert_eq!(log.get(key), Ok(Some(value.clone())), "{what}, image {seed}");
    }
    // The log goes on from there.
    log.put(&key(1), &value(1)).unwrap();
    log.checkpoint(Cut::Incremental).unwrap();
    let held = contents(&log);
    drop(log);
    assert_eq!(contents(&configuration.open(&image)), held, "{what}, image {seed}");
    cut > least
}

/// Every combination of what a crash may keep of the last checkpoint's changes, not a sample.
#[test]
fn every_image_of_a_checkpoint_in_progress_opens() {
    for configuration in [COLDEST, ON_DISK[1]] {
        let changes = |power: Option<u64>| {
            let disk = SimDisk::new();
            let log = configuration.open(&disk);
            for index in 0..30 {
                log.put(&key(index), &value(index)).unwrap();
            }
            log.checkpoint(Cut::Full).unwrap();
            let older = contents(&log);
            log.remove(&key(3)).unwrap();
            log.put(&key(40), &value(40)).unwrap();
            let newer = contents(&log);
            let before = disk.operations();
            power.into_iter().for_each(|count| disk.stop_after(count));
            let done = log.checkpoint(Cut::Incremental);
            (disk.operations() - before, disk, older, newer, done)
        };
        let (count, ..) = changes(None);
        for power in 0..=count {
            let (_, disk, older, newer, done) = changes(Some(power));
            for image in disk.crash_images(64) {
                let held = contents(&configuration.open(&image));
                let right = held == newer || held == older && done.is_err();
                assert!(right, "{configuration:?}, power for {power} of {count}, {done:?}");
            }
        }
    }
}

fn pairs(oracle: &KeyedOracle) -> Vec<Pair> {
    oracle.entries().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}
