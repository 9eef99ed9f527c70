//! The speed of a disaggregation over objects of fixed width, phase by phase.
//!
//! `cargo run --release -p sapwood-aggregate --example disaggregate [objects] [runs]` prints nanoseconds on the
//! processor per object of one thread over records of 24 bytes (a word that says whether they live, a key, a value),
//! as a hash table's log has them: the medians of interleaved runs with their least and greatest.
//! Addresses are numbers of records, so that applying is adding to a word at an address.

use std::time::{Duration, Instant};

use sapwood_aggregate::{
    Disaggregation, DisaggregationProgress, Disaggregator, QueryError, Result, Shares,
};
use sapwood_engine::{Addresses, Column, ColumnBatch, RecordAddress, Validity};

const STRIDE: usize = 24;
/// Objects of a block: a page of 2 MiB.
const PAGE: usize = (2 << 20) / STRIDE;
const TOTAL: i128 = 123_456_789;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse());
    let mut number = |default| match arguments.next() {
        None => Ok(default),
        Some(parsed) => {
            parsed.map_err(|_| QueryError::Query("arguments are numbers: objects, runs".to_owned()))
        }
    };
    let (objects, runs) = (number(10_000_000)?, number(5)?);
    let mut bytes = records(objects);
    let asked = || Ok::<_, QueryError>(Disaggregation::new("n:i64le, w:u8@0".parse()?, "n", TOTAL));
    let contenders: [(&str, Disaggregator, Apply); 4] = [
        ("equally, adding to words", asked()?.adding().compile()?, add_words),
        ("equally, adding by `change`", asked()?.adding().compile()?, change),
        ("equally, setting by `change`", asked()?.setting().compile()?, change),
        (
            "in proportion to a byte, adding",
            asked()?.in_proportion_to("w").adding().compile()?,
            add_words,
        ),
    ];
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..runs.max(1) {
        for ((_, by, apply), times) in contenders.iter().zip(&mut times) {
            times.push(run(by, *apply, &mut bytes)?);
        }
    }
    println!(
        "ns an object, median (least .. greatest) of {} runs over {objects} records",
        runs.max(1)
    );
    print_floor(&mut bytes, objects, runs);
    for ((name, ..), times) in contenders.iter().zip(&times) {
        println!("{name}");
        let phases = ["collect", "shares", "apply", "drop"];
        for (at, phase) in phases.iter().enumerate() {
            print_line(phase, objects, times.iter().map(|times| times[at]).collect());
        }
        print_line("all", objects, times.iter().map(|times| times.iter().sum()).collect());
    }
    Ok(())
}

fn print_line(phase: &str, objects: usize, mut times: Vec<Duration>) {
    times.sort_unstable();
    let each = |time: Duration| time.as_secs_f64() * 1e9 / objects as f64;
    let median = times[times.len() / 2];
    let (least, greatest) = (each(times[0]), each(times[times.len() - 1]));
    let rate = objects as f64 / median.as_secs_f64() / 1000.0;
    println!(
        "  {phase:<10} {:>7.2} ({least:.2} .. {greatest:.2})  {rate:>9.0} objects/ms",
        each(median)
    );
}

/// The least that there is to do: one loop adds one to each value, another sums them.
fn print_floor(bytes: &mut [u8], objects: usize, runs: usize) {
    let mut times = Vec::new();
    for _ in 0..runs.max(1) {
        let started = Started::now();
        let mut sum = 0_i128;
        for record in bytes.chunks_exact_mut(STRIDE) {
            let value: &mut [u8; 8] = (&mut record[16..]).try_into().expect("8 bytes");
            let held = i64::from_le_bytes(*value);
            sum += i128::from(held);
            *value = held.wrapping_add(1).to_le_bytes();
        }
        std::hint::black_box(sum);
        times.push(started.elapsed());
    }
    println!("a plain loop that adds one to each");
    print_line("all", objects, times);
}

/// Every 64th record does not live; keys are mixed, as those of a hash table are.
fn records(objects: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(objects * STRIDE);
    for at in 0..objects as u64 {
        let key = at.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let value = (key >> 48) as i64 - 30_000;
        let words = [u64::from(!at.is_multiple_of(64)), key, value.cast_unsigned()];
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    }
    bytes
}

/// Time that this thread has had a processor, where the system tells: on a busy machine, the clock
/// tells how busy it is.
#[derive(Debug, Clone, Copy)]
struct Started {
    on_processor: Option<Duration>,
    clock: Instant,
}

impl Started {
    fn now() -> Started {
        Started { on_processor: on_processor(), clock: Instant::now() }
    }

    fn elapsed(self) -> Duration {
        match (self.on_processor, on_processor()) {
            (Some(before), Some(now)) => now - before,
            _ => self.clock.elapsed(),
        }
    }
}

fn on_processor() -> Option<Duration> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    told.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

type Apply = fn(&Disaggregator, &Shares, &mut [u8]) -> DisaggregationProgress;

fn run(by: &Disaggregator, apply: Apply, bytes: &mut [u8]) -> Result<[Duration; 4]> {
    let started = Started::now();
    let mut collector = by.collector();
    for (page, records) in bytes.chunks(PAGE * STRIDE).enumerate() {
        let column = |offset, width| Column::new(records, offset, STRIDE, width);
        let live = Validity::Word { words: column(0, 8)?, mask: 1, equals: 1 };
        let block = ColumnBatch::new(records.len() / STRIDE, column(8, 8)?, column(16, 8)?, live)?;
        let first = RecordAddress::from_word((page * PAGE) as u64);
        let batch = block.with_addresses(Addresses::Stepped { first, step: 1 })?;
        collector.push_batch(&batch);
    }
    let collected = collector.into_collected();
    let collect = started.elapsed();

    let started = Started::now();
    let shares = by.shares([collected])?;
    let plan = started.elapsed();

    let started = Started::now();
    let progress = apply(by, &shares, bytes);
    let applied = started.elapsed();
    let report = shares.report(&progress);
    assert_eq!((report.given, report.changed), (TOTAL, shares.count()));

    let started = Started::now();
    drop(shares);
    Ok([collect, plan, applied, started.elapsed()])
}

fn value_at(bytes: &mut [u8], address: Option<RecordAddress>) -> &mut [u8; 8] {
    let at = address.expect("they were given").word() as usize * STRIDE + 16;
    bytes[at..].first_chunk_mut().expect("a value")
}

/// As an engine does that adds to words.
fn add_words(_: &Disaggregator, shares: &Shares<'_>, bytes: &mut [u8]) -> DisaggregationProgress {
    let mut progress = shares.progress();
    let (mut addresses, mut parts) = (Vec::new(), Vec::new());
    for at in 0..shares.batch_count() {
        let batch = shares.batch(at);
        assert!(batch.addresses(&mut addresses), "as they were given");
        let given = batch.word_parts(&mut parts).expect("parts of a narrow total");
        let mut before = Vec::with_capacity(batch.len());
        for (&address, &part) in addresses.iter().zip(&parts) {
            let value = value_at(bytes, Some(address));
            let held = i64::from_le_bytes(*value);
            *value = held.wrapping_add(part).to_le_bytes();
            before.push(held);
        }
        progress.record_words(at, &before, given);
    }
    progress
}

fn change(by: &Disaggregator, shares: &Shares<'_>, bytes: &mut [u8]) -> DisaggregationProgress {
    let mut progress = shares.progress();
    for at in 0..shares.batch_count() {
        for share in shares.batch(at).shares() {
            let outcome = by.change(value_at(bytes, share.address), share.part).into();
            progress.record(at, &share, outcome);
        }
    }
    progress
}
