//! The running of a server: counts, slow commands, spikes, saves, and options that may be changed.
//!
//! | module | holds |
//! |---|---|
//! | `tally` | counts of commands, a block for each thread |
//! | `slow` | commands that took long, and spikes of latency |
//! | `saves` | rules by which checkpoints are taken, and how the last ones went |
//! | `settings` | options that `CONFIG SET` may change |

pub(crate) mod saves;
pub(crate) mod settings;
pub(crate) mod slow;
pub(crate) mod tally;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::catalog::Catalog;
use crate::store::format::Millis;

use saves::Saves;
use settings::Settings;
use slow::{SlowLog, Spikes};
use tally::Tally;

pub use saves::SaveRule;
pub use settings::AppendFsync;

/// Choices about the running of a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// When checkpoints are taken, in a service over a directory.
    pub save: Vec<SaveRule>,
    /// When the log is synced, in a service over a directory, which was opened with
    /// [`AppendFsync::durability`].
    pub append_fsync: AppendFsync,
    /// The folder that `SW.BACKUP` adds backups to, if there is one.
    pub backups: Option<PathBuf>,
    /// Microseconds from which on a command is kept in the log of slow ones; below 0 for none.
    pub slowlog_micros: i64,
    /// Slow commands that are kept.
    pub slowlog_len: u64,
    /// Milliseconds from which on a command counts as a spike; 0 for none.
    pub latency_threshold_millis: u64,
    /// Whether `DEBUG` is there.
    pub debug: Debug,
    /// The addresses that `CONFIG GET bind` tells of.
    pub bind: Vec<IpAddr>,
    /// The port that `INFO` tells of.
    pub port: u16,
    /// The file that the options came from, if there is one.
    pub config_file: Option<PathBuf>,
}

impl Default for Options {
    /// Those of Redis.
    fn default() -> Options {
        let rule = |seconds, changes| SaveRule { seconds, changes };
        Options {
            save: vec![rule(3600, 1), rule(300, 100), rule(60, 10_000)],
            append_fsync: AppendFsync::default(),
            backups: None,
            slowlog_micros: 10_000,
            slowlog_len: 128,
            latency_threshold_millis: 0,
            debug: Debug::Off,
            bind: Vec::new(),
            port: 6379,
            config_file: None,
        }
    }
}

/// Whether `DEBUG` is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Debug {
    /// It is refused.
    #[default]
    Off,
    /// It is there for clients of this machine: of the loopback interface, or of a path.
    Local,
    /// It is there.
    On,
}

/// The end that a client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shutdown {
    /// With a last checkpoint where there are rules for any.
    #[default]
    ByRules,
    /// With a last checkpoint.
    Save,
    /// Without.
    NoSave,
}

/// What is known about the running of a server.
#[derive(Debug)]
pub(crate) struct Admin {
    pub(crate) tally: Tally,
    pub(crate) slow: SlowLog,
    pub(crate) spikes: Spikes,
    pub(crate) saves: Saves,
    pub(crate) settings: Settings,
    pub(crate) debug: Debug,
    pub(crate) bind: Vec<IpAddr>,
    pub(crate) port: u16,
    pub(crate) config_file: Option<PathBuf>,
    /// A name of 40 digits that no other start of a server has.
    pub(crate) run_id: String,
    started: Instant,
    /// Cancelled when a client asks for the end.
    pub(crate) stop: CancellationToken,
    shutdown: AtomicU8,
    /// Peak of the memory that was seen.
    pub(crate) memory_peak: AtomicU64,
    /// The time at which the log was told of a request of HTTP; 0 for never.
    pub(crate) http_told_at: AtomicU64,
}

impl Admin {
    pub(crate) fn new(
        options: &Options,
        catalog: &'static Catalog,
        threads: usize,
        maxmemory: Option<u64>,
        now: Millis,
    ) -> Admin {
        let run_id = (0..40).map(|_| fastrand::char('a'..='f')).collect();
        Admin {
            tally: Tally::new(threads, catalog),
            slow: SlowLog::default(),
            spikes: Spikes::default(),
            saves: Saves::new(now),
            settings: Settings::new(options, maxmemory),
            debug: options.debug,
            bind: options.bind.clone(),
            port: options.port,
            config_file: options.config_file.clone(),
            run_id,
            started: Instant::now(),
            stop: CancellationToken::new(),
            shutdown: AtomicU8::new(0),
            memory_peak: AtomicU64::new(0),
            http_told_at: AtomicU64::new(0),
        }
    }

    /// Seconds since the start.
    pub(crate) fn uptime(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    pub(crate) fn end(&self, shutdown: Shutdown) {
        self.shutdown.store(shutdown as u8, Ordering::SeqCst);
        self.stop.cancel();
    }

    pub(crate) fn shutdown(&self) -> Shutdown {
        match self.shutdown.load(Ordering::SeqCst) {
            1 => Shutdown::Save,
            2 => Shutdown::NoSave,
            _ => Shutdown::ByRules,
        }
    }
}
