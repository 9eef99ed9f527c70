//! Evidence for engines: an engine adds an adapter, not a harness.
//!
//! | contents | module |
//! |---|---|
//! | the seeds that a test runs under, and the line that repeats one | [`mod@case`] |
//! | keys and values | [`keys`], [`values`] |
//! | the trait of an ordered engine | [`engine`], [`op`] |
//! | the operations of a stream | [`stream`] |
//! | the right answers on one thread | [`oracle`], [`runner`], [`shrink`] |
//! | the check that a concurrent history is linearizable | [`history`], [`linear`] |
//! | the check that transactions are serializable | [`serializable`] |
//! | the check that a scan keeps its promise while writers run | [`scan_promise`] |
//! | the same for engines without order | [`keyed`] |
//! | threads that get in each other's way | [`interleave`], [`stress`] |
//! | what a journal hears of changes | [`heard`] |
//!
//! A test takes a [`case!`], asks it for seeds, and runs a stream or a stress round
//! on its own [`engine::OrderedEngine`] or [`keyed::KeyedEngine`]:
//!
//! ```
//! use sapwood_testkit::reference::LockedMap;
//! use sapwood_testkit::{case, runner, stream::StreamSpec};
//!
//! case!().seeds(4, |seed| {
//!     let ops = StreamSpec::random(seed, 200).ops(seed);
//!     runner::check_against_oracle(LockedMap::new, &ops).unwrap();
//! });
//! ```
#![forbid(unsafe_code)]

mod answer;
pub mod case;
pub mod engine;
pub mod heard;
pub mod history;
pub mod interleave;
pub mod keyed;
pub mod keys;
pub mod linear;
pub mod op;
pub mod oracle;
mod pick;
pub mod reference;
pub mod runner;
pub mod scan_promise;
pub mod serializable;
mod show;
pub mod shrink;
pub mod stream;
pub mod stress;
mod threads;
pub mod values;

pub use show::Shown;

/// Bytes of a key or a value, cheap to clone into many operations.
pub type Bytes = std::sync::Arc<[u8]>;

/// The random number generator of every stream: stable across machines and versions.
pub type Rng = rand::rngs::ChaCha8Rng;

/// The generator a seed names.
pub fn rng(seed: u64) -> Rng {
    use rand::SeedableRng;
    Rng::seed_from_u64(seed)
}
