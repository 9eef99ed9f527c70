//! Stores outside this workspace that take part in memory, and what they are written with.

use std::sync::Arc;

use parking_lot::RwLock;

pub use super::store::Store;
pub use super::workload::{Mix, Op, key, number_of, value};
pub use crate::tally::Tally;

use super::contenders::Singles;
use super::in_process::{InProcess, Rank, Shared};
use super::load::Loadable;

/// A store outside this workspace.
#[derive(Clone, Copy)]
pub struct Peer {
    pub(super) name: &'static str,
    /// Bytes that an entry costs, for asking beforehand whether all fit.
    pub(super) bytes_expected: u64,
    pub(super) make: fn() -> Box<dyn Loadable>,
}

impl Peer {
    /// The store `S`, of which an entry costs about so many bytes.
    #[must_use]
    pub fn of<S: Store + 'static>(bytes_expected: u64) -> Peer {
        Peer { name: S::NAME, bytes_expected, make: singles::<S> }
    }
}

/// A store of its own that takes one key a call.
pub(super) fn singles<S: Store + 'static>() -> Box<dyn Loadable> {
    Box::new(InProcess::<S, Singles>::of(Arc::new(RwLock::new(Shared::empty())), Rank::First))
}
