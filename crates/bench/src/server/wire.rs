//! A connection that waits for its replies.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::protocol::{Protocol, request};
use crate::harness::*;

/// After which a server that does not answer is given up.
const PATIENCE: Duration = Duration::from_secs(120);

/// The key of an object, and the value that it has: 8 digits.
pub(crate) fn digits(number: u32) -> [u8; 8] {
    let mut digits = [b'0'; 8];
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    digits
}

pub(crate) struct Wire {
    protocol: Protocol,
    stream: TcpStream,
    received: Vec<u8>,
    used: usize,
}

impl Wire {
    pub(crate) fn open(address: SocketAddr, protocol: Protocol) -> Result<Wire> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Wire { protocol, stream, received: Vec::new(), used: 0 })
    }

    pub(crate) fn send(&mut self, requests: &[u8]) -> Result {
        Ok(self.stream.write_all(requests)?)
    }

    pub(crate) fn reply(&mut self) -> Result<&[u8]> {
        loop {
            if let Some(len) = self.protocol.first_len(&self.received[self.used..])? {
                let begin = self.used;
                self.used += len;
                return Ok(&self.received[begin..begin + len]);
            }
            self.received.drain(..self.used);
            self.used = 0;
            let before = self.received.len();
            self.received.resize(before.max(32 << 10) * 2, 0);
            let read = self.stream.read(&mut self.received[before..])?;
            self.received.truncate(before + read);
            if read == 0 {
                bail!("the server closed the connection");
            }
        }
    }

    pub(crate) fn ping(&mut self) -> Result {
        let mut bytes = Vec::new();
        self.protocol.ping(&mut bytes);
        self.send(&bytes)?;
        self.reply().map(drop)
    }

    /// The reply to one request of Redis's protocol.
    pub(crate) fn ask(&mut self, args: &[&[u8]]) -> Result<&[u8]> {
        let mut bytes = Vec::new();
        request(args, &mut bytes);
        self.send(&bytes)?;
        self.reply()
    }
}

/// Sends requests that `request_of` makes of numbers, some hundred at a time, and reads their
/// replies.
pub(crate) fn load(
    wire: &mut Wire,
    count: u32,
    mut request_of: impl FnMut(u32, &mut Vec<u8>),
) -> Result {
    const AT_ONCE: u32 = 500;
    let mut bytes = Vec::new();
    let mut next = 0;
    while next < count {
        let end = count.min(next + AT_ONCE);
        bytes.clear();
        (next..end).for_each(|number| request_of(number, &mut bytes));
        wire.send(&bytes)?;
        for _ in next..end {
            wire.reply()?;
        }
        next = end;
    }
    Ok(())
}
