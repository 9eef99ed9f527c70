//! Redis, in a process of its own, with an append-only file or without one.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use super::data::{Data, Level};
use crate::harness::*;
use crate::server::job::{Client, Requests, Verb};
use crate::server::load_generator::RequestLoad;
use crate::server::processes::Server;
use crate::server::processes::spawn_redis;
use crate::server::wire;
use crate::server::wire::digits;

pub(crate) const NAME: &str = "redis";

pub(crate) struct Redis {
    server: Server,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum RedisFiles {
    /// The snapshot that `SAVE` writes; changes are in memory alone.
    Rdb,
    /// The append-only file, with a level of `appendfsync`.
    Aof(&'static str),
}

impl RedisFiles {
    /// The files of a level: `appendfsync everysec` syncs each second, not ten times a second.
    pub(crate) fn of(level: Level) -> RedisFiles {
        match level {
            Level::Memory => RedisFiles::Rdb,
            Level::Buffered => RedisFiles::Aof("no"),
            Level::Async => RedisFiles::Aof("everysec"),
            Level::Sync => RedisFiles::Aof("always"),
        }
    }
}

impl Redis {
    /// Starts it on the files of a folder, and waits until it has loaded them: how long that took.
    pub(crate) fn start(folder: &Folder, files: RedisFiles) -> Result<(Redis, Duration)> {
        let mut args =
            ["--save", "", "--auto-aof-rewrite-percentage", "0", "--dir"].map(OsStr::new).to_vec();
        args.push(folder.path().as_os_str());
        let of_files = match files {
            RedisFiles::Rdb => vec!["--appendonly", "no"],
            RedisFiles::Aof(fsync) => vec!["--appendonly", "yes", "--appendfsync", fsync],
        };
        args.extend(of_files.into_iter().map(OsStr::new));
        let begin = Instant::now();
        let mut server = spawn_redis(args)?;
        // As long as it loads it refuses to answer.
        server.wait_for(LOADING)?;
        Ok((Redis { server }, begin.elapsed()))
    }

    pub(crate) fn load(&self, data: Data, keys: u32) -> Result {
        let mut wire = self.server.connect()?;
        let [mut key, mut value] = blank(data);
        wire::load(&mut wire, keys, |number, out| {
            set(number, &mut key, &mut value);
            self.server.protocol().set(&key, &value, out);
        })
    }

    /// Puts to random keys, one request in flight on each connection: puts a second.
    pub(crate) fn put_for(
        &self,
        data: Data,
        keys: u32,
        connections: usize,
        time: Duration,
        seed: u64,
    ) -> Result<f64> {
        let load = RequestLoad {
            address: self.server.address,
            protocol: self.server.protocol(),
            of: Requests { client: Client::Closed, command: Verb::Set, connections, pipeline: 1 },
            keys,
            lengths: data.lengths(),
            time,
            rate: None,
            is_checked: true,
        };
        load.run(seed).map(|done| done.rate())
    }

    pub(crate) fn check(&self, data: Data, keys: u32, seed: u64) -> Result {
        let mut wire = self.server.connect()?;
        let mut random = Random::new(seed);
        let [mut key, mut value] = blank(data);
        for _ in 0..CHECKED {
            set(random.below(keys), &mut key, &mut value);
            let reply = wire.ask(&[b"GET", &key])?;
            if self.server.protocol().value(reply) != Some(&value[..]) {
                bail!("a key has lost its value");
            }
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> Result<u64> {
        let mut wire = self.server.connect()?;
        let reply = std::str::from_utf8(wire.ask(&[b"DBSIZE"])?)?;
        Ok(reply.trim_start_matches(':').trim_end().parse()?)
    }

    pub(crate) fn save(&self) -> Result {
        self.server.connect()?.ask(&[b"SAVE"]).map(drop)
    }
}

const LOADING: Duration = Duration::from_secs(300);
const CHECKED: u32 = 100;

fn blank(data: Data) -> [Vec<u8>; 2] {
    data.lengths().map(|bytes| vec![b'0'; bytes])
}

/// The entry of a number, as the load generator makes it.
fn set(number: u32, key: &mut [u8], value: &mut [u8]) {
    key[..8].copy_from_slice(&digits(number));
    value[..8].copy_from_slice(&digits(number));
}
