//! Every promise of the hash log, each with a test that fails when it is broken.
#![cfg(not(loom))]
#![forbid(unsafe_code)]

mod adapter;
mod background;
mod compaction;
mod compute;
mod crashes;
mod durable;
mod ending;
mod faults;
mod growth;
mod hold;
mod journal;
mod kill;
mod late;
mod leftovers;
mod limits;
mod linearizable;
mod opened;
mod oracle;
mod panics;
mod read_cache;
mod real_reads;
mod resumable;
mod sample;
mod scans;
mod soak;
mod update_at;
