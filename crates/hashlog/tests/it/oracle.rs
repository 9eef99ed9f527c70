//! On one thread the log is indistinguishable from a map, in every configuration, whatever is
//! checkpointed, compacted and reopened in between.

use crate::adapter::{
    Adapter, COLDEST, Configuration, IN_MEMORY, KEPT_SHORT, NASTIEST, ON_DISK, TOLD,
};
use rand::RngExt as _;
use sapwood_disk::SimDisk;
use sapwood_hashlog::{Cut, HashLog};
use sapwood_testkit::case;
use sapwood_testkit::keyed::op::{KeyedOp, verify};
use sapwood_testkit::keyed::oracle::KeyedOracle;
use sapwood_testkit::keyed::stream::KeyedSpec;
use sapwood_testkit::keys::KeyShape;
use sapwood_testkit::runner::{Step, check_against_oracle};
use sapwood_testkit::stream::KeyOrder;
use sapwood_testkit::values::ValueShape;

#[track_caller]
fn check(configuration: Configuration, spec: &KeyedSpec, seed: u64) {
    let ops = spec.ops(seed);
    if let Err(divergence) = check_against_oracle(|| configuration.adapter(), &ops) {
        panic!("{configuration:?} {spec:?}\n{divergence}");
    }
}

fn random(configuration: Configuration, seed: u64, op_count: usize) -> KeyedSpec {
    KeyedSpec::random(seed, op_count, configuration.lengths())
}

#[test]
fn streams_of_every_shape_in_the_nastiest_configurations() {
    case!().seeds(60, |seed| {
        for configuration in [NASTIEST, IN_MEMORY[1]] {
            check(configuration, &random(configuration, seed, 600), seed);
        }
    });
}

#[test]
fn streams_of_every_shape_in_every_configuration() {
    case!().seeds(12, |seed| {
        for configuration in IN_MEMORY.into_iter().chain(ON_DISK).chain(TOLD) {
            check(configuration, &random(configuration, seed, 500), seed);
        }
    });
}

#[test]
fn streams_with_nearly_everything_on_the_disk() {
    case!().seeds(30, |seed| {
        for configuration in [COLDEST, ON_DISK[1]] {
            check(configuration, &random(configuration, seed, 500), seed);
        }
    });
}

#[test]
fn streams_over_logs_that_compact_themselves() {
    case!().seeds(12, |seed| {
        for configuration in KEPT_SHORT {
            check(configuration, &random(configuration, seed, 500), seed);
        }
    });
}

/// The index grows from one bucket to hundreds and more.
#[test]
fn long_streams_over_many_keys() {
    case!().seeds(2, |seed| {
        for configuration in [IN_MEMORY[0], IN_MEMORY[3], ON_DISK[0], ON_DISK[3]] {
            let spec = KeyedSpec {
                op_count: 2_500,
                keys: KeyShape::DenseInts,
                key_count: 2_000,
                order: KeyOrder::ALL[seed as usize % KeyOrder::ALL.len()],
                values: ValueShape::Small,
                lengths: configuration.lengths(),
            };
            check(configuration, &spec, seed);
        }
    });
}

/// What a memory budget without a directory refuses is not done, and nothing else is lost.
#[test]
fn a_budget_that_is_always_near_refuses_and_loses_nothing() {
    case!().seeds(25, |seed| {
        for configuration in [NASTIEST, IN_MEMORY[2], IN_MEMORY[3]] {
            let mut options = configuration.options();
            options.memory_budget = Some(48 << 10);
            let spec = random(configuration, seed, 400);
            let make = || {
                let log = HashLog::in_memory(options.clone()).expect("room for an empty log");
                Adapter::new(log, configuration)
            };
            if let Err(divergence) = check_against_oracle(make, &spec.ops(seed)) {
                panic!("{configuration:?} {spec:?}\n{divergence}");
            }
        }
    });
}

/// An operation on a log in a directory.
#[derive(Debug, Clone)]
enum Stored {
    Op(KeyedOp),
    Checkpoint(Cut),
    /// Of so many percent of the log.
    Compact(u8),
    Reopen,
}

/// A log, and the directory it can be opened from again.
struct Stage {
    disk: SimDisk,
    configuration: Configuration,
    /// None only while it is closed.
    adapter: Option<Adapter>,
}

impl Stage {
    fn new(configuration: Configuration) -> Self {
        let mut stage = Stage { disk: SimDisk::new(), configuration, adapter: None };
        stage.reopen().expect("an empty directory opens");
        stage
    }

    fn reopen(&mut self) -> sapwood_hashlog::Result<()> {
        self.adapter = None;
        let log = self.configuration.try_open(&self.disk)?;
        self.adapter = Some(Adapter::new(log, self.configuration));
        Ok(())
    }

    fn adapter(&self) -> &Adapter {
        self.adapter.as_ref().expect("an open log")
    }
}

/// What is in the log, and what a log that is opened again must hold.
struct Model {
    now: KeyedOracle,
    saved: KeyedOracle,
}

impl Step<Stage> for Stored {
    type Model = Model;

    fn model(stage: &Stage) -> Model {
        let empty = KeyedOracle::new(stage.configuration.lengths());
        Model { now: empty.clone(), saved: empty }
    }

    fn take(&self, stage: &mut Stage, model: &mut Model) -> Result<(), String> {
        let told = |error: sapwood_hashlog::Error| format!("{self:?}: {error}");
        match self {
            Stored::Op(op) => {
                let adapter = stage.adapter.as_mut().expect("an open log");
                return op.take(adapter, &mut model.now);
            }
            Stored::Checkpoint(cut) => {
                stage.adapter().log.checkpoint(*cut).map_err(told)?;
                model.saved = model.now.clone();
            }
            Stored::Compact(percent) => {
                stage.adapter().log.compact(f64::from(*percent) / 100.0).map_err(told)?;
            }
            Stored::Reopen => {
                stage.reopen().map_err(told)?;
                model.now = model.saved.clone();
            }
        }
        verify(stage.adapter(), &model.now).map_err(|what| format!("after {self:?}: {what}"))
    }

    fn verify(stage: &Stage, model: &Model) -> Result<(), String> {
        verify(stage.adapter(), &model.now)
    }
}

/// The operations of a spec with checkpoints, compactions and reopenings in between.
fn stored(spec: &KeyedSpec, seed: u64) -> Vec<Stored> {
    let mut rng = sapwood_testkit::rng(seed ^ 0x0D15_C0DE);
    let mut ops = Vec::new();
    for op in spec.ops(seed) {
        ops.push(Stored::Op(op));
        match rng.random_range(0..100) {
            0..2 => ops.push(Stored::Checkpoint(Cut::Incremental)),
            2 => ops.push(Stored::Checkpoint(Cut::Full)),
            3..5 => ops.push(Stored::Compact([0, 30, 50, 100][rng.random_range(0..4)])),
            5 => ops.push(Stored::Reopen),
            _ => {}
        }
    }
    ops
}

#[test]
fn streams_with_checkpoints_compactions_and_reopenings() {
    case!().seeds(16, |seed| {
        for configuration in ON_DISK.into_iter().chain(KEPT_SHORT) {
            let spec = random(configuration, seed, 300);
            let made = check_against_oracle(|| Stage::new(configuration), &stored(&spec, seed));
            if let Err(divergence) = made {
                panic!("{configuration:?} {spec:?}\n{divergence}");
            }
        }
    });
}
