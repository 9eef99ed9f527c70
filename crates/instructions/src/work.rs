//! The process that is counted: operations on a table of fixed records, between markers.

use std::hint::black_box;
use std::ops::Range;

use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use sapwood::{Db, HashTable, HashTableOptions, RecordLayout};
use sapwood_hashlog::{HashLog, Layout, Options};

/// The argument that makes the program this process.
pub(crate) const ARGUMENT: &str = "work";

/// The stop that tells the counting process where a count begins or ends.
pub(crate) const MARKER: Signal = Signal::SIGSTOP;

/// Operations of the first count; the second has twice as many. A step takes microseconds, and tens of
/// them where the machine is busy.
pub(crate) const OPERATIONS: u32 = 32;

/// Entries of a table. Its index fits into the second cache, but that changes no count.
const ENTRIES: u32 = 20_000;

/// Rows of the table of figures, in the order of their counts.
pub(crate) const NAMES: [&str; 15] = [
    "key alone",
    "get",
    "put",
    "add",
    "update",
    "engine get",
    "engine put",
    "engine add",
    "get of 16",
    "put of 16",
    "add of 16",
    "get of 32",
    "put of 32",
    "add of 32",
    "remove",
];

/// A key that looks random: a bijection, so that no two are the same.
#[inline(always)]
fn key(number: u32) -> u64 {
    let word = u64::from(number).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ word >> 31
}

fn word(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().expect("a value of 8 bytes"))
}

/// Calls `operation` with each key of the plan: the loop that is counted.
#[inline(always)]
fn each(plan: &[u32], mut operation: impl FnMut(u64)) {
    for number in plan {
        operation(key(*number));
    }
}

/// The same with `N` keys at once.
#[inline(always)]
fn each_batch<const N: usize>(plan: &[u32], mut operation: impl FnMut(&[u64; N])) {
    for numbers in plan.chunks_exact(N) {
        operation(&std::array::from_fn(|at| key(numbers[at])));
    }
}

/// Runs some operations three times: to warm up, to be counted, and to be counted with as many again.
fn mark(plans: &[u32], operations: impl Fn(&[u32])) {
    let count = OPERATIONS as usize;
    let marker = || raise(MARKER).expect("a process may stop itself");
    let run = |range: Range<usize>| operations(black_box(&plans[range]));
    run(3 * count..4 * count);
    marker();
    run(0..count);
    marker();
    run(count..3 * count);
    marker();
}

pub(crate) fn work() -> Result<(), String> {
    let table = table()?;
    let log = log()?;
    // A permutation, so that keys come in no order and none twice.
    let plan: Vec<u32> = (0..ENTRIES).map(|at| (at * 7_919) % ENTRIES).collect();
    ptrace::traceme().map_err(|why| {
        format!("the system lets no process be traced here, so nothing was counted: {why}")
    })?;
    singles(&table, &log, &plan);
    batches_of::<16>(&table, &plan);
    batches_of::<32>(&table, &plan);
    mark(&plan, |plan| {
        each(plan, |key| assert!(table.remove(key.to_le_bytes()).expect("memory")));
    });
    Ok(())
}

fn table() -> Result<HashTable, String> {
    let options = HashTableOptions::default()
        .layout(RecordLayout::Fixed8)
        .expected_entries(u64::from(ENTRIES));
    let table =
        Db::in_memory().create_hash_table("counted", options).map_err(|why| why.to_string())?;
    table.put_many(&entries()).map_err(|why| why.to_string())?;
    Ok(table)
}

fn log() -> Result<HashLog, String> {
    let mut options = Options::default();
    options.layout = Layout::Fixed8;
    options.expected_entries = u64::from(ENTRIES);
    let log = HashLog::in_memory(options).map_err(|why| why.to_string())?;
    log.put_many(&entries()).map_err(|why| why.error.to_string())?;
    Ok(log)
}

fn entries() -> Vec<([u8; 8], [u8; 8])> {
    (0..ENTRIES).map(|number| (key(number).to_le_bytes(), word_of(number))).collect()
}

fn word_of(number: u32) -> [u8; 8] {
    u64::from(number).to_le_bytes()
}

fn singles(table: &HashTable, log: &HashLog, plan: &[u32]) {
    mark(plan, |plan| {
        let mut sum = 0_u64;
        each(plan, |key| sum = sum.wrapping_add(key));
        black_box(sum);
    });
    mark(plan, |plan| {
        let mut sum = 0_u64;
        each(plan, |key| {
            let value = table.get_with(key.to_le_bytes(), word).expect("memory");
            sum = sum.wrapping_add(value.expect("every key is there"));
        });
        black_box(sum);
    });
    mark(plan, |plan| {
        each(plan, |key| table.put(key.to_le_bytes(), (key >> 8).to_le_bytes()).expect("memory"));
    });
    mark(plan, |plan| {
        each(plan, |key| {
            table.add(key.to_le_bytes(), 1).expect("a counter");
        });
    });
    mark(plan, |plan| {
        each(plan, |key| {
            let change = |value: &mut sapwood::ValueMut<'_>| {
                let next = word(value).wrapping_add(1);
                value.copy_from_slice(&next.to_le_bytes());
            };
            table.update(key.to_le_bytes(), change).expect("memory").expect("every key is there");
        });
    });
    mark(plan, |plan| {
        let mut sum = 0_u64;
        each(plan, |key| {
            let value = log.get_with(&key.to_le_bytes(), word).expect("memory");
            sum = sum.wrapping_add(value.expect("every key is there"));
        });
        black_box(sum);
    });
    mark(plan, |plan| {
        each(plan, |key| log.put(&key.to_le_bytes(), &(key >> 8).to_le_bytes()).expect("memory"));
    });
    mark(plan, |plan| {
        each(plan, |key| {
            log.add(&key.to_le_bytes(), 1).expect("a counter");
        });
    });
}

fn batches_of<const N: usize>(table: &HashTable, plan: &[u32]) {
    mark(plan, |plan| {
        let mut sum = 0_u64;
        each_batch::<N>(plan, |keys| {
            let keys = keys.map(u64::to_le_bytes);
            let read = |_, value: Option<&[u8]>| {
                sum = sum.wrapping_add(value.map_or(0, word));
            };
            table.get_many(&keys, read).expect("memory");
        });
        black_box(sum);
    });
    mark(plan, |plan| {
        each_batch::<N>(plan, |keys| {
            let entries = keys.map(|key| (key.to_le_bytes(), (key >> 8).to_le_bytes()));
            table.put_many(&entries).expect("memory");
        });
    });
    mark(plan, |plan| {
        each_batch::<N>(plan, |keys| {
            table.add_many(&keys.map(|key| (key.to_le_bytes(), 1))).expect("counters");
        });
    });
}
