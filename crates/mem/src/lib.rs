//! All of Sapwood that maps or frees memory.
//!
//! | module | question it answers |
//! |---|---|
//! | [`sync`] | which atomics: the machine's, or a model checker's? |
//! | [`region`] | how is memory mapped, and on which pages? |
//! | [`reserve`] | how does memory grow without moving? |
//! | [`slice`](mod@slice) | how is a piece of an arena named, and which sizes are there? |
//! | [`arena`] | where does a new slice go, and who may have a freed one? |
//! | [`epoch`] | when has the last reader of a removed slice left? |
//! | [`boundary`] | when has every thread seen a new boundary? |
//! | [`holding`] | which locks of records does this thread hold? |
//!
//! Useful for engines that keep variable-size records outside every managed
//! heap. Not useful as a general allocator: slices are named by a [`SliceRef`],
//! not by a pointer, and belong to one [`Arena`].

pub mod arena;
pub mod boundary;
mod buddy;
mod drain;
pub mod epoch;
pub mod holding;
pub mod region;
pub mod reserve;
pub mod slice;
mod stripe;
pub mod sync;

pub use arena::{Arena, ArenaOptions, ArenaStats, OutOfMemory};
pub use region::Pages;
pub use slice::SliceRef;
