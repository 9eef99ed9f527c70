//! The loop over io_uring: accepts and reads are asked for once, and the writes of all connections
//! that have replies go to the system in one call, which also waits for what comes next.

use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::num::NonZero;
use std::pin::pin;
use std::sync::mpsc::channel;

use compio::BufResult;
use compio::driver::ProactorBuilder;
use compio::io::{AsyncReadMulti, AsyncWriteExt};
use compio::net::TcpStream;
use compio::runtime::{Runtime, RuntimeBuilder};
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use super::{ThreadServer, answer};

const BUFFERS: NonZero<u16> = NonZero::new(256).expect("it is above 0");
const BUFFER_BYTES: usize = 16 << 10;

pub(super) fn start(listener: TcpListener) -> io::Result<ThreadServer> {
    let address = listener.local_addr()?;
    let token = CancellationToken::new();
    let stop = Box::new({
        let token = token.clone();
        move || token.cancel()
    });
    let (begins, has_begun) = channel();
    // A runtime stays on its thread, so whether there is one is known there.
    let thread = std::thread::spawn(move || match runtime() {
        Ok(runtime) => {
            let _ = begins.send(Ok(()));
            runtime.block_on(serve(listener, token))
        }
        Err(error) => {
            let _ = begins.send(Err(error));
            Ok(())
        }
    });
    has_begun.recv().map_err(io::Error::other)??;
    Ok(ThreadServer { address, stop, thread: Some(thread) })
}

/// Fails where the system has no io_uring, or forbids it.
fn runtime() -> io::Result<Runtime> {
    let mut ring = ProactorBuilder::new();
    // Only this thread enters the ring, so the system does its part of the work when it does.
    ring.single_issuer(true).defer_taskrun(true);
    ring.buffer_pool_size(BUFFERS).buffer_pool_buffer_len(BUFFER_BYTES);
    let runtime = RuntimeBuilder::new().with_proactor(ring).build()?;
    runtime.buffer_pool()?;
    Ok(runtime)
}

async fn serve(listener: TcpListener, token: CancellationToken) -> io::Result<()> {
    let listener = compio::net::TcpListener::from_std(listener)?;
    let accept = async {
        let mut incoming = listener.incoming();
        while let Some(stream) = incoming.next().await.transpose()? {
            stream.set_nodelay(true)?;
            compio::runtime::spawn(serve_client(stream)).detach();
        }
        Ok(())
    };
    token.run_until_cancelled(accept).await.unwrap_or(Ok(()))
}

async fn serve_client(stream: TcpStream) -> io::Result<()> {
    let (mut reads, mut writes) = (&stream, &stream);
    let mut received = pin!(reads.read_multi(0));
    // The beginning of a request whose end has not come.
    let mut rest = Vec::new();
    let mut replies = Vec::new();
    while let Some(input) = received.next().await {
        match input {
            Ok(input) if rest.is_empty() => {
                let used = answer(&input, &mut replies);
                rest.extend_from_slice(&input[used..]);
            }
            Ok(input) => {
                rest.extend_from_slice(&input);
                let used = answer(&rest, &mut replies);
                rest.drain(..used);
            }
            // All buffers are full: others give theirs back, and the next turn asks again.
            Err(error) if error.kind() == ErrorKind::ResourceBusy => continue,
            Err(error) => return Err(error),
        }
        let sent;
        BufResult(sent, replies) = writes.write_all(replies).await;
        sent?;
        replies.clear();
    }
    Ok(())
}
