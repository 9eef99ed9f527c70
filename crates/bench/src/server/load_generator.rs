//! Many connections on one thread, in a closed or an open loop.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::job::{Requests, Verb};
use super::protocol::Protocol;
use super::wire::digits;
use crate::harness::*;

pub(crate) struct RequestLoad {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) of: Requests,
    pub(crate) keys: u32,
    /// Bytes of a key and of a value, from 8 on: the digits of the key's number come first.
    pub(crate) lengths: [usize; 2],
    pub(crate) time: Duration,
    pub(crate) rate: Option<u32>,
    /// True if a value must be that of its key; not so where one answer is given to all.
    pub(crate) is_checked: bool,
}

pub(crate) struct Done {
    pub(crate) requests: usize,
    pub(crate) elapsed: Duration,
    pub(crate) latencies: Percentiles,
}

impl Done {
    pub(crate) fn rate(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64()
    }
}

struct Connection {
    stream: TcpStream,
    out: Vec<u8>,
    sent: usize,
    expected: Vec<u8>,
    received: usize,
    due: Instant,
    is_waiting: bool,
}

impl RequestLoad {
    pub(crate) fn run(&self, seed: u64) -> Result<Done> {
        let mut poll = Poll::new()?;
        let mut events = Events::with_capacity(self.of.connections);
        let mut random = Random::new(seed);
        let mut entry = self.lengths.map(|bytes| vec![b'0'; bytes]);
        let begin = Instant::now();
        let mut connections = Vec::new();
        for number in 0..self.of.connections {
            let stream = std::net::TcpStream::connect(self.address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(&mut stream, Token(number), interest)?;
            connections.push(Connection {
                stream,
                out: Vec::new(),
                sent: 0,
                expected: Vec::new(),
                received: 0,
                due: begin,
                is_waiting: false,
            });
        }
        let begin = Instant::now();
        let end = begin + self.time;
        let between = self.rate.map(|rate| Duration::from_secs(1) / rate);
        // The moment at which the next request of an open loop is due.
        let mut next_due = begin;
        let (mut requests, mut latencies) = (0, new_histogram());
        let mut idle: Vec<usize> = (0..self.of.connections).rev().collect();
        loop {
            let now = Instant::now();
            if now >= end {
                break;
            }
            while let Some(&number) = idle.last() {
                let due = match between {
                    None => now,
                    Some(_) if next_due > now => break,
                    Some(between) => {
                        let due = next_due;
                        next_due += between;
                        due
                    }
                };
                idle.pop();
                let connection = &mut connections[number];
                self.prepare(connection, &mut random, &mut entry, due);
                connection.send()?;
            }
            let wait = match between {
                Some(_) if !idle.is_empty() => next_due.saturating_duration_since(now),
                _ => end.saturating_duration_since(now),
            };
            // A wait below a millisecond is rounded up by the system: it is spent in turns.
            let wait = if wait < Duration::from_millis(1) { Duration::ZERO } else { wait };
            match poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => result?,
            }
            for event in &events {
                let Token(number) = event.token();
                let connection = &mut connections[number];
                if !connection.is_waiting {
                    continue;
                }
                connection.send()?;
                if connection.receive(self.is_checked)? {
                    let latency = connection.due.elapsed().as_nanos();
                    latencies.saturating_record(u64::try_from(latency)?);
                    requests += self.of.pipeline;
                    idle.push(number);
                }
            }
        }
        Ok(Done { requests, elapsed: begin.elapsed(), latencies: percentiles(vec![latencies])? })
    }

    fn prepare(
        &self,
        connection: &mut Connection,
        random: &mut Random,
        [key, value]: &mut [Vec<u8>; 2],
        due: Instant,
    ) {
        connection.out.clear();
        connection.expected.clear();
        for _ in 0..self.of.pipeline {
            let digits = digits(random.below(self.keys));
            key[..8].copy_from_slice(&digits);
            value[..8].copy_from_slice(&digits);
            match self.of.command {
                Verb::Set => {
                    self.protocol.set(key, value, &mut connection.out);
                    self.protocol.was_set(&mut connection.expected);
                }
                Verb::Get => {
                    self.protocol.get(key, &mut connection.out);
                    self.protocol.was_got(key, value, &mut connection.expected);
                }
            }
        }
        (connection.sent, connection.received) = (0, 0);
        (connection.due, connection.is_waiting) = (due, true);
    }
}

impl Connection {
    fn send(&mut self) -> Result {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads; true when the last reply has come.
    fn receive(&mut self, is_checked: bool) -> Result<bool> {
        let mut buffer = [0; 16 << 10];
        while self.received < self.expected.len() {
            match self.stream.read(&mut buffer) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(read) => {
                    let expected = self.expected.get(self.received..self.received + read);
                    if is_checked && expected != Some(&buffer[..read]) {
                        bail!("a reply is not that of its request");
                    }
                    self.received += read;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        self.is_waiting = false;
        Ok(true)
    }
}
