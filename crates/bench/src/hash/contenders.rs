//! The stores of this process, one file each, behind [`Store`](super::store::Store).

pub(crate) mod peers;
pub(crate) mod sapwood;

use std::sync::Arc;

use parking_lot::RwLock;

use super::baseline;
use super::in_process::{InProcess, Rank, Shared};
use super::load::Loadable;
use super::peer::Peer;
use super::store::{CallForm, Store, batched};
use super::workload::{Mix, Op};
use crate::tally::Tally;

pub(crate) const SAPWOOD: &str = "sapwood";
pub(crate) const SAPWOOD_16: &str = "sapwood-batch-16";
pub(crate) const SAPWOOD_32: &str = "sapwood-batch-32";
pub(crate) const SHARDS: &str = "hashbrown-shards";
pub(crate) const DASHMAP: &str = "dashmap";
pub(crate) const PAPAYA: &str = "papaya";
pub(crate) const PAPAYA_ATOMIC: &str = "papaya-atomic";
pub(crate) const SCC: &str = "scc";
pub(crate) const MOKA: &str = "moka";
pub(crate) const DICTIONARY: &str = "mutex-hashmap";

/// FASTER in the forms that the peer project `faster` brings, where it does.
pub(crate) const FASTER: [&str; 2] = ["faster", "faster-compact"];

/// The peers that targets are set against: those made for many threads.
pub(crate) const CONCURRENT: [&str; 6] = [SHARDS, DASHMAP, PAPAYA, PAPAYA_ATOMIC, SCC, MOKA];

/// Above this many keys moka is left out: at less than a million operations a second, and over 200
/// bytes an entry, it would take most of the time of a run.
const MOKA_KEYS_MAX: u32 = 1_000_000;

/// Names that `--engines` knows, with peers from outside.
pub(crate) fn names(outside: &[Peer]) -> impl Iterator<Item = &'static str> {
    [SAPWOOD, SAPWOOD_16, SAPWOOD_32]
        .into_iter()
        .chain(outside.iter().map(|peer| peer.name))
        .chain(CONCURRENT.into_iter().chain([DICTIONARY]))
        .chain(baseline::NAMES)
}

/// One key a call.
pub(crate) struct Singles;

impl<S: Store> CallForm<S> for Singles {
    const NAME: &'static str = S::NAME;
    const MARK: u32 = 0;
    const CALL: usize = 1;

    #[inline]
    fn work(store: &S, mix: Mix, low: u32, plan: &[Op]) -> Tally {
        store.work(mix, low, plan)
    }
}

/// `N` keys a call.
struct Batches<const N: usize>;

impl<const N: usize> CallForm<sapwood::Sapwood> for Batches<N> {
    const NAME: &'static str = match N {
        16 => SAPWOOD_16,
        32 => SAPWOOD_32,
        _ => panic!("batches of 16 and 32 have names"),
    };
    const MARK: u32 = if N == 16 { 1 } else { 2 };
    const CALL: usize = N;

    #[inline]
    fn work(store: &sapwood::Sapwood, mix: Mix, low: u32, plan: &[Op]) -> Tally {
        batched::<N, _>(store, mix, low, plan)
    }
}

/// The contenders with wanted names.
pub(crate) fn chosen(
    keys: u32,
    wanted: &dyn Fn(&str) -> bool,
    outside: &[Peer],
) -> Vec<Box<dyn Loadable>> {
    let wanted = &|name: &str| wanted(name) && takes(name, keys);
    let mut all: Vec<Box<dyn Loadable>> = Vec::new();
    let shared = Arc::new(RwLock::new(Shared::empty()));
    // The first form that is wanted loads for all.
    for name in [SAPWOOD, SAPWOOD_16, SAPWOOD_32] {
        let rank = if all.is_empty() { Rank::First } else { Rank::Further };
        if !wanted(name) {
            continue;
        }
        let shared = Arc::clone(&shared);
        all.push(match name {
            SAPWOOD_16 => Box::new(InProcess::<_, Batches<16>>::of(shared, rank)),
            SAPWOOD_32 => Box::new(InProcess::<_, Batches<32>>::of(shared, rank)),
            _ => Box::new(InProcess::<_, Singles>::of(shared, rank)),
        });
    }
    all.extend(outside.iter().filter(|peer| wanted(peer.name)).map(|peer| (peer.make)()));
    all.extend(peers::chosen(wanted));
    for baseline in baseline::Baseline::shapes(wanted) {
        all.push(Box::new(baseline));
    }
    all
}

/// Whether an engine takes part with so many keys.
pub(crate) fn takes(name: &str, keys: u32) -> bool {
    name != MOKA || keys <= MOKA_KEYS_MAX
}

/// Bytes that an entry costs, for asking beforehand whether all fit; measured at 50 million keys.
pub(crate) fn bytes_expected(name: &str, outside: &[Peer]) -> u64 {
    if let Some(peer) = outside.iter().find(|peer| peer.name == name) {
        return peer.bytes_expected;
    }
    match name {
        SAPWOOD => 40,
        PAPAYA | PAPAYA_ATOMIC => 56,
        MOKA => 200,
        // Forms of one store, or shapes on one memory.
        SAPWOOD_16 | SAPWOOD_32 => 0,
        _ if baseline::NAMES.contains(&name) => 12,
        _ => 25,
    }
}
