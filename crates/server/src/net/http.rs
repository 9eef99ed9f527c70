//! HTTP, at an address of its own: metrics and health, and roll-ups as Druid has them.
//!
//! | path | answer |
//! |---|---|
//! | `/metrics` | figures for Prometheus |
//! | `/healthz` | 200 while the process serves |
//! | `/readyz` | 200 while it takes clients, 503 while it ends |
//! | `POST /druid/v2` | the answer to a native query, as JSON, CSV or Arrow |
//! | `DELETE /druid/v2/ID` | 202: queries of this name are told to end |
//! | `POST /druid/v2/sql` | 501: there is no SQL |
//! | `GET /druid/v2/datasources` | the names of roll-ups |
//! | `GET /druid/v2/datasources/NAME` | the names of dimensions and metrics of one |
//! | `POST /ingest/NAME` | what became of rows, as JSON |
//!
//! | module | holds |
//! |---|---|
//! | `druid` | requests about roll-ups, as commands |
//! | `visit` | a session for one request: its user, its command, its job |
//! | `login` | the user and the password in a request |
//! | `body` | bodies of requests, and how much of them may be there at a time |
//! | `replies` | replies of commands, as JSON |
//! | `failure` | refusals, as Druid writes them |
//!
//! Each request about roll-ups is a command of a client of its own. So users, rights, limits, jobs and counts
//! are those of the Redis protocol: what is closed there is closed here.

mod body;
mod druid;
mod failure;
mod login;
mod replies;
mod visit;

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Service;
use crate::clients::Origin;
use crate::net::listener::GREETING_TIMEOUT;
use crate::net::metrics;

use body::Bodies;

/// A pause when the process has no descriptors left for a connection.
const PAUSE: Duration = Duration::from_millis(50);
/// The time for a request's head to come.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The form of the metrics.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Connections at a time, at most; one beyond them is closed.
const CONNECTIONS_MAX: usize = 1_024;
/// Requests about roll-ups at a time for each thread that serves clients, at most: each may wait for a job.
const REQUESTS_A_THREAD: usize = 8;

/// An address where metrics, health and roll-ups are asked for.
pub struct Http {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listener, tls } = self;
        f.debug_struct("Http")
            .field("listener", listener)
            .field("tls", &tls.is_some())
            .finish_non_exhaustive()
    }
}

/// What all connections share.
#[derive(Debug)]
struct Door {
    service: Arc<Service>,
    /// Cancelled when the server begins to end.
    ending: CancellationToken,
    /// A permit for each request about roll-ups.
    requests: Arc<Semaphore>,
    bodies: Bodies,
}

impl Http {
    /// Listens at an address.
    ///
    /// # Errors
    /// Those of the system, such as for an address that is in use.
    pub async fn listen(address: SocketAddr) -> io::Result<Http> {
        Ok(Http { listener: TcpListener::bind(address).await?, tls: None })
    }

    /// For clients that speak TLS, and no others.
    #[must_use]
    pub fn with_tls(self, acceptor: TlsAcceptor) -> Http {
        Http { tls: Some(acceptor), ..self }
    }

    /// The address, with the port that the system has chosen.
    ///
    /// # Errors
    /// Those of the system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop`. While `ending` is cancelled and `stop` is not, it says so.
    pub async fn run(
        self,
        service: Arc<Service>,
        ending: CancellationToken,
        stop: CancellationToken,
    ) {
        let requests = Arc::new(Semaphore::new(REQUESTS_A_THREAD * service.options.threads));
        let door = Arc::new(Door { service, ending, requests, bodies: Bodies::default() });
        let connections = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            let Ok((stream, peer)) = accepted else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            if connections.len() >= CONNECTIONS_MAX {
                continue;
            }
            let (door, stop, tls) = (Arc::clone(&door), stop.clone(), self.tls.clone());
            connections.spawn(async move {
                tokio::select! {
                    () = door.greet(stream, peer, tls) => {}
                    () = stop.cancelled() => {}
                }
            });
        }
    }
}

impl Door {
    /// Agrees on keys with a client, if it is to speak TLS, and serves it.
    async fn greet(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, tls: Option<TlsAcceptor>) {
        let local = stream.local_addr().unwrap_or(peer);
        let origin = Origin::Tcp { peer, local, descriptor: stream.as_raw_fd() };
        let Some(tls) = tls else { return self.serve(stream, origin).await };
        match tokio::time::timeout(GREETING_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream, origin).await,
            Ok(Err(error)) => tracing::debug!(%error, "a client of HTTP failed to speak TLS"),
            Err(_) => tracing::debug!("a client of HTTP was too slow to speak TLS"),
        }
    }

    /// Answers the requests of a connection. When the client goes, the answer that it waits for is given up.
    async fn serve<S>(self: Arc<Self>, stream: S, origin: Origin)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let answer = service_fn(|request| {
            let (door, origin) = (Arc::clone(&self), origin.clone());
            async move { Ok::<_, Infallible>(door.answer(request, origin).await) }
        });
        // A client that goes in the middle is no event.
        let _ended = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), answer)
            .await;
    }

    async fn answer(&self, request: Request<Incoming>, origin: Origin) -> Response<Full<Bytes>> {
        if druid::is_about(request.uri().path()) {
            return druid::answer(self, request, origin).await;
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "GET alone\n".to_owned());
        }
        let plain = |status, words: &str| text(status, "text/plain", format!("{words}\n"));
        match request.uri().path() {
            "/metrics" => match metrics::text(&self.service) {
                Ok(metrics) => text(StatusCode::OK, METRICS_TYPE, metrics),
                Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written"),
            },
            "/healthz" => plain(StatusCode::OK, "ok"),
            "/readyz" if self.ending.is_cancelled() => {
                plain(StatusCode::SERVICE_UNAVAILABLE, "ending")
            }
            "/readyz" => plain(StatusCode::OK, "ready"),
            _ => plain(
                StatusCode::NOT_FOUND,
                "there are /metrics, /healthz and /readyz, /druid/v2 and /ingest",
            ),
        }
    }
}

fn text(status: StatusCode, form: &'static str, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form));
    response
}
