//! Maps and caches of other crates.
//!
//! All hash with foldhash, hashbrown's default, and are made with room for all keys.

pub(crate) mod dashmap;
pub(crate) mod dictionary;
pub(crate) mod moka;
pub(crate) mod papaya;
pub(crate) mod scc;
pub(crate) mod shards;

use super::{DASHMAP, DICTIONARY, MOKA, PAPAYA, PAPAYA_ATOMIC, SCC, SHARDS};
use crate::hash::load::Loadable;
use crate::hash::peer::singles;

/// The hasher of all peers.
pub(crate) type Hasher = foldhash::fast::RandomState;

/// The peers with wanted names.
pub(crate) fn chosen(wanted: &dyn Fn(&str) -> bool) -> Vec<Box<dyn Loadable>> {
    let all = [
        (SHARDS, singles::<shards::Shards> as fn() -> Box<dyn Loadable>),
        (DASHMAP, singles::<dashmap::Dash>),
        (PAPAYA, singles::<papaya::Plain>),
        (PAPAYA_ATOMIC, singles::<papaya::Atomic>),
        (SCC, singles::<scc::Scc>),
        (MOKA, singles::<moka::Moka>),
        (DICTIONARY, singles::<dictionary::Dictionary>),
    ];
    all.into_iter().filter(|(name, _)| wanted(name)).map(|(_, make)| make()).collect()
}
