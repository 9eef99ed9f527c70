//! The options of `sapwood serve`, by flag, environment and file.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::ValueEnum;
use sapwood_server::clients::{OutputLimits, QUERY_BYTES_LEAST};

use crate::terminal::format::{bytes, parse_bytes};

/// The options of a server. A flag goes before the environment, and that before the file.
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// A TOML file of options: `port = 7000` is --port 7000
    #[arg(long, value_name = "FILE", env = "SAPWOOD_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// Load sample data into a table, and say what to try; clients wait until it is loaded
    #[arg(long, value_name = "NAME")]
    pub(crate) sample: Option<ServedSample>,

    #[command(flatten)]
    pub(crate) network: Network,

    #[command(flatten)]
    pub(crate) clients: Clients,

    #[command(flatten)]
    pub(crate) storage: Storage,

    #[command(flatten)]
    pub(crate) watching: Watching,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct Network {
    /// The addresses to listen at
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "SAPWOOD_BIND",
        value_delimiter = ',',
        default_value = "127.0.0.1"
    )]
    pub(crate) bind: Vec<IpAddr>,

    /// The port to listen at; 0 lets the system choose
    #[arg(long, env = "SAPWOOD_PORT", default_value_t = 6379)]
    pub(crate) port: u16,

    /// A unix socket to listen at as well
    #[arg(long, value_name = "PATH", env = "SAPWOOD_UNIXSOCKET")]
    pub(crate) unixsocket: Option<PathBuf>,

    /// The permissions of the unix socket, in octal [default: as the system has it]
    #[arg(long, value_name = "MODE", env = "SAPWOOD_UNIXSOCKETPERM", value_parser = parse_mode)]
    pub(crate) unixsocketperm: Option<u32>,

    /// A port for TLS as well; needs a certificate and a key
    #[arg(long, value_name = "PORT", env = "SAPWOOD_TLS_PORT")]
    pub(crate) tls_port: Option<u16>,

    /// The certificate for TLS, with those between it and its authority, in PEM
    #[arg(long, value_name = "FILE", env = "SAPWOOD_TLS_CERT_FILE")]
    pub(crate) tls_cert_file: Option<PathBuf>,

    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", env = "SAPWOOD_TLS_KEY_FILE")]
    pub(crate) tls_key_file: Option<PathBuf>,

    /// Authorities in PEM: a client must have a certificate that one of them has signed
    #[arg(long, value_name = "FILE", env = "SAPWOOD_TLS_CA_CERT_FILE")]
    pub(crate) tls_ca_cert_file: Option<PathBuf>,

    /// Threads that serve clients [default: one a core]
    #[arg(long, env = "SAPWOOD_THREADS", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,

    /// The address for /metrics, /healthz and /readyz over HTTP, and for roll-ups at /druid/v2 and
    /// /ingest [default: none]
    #[arg(long, value_name = "ADDRESS:PORT", env = "SAPWOOD_HTTP")]
    pub(crate) http: Option<SocketAddr>,

    /// Whether the address for HTTP is one for HTTPS alone, with the certificate, the key and the
    /// authorities of TLS; needs a certificate and a key
    #[arg(
        long,
        value_name = "WHETHER",
        env = "SAPWOOD_HTTP_TLS",
        num_args = 0..=1,
        require_equals = true,
        default_value = "no",
        default_missing_value = "yes"
    )]
    pub(crate) http_tls: YesNo,

    /// Answer /metrics without a password; by default a user with the right to INFO gives theirs,
    /// by Basic authentication
    #[arg(
        long,
        value_name = "WHETHER",
        env = "SAPWOOD_METRICS_OPEN",
        num_args = 0..=1,
        require_equals = true,
        default_value = "no",
        default_missing_value = "yes"
    )]
    pub(crate) metrics_open: YesNo,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Clients")]
pub(crate) struct Clients {
    /// The password that clients must say; better in the environment or the file than in a flag,
    /// which other users of the machine see [default: none is needed]
    #[arg(long, value_name = "PASSWORD", env = "SAPWOOD_REQUIREPASS", hide_env_values = true)]
    pub(crate) requirepass: Option<String>,

    /// A file of users and their rights, as `ACL SAVE` writes it
    #[arg(long, value_name = "FILE", env = "SAPWOOD_ACLFILE")]
    pub(crate) aclfile: Option<PathBuf>,

    /// Whether clients of other machines are turned away while there is no password
    #[arg(long, value_name = "WHETHER", env = "SAPWOOD_PROTECTED_MODE", default_value = "yes")]
    pub(crate) protected_mode: YesNo,

    /// Clients that may be connected at a time
    #[arg(
        long,
        value_name = "COUNT",
        env = "SAPWOOD_MAXCLIENTS",
        default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) maxclients: u32,

    /// Seconds after which a client that does nothing is closed; 0 for never
    #[arg(long, value_name = "SECONDS", env = "SAPWOOD_TIMEOUT", default_value_t = 0)]
    pub(crate) timeout: u32,

    /// Bytes that a client may leave unread, by its class: at once, for so many seconds, and these;
    /// 0 for any number. A client with more is closed
    #[arg(
        long,
        value_name = "LIMITS",
        env = "SAPWOOD_CLIENT_OUTPUT_BUFFER_LIMIT",
        default_value = "normal 0 0 0 pubsub 32mb 8mb 60",
        value_parser = parse_output_limits
    )]
    pub(crate) client_output_buffer_limit: OutputLimits,

    /// Bytes that a client may send before they can be executed, those between MULTI and EXEC among
    /// them, 1M at least; a client with more is closed
    #[arg(
        long,
        value_name = "BYTES",
        env = "SAPWOOD_CLIENT_QUERY_BUFFER_LIMIT",
        default_value = "1G",
        value_parser = parse_query_bytes
    )]
    pub(crate) client_query_buffer_limit: u64,

    /// Seconds of silence after which the system asks whether a client is there; 0 for never
    #[arg(long, value_name = "SECONDS", env = "SAPWOOD_TCP_KEEPALIVE", default_value_t = 300)]
    pub(crate) tcp_keepalive: u32,
}

/// Without the password.
impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clients").field("aclfile", &self.aclfile).finish_non_exhaustive()
    }
}

/// The schedule of checkpoints, where there is a directory for them: that of Redis.
pub(crate) const SAVE: &str = "3600 1 300 100 60 10000";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct Storage {
    /// Keep what is stored in this directory [default: in memory alone]
    #[arg(long, value_name = "DIRECTORY", env = "SAPWOOD_DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// When checkpoints are taken in --dir: pairs of seconds and changes, as in Redis; "" for
    /// never
    #[arg(
        long,
        value_name = "SECONDS CHANGES",
        env = "SAPWOOD_SAVE",
        default_value = SAVE
    )]
    pub(crate) save: String,

    /// When changes are synced to the disk in --dir: before they are answered, at most a second
    /// later, or when the system writes them. A server that is killed loses none in any case
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        env = "SAPWOOD_APPENDFSYNC",
        default_value = "everysec"
    )]
    pub(crate) appendfsync: Fsync,

    /// A folder that SW.BACKUP adds backups of --dir to
    #[arg(long, value_name = "FOLDER", env = "SAPWOOD_BACKUPS", requires = "dir")]
    pub(crate) backups: Option<PathBuf>,

    /// Databases that SELECT can choose from
    #[arg(
        long,
        env = "SAPWOOD_DATABASES",
        default_value_t = 16,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub(crate) databases: u16,

    /// The memory beyond which commands that need more are refused, such as 512M or 2G
    /// [default: no limit]
    #[arg(long, value_name = "BYTES", env = "SAPWOOD_MAXMEMORY", value_parser = parse_bytes)]
    pub(crate) maxmemory: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Watching")]
pub(crate) struct Watching {
    /// The least weight of what is logged to standard error
    #[arg(long, value_name = "LEVEL", env = "SAPWOOD_LOG_LEVEL", default_value = "info")]
    pub(crate) log_level: LogLevel,

    /// The form of the log
    #[arg(long, value_name = "FORM", env = "SAPWOOD_LOG_FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,

    /// Microseconds from which on SLOWLOG keeps a command; -1 for none
    #[arg(
        long,
        value_name = "MICROSECONDS",
        env = "SAPWOOD_SLOWLOG_LOG_SLOWER_THAN",
        default_value_t = 10_000,
        allow_negative_numbers = true
    )]
    pub(crate) slowlog_log_slower_than: i64,

    /// Commands that SLOWLOG keeps
    #[arg(long, value_name = "COUNT", env = "SAPWOOD_SLOWLOG_MAX_LEN", default_value_t = 128)]
    pub(crate) slowlog_max_len: u64,

    /// Milliseconds from which on LATENCY keeps a command; 0 for none
    #[arg(
        long,
        value_name = "MILLISECONDS",
        env = "SAPWOOD_LATENCY_MONITOR_THRESHOLD",
        default_value_t = 0
    )]
    pub(crate) latency_monitor_threshold: u64,

    /// Whether the command DEBUG is there: no, for clients of this machine, or yes
    #[arg(
        long,
        value_name = "WHETHER",
        env = "SAPWOOD_ENABLE_DEBUG_COMMAND",
        default_value = "no"
    )]
    pub(crate) enable_debug_command: NoLocalYes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServedSample {
    /// The 336,776 flights that left New York City in 2013
    Flights,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// What failed
    Error,
    /// What may fail soon, too
    Warn,
    /// Beginnings and ends, too
    Info,
    /// Clients, too
    Debug,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Text,
    /// A JSON object a line
    Json,
}

/// When the log is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fsync {
    Always,
    Everysec,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum YesNo {
    Yes,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NoLocalYes {
    No,
    Local,
    Yes,
}

/// What `sapwood config` does.
#[derive(Debug, clap::Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the options that `sapwood serve` would have, and where each came from
    Print(Box<Serve>),
}

fn parse_output_limits(text: &str) -> Result<OutputLimits, String> {
    let limits = OutputLimits::default().with(text).ok().filter(|_| !text.trim().is_empty());
    limits.ok_or_else(|| {
        "limits are a class (normal or pubsub), two numbers of bytes, and seconds, such as `pubsub 32mb 8mb 60`"
            .to_owned()
    })
}

/// A number of bytes. Fewer would close clients whose requests come in two parts.
fn parse_query_bytes(text: &str) -> Result<u64, String> {
    let (given, least) = (parse_bytes(text)?, QUERY_BYTES_LEAST as u64);
    match given >= least {
        true => Ok(given),
        false => Err(format!("clients must be able to send {} at least", bytes(least))),
    }
}

fn parse_mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err("permissions are octal digits, such as 770".to_owned()),
    }
}
