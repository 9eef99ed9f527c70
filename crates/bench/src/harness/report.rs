//! Reports: samples of a bench, printed as tables for people or one JSON object a line for
//! programs.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use comfy_table::{CellAlignment, Table, presets};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::harness::*;

/// A table whose columns from `numbers_from` on are aligned right.
pub(crate) fn table(header: &[&str], numbers_from: usize) -> Table {
    let mut table = Table::new();
    // As the program `sapwood` prints tables.
    table.load_style(presets::NOTHING);
    table.set_header(header.to_vec());
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if at >= numbers_from {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Says something on standard error. A reader that is gone is no reason to end a measurement.
pub(crate) fn tell(what: impl std::fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{what}");
}

pub(crate) struct Report {
    bench: &'static str,
    pub(crate) entries: usize,
    data: String,
    /// The size of the run, by which targets are judged: mostly its entries.
    pub(crate) size: usize,
    pub(crate) title: String,
    ours: &'static [&'static str],
    pub(crate) samples: Vec<Sample>,
    /// Engines and parts that were left out, in a sentence each.
    pub(crate) left_out: Vec<String>,
    /// Bytes that an entry costs an engine, where they were measured.
    pub(crate) bytes_per_entry: HashMap<String, f64>,
    pub(crate) progress: ProgressBar,
}

impl Report {
    pub(crate) fn new(
        bench: &'static str,
        entries: usize,
        data: impl Into<String>,
        ours: &'static [&'static str],
    ) -> Report {
        Report {
            bench,
            entries,
            data: data.into(),
            size: entries,
            title: String::new(),
            ours,
            samples: Vec::new(),
            left_out: Vec::new(),
            bytes_per_entry: HashMap::new(),
            progress: progress(),
        }
    }

    pub(crate) fn sample(
        &self,
        engine: &str,
        workload: &str,
        threads: usize,
        unit: Option<&'static Unit>,
    ) -> Option<&Sample> {
        self.samples.iter().find(|sample| {
            sample.engine == engine
                && sample.workload == workload
                && sample.threads == threads
                && unit.map_or(sample.unit.is_rate(), |unit| sample.unit == unit)
        })
    }

    pub(crate) fn rate(&self, engine: &str, workload: &str, threads: usize) -> Option<&Sample> {
        self.sample(engine, workload, threads, None)
    }

    /// Adds a round's figure to its sample. Samples of a workload stand together.
    pub(crate) fn note(
        &mut self,
        workload: &str,
        threads: usize,
        engine: &str,
        unit: &'static Unit,
        figure: Figure,
    ) {
        let is_beside = |sample: &Sample| {
            sample.workload == workload && sample.threads == threads && sample.unit == unit
        };
        let is_same = |sample: &Sample| is_beside(sample) && sample.engine == engine;
        let at = match self.samples.iter().position(is_same) {
            Some(at) => at,
            None => {
                let at = self.samples.iter().rposition(is_beside);
                let at = at.map_or(self.samples.len(), |last| last + 1);
                let (workload, engine) = (workload.to_owned(), engine.to_owned());
                let (rounds, latencies) = (Vec::new(), Vec::new());
                let fields = figure.fields.clone();
                let sample = Sample { workload, threads, engine, unit, rounds, latencies, fields };
                self.samples.insert(at, sample);
                at
            }
        };
        let sample = &mut self.samples[at];
        sample.rounds.push(figure.amount);
        sample.latencies.extend(figure.latencies);
        sample.fields.extend(figure.fields);
    }

    pub(crate) fn leave_out(&mut self, sentence: String) {
        if !self.left_out.contains(&sentence) {
            self.left_out.push(sentence);
        }
    }

    /// Leaves a peer out of a workload with a sentence; an error if the engine is ours.
    pub(crate) fn refuse(
        &mut self,
        engine: &str,
        workload: &str,
        threads: usize,
        what: &str,
    ) -> Result {
        let sentence = format!(
            "{engine}, {workload} on {threads} threads: {what}: a bug in it or in its adapter"
        );
        if is_ours(engine) {
            return Err(sentence.into());
        }
        self.samples.retain(|sample| {
            (&sample.engine[..], &sample.workload[..], sample.threads)
                != (engine, workload, threads)
        });
        self.leave_out(sentence);
        Ok(())
    }

    /// Ours against another engine, round by round; none for an engine against itself.
    fn ratio(&self, ours: &str, theirs: &Sample) -> Option<Ratio> {
        if theirs.engine == ours || !theirs.unit.is_rate() {
            return None;
        }
        let ours = self.sample(ours, &theirs.workload, theirs.threads, Some(theirs.unit))?;
        Some(Ratio::of(&ours.rounds, &theirs.rounds))
    }

    fn line(&self, sample: &Sample) -> Value {
        let [median, min, max] = sample.spread();
        let mut line = json!({
            "bench": self.bench, "workload": sample.workload, "threads": sample.threads,
            "entries": self.entries, "engine": sample.engine, "unit": sample.unit.name,
            "median": median, "min": min, "max": max, "runs": sample.rounds.len(),
            "bytes_per_entry": self.bytes_per_entry.get(&sample.engine), "data": self.data,
            "machine": machine(),
        });
        for (name, value) in &sample.fields {
            line[name.as_str()] = value.clone();
        }
        for ours in self.ours {
            if let Some(ratio) = self.ratio(ours, sample) {
                line["times_as_fast"][*ours] = ratio.json();
            }
        }
        if sample.unit == &NANOSECONDS {
            for (at, name) in ["p50_ns", "p99_ns", "p999_ns"].into_iter().enumerate() {
                // Whole nanoseconds.
                line[name] = json!(sample.percentile(at) as u64);
            }
        }
        line
    }

    fn print_json(&self, out: &mut dyn Write) -> io::Result<()> {
        self.samples.iter().try_for_each(|sample| writeln!(out, "{}", self.line(sample)))
    }

    fn print_tables(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n{} entries, {}{}\n", self.entries, self.data, self.title)?;
        let (rates, others): (Vec<&Sample>, _) =
            self.samples.iter().partition(|sample| sample.unit.is_rate());
        let (latencies, amounts): (Vec<&Sample>, Vec<&Sample>) =
            others.into_iter().partition(|sample| sample.unit == &NANOSECONDS);
        if !amounts.is_empty() {
            writeln!(out, "{}\n", self.figures(&amounts, &[]))?;
        }
        if !rates.is_empty() {
            let is_there = |ours: &&&str| rates.iter().any(|sample| sample.engine == **ours);
            let ours: Vec<&str> = self.ours.iter().filter(is_there).copied().collect();
            writeln!(out, "{}", self.figures(&rates, &ours))?;
        }
        for sentence in &self.left_out {
            writeln!(out, "left out: {sentence}")?;
        }
        if !latencies.is_empty() {
            writeln!(out, "\n{}", latencies_table(&latencies))?;
        }
        Ok(())
    }

    fn figures(&self, samples: &[&Sample], ours: &[&str]) -> Table {
        let titles: Vec<String> = ours.iter().map(|ours| format!("{ours} is")).collect();
        let mut header = vec!["workload", "threads", "engine", "median", "min", "max"];
        titles.iter().for_each(|title| header.extend([title.as_str(), "from", "to"]));
        let has_fields = samples.iter().any(|sample| !sample.fields.is_empty());
        if has_fields {
            header.push("with");
        }
        let mut table = table(&header, 3);
        if has_fields && let Some(last) = table.column_mut(header.len() - 1) {
            last.set_cell_alignment(CellAlignment::Left);
        }
        let mut last = String::new();
        for sample in samples {
            let [median, min, max] = sample.spread();
            // The longest time is the lowest rate.
            let ends = if sample.unit.name == "questions/s" { [max, min] } else { [min, max] };
            let mut row = self.labels(sample, &mut last);
            row.extend([median, ends[0], ends[1]].map(|figure| sample.unit.shown(figure)));
            for ours in ours {
                row.extend(
                    self.ratio(ours, sample).map_or(["-", "-", "-"].map(str::to_owned), |it| {
                        [it.median, it.min, it.max].map(|ratio| format!("{ratio:.2}x"))
                    }),
                );
            }
            let fields = sample.fields.iter().filter_map(|(name, value)| shown(name, value));
            row.push(fields.collect::<Vec<_>>().join(", "));
            row.truncate(header.len());
            table.add_row(row);
        }
        table
    }

    /// Workload, threads and engine; the first two once for a group.
    fn labels(&self, sample: &Sample, last: &mut String) -> Vec<String> {
        let title = format!("{}, {}", sample.workload, sample.unit.table_name);
        let (group, threads) = (format!("{title} {}", sample.threads), sample.threads.to_string());
        let is_new = *last != group;
        *last = group;
        let label = |text: String| if is_new { text } else { String::new() };
        vec![label(title), label(threads), sample.engine.clone()]
    }
}

/// A further field as tables show it; none where it has no value.
fn shown(name: &str, value: &Value) -> Option<String> {
    let name = name.replace('_', " ");
    match value {
        Value::Null => None,
        Value::Object(ratio) => Some(format!("{name} {:.2}x", ratio.get("median")?.as_f64()?)),
        Value::Number(number) if number.is_f64() => Some(format!("{name} {:.2}", number.as_f64()?)),
        Value::String(text) => Some(format!("{name} {text}")),
        other => Some(format!("{name} {other}")),
    }
}

/// Latencies of single calls: medians of rounds, and the greatest.
fn latencies_table(samples: &[&Sample]) -> Table {
    let mut table = table(&["latency of", "threads", "engine", "p50", "p99", "p99.9", "max"], 3);
    for sample in samples {
        let mut row =
            vec![sample.workload.clone(), sample.threads.to_string(), sample.engine.clone()];
        row.extend([0, 1, 2].map(|at| sample.unit.shown(sample.percentile(at))));
        row.push(sample.unit.shown(sample.spread()[2]));
        table.add_row(row);
    }
    table
}

/// The sheet that reports go to: as tables or as JSON lines, and kept to be drawn.
pub(crate) struct Sheet<'a> {
    pub(crate) out: &'a mut dyn Write,
    pub(crate) json: bool,
    pub(crate) plot: Option<(&'a Path, Vec<u8>)>,
}

impl Sheet<'_> {
    /// Prints a report, of which there may be more, and how it stands by targets.
    pub(crate) fn print(&mut self, report: &Report, targets: &[&Targets]) -> io::Result<()> {
        report.progress.finish_and_clear();
        if let Some((_, lines)) = &mut self.plot {
            report.print_json(lines)?;
        }
        if self.json {
            report.left_out.iter().for_each(|it| tell(format_args!("left out: {it}")));
            return report.print_json(self.out);
        }
        report.print_tables(self.out)?;
        targets.iter().try_for_each(|targets| targets.print(self.out, report))
    }

    /// Ends the sheet: prints the command that repeats it, draws the plot.
    pub(crate) fn end(self) -> Result {
        if !self.json {
            writeln!(self.out, "\nRepeat with: {}", command())?;
        }
        match &self.plot {
            Some((path, lines)) => plot::draw_lines(path, std::str::from_utf8(lines)?),
            None => Ok(()),
        }
    }
}
