//! Columns: the loops over batches of objects.

pub(crate) mod dictionary;
pub(crate) mod kernels;

/// The objects of a run that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Masking {
    /// All: the mask is not set.
    Unmasked,
    /// Those that the mask has.
    Masked,
}
