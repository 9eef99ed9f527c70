//! The bare loop: epoll, a read, a reply for each request, a write.
//!
//! It finds where a request ends by the bytes that clients of this bench send, and answers `SET` with
//! `OK` and everything else with the same 8 bytes. No server can be faster that answers over a socket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

const LISTENER: Token = Token(usize::MAX);
const STOP: Token = Token(usize::MAX - 1);

/// The loop, on a thread of its own.
pub(crate) struct Floor {
    pub(crate) address: SocketAddr,
    stop: Arc<Waker>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Floor {
    pub(crate) fn start() -> io::Result<Floor> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(([127, 0, 0, 1], 0).into())?;
        let address = listener.local_addr()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let stop = Arc::new(Waker::new(poll.registry(), STOP)?);
        let thread = std::thread::spawn(move || serve(poll, &listener));
        Ok(Floor { address, stop, thread: Some(thread) })
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        // A thread that has ended by itself cannot be woken.
        let _ = self.stop.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Client {
    stream: TcpStream,
    /// The beginning of a request whose end has not come.
    rest: Vec<u8>,
    /// Replies that were not taken.
    replies: Vec<u8>,
}

fn serve(mut poll: Poll, listener: &TcpListener) -> io::Result<()> {
    let mut events = Events::with_capacity(1024);
    let mut clients: Vec<Option<Client>> = Vec::new();
    let mut input = vec![0; 64 << 10];
    loop {
        poll.poll(&mut events, None)?;
        for event in &events {
            match event.token() {
                STOP => return Ok(()),
                LISTENER => {
                    while let Ok((mut stream, _)) = listener.accept() {
                        stream.set_nodelay(true)?;
                        let interest = Interest::READABLE | Interest::WRITABLE;
                        poll.registry().register(&mut stream, Token(clients.len()), interest)?;
                        clients.push(Some(Client {
                            stream,
                            rest: Vec::new(),
                            replies: Vec::new(),
                        }));
                    }
                }
                Token(number) => {
                    let Some(client) = &mut clients[number] else { continue };
                    if client.go_on(&mut input).is_err() {
                        clients[number] = None;
                    }
                }
            }
        }
    }
}

impl Client {
    fn go_on(&mut self, input: &mut [u8]) -> io::Result<()> {
        loop {
            self.send()?;
            let had = self.rest.len();
            input[..had].copy_from_slice(&self.rest);
            match self.stream.read(&mut input[had..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    let input = &input[..had + read];
                    let used = answer(input, &mut self.replies);
                    self.rest.clear();
                    self.rest.extend_from_slice(&input[used..]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn send(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.replies.len() {
            match self.stream.write(&self.replies[sent..]) {
                Ok(more) => sent += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.replies.drain(..sent);
        Ok(())
    }
}

/// Appends a reply for each whole request; answers the bytes of those.
fn answer(input: &[u8], replies: &mut Vec<u8>) -> usize {
    let mut used = 0;
    while let Some((name, len)) = request_len(&input[used..]) {
        used += len;
        match name {
            b's' | b'S' => replies.extend_from_slice(b"+OK\r\n"),
            b'p' | b'P' => replies.extend_from_slice(b"+PONG\r\n"),
            // `redis-benchmark` asks for the configuration.
            b'c' | b'C' => replies.extend_from_slice(b"*0\r\n"),
            _ => replies.extend_from_slice(b"$8\r\n00000000\r\n"),
        }
    }
    used
}

/// The first letter of a request's command, and the bytes of the request.
fn request_len(input: &[u8]) -> Option<(u8, usize)> {
    let (arguments, mut at) = number_behind(input, 0, b'*')?;
    let mut name = b'?';
    for argument in 0..arguments {
        let (len, begin) = number_behind(input, at, b'$')?;
        if argument == 0 {
            name = *input.get(begin)?;
        }
        at = begin + len + 2;
    }
    (at <= input.len()).then_some((name, at))
}

/// The number behind a mark, and where the next line begins.
fn number_behind(input: &[u8], at: usize, mark: u8) -> Option<(usize, usize)> {
    let line = input.get(at..)?.strip_prefix(&[mark])?;
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.clone().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
    let next = at + 1 + digits.count() + 2;
    (next <= input.len()).then_some((number, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_requests_are_answered() {
        let input = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*3\r\n$3\r\nset\r\n$1\r\nk\r\n$1\r\nv\r\n*1\r\n$4\r\nPI";
        let mut replies = Vec::new();
        assert_eq!(answer(input, &mut replies), input.len() - 10);
        assert_eq!(replies, b"$8\r\n00000000\r\n+OK\r\n");
    }
}
