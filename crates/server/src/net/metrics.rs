//! Figures for Prometheus: those of the server, and of its process.

mod form;
mod process;

use std::fmt::Error;
use std::sync::atomic::Ordering;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use crate::Service;
use crate::admin::tally::{Count, TIMES};
use crate::command::info;

pub(crate) use form::Form;
use process::Process;

/// The metrics of a service.
pub(crate) fn text(service: &Service, form: Form) -> Result<String, Error> {
    let mut registry = prometheus_client::registry::Registry::default();
    let own = registry.sub_registry_with_prefix("sapwood");
    own.register_collector(Box::new(Figures::of(service)));
    registry.register_collector(Box::new(Process));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(form.of_text(text))
}

/// What holds at a moment.
#[derive(Debug)]
struct Figures {
    gauges: Vec<(&'static str, &'static str, f64)>,
    counters: Vec<(&'static str, &'static str, u64)>,
    keys: Vec<(usize, u64, u64)>,
    tables: [(&'static str, u64); 4],
    commands: Vec<(&'static str, Count)>,
    errors: Vec<(String, u64)>,
}

impl Figures {
    fn of(service: &Service) -> Figures {
        let tally = &service.admin.tally;
        let past = service.admin.saves.past();
        let (used, reserved) = (service.used_memory(), service.reserved_memory());
        let (system, user) = info::processor_seconds();
        let limit = service.admin.settings.maxmemory().unwrap_or(0);
        let (bytes_in, bytes_out) = service.clients.bytes();
        let stats = service.db.stats();
        let is = |failure: &Option<String>| f64::from(u8::from(failure.is_some()));
        let of_log = stats.log.iter().flat_map(|log| {
            [
                ("log_bytes", "Files of the log", log.log_bytes as f64),
                (
                    "log_unsaved_bytes",
                    "Changes since the last checkpoint",
                    log.unsaved_bytes as f64,
                ),
                (
                    "log_snapshot_bytes",
                    "Files of the last checkpoint, of ordered tables",
                    log.snapshot_bytes as f64,
                ),
                ("log_failed", "1 if the log takes no changes any more", is(&log.refuses_changes)),
                (
                    "log_full",
                    "1 if the last change was refused for lack of room",
                    f64::from(u8::from(log.lacks_room)),
                ),
                (
                    "log_checkpoint_failed",
                    "1 if the last checkpoint that the log wanted failed",
                    is(&log.failed_checkpoint),
                ),
            ]
        });
        // Relaxed: counts for reports.
        let relaxed = Ordering::Relaxed;
        Figures {
            tables: [
                ("ordered", stats.ordered_tables.len() as u64),
                ("hash", (stats.hash_tables.len() + stats.unopened.len()) as u64),
                ("tree", stats.tree_tables.len() as u64),
                ("rollup", stats.rollup_tables.len() as u64),
            ],
            gauges: vec![
                ("uptime_seconds", "Time since the start", service.admin.uptime() as f64),
                (
                    "connected_clients",
                    "Clients that are connected",
                    tally.connected.load(relaxed) as f64,
                ),
                ("memory_used_bytes", "Memory that entries and indexes use", used as f64),
                (
                    "memory_reserved_bytes",
                    "Memory that tables have taken, with what removed entries have left",
                    reserved as f64,
                ),
                (
                    "memory_peak_bytes",
                    "The most of it that was seen",
                    info::peak(service, used) as f64,
                ),
                ("memory_resident_bytes", "Memory of the process", info::resident_bytes() as f64),
                ("memory_max_bytes", "The limit of memory; 0 for none", limit as f64),
                ("processor_user_seconds", "Time of processors in the process", user),
                ("processor_system_seconds", "Time of processors in the system for it", system),
                (
                    "last_save_timestamp_seconds",
                    "The last complete checkpoint",
                    past.saved_at as f64 / 1_000.0,
                ),
                (
                    "last_save_failed",
                    "1 if the last checkpoint failed",
                    f64::from(u8::from(past.error.is_some())),
                ),
                ("file_bytes", "Files of tables and of the log", stats.file_bytes as f64),
            ]
            .into_iter()
            .chain(of_log)
            .collect(),
            counters: vec![
                ("connections", "Clients that have connected", tally.connections.load(relaxed)),
                ("keyspace_hits", "Reads of keys that were there", tally.hits.sum()),
                ("keyspace_misses", "Reads of keys that were not there", tally.misses.sum()),
                ("expired_keys", "Keys whose time has ended", tally.expired.load(relaxed)),
                ("changes", "Commands that changed data", tally.changes.sum()),
                ("network_input_bytes", "Bytes of requests", bytes_in),
                ("network_output_bytes", "Bytes of replies and messages", bytes_out),
                ("saves", "Checkpoints that were complete", past.count),
                (
                    "save_failures",
                    "Checkpoints that failed",
                    service.admin.saves.failures.load(relaxed),
                ),
            ],
            keys: service
                .databases
                .shared()
                .made()
                .map(|(number, space)| {
                    let keys = space.table().len_estimate() as u64;
                    (number, keys, space.expiring_estimate() as u64)
                })
                .collect(),
            commands: tally.counts(),
            errors: tally.errors().into_iter().collect(),
        }
    }
}

impl prometheus_client::collector::Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        for (name, help, value) in &self.gauges {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(*value).encode(metric)?;
        }
        for (name, help, value) in &self.counters {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(*value).encode(metric)?;
        }
        let help = "1, with the version of the program and of Redis that it is compatible with";
        let mut metric = encoder.encode_descriptor("build_info", help, None, MetricType::Gauge)?;
        let labels =
            [("version", env!("CARGO_PKG_VERSION")), ("redis_version", crate::REDIS_VERSION)];
        ConstGauge::new(1_i64).encode(metric.encode_family(&labels)?)?;
        let help = "Tables, those of databases among them";
        let mut metric = encoder.encode_descriptor("tables", help, None, MetricType::Gauge)?;
        for (engine, count) in &self.tables {
            let labels = [("engine", *engine)];
            ConstGauge::new(*count as i64).encode(metric.encode_family(&labels)?)?;
        }
        let of_keys =
            [("keys", "Keys, about", 0), ("keys_expiring", "Keys that will end, about", 1)];
        for (name, help, which) in of_keys {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (number, keys, expiring) in &self.keys {
                let labels = [("db", number.to_string())];
                let count = if which == 0 { *keys } else { *expiring };
                ConstGauge::new(count as i64).encode(metric.encode_family(&labels)?)?;
            }
        }
        let of_commands: [(&str, &str, fn(&Count) -> u64); 3] = [
            ("commands", "Calls of commands", |count| count.calls),
            ("commands_rejected", "Calls that were refused before they began", |count| {
                count.rejected
            }),
            ("commands_failed", "Calls that ended with an error", |count| count.failed),
        ];
        for (name, help, of) in of_commands {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (command, count) in &self.commands {
                let labels = [("command", *command)];
                ConstCounter::new(of(count)).encode(metric.encode_family(&labels)?)?;
            }
        }
        let mut metric = encoder.encode_descriptor(
            "errors",
            "Errors by their code",
            None,
            MetricType::Counter,
        )?;
        for (code, count) in &self.errors {
            let labels = [("code", code.as_str())];
            ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
        }
        let help = "Time of a command";
        let mut metric = encoder.encode_descriptor(
            "command",
            help,
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for (command, count) in &self.commands {
            let labels = [("command", *command)];
            histogram(&mut metric.encode_family(&labels)?, count)?;
        }
        Ok(())
    }
}

fn histogram(metric: &mut MetricEncoder<'_>, count: &Count) -> Result<(), Error> {
    let bound = |at: usize| match at {
        at if at + 1 == TIMES => f64::MAX,
        at => (1_u64 << at) as f64 / 1e6,
    };
    let buckets: Vec<_> =
        count.times.iter().enumerate().map(|(at, calls)| (bound(at), *calls)).collect();
    let sum = count.nanos as f64 / 1e9;
    metric.encode_histogram::<NoLabelSet>(sum, count.calls, &buckets, None)
}
