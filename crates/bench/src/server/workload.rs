//! What is timed.

use crate::figures::{Timed, Unit};

/// The client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// `redis-benchmark`.
    RedisBenchmark,
    /// Ours: each connection sends when its replies have come.
    Closed,
    /// Ours: requests are sent by the clock, and late ones count from when they were due.
    Open,
}

/// The command of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Set,
    Get,
}

/// How objects come into a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sum {
    /// A client fetches so many with a request each before it waits.
    Pipelined(usize),
    /// A client fetches 1,000 with one `MGET`.
    MGet,
    /// A script in the server adds them up.
    Lua,
    /// `SW.AGGREGATE`, by the name of an executor.
    Aggregate(&'static str),
}

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workload {
    Requests { client: Client, command: Command, connections: usize, pipeline: usize },
    Sum(Sum),
}

impl Workload {
    pub(crate) fn all() -> impl Iterator<Item = Workload> {
        let shapes = [50, 1].into_iter().flat_map(|connections| {
            [1, 16, 64].into_iter().map(move |pipeline| (connections, pipeline))
        });
        let requests =
            [Client::RedisBenchmark, Client::Closed].into_iter().flat_map(move |client| {
                shapes.clone().flat_map(move |(connections, pipeline)| {
                    [Command::Set, Command::Get].into_iter().map(move |command| {
                        Workload::Requests { client, command, connections, pipeline }
                    })
                })
            });
        let open = [Command::Set, Command::Get].into_iter().map(|command| Workload::Requests {
            client: Client::Open,
            command,
            connections: 50,
            pipeline: 1,
        });
        requests.chain(open).chain(Sum::ALL.into_iter().map(Workload::Sum))
    }
}

impl Sum {
    pub(crate) const ALL: [Sum; 8] = [
        Sum::Pipelined(1),
        Sum::Pipelined(16),
        Sum::Pipelined(64),
        Sum::MGet,
        Sum::Lua,
        Sum::Aggregate("lookup"),
        Sum::Aggregate("walk"),
        Sum::Aggregate("log"),
    ];
}

impl Timed for Workload {
    fn name(self) -> String {
        match self {
            Workload::Requests { client, command, connections, pipeline } => {
                let client = match client {
                    Client::RedisBenchmark => "redis-benchmark",
                    Client::Closed => "closed loop",
                    Client::Open => "open loop",
                };
                let command = match command {
                    Command::Set => "SET",
                    Command::Get => "GET",
                };
                format!("{command}, {connections} connections, pipeline of {pipeline}, {client}")
            }
            Workload::Sum(Sum::Pipelined(1)) => "sum by GET, one at a time".to_owned(),
            Workload::Sum(Sum::Pipelined(count)) => format!("sum by GET, pipeline of {count}"),
            Workload::Sum(Sum::MGet) => "sum by MGET of 1,000".to_owned(),
            Workload::Sum(Sum::Lua) => "sum by a Lua script".to_owned(),
            Workload::Sum(Sum::Aggregate(executor)) => format!("sum by SW.AGGREGATE, {executor}"),
        }
    }

    fn unit(self) -> Unit {
        match self {
            Workload::Requests { .. } => Unit::Operations,
            Workload::Sum(_) => Unit::Objects,
        }
    }
}
