//! The sections of `INFO`, with the fields that tools read.

use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::Ordering;

use crate::acl::Reason;
use crate::databases::Databases;
use crate::refusal::Refusal;
use crate::service::Service;
use crate::store::format::Millis;
use crate::store::memory::Memory;

type Section = fn(&mut Lines, &Shown<'_>) -> Result<(), Refusal>;

struct Shown<'s> {
    service: &'s Service,
    databases: &'s Databases,
    now: Millis,
}

/// Sections in the order of Redis, and whether they are shown where none is named.
const SECTIONS: &[(&str, bool, Section)] = &[
    ("Server", true, server),
    ("Clients", true, clients),
    ("Memory", true, memory),
    ("Persistence", true, persistence),
    ("Stats", true, stats),
    ("Replication", true, replication),
    ("CPU", true, cpu),
    ("Modules", true, |_, _| Ok(())),
    ("Commandstats", false, commandstats),
    ("Errorstats", true, errorstats),
    ("Latencystats", false, latencystats),
    ("Cluster", true, cluster),
    ("Keyspace", true, keyspace),
];

/// The text of `INFO` for sections by name, or of those that are shown by default.
pub(crate) fn text(
    service: &Service,
    databases: &Databases,
    names: &[&[u8]],
    now: Millis,
) -> Result<String, Refusal> {
    let shown = Shown { service, databases, now };
    let mut lines = Lines(String::new());
    for (name, is_default, write) in SECTIONS {
        let is_named = |wanted: &&[u8]| {
            let is = |word: &str| wanted.eq_ignore_ascii_case(word.as_bytes());
            is(name) || is("all") || is("everything") || is("default") && *is_default
        };
        if names.iter().any(is_named) || names.is_empty() && *is_default {
            if !lines.0.is_empty() {
                lines.0.push_str("\r\n");
            }
            let _infallible = write!(lines.0, "# {name}\r\n");
            write(&mut lines, &shown)?;
        }
    }
    Ok(lines.0)
}

struct Lines(String);

impl Lines {
    fn add(&mut self, name: &str, value: impl std::fmt::Display) {
        // A string takes everything.
        let _infallible = write!(self.0, "{name}:{value}\r\n");
    }
}

/// The most memory that was seen, this moment's among it.
pub(crate) fn peak(service: &Service, used: u64) -> u64 {
    // Relaxed: a figure for reports.
    service.admin.memory_peak.fetch_max(used, Ordering::Relaxed).max(used)
}

/// Bytes of the process that are in memory.
pub(crate) fn resident_bytes() -> u64 {
    const PAGE_BYTES: u64 = 4096;
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE_BYTES
}

/// Seconds of the processors, in the system and in the process.
pub(crate) fn processor_seconds() -> (f64, f64) {
    // A tick is a hundredth of a second wherever Linux runs.
    const TICKS: f64 = 100.0;
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = text.rsplit_once(')').map_or("", |(_, behind)| behind);
    let fields: Vec<&str> = behind_name.split_whitespace().collect();
    let seconds = |at: usize| -> f64 {
        fields.get(at).and_then(|ticks| ticks.parse().ok()).unwrap_or(0.0) / TICKS
    };
    (seconds(12), seconds(11))
}

fn human(bytes: u64) -> String {
    let mut amount = bytes as f64;
    for unit in ["B", "K", "M", "G", "T"] {
        if amount < 1024.0 || unit == "T" {
            let digits = if unit == "B" { 0 } else { 2 };
            return format!("{amount:.digits$}{unit}");
        }
        amount /= 1024.0;
    }
    format!("{bytes}B")
}

fn server(lines: &mut Lines, shown: &Shown<'_>) -> Result<(), Refusal> {
    let admin = &shown.service.admin;
    lines.add("redis_version", crate::REDIS_VERSION);
    lines.add("redis_mode", "standalone");
    lines.add("sapwood_version", env!("CARGO_PKG_VERSION"));
    lines.add("os", format_args!("{} {}", std::env::consts::OS, std::env::consts::ARCH));
    lines.add("arch_bits", usize::BITS);
    lines.add("process_id", std::process::id());
    lines.add("run_id", &admin.run_id);
    lines.add("tcp_port", admin.port);
    lines.add("server_time_usec", shown.now * 1_000);
    lines.add("uptime_in_seconds", admin.uptime());
    lines.add("uptime_in_days", admin.uptime() / 86_400);
    lines.add("hz", 10);
    lines.add("io_threads_active", shown.service.options.threads);
    let file = admin.config_file.as_deref().map_or(String::new(), |at| at.display().to_string());
    lines.add("config_file", file);
    Ok(())
}

fn clients(lines: &mut Lines, shown: &Shown<'_>) -> Result<(), Refusal> {
    let counts = shown.service.client_counts();
    lines.add("connected_clients", counts.connected);
    lines.add("maxclients", shown.service.limits().clients());
    lines.add("cluster_connections", 0);
    lines.add("blocked_clients", counts.blocked);
    lines.add("tracking_clients", 0);
    Ok(())
}

fn memory(lines: &mut Lines, shown: &Shown<'_>) -> Result<(), Refusal> {
    let Memory { reserved, used } = shown.databases.memory();
    let (peak, resident) = (peak(shown.service, used), resident_bytes());
    let limit = shown.service.admin.settings.maxmemory().unwrap_or(0);
    lines.add("used_memory", used);
    lines.add("used_memory_human", human(used));
    lines.add("used_memory_rss", resident);
    lines.add("used_memory_rss_human", human(resident));
    lines.add("used_memory_peak", peak);
    lines.add("used_memory_peak_human", human(peak));
    lines.add("used_memory_dataset", used);
    lines.add("allocator_allocated", used);
    lines.add("allocator_active", reserved);
    lines.add("maxmemory", limit);
    lines.add("maxmemory_human", human(limit));
    lines.add("maxmemory_policy", "noeviction");
    let ratio = if used == 0 { 1.0 } else { resident as f64 / used as f64 };
    lines.add("mem_fragmentation_ratio", format_args!("{ratio:.2}"));
    lines.add("mem_allocator", "sapwood");
    Ok(())
}

fn persistence(lines: &mut Lines, shown: &Shown<'_>) -> Result<(), Refusal> {
    let admin = &shown.service.admin;
    let past = admin.saves.past();
    let changes = admin.tally.changes.sum().saturating_sub(past.changes);
    let seconds = |time: Option<u64>| time.map_or(-1, |seconds| seconds as i64);
    lines.add("loading", 0);
    lines.add("async_loading", 0);
    lines.add("rdb_changes_since_last_save", changes);
    lines.add(
        "rdb_bgsave_in_progress",
        u8::from(admin.saves.is_running() || admin.saves.is_wanted()),
    );
    lines.add("rdb_last_save_time", past.saved_at / 1_000);
    lines.add("rdb_last_bgsave_status", if past.error.is_none() { "ok" } else { "err" });
    lines.add("rdb_last_bgsave_time_sec", seconds(past.took.map(|took| took.as_secs())));
    let current = past.began.map(|began| began.elapsed().as_secs());
    lines.add("rdb_current_bgsave_time_sec", seconds(current));
    lines.add("rdb_saves", past.count);
    // The log is to a Redis user what the append-only file is, and a checkpoint is its rewriting.
    let log = shown.service.db.stats().log;
    let ok = |failure: &Option<String>| if failure.is_none() { "ok" } else { "err" };
    lines.add("aof_enabled", u8::from(log.is_some()));
    lines.add("aof_rewrite_in_progress", 0);
    match log {
        None => {
            lines.add("aof_last_bgrewrite_status", "ok");
            lines.add("aof_last_write_status", "ok");
        }
        Some(log) => {
            lines.add("aof_last_bgrewrite_status", ok(&log.failed_checkpoint));
            let takes_changes = log.refuses_changes.is_none() && !log.lacks_room;
            lines.add("aof_last_write_status", if takes_changes { "ok" } else { "err" });
            lines.add("aof_current_size", log.unsaved_bytes);
            lines.add("aof_base_size", log.snapshot_bytes);
        }
    }
    Ok(())
}

fn stats(lines: &mut Lines, shown: &Shown<'_>) -> Result<(), Refusal> {
    let tally = &shown.service.admin.tally;
    let counts = shown.service.client_counts();
    // Relaxed: counts for reports, here and below.
    lines.add("total_connections_received", tally.connections.load(Ordering::Relaxed));
    lines.add("total_commands_processed", tally.commands());
    let [commands, bytes_in, bytes_out] = tally.per_second();
    let kib = |bytes: f64| format!("{:.2}", bytes / 1024.0);
    lines.add("instantaneous_ops_per_sec", commands as u64);
    let net = tally.bytes_since(shown.service.clients.bytes());
    lines.add("total_net_input_bytes", net.0);
    lines.add("total_net_output_bytes", net.1);
    lines.add("instantaneous_input_kbps", kib(bytes_in));
    lines.add("instantaneous_output_kbps", kib(bytes_out));
    lines.add("rejected_connections", counts.rejected);
    lines.add("expired_keys", tally.expired.load(Ordering::Relaxed));
    lines.add("evicted_keys", 0);
    lines.add("client_query_buffer_limit_disconnections", counts.closed_for_query);
    lines.add("client_output_buffer_limit_disconnections", counts.closed_for_output);
    lines.add("keyspace_hits", tally.hits.sum());
    lines.add("keyspace_misses", tally.misses.sum());
    lines.add("pubsub_channels", counts.channels);
    lines.add("pubsub_patterns", counts.patterns);
    lines.add("pubsubshard_channels", counts.shard_channels);
    lines.add("latest_fork_usec", 0);
    lines.add("total_forks", 0);
    lines.add("total_error_replies", tally.errors().values().sum::<u64>());
    let denied = &shown.service.users.log;
    for (name, reason) in [
        ("acl_access_denied_auth", Reason::Auth),
        ("acl_access_denied_cmd", Reason::Command),
        ("acl_access_denied_key", Reason::Key),
        ("acl_access_denied_channel", Reason::Channel),
    ] {
        lines.add(name, denied.count(reason));
    }
    Ok(())
}

fn replication(lines: &mut Lines, shown: &Shown<'_>) -> Result<(), Refusal> {
    lines.add("role", "master");
    lines.add("connected_slaves", 0);
    lines.add("master_failover_state", "no-failover");
    lines.add("master_replid", &shown.service.admin.run_id);
    lines.add("master_repl_offset", 0);
    Ok(())
}

fn cpu(lines: &mut Lines, _shown: &Shown<'_>) -> Result<(), Refusal> {
    let (system, user) = processor_seconds();
    lines.add("used_cpu_sys", format_args!("{system:.6}"));
    lines.add("used_cpu_user", format_args!("{user:.6}"));
    Ok(())
}

fn commandstats(lines: &mut Lines, shown: &Shown<'_>) -> Result<(), Refusal> {
    for (name, count) in shown.service.admin.tally.counts() {
        let micros = count.micros();
        let per_call = micros as f64 / count.calls.max(1) as f64;
        let (calls, rejected, failed) = (count.calls, count.rejected, count.failed);
        lines.add(
            &format!("cmdstat_{name}"),
            format_args!(
                "calls={calls},usec={micros},usec_per_call={per_call:.2},\
                 rejected_calls={rejected},failed_calls={failed}"
            ),
        );
    }
    Ok(())
}

fn errorstats(lines: &mut Lines, shown: &Shown<'_>) -> Result<(), Refusal> {
    for (code, count) in shown.service.admin.tally.errors() {
        lines.add(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
    Ok(())
}

fn latencystats(lines: &mut Lines, shown: &Shown<'_>) -> Result<(), Refusal> {
    for (name, count) in shown.service.admin.tally.counts() {
        if count.calls > 0 {
            let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| count.percentile(share));
            lines.add(
                &format!("latency_percentiles_usec_{name}"),
                format_args!("p50={p50:.3},p99={p99:.3},p99.9={p999:.3}"),
            );
        }
    }
    Ok(())
}

fn cluster(lines: &mut Lines, _shown: &Shown<'_>) -> Result<(), Refusal> {
    lines.add("cluster_enabled", 0);
    Ok(())
}

fn keyspace(lines: &mut Lines, shown: &Shown<'_>) -> Result<(), Refusal> {
    for (number, space) in shown.databases.made() {
        // An estimate: a walk of a table on the disk would hold up other commands.
        let (keys, expires) = (space.table().len_estimate(), space.expiring_estimate());
        if keys > 0 {
            let text = format!("keys={keys},expires={expires},avg_ttl=0,subexpiry=0");
            lines.add(&format!("db{number}"), text);
        }
    }
    Ok(())
}
