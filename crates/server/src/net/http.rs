//! HTTP, at an address of its own: metrics and health, and roll-ups as Druid has them.
//!
//! | path | answer |
//! |---|---|
//! | `/metrics` | figures for Prometheus, with the right to `INFO` |
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
//! | `connections` | connections at a time, and the one that makes room for another |
//! | `body` | bodies of requests, and how much of them may be there at a time |
//! | `replies` | replies of commands, as JSON |
//! | `failure` | refusals, as Druid writes them |
//!
//! Each request about roll-ups is a command of a client of its own. So users, rights, limits, jobs and counts
//! are those of the Redis protocol: what is closed there is closed here. Metrics need a right and are no
//! command: a scraper is answered while clients are paused, or as many as may be.

mod body;
mod connections;
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
use hyper::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Service;
use crate::clients::Origin;
use crate::command;
use crate::net::listener::GREETING_TIMEOUT;
use crate::net::metrics;

use body::Bodies;
use connections::{Connections, Place};
use failure::Failure;

/// A pause when the process has no descriptors left for a connection.
const PAUSE: Duration = Duration::from_millis(50);
/// The time for a request's head to come.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests about roll-ups at a time, at most, whose bodies are there: each may wait for a job. As
/// many as Druid answers, or more where there are many threads.
const REQUESTS_MAX: usize = 64;
const REQUESTS_A_THREAD: usize = 8;

/// An address where metrics, health and roll-ups are asked for.
pub struct Http {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    has_open_metrics: bool,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listener, tls, has_open_metrics } = self;
        f.debug_struct("Http")
            .field("listener", listener)
            .field("tls", &tls.is_some())
            .field("has_open_metrics", has_open_metrics)
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
    /// True to answer metrics without a password.
    has_open_metrics: bool,
}

impl Http {
    /// Listens at an address.
    ///
    /// # Errors
    /// Those of the system, such as for an address that is in use.
    pub async fn listen(address: SocketAddr) -> io::Result<Http> {
        let listener = TcpListener::bind(address).await?;
        Ok(Http { listener, tls: None, has_open_metrics: false })
    }

    /// For clients that speak TLS, and no others.
    #[must_use]
    pub fn with_tls(self, acceptor: TlsAcceptor) -> Http {
        Http { tls: Some(acceptor), ..self }
    }

    /// With metrics that are told without a password, where clients need one.
    #[must_use]
    pub fn with_open_metrics(self) -> Http {
        Http { has_open_metrics: true, ..self }
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
        let requests = REQUESTS_MAX.max(REQUESTS_A_THREAD * service.options.threads);
        let requests = Arc::new(Semaphore::new(requests));
        let (bodies, has_open_metrics) = (Bodies::default(), self.has_open_metrics);
        let door = Arc::new(Door { service, ending, requests, bodies, has_open_metrics });
        let (connections, tasks) = (Arc::<Connections>::default(), TaskTracker::new());
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            let Ok((stream, peer)) = accepted else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let Some(place) = connections.enter() else { continue };
            let (door, stop, tls) = (Arc::clone(&door), stop.clone(), self.tls.clone());
            tasks.spawn(async move {
                tokio::select! {
                    () = door.greet(stream, peer, tls, &place) => {}
                    () = place.taken.cancelled() => {}
                    () = stop.cancelled() => {}
                }
            });
        }
    }
}

impl Door {
    /// Agrees on keys with a client, if it is to speak TLS, and serves it.
    async fn greet(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        tls: Option<TlsAcceptor>,
        place: &Place,
    ) {
        let local = stream.local_addr().unwrap_or(peer);
        let origin = Origin::Tcp { peer, local, descriptor: stream.as_raw_fd() };
        let Some(tls) = tls else { return self.serve(stream, origin, place).await };
        match tokio::time::timeout(GREETING_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream, origin, place).await,
            Ok(Err(error)) => tracing::debug!(%error, "a client of HTTP failed to speak TLS"),
            Err(_) => tracing::debug!("a client of HTTP was too slow to speak TLS"),
        }
    }

    /// Answers the requests of a connection. When the client goes, the answer that it waits for is given up.
    async fn serve<S>(&self, stream: S, origin: Origin, place: &Place)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let answer = service_fn(|request| {
            let origin = origin.clone();
            async move {
                place.answer();
                let answer = self.answer(request, origin, place).await;
                place.wait();
                Ok::<_, Infallible>(answer)
            }
        });
        // A client that goes in the middle is no event.
        let _ended = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), answer)
            .await;
    }

    /// Tells if a client may read metrics: they tell what `INFO` tells. They are open where a client
    /// that says no password may call it. A scrape waits for nothing, so there are no more at a time
    /// than threads.
    fn expect_metrics(&self, headers: &HeaderMap, origin: Origin) -> Result<(), Failure> {
        const INFO: &[&[u8]] = &[b"INFO"];
        let all = self.service.users.default_user();
        let may_all = all.is_on
            && all.needs_no_password()
            && command::find(INFO[0]).is_some_and(|info| all.check(info, INFO).is_ok());
        if self.has_open_metrics || may_all {
            return Ok(());
        }
        visit::expect_right(self, origin, headers, INFO)
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        origin: Origin,
        place: &Place,
    ) -> Response<Full<Bytes>> {
        if druid::is_about(request.uri().path()) {
            return match place.is_spare {
                true => refuse_spare(),
                false => druid::answer(self, request, origin).await,
            };
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "GET alone\n".to_owned());
        }
        let plain = |status, words: &str| text(status, "text/plain", format!("{words}\n"));
        let (head, _no_body) = request.into_parts();
        match head.uri.path() {
            "/metrics" => {
                if let Err(failure) = self.expect_metrics(&head.headers, origin) {
                    return failure.into_response();
                }
                let form = metrics::Form::of(&header(&head.headers, &ACCEPT));
                match metrics::text(&self.service, form) {
                    Ok(metrics) => text(StatusCode::OK, form.content_type(), metrics),
                    Err(_) => {
                        plain(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written")
                    }
                }
            }
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

/// The answer about roll-ups to a connection beyond the limit. It ends the connection: the client
/// comes anew, and may get a place.
fn refuse_spare() -> Response<Full<Bytes>> {
    let mut response = Failure::too_many().into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A header in small letters; empty without it.
fn header(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_ascii_lowercase()
}

fn text(status: StatusCode, form: &'static str, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form));
    response
}

#[cfg(test)]
mod tests {
    use sapwood::Db;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::service::Options;

    /// A door that lets one request about roll-ups in at a time.
    pub(super) fn door() -> Door {
        let service = Service::new(Db::in_memory(), Options::default()).expect("memory");
        Door {
            service: Arc::new(service),
            ending: CancellationToken::new(),
            requests: Arc::new(Semaphore::new(1)),
            bodies: Bodies::default(),
            has_open_metrics: false,
        }
    }

    #[test]
    fn a_connection_beyond_the_limit_ends_with_its_refusal() {
        let connections = Arc::<Connections>::default();
        let mut places = Vec::new();
        let spare = loop {
            let place = connections.enter().expect("some more are let in");
            if place.is_spare {
                break place;
            }
            place.answer();
            places.push(place);
        };
        let door = door();
        let (mut client, stream) = tokio::io::duplex(1 << 10);
        let asking = async {
            // No body, and no wish to end: the server ends the connection, or it stays.
            let request = b"GET /druid/v2/datasources HTTP/1.1\r\nHost: localhost\r\n\r\n";
            client.write_all(request).await.expect("the server reads");
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.expect("the server answers");
            answer.to_ascii_lowercase()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let ((), answer) = runtime
            .expect("a thread")
            .block_on(async { tokio::join!(door.serve(stream, Origin::Within, &spare), asking) });
        assert!(answer.starts_with("http/1.1 429 "), "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    }
}
