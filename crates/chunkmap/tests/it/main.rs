//! Every promise of the map, each with a test that fails when it is broken.
#![cfg(not(loom))]
#![forbid(unsafe_code)]

mod accounting;
mod adapter;
mod cluster;
mod columns;
mod ending;
mod growth;
mod journal;
mod keys;
mod limits;
mod linearizable;
mod lingering;
mod oracle;
mod panics;
mod parallel;
mod rank;
mod reentrancy;
mod runs;
mod scans;
mod soak;
mod trim;
mod upserts;
