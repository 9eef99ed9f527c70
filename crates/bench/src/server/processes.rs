//! Servers, started and stopped.

use std::ffi::OsStr;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sapwood::Db;
use sapwood_server::net::Listeners;
use sapwood_server::{Service, service::Options};
use tokio_util::sync::CancellationToken;

use super::floor;
use super::protocol::Protocol;
use super::wire::Wire;
use crate::harness::*;

pub(crate) const SAPWOOD: &str = "sapwood";
pub(crate) const REDIS: &str = "redis";
pub(crate) const MEMCACHED: &str = "memcached";
pub(crate) const FLOOR: &str = "floor-epoll";
pub(crate) const URING_FLOOR: &str = "floor-io_uring";
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    running: Running,
}

enum Running {
    Process(Owned),
    /// Ours where there is no program `sapwood` beside this one, or a floor.
    Within {
        _server: ThreadServer,
    },
}

pub(crate) struct ThreadServer {
    pub(crate) address: SocketAddr,
    pub(crate) stop: Box<dyn Fn()>,
    pub(crate) thread: Option<JoinHandle<io::Result<()>>>,
}

impl Drop for ThreadServer {
    fn drop(&mut self) {
        (self.stop)();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts the wanted ones that are installed; others are left out with a sentence, and so is
/// io_uring where the system has none.
pub(crate) fn start(plan: &Plan, program: Option<&Path>) -> Result<(Vec<Server>, Vec<String>)> {
    let mut servers = Vec::new();
    let mut missing = Vec::new();
    for &name in super::BENCH.engines.iter().filter(|name| plan.takes(name)) {
        match start_one(name, program) {
            Ok(server) => servers.push(server),
            Err(error) if name == SAPWOOD || name == FLOOR => return Err(error),
            Err(error) => missing.push(format!("{name}: {error}")),
        }
    }
    Ok((servers, missing))
}

fn start_one(name: &'static str, program: Option<&Path>) -> Result<Server> {
    let within = match name {
        FLOOR => Some(floor::epoll()?),
        URING_FLOOR => Some(floor::uring()?),
        SAPWOOD if program.is_none() => Some(within()?),
        _ => None,
    };
    if let Some(within) = within {
        return Ok(Server {
            name,
            address: within.address,
            running: Running::Within { _server: within },
        });
    }
    let address = free_address()?;
    let port = address.port().to_string();
    let command = match name {
        SAPWOOD => {
            let mut command = Command::new(program.ok_or("it has no program")?);
            command.args(["--quiet", "serve", "--port", &port]);
            command
        }
        MEMCACHED => {
            let mut command = Command::new(installed(MEMCACHED)?);
            command.args(["-l", "127.0.0.1", "-p", &port, "-U", "0", "-m", MEMCACHED_MIB]);
            // Connections beyond 1,024; as many threads as the machine has processors.
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            command.args(["-c", "20000", "-t", &threads.to_string()]);
            if rustix::process::geteuid().is_root() {
                command.args(["-u", "root"]);
            }
            command
        }
        name => {
            let mut command = Command::new(installed(&format!("{name}-server"))?);
            command.args(["--port", &port, "--save", "", "--appendonly", "no"]);
            command
        }
    };
    let mut server = spawn(name, address, command)?;
    server.wait_for(PATIENCE)?;
    Ok(server)
}

/// Redis with arguments of its own beside its port. It may not answer yet.
pub(crate) fn spawn_redis<'a>(args: impl IntoIterator<Item = &'a OsStr>) -> Result<Server> {
    let address = free_address()?;
    let mut command = Command::new(installed("redis-server")?);
    command.args(["--port", &address.port().to_string()]).args(args);
    spawn(REDIS, address, command)
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

fn spawn(name: &'static str, address: SocketAddr, mut command: Command) -> Result<Server> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    Ok(Server { name, address, running: Running::Process(Owned(child)) })
}

/// Memory that memcached may use: more than the entries of any run take.
const MEMCACHED_MIB: &str = "4096";

pub(crate) fn installed(program: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .ok_or_else(|| format!("{program} is not installed").into())
}

impl Server {
    /// Waits until it answers; an error after some time.
    pub(crate) fn wait_for(&mut self, patience: Duration) -> Result {
        let begin = Instant::now();
        loop {
            if self.connect().and_then(|mut wire| wire.ping()).is_ok() {
                return Ok(());
            }
            if let Running::Process(Owned(child)) = &mut self.running
                && let Some(status) = child.try_wait()?
            {
                bail!("{} ended by itself: {status}", self.name);
            }
            if begin.elapsed() > patience {
                bail!("{} does not answer at {}", self.name, self.address);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn protocol(&self) -> Protocol {
        if self.name == MEMCACHED { Protocol::Memcached } else { Protocol::Redis }
    }

    /// True if it answers all requests alike.
    pub(crate) fn is_floor(&self) -> bool {
        [FLOOR, URING_FLOOR].contains(&self.name)
    }

    pub(crate) fn connect(&self) -> Result<Wire> {
        Wire::open(self.address, self.protocol())
    }

    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        let Running::Process(Owned(child)) = &self.running else { return None };
        resident_bytes_of(&child.id().to_string())
    }
}

fn within() -> Result<ThreadServer> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let service = Arc::new(Service::new(Db::in_memory(), Options::default())?);
    let address = free_address()?;
    let mut listeners = Listeners::default();
    {
        let _entered = runtime.enter();
        listeners.tcp(address)?;
    }
    let token = CancellationToken::new();
    let server = sapwood_server::net::Server::new(service, token.clone());
    let thread = std::thread::spawn(move || {
        // What the listener cannot do its clients notice.
        let _ = runtime.block_on(server.run(listeners));
        Ok(())
    });
    Ok(ThreadServer { address, stop: Box::new(move || token.cancel()), thread: Some(thread) })
}
