//! A workload on a server.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::load_generator::{Done, Load};
use super::processes::{MEMCACHED, SAPWOOD, Server};
use super::protocol::Protocol;
use super::redis_benchmark;
use super::wire::{digits, load, request};
use super::workload::{Client, Command, Sum, Workload};
use crate::Error;
use crate::figures::Percentiles;
use crate::rounds::{Contender, Outcome, Run};
use crate::tally::Tally;

/// Keys that the load generators draw from.
const KEYS: u32 = 100_000;
/// The table of objects that `SW.AGGREGATE` adds up.
const TABLE: &[u8] = b"objects";
/// Objects that a script adds up in a call, since it holds all other clients back.
const SCRIPT_OBJECTS: u32 = 100_000;
const SCRIPT: &[u8] = b"local sum = 0; for i = ARGV[1], ARGV[2] - 1 do \
    sum = sum + redis.call('GET', string.format('%08d', i)) end; return string.format('%d', sum)";

/// A run of a workload.
pub(crate) struct Timed {
    pub(crate) workload: Workload,
    pub(crate) round: usize,
    pub(crate) time: Duration,
    pub(crate) rate: u32,
    pub(crate) objects: u32,
}

impl Run for Timed {
    type Workload = Workload;

    fn workload(&self) -> Workload {
        self.workload
    }

    fn threads(&self) -> usize {
        1
    }

    fn operations(&self) -> usize {
        // Runs are of a time, and count themselves.
        0
    }
}

/// A server under load.
pub(crate) struct Loaded {
    pub(crate) server: Server,
    /// Whether `redis-benchmark` can be run.
    pub(crate) has_redis_benchmark: bool,
    /// Requests a second, as last measured: how many make a run of a time.
    rates: HashMap<String, f64>,
    /// Whether the objects are there.
    has_objects: bool,
    /// Latencies of the last runs.
    latencies: HashMap<String, Percentiles>,
}

impl Loaded {
    pub(crate) fn new(server: Server, has_redis_benchmark: bool) -> Result<Loaded, Error> {
        let loaded = Loaded {
            server,
            has_redis_benchmark,
            rates: HashMap::new(),
            has_objects: false,
            latencies: HashMap::new(),
        };
        if !loaded.server.is_floor() {
            let mut wire = loaded.server.connect()?;
            load(&mut wire, KEYS, |number, out| {
                let key = digits(number);
                loaded.server.protocol().set(&key, &key, out);
            })?;
        }
        Ok(loaded)
    }

    /// Puts the objects: under keys of 8 digits, and into a table of our own server.
    pub(crate) fn load_objects(&mut self, objects: u32) -> Result<(), Error> {
        if std::mem::replace(&mut self.has_objects, true) || self.server.is_floor() {
            return Ok(());
        }
        let mut wire = self.server.connect()?;
        load(&mut wire, objects, |number, out| {
            let key = digits(number);
            self.server.protocol().set(&key, &key, out);
        })?;
        if self.server.name == SAPWOOD {
            let create: [&[u8]; 8] = [
                b"SW.CREATE",
                TABLE,
                b"ENGINE",
                b"hash",
                b"RECORD",
                b"fixed8",
                b"LAYOUT",
                b"amount:i64le",
            ];
            wire.ask(&create)?;
            let mut values = Vec::new();
            load(&mut wire, objects.div_ceil(100), |chunk, out| {
                let numbers = chunk * 100..objects.min(chunk * 100 + 100);
                values.clear();
                values.extend(numbers.map(|it| (digits(it), i64::from(it).to_le_bytes())));
                let mut args: Vec<&[u8]> = vec![b"SW.MPUT", TABLE];
                for (key, value) in &values {
                    args.extend([&key[..], &value[..]]);
                }
                request(&args, out);
            })?;
        }
        Ok(())
    }

    fn requests(
        &mut self,
        run: &Timed,
        client: Client,
        command: Command,
        connections: usize,
        pipeline: usize,
    ) -> Result<Outcome, Error> {
        let name = crate::figures::Timed::name(run.workload);
        let (requests, elapsed, percentiles) = if client == Client::RedisBenchmark {
            let of_time = |rate: f64| (rate * run.time.as_secs_f64()) as usize;
            // The first run finds the rate.
            let known = self.rates.get(&name).copied();
            let requests = known.map_or(2_000 * pipeline, of_time).max(1_000);
            let done = redis_benchmark::run(
                self.server.address,
                command,
                connections,
                pipeline,
                KEYS,
                requests,
            )?;
            let rate = done.requests as f64 / done.elapsed.as_secs_f64();
            self.rates.insert(name.clone(), rate);
            if known.is_none() {
                return self.requests(run, client, command, connections, pipeline);
            }
            (done.requests, done.elapsed, done.percentiles)
        } else {
            let load = Load {
                address: self.server.address,
                protocol: self.server.protocol(),
                command,
                connections,
                pipeline,
                keys: KEYS,
                lengths: [8, 8],
                time: run.time,
                rate: (client == Client::Open).then_some(run.rate),
                is_checked: !self.server.is_floor(),
            };
            let Done { requests, elapsed, latencies } = load.run(run.round as u64)?;
            (requests, elapsed, Percentiles::from(&latencies))
        };
        self.latencies.insert(name, percentiles);
        Ok(Outcome { elapsed, tally: Tally::default(), operations: Some(requests) })
    }

    fn sum(&mut self, run: &Timed, sum: Sum) -> Result<Outcome, Error> {
        let objects = run.objects;
        self.load_objects(objects)?;
        let mut wire = self.server.connect()?;
        let mut aggregate = Vec::new();
        if let Sum::Aggregate(executor) = sum {
            aggregate_request(executor, aggregated(executor, objects), &mut aggregate);
        }
        let begin = Instant::now();
        let mut operations = 0;
        let mut next = 0;
        let mut bytes = Vec::new();
        while begin.elapsed() < run.time {
            let from = next % objects;
            let (count, expects) = match sum {
                Sum::Pipelined(count) => (objects.min(from + count as u32) - from, count),
                Sum::MGet => (objects.min(from + 1_000) - from, 1),
                Sum::Lua => (objects.min(from + SCRIPT_OBJECTS) - from, 1),
                Sum::Aggregate(executor) => (aggregated(executor, objects), 1),
            };
            let from = if matches!(sum, Sum::Aggregate(_)) { 0 } else { from };
            let wanted: i64 = (i64::from(from)..i64::from(from + count)).sum();
            bytes.clear();
            match sum {
                Sum::Pipelined(_) => {
                    let protocol = self.server.protocol();
                    (from..from + count).for_each(|it| protocol.get(&digits(it), &mut bytes));
                }
                Sum::MGet => {
                    let keys: Vec<_> = (from..from + count).map(digits).collect();
                    let mut args: Vec<&[u8]> = vec![b"MGET"];
                    args.extend(keys.iter().map(|key| &key[..]));
                    request(&args, &mut bytes);
                }
                Sum::Lua => {
                    let (from, to) = (from.to_string(), (from + count).to_string());
                    let args: [&[u8]; 5] = [b"EVAL", SCRIPT, b"0", from.as_bytes(), to.as_bytes()];
                    request(&args, &mut bytes);
                }
                Sum::Aggregate(_) => bytes.extend_from_slice(&aggregate),
            }
            wire.send(&bytes)?;
            let expects = if matches!(sum, Sum::Pipelined(_)) { count as usize } else { expects };
            let mut found = 0;
            for _ in 0..expects {
                let reply = wire.reply()?;
                found += match sum {
                    Sum::Pipelined(_) => number(self.server.protocol().value(reply))?,
                    Sum::Lua => number(Protocol::Redis.value(reply))?,
                    Sum::MGet => reply
                        .split(|byte| *byte == b'\n')
                        .filter(|line| line.len() == 9 && line.ends_with(b"\r"))
                        .map(|line| number(line.get(..8)))
                        .sum::<Result<i64, Error>>()?,
                    Sum::Aggregate(_) => {
                        let digits = wanted.to_string();
                        let is_there =
                            reply.windows(digits.len()).any(|part| part == digits.as_bytes());
                        if is_there { wanted } else { -1 }
                    }
                };
            }
            if found != wanted {
                return Err(format!("the sum is {found}, not {wanted}").into());
            }
            operations += count as usize;
            next = if from + count >= objects { 0 } else { from + count };
        }
        let elapsed = begin.elapsed();
        Ok(Outcome { elapsed, tally: Tally::default(), operations: Some(operations) })
    }
}

/// The objects that a request adds up: a list of keys has its bounds, other executors take all.
fn aggregated(executor: &str, objects: u32) -> u32 {
    const LISTED_MAX: u32 = 100_000;
    if executor == "lookup" { objects.min(LISTED_MAX) } else { objects }
}

fn aggregate_request(executor: &str, objects: u32, out: &mut Vec<u8>) {
    let keys: Vec<_> = (0..objects).map(digits).collect();
    let count = objects.to_string();
    let mut args: Vec<&[u8]> = vec![b"SW.AGGREGATE", TABLE, b"SELECT", b"sum(amount)"];
    if executor == "lookup" {
        args.extend([&b"KEYS"[..], count.as_bytes()]);
        args.extend(keys.iter().map(|key| &key[..]));
    }
    args.extend([&b"USING"[..], executor.as_bytes()]);
    request(&args, out);
}

fn number(bytes: Option<&[u8]>) -> Result<i64, Error> {
    let bytes = bytes.ok_or("an object is missing")?;
    Ok(std::str::from_utf8(bytes)?.parse()?)
}

impl Contender<Timed> for Loaded {
    fn name(&self) -> &str {
        self.server.name
    }

    fn runs(&self, workload: Workload) -> bool {
        // Redis's client and its commands of many keys are not for memcached.
        let is_redis = self.server.protocol() == Protocol::Redis;
        match workload {
            Workload::Sum(_) if self.server.is_floor() => false,
            Workload::Requests { client: Client::RedisBenchmark, .. } => {
                self.has_redis_benchmark && is_redis
            }
            Workload::Requests { .. } => true,
            Workload::Sum(Sum::Aggregate(_)) => self.server.name == SAPWOOD,
            Workload::Sum(Sum::Lua) => ![SAPWOOD, MEMCACHED].contains(&self.server.name),
            Workload::Sum(Sum::MGet) => is_redis,
            Workload::Sum(_) => true,
        }
    }

    fn run(&mut self, run: &Timed) -> Result<Outcome, Error> {
        match run.workload {
            Workload::Requests { client, command, connections, pipeline } => {
                self.requests(run, client, command, connections, pipeline)
            }
            Workload::Sum(sum) => self.sum(run, sum),
        }
    }

    /// Those of the last run.
    fn latencies(&mut self, run: &Timed) -> Result<Percentiles, Error> {
        let name = crate::figures::Timed::name(run.workload);
        self.latencies.get(&name).copied().ok_or_else(|| "no run was timed".into())
    }
}
