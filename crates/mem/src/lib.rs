//! All of Sapwood that maps or frees memory.
//!
//! | module | contents |
//! |---|---|
//! | [`sync`] | atomics, locks and waits: the machine's, or a model checker's |
//! | [`region`] | mapped memory and the pages under it |
//! | [`reserve`] | address space that is filled with memory as it grows, without moving |
//! | [`words`] | an array of atomic words, which a file may fill |
//! | [`vector`] | loops compiled for the vector instructions of the processor |
//! | [`shared`] | bytes of a file that are written by storing to memory |
//! | [`view`] | bytes of a file that nothing changes any more |
//! | [`ring`] | buffers that the kernel fills from files, many at a time |
//! | [`slice`](mod@slice) | names and size classes of the pieces of an arena |
//! | [`arena`] | an allocator of slices |
//! | [`epoch`] | pins of threads, and the epochs that they are pinned in |
//! | [`reclaim`] | deferred freeing of slices that readers may still use |
//! | [`reentry`] | the record locks that the current thread holds |
//!
//! Useful for engines that keep variable-size records outside every managed
//! heap. Not useful as a general allocator: slices are named by a [`SliceRef`],
//! not by a pointer, and belong to one [`Arena`].

pub mod arena;
mod buddy;
mod drain;
pub mod epoch;
mod flush;
#[cfg(loom)]
pub mod model;
pub mod reclaim;
pub mod reentry;
pub mod region;
pub mod reserve;
pub mod ring;
pub mod shared;
pub mod slice;
mod stripe;
pub mod sync;
pub mod vector;
pub mod view;
pub mod words;

pub use arena::{Arena, ArenaOptions, ArenaStats, OutOfMemory};
pub use region::Pages;
pub use slice::SliceRef;
