//! `sapwood serve`: a server for the Redis protocol.

mod options;

use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::ArgMatches;
use sapwood::{Db, DbOptions};
use sapwood_server::Service;
use sapwood_server::acl::{self, ProtectedMode, Secret};
use sapwood_server::admin::{self, AppendFsync, Debug, SaveRule};
use sapwood_server::net::{Housekeeping, Http, Listeners, Server, tls};
use sapwood_server::service;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::level_filters::LevelFilter;

use crate::args::serve::{
    Fsync, LogFormat, LogLevel, Network, NoLocalYes, SAVE, Serve, ServedSample, YesNo,
};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{bytes, count, time};
use crate::terminal::ui::{Answers, Ui};

use options::Options;

/// Loads a sample into a database; ends early when it is asked to.
pub(crate) type LoadSample = fn(&Db, &dyn Fn() -> bool) -> Outcome<u64>;

pub(crate) fn run(matches: &ArgMatches, load_flights: LoadSample) -> Outcome {
    let Options { serve, .. } = Options::read(matches)?;
    log_to_stderr(&serve);
    let options = service_options(&serve)?;
    let acceptors = Acceptors::new(&serve.network)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(options.threads)
        .thread_name("clients")
        .enable_all()
        .build()
        .map_err(|error| failed("no threads can be started", error))?;
    let db = match &serve.storage.dir {
        Some(directory) => {
            let durability = options.admin.append_fsync.durability();
            open(directory, DbOptions::default().durability(durability))?
        }
        None => Db::in_memory(),
    };
    let service = Service::new(db.clone(), options)
        .map_err(|error| failed("the tables cannot be opened", error))?;
    let service = match &serve.clients.aclfile {
        None => service,
        Some(path) => service
            .with_users_of(path.clone())
            .map_err(|error| failed("the users cannot be read", error))?,
    };
    let service = Arc::new(service);
    let housekeeping = Housekeeping::start(Arc::clone(&service))
        .map_err(|error| failed("no threads can be started", error))?;
    let stop = CancellationToken::new();
    let sample = serve.sample.map(|ServedSample::Flights| Sample { db, load: load_flights });
    runtime.block_on(listen_and_serve(&serve, &service, acceptors, sample, &stop))?;
    stop.cancel();
    drop(housekeeping);
    if service.saves_at_the_end() {
        tracing::info!("the last checkpoint begins; a signal ends without it");
        service.save_last().map_err(|error| failed("the last checkpoint failed", error))?;
    }
    tracing::info!("ended");
    Ok(())
}

/// Prints the options that hold, and where each came from.
pub(crate) fn print_options(matches: &ArgMatches, ui: &Ui) -> Outcome {
    let options = Options::read(matches)?;
    service_options(&options.serve)?;
    if ui.answers == Answers::Json {
        for shown in &options.shown {
            let (name, value, origin) = (&shown.name, &shown.value, shown.origin.name());
            ui.print_json(&json!({ "option": name, "value": value, "from": origin }))?;
        }
        return Ok(());
    }
    ui.print(|out| {
        for shown in &options.shown {
            let value = shown.value.as_deref().unwrap_or("(none)");
            io::Write::write_fmt(
                out,
                format_args!("{:<28}{value:<28}  {}\n", shown.name, shown.origin.name()),
            )?;
        }
        Ok(())
    })
}

/// Opens a database, and tells how that goes.
fn open(directory: &Path, options: DbOptions) -> Outcome<Db> {
    let told = Mutex::new(Instant::now());
    let options = options.on_recovery(move |progress| {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.elapsed() >= TOLD_AFTER && progress.bytes < progress.all_bytes {
            *told = Instant::now();
            let (read, all) = (bytes(progress.bytes), bytes(progress.all_bytes));
            tracing::info!("{read} of {all} of the log are read");
        }
    });
    let db = Db::open_with(directory, options)?;
    if let Some(log) = db.stats().log {
        let (records, read) = (count(log.recovered_records), bytes(log.recovered_bytes));
        let took = time(log.recovery_time);
        tracing::info!("{records} records of the log are done again, {read} are read, in {took}");
        if let Some(cut_off) = log.cut_off {
            tracing::warn!(
                "{cut_off}: a crash came while it was written, and it was never said to last"
            );
        }
    }
    Ok(db)
}

/// The time between two lines that tell how far opening a database has come.
const TOLD_AFTER: Duration = Duration::from_secs(5);

fn failed(what: &str, error: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("{what}: {error}"))
}

fn log_to_stderr(serve: &Serve) {
    let level = match serve.watching.log_level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr);
    // A second one in a process, which has one, is refused.
    let _set = match serve.watching.log_format {
        LogFormat::Json => tracing::subscriber::set_global_default(log.json().finish()),
        LogFormat::Text => {
            let log = log.with_target(false).with_ansi(io::stderr().is_terminal());
            tracing::subscriber::set_global_default(log.finish())
        }
    };
}

fn service_options(serve: &Serve) -> Outcome<service::Options> {
    let Serve { network, clients, storage, watching, .. } = serve;
    let save = SaveRule::list(&storage.save).ok_or_else(|| {
        Failure::Usage("--save takes pairs of seconds and changes, such as \"300 100\"".to_owned())
    })?;
    if storage.dir.is_none() && storage.save != SAVE && !save.is_empty() {
        let needs = "--save needs a directory to save in; next: --dir DIRECTORY";
        return Err(Failure::Usage(needs.to_owned()));
    }
    let admin = admin::Options {
        save,
        append_fsync: match storage.appendfsync {
            Fsync::Always => AppendFsync::Always,
            Fsync::Everysec => AppendFsync::EverySecond,
            Fsync::No => AppendFsync::No,
        },
        backups: storage.backups.clone(),
        slowlog_micros: watching.slowlog_log_slower_than.max(-1),
        slowlog_len: watching.slowlog_max_len,
        latency_threshold_millis: watching.latency_monitor_threshold,
        debug: match watching.enable_debug_command {
            NoLocalYes::No => Debug::Off,
            NoLocalYes::Local => Debug::Local,
            NoLocalYes::Yes => Debug::On,
        },
        bind: network.bind.clone(),
        port: network.port,
        config_file: serve.config.clone(),
    };
    let mut options = service::Options {
        databases: storage.databases.into(),
        maxmemory: storage.maxmemory,
        admin,
        maxclients: clients.maxclients as usize,
        timeout: Duration::from_secs(clients.timeout.into()),
        output_limits: clients.client_output_buffer_limit,
        query_bytes_max: clients.client_query_buffer_limit as usize,
        tcp_keepalive: Duration::from_secs(clients.tcp_keepalive.into()),
        users: acl::Options {
            requirepass: clients.requirepass.as_deref().map(Secret::from),
            protected_mode: match clients.protected_mode {
                YesNo::Yes => ProtectedMode::On,
                YesNo::No => ProtectedMode::Off,
            },
            ..acl::Options::default()
        },
        ..service::Options::default()
    };
    if let Some(threads) = network.threads {
        options.threads = threads.into();
    }
    Ok(options)
}

/// What clients agree on keys with, where they are to speak TLS.
struct Acceptors {
    /// Of the Redis protocol, with its port.
    redis: Option<(u16, TlsAcceptor)>,
    http: Option<TlsAcceptor>,
}

impl Acceptors {
    fn new(network: &Network) -> Outcome<Acceptors> {
        let is_https = network.http_tls == YesNo::Yes;
        if is_https && network.http.is_none() {
            let needs = "--http-tls needs --http, the address that it is about";
            return Err(Failure::Usage(needs.to_owned()));
        }
        let option = match (network.tls_port, is_https) {
            (Some(_), _) => "--tls-port",
            (None, true) => "--http-tls",
            (None, false) => return Ok(Acceptors { redis: None, http: None }),
        };
        let (Some(certificate), Some(key)) = (&network.tls_cert_file, &network.tls_key_file) else {
            let needs = format!("{option} needs --tls-cert-file and --tls-key-file");
            return Err(Failure::Usage(needs));
        };
        let acceptor = tls::acceptor(certificate, key, network.tls_ca_cert_file.as_deref())
            .map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(Acceptors {
            redis: network.tls_port.map(|port| (port, acceptor.clone())),
            http: is_https.then_some(acceptor),
        })
    }
}

/// A sample that is to be loaded before clients are served: none sees a part of it.
struct Sample {
    db: Db,
    load: LoadSample,
}

impl Sample {
    /// Loads it on a thread that serves no clients, which wait meanwhile.
    async fn load(self, port: u16, stop: &CancellationToken) -> Outcome {
        tracing::info!(table = "flights", "the sample is being loaded; clients wait until it is");
        let (Sample { db, load }, stop) = (self, stop.clone());
        let loading = tokio::task::spawn_blocking(move || load(&db, &|| stop.is_cancelled()));
        let loaded = loading.await.map_err(|error| failed("the sample cannot be loaded", error))?;
        let rows = loaded?;
        tracing::info!(table = "flights", rows, "the sample is loaded");
        tracing::info!("try: redis-cli -p {port} SW.INFO flights");
        tracing::info!(
            "try: redis-cli -p {port} SW.AGGREGATE flights SELECT 'mean(dep_delay)' BY carrier"
        );
        Ok(())
    }
}

async fn listen_and_serve(
    serve: &Serve,
    service: &Arc<Service>,
    acceptors: Acceptors,
    sample: Option<Sample>,
    stop: &CancellationToken,
) -> Outcome {
    let network = &serve.network;
    let heard = |kind| signal(kind).map_err(|error| failed("signals cannot be heard", error));
    let interrupted = heard(SignalKind::interrupt())?;
    let terminated = heard(SignalKind::terminate())?;
    let mut listeners = Listeners::default();
    for ip in &network.bind {
        let address = SocketAddr::new(*ip, network.port);
        let address = listeners.tcp(address).map_err(|error| in_use("--port", &address, &error))?;
        tracing::info!(%address, "ready to accept connections");
    }
    if let Some((port, acceptor)) = acceptors.redis {
        for ip in &network.bind {
            let address = SocketAddr::new(*ip, port);
            let address = listeners
                .tls(address, acceptor.clone())
                .map_err(|error| in_use("--tls-port", &address, &error))?;
            tracing::info!(%address, "ready to accept connections with TLS");
        }
    }
    if let Some(path) = &network.unixsocket {
        listen_at_path(&mut listeners, path, network.unixsocketperm)?;
    }
    tokio::spawn(stop_when_asked(interrupted, terminated, service.stop_wanted(), stop.clone()));
    // Those that come now are served once it is loaded.
    if let Some(sample) = sample {
        sample.load(network.port, stop).await?;
    }
    let end = CancellationToken::new();
    if let Some(address) = network.http {
        let http = Http::listen(address).await;
        let mut http = http.map_err(|error| in_use("--http", &address, &error))?;
        let scheme = if acceptors.http.is_some() { "https" } else { "http" };
        if let Some(acceptor) = acceptors.http {
            http = http.with_tls(acceptor);
        }
        if network.metrics_open == YesNo::Yes {
            http = http.with_open_metrics();
        }
        let address = http.address().unwrap_or(address);
        tracing::info!(%address, scheme, "metrics and health are at /metrics, /healthz and /readyz, roll-ups at /druid/v2");
        tokio::spawn(http.run(Arc::clone(service), stop.clone(), end.clone()));
    }
    let server = Server::new(Arc::clone(service), stop.clone());
    let ended = server.run(listeners).await;
    end.cancel();
    ended.map_err(|error| failed("clients cannot be accepted any more", error))
}

/// The first signal ends in order, the second at once.
async fn stop_when_asked(
    mut interrupted: Signal,
    mut terminated: Signal,
    wanted: CancellationToken,
    stop: CancellationToken,
) {
    tokio::select! {
        _ = interrupted.recv() => tracing::info!("ending, as Ctrl-C asks"),
        _ = terminated.recv() => tracing::info!("ending, as SIGTERM asks"),
        () = wanted.cancelled() => tracing::info!("ending, as a client asks"),
    }
    stop.cancel();
    // The runtime goes on while the last checkpoint is written.
    let second = async move {
        tokio::select! {
            _ = interrupted.recv() => 130,
            _ = terminated.recv() => 143,
        }
    };
    let code = second.await;
    tracing::warn!("ended at once, as a second signal asks");
    process::exit(code);
}

fn listen_at_path(listeners: &mut Listeners, path: &Path, mode: Option<u32>) -> Outcome {
    let shown = path.display();
    listeners.unix(path).map_err(|error| {
        let next = "remove it if no server uses it, or choose another --unixsocket";
        Failure::Failed(format!("{shown} cannot be listened at: {error}; {next}"))
    })?;
    if let Some(mode) = mode {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, permissions)
            .map_err(|error| failed(&format!("{shown} cannot get its permissions"), error))?;
    }
    tracing::info!(path = %shown, "ready to accept connections");
    Ok(())
}

fn in_use(option: &str, address: &SocketAddr, error: &io::Error) -> Failure {
    let next = match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("another process listens there: end it, or choose another {option}")
        }
        io::ErrorKind::PermissionDenied => {
            format!("ports below 1024 are for the superuser: choose another {option}")
        }
        io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        _ => error.to_string(),
    };
    Failure::Failed(format!("{address} cannot be listened at: {next}"))
}
