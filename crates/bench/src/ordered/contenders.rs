//! The engines of this process, one file each, behind [`Ordered`](super::in_process::Ordered).

pub(crate) mod peers;
pub(crate) mod sapwood;

use super::in_process::InProcess;
use super::load::Loadable;

/// Makes one engine.
type Make = fn() -> Box<dyn Loadable>;

/// Every engine by name; the first is ours, ratios are against it.
pub(crate) const ALL: &[(&str, Make)] = &[
    (SAPWOOD, InProcess::<sapwood::Sapwood>::boxed),
    (SKIP_LIST, InProcess::<peers::skip_list::SkipList>::boxed),
    (peers::OFF_HEAP, InProcess::<peers::off_heap::OffHeap>::boxed),
    (BTREE, InProcess::<peers::btree::LockedBTree>::boxed),
    (peers::MASSTREE, InProcess::<peers::masstree::Masstree>::boxed),
    (peers::TREE_INDEX, InProcess::<peers::tree_index::TreeIndex>::boxed),
];

pub(crate) const SAPWOOD: &str = "sapwood";
pub(crate) const SKIP_LIST: &str = "crossbeam-skiplist";
pub(crate) const BTREE: &str = "RwLock<BTreeMap>";
