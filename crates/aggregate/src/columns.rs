//! Columns: blocks of objects, and the loops over them.

pub(crate) mod block;
pub(crate) mod kernels;
