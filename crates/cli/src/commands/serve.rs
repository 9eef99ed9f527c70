//! `sapwood serve`: a server for the Redis protocol.

use std::net::SocketAddr;
use std::sync::Arc;

use sapwood::Db;
use sapwood_server::Service;
use sapwood_server::net::{Housekeeping, Listeners, Server};
use sapwood_server::service::Options;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::Serve;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::stderr;

pub(crate) fn run(args: &Serve) -> Outcome {
    let options = Options::default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(options.threads)
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("no threads can be started: {error}")))?;
    let db = match &args.dir {
        Some(directory) => Db::open(directory)?,
        None => Db::in_memory(),
    };
    let service = Service::new(db.clone(), options)
        .map_err(|error| Failure::Failed(format!("the tables cannot be opened: {error}")))?;
    let service = Arc::new(service);
    let housekeeping = Housekeeping::start(Arc::clone(&service))
        .map_err(|error| Failure::Failed(format!("no threads can be started: {error}")))?;
    runtime.block_on(serve(args, Arc::clone(&service)))?;
    drop((housekeeping, runtime));
    if args.dir.is_some() {
        db.close()?;
    }
    Ok(())
}

async fn serve(args: &Serve, service: Arc<Service>) -> Outcome {
    let failed = |error| Failure::Failed(format!("signals cannot be heard: {error}"));
    let mut interrupted = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
    let mut listeners = Listeners::default();
    for address in &args.bind {
        let address = SocketAddr::new(*address, args.port);
        let address = listeners.tcp(address).map_err(|error| {
            Failure::Failed(format!(
                "{address} cannot be listened at: {error}; choose another --port"
            ))
        })?;
        stderr::line(format_args!("ready to accept connections at {address}"));
    }
    let stop = CancellationToken::new();
    let ending = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
        ending.cancel();
    });
    let server = Server::new(service, stop);
    server
        .run(listeners)
        .await
        .map_err(|error| Failure::Failed(format!("clients cannot be accepted any more: {error}")))
}
