//! A service on a free port and a client that asks it, for the examples of services.

use std::future::IntoFuture;

use axum::Router;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Serves at the address that follows `--serve` until the process ends; without one, asks the service and prints
/// what it answers.
pub(crate) async fn run(service: Router, requests: &[&str]) -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("--serve") {
        let address = arguments.next().ok_or("--serve needs an address, as 127.0.0.1:8080")?;
        return Ok(axum::serve(TcpListener::bind(address).await?, service).await?);
    }
    for (request, answer) in requests.iter().zip(ask(service, requests).await?) {
        println!("{request}\n  {answer}");
    }
    Ok(())
}

/// The status and the body of each answer.
pub(crate) async fn ask(service: Router, requests: &[&str]) -> Result<Vec<String>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async { stopped.await.unwrap_or_default() };
    let server = axum::serve(listener, service).with_graceful_shutdown(stopped).into_future();
    let server = tokio::spawn(server);
    let mut answers = Vec::new();
    for request in requests {
        let mut stream = TcpStream::connect(address).await?;
        let head = format!("{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) =
            answer.split_once("\r\n\r\n").ok_or("an answer without an end of its head")?;
        let status = head.split(' ').nth(1).ok_or("an answer without a status")?;
        answers.push(format!("{status} {body}"));
    }
    drop(stop);
    server.await??;
    Ok(answers)
}
