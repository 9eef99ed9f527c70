//! Addresses, and the connections that come there.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Service;
use crate::net::connection::serve;
use crate::session::Session;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;
/// A pause when the process has no descriptors left for a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// The time for a client to agree on keys.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);

/// Sockets that clients connect to.
#[derive(Default)]
pub struct Listeners {
    tcp: Vec<TcpListener>,
    tls: Vec<(TcpListener, TlsAcceptor)>,
    unix: Vec<(UnixListener, PathBuf)>,
}

impl Listeners {
    /// Listens at an address as well; answers it with the port that it has.
    ///
    /// # Errors
    /// Those of the system, such as for an address that is in use.
    pub fn tcp(&mut self, address: SocketAddr) -> io::Result<SocketAddr> {
        let listener = listen(address)?;
        let address = listener.local_addr()?;
        self.tcp.push(listener);
        Ok(address)
    }

    /// Listens at an address for clients that speak TLS as well; answers it with the port that it
    /// has.
    ///
    /// # Errors
    /// Those of the system, such as for an address that is in use.
    pub fn tls(&mut self, address: SocketAddr, acceptor: TlsAcceptor) -> io::Result<SocketAddr> {
        let listener = listen(address)?;
        let address = listener.local_addr()?;
        self.tls.push((listener, acceptor));
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

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listeners")
            .field("tcp", &self.tcp)
            .field("tls", &self.tls.len())
            .field("unix", &self.unix)
            .finish()
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => tokio::net::TcpSocket::new_v4(),
        SocketAddr::V6(_) => tokio::net::TcpSocket::new_v6(),
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
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
        for (listener, acceptor) in listeners.tls {
            let server = self.clone_parts();
            self.clients.spawn(async move { server.accept_tls(listener, acceptor).await });
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

    async fn accept_tls(&self, listener: TcpListener, acceptor: TlsAcceptor) {
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _address)) = accepted else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            // Replies go out when they are written: a client waits for each.
            let _ = stream.set_nodelay(true);
            let (server, acceptor) = (self.clone_parts(), acceptor.clone());
            // Apart: a client that is slow with it holds no other up.
            self.clients.spawn(async move {
                let greeting = tokio::time::timeout(GREETING_TIMEOUT, acceptor.accept(stream));
                let greeted = tokio::select! {
                    () = server.stop.cancelled() => return,
                    greeted = greeting => greeted,
                };
                match greeted {
                    Ok(Ok(stream)) => server.spawn(stream),
                    Ok(Err(error)) => tracing::debug!(%error, "a client failed to speak TLS"),
                    Err(_) => tracing::debug!("a client was too slow to speak TLS"),
                }
            });
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
