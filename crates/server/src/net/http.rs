//! Metrics and health over HTTP, at an address of their own.
//!
//! | path | answer |
//! |---|---|
//! | `/metrics` | figures for Prometheus |
//! | `/healthz` | 200 while the process serves |
//! | `/readyz` | 200 while it takes clients, 503 while it ends |

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Service;
use crate::net::metrics;

/// A pause when the process has no descriptors left for a connection.
const PAUSE: Duration = Duration::from_millis(50);
/// The time for a request's head to come.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The form of the metrics.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// An address where metrics and health are asked for.
#[derive(Debug)]
pub struct Http {
    listener: TcpListener,
}

impl Http {
    /// Listens at an address.
    ///
    /// # Errors
    /// Those of the system, such as for an address that is in use.
    pub async fn listen(address: SocketAddr) -> io::Result<Http> {
        Ok(Http { listener: TcpListener::bind(address).await? })
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
        let connections = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            let Ok((stream, _address)) = accepted else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let (service, ending, stop) = (Arc::clone(&service), ending.clone(), stop.clone());
            connections.spawn(async move {
                let answer = service_fn(|request| {
                    let response = answer(&service, &ending, &request);
                    async { Ok::<_, Infallible>(response) }
                });
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEAD_TIMEOUT)
                    .serve_connection(TokioIo::new(stream), answer);
                tokio::select! {
                    // A client that goes in the middle is no event.
                    _ended = connection => {}
                    () = stop.cancelled() => {}
                }
            });
        }
    }
}

fn answer(
    service: &Service,
    ending: &CancellationToken,
    request: &Request<Incoming>,
) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "GET alone\n".to_owned());
    }
    let plain = |status, words: &str| text(status, "text/plain", format!("{words}\n"));
    match request.uri().path() {
        "/metrics" => match metrics::text(service) {
            Ok(metrics) => text(StatusCode::OK, METRICS_TYPE, metrics),
            Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written"),
        },
        "/healthz" => plain(StatusCode::OK, "ok"),
        "/readyz" if ending.is_cancelled() => plain(StatusCode::SERVICE_UNAVAILABLE, "ending"),
        "/readyz" => plain(StatusCode::OK, "ready"),
        _ => plain(StatusCode::NOT_FOUND, "there are /metrics, /healthz and /readyz"),
    }
}

fn text(status: StatusCode, form: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let form = hyper::header::HeaderValue::from_static(form);
    response.headers_mut().insert(CONTENT_TYPE, form);
    response
}
