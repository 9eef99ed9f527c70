//! The order of measurements.

use super::contenders::{Loaded, Timed};
use super::memory::{self, Memory};
use super::workload::{Client, Workload};
use super::{Plan, processes, redis_benchmark};
use crate::Error;
use crate::figures::Rates;
use crate::rounds::{latencies, progress, rounds};

/// All figures of a run.
pub(crate) struct Figures {
    pub(crate) objects: u32,
    pub(crate) rates: Rates<Workload>,
    pub(crate) memory: Vec<Memory>,
    /// Servers and clients that are not installed, in a sentence each.
    pub(crate) missing: Vec<String>,
}

pub(crate) fn measure(plan: &Plan) -> Result<Figures, Error> {
    let memory = match plan.idle_connections {
        None => Vec::new(),
        Some(connections) => memory::measure(&plan.servers, plan.objects, connections)?,
    };
    let (servers, mut missing) = processes::start(&plan.servers)?;
    let has_redis_benchmark = redis_benchmark::is_installed();
    if !has_redis_benchmark {
        missing.push("redis-benchmark is not installed: Debian has it in redis-tools".to_owned());
    }
    let mut contenders = Vec::new();
    for server in servers {
        contenders.push(Loaded::new(server, has_redis_benchmark)?);
    }
    let mut rates = Rates::default();
    let bar = progress(plan.workloads.len() * plan.runs * contenders.len());
    for &workload in &plan.workloads {
        if matches!(workload, Workload::Sum(_)) {
            for contender in &mut contenders {
                contender.load_objects(plan.objects)?;
            }
        }
        let run = |round| Timed {
            workload,
            round,
            time: plan.time,
            rate: plan.rate,
            objects: plan.objects,
        };
        rounds(&mut contenders, &mut rates, &bar, plan.runs, run, |_| None)?;
        let is_timed = matches!(
            workload,
            Workload::Requests {
                client: Client::RedisBenchmark | Client::Closed | Client::Open,
                ..
            }
        );
        if is_timed {
            latencies(&mut contenders, &mut rates, &bar, &run(0))?;
        }
    }
    bar.finish_and_clear();
    Ok(Figures { objects: plan.objects, rates, memory, missing })
}
