//! A job on a server.

use std::collections::HashMap;
use std::time::Instant;

use super::job::{Client, Requests, ServerJob, ServerWorkload, Sum};
use super::load_generator::RequestLoad;
use super::processes::{MEMCACHED, SAPWOOD, Server};
use super::protocol::{Protocol, request};
use super::redis_benchmark;
use super::wire::{Wire, digits, load};
use crate::harness::*;

const KEYS: u32 = 100_000;
/// The table of objects that `SW.AGGREGATE` adds up.
const TABLE: &[u8] = b"objects";
/// Objects that a script adds up in a call, since it holds all other clients back, and that a list
/// of keys has at most.
const SCRIPT_OBJECTS: u32 = 100_000;
const LISTED_MAX: u32 = 100_000;
const SCRIPT: &[u8] = b"local sum = 0; for i = ARGV[1], ARGV[2] - 1 do \
    sum = sum + redis.call('GET', string.format('%08d', i)) end; return string.format('%d', sum)";

pub(crate) struct Loaded {
    server: Server,
    has_redis_benchmark: bool,
    /// Requests a second of `redis-benchmark`, as last measured: how many make a run of a time.
    rates: HashMap<String, f64>,
    has_objects: bool,
}

impl Loaded {
    pub(crate) fn new(server: Server, has_redis_benchmark: bool) -> Result<Loaded> {
        let rates = HashMap::new();
        let loaded = Loaded { server, has_redis_benchmark, rates, has_objects: false };
        loaded.put(KEYS)?;
        Ok(loaded)
    }

    fn put(&self, keys: u32) -> Result {
        if self.server.is_floor() {
            return Ok(());
        }
        load(&mut self.server.connect()?, keys, |number, out| {
            let key = digits(number);
            self.server.protocol().set(&key, &key, out);
        })
    }

    pub(crate) fn load_objects(&mut self, objects: u32) -> Result {
        if std::mem::replace(&mut self.has_objects, true) {
            return Ok(());
        }
        self.put(objects)?;
        if self.server.name != SAPWOOD {
            return Ok(());
        }
        let mut wire = self.server.connect()?;
        let create = "SW.CREATE objects ENGINE hash RECORD fixed8 LAYOUT amount:i64le";
        wire.ask(&create.split(' ').map(str::as_bytes).collect::<Vec<_>>())?;
        load(&mut wire, objects.div_ceil(100), |chunk, out| {
            let numbers = chunk * 100..objects.min(chunk * 100 + 100);
            let values: Vec<_> =
                numbers.map(|it| (digits(it), i64::from(it).to_le_bytes())).collect();
            let mut args: Vec<&[u8]> = vec![b"SW.MPUT", TABLE];
            values.iter().for_each(|(key, value)| args.extend([&key[..], &value[..]]));
            request(&args, out);
        })
    }

    fn requests(&mut self, job: &ServerJob, of: Requests) -> Result<Outcome> {
        let address = self.server.address;
        let done = if of.client == Client::RedisBenchmark {
            let run = |requests: usize| redis_benchmark::run(address, of, KEYS, requests);
            let name = job.workload();
            // The first run finds the rate.
            let known = match self.rates.get(&name) {
                Some(known) => *known,
                None => run((2_000 * of.pipeline).max(1_000))?.rate(),
            };
            let done = run(((known * job.time.as_secs_f64()) as usize).max(1_000))?;
            self.rates.insert(name, done.rate());
            done
        } else {
            let load = RequestLoad {
                address,
                protocol: self.server.protocol(),
                of,
                keys: KEYS,
                lengths: [8, 8],
                time: job.time,
                rate: (of.client == Client::Open).then_some(job.rate),
                is_checked: !self.server.is_floor(),
            };
            load.run(job.round as u64)?
        };
        let mut outcome = Outcome::of(done.requests, done.elapsed, Tally::default());
        outcome.figures.push(Figure::latencies(done.latencies));
        Ok(outcome)
    }

    fn sum(&mut self, job: &ServerJob, sum: Sum) -> Result<Outcome> {
        let objects = job.objects;
        self.load_objects(objects)?;
        let mut wire = self.server.connect()?;
        let protocol = self.server.protocol();
        let mut aggregate = Vec::new();
        if let Sum::Aggregate(executor) = sum {
            aggregate_request(executor, sum.count(0, objects), &mut aggregate);
        }
        let begin = Instant::now();
        let (mut operations, mut from) = (0, 0);
        let mut bytes = Vec::new();
        while begin.elapsed() < job.time {
            let count = sum.count(from, objects);
            let wanted: i64 = (i64::from(from)..i64::from(from + count)).sum();
            bytes.clear();
            match sum {
                Sum::Aggregate(_) => bytes.extend_from_slice(&aggregate),
                _ => sum.request(protocol, from..from + count, &mut bytes),
            }
            wire.send(&bytes)?;
            let found = sum.found(protocol, &mut wire, count, wanted)?;
            if found != wanted {
                bail!("the sum is {found}, not {wanted}");
            }
            operations += count as usize;
            let is_all = matches!(sum, Sum::Aggregate(_)) || from + count >= objects;
            from = if is_all { 0 } else { from + count };
        }
        Ok(Outcome::of(operations, begin.elapsed(), Tally::default()))
    }
}

impl Sum {
    fn count(self, from: u32, objects: u32) -> u32 {
        match self {
            Sum::Pipelined(count) => count.min(objects - from),
            Sum::MGet => 1_000.min(objects - from),
            Sum::Lua => SCRIPT_OBJECTS.min(objects - from),
            // A list of keys has its bounds, other executors take all.
            Sum::Aggregate("lookup") => objects.min(LISTED_MAX),
            Sum::Aggregate(_) => objects,
        }
    }

    fn request(self, protocol: Protocol, mut numbers: std::ops::Range<u32>, out: &mut Vec<u8>) {
        match self {
            Sum::Pipelined(_) => numbers.for_each(|it| protocol.get(&digits(it), out)),
            Sum::MGet => {
                let keys: Vec<_> = numbers.by_ref().map(digits).collect();
                let mut args: Vec<&[u8]> = vec![b"MGET"];
                args.extend(keys.iter().map(|key| &key[..]));
                request(&args, out);
            }
            Sum::Lua => {
                let (from, to) = (numbers.start.to_string(), numbers.end.to_string());
                request(&[b"EVAL", SCRIPT, b"0", from.as_bytes(), to.as_bytes()], out);
            }
            Sum::Aggregate(_) => {}
        }
    }

    /// The sum that the replies have; -1 where an aggregate is not the wanted one.
    fn found(self, protocol: Protocol, wire: &mut Wire, count: u32, wanted: i64) -> Result<i64> {
        match self {
            Sum::Pipelined(_) => (0..count).map(|_| number(protocol.value(wire.reply()?))).sum(),
            Sum::Lua => number(Protocol::Redis.value(wire.reply()?)),
            Sum::MGet => wire
                .reply()?
                .split(|byte| *byte == b'\n')
                .filter(|line| line.len() == 9 && line.ends_with(b"\r"))
                .map(|line| number(line.get(..8)))
                .sum(),
            Sum::Aggregate(_) => {
                let digits = wanted.to_string();
                let mut parts = wire.reply()?.windows(digits.len());
                Ok(if parts.any(|part| part == digits.as_bytes()) { wanted } else { -1 })
            }
        }
    }
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

fn number(bytes: Option<&[u8]>) -> Result<i64> {
    let bytes = bytes.ok_or("an object is missing")?;
    Ok(std::str::from_utf8(bytes)?.parse()?)
}

impl Engine<ServerJob> for Loaded {
    fn name(&self) -> &str {
        self.server.name
    }

    fn runs(&self, job: &ServerJob) -> bool {
        // Redis's client and its commands of many keys are not for memcached.
        let is_redis = self.server.protocol() == Protocol::Redis;
        match job.workload {
            ServerWorkload::Sum(_) if self.server.is_floor() => false,
            ServerWorkload::Requests(of) => {
                of.client != Client::RedisBenchmark || (self.has_redis_benchmark && is_redis)
            }
            ServerWorkload::Sum(Sum::Aggregate(_)) => self.server.name == SAPWOOD,
            ServerWorkload::Sum(Sum::Lua) => ![SAPWOOD, MEMCACHED].contains(&self.server.name),
            ServerWorkload::Sum(Sum::MGet) => is_redis,
            ServerWorkload::Sum(_) => true,
        }
    }

    fn run(&mut self, job: &ServerJob) -> Result<Outcome> {
        match job.workload {
            ServerWorkload::Requests(of) => self.requests(job, of),
            ServerWorkload::Sum(sum) => self.sum(job, sum),
        }
    }
}
