//! Figures, printed.

use std::io::{self, Write};

use comfy_table::Table;
use serde_json::json;

use super::checkpoints::{self, Beside, Puts};
use super::floor;
use super::measure::Figures;
use super::recovery::Recovered;
use super::workload::{Data, Level, Workload};
use crate::figures::{Percentiles, Rate, Ratio, least, median, most};
use crate::report::{Labels, table, tell, time};

const MB: f64 = 1e6;

fn labels(data: Data, entries: u32) -> Labels<'static> {
    let data = match data {
        Data::Small => "8+8 B",
        Data::Large => "100+1000 B",
    };
    Labels { bench: "durability", entries: entries as usize, data, bytes_per_entry: &|_| None }
}

/// The median, the least and the most.
fn spread(figures: &[f64]) -> [f64; 3] {
    [median(figures), least(figures), most(figures)]
}

pub(crate) fn print_json(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    for sentence in &figures.rates.wrong {
        tell(format_args!("left out: {sentence}"));
    }
    let of = |data| labels(data, figures.plan.keys(data));
    for rate in &figures.rates.rates {
        let mut line = of(rate.workload.data).rate(rate);
        if let Some(ratio) = against_memory(figures, rate) {
            line["of_memory"] =
                json!({ "median": ratio.median, "min": ratio.min, "max": ratio.max });
        }
        writeln!(out, "{line}")?;
    }
    for rate in &figures.log_rates {
        let (name, labels) = (workload_name(rate.workload), of(rate.workload.data));
        let (spread, runs) = (spread(&rate.rounds), rate.rounds.len());
        let line = labels.line(&name, rate.threads, &rate.engine, "log bytes/s", spread, runs);
        writeln!(out, "{line}")?;
    }
    let floors =
        [("sequential", "bytes/s", &figures.floor.bytes), ("sync", "ops/s", &figures.floor.syncs)];
    for (name, unit, rounds) in floors {
        if !rounds.is_empty() {
            let labels = of(Data::Small);
            let line = labels.line(name, 1, floor::NAME, unit, spread(rounds), rounds.len());
            writeln!(out, "{line}")?;
        }
    }
    for beside in &figures.checkpoints {
        print_json_beside(out, figures, beside)?;
    }
    for recovered in &figures.recovered {
        let name = format!("recovery from {}", recovered.left.name());
        let labels = labels(Data::Small, recovered.entries);
        let runs = recovered.seconds.len();
        let mut line =
            labels.line(&name, 1, recovered.engine, "s", spread(&recovered.seconds), runs);
        line["entries_per_second"] = json!(median(&recovered.rates()));
        line["bytes"] = json!(recovered.bytes);
        writeln!(out, "{line}")?;
    }
    for of in &figures.log_bytes {
        let labels = labels(of.data, of.changes);
        let mut line = labels.line(&of.change, 1, of.engine, "log bytes/op", [of.log_bytes; 3], 1);
        line["user_bytes"] = json!(of.user_bytes);
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn print_json_beside(out: &mut dyn Write, figures: &Figures, beside: &Beside) -> io::Result<()> {
    let labels = labels(checkpoints::DATA, figures.checkpointed);
    let line = |name: &str, unit: &str, rounds: &[f64]| {
        labels.line(name, beside.writers, beside.engine, unit, spread(rounds), rounds.len())
    };
    for (name, puts) in
        [("put without a checkpoint", &beside.without), ("put beside a checkpoint", &beside.during)]
    {
        writeln!(out, "{}", line(name, "ops/s", &puts.rates))?;
        let medians = puts.each(|round| round.p50);
        let mut line = line(name, "ns", &medians);
        line["p50_ns"] = json!(median(&medians));
        line["p99_ns"] = json!(median(&puts.each(|round| round.p99)));
        line["p999_ns"] = json!(median(&puts.each(|round| round.p999)));
        writeln!(out, "{line}")?;
    }
    writeln!(out, "{}", line("checkpoint", "s", &beside.seconds))
}

fn workload_name(workload: Workload) -> String {
    crate::figures::Timed::name(workload)
}

/// A level's rate against that of memory, of the same engine and as many writers.
pub(crate) fn against_memory(figures: &Figures, rate: &Rate<Workload>) -> Option<Ratio> {
    if rate.workload.level == Level::Memory {
        return None;
    }
    let memory = Workload { level: Level::Memory, ..rate.workload };
    let memory = figures.rates.rate(&rate.engine, memory, rate.threads)?;
    Some(Ratio::of(&rate.rounds, &memory.rounds))
}

/// What a log writes of what the disk does by itself.
pub(crate) fn share_of_disk(figures: &Figures, rate: &Rate<Workload>) -> Option<f64> {
    let log = log_rate(figures, rate)?;
    (!figures.floor.bytes.is_empty()).then(|| log.median() / median(&figures.floor.bytes))
}

fn log_rate<'f>(figures: &'f Figures, rate: &Rate<Workload>) -> Option<&'f Rate<Workload>> {
    figures.log_rates.iter().find(|log| {
        log.engine == rate.engine && log.workload == rate.workload && log.threads == rate.threads
    })
}

pub(crate) fn print_tables(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    if !figures.rates.rates.is_empty() {
        let [small, large] = Data::ALL.map(|data| figures.plan.keys(data));
        writeln!(
            out,
            "\nPuts to keys that are there: {small} of 8+8 B, {large} of 100+1000 B. Redis is over \
             loopback, one request in flight on each connection; its async is everysec\n"
        )?;
        writeln!(out, "{}", rates(figures))?;
    }
    if !figures.floor.bytes.is_empty() {
        writeln!(out, "\n{}", floors(figures))?;
    }
    if !figures.checkpoints.is_empty() {
        let count = figures.checkpointed;
        writeln!(out, "\nPuts beside checkpoints of {count} entries of 100+1000 B; async\n")?;
        writeln!(out, "{}", besides(&figures.checkpoints))?;
    }
    if let Some(first) = figures.recovered.first() {
        writeln!(out, "\nOpening {} entries of 8+8 B, from the page cache\n", first.entries)?;
        writeln!(out, "{}", recoveries(&figures.recovered))?;
    }
    if !figures.log_bytes.is_empty() {
        let header = ["log bytes of", "engine", "user B", "log B", "log B/user B"];
        let mut table = table(&header, 2);
        for of in &figures.log_bytes {
            let user = of.user_bytes.to_string();
            let [log, share] = [of.log_bytes, of.log_bytes / of.user_bytes as f64]
                .map(|figure| format!("{figure:.2}"));
            table.add_row([&of.change, of.engine, &user, &log, &share]);
        }
        writeln!(out, "\n{table}")?;
    }
    for sentence in &figures.rates.wrong {
        writeln!(out, "left out: {sentence}")?;
    }
    Ok(())
}

fn rates(figures: &Figures) -> Table {
    let header = [
        "workload, puts/s",
        "writers",
        "engine",
        "median",
        "min",
        "max",
        "of memory",
        "log MB/s",
        "of the disk",
    ];
    let mut table = table(&header, 3);
    let mut last = None;
    for rate in &figures.rates.rates {
        let group = (rate.workload, rate.threads);
        let (name, writers) = match last == Some(group) {
            true => (String::new(), String::new()),
            false => (workload_name(rate.workload), rate.threads.to_string()),
        };
        last = Some(group);
        let mut row = vec![name, writers, rate.engine.clone()];
        row.extend([rate.median(), rate.min(), rate.max()].map(|figure| format!("{figure:.0}")));
        let shown = |figure: Option<String>| figure.unwrap_or_else(|| "-".to_owned());
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        row.push(shown(against_memory(figures, rate).map(|ratio| percent(ratio.median))));
        row.push(shown(log_rate(figures, rate).map(|log| format!("{:.1}", log.median() / MB))));
        row.push(shown(share_of_disk(figures, rate).map(percent)));
        table.add_row(row);
    }
    table
}

fn floors(figures: &Figures) -> Table {
    let mut table = table(&["the disk by itself", "median", "min", "max"], 1);
    let bytes: Vec<f64> = figures.floor.bytes.iter().map(|bytes| bytes / MB).collect();
    for (name, rounds) in [("MB/s, in order", &bytes), ("syncs/s, of a page", &figures.floor.syncs)]
    {
        let row = spread(rounds).map(|figure| format!("{figure:.0}"));
        table.add_row([name.to_owned()].into_iter().chain(row));
    }
    table
}

fn besides(besides: &[Beside]) -> Table {
    let header = [
        "engine",
        "writers",
        "checkpoint",
        "puts/s",
        "p50",
        "p99",
        "from",
        "to",
        "p99.9",
        "max",
        "seconds of one",
    ];
    let mut table = table(&header, 3);
    for beside in besides {
        for (name, puts) in [("none", &beside.without), ("beside", &beside.during)] {
            let seconds = match name {
                "none" => "-".to_owned(),
                _ => format!("{:.2}", median(&beside.seconds)),
            };
            let mut row =
                vec![beside.engine.to_owned(), beside.writers.to_string(), name.to_owned()];
            row.push(format!("{:.0}", median(&puts.rates)));
            row.extend(percentiles(puts));
            row.push(seconds);
            table.add_row(row);
        }
    }
    table
}

/// Medians of rounds, and the spread of the 99th.
fn percentiles(puts: &Puts) -> [String; 6] {
    let of = |percentile: fn(&Percentiles) -> u64| puts.each(percentile);
    let p99 = of(|round| round.p99);
    [
        median(&of(|round| round.p50)),
        median(&p99),
        least(&p99),
        most(&p99),
        median(&of(|round| round.p999)),
        most(&of(|round| round.max)),
    ]
    .map(|ns| time(ns as u64))
}

fn recoveries(recovered: &[Recovered]) -> Table {
    let header = ["engine", "from", "seconds", "min", "max", "K entries/s", "MB", "MB/s"];
    let mut table = table(&header, 2);
    for of in recovered {
        let mut row = vec![of.engine.to_owned(), of.left.name().to_owned()];
        row.extend(spread(&of.seconds).map(|seconds| format!("{seconds:.2}")));
        row.push(format!("{:.0}", median(&of.rates()) / 1e3));
        let megabytes = of.bytes as f64 / MB;
        row.extend([megabytes, megabytes / of.median()].map(|figure| format!("{figure:.0}")));
        table.add_row(row);
    }
    table
}
