//! The loop over epoll: a read and a write of each connection are calls of their own.

use std::io::{self, ErrorKind, Read, Write};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use super::{ThreadServer, answer};

const LISTENER: Token = Token(usize::MAX);
const STOP: Token = Token(usize::MAX - 1);

pub(super) fn start(listener: std::net::TcpListener) -> io::Result<ThreadServer> {
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let mut listener = TcpListener::from_std(listener);
    let poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let waker = Waker::new(poll.registry(), STOP)?;
    let stop = Box::new(move || {
        // A thread that has ended by itself cannot be woken.
        let _ = waker.wake();
    });
    let thread = std::thread::spawn(move || serve(poll, &listener));
    Ok(ThreadServer { address, stop, thread: Some(thread) })
}

struct EpollClient {
    stream: TcpStream,
    rest: Vec<u8>,
    replies: Vec<u8>,
}

fn serve(mut poll: Poll, listener: &TcpListener) -> io::Result<()> {
    let mut events = Events::with_capacity(1024);
    let mut clients: Vec<Option<EpollClient>> = Vec::new();
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
                        clients.push(Some(EpollClient {
                            stream,
                            rest: Vec::new(),
                            replies: Vec::new(),
                        }));
                    }
                }
                Token(number) => {
                    let Some(client) = &mut clients[number] else { continue };
                    // A client that goes may have sent before: that is not told again.
                    if client.go_on(&mut input).is_err() || event.is_read_closed() {
                        clients[number] = None;
                    }
                }
            }
        }
    }
}

impl EpollClient {
    fn go_on(&mut self, input: &mut [u8]) -> io::Result<()> {
        loop {
            self.send()?;
            let had = self.rest.len();
            input[..had].copy_from_slice(&self.rest);
            match self.stream.read(&mut input[had..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    // What comes after a read that was not filled is told by another event.
                    let is_all = had + read < input.len();
                    let input = &input[..had + read];
                    let used = answer(input, &mut self.replies);
                    self.rest.clear();
                    self.rest.extend_from_slice(&input[used..]);
                    if is_all {
                        return self.send();
                    }
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
