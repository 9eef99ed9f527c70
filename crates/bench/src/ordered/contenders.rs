//! The engines of this process, one file each, behind [`Ordered`](super::in_process::Ordered).
//!
//! Peers are compiled with the feature `peers`.

#[cfg(feature = "peers")]
pub(crate) mod peers;
pub(crate) mod sapwood;

use super::in_process::InProcess;
use super::load::Loadable;

/// Makes one engine.
type Make = fn() -> Box<dyn Loadable>;

/// Every engine by name; the first is ours, ratios are against it.
pub(crate) const ALL: &[(&str, Make)] = &[
    (SAPWOOD, InProcess::<sapwood::Sapwood>::boxed),
    #[cfg(feature = "peers")]
    (SKIP_LIST, InProcess::<peers::skip_list::SkipList>::boxed),
    #[cfg(feature = "peers")]
    (peers::OFF_HEAP, InProcess::<peers::off_heap::OffHeap>::boxed),
    #[cfg(feature = "peers")]
    (BTREE, InProcess::<peers::btree::LockedBTree>::boxed),
    #[cfg(feature = "peers")]
    (peers::MASSTREE, InProcess::<peers::masstree::Masstree>::boxed),
    #[cfg(feature = "peers")]
    (peers::TREE_INDEX, InProcess::<peers::tree_index::TreeIndex>::boxed),
];

pub(crate) const SAPWOOD: &str = "sapwood";
pub(crate) const SKIP_LIST: &str = "crossbeam-skiplist";
pub(crate) const BTREE: &str = "RwLock<BTreeMap>";
