//! Addresses, and the connections that come there.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Service;
use crate::net::connection::serve;
use crate::session::Session;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;
/// A pause when the process has no descriptors left for a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// Sockets that clients connect to.
#[derive(Debug, Default)]
pub struct Listeners {
    tcp: Vec<TcpListener>,
    unix: Vec<(UnixListener, PathBuf)>,
}

impl Listeners {
    /// Listens at an address as well; answers it with the port that it has.
    ///
    /// # Errors
    /// Those of the system, such as for an address that is in use.
    pub fn tcp(&mut self, address: SocketAddr) -> io::Result<SocketAddr> {
        let socket = match address {
            SocketAddr::V4(_) => tokio::net::TcpSocket::new_v4(),
            SocketAddr::V6(_) => tokio::net::TcpSocket::new_v6(),
        }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        self.tcp.push(listener);
        Ok(address)
    }

    /// Listens at a path as well.
    ///
    /// # Errors
    /// Those of the system.
    pub fn unix(&mut self, path: &Path) -> io::Result<()> {
        // A socket that a process left behind answers no connection.
        if path.exists() && std::os::unix::net::UnixStream::connect(path).is_err() {
            std::fs::remove_file(path)?;
        }
        self.unix.push((UnixListener::bind(path)?, path.to_owned()));
        Ok(())
    }
}

/// Serves the clients of some listeners.
#[derive(Debug)]
pub struct Server {
    service: Arc<Service>,
    stop: CancellationToken,
    clients: TaskTracker,
}

impl Server {
    /// A server that ends at `stop`.
    pub fn new(service: Arc<Service>, stop: CancellationToken) -> Server {
        Server { service, stop, clients: TaskTracker::new() }
    }

    /// Serves until it is stopped, and until the last connection has ended.
    ///
    /// # Errors
    /// Those of the system that make it impossible to accept connections.
    pub async fn run(&self, listeners: Listeners) -> io::Result<()> {
        for listener in listeners.tcp {
            let server = self.clone_parts();
            self.clients.spawn(async move { server.accept_tcp(listener).await });
        }
        for (listener, path) in listeners.unix {
            let server = self.clone_parts();
            self.clients.spawn(async move {
                server.accept_unix(listener).await;
                // The path is of no use any more.
                let _ = std::fs::remove_file(path);
            });
        }
        self.stop.cancelled().await;
        self.clients.close();
        self.clients.wait().await;
        Ok(())
    }

    fn clone_parts(&self) -> Server {
        Server {
            service: Arc::clone(&self.service),
            stop: self.stop.clone(),
            clients: self.clients.clone(),
        }
    }

    async fn accept_tcp(&self, listener: TcpListener) {
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _address)) => {
                    // Replies go out when they are written: a client waits for each.
                    let _ = stream.set_nodelay(true);
                    self.spawn(stream);
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn accept_unix(&self, listener: UnixListener) {
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _address)) => self.spawn(stream),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    fn spawn<S>(&self, stream: S)
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let session = Session::new(Arc::clone(&self.service));
        let stop = self.stop.clone();
        self.clients.spawn(async move {
            // A client that goes in the middle is no event.
            let _ = serve(stream, session, stop).await;
        });
    }
}
