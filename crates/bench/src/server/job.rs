//! The timed requests and sums.

use std::time::Duration;

use crate::harness::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    RedisBenchmark,
    /// Ours: each connection sends when its replies have come.
    Closed,
    /// Ours: requests are sent by the clock, and late ones count from when they were due.
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Set,
    Get,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sum {
    /// A client fetches so many with a request each before it waits.
    Pipelined(u32),
    MGet,
    Lua,
    /// `SW.AGGREGATE`, by the name of an executor.
    Aggregate(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerWorkload {
    Requests(Requests),
    Sum(Sum),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Requests {
    pub(crate) client: Client,
    pub(crate) command: Verb,
    pub(crate) connections: usize,
    pub(crate) pipeline: usize,
}

/// Workloads by their names: requests of each client, by connections and pipelines; sums.
macro_rules! workloads {
    (requests { $($client:ident $said:literal: $($connections:literal x $pipeline:literal),*;)* }
     sums { $($sum:expr => $name:literal;)* }) => {
        const WORKLOADS: &[(&str, ServerWorkload); 34] = &[
            $($(
                workloads!(@ Set "SET", $client $said, $connections $pipeline),
                workloads!(@ Get "GET", $client $said, $connections $pipeline),
            )*)*
            $(($name, ServerWorkload::Sum($sum)),)*
        ];
    };
    (@ $command:ident $verb:literal, $client:ident $said:literal, $connections:literal $pipeline:literal) => {
        (
            concat!($verb, ", ", $connections, " connections, pipeline of ", $pipeline, ", ", $said),
            ServerWorkload::Requests(Requests {
                client: Client::$client,
                command: Verb::$command,
                connections: $connections,
                pipeline: $pipeline,
            }),
        )
    };
}

workloads! {
    requests {
        RedisBenchmark "redis-benchmark": 50 x 1, 50 x 16, 50 x 64, 1 x 1, 1 x 16, 1 x 64;
        Closed "closed loop": 50 x 1, 50 x 16, 50 x 64, 1 x 1, 1 x 16, 1 x 64;
        Open "open loop": 50 x 1;
    }
    sums {
        Sum::Pipelined(1) => "sum by GET, one at a time";
        Sum::Pipelined(16) => "sum by GET, pipeline of 16";
        Sum::Pipelined(64) => "sum by GET, pipeline of 64";
        Sum::MGet => "sum by MGET of 1,000";
        Sum::Lua => "sum by a Lua script";
        Sum::Aggregate("lookup") => "sum by SW.AGGREGATE, lookup";
        Sum::Aggregate("walk") => "sum by SW.AGGREGATE, walk";
        Sum::Aggregate("log") => "sum by SW.AGGREGATE, log";
    }
}

pub(crate) const NAMES: [&str; WORKLOADS.len()] = names(WORKLOADS);

impl ServerWorkload {
    pub(crate) fn named(name: &str) -> Option<ServerWorkload> {
        WORKLOADS.iter().find(|(known, _)| *known == name).map(|(_, workload)| *workload)
    }
}

pub(crate) struct ServerJob {
    pub(crate) workload: ServerWorkload,
    pub(crate) round: usize,
    pub(crate) time: Duration,
    pub(crate) rate: u32,
    pub(crate) objects: u32,
}

impl Job for ServerJob {
    fn workload(&self) -> String {
        let named = WORKLOADS.iter().find(|(_, workload)| *workload == self.workload);
        named.map_or_else(String::new, |(name, _)| (*name).to_owned())
    }

    fn unit(&self) -> &'static Unit {
        if matches!(self.workload, ServerWorkload::Sum(_)) { &OBJECTS } else { &OPERATIONS }
    }
}
