//! Columns: the loops over batches of objects.

pub(crate) mod kernels;
