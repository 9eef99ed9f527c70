//! Addresses, and the connections that come there.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Service;
use crate::clients::{Order, Origin};
use crate::net::connection::serve;
use crate::net::protected;
use crate::session::Session;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;
/// A pause when the process has no descriptors left for a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// The time in which requests that have come, and jobs, may end when the server stops.
const GRACE: Duration = Duration::from_secs(10);
/// Questions of the system to a silent client that are not answered before it has gone.
const KEEPALIVE_RETRIES: u32 = 3;
/// The answer to a client beyond the limit.
const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";
/// The time for a client to agree on keys.
pub(super) const GREETING_TIMEOUT: Duration = Duration::from_secs(10);

/// Sockets that clients connect to.
#[derive(Default)]
pub struct Listeners {
    tcp: Vec<TcpListener>,
    tls: Vec<(TcpListener, TlsAcceptor)>,
    unix: Vec<(UnixListener, Arc<Path>)>,
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

    /// Listens at a path as well. A socket that a process left behind there is replaced.
    ///
    /// # Errors
    /// Those of the system, such as for a path where a server listens, or where another file is.
    pub fn unix(&mut self, path: &Path) -> io::Result<()> {
        let is_socket =
            std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
        let is_refused = || {
            let connected = std::os::unix::net::UnixStream::connect(path);
            connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        };
        if is_socket && is_refused() {
            std::fs::remove_file(path)?;
        }
        self.unix.push((UnixListener::bind(path)?, path.into()));
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
    grace: Duration,
    listening: TaskTracker,
    clients: TaskTracker,
}

impl Server {
    /// A server that ends at `stop`.
    pub fn new(service: Arc<Service>, stop: CancellationToken) -> Server {
        let (listening, clients) = (TaskTracker::new(), TaskTracker::new());
        Server { service, stop, grace: GRACE, listening, clients }
    }

    /// Gives what is at work when the server stops another time to end than 10 seconds.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Server {
        self.grace = grace;
        self
    }

    /// Serves until it is stopped, and until the last connection has ended.
    ///
    /// When it is stopped it accepts no more connections. Requests that have come are executed and
    /// answered, and jobs go on, for the time that they are given; then connections are closed,
    /// and jobs are told to end.
    ///
    /// # Errors
    /// Those of the system that make it impossible to accept connections.
    pub async fn run(&self, listeners: Listeners) -> io::Result<()> {
        for listener in listeners.tcp {
            let server = self.clone_parts();
            self.listening.spawn(async move { server.accept_tcp(listener).await });
        }
        for (listener, acceptor) in listeners.tls {
            let server = self.clone_parts();
            self.listening.spawn(async move { server.accept_tls(listener, acceptor).await });
        }
        for (listener, path) in listeners.unix {
            let server = self.clone_parts();
            self.listening.spawn(async move {
                server.accept_unix(listener, &path).await;
                // The path is of no use any more.
                let _ = std::fs::remove_file(path);
            });
        }
        self.stop.cancelled().await;
        self.listening.close();
        self.listening.wait().await;
        self.clients.close();
        self.service.clients.order_all(Order::Finish);
        if tokio::time::timeout(self.grace, self.clients.wait()).await.is_err() {
            self.service.clients.order_all(Order::End);
            self.clients.wait().await;
        }
        Ok(())
    }

    fn clone_parts(&self) -> Server {
        Server {
            service: Arc::clone(&self.service),
            stop: self.stop.clone(),
            grace: self.grace,
            listening: self.listening.clone(),
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
                Ok((stream, peer)) => {
                    if let Some(refusal) = protected::refusal(&self.service, peer.ip()) {
                        self.turn_away(stream, refusal);
                        continue;
                    }
                    self.set_options(&stream);
                    let local = stream.local_addr().unwrap_or(peer);
                    let descriptor = stream.as_raw_fd();
                    self.spawn(stream, Origin::Tcp { peer, local, descriptor });
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Options of a connection; it is served without them, too.
    fn set_options(&self, stream: &TcpStream) {
        // Replies go out when they are written: a client waits for each.
        let _ = stream.set_nodelay(true);
        let silence = self.service.clients.limits.keepalive_seconds();
        if silence > 0 {
            // As in Redis: the questions are a third of the silence apart.
            let keepalive = TcpKeepalive::new()
                .with_time(Duration::from_secs(silence))
                .with_interval(Duration::from_secs((silence / 3).max(1)))
                .with_retries(KEEPALIVE_RETRIES);
            let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
        }
    }

    async fn accept_tls(&self, listener: TcpListener, acceptor: TlsAcceptor) {
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, peer)) = accepted else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            self.set_options(&stream);
            let local = stream.local_addr().unwrap_or(peer);
            let descriptor = stream.as_raw_fd();
            let origin = Origin::Tcp { peer, local, descriptor };
            let refusal = protected::refusal(&self.service, peer.ip());
            let (server, acceptor) = (self.clone_parts(), acceptor.clone());
            // Apart: a client that is slow with it holds no other up.
            self.clients.spawn(async move {
                let greeting = tokio::time::timeout(GREETING_TIMEOUT, acceptor.accept(stream));
                let greeted = tokio::select! {
                    () = server.stop.cancelled() => return,
                    greeted = greeting => greeted,
                };
                match greeted {
                    Ok(Ok(stream)) => match refusal {
                        Some(refusal) => server.turn_away(stream, refusal),
                        None => server.spawn(stream, origin),
                    },
                    Ok(Err(error)) => tracing::debug!(%error, "a client failed to speak TLS"),
                    Err(_) => tracing::debug!("a client was too slow to speak TLS"),
                }
            });
        }
    }

    async fn accept_unix(&self, listener: UnixListener, path: &Arc<Path>) {
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _unnamed)) => {
                    let descriptor = stream.as_raw_fd();
                    self.spawn(stream, Origin::Unix { path: Arc::clone(path), descriptor });
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    fn spawn<S>(&self, stream: S, origin: Origin)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match Session::connect(Arc::clone(&self.service), origin) {
            Some(session) => {
                self.clients.spawn(async move {
                    // A client that goes in the middle is no event.
                    let _ = serve(stream, session).await;
                });
            }
            None => self.turn_away(stream, TOO_MANY),
        }
    }

    fn turn_away<S>(&self, mut stream: S, refusal: &'static [u8])
    where
        S: AsyncWrite + Unpin + Send + 'static,
    {
        self.clients.spawn(async move {
            // It fits into any socket's buffer, and the client goes either way.
            let written = stream.write_all(refusal);
            let _ = tokio::time::timeout(PAUSE, written).await;
        });
    }
}
