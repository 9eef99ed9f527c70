//! Bare loops: wait, read, a reply for each request, write.
//!
//! They find where a request ends by the bytes that clients of this bench send, and answer `SET`
//! with
//! `OK` and everything else with the same 8 bytes. No server over the same calls of the system can be
//! faster. One loop waits by epoll, as our server does; the other, by io_uring, tells what that
//! choice costs.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

use super::processes::ThreadServer;

mod epoll;
#[cfg(target_os = "linux")]
mod uring;

pub(crate) fn epoll() -> io::Result<ThreadServer> {
    epoll::start(listener()?)
}

pub(crate) fn uring() -> io::Result<ThreadServer> {
    uring::start(listener()?)
}

#[cfg(not(target_os = "linux"))]
mod uring {
    pub(super) fn start(_: std::net::TcpListener) -> std::io::Result<super::ThreadServer> {
        Err(std::io::Error::new(std::io::ErrorKind::Unsupported, "io_uring is of Linux"))
    }
}

fn listener() -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
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
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn whole_requests_are_answered() {
        let input = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*3\r\n$3\r\nset\r\n$1\r\nk\r\n$1\r\nv\r\n*1\r\n$4\r\nPI";
        let mut replies = Vec::new();
        assert_eq!(answer(input, &mut replies), input.len() - 10);
        assert_eq!(replies, b"$8\r\n00000000\r\n+OK\r\n");
    }

    /// Sends so many requests in pieces of so many bytes, and reads the replies meanwhile.
    fn check(floor: &ThreadServer, requests: usize, piece: usize) {
        let sent = b"*1\r\n$4\r\nPING\r\n".repeat(requests);
        let mut stream = TcpStream::connect(floor.address).expect("it listens");
        let mut reads = stream.try_clone().expect("a second handle");
        let reader = std::thread::spawn(move || {
            let mut replies = vec![0; requests * b"+PONG\r\n".len()];
            reads.read_exact(&mut replies).map(|()| replies)
        });
        stream.set_nodelay(true).expect("it is open");
        sent.chunks(piece).for_each(|bytes| stream.write_all(bytes).expect("it reads"));
        let replies = reader.join().expect("a reader").expect("it answers");
        assert_eq!(replies, b"+PONG\r\n".repeat(requests));
    }

    #[test]
    fn both_loops_answer_requests_in_pieces_and_many_at_once() {
        // Where the system has no io_uring, the other is tested alone.
        let uring = uring().ok();
        for floor in [epoll().expect("epoll")].into_iter().chain(uring) {
            for (requests, piece) in [(1, 14), (3, 1), (100, 37), (20_000, 100_000)] {
                check(&floor, requests, piece);
            }
            // It also stops with connections open.
            let _open = TcpStream::connect(floor.address).expect("it listens");
            drop(floor);
        }
    }
}
