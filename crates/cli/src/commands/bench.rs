//! `sapwood bench`: the workloads of `sapwood_bench`.

use std::io;

use crate::args::{Bench, BenchEngine};
use crate::terminal::exit::{Failure, Outcome};

pub(crate) fn run(args: &Bench) -> Outcome {
    let measured = match &args.engine {
        BenchEngine::Ordered(ordered) => sapwood_bench::ordered::run(ordered),
        BenchEngine::Hash(hash) => sapwood_bench::hash::run(hash),
        BenchEngine::Aggregate(aggregate) => sapwood_bench::aggregate::run(aggregate),
        BenchEngine::Server(server) => sapwood_bench::server::run(server),
        BenchEngine::Rollup(rollup) => sapwood_bench::rollup::run(rollup),
        BenchEngine::Sql(sql) => sapwood_bench::sql::run(sql),
        BenchEngine::Trees(trees) => sapwood_bench::trees::run(trees),
        BenchEngine::Durability(durability) => sapwood_bench::durability::run(durability),
        BenchEngine::Plot(plot) => sapwood_bench::plot::run(plot),
    };
    measured.map_err(|error| match error.downcast::<io::Error>() {
        Ok(error) if error.kind() == io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        Ok(error) => Failure::Failed(error.to_string()),
        Err(error) => Failure::Failed(error.to_string()),
    })
}
