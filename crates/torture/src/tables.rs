//! The tables of a tortured database. All of a table follows from its name.

use sapwood::{ColdReads, Compaction, HashTableOptions, RecordLayout};

use crate::stream::Stream;

/// The tables that are there as long as the database is.
pub(crate) const LASTING: [&str; 2] = ["variable", "fixed"];

/// The name of the `number`-th table that is made and dropped.
pub(crate) fn passing(number: u64) -> String {
    let layout = if number.is_multiple_of(2) { "variable" } else { "fixed" };
    format!("passing-{number}-{layout}")
}

/// The number in such a name.
pub(crate) fn passing_number(name: &str) -> Option<u64> {
    name.strip_prefix("passing-")?.split('-').next()?.parse().ok()
}

pub(crate) fn layout(name: &str) -> RecordLayout {
    if name.ends_with("fixed") { RecordLayout::Fixed8 } else { RecordLayout::Variable }
}

/// How a table spends its memory and files. All spill: they keep a dozen pages in memory, and their
/// entries take more.
pub(crate) fn options(name: &str, compactor: Compactor) -> HashTableOptions {
    let compaction = Compaction { garbage_share: 0.3, log_bytes_min: 0, log_bytes_max: None };
    let compaction = match compactor {
        Compactor::Absent => None,
        Compactor::Eager => Some(compaction),
    };
    let options = HashTableOptions::default().compaction(compaction);
    match layout(name) {
        RecordLayout::Variable => {
            options.page_bytes(4 << 10).memory_budget(48 << 10).mutable_share(0.3)
        }
        RecordLayout::Fixed8 => options
            .layout(RecordLayout::Fixed8)
            .page_bytes(512)
            .memory_budget(12 << 10)
            .mutable_share(0.5)
            .cold_reads(ColdReads::Stay),
    }
}

/// Whether tables compact themselves, in a thread of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compactor {
    /// They are compacted when the worker says so: the same calls in each run.
    Absent,
    Eager,
}

/// The operations of a table's threads. Only one thread changes a table that passes.
pub(crate) fn streams(seed: u64, name: &str, threads: u64) -> Vec<Stream> {
    let threads = if passing_number(name).is_some() { 1 } else { threads };
    let of_name = name.bytes().fold(seed.wrapping_mul(31), |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    });
    let stream = |thread| Stream { seed: of_name, layout: layout(name), thread };
    (0..threads).map(stream).collect()
}
