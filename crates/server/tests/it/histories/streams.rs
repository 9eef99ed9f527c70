//! Pipelines of clients that get in each other's way, by what they are about.

use crate::client::START;
use crate::histories::client::Request;
use crate::histories::model::{Command, Text};

/// What the clients of a round are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Single keys, and changes that a watch guards.
    Registers,
    Counters,
    /// Commands of several keys.
    Several,
    Transactions,
    Pipelines,
    /// Ends of times, and a clock that goes on between phases.
    Ends,
    /// Values that lie in parts beside short ones.
    Long,
    /// Databases that are chosen and flushed.
    Databases,
    /// Commands of so many steps that others would come between, if they could.
    Steps,
}

/// Makes the pipelines of one client.
pub(crate) struct Stream {
    theme: Theme,
    client: usize,
    rng: fastrand::Rng,
    /// Values made: no two are the same.
    made: usize,
}

use Command::*;

impl Stream {
    pub(crate) fn new(theme: Theme, client: usize, seed: u64) -> Stream {
        let rng = fastrand::Rng::with_seed(seed.wrapping_mul(1_000) + client as u64);
        Stream { theme, client, rng, made: 0 }
    }

    /// Pipelines of a client, at most so many requests in all but a few; times are around `now`.
    pub(crate) fn pipelines(&mut self, requests: usize, now: u64) -> Vec<Vec<Request>> {
        let mut pipelines = Vec::new();
        let mut left = requests as i64;
        while left > 0 {
            let next = self.next(now);
            left -= next.iter().map(|pipeline| pipeline.len() as i64).sum::<i64>();
            pipelines.extend(next);
        }
        pipelines
    }

    /// One pipeline, or some that belong together.
    fn next(&mut self, now: u64) -> Vec<Vec<Request>> {
        let one = |command| vec![vec![Request::Command(command)]];
        match self.theme {
            Theme::Registers if self.rng.u8(..4) == 0 => self.guarded(),
            Theme::Registers => one(self.single()),
            Theme::Counters => self.counting(),
            Theme::Several => one(self.several()),
            Theme::Transactions => match self.rng.u8(..6) {
                0 => self.guarded(),
                1..4 => vec![vec![self.transaction()]],
                4 => one(self.several()),
                _ => one(self.single()),
            },
            Theme::Pipelines => vec![self.pipeline()],
            Theme::Ends => one(self.ending(now)),
            Theme::Long => self.long(),
            Theme::Databases => self.of_databases(),
            Theme::Steps if self.client.is_multiple_of(2) => self.steps(),
            Theme::Steps => self.between_steps(),
        }
    }

    fn key(&mut self) -> u8 {
        let keys = match self.theme {
            Theme::Registers | Theme::Counters | Theme::Long | Theme::Steps => 2,
            Theme::Ends | Theme::Databases => 3,
            Theme::Several | Theme::Transactions | Theme::Pipelines => 4,
        };
        self.rng.u8(..keys)
    }

    /// Two keys that are not the same.
    fn two(&mut self) -> (u8, u8) {
        let one = self.key();
        loop {
            let other = self.key();
            if other != one {
                return (one, other);
            }
        }
    }

    fn keys(&mut self) -> Vec<u8> {
        (0..self.rng.usize(2..4)).map(|_| self.key()).collect()
    }

    /// A value that no other client and no other command writes, of one of these lengths.
    fn text_of(&mut self, lengths: &[usize]) -> Text {
        self.made += 1;
        let head = format!("{}.{}", self.client, self.made);
        let len = lengths[self.rng.usize(..lengths.len())];
        Text::new(&head, len)
    }

    /// A short value: changed in place, moved, and of lengths of 8 and of others.
    fn text(&mut self) -> Text {
        let is_appended_to = self.theme == Theme::Ends;
        self.text_of(if is_appended_to { &[0] } else { &[0, 8, 40] })
    }

    fn pairs(&mut self) -> Vec<(u8, Text)> {
        (0..self.rng.usize(2..4)).map(|_| (self.key(), self.text())).collect()
    }

    fn single(&mut self) -> Command {
        let key = self.key();
        match self.rng.u8(..16) {
            0..6 => Get(key),
            6..9 => Set(key, self.text()),
            9 | 10 => SetNx(key, self.text()),
            11 => GetSet(key, self.text()),
            12 | 13 => GetDel(key),
            14 => Del(vec![key]),
            _ => StrLen(key),
        }
    }

    /// A change that a watch guards, or leaves.
    fn guarded(&mut self) -> Vec<Vec<Request>> {
        let (key, other) = self.two();
        let watched = if self.rng.bool() { vec![key] } else { vec![key, other] };
        let mut requests = vec![Request::Command(Watch(watched)), Request::Command(Get(key))];
        let end = match self.rng.u8(..8) {
            0 => Request::Command(Unwatch),
            _ => Request::Exec(vec![Get(key), Set(key, self.text())]),
        };
        match self.rng.u8(..3) {
            0 => {
                requests.push(end);
                vec![requests]
            }
            // Another command changes what is watched, maybe.
            1 => vec![requests, vec![Request::Command(self.single())], vec![end]],
            _ => requests.into_iter().chain([end]).map(|request| vec![request]).collect(),
        }
    }

    fn counting(&mut self) -> Vec<Vec<Request>> {
        let key = self.key();
        let request = match self.rng.u8(..12) {
            0..5 => Request::Command(IncrBy(key, 1)),
            5..7 => Request::Command(IncrBy(key, self.rng.i64(-5..1_000))),
            7..9 => Request::Command(Get(key)),
            9 => {
                let (one, other) = self.two();
                Request::Exec(vec![IncrBy(one, 1), IncrBy(other, -1), Get(one)])
            }
            10 => {
                let number = self.rng.i64(..1 << 40).to_string();
                Request::Command(Set(key, Text::new(&number, 0)))
            }
            _ => Request::Command(GetDel(key)),
        };
        match self.rng.u8(..4) {
            0 => vec![vec![request.clone(), request.clone(), request]],
            _ => vec![vec![request]],
        }
    }

    fn several(&mut self) -> Command {
        let (one, other) = self.two();
        match self.rng.u8(..14) {
            0..3 => MGet(vec![0, 1, 2, 3]),
            3 => MGet(self.keys()),
            4 | 5 => MSet(self.pairs()),
            6 => MSetNx(self.pairs()),
            7 => Rename(one, other),
            8 => RenameNx(one, other),
            9 => Copy(one, other, 0),
            10 => CopyOver(one, other, 0),
            11 => Del(self.keys()),
            12 => Exists(self.keys()),
            _ => self.single(),
        }
    }

    fn transaction(&mut self) -> Request {
        let count = self.rng.usize(1..5);
        let command = |stream: &mut Stream| match stream.rng.u8(..8) {
            0..3 => stream.several(),
            3 => IncrBy(stream.key(), 1),
            _ => stream.single(),
        };
        Request::Exec((0..count).map(|_| command(self)).collect())
    }

    /// Runs of reads and of writes, and others between them.
    fn pipeline(&mut self) -> Vec<Request> {
        let mut requests = Vec::new();
        for _ in 0..self.rng.usize(1..4) {
            for _ in 0..self.rng.usize(1..4) {
                requests.push(Request::Command(Set(self.key(), self.text())));
            }
            for _ in 0..self.rng.usize(..4) {
                requests.push(Request::Command(Get(self.key())));
            }
            match self.rng.u8(..6) {
                0 => requests.push(Request::Command(self.several())),
                1 => requests.push(self.transaction()),
                2 => requests.push(Request::Command(IncrBy(self.key(), 1))),
                _ => {}
            }
        }
        requests
    }

    /// Ends lie behind this phase, in it, or before.
    fn ending(&mut self, now: u64) -> Command {
        let key = self.key();
        let end = now - 5 + self.rng.u64(..30);
        match self.rng.u8(..20) {
            0..4 => SetUntil(key, self.text(), end),
            4..6 => ExpireAt(key, end),
            6 => Persist(key),
            7..11 => Get(key),
            11 => Set(key, self.text()),
            12 => SetNx(key, self.text()),
            13 => GetDel(key),
            14 => IncrBy(key, 1),
            15 => Append(key, Text::new("+", 0)),
            16 => MGet(vec![0, 1, 2]),
            17 => {
                let (one, other) = self.two();
                Rename(one, other)
            }
            18 => {
                let (one, other) = self.two();
                CopyOver(one, other, 0)
            }
            _ => Del(vec![key]),
        }
    }

    fn long(&mut self) -> Vec<Vec<Request>> {
        const LENGTHS: [usize; 6] = [0, 8, 40, 524_033, 600_000, 1_100_000];
        let (key, other) = self.two();
        let request = match self.rng.u8(..20) {
            0..5 => Request::Command(Get(key)),
            5..9 => Request::Command(Set(key, self.text_of(&LENGTHS))),
            9 => Request::Command(SetNx(key, self.text_of(&LENGTHS))),
            10 => Request::Command(GetSet(key, self.text_of(&LENGTHS))),
            11 => Request::Command(GetDel(key)),
            12 => Request::Command(Del(vec![key])),
            13 => Request::Command(StrLen(key)),
            14 => Request::Command(Rename(key, other)),
            15 => Request::Command(CopyOver(key, other, 0)),
            16 => Request::Command(MGet(vec![key, other])),
            17 | 18 => {
                let pairs = [key, other].map(|key| (key, self.text_of(&LENGTHS))).to_vec();
                Request::Command(if self.rng.bool() { MSet(pairs) } else { MSetNx(pairs) })
            }
            _ => Request::Exec(vec![Set(key, self.text_of(&LENGTHS)), Get(other)]),
        };
        match self.rng.u8(..4) {
            // A batch of a short write and a read, around what may be long.
            0 => {
                let write = Request::Command(Set(other, self.text()));
                vec![vec![write, request, Request::Command(Get(key))]]
            }
            _ => vec![vec![request]],
        }
    }

    fn of_databases(&mut self) -> Vec<Vec<Request>> {
        let (one, other) = self.two();
        let database = self.rng.usize(..3);
        vec![match self.rng.u8(..16) {
            0..3 => vec![Request::Select(database), Request::Command(Get(one))],
            3 => vec![Request::Select(database), Request::Command(MGet(vec![0, 1, 2]))],
            4 => vec![Request::Command(FlushAll)],
            5 => vec![Request::Command(FlushDb)],
            6 => vec![Request::Command(CopyOver(one, other, database))],
            7 => vec![Request::Command(Copy(one, other, database))],
            8 => vec![Request::Command(MSet(self.pairs()))],
            9 => vec![Request::Exec(vec![FlushDb, Set(one, self.text()), MGet(vec![0, 1, 2])])],
            10 => vec![Request::Command(Watch(vec![one, other]))],
            11 => vec![Request::Exec(vec![Set(one, self.text()), Get(other)])],
            _ => vec![Request::Command(self.single())],
        }]
    }

    /// A command that goes through both keys again and again, or takes long to copy a value: one
    /// that is not atomic shows something between to nearly every command beside it.
    fn steps(&mut self) -> Vec<Vec<Request>> {
        const ROUNDS: usize = 64;
        let (one, other) = self.two();
        let keys = [one, other].repeat(ROUNDS);
        match self.rng.u8(..10) {
            number @ 0..4 => {
                let pairs = keys.into_iter().map(|key| (key, self.text())).collect();
                let free = Request::Command(Del(vec![one, other]));
                match number {
                    0..2 => vec![vec![Request::Command(MSet(pairs))]],
                    _ => vec![vec![free, Request::Command(MSetNx(pairs))]],
                }
            }
            4..6 => vec![vec![Request::Command(MGet(keys))]],
            number => {
                let last = match number {
                    6 => Copy(one, other, 0),
                    7 | 8 => CopyOver(one, other, 0),
                    _ => Rename(one, other),
                };
                let long = Request::Command(Set(one, self.text_of(&[200_000])));
                vec![vec![long, Request::Command(last), Request::Command(Get(other))]]
            }
        }
    }

    /// Short commands of single keys, which wait for no other but those of several.
    fn between_steps(&mut self) -> Vec<Vec<Request>> {
        let (one, other) = self.two();
        let commands = match self.rng.u8(..8) {
            0..4 => vec![Set(one, self.text()), Set(other, self.text()), Get(other)],
            4 | 5 => vec![Get(one), StrLen(other), Get(one)],
            6 => vec![Set(one, self.text()), Get(other)],
            _ => vec![Del(vec![one]), Get(one)],
        };
        vec![commands.into_iter().map(Request::Command).collect()]
    }
}

/// The moment of a phase.
pub(crate) fn moment_of(phase: u64) -> u64 {
    START + 10 * phase
}
